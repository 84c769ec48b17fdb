"""The catalogue's decision mutants, each in a planted copy of its own, before its own witnesses.

The verdicts are those of every mutant (mutants/verdicts.py). `killed` takes every witness that the
entry names; one that passes makes it `survived`, one that is not there any more `not run`.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.process import ROOT, Job, Stop, run_all
from mutants import plants
from mutants.plants import Plant, PlantError
from mutants.verdicts import Verdict

# A witness takes a second; so much is for one that a fault keeps from ever ending.
LIMIT = 60.0
LIMIT_ALONE = 180.0
# The run with no fault asks every witness, which may be a thousand.
LIMIT_A_LINE = 2.0
# For each process so many trees are planted at a time: all of the catalogue's would be two million
# links.
BATCH = 12


@dataclass(frozen=True)
class Decided:
    """What became of one catalogue entry; `why` says it in words where it is no kill."""

    plant: Plant
    verdict: Verdict
    why: str = ""


Show = Callable[[int, int], None]


def evaluate(
    entries: Sequence[Plant],
    folder: Path,
    jobs: int,
    stop: Stop,
    root: Path = ROOT,
    show: Show | None = None,
) -> list[Decided]:
    """Every entry's verdict. The witnesses run once with no fault first: one that fails then can
    tell nothing, and its entries were not run. `show` is told how many of how many are done."""
    from mutants import stage

    if not entries:
        return []
    base = stage.copy(folder / "base", root)
    lines = sorted({line for plant in entries for line in plant.detected_by})
    clean = _Trial(base, folder / "clean.json", lines)
    run_all([clean.job(LIMIT_ALONE * 2 + LIMIT_A_LINE * len(lines))], 1, stop, 1)
    answers = clean.answers()
    if answers is None and not stop:
        why = f"the witnesses cannot be run with no fault: {clean.said()}"
        return [Decided(plant, Verdict.CRASHED, why) for plant in entries]
    decided: list[Decided] = []
    for at in range(0, len(entries), BATCH * jobs):
        batch = entries[at : at + BATCH * jobs]
        if stop:
            decided += [Decided(plant, Verdict.NOT_RUN, "interrupted") for plant in batch]
        else:
            decided += _judge_batch(batch, base, answers or {}, jobs, stop)
        if show is not None:
            show(len(decided), len(entries))
    shutil.rmtree(base, ignore_errors=True)
    return decided


def _judge_batch(
    entries: Sequence[Plant], base: Path, clean: dict[str, str], jobs: int, stop: Stop
) -> list[Decided]:
    """So many at once as have a tree at once."""
    decided: list[Decided] = []
    trials: list[tuple[Plant, _Trial]] = []
    for at, plant in enumerate(entries):
        try:
            plants.planted(plant, base)
        except PlantError as error:
            decided.append(Decided(plant, Verdict.NOT_RUN, f"stale: {error}"))
            continue
        early = _early({line: answer for line in plant.detected_by if (answer := clean.get(line))})
        if early:
            decided.append(Decided(plant, Verdict.NOT_RUN, early))
            continue
        place = base.with_name(f"plant-{at}")
        tree = _plant(plant, base, place)
        trials.append((plant, _Trial(tree, place.with_suffix(".json"), list(plant.detected_by))))
    run_all([trial.job(LIMIT) for _, trial in trials], jobs, stop, 1)
    for plant, trial in trials:
        if trial.late and not stop:
            run_all([trial.job(LIMIT_ALONE)], 1, stop, 1)
        decided.append(_verdict(plant, trial, bool(stop)))
        shutil.rmtree(trial.tree, ignore_errors=True)
        trial.out.unlink(missing_ok=True)
    return decided


class _Trial:
    """One tree and the witnesses asked in it."""

    def __init__(self, tree: Path, out: Path, lines: list[str]) -> None:
        self.tree = tree
        self.out = out
        self.lines = lines
        self.last: Job | None = None

    def job(self, limit: float) -> Job:
        """The process that asks them."""
        from mutants import stage

        asked = self.out.with_suffix(".job")
        asked.write_text(json.dumps({"detected_by": self.lines, "out": str(self.out)}))
        argv = [sys.executable, "-m", "mutants.witness", str(asked)]
        log = self.out.with_suffix(".log")
        self.last = Job(argv, log, limit, dict(stage.ENVIRONMENT), self.tree)
        return self.last

    @property
    def late(self) -> bool:
        """Whether it was still running at the end of its time."""
        return self.last is not None and self.last.timed_out

    def answers(self) -> dict[str, str] | None:
        """What each witness did; None when the process did not get that far."""
        try:
            answers: dict[str, str] = json.loads(self.out.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return answers

    def said(self) -> str:
        """The last line of its output."""
        log = self.out.with_suffix(".log")
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        return (text.strip().splitlines() or ["nothing"])[-1]


def _early(answers: dict[str, str]) -> str:
    gone = [line for line, answer in answers.items() if answer == "absent"]
    if gone:
        return "its witness is gone: " + ", ".join(gone)
    failing = [line for line, answer in answers.items() if answer == "saw"]
    return "its witness fails with no fault: " + ", ".join(failing) if failing else ""


def _verdict(plant: Plant, trial: _Trial, stopped: bool) -> Decided:
    answers = trial.answers()
    if answers is None:
        if stopped:
            return Decided(plant, Verdict.NOT_RUN, "interrupted")
        if trial.late:
            return Decided(plant, Verdict.TIMED_OUT, "twice, the second time alone")
        return Decided(plant, Verdict.CRASHED, trial.said())
    unseen = [line for line in plant.detected_by if answers[line] != "saw"]
    if unseen:
        return Decided(plant, Verdict.SURVIVED, "not seen by " + ", ".join(unseen))
    return Decided(plant, Verdict.KILLED)


def _plant(plant: Plant, base: Path, tree: Path) -> Path:
    """A copy of the base with the fault in it: links, but for the one file that differs."""
    edited = plants.planted(plant, base)
    shutil.copytree(base, tree, copy_function=_link)
    target = tree / plant.file
    target.unlink()
    target.write_text(edited, encoding="utf-8")
    return tree


def _link(source: str, target: str) -> None:
    os.link(source, target)
