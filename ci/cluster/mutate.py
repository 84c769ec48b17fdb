"""Mutants judged on a cluster: each file's in parts, as `residue mutate --shard K/N` would.

The parts are many enough that every thread has some and few enough that the clean run of the
tests, which each of them begins with, is a small part of it.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from ci.cluster import archive, worker
from ci.cluster.client import Answer, Cluster, Lost, Sent
from ci.cluster.shard_process import RESULTS
from ci.cluster.versions import MUTATION
from ci.exits import Untrusted
from ci.mutation.evaluation import Judged
from ci.process import ROOT, TICK, Stop
from ci.wording import many
from mutants import verdicts
from mutants.verdicts import Mutant, Report, Result, Unmutable, Verdict

# A part begins with some seconds of clean runs, and a mutant is a tenth of one.
LEAST = 60
# Parts a thread, so that the slowest part is not all that is waited for.
PARTS = 3
# A part that takes longer hangs: a mutant's own limits are seconds.
SECONDS = 3600.0
SECONDS_TO_COME_HOME = 30.0
AT_ONCE = 2

Show = Callable[[str, int, int, int], None]


@dataclass
class File:
    """One file, its mutants as they are made here, and the answers of its parts."""

    name: str
    mutants: tuple[Mutant, ...]
    unmutable: Unmutable
    parts: int = 1
    answers: list[tuple[Report, Answer]] = field(default_factory=list)

    @property
    def due(self) -> int:
        """How many mutants there are."""
        return len(self.mutants)


@dataclass(frozen=True)
class Part:
    """The K-th of N parts of a file's mutants."""

    file: File
    number: int

    @property
    def name(self) -> str:
        """What it is called on its way."""
        return f"{self.file.name.replace('/', '-')}-{self.number}-of-{self.file.parts}"


def evaluate(
    address: str,
    files: Sequence[str],
    only: frozenset[str] | None,
    corpus: tuple[str, ...] | None,
    folder: Path,
    stop: Stop,
    show: Show,
) -> list[Judged]:
    """Judge the mutants of the files on the cluster; as many answers as files.

    Untrusted when the cluster cannot be used, when a check failed that comes first, and when a
    part did not come back. After a signal, what did not come back was not run.
    """
    # Here and not above: mutmut is an extra, and the rest of `residue` does without it.
    from mutants import survey

    with Cluster(address, MUTATION) as cluster:
        asked = []
        for name in files:
            source = (ROOT / name).read_text(encoding="utf-8")
            _, made = survey.mutate(name, source, only)
            asked.append(File(name, tuple(made), survey.unmutable(source)))
        each = max(LEAST, ceil(sum(file.due for file in asked) / (PARTS * len(cluster.lanes))))
        for file in asked:
            file.parts = max(1, round(file.due / each))
        code = cluster.archive(archive.pack(archive.code((*archive.CODE, *archive.TESTED))))
        waiting = [Part(file, k) for file in asked for k in range(1, file.parts + 1) if file.due]
        _loop(cluster, _Work(code, only, corpus, folder), waiting, asked, stop, show)
        return [_joined(file) for file in asked]


@dataclass(frozen=True)
class _Work:
    code: str
    only: frozenset[str] | None
    corpus: tuple[str, ...] | None
    folder: Path

    def of(self, part: Part) -> dict[str, object]:
        return {
            "kind": "mutate",
            "file": part.file.name,
            "only": sorted(self.only) if self.only is not None else None,
            "shard": [part.number, part.file.parts],
            "corpus": list(self.corpus) if self.corpus is not None else None,
        }


def _loop(
    cluster: Cluster,
    work: _Work,
    waiting: list[Part],
    files: list[File],
    stop: Stop,
    show: Show,
) -> None:
    free = list(cluster.lanes)
    out: dict[Sent, Part] = {}
    due = sum(file.due for file in files)
    asked: float | None = None
    while (waiting and not stop) or out:
        if stop and asked is None:
            asked = time.monotonic()
            cluster.stop()
        while waiting and free and not stop:
            part, wanted = waiting.pop(0), free.pop(0)
            home = cluster.home(wanted, [sent.home for sent in out])
            given = archive.pack([])
            sent = cluster.send(part.name, work.of(part), [work.code], given, SECONDS, home)
            out[sent] = part
        for sent in list(out):
            try:
                answer = cluster.take(sent)
            except Lost as error:
                raise Untrusted(str(error)) from None
            if answer is not None:
                part = out.pop(sent)
                free.append(sent.home)
                _keep(part, answer, work.folder)
        if stop.count >= AT_ONCE or (
            asked is not None and time.monotonic() > asked + SECONDS_TO_COME_HOME
        ):
            return
        if cluster.deserted:
            raise Untrusted(f"the scheduler at {cluster.address} has no worker any more")
        show(many(len(files), "file"), *_so_far(cluster, files, out, due))
        time.sleep(TICK)


def _keep(part: Part, answer: Answer, folder: Path) -> None:
    if "untrusted" in answer.state:
        raise Untrusted(answer.state["untrusted"])
    arrived = folder / part.name
    worker.unpack(answer.files, arrived)
    part.file.answers.append((verdicts.read(arrived / RESULTS), answer))
    shutil.rmtree(arrived)


def _so_far(
    cluster: Cluster, files: list[File], out: dict[Sent, Part], due: int
) -> tuple[int, int, int]:
    """Judged, due, and survived, of what has come back and of what was told."""
    reports = [report for file in files for report, _ in file.answers]
    told = [cluster.told.get(sent.name, {}) for sent in out]
    judged = sum(len(report.results) for report in reports)
    judged += sum(state.get("judged", 0) for state in told)
    left = sum(report.counts()[Verdict.SURVIVED] for report in reports)
    left += sum(state.get("left", 0) for state in told)
    return judged, due, left


def _joined(file: File) -> Judged:
    """The parts of a file as one; what did not come back was not run."""
    try:
        report = verdicts.merge([report for report, _ in file.answers])
    except verdicts.MergeError as error:
        raise Untrusted(f"the workers do not agree: {error}") from None
    if report.made.setdefault(file.name, file.due) != file.due:
        made = report.made[file.name]
        raise Untrusted(f"{file.name} has {file.due} mutants here and {made} there")
    have = {result.mutant.name for result in report.results}
    report.due = file.due
    report.unmutable.setdefault(file.name, file.unmutable)
    report.results += [
        Result(mutant, Verdict.NOT_RUN) for mutant in file.mutants if mutant.name not in have
    ]
    judged = Judged(report, file.mutants)
    for _, answer in file.answers:
        judged.killers.update(answer.state["killers"])
    idle = [set(answer.state["idle"]) for _, answer in file.answers]
    judged.idle = sorted(set.intersection(*idle)) if idle else []
    return judged
