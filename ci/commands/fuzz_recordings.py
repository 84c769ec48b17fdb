"""`residue fuzz recordings`: lines of honest recorded connections, mutated and replayed.

It is repeatable: what input number N of a seed is follows from the two alone, whatever the number
of processes. A finding is saved the moment it is made, once a signature, as the harnesses' are;
a signal ends the run after the inputs at hand and keeps all of it.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ci import output
from ci.exits import Exit, Untrusted
from ci.fuzzing import findings
from ci.inputs import workers
from ci.inputs.workers import TooLong
from ci.process import Stop, commit
from ci.progress import Progress, clock
from ci.report import hosted
from ci.wording import many
from harnesses import recordings as recorded
from harnesses.run import save
from peers.recorder import program
from peers.recorder.format import Recording, all_names, load

NAME = "recordings"
CAMPAIGN = 20_000
BATCH = 25
INPUT_SECONDS = 10
#: An honest recording in so many is replayed first: if it differs, no finding would mean much.
CHECKED = 16
#: A run of so many inputs that end in fewer ways than this went nowhere.
ENOUGH, WAYS = 1_000, 6


@dataclass(frozen=True)
class Batch:
    """Inputs ``first`` to ``last`` of a seed, the last one left out."""

    seed: int
    first: int
    last: int
    folder: Path


@dataclass
class Tally:
    """How many inputs ended how, and how many of them an oracle spoke against."""

    ends: Counter[str] = field(default_factory=Counter)
    broken: int = 0

    def add(self, other: Tally) -> None:
        self.ends += other.ends
        self.broken += other.broken

    @property
    def runs(self) -> int:
        return sum(self.ends.values()) + self.broken


@cache
def lines() -> tuple[recorded.RecordedLine, ...]:
    """Every line of every honest recording, in a fixed order."""
    names = all_names()
    return tuple(recorded.lines_of(load(name) for name in names))


def make(seed: int, number: int) -> tuple[bytes, Recording]:
    """One input: the mutated line, and the recording that holds it."""
    chance = random.Random(f"{seed}-{number}")
    line = chance.choice(lines())
    data = recorded.mutate(chance, line.data)
    return data, line.saying(data)


def work(batch: Batch) -> Tally:
    """Run a batch; what goes wrong is saved at once."""
    tally = Tally()
    with workers.alarm(INPUT_SECONDS):
        for number in range(batch.first, batch.last):
            data, recording = make(batch.seed, number)
            signal.alarm(INPUT_SECONDS)
            try:
                tally.ends[recorded.play(recording, data).split(" ", 1)[0]] += 1
            except (Exception, TooLong) as error:
                signal.alarm(0)
                tally.broken += 1
                save(batch.folder, NAME, recorded.text_of(recording), error)
            signal.alarm(0)
    return tally


def check() -> None:
    """The recordings must be the engine's own words before a line of theirs is changed."""
    names = all_names()[::CHECKED]
    if not names:
        raise Untrusted("there are no recordings: python -m peers.recorder.record --update")
    for name in names:
        if program.replay(load(name)):
            raise Untrusted(f"{name} is not as recorded: python -m peers.recorder.record")


@dataclass
class Run:
    """A run: the seed and the numbers it was given, how far it came, and what it found."""

    seed: int
    count: int
    seconds: float | None
    jobs: int
    folder: Path
    tally: Tally = field(default_factory=Tally)
    took: float = 0.0
    died: str = ""

    def batches(self, stop: Stop) -> Iterator[Batch]:
        until = None if self.seconds is None else time.monotonic() + self.seconds
        for first in range(0, self.count, BATCH):
            if stop or self.died or (until is not None and time.monotonic() >= until):
                return
            yield Batch(self.seed, first, min(first + BATCH, self.count), self.folder)

    def go(self, stop: Stop, progress: Progress) -> None:
        began = shown = time.monotonic()
        for tally in self._each(stop):
            self.tally.add(tally)
            self.took = time.monotonic() - began
            if time.monotonic() - shown >= progress.every:
                shown = time.monotonic()
                self._show(progress)
        self.took = time.monotonic() - began

    def _each(self, stop: Stop) -> Iterator[Tally]:
        batches = self.batches(stop)
        if self.jobs == 1:
            yield from map(work, batches)
            return
        lines()  # read once, before the fork
        with workers.pool(self.jobs) as pool:
            running: dict[Future[Tally], Batch] = {}
            for batch in batches:
                running[pool.submit(work, batch)] = batch
                if len(running) >= 2 * self.jobs:
                    yield from self._done(running)
            while running:
                yield from self._done(running)

    def _done(self, running: dict[Future[Tally], Batch]) -> Iterator[Tally]:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            batch = running.pop(future)
            try:
                yield future.result()
            except BrokenProcessPool:
                self.died = self.died or f"a process died in inputs {batch.first} to {batch.last}"

    def _show(self, progress: Progress) -> None:
        done, rate = self.tally.runs, self.tally.runs / max(self.took, 0.001)
        left = (self.count - done) / rate if rate else 0.0
        if self.seconds is not None:
            left = min(left, max(0.0, self.seconds - self.took))
        finds = len(list(self.folder.glob("*.json")))
        text = f"{left:4.0f} s left, {many(done, 'run')}, {many(finds, 'find')}"
        progress.show(f"{text} | recordings {rate:,.0f}/s")

    def untrusted(self) -> str:
        """Why its verdict would mean nothing; an empty word when it means something."""
        if self.died:
            return f"{self.died} of seed {self.seed}"
        if not self.tally.runs:
            return "nothing was executed"
        if self.tally.runs >= ENOUGH and len(self.tally.ends) < WAYS:
            ways = many(len(self.tally.ends), "way")
            return f"{many(self.tally.runs, 'input')} ended in {ways} only"
        return ""


def execute(args: argparse.Namespace) -> int:
    """Run it and sum up; the exit code is the verdict."""
    progress = Progress(quiet=args.quiet)
    with Stop() as stop:
        out = output.make(args.out, "fuzz")
        seed = secrets.randbelow(10**6) + 1 if args.seed is None else args.seed
        # Seconds alone ask for as many as they hold.
        count = args.count or (CAMPAIGN if args.seconds is None else 10**9)
        run = Run(seed, count, args.seconds, args.jobs, out.findings(NAME))
        progress.say(f"fuzz of recordings into {output.shown(out.root)}, seed {seed}")
        check()
        run.go(stop, progress)
        progress.say(f"{many(run.tally.runs, 'run')} in {clock(run.took)}")
    found = findings.collect(run.folder, NAME, [])
    why = run.untrusted()
    verdict = Exit.UNTRUSTED if why else Exit.CLEAN
    verdict = Exit.INTERRUPTED if stop else Exit.FOUND if found else verdict
    data: dict[str, Any] = {
        "kind": "fuzz recordings",
        "commit": commit(),
        "exit": int(verdict),
        "seed": seed,
        "executions": run.tally.runs,
        "broken": run.tally.broken,
        "seconds": round(run.took, 1),
        "rate": round(run.tally.runs / run.took, 1) if run.took else 0.0,
        "jobs": run.jobs,
        "lines": len(lines()),
        "ends": dict(run.tally.ends.most_common()),
        "untrusted": [why] if why else [],
        "interrupted": bool(stop),
        "findings": findings.as_data(found),
    }
    (out.root / "summary.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    text = story(data)
    (out.root / "summary.txt").write_text(text, encoding="utf-8")
    hosted.told("Recordings", text)
    for scratch in (out.shards, out.scratch):
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"\n{text}\n{output.shown(out.root)}/summary.json")
    args.json.write(data)
    return int(verdict)


def story(data: dict[str, Any]) -> str:
    """The summary as a person reads it."""
    told = [
        f"{many(data['executions'], 'mutated line')} of {data['lines']:,} honest ones, "
        f"{data['rate']:,.0f} a second, seed {data['seed']}",
        "",
        *(f"  {count:7,}  {end}" for end, count in data["ends"].items()),
        "",
    ]
    if data["interrupted"]:
        told.append("interrupted; what was found until then is kept")
    told += [f"not to be trusted: {why}" for why in data["untrusted"]]
    for one in data["findings"]:
        told += [f"finding: {one['detail']}", f"  {one['replay']}"]
    if not data["findings"]:
        told.append("nothing found")
    return "\n".join(told) + "\n"
