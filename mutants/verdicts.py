"""What became of a mutant: five verdicts that are never mixed, and their counts.

- `killed`: a test failed. Nothing else is a kill.
- `survived`: every test that runs the function passed.
- `timed out`: it was still running long after the clean run had ended, twice, the second time
  alone on the machine's share and with more time.
- `crashed`: the process died, or pytest itself did. A fault of the mutant, of the tests or of the
  runner; somebody has to look.
- `not run`: no test runs the function, or the run ended before its turn.

The counts must add up to the mutants that were made; where they do not, the run is not to be
trusted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Verdict(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    NOT_RUN = "not run"


class MergeError(ValueError):
    """Results that do not belong together, or that say two things of one mutant."""


@dataclass(frozen=True)
class Mutant:
    """One mutation: what it is called, where it is, and what it makes of the code.

    `before` and `after` are the lines that differ, without their indentation: by them the ledger
    knows a mutant again, and not by a number that moves when a line is added above.
    """

    name: str
    file: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    diff: str


def function_of(name: str) -> str:
    """The part of a mutant's name that the switch records when its function runs."""
    return name.partition("__mutmut_")[0]


@dataclass(frozen=True)
class Result:
    """A mutant and its verdict; `by` is the test or input that killed it."""

    mutant: Mutant
    verdict: Verdict
    by: str = ""
    seconds: float = 0.0


@dataclass
class Unmutable:
    """Statements of a file that get no mutants: how many, out of how many, and where."""

    statements: int
    places: list[tuple[str, int, int]] = field(default_factory=list)
    """(what and why, its line, its statements)"""

    @property
    def count(self) -> int:
        """How many statements get no mutants."""
        return sum(number for _, _, number in self.places)

    @property
    def percent(self) -> float:
        """The part of the statements that these are, in percent."""
        return 100.0 * self.count / self.statements if self.statements else 0.0


@dataclass
class Report:
    """The results of a run over some files, or of several runs merged."""

    results: list[Result] = field(default_factory=list)
    made: dict[str, int] = field(default_factory=dict)
    """How many mutants each file has, whichever of them this run was to judge."""
    due: int = 0
    """How many this run was to judge: all, or its shard."""
    unmutable: dict[str, Unmutable] = field(default_factory=dict)
    seconds: float = 0.0

    def counts(self, file: str | None = None) -> dict[Verdict, int]:
        """How many mutants had each verdict; every verdict is there."""
        counted = Counter(r.verdict for r in self.results if file in (None, r.mutant.file))
        return {verdict: counted[verdict] for verdict in Verdict}

    def of(self, verdict: Verdict) -> list[Result]:
        """The results of one verdict, by file and line."""
        chosen = [result for result in self.results if result.verdict is verdict]
        return sorted(chosen, key=lambda r: (r.mutant.file, r.mutant.line, r.mutant.name))

    def adds_up(self) -> bool:
        """Whether every mutant that was due has exactly one verdict."""
        names = {result.mutant.name for result in self.results}
        return len(names) == len(self.results) == self.due

    def as_data(self) -> dict[str, object]:
        """The report as JSON has it."""
        return {
            "made": self.made,
            "due": self.due,
            "seconds": round(self.seconds, 1),
            "counts": self.counts(),
            "unmutable": {file: asdict(entry) for file, entry in self.unmutable.items()},
            "results": [
                {**asdict(r.mutant), "verdict": r.verdict, "by": r.by, "seconds": r.seconds}
                for r in self.results
            ],
        }

    def text(self) -> str:
        """The report as JSON."""
        return json.dumps(self.as_data(), indent=1, ensure_ascii=False) + "\n"

    def write(self, path: Path) -> None:
        """The report as a file, written aside first."""
        aside = path.with_name(f".{path.name}.new")
        aside.write_text(self.text(), encoding="utf-8")
        aside.replace(path)


def read(path: Path) -> Report:
    """A report that `write` wrote; MergeError for anything else."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        unmutable = {
            file: Unmutable(entry["statements"], [(w, n, c) for w, n, c in entry["places"]])
            for file, entry in data["unmutable"].items()
        }
        results = [result(row) for row in data["results"]]
        return Report(results, data["made"], data["due"], unmutable, data["seconds"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MergeError(f"{path}: not results of residue mutate: {error}") from None


def result(row: dict[str, Any]) -> Result:
    """One result from its JSON object."""
    fields = {name: row[name] for name in Mutant.__dataclass_fields__}
    return Result(Mutant(**fields), Verdict(row["verdict"]), row["by"], row["seconds"])


def merge_parts(reports: Iterable[Report]) -> Report:
    """The results of different files, or of a shard's part of each, as one."""
    total = Report()
    for report in reports:
        total.made.update(report.made)
        total.due += report.due
        total.unmutable.update(report.unmutable)
        total.results += report.results
        total.seconds += report.seconds
    return total


def merge(reports: Iterable[Report]) -> Report:
    """The results of all the shards as one; MergeError when they are not of the same code.

    All of a file's mutants are due then, so that a shard that is missing does not add up.
    """
    total = Report()
    known: dict[str, Result] = {}
    for report in reports:
        for file, made in report.made.items():
            if total.made.setdefault(file, made) != made:
                raise MergeError(f"{file} has {total.made[file]} mutants here and {made} there")
        total.unmutable.update(report.unmutable)
        total.seconds += report.seconds
        for row in report.results:
            other = known.get(row.mutant.name)
            if other is not None:
                raise MergeError(f"two results for {row.mutant.name}: is a shard there twice?")
            known[row.mutant.name] = row
    total.results = list(known.values())
    total.due = sum(total.made.values())
    return total
