"""A scheduler and two workers, as processes on this machine; one of them is killed half way."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ci import output
from ci.cluster import client, fuzz, mutate, worker
from ci.exits import Untrusted, UsageError
from ci.fuzzing import campaign
from ci.fuzzing.campaign import Options
from ci.fuzzing.progress import FuzzingProgress
from ci.process import ROOT, Stop
from mutants.verdicts import Verdict
from tests.tools import wait_until

pytest.importorskip("distributed")

FAKE = ROOT / "tests" / "ci" / "fake_runner.py"
LOCAL = ("--host", "127.0.0.1", "--no-dashboard")
MARK = "RESIDUE_TEST_CLUSTER"


class Machines:
    """A scheduler and workers, whose descendants are known by a mark in their environment."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.children = []
        self.log = folder / "scheduler.log"
        self.start("scheduler", self.log, "--port", "0")
        wait_until(lambda: self._said())
        self.address = self._said()[0]
        self.workers = []
        self.join()
        self.join()

    def _said(self):
        text = self.log.read_text() if self.log.exists() else ""
        return re.findall(r"Scheduler at: +(tcp://\S+)", text)

    def start(self, command, log, *arguments):
        with log.open("wb") as out:
            child = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{command}", *LOCAL, *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, MARK: self.mark},
                start_new_session=True,
            )
        self.children.append(child)
        return child

    def join(self):
        """One more worker, of one thread."""
        name = f"w{len(self.workers)}"
        arguments = ["--no-nanny", "--nthreads", "1", "--name", name, "--local-directory", name]
        log = self.folder / f"{name}.log"
        self.workers.append(self.start("worker", log, self.address, *arguments))
        wait_until(lambda: "Registered to" in log.read_text())

    def marked(self):
        """The processes that came of this cluster and are no part of it."""
        ours = {child.pid for child in self.children}
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) not in ours:
                try:
                    text = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if f"{MARK}={self.mark}".encode() in text.split(b"\0"):
                    found.add(int(entry.name))
        return found

    def close(self):
        for child in self.children:
            child.kill()
            child.wait()


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    with ExitStack() as cleanup:
        machines = Machines(tmp_path_factory.mktemp("machines"))
        cleanup.callback(machines.close)
        yield machines


def go(machines, folder, behaviours, seconds, during, stop):
    """Conduct a campaign of fake harnesses on the cluster; `during` is called all the while."""

    def supervise(phase, make, stop, report):
        def both(phase, now):
            during(phase, now)
            report(phase, now)

        fuzz.supervise(machines.address, phase, make, stop, both)

    options = Options(
        "campaign",
        behaviours,
        seconds,
        jobs=2,
        lanes=fuzz.lanes(machines.address),
        corpus=folder / "corpus",
        command=lambda name: [sys.executable, str(FAKE), name],
        supervise=supervise,
        canaries=False,
        measures=False,
    )
    out = output.make(str(folder / "out"), "campaign")
    run = campaign.run_campaign(options, out, FuzzingProgress(), stop)
    return run, campaign.as_data(run), out


def test_an_interrupted_phase_brings_home_what_the_workers_have(machines, tmp_path):
    stop = Stop()

    def during(phase, now):
        if all(shard.executions for shard in phase.shards):
            stop.count = 1

    begun = time.monotonic()
    run, data, out = go(machines, tmp_path, ["good", "parent"], 60.0, during, stop)
    assert time.monotonic() - begun < 40 and data["exit"] == 130
    for name in ("good", "parent"):
        assert data["harnesses"][name]["new"] == len(list(out.new(name).iterdir())) > 0
    assert not run.phase.troubles
    wait_until(lambda: not machines.marked())


def test_a_machine_that_is_not_like_this_one_is_refused(machines, monkeypatch):
    about = worker.about
    monkeypatch.setattr(worker, "about", lambda names: {**about(names), "atheris": "0.1"})
    with pytest.raises(Untrusted, match=r"tcp://127.*atheris \S+ and not 0\.1"):
        fuzz.lanes(machines.address)


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr(client, "SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(Untrusted, match="no scheduler was reached at tcp://127"):
        fuzz.lanes("tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="--scheduler what"):
        fuzz.lanes("what://127.0.0.1:1")


def test_mutants_are_judged_in_parts_and_joined(machines, tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "LEAST", 12)
    shown = []
    (judged,) = mutate.evaluate(
        machines.address,
        ["engine/hardware.py"],
        frozenset({"names_aes"}),
        None,
        tmp_path,
        Stop(),
        lambda *what: shown.append(what),
    )
    report = judged.report
    assert report.adds_up() and report.due == len(judged.mutants) == 23
    assert report.counts()[Verdict.KILLED] == 23
    assert set(judged.killers) == {mutant.name for mutant in judged.mutants}
    assert all(name.startswith("tests/engine/test_hardware.py::") for name in judged.idle)
    assert shown[-1][0] == "1 file" and shown[-1][2] == 23
    assert not list(tmp_path.iterdir())
    wait_until(lambda: not machines.marked())


def test_the_shard_of_a_killed_worker_is_run_again_and_nothing_of_it_goes_on(machines, tmp_path):
    """This one is the last: a worker less is there after it."""
    lost = machines.workers[0]
    before = set()

    def during(phase, now):
        if lost.poll() is None and all(shard.executions > 3000 for shard in phase.shards):
            before.update(machines.marked())
            lost.send_signal(signal.SIGKILL)
            lost.wait()

    run, data, out = go(machines, tmp_path, ["good", "parent"], 3.0, during, Stop())
    assert lost.returncode == -signal.SIGKILL and len(before) >= 5
    assert data["exit"] == 0 and not run.phase.troubles
    (note,) = [note for note in data["notes"] if "was lost; run again by" in note]
    for shard in run.phase.shards:
        assert shard.finished and shard.starts == 1 and shard.executions > 10000
        assert len(list(shard.corpus.iterdir())) * 1000 == shard.executions
    assert re.split(r"[.:]", note)[0] in [shard.task.name for shard in run.phase.shards]
    wait_until(lambda: not machines.marked())
    assert len(list(out.new("good").iterdir())) > 10
