"""What a person sees while a campaign runs."""

import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci.fuzzing.allocation import shares
from ci.fuzzing.progress import FuzzingProgress
from ci.fuzzing.supervisor import Phase
from ci.progress import PLAIN_EVERY, Line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def phase(*states):
    """A phase of a minute in which each harness has one shard that did so much."""
    made = Phase(60.0, 1, shares([name for name, *_ in states]))
    shards: list[Any] = [
        SimpleNamespace(
            task=SimpleNamespace(harness=name), executions=executions, edges=edges, finished=False
        )
        for name, executions, edges in states
        if executions is not None
    ]
    made.shards = shards
    return made


def test_a_line_has_time_rates_edges_and_finds():
    progress = FuzzingProgress(io.StringIO(), {"hello": 2})
    progress(phase(("hello", 0, 0), ("server", None, 0)), 1.0)
    assert progress.line(phase(("hello", 0, 0), ("server", None, 0)), 1.0) == (
        "  59 s left, 0 runs, 2 finds | hello starts"
    )
    progress(phase(("hello", 40_000, 512)), 3.0)
    assert progress.line(phase(("hello", 40_000, 512)), 3.0) == (
        "  57 s left, 40,000 runs, 2 finds | hello 20,000/s 512 edges"
    )
    assert progress.line(phase(("hello", 1, 1)), 3.0) == (
        "  57 s left, 1 run, 2 finds | hello 20,000/s 1 edge"
    )


@pytest.mark.parametrize("terminal, most", [(True, 79), (False, 199)])
def test_a_line_of_many_harnesses_is_as_long_as_its_stream_bears(terminal, most, monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    stream = Terminal() if terminal else io.StringIO()
    progress = FuzzingProgress(stream)
    states = [(f"harness-{number}", 10**6, 1000) for number in range(20)]
    told = progress.line(phase(*states), 3.0)
    assert most - 40 < len(told) <= most and told.endswith(" more")
    progress.say("word " * 100)
    assert max(len(line) for line in stream.getvalue().splitlines()) <= most


def test_who_is_quiet_says_nothing_and_leaves_no_mark():
    for stream in (Terminal(), io.StringIO()):
        progress, line = FuzzingProgress(stream, quiet=True), Line("triage", stream, quiet=True)
        progress(phase(("hello", 10, 1)), 100.0)
        progress.say("merging")
        progress.show("half of it")
        line("1 of 2")
        line.end()
        assert stream.getvalue() == ""


def test_elsewhere_than_on_a_terminal_lines_are_few_and_plain():
    stream = io.StringIO()
    progress = FuzzingProgress(stream)
    for tenth in range(600):
        progress(phase(("hello", tenth, 1)), tenth / 10)
    lines = stream.getvalue().splitlines()
    assert 60 / PLAIN_EVERY <= len(lines) <= 60 / PLAIN_EVERY + 2
    assert "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()


def test_on_a_terminal_one_line_moves_and_what_is_said_stays():
    stream = Terminal()
    progress = FuzzingProgress(stream)
    for tenth in range(60):
        progress(phase(("hello", tenth, 1)), 10 + tenth / 10)
    progress.say("merging")
    assert "\n" not in stream.getvalue().removesuffix("merging\n")
    assert stream.getvalue().endswith("\r\x1b[Kmerging\n")


def test_the_summary_of_nothing_is_not_full_of_praise():
    from ci.fuzzing import summary

    data: summary.Summary = {
        "kind": "campaign",
        "commit": "",
        "python": "3.11",
        "interrupted": False,
        "asked_seconds": 0.0,
        "files": {},
        "curve": [],
        "refusals": {},
        "oracles": {},
        "exit": 3,
        "fuzzing_seconds": 0.0,
        "seconds": 200.0,
        "jobs": 1,
        "harnesses": {},
        "coverage": {},
        "canaries": [{"harness": "hello", "plant": "", "found": False}],
        "untrusted": ["hello: nothing was executed"],
        "notes": [],
        "findings": [],
    }
    text = summary.text(data)
    assert text.startswith(
        "campaign: this run is not to be trusted\n0.0 s of fuzzing over 1 process,"
    )
    assert "3.3 min in all" in text and "not measured" in text
    assert "hello: none" in text and "  hello: nothing was executed" in text
    assert not Path("summary.txt").exists()


def test_a_moving_line_is_kept_to_the_terminals_width_and_taken_away(monkeypatch):
    monkeypatch.setattr("ci.progress.TERMINAL_EVERY", 0.0)
    stream = Terminal()
    line = Line("triage", stream)
    line("x" * 500)
    assert stream.getvalue().startswith("\r\x1b[Ktriage: xxx") and len(stream.getvalue()) < 250
    line.end()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_elsewhere_a_line_is_printed_now_and_then_and_short_work_prints_none(monkeypatch):
    stream = io.StringIO()
    line = Line("triage", stream)
    line("1 of 2")
    line.end()
    assert stream.getvalue() == ""
    monkeypatch.setattr("ci.progress.PLAIN_EVERY", 0.0)
    line = Line("triage", stream)
    line("1 of 2")
    assert stream.getvalue() == "triage: 1 of 2\n"
