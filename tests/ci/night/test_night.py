"""A night: what each step may do to it, and that a kill or a full disk costs nothing else."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci.commands import nightly
from ci.exits import Exit, UsageError
from ci.night import child, history, runner, state
from ci.night.plan import STEPS, Step
from ci.night.runner import Asked
from ci.process import ROOT, Stop
from ci.progress import Progress
from tests.ci.night_steps import buckets, no_report, step
from tests.tools import wait_until

QUICK = ((0.0, signal.SIGINT), (0.3, signal.SIGKILL))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A step that must be cut is cut at once."""
    monkeypatch.setattr(
        child.run, "__kwdefaults__", {**(child.run.__kwdefaults__ or {}), "asks": QUICK}
    )


def go(root, *steps, stop=None, report=no_report, minutes=1.0):
    asked = Asked(root, minutes, 1, steps, report)
    return runner.run_night(asked, Stop() if stop is None else stop, Progress())


def rows(root):
    found, wrong = history.read(root / "history.jsonl")
    assert wrong == []
    return found


def written(night):
    return json.loads((night.folder / "night.json").read_text())


def test_a_night_without_a_finding_is_green_and_in_the_history(tmp_path):
    night = go(tmp_path, step("one"), step("two"), buckets("known", "fixed"))
    assert night.verdict == Exit.CLEAN
    assert [line.state for line in night.steps] == ["done", "done", "done"]
    data = written(night)
    assert data["kind"] == "nightly" and data["exit"] == 0 and data["finished"]
    assert [b["state"] for b in data["buckets"]] == ["known", "fixed"]
    (row,) = rows(tmp_path)
    assert row["night"] == night.name and row["exit"] == 0
    assert row["findings"] == {"new": 0, "known": 1, "expired": 0, "fixed": 1}
    assert "nothing found" in nightly.text(night)


def test_a_finding_and_a_new_bucket_are_red_and_the_rest_is_done(tmp_path):
    night = go(tmp_path, step("one", "sys.exit(2)"), step("two"), buckets("new", "known"))
    assert night.verdict == Exit.FOUND
    assert [f["rule"] for f in night.findings] == ["stand-in", "stand-in", "bucket"]
    assert [line.state for line in night.steps] == ["done"] * 3
    text = nightly.text(night)
    assert "finding 3: bucket: new: hello: residue in pool.py:give (b0)" in text
    assert "  residue replay hello b" in text


@pytest.mark.parametrize(
    "bad, became, why",
    [
        (step("bad", "sys.exit(7)"), "failed", "it ended with 7"),
        (step("bad", "import os; os.kill(os.getpid(), 9)"), "failed", "it was killed by SIGKILL"),
        (step("bad", needs=("no_such_module",)), "skipped", "no_such_module is not installed"),
        (
            # A Python that is asked to end while it starts ends with 1: it found nothing.
            step("bad", "import time; time.sleep(60)", lambda *_: None, grace=-4.8),
            "cut",
            "it was cut after",
        ),
        (
            step("bad", "import signal, time; signal.signal(2, 1); time.sleep(60)", grace=-4.0),
            "cut",
            "it was cut after",
        ),
        (
            Step("bad", "is not there", lambda *_: ["/no/such/program"], lambda *_: None),
            "failed",
            "it could not be started: No such file or directory (program)",
        ),
        (
            step("bad", judged=lambda *_: dict[str, str]()["gone"]),
            "failed",
            "what it left cannot be understood: KeyError: 'gone'",
        ),
    ],
    ids=["code", "killed", "missing tool", "hung", "deaf", "no program", "strange"],
)
def test_a_step_that_goes_wrong_is_told_and_ends_nothing(tmp_path, bad, became, why):
    night = go(tmp_path, bad, step("after"), buckets())
    line = night.line("bad")
    assert line.state == became and line.why.startswith(why)
    assert night.line("after").state == night.line("triage").state == "done"
    assert len(rows(tmp_path)) == 1
    assert night.verdict == Exit.UNTRUSTED
    assert night.untrusted == [f"bad: {line.why}"] and line.why in nightly.text(night)


def test_a_report_that_fails_is_told_and_the_night_is_in_the_history_all_the_same(tmp_path):
    night = go(tmp_path, step("one"), report=lambda folder: [sys.executable, "-c", "1/0"])
    assert night.verdict == Exit.UNTRUSTED and "ZeroDivisionError" in night.untrusted[0]
    assert [row["exit"] for row in rows(tmp_path)] == [3] and written(night)["exit"] == 3


def test_without_triage_every_finding_is_one(tmp_path):
    wrong = [{"harness": "hello", "file": "a", "wrong": "expected x"}]
    script = f"open(FOLDER + '/answer.json', 'w').write({json.dumps(wrong)!r})"
    night = go(tmp_path, step("replay", script), step("triage", "sys.exit(9)", always=True))
    assert night.verdict == Exit.FOUND
    assert [f["message"] for f in night.findings] == ["hello: a: expected x"]


@pytest.mark.parametrize("states, verdict", [(["known"], 3), (["new"], 1)])
def test_what_triage_could_not_read_is_a_doubt_and_the_rest_is_sorted(tmp_path, states, verdict):
    sorts = buckets(*states)
    script = sorts.argv(None, Path("f"), 0)[2].rpartition("sys.exit")[0]
    script += "print('residue: 1 of what was to be read could not be'); sys.exit(3)"
    night = go(tmp_path, step("triage", script, sorts.judge, always=True))
    assert [b["state"] for b in night.buckets] == states and night.verdict == verdict
    assert night.untrusted == [
        "triage: it ended with 3: residue: 1 of what was to be read could not be"
    ]


def test_a_machine_that_ends_with_1_and_names_no_test_has_found_nothing(tmp_path):
    judged = next(one.judge for one in STEPS if one.name == "machine")
    night = go(tmp_path, step("machine", "print('KeyboardInterrupt'); sys.exit(1)", judged))
    assert night.untrusted == ["machine: it ended with 1: KeyboardInterrupt"]
    night = go(tmp_path, step("machine", "print('FAILED tests/x.py::y - z'); sys.exit(1)", judged))
    assert [f["message"] for f in night.findings] == ["FAILED tests/x.py::y - z"]


@pytest.mark.parametrize(
    "name", ["replay", "campaign", "patch", "mutate", "inject", "recordings", "triage"]
)
def test_the_last_words_of_a_step_that_leaves_nothing_are_the_reason(tmp_path, name):
    judged = next(one.judge for one in STEPS if one.name == name)
    night = go(tmp_path, step(name, "print('ImportError: no tool'); sys.exit(1)", judged))
    (line,) = night.steps
    assert line.state == "failed" and line.why.endswith("it ended with 1: ImportError: no tool")


def test_a_disk_that_fills_up_is_told_and_the_state_on_it_stays_whole(tmp_path, monkeypatch):
    full: list[object] = []
    real = os.fsync

    def fsync(number):
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)

    def fills(context, line, folder, code):
        full.append(True)

    night = go(tmp_path, step("one"), step("two", judged=fills), step("three"), buckets())
    assert [line.state for line in night.steps] == ["done"] * 4
    assert night.verdict == Exit.UNTRUSTED
    assert "night.json could not be written: No space left on device" in night.untrusted
    assert "history.jsonl could not be written: No space left on device" in night.untrusted
    older = written(night)
    assert [line["state"] for line in older["steps"]] == ["done", "waiting", "waiting", "waiting"]
    assert rows(tmp_path) == [] and not list(night.folder.glob(".*"))
    full.clear()
    again = go(tmp_path, step("one"), step("two"), step("three"), buckets())
    assert again.name == night.name and again.resumed == 1 and again.verdict == Exit.CLEAN
    assert [row["night"] for row in rows(tmp_path)] == [night.name]


def test_little_space_is_told_before_anything_begins(tmp_path, monkeypatch):
    usage = shutil._ntuple_diskusage(10**9, 10**9, 5 * 10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    night = go(tmp_path, step("one"))
    assert night.verdict == Exit.UNTRUSTED and "only 5 MB are free" in night.untrusted[0]


def test_two_at_once_are_refused(tmp_path):
    with state.only_one(tmp_path), pytest.raises(UsageError, match="another nightly is at work"):
        go(tmp_path, step("one"))
    assert go(tmp_path, step("one")).verdict == Exit.CLEAN


class Signalled(Stop):
    """So many signals have come by the time that a step is at hand."""

    def __init__(self, *counts):
        super().__init__()
        self.counts = list(counts)

    def take(self, *_):
        self.count = self.counts.pop(0)


def test_the_first_signal_leaves_out_what_is_left_but_triage_and_the_report(tmp_path):
    stop = Signalled(1)
    one = step("one", judged=stop.take)
    night = go(tmp_path, one, step("two"), buckets("known"), stop=stop)
    assert [line.state for line in night.steps] == ["done", "skipped", "done"]
    assert night.line("two").why == "interrupted" and night.verdict == Exit.INTERRUPTED
    assert [row["exit"] for row in rows(tmp_path)] == [130] and written(night)["finished"]


def test_after_the_second_signal_the_night_is_left_for_the_next(tmp_path):
    stop = Signalled(2)
    steps = [step("one", judged=stop.take), step("two"), buckets()]
    night = go(tmp_path, *steps, stop=stop)
    assert night.verdict == Exit.INTERRUPTED and rows(tmp_path) == []
    assert [line.state for line in night.steps] == ["done", "waiting", "waiting"]
    again = go(tmp_path, *steps)
    assert again.name == night.name and again.verdict == Exit.CLEAN
    assert [line.state for line in again.steps] == ["done"] * 3


def test_what_two_signals_cut_or_left_out_is_done_by_whoever_takes_the_night_up(tmp_path):
    stop = Signalled(2)
    night = go(tmp_path, step("one", judged=stop.take), step("two"), buckets(), stop=stop)
    for line, became in zip(night.steps, ("cut", "skipped", "done"), strict=True):
        line.state, line.why = became, "" if became == "done" else "interrupted"
    night.save()
    again = go(tmp_path, step("one"), step("two", "sys.exit(1)"), buckets())
    assert again.name == night.name and again.resumed == 1 and again.verdict == Exit.FOUND
    assert [line.state for line in again.steps] == ["done"] * 3


# A night in a process of its own, to be killed: the step "two" never ends the first time.
RUN = """
import sys, os
from pathlib import Path
from tests.ci.night_steps import buckets, step
from tests.ci.night import test_night
root = Path(sys.argv[1])
wait = "import os, time; open(FOLDER + '/begun', 'w').write(str(os.getpid())); time.sleep(600)"
steps = [step("one", "sys.exit(1)"), step("campaign", wait), buckets()]
test_night.go(root, *steps)
"""


def killed(root):
    """A night killed in its second step; the process id of that."""
    begun = root / "begun"
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(root)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: list(root.glob("nights/*/campaign/begun")))
        (begun,) = root.glob("nights/*/campaign/begun")
        wait_until(lambda: begun.read_text())
        process.kill()
    return int(begun.read_text())


def test_a_night_that_was_killed_is_taken_up_and_loses_nothing(tmp_path):
    step_id = killed(tmp_path)
    wait_until(lambda: not Path(f"/proc/{step_id}").exists())
    (folder,) = (tmp_path / "nights").iterdir()
    shard = folder / "campaign" / "shards" / "hello-1" / "corpus"
    shard.mkdir(parents=True)
    (shard / "x").write_bytes(b"found before the kill")
    night = go(tmp_path, step("one", "sys.exit(2)"), step("campaign"), buckets("known"))
    assert night.folder == folder and night.resumed == 1
    assert [f["message"] for f in night.findings] == ["one 0"], "it was not run again"
    assert night.line("campaign").folder == "campaign-2" and night.verdict == Exit.FOUND
    kept = list((tmp_path / "corpus" / "hello").iterdir())
    assert [file.read_bytes() for file in kept] == [b"found before the kill"]
    assert [row["night"] for row in rows(tmp_path)] == [folder.name]
    assert go(tmp_path, step("one")).folder != folder, "the next is another"


def test_a_killed_night_of_another_checkout_is_closed_and_its_findings_go_on(tmp_path, monkeypatch):
    killed(tmp_path)
    monkeypatch.setattr(runner, "commit", lambda: "another")
    night = go(tmp_path, step("one"), step("campaign"), buckets())
    older, newer = rows(tmp_path)
    assert older["exit"] == Exit.INTERRUPTED and newer["night"] == night.name
    assert night.resumed == 0 and night.takes == [
        str(tmp_path / "nights" / older["night"] / "campaign")
    ]


def test_a_night_killed_between_its_end_and_the_history_is_added_by_the_next(tmp_path):
    first = go(tmp_path, step("one", "sys.exit(1)"))
    (tmp_path / "history.jsonl").unlink()
    second = go(tmp_path, step("one"))
    assert [row["night"] for row in rows(tmp_path)] == [first.name, second.name]
    assert [row["exit"] for row in rows(tmp_path)] == [1, 0]


def test_the_time_that_a_killed_night_had_spent_is_not_spent_again(tmp_path):
    given = []
    killed(tmp_path)
    (path,) = tmp_path.glob("nights/*/night.json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "spent": 20.0}))
    campaign = step("campaign", part=1, fixed=0)
    argv = campaign.argv

    def asked(context, folder, seconds):
        given.append(seconds)
        return argv(context, folder, seconds)

    go(tmp_path, step("one"), replace(campaign, argv=asked), buckets(), minutes=99.0)
    assert given == [pytest.approx(60 - 20 - 5, abs=1)]
