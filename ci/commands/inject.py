"""`residue inject`: an exception at every place of every call of the engine, and what it leaves.

What is asked of each is `harnesses.injection`'s; here they are made in processes, in an order that
follows from a seed, so that a run that is cut short saw a part of everything. A finding is saved
the moment it is made, once a signature, as the harnesses' are, and triage sorts it in like them.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ci import arguments, output, wording
from ci.exits import Exit, UsageError
from ci.fuzzing import findings
from ci.fuzzing.findings import Finding
from ci.inputs import workers
from ci.inputs.workers import TooLong
from ci.process import Job, Stop, commit, run_all
from ci.progress import Progress, clock
from ci.report import hosted
from ci.results import Json
from ci.wording import many
from harnesses import injection
from harnesses.injector.places import KINDS
from harnesses.injector.scenarios import SCENARIOS
from harnesses.oracles import Broken
from harnesses.run import save
from mutants import plants
from mutants.plants import Plant

NAME = "injection"
INPUT_SECONDS = 10
CANARY_SECONDS = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue inject`."""
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help="a scenario, or a pattern such as 'feed-*' (default: all, and the planted faults)",
    )
    parser.add_argument("--list", action="store_true", help="list the scenarios, and do nothing")
    parser.add_argument(
        "--kind",
        action="append",
        choices=list(KINDS),
        metavar="KIND",
        help=f"which exception, and where: {', '.join(KINDS)} (may be given again; default: each)",
    )
    parser.add_argument(
        "--at",
        type=arguments.positive,
        metavar="N",
        help="one scenario and kind: the N-th place alone",
    )
    parser.add_argument(
        "--sample", type=arguments.positive, metavar="N", help="so many injections, spread over all"
    )
    arguments.seconds(parser, "no more once so many seconds have passed")
    arguments.seed(parser, "the same order and sample")
    arguments.jobs(parser)
    arguments.out(parser, "inject")
    arguments.json(parser, "the summary")
    arguments.quiet(parser)


@dataclass(frozen=True)
class Task:
    """Injections of one kind into one scenario: at one place, at a part of the way, or at each."""

    scenario: str
    kind: str
    folder: Path
    at: int | None = None
    part: float | None = None

    def places(self, count: int) -> range:
        """Which of so many places."""
        if self.at is not None:
            return range(self.at, self.at + 1)
        if self.part is None:
            return range(1, count + 1)
        one = 1 + int(self.part * count)
        return range(one, min(one, count) + 1)


@dataclass
class Tally:
    """What came of injections."""

    kinds: Counter[str] = field(default_factory=Counter)
    oracles: Counter[str] = field(default_factory=Counter)
    scenarios: set[str] = field(default_factory=set)
    broken: int = 0
    doubts: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.kinds += other.kinds
        self.oracles += other.oracles
        self.scenarios |= other.scenarios
        self.broken += other.broken
        self.doubts += other.doubts

    @property
    def injections(self) -> int:
        return sum(self.kinds.values())


def work(task: Task) -> Tally:
    """Make a task's injections; what goes wrong is saved at once."""
    scenario = SCENARIOS[task.scenario]
    tally = Tally()
    with workers.alarm(INPUT_SECONDS):
        signal.alarm(INPUT_SECONDS)
        try:
            injection.honest_run(scenario)
            count = injection.places(scenario, task.kind)
        except (Exception, TooLong) as error:
            tally.doubts.append(f"{scenario.name} breaks by itself: {error}"[:300])
            return tally
        for place in task.places(count):
            signal.alarm(INPUT_SECONDS)
            try:
                verdict = injection.inject(scenario, task.kind, place)
            except TooLong as error:
                verdict = injection.InjectionVerdict(
                    "?", (injection.Violation("escapes", str(error)),)
                )
            signal.alarm(0)
            if not verdict.where:
                # How deep a stack is needed is not known beforehand; all else is counted.
                if KINDS[task.kind].event != "stack":
                    tally.doubts.append(f"{scenario.name} {task.kind} {place} was not reached")
                continue
            tally.kinds[task.kind] += 1
            tally.scenarios.add(scenario.name)
            _keep(task, place, verdict, tally)
    return tally


def _keep(task: Task, place: int, verdict: injection.InjectionVerdict, tally: Tally) -> None:
    scenario = SCENARIOS[task.scenario]
    tally.broken += bool(verdict.violations)
    tally.oracles.update({one.oracle for one in verdict.violations})
    text = injection.text_of(scenario, task.kind, place, verdict.where)
    for violation in verdict.violations:
        if verdict.where == "?":
            found = Broken(*violation)
        else:
            found = injection.broken(scenario, task.kind, place, violation)
        save(task.folder, NAME, text, found)


@dataclass
class Run:
    """A run: the scenarios and kinds it was given, how far it came, and what it found."""

    names: list[str]
    kinds: list[str]
    seed: int
    jobs: int
    folder: Path
    at: int | None = None
    sample: int | None = None
    seconds: float | None = None
    tally: Tally = field(default_factory=Tally)
    done: int = 0
    took: float = 0.0
    died: str = ""
    whole: bool = False
    """Every task was done."""

    def tasks(self) -> list[Task]:
        """All of them, in the seed's order."""
        chance = random.Random(self.seed)
        if self.sample is None:
            every = [Task(n, k, self.folder, self.at) for n in self.names for k in self.kinds]
            chance.shuffle(every)
            return every
        names: list[str] = []
        while len(names) < self.sample:
            names += chance.sample(self.names, len(self.names))
        return [
            Task(name, chance.choice(self.kinds), self.folder, part=chance.random())
            for name in names[: self.sample]
        ]

    def go(self, stop: Stop, progress: Progress) -> None:
        tasks = self.tasks()
        began = shown = time.monotonic()
        for tally in self._each(self._in_time(tasks, stop)):
            self.done += 1
            self.tally.add(tally)
            self.took = time.monotonic() - began
            if time.monotonic() - shown >= progress.every:
                shown = time.monotonic()
                self._show(len(tasks), progress)
        self.took = time.monotonic() - began
        self.whole = self.done == len(tasks)

    def _in_time(self, tasks: list[Task], stop: Stop) -> Iterator[Task]:
        until = None if self.seconds is None else time.monotonic() + self.seconds
        for task in tasks:
            if stop or self.died or (until is not None and time.monotonic() >= until):
                return
            yield task

    def _each(self, tasks: Iterator[Task]) -> Iterator[Tally]:
        if self.jobs == 1:
            yield from map(work, tasks)
            return
        with workers.pool(self.jobs) as pool:
            running: dict[Future[Tally], Task] = {}
            for task in tasks:
                running[pool.submit(work, task)] = task
                if len(running) >= 2 * self.jobs:
                    yield from self._finished(running)
            while running:
                yield from self._finished(running)

    def _finished(self, running: dict[Future[Tally], Task]) -> Iterator[Tally]:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            try:
                yield future.result()
            except BrokenProcessPool:
                self.died = self.died or f"a process died in {task.scenario} {task.kind}"

    def _show(self, every: int, progress: Progress) -> None:
        count, rate = self.tally.injections, self.tally.injections / max(self.took, 0.001)
        left = self.took / self.done * (every - self.done)
        if self.seconds is not None:
            left = min(left, max(0.0, self.seconds - self.took))
        finds = len(list(self.folder.glob("*.json")))
        text = f"{left:4.0f} s left | {rate:,.0f}/s {many(count, 'injection')}"
        progress.show(f"{text}, {100 * self.done // every}% | {many(finds, 'find')}")


# -- planted faults -------------------------------------------------------------------------


@dataclass(frozen=True)
class Canary:
    """A planted fault that an injection must find."""

    plant: Plant
    scenario: str
    oracle: str

    def job(self, folder: Path) -> Job:
        """The process that looks for it, in a planted copy of the tree."""
        tree = plants.apply(self.plant, folder / self.plant.name)
        argv = [sys.executable, "-m", "harnesses.injection", self.scenario, self.oracle]
        log = folder / f"{self.plant.name}.log"
        return Job(argv, log, CANARY_SECONDS, {"PYTHONDONTWRITEBYTECODE": "1"}, tree)


def canaries() -> list[Canary]:
    """All that the catalogue has."""
    return [
        Canary(plant, scenario, oracle)
        for plant in plants.load_all()
        for scenario, oracle in plants.injection_witnesses(plant)
    ]


def run_canaries(canaries: list[Canary], folder: Path, jobs: int, stop: Stop) -> dict[str, bool]:
    """Which of the planted faults are found."""
    trials = {canary.plant.name: canary.job(folder) for canary in canaries}
    run_all(list(trials.values()), jobs, stop, 1)
    return {name: job.code == 0 for name, job in trials.items()}


# -- the command ----------------------------------------------------------------------------


def chosen(patterns: list[str]) -> list[str]:
    """The scenarios that the words name; UsageError for a word that names none."""
    names: list[str] = []
    for pattern in patterns:
        found = [name for name in SCENARIOS if fnmatchcase(name, pattern)]
        if not found:
            near = wording.meant(pattern, SCENARIOS) or "; residue inject --list lists them"
            raise UsageError(f"there is no scenario {pattern!r}{near}")
        names += found
    return list(dict.fromkeys(names)) or list(SCENARIOS)


def run(args: argparse.Namespace) -> int:
    """Run `residue inject`."""
    names = chosen(args.scenarios)
    kinds = args.kind or list(KINDS)
    if args.at is not None and not len(names) == len(kinds) == 1:
        raise UsageError("--at is for one scenario and one --kind")
    if args.list:
        print("\n".join(names))
        args.json.write(names)
        return Exit.CLEAN
    progress = Progress(quiet=args.quiet)
    with Stop() as stop:
        out = output.make(args.out, "inject")
        seed = secrets.randbelow(10**6) + 1 if args.seed is None else args.seed
        asked = Run(
            names,
            kinds,
            seed,
            args.jobs,
            out.findings(NAME),
            args.at,
            args.sample,
            args.seconds,
        )
        where = output.shown(out.root)
        progress.say(f"injection into {many(len(names), 'scenario')}, {where}, seed {seed}")
        found: dict[str, bool] | None = None
        if not args.scenarios:
            found = run_canaries(canaries(), out.scratch, args.jobs, stop)
            progress.say(f"planted faults found: {sum(found.values())} of {len(found)}")
        asked.go(stop, progress)
    return _sum_up(asked, found, out, bool(stop), args.json)


def _sum_up(
    asked: Run, found: dict[str, bool] | None, out: output.Output, stopped: bool, result: Json
) -> int:
    tally = asked.tally
    broken = findings.collect(asked.folder, NAME, [])
    why = untrusted(asked, found)
    verdict = Exit.UNTRUSTED if why else Exit.CLEAN
    verdict = Exit.INTERRUPTED if stopped else Exit.FOUND if broken else verdict
    data: dict[str, Any] = {
        "kind": "inject",
        "commit": commit(),
        "exit": int(verdict),
        "seed": asked.seed,
        "injections": tally.injections,
        "kinds": dict(tally.kinds.most_common()),
        "scenarios": len(tally.scenarios),
        "of_scenarios": len(asked.names),
        "whole": asked.whole and asked.sample is None,
        "broken": tally.broken,
        "oracles": dict(tally.oracles.most_common()),
        "planted": found or {},
        "seconds": round(asked.took, 1),
        "rate": round(tally.injections / asked.took, 1) if asked.took else 0.0,
        "jobs": asked.jobs,
        "untrusted": why,
        "interrupted": stopped,
        "findings": findings.as_data(broken),
    }
    (out.root / "summary.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    text = story(data, broken)
    (out.root / "summary.txt").write_text(text, encoding="utf-8")
    hosted.told("Injection", text)
    for scratch in (out.shards, out.scratch):
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"\n{text}\n{output.shown(out.root)}/summary.json")
    result.write(data)
    return int(verdict)


def untrusted(asked: Run, found: dict[str, bool] | None) -> list[str]:
    """Why the verdict would mean nothing. `found` is None where no planted fault was looked for."""
    missed = [name for name, seen in (found or {}).items() if not seen]
    why = [f"the planted fault {name!r} was not found" for name in missed]
    if found == {}:
        why.append("there is no planted fault to find")
    why += asked.tally.doubts[:20]
    if asked.died:
        why.append(asked.died)
    if not asked.tally.injections:
        why.append("nothing was injected")
    return why


def story(data: dict[str, Any], broken: list[Finding]) -> str:
    """The summary as a person reads it."""
    told = [
        f"{many(data['injections'], 'injection')} into {data['scenarios']} of "
        f"{many(data['of_scenarios'], 'scenario')} in {clock(data['seconds'])}, "
        f"{data['rate']:,.0f} a second, seed {data['seed']}"
        + ("" if data["whole"] else "; not all there are"),
        "  " + ", ".join(f"{kind} {count:,}" for kind, count in data["kinds"].items()),
    ]
    if data["planted"]:
        seen = sum(data["planted"].values())
        told.append(f"planted faults found: {seen} of {len(data['planted'])}")
    if data["broken"]:
        counts = ", ".join(f"{oracle} {count:,}" for oracle, count in data["oracles"].items())
        told.append(f"{data['broken']:,} broke something: {counts}")
    told.append("")
    if data["interrupted"]:
        told.append("interrupted; what was found until then is kept")
    told += [f"not to be trusted: {why}" for why in data["untrusted"]]
    told += [line(one) for one in broken]
    if not broken:
        told.append("nothing found")
    return "\n".join(told) + "\n"


def line(found: Finding) -> str:
    """One finding: where an exception broke what, and how to break it again."""
    text = Path(found.input).read_text(encoding="utf-8")
    scenario, kind, place = text.split()[:3]
    where = text.partition("#")[2].strip()
    again = f"residue inject {scenario} --kind {kind} --at {place}"
    return f"finding: {scenario}: {kind} at {where}: {found.detail.split(' ', 1)[-1]} | {again}"
