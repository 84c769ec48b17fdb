"""A shard's process on a worker: `python -m ci.cluster.shard_process FOLDER` in the unpacked tree.

FOLDER/job.json says what to do and FOLDER/given/ has the files that came with it. What comes of it
is FOLDER/state.json and the archive FOLDER/result; FOLDER/progress.json tells how far it is. The
worker holds the other end of standard input: a line there asks to end early with what there is,
and its end means that the worker is gone or wants nothing any more.
"""

import json
import os
import select
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ci.cluster import archive
from ci.exits import Untrusted
from ci.fuzzing import libfuzzer, supervisor
from ci.fuzzing.allocation import Share
from ci.fuzzing.shard import Shard, Task
from ci.fuzzing.supervisor import Phase
from ci.process import ROOT, Stop

# What a log may weigh on its way home: its end, where a crash tells its story.
LOG_BYTES = 256 * 1024
PROGRESS_EVERY = 0.5
# A fuzzer that nobody has ended ends so many seconds after its time.
BACKSTOP = 600.0
RESULTS = "results.json"


class Leash:
    """What the worker says, turned into signals that a supervisor knows; and what it is told."""

    def __init__(self, folder: Path, stop: Stop) -> None:
        self.folder = folder
        self.stop = stop
        self.gone = False
        self.next = 0.0

    def look(self) -> None:
        """Take in what the worker has said since the last time."""
        while not self.gone and select.select([0], [], [], 0)[0]:
            said = os.read(0, 4096)
            self.gone = not said
            self.stop.count += 1

    def tell(self, **state: int) -> None:
        """Leave word of how far it is, now and then."""
        now = time.monotonic()
        if now >= self.next:
            self.next = now + PROGRESS_EVERY
            _write(self.folder / "progress.json", json.dumps(state))


def fuzz(
    job: dict[str, Any], folder: Path, leash: Leash
) -> tuple[dict[str, Any], list[archive.Entry]]:
    """Fuzz one harness for a while, as the local supervisor does with a lane of one slice."""
    harness, given, out = job["harness"], folder / "given", folder / "out"
    findings = folder / "findings"
    seeds = [
        *(Path(folder) / "seeds" for folder in job["trees"][1:]),
        *([given / "seeds"] if job["seeds"] else []),
    ]
    dictionary = given / "dictionary"
    task = Task(
        harness=harness,
        name=job["name"],
        folder=out,
        seeds=seeds,
        findings=findings,
        dictionary=dictionary if dictionary.is_file() else None,
        seed=job["seed"],
        limit=job["seconds"] + BACKSTOP,
        value_profile=job["value_profile"],
        command=[sys.executable, *job["command"]] if job["command"] else libfuzzer.runner(harness),
    )
    phase = Phase(job["seconds"], 1, [Share(harness)])

    def report(phase: Phase, now: float) -> None:
        leash.look()
        for shard in phase.shards:
            leash.tell(
                executions=shard.executions, edges=shard.edges, seeds_edges=shard.first_edges
            )

    supervisor.run(phase, lambda share, seconds, _: Shard(task, seconds), leash.stop, report)
    (shard,) = phase.shards
    log = out / "log"
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.write_bytes(log.read_bytes()[-LOG_BYTES:])
    state = {
        "executions": shard.executions,
        "edges": shard.edges,
        "seeds_edges": shard.first_edges,
        "cpu": shard.cpu,
        "starts": shard.starts,
        "ends": shard.ends,
        "gave_up": shard.gave_up,
        "seconds": shard.elapsed(time.monotonic()),
    }
    files = [*archive.entries(out, "out"), *archive.entries(findings, "findings")]
    return state, files


def mutate(
    job: dict[str, Any], folder: Path, leash: Leash
) -> tuple[dict[str, Any], list[archive.Entry]]:
    """Judge one part of a file's mutants."""
    # Here and not above: a worker that only fuzzes needs nothing of it.
    from ci.mutation import evaluation

    def show(file: str, judged: int, due: int, left: int) -> None:
        leash.look()
        leash.tell(judged=judged, left=left)

    asked = evaluation.Asked(
        job["file"],
        folder / "mutants",
        1,
        only=frozenset(job["only"]) if job["only"] is not None else None,
        shard=(job["shard"][0], job["shard"][1]),
        corpus=tuple(job["corpus"]) if job["corpus"] is not None else None,
    )
    try:
        judged = evaluation.evaluate(asked, evaluation.read_settings(), leash.stop, show)
    except Untrusted as error:
        return {"untrusted": str(error)}, []
    judged.report.write(folder / RESULTS)
    state = {"killers": judged.killers, "idle": judged.idle}
    return state, [(RESULTS, folder / RESULTS)]


Kind = Callable[[dict[str, Any], Path, Leash], tuple[dict[str, Any], list[archive.Entry]]]
KINDS: dict[str, Kind] = {"fuzz": fuzz, "mutate": mutate}


def _write(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def main(argv: list[str]) -> None:
    """Do one job; without a worker at the other end, clear up and say nothing."""
    folder = Path(argv[0])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    assert Path(job["trees"][0]).samefile(ROOT), "another checkout was imported"
    with Stop() as stop:
        leash = Leash(folder, stop)
        state, files = KINDS[job["kind"]](job, folder, leash)
        leash.look()
    if leash.gone:
        shutil.rmtree(folder, ignore_errors=True)
        return
    _write(folder / "state.json", json.dumps(state))
    aside = folder / ".result"
    aside.write_bytes(archive.pack(files))
    aside.replace(folder / "result")


if __name__ == "__main__":
    main(sys.argv[1:])
