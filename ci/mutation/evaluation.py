"""Mutants of some files, judged: staged, run in a child, and read back (`residue mutate`, `gate`).

Which tests may kill the mutants of a file is a table in setup.cfg, because the tests must be
quick: a mutant that nothing kills costs all of them.
"""

import ast
import configparser
import functools
import json
import math
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci import extras
from ci.exits import Untrusted, UsageError
from ci.fuzzing.libfuzzer import Tail
from ci.process import ROOT, Stop, reap, signal_group, spawn
from mutants import orphans
from mutants.settings import SUITE
from mutants.verdicts import Mutant, Report, Result, Verdict

TICK = 0.2


class NotClean(Untrusted):
    """A test fails with no mutant: a finding for the gate, and no ground to judge mutants on."""


class NothingRuns(Untrusted):
    """No test runs anything that has mutants: a finding for the gate where it is what changed."""


@dataclass(frozen=True)
class Settings:
    """The sections [mutation] and [gate] of setup.cfg."""

    tests: dict[str, tuple[str, ...]]
    leave_out: tuple[str, ...]
    numbers: dict[str, float]

    def of(self, file: str) -> tuple[str, ...]:
        """The test files that may kill mutants of a file; all of SUITE.tests without a row."""
        return self.tests.get(file, (SUITE.tests,))


def test_file(name: str) -> str:
    """A row's name of a test file: one of SUITE.tests, or with its folder one beside that."""
    folder, _, _ = SUITE.tests.rpartition("/")
    return f"{folder}/{name}.py" if "/" in name else f"{SUITE.tests}/{name}.py"


# The numbers of [gate]: the least and the most of each that can be meant.
NUMBERS = {
    "survivors": (0.0, 1e6),
    "crashed": (0.0, 1e6),
    "argued_percent": (0.0, 100.0),
    "fuzz_seconds": (1.0, 1e6),
    "lost_seconds": (0.0, 1e6),
}


def read_settings(path: Path = ROOT / "setup.cfg") -> Settings:
    """The settings; UsageError for what is missing, unknown, or cannot be meant.

    A row that is passed over runs nothing, or makes nothing red, and nobody would notice.
    """
    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read(path, encoding="utf-8")
        section = _section(config, "mutation", {"tests", "leave_out"})
        numbers = _numbers(_section(config, "gate", set(NUMBERS)))
    except (configparser.Error, UnicodeDecodeError) as error:
        said = str(error).splitlines()[0]
        raise UsageError(f"setup.cfg cannot be read: {said}") from None
    leave_out = tuple(filter(None, section["leave_out"].splitlines()))
    for node in leave_out:
        file, *names = node.split("::")
        if not names or names[0].partition("[")[0] not in _defined(path.parent / file):
            raise UsageError(f"setup.cfg [mutation] leave_out: there is no test {node}")
    return Settings(_rows(section["tests"], path.parent), leave_out, numbers)


def _section(
    config: configparser.ConfigParser, name: str, keys: set[str]
) -> configparser.SectionProxy:
    """A section with these keys and no others."""
    if name not in config:
        raise UsageError(f"setup.cfg has no section [{name}]")
    section = config[name]
    for what, which in (("no", keys - set(section)), ("an unknown", set(section) - keys)):
        if which:
            raise UsageError(f"setup.cfg [{name}] has {what} {', '.join(sorted(which))}")
    return section


def _numbers(section: configparser.SectionProxy) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, (least, most) in NUMBERS.items():
        try:
            number = float(section[key])
        except ValueError:
            number = math.nan
        # A NaN is neither: a threshold that nothing is over would let everything through.
        if not least <= number <= most:
            raise UsageError(
                f"setup.cfg [gate] {key}: {section[key]!r} is no number from {least:g} to {most:g}"
            )
        numbers[key] = number
    return numbers


def _rows(text: str, root: Path) -> dict[str, tuple[str, ...]]:
    """The tests of each file, which are there, and are some."""
    table: dict[str, tuple[str, ...]] = {}
    for line in filter(None, text.splitlines()):
        file, _, names = (part.strip() for part in line.partition("="))
        rows = tuple(test_file(name) for name in names.split())
        if file in table:
            raise UsageError(f"setup.cfg [mutation] tests: {file} is there twice")
        if not rows:
            raise UsageError(f"setup.cfg [mutation] tests: {file} has no test")
        for named in (file, *rows):
            if not (root / named).is_file():
                raise UsageError(f"setup.cfg [mutation] tests: there is no {named}")
        table[file] = rows
    return table


@functools.cache
def _defined(path: Path) -> frozenset[str]:
    """What a file of tests has at its top: functions, classes, and what is made from one."""
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return frozenset()
    made = {
        getattr(target, "id", "")
        for one in module.body
        if isinstance(one, ast.Assign)
        for target in one.targets
    }
    return frozenset(made | {getattr(one, "name", "") for one in module.body})


@dataclass
class Asked:
    """One file's run: what is to be judged, by which tests or inputs, and where."""

    file: str
    folder: Path
    jobs: int
    only: frozenset[str] | None = None
    """The functions to mutate; all without it."""
    shard: tuple[int, int] = (1, 1)
    corpus: tuple[str, ...] | None = None
    """Harnesses whose committed inputs take the tests' place."""
    names: frozenset[str] | None = None
    hunt: float = 0.0
    extra: dict[str, str] = field(default_factory=dict)
    """Test files that are put into the copy, by name."""
    last: tuple[str, ...] = ()
    """Tests of those files: only what they run is judged, and they come after all the others."""
    unchanged: bool = False
    """Whether a mutant that changes nothing is run too, for each function."""
    seconds: float | None = None
    """How long it may take; what is not judged by then is left out."""
    root: Path = ROOT


@dataclass
class Judged:
    """The verdict on every mutant of a run, the tests that killed them, and what was not judged."""

    report: Report
    mutants: tuple[Mutant, ...]
    killers: dict[str, list[str]] = field(default_factory=dict)
    """For each mutant everything that was seen to kill it."""
    idle: list[str] = field(default_factory=list)
    """Tests or inputs that killed nothing."""
    found: dict[str, dict[str, str] | None] = field(default_factory=dict)
    """What a hunt came back with, by mutant."""


# What a driver that cannot judge says about why (mutants/drive.py).
KINDS = {"": Untrusted, "NotClean": Untrusted, "TestFails": NotClean, "NothingRuns": NothingRuns}

Show = Callable[[str, int, int, int], None]

# What making and judging mutants needs besides the rest of `residue`, and the extra with it.
NEEDS = ("mutmut", "pytest", "hypothesis")


def check_installed() -> None:
    """Untrusted, with what to do, where something is missing without which nothing is judged."""
    extras.need(*NEEDS)


def evaluate(asked: Asked, settings: Settings, stop: Stop, show: Show) -> Judged:
    """Stage a file, judge its mutants, and take the copy away again; Untrusted when a check that
    comes first fails, or when the driver ends before it is done."""
    # Here and not above: mutmut is an extra, and the rest of `residue` does without it.
    from mutants import stage as staging
    from mutants import survey
    from mutants.drive import lines

    begun = time.monotonic()
    source = (asked.root / asked.file).read_text(encoding="utf-8")
    asked.folder.mkdir(parents=True)
    tree = asked.folder / "tree"
    stage = staging.stage(tree, [asked.file], asked.only, asked.root)
    for name, text in asked.extra.items():
        (tree / name).write_text(text, encoding="utf-8")
    step, of = asked.shard
    chosen = [m for m in stage.mutants if asked.names is None or m.name in asked.names]
    due = [mutant.name for mutant in chosen[step - 1 :: of]]
    report = Report(made={asked.file: len(stage.mutants)}, due=len(due))
    answer = Judged(report, stage.mutants)
    at_import: frozenset[str] = frozenset()
    if due:
        job, out = asked.folder / "job.json", asked.folder / "out.jsonl"
        staging.DriverJob(
            out,
            due,
            asked.jobs,
            tests=[*settings.of(asked.file), *dict.fromkeys(n.split("::")[0] for n in asked.last)],
            leave_out=settings.leave_out,
            corpus=asked.corpus,
            beyond=0.5 if asked.corpus is not None and not asked.hunt else 0.0,
            hunt=asked.hunt,
            last=asked.last,
        ).write(job, stage, asked.unchanged)
        at_import = _drive(asked, answer, (job, out), staging.environment(), stop, show, lines)
    if stop:
        _rest_not_run(answer, due)
    report.unmutable[asked.file] = survey.unmutable(source, at_import)
    report.seconds = time.monotonic() - begun
    shutil.rmtree(tree, ignore_errors=True)
    return answer


def _drive(
    asked: Asked,
    answer: Judged,
    files: tuple[Path, Path],
    environment: dict[str, str],
    stop: Stop,
    show: Show,
    lines: Callable[[Path], Iterable[dict[str, Any]]],
) -> frozenset[str]:
    job, out = files
    log = asked.folder / "log"
    argv = [sys.executable, "-m", "mutants.drive", str(job)]
    # What a mutant leaves running comes to the driver, and when that is killed, to this process.
    spared = orphans.children()
    orphans.adopt()
    child = spawn(argv, log, environment, asked.folder / "tree")
    until = time.monotonic() + (asked.seconds if asked.seconds is not None else float("inf"))
    tail = Tail(out)
    judged = left = 0
    try:
        while child.poll() is None and not stop and time.monotonic() < until:
            time.sleep(TICK)
            said = [line for line in map(json.loads, tail.lines()) if "verdict" in line]
            judged += len(said)
            left += sum(line["verdict"] == Verdict.SURVIVED for line in said)
            show(asked.file, judged, answer.report.due, left)
    finally:
        signal_group(child, signal.SIGTERM)
        reap(child, 1.0)
        orphans.kill(spared)
        orphans.adopt(False)
    return _read(asked, answer, list(lines(out)), stop, log)


def _read(
    asked: Asked, answer: Judged, said: list[dict[str, Any]], stop: Stop, log: Path
) -> frozenset[str]:
    known = {mutant.name: mutant for mutant in answer.mutants}
    at_import: frozenset[str] = frozenset()
    done = False
    for line in said:
        if "untrusted" in line:
            raise KINDS[line.get("kind", "")](f"{asked.file}: {line['untrusted']}")
        if "at_import" in line:
            at_import = frozenset(name.rpartition(".")[2] for name in line["at_import"])
        elif "due" in line:
            answer.report.due = line["due"]
        elif "found" in line:
            answer.found[line["name"]] = line["found"]
        elif "verdict" in line:
            killers = list(line["killers"])
            answer.killers[line["name"]] = killers
            verdict, by = Verdict(line["verdict"]), killers[0] if killers else ""
            row = Result(known[line["name"]], verdict, by, line["seconds"])
            answer.report.results.append(row)
        elif "done" in line:
            done = True
            answer.idle = [name for name in line["checks"] if not line["kills"].get(name)]
    if not done and not stop and asked.seconds is None:
        last = (log.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
        raise Untrusted(
            f"{asked.file}: the driver ended before it was done: {last}; its log: {log}"
        )
    return at_import


def _rest_not_run(answer: Judged, names: Sequence[str]) -> None:
    """An interrupted run: what was due and has no verdict was not run, and is counted as that."""
    known = {mutant.name: mutant for mutant in answer.mutants}
    have = {result.mutant.name for result in answer.report.results}
    answer.report.results += [
        Result(known[name], Verdict.NOT_RUN) for name in names if name not in have
    ]
