"""The fuzzing phase, with a fuzzer that is none."""

import sys
import time
from pathlib import Path

import pytest

from ci.fuzzing.allocation import shares
from ci.fuzzing.shard import FRUITLESS, Shard, Task
from ci.fuzzing.supervisor import Phase, run
from ci.process import ROOT, Stop
from tests.tools import alive

FAKE = ROOT / "tests" / "ci" / "fake_runner.py"


def fuzz(tmp_path, behaviours, seconds, jobs=None, report=lambda phase, now: None, stop=None):
    """Run a phase over harnesses that are called as they behave."""

    def make(share, seconds, number):
        task = Task(
            harness=share.harness,
            name=f"{share.harness}-{number}",
            folder=tmp_path / f"{share.harness}-{number}",
            seeds=[],
            earlier=[shard.corpus for shard in phase.of(share.harness)],
            findings=tmp_path / "findings",
            dictionary=None,
            seed=1,
            limit=600,
            command=[sys.executable, str(FAKE), share.harness],
        )
        return Shard(task, seconds)

    phase = Phase(seconds, jobs or len(behaviours), shares(list(dict.fromkeys(behaviours))))
    run(phase, make, Stop() if stop is None else stop, report)
    return phase


def test_the_phase_takes_its_time_and_counts_what_was_executed(tmp_path):
    phase = fuzz(tmp_path, ["good", "good"], 3)
    assert len(phase.shards) == 2
    assert 2.9 < phase.took < 5
    for shard in phase.shards:
        assert shard.executions >= 5000 and shard.edges >= 205
        assert shard.gained >= 5, "the seeds reach 200"
        assert shard.starts == 1 and shard.ends == [] and not shard.gave_up
        assert len(list(shard.corpus.iterdir())) * 1000 == shard.executions


def test_harnesses_share_the_time_of_one_process(tmp_path):
    phase = fuzz(tmp_path, ["good", "parent"], 10, jobs=1)
    assert 9.9 < phase.took < 13
    assert [shard.task.harness for shard in phase.shards] == ["good", "parent"]
    assert all(shard.executions > 3000 for shard in phase.shards)


def test_a_turn_that_is_followed_by_the_same_share_goes_on_in_its_process(tmp_path, monkeypatch):
    monkeypatch.setattr("ci.fuzzing.allocation.SHORT", 2.0)
    monkeypatch.setattr("ci.fuzzing.supervisor.SHORTEST", 0.5)
    phase = fuzz(tmp_path, ["good"], 7)
    assert len(phase.turns) >= 3 and len(phase.shards) == 1
    assert sum(begun.turn().seconds for begun in phase.turns) == pytest.approx(7, abs=0.5)
    assert sum(begun.turn().edges for begun in phase.turns) == phase.gained("good") > 30


def test_a_later_turn_begins_with_what_the_earlier_ones_found(tmp_path, monkeypatch):
    monkeypatch.setattr("ci.fuzzing.allocation.SHORT", 2.0)
    monkeypatch.setattr("ci.fuzzing.supervisor.SHORTEST", 0.5)
    phase = fuzz(tmp_path, ["good", "parent"], 9, jobs=1)
    assert len(phase.shards) > 2
    first, *_, last = phase.of(phase.shards[-1].task.harness)
    assert last.task.earlier[0] == first.corpus and list(first.corpus.iterdir())


@pytest.mark.parametrize("jobs", [1, 8])
def test_every_harness_has_begun_before_the_phase_is_over(tmp_path, jobs):
    """However short it is, and however slow its start: `late` needs a second to read its seeds."""
    phase = fuzz(tmp_path, ["good", "late", "parent"], 1, jobs=jobs)
    for name in ("good", "late", "parent"):
        assert any(shard.first_edges and shard.executions for shard in phase.of(name))
    assert not any(shard.ends for shard in phase.shards)


def test_a_harness_that_never_begins_does_not_hold_the_phase_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("ci.fuzzing.supervisor.BEGINS", 0.5)
    began = time.monotonic()
    (shard,) = fuzz(tmp_path, ["busy"], 1).shards
    assert time.monotonic() - began < 20
    assert shard.cpu > 0.4 and not shard.executions and not shard.first_edges


def test_what_a_process_leaves_where_it_stands_lies_in_its_shards_folder(tmp_path):
    here = set(Path.cwd().iterdir())
    (shard,) = fuzz(tmp_path, ["untidy"], 1).shards
    assert (shard.task.folder / "timeout-0123").exists()
    assert set(Path.cwd().iterdir()) == here


def test_a_shard_goes_on_after_a_crash(tmp_path):
    (shard,) = fuzz(tmp_path, ["crash"], 3).shards
    assert shard.starts > 2 and set(shard.ends) == {77} and not shard.gave_up
    assert shard.executions >= 3000 * (shard.starts - 1), "what earlier processes did counts"
    assert [file.name for file in shard.artifacts.iterdir()] == ["crash-0123"]


def test_a_shard_whose_processes_never_begin_is_given_up(tmp_path):
    began = time.monotonic()
    (shard,) = fuzz(tmp_path, ["broken"], 60).shards
    assert time.monotonic() - began < 20
    assert shard.gave_up and shard.starts == FRUITLESS and shard.executions == 0
    assert "ImportError" in shard.log.read_text()


def test_a_process_that_ignores_signals_is_killed_and_its_corpus_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("ci.fuzzing.shard.GRACE", 0.5)
    (shard,) = fuzz(tmp_path, ["deaf"], 2).shards
    assert shard.finished and list(shard.corpus.iterdir())


@pytest.mark.parametrize("when", [0.0, 0.3, 1.5])
def test_a_signal_at_any_moment_ends_every_process(tmp_path, when):
    stop = Stop()

    def report(phase, now):
        if now - phase.began >= when:
            stop.count = 1

    began = time.monotonic()
    phase = fuzz(tmp_path, ["parent", "good"], 60, report=report, stop=stop)
    assert time.monotonic() - began < when + 8
    assert all(shard.finished and shard.child is None for shard in phase.shards)
    log = (tmp_path / "parent-1" / "log").read_text()
    for line in log.splitlines():
        if line.startswith("child "):
            assert ends(int(line.split()[1]))


def ends(pid):
    """Whether a process that was killed is gone, which takes the kernel a moment."""
    until = time.monotonic() + 5
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def test_nothing_runs_after_the_loop_was_left_by_an_exception(tmp_path):
    shards = []

    def report(phase, now):
        shards.extend(phase.shards)
        raise RuntimeError("a bug of ours")

    with pytest.raises(RuntimeError):
        fuzz(tmp_path, ["deaf"], 60, report=report)
    assert shards and all(shard.child is None for shard in shards)
