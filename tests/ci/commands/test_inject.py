"""`residue inject`: repeatable, nothing found is lost, and a run that saw nothing says so."""

import json
import signal
import subprocess
import sys
import time

import pytest

from ci import command
from ci.commands import inject
from ci.exits import Exit
from ci.process import ROOT
from harnesses import injection
from harnesses.injection import InjectionVerdict, Violation
from harnesses.injector.places import KINDS
from harnesses.injector.scenarios import SCENARIOS
from tests.tools import PATIENCE

CALM = "event/free"


@pytest.fixture
def held(monkeypatch):
    """No injection breaks anything."""
    monkeypatch.setattr(
        injection, "inject", lambda scenario, kind, place: InjectionVerdict("engine/a.py:1 f")
    )


@pytest.fixture
def broken(monkeypatch):
    """Every one of `event` leaves a byte."""

    def judge(scenario, kind, place):
        found = (Violation("bytes", f"{place} of them"),) if scenario.method == "event" else ()
        return InjectionVerdict(f"engine/a.py:{place} f", found)

    monkeypatch.setattr(injection, "inject", judge)


def run(*arguments, out):
    return command.main(["inject", "--jobs", "1", "--out", str(out), *arguments])


def summary(out):
    return json.loads((out / "summary.json").read_text())


def test_a_run_makes_every_injection_and_says_so(tmp_path, capsys, held):
    assert run(CALM, "--json", "-", out=tmp_path) == Exit.CLEAN
    data = json.loads(capsys.readouterr().out)
    assert data == summary(tmp_path)
    assert data["whole"] and data["scenarios"] == data["of_scenarios"] == 1
    assert set(data["kinds"]) == set(KINDS)
    assert data["injections"] == sum(data["kinds"].values()) > 20
    assert run(CALM, "--kind", "memory", out=tmp_path / "one") == Exit.CLEAN
    assert summary(tmp_path / "one")["injections"] == data["kinds"]["memory"]
    assert "nothing found" in capsys.readouterr().out


def test_a_finding_is_kept_once_and_says_how_to_see_it_again(tmp_path, capsys, broken):
    assert run("event/*", "--kind", "memory", out=tmp_path) == Exit.FOUND
    said = capsys.readouterr().out
    data = summary(tmp_path)
    assert data["broken"] > 10 and data["oracles"] == {"bytes": data["broken"]}
    assert 1 <= len(data["findings"]) < data["broken"]
    assert "bytes: " in said and "| residue inject event/" in said
    again = next(line for line in said.splitlines() if line.startswith("finding: "))
    words = again.partition("| residue inject ")[2].split()
    assert run(*words, out=tmp_path / "again") == Exit.FOUND
    assert summary(tmp_path / "again")["injections"] == 1


def test_what_is_found_replays_as_an_input_and_is_sorted_into_buckets(tmp_path, capsys, broken):
    assert run(CALM, "--kind", "memory", "--at", "3", out=tmp_path) == Exit.FOUND
    (file,) = (tmp_path / "findings" / "injection").glob("*.input")
    assert file.read_text().startswith(f"{CALM} memory 3 # ")
    assert command.main(["replay", "injection", str(file)]) == Exit.FOUND
    assert "oracle bytes" in capsys.readouterr().out
    store = tmp_path / "buckets"
    assert command.main(["triage", str(store), "--from", str(tmp_path)]) == Exit.FOUND
    # It is run again in a process where nothing is planted.
    assert "injection bytes" in capsys.readouterr().out


def test_a_file_that_is_no_injection_is_not_replayed(tmp_path, capsys):
    file = tmp_path / "x"
    file.write_text("hello")
    assert command.main(["replay", "injection", str(file)]) == Exit.USAGE
    assert "a scenario, a kind and a place" in capsys.readouterr().err
    assert command.main(["replay", "injection"]) == Exit.USAGE


def test_a_sample_is_of_its_size_and_follows_from_its_seed(tmp_path):
    def tasks(seed):
        asked = inject.Run(list(SCENARIOS), list(KINDS), seed, 1, tmp_path)
        asked.sample = 40
        return asked.tasks()

    assert len(tasks(1)) == 40
    assert tasks(1) == tasks(1) != tasks(2)
    assert len({task.scenario for task in tasks(1)}) == 40


def test_a_run_that_is_cut_by_its_time_is_no_whole_one_and_no_doubt(tmp_path, held):
    began = time.monotonic()
    assert run("feed-*", "--seconds", "1", out=tmp_path) == Exit.CLEAN
    data = summary(tmp_path)
    assert not data["whole"] and not data["untrusted"] and data["injections"]
    assert time.monotonic() - began < 60


def test_a_run_that_injected_nothing_is_not_to_be_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(injection, "places", lambda scenario, kind: 0)
    assert run(CALM, out=tmp_path) == Exit.UNTRUSTED
    assert summary(tmp_path)["untrusted"] == ["nothing was injected"]


def test_a_place_that_was_counted_and_is_not_reached_is_a_doubt(tmp_path, monkeypatch):
    monkeypatch.setattr(injection, "inject", lambda scenario, kind, place: InjectionVerdict())
    assert run(CALM, "--kind", "memory", "--at", "2", out=tmp_path) == Exit.UNTRUSTED
    assert f"{CALM} memory 2 was not reached" in summary(tmp_path)["untrusted"]


def test_a_scenario_that_breaks_by_itself_is_a_doubt(tmp_path, monkeypatch):
    def fails(scenario):
        raise AssertionError("feed takes nothing")

    monkeypatch.setattr(injection, "honest_run", fails)
    assert run(CALM, "--kind", "memory", out=tmp_path) == Exit.UNTRUSTED
    assert summary(tmp_path)["untrusted"][0] == f"{CALM} breaks by itself: feed takes nothing"


def test_an_injection_without_an_end_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(inject, "INPUT_SECONDS", 1)
    monkeypatch.setattr(injection, "inject", lambda scenario, kind, place: time.sleep(30))
    assert run(CALM, "--kind", "memory", "--at", "1", out=tmp_path) == Exit.FOUND
    (found,) = summary(tmp_path)["findings"]
    assert "still running after 1 s" in found["detail"]


def test_a_planted_fault_that_is_missed_condemns_the_run(tmp_path, monkeypatch, held):
    monkeypatch.setattr(inject, "SCENARIOS", {CALM: SCENARIOS[CALM]})
    answers = {"one": True, "two": False}
    monkeypatch.setattr(inject, "run_canaries", lambda canaries, folder, jobs, stop: answers)
    assert run("--kind", "memory", out=tmp_path) == Exit.UNTRUSTED
    assert summary(tmp_path)["untrusted"] == ["the planted fault 'two' was not found"]
    answers.clear()
    assert run("--kind", "memory", out=tmp_path / "none") == Exit.UNTRUSTED


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere/free"], "there is no scenario 'nowhere/free'"),
        (["event/*", "--kind", "memory", "--at", "1"], "--at is for one scenario"),
        ([CALM, "--at", "1"], "--at is for one scenario"),
    ],
)
def test_what_cannot_be_done_is_refused_before_it_begins(words, told, tmp_path, capsys):
    assert run(*words, out=tmp_path / "out") == Exit.USAGE
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_scenarios_are_listed(capsys):
    assert command.main(["inject", "serve*", "--list"]) == Exit.CLEAN
    assert "serve/free/few" in capsys.readouterr().out.splitlines()


def test_several_processes_make_the_same_injections(tmp_path):
    counts = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        command.main(["inject", "areas/free", "--jobs", jobs, "--out", str(out)])
        counts.append(summary(out)["kinds"])
    assert counts[0] == counts[1]


def test_a_signal_ends_it_in_order(tmp_path):
    out = tmp_path / "run"
    argv = [sys.executable, "-m", "ci", "inject", "feed-*", "--out", str(out)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stderr is not None and b"seed" in child.stderr.readline()
        time.sleep(3)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == Exit.INTERRUPTED
    assert b"interrupted" in said
    assert summary(out)["interrupted"]
