"""How much of the engine inputs reach: sets of lines and branches, and their arithmetic.

The sets come from `ci.coverage.measure` processes. A harness's merged corpus must reach no less
than everything its shards kept; the campaign's figure is the union over its harnesses.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from ci.process import ROOT, Job, importing

Place = tuple[str, ...]

# An input takes milliseconds, traced ten times that; this is for one that hangs.
LIMIT = 600.0


class Counts(TypedDict, total=False):
    """What was reached, as the JSON summary has it; empty where nothing was measured."""

    lines: int
    all_lines: int
    line_percent: float
    branches: int
    all_branches: int
    branch_percent: float


@dataclass(frozen=True)
class Reach:
    """Which of the engine's lines and branches were reached, out of which."""

    lines: frozenset[Place] = frozenset()
    all_lines: frozenset[Place] = frozenset()
    branches: frozenset[Place] = frozenset()
    all_branches: frozenset[Place] = frozenset()

    def __or__(self, other: "Reach") -> "Reach":
        return Reach(
            self.lines | other.lines,
            self.all_lines | other.all_lines,
            self.branches | other.branches,
            self.all_branches | other.all_branches,
        )

    def lost(self, other: "Reach") -> int:
        """How many lines and branches of `other` this one does not reach."""
        return len(other.lines - self.lines) + len(other.branches - self.branches)

    @property
    def line_percent(self) -> float:
        """Lines reached, in percent."""
        return percent(len(self.lines), len(self.all_lines))

    @property
    def branch_percent(self) -> float:
        """Branches reached, in percent."""
        return percent(len(self.branches), len(self.all_branches))

    def by_file(self) -> dict[str, dict[str, Any]]:
        """The counts for each file, by name, and what is missed: lines as ranges (`3-5 9`),
        branches as pairs of lines (`12>15`, and `12>-1` for the way out of a function)."""
        table: dict[str, dict[str, Any]] = {}
        for key in ("lines", "all_lines", "branches", "all_branches"):
            for place in getattr(self, key):
                row = table.setdefault(
                    place[0], {"lines": 0, "all_lines": 0, "branches": 0, "all_branches": 0}
                )
                row[key] += 1
        for name, row in table.items():
            lines = [int(p[1]) for p in self.all_lines - self.lines if p[0] == name]
            branches = [p[1:] for p in self.all_branches - self.branches if p[0] == name]
            row["missed_lines"] = ranges(lines)
            pairs = sorted((int(a), int(b)) for a, b in branches)
            row["missed_branches"] = " ".join(f"{a}>{b}" for a, b in pairs)
        return dict(sorted(table.items()))

    def as_data(self) -> Counts:
        """The counts as the JSON summary has them."""
        return {
            "lines": len(self.lines),
            "all_lines": len(self.all_lines),
            "line_percent": round(self.line_percent, 1),
            "branches": len(self.branches),
            "all_branches": len(self.all_branches),
            "branch_percent": round(self.branch_percent, 1),
        }


@dataclass
class Measured:
    """What one harness's inputs reach: `import`, `committed`, `merged` and `all`."""

    reach: dict[str, Reach]
    restored: list[Path]
    """Inputs that `merged` counts and libFuzzer's merge left out."""
    refusals: list[dict[str, Any]] = field(default_factory=list)
    """The cells that `merged` reaches (`ci.coverage.corpus.refusals`)."""
    corpus: dict[str, Any] = field(default_factory=dict)
    """What `merged` holds (`ci.coverage.corpus.corpus`)."""


def percent(part: int, whole: int) -> float:
    """A percentage; of nothing it is 0, so that an empty measurement never looks full."""
    return 100.0 * part / whole if whole else 0.0


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers as ranges: 3, 4, 5 and 9 are `3-5 9`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{a}-{b}" if a < b else str(a) for a, b in runs)


def union(reaches: Iterable[Reach]) -> Reach:
    """What all of them reach together."""
    total = Reach()
    for reach in reaches:
        total = total | reach
    return total


def job(
    harness: str, committed: Path, merged: Path, sources: list[Path], result: Path, log: Path
) -> Job:
    """The process that measures the inputs of one harness."""
    folders = [str(folder) for folder in (committed, merged, *sources)]
    argv = [sys.executable, "-m", "ci.coverage.measure", str(result), harness, *folders]
    return Job(argv, log, LIMIT, importing(ROOT), cwd=log.parent)


def read(result: Path) -> Measured | None:
    """What a measuring process wrote; None when it wrote nothing."""
    try:
        data = json.loads(result.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return Measured(
        {group: _reach(files) for group, files in data["reach"].items()},
        [Path(file) for file in data["restored"]],
        data.get("refusals", []),
        data.get("corpus", {}),
    )


def _reach(files: dict[str, Any]) -> Reach:
    def places(*keys: str) -> frozenset[Place]:
        return frozenset(
            (name, *(str(part) for part in (item if isinstance(item, list) else [item])))
            for name, data in files.items()
            for key in keys
            for item in data[key]
        )

    return Reach(
        places("executed_lines"),
        places("executed_lines", "missing_lines"),
        places("executed_branches"),
        places("executed_branches", "missing_branches"),
    )
