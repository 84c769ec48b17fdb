"""The fuzzing phase, with a fuzzer that is none."""

import sys
import time
from pathlib import Path

import pytest

from ci.process import Stop
from ci.schedule import lanes
from ci.shard import FRUITLESS, Shard, Task
from ci.supervisor import Phase, run
from tests.ci.test_process import alive

FAKE = Path(__file__).with_name("fake_runner.py")


def fuzz(tmp_path, behaviours, seconds, jobs=None, report=lambda phase, now: None, stop=None):
    """Run a phase over harnesses that are called as they behave."""

    def make(turn, number):
        task = Task(
            harness=turn.harness,
            name=f"{turn.harness}-{number}",
            folder=tmp_path / f"{turn.harness}-{number}",
            seeds=[],
            findings=tmp_path / "findings",
            dictionary=None,
            seed=1,
            command=[sys.executable, str(FAKE), turn.harness],
        )
        return Shard(task, turn.seconds)

    phase = Phase(seconds, lanes(behaviours, seconds, jobs or len(behaviours)))
    run(phase, make, Stop() if stop is None else stop, report)
    return phase


def test_the_phase_takes_its_time_and_counts_what_was_executed(tmp_path):
    phase = fuzz(tmp_path, ["good", "good"], 3)
    assert 2.9 < phase.took < 5
    for shard in phase.shards:
        assert shard.executions >= 5000 and shard.edges >= 205
        assert shard.gained >= 5, "the seeds reach 200"
        assert shard.starts == 1 and shard.ends == [] and not shard.gave_up
        assert len(list(shard.corpus.iterdir())) * 1000 == shard.executions


def test_harnesses_share_the_time_of_one_process(tmp_path):
    phase = fuzz(tmp_path, ["good", "parent"], 5, jobs=1)
    assert 4.9 < phase.took < 7
    assert [shard.task.harness for shard in phase.shards] == ["good", "parent"]
    assert all(shard.executions > 3000 for shard in phase.shards)


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
    monkeypatch.setattr("ci.shard.GRACE", 0.5)
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
