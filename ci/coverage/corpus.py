"""What a corpus holds, from the inputs that were run: sizes, outcomes, and the refusals reached."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# The upper bounds of the size histogram, in bytes; the last takes what is longer.
BOUNDS = (16, 64, 256, 1024, 4096, 16384)
LARGEST, NEWEST = 5, 20
# The outcome of an input that an oracle stopped, or that raised.
STOPPED = "finding"


Cell = tuple[str, str, str]
"""Where a refusal was seen: state, message, tag."""


@dataclass(frozen=True)
class Input:
    """One input that was run: its outcome, None when it was stopped, and the cells it reached."""

    name: str
    data: bytes
    committed: bool
    outcome: str | None
    cells: set[Cell]

    @property
    def word(self) -> str:
        """The outcome's first word: a tag, or what the connection ended as."""
        return self.outcome.split(" ", 1)[0] if self.outcome else STOPPED

    @property
    def shown(self) -> str:
        """Its name: of one that is not committed, the one under which it is handed over."""
        return self.name if self.committed else hashlib.sha256(self.data).hexdigest()[:16]


def corpus(inputs: Iterable[Input]) -> dict[str, Any]:
    """Number, bytes, sizes, outcomes, and the largest and the new inputs by name."""
    rows = list(inputs)
    sizes = [0] * (len(BOUNDS) + 1)
    for row in rows:
        sizes[sum(len(row.data) > bound for bound in BOUNDS)] += 1
    largest = sorted(rows, key=lambda row: (-len(row.data), row.shown))[:LARGEST]
    fresh = sorted((row for row in rows if not row.committed), key=lambda row: row.shown)
    return {
        "inputs": len(rows),
        "committed": sum(row.committed for row in rows),
        "bytes": sum(len(row.data) for row in rows),
        "sizes": [
            {"up_to": bound, "inputs": count}
            for bound, count in zip((*BOUNDS, None), sizes, strict=True)
        ],
        "outcomes": dict(Counter(row.word for row in rows).most_common()),
        "largest": [_named(row) for row in largest],
        "new": [_named(row) for row in fresh[:NEWEST]],
    }


def _named(row: Input) -> dict[str, Any]:
    return {"name": row.shown, "bytes": len(row.data), "outcome": row.word}


def refusals(harness: str, inputs: Iterable[Input]) -> list[dict[str, Any]]:
    """For each cell how many inputs reach it, how many of them are committed, and the first."""
    table: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in inputs:
        for cell in row.cells:
            state, message, refusal = cell
            entry = table.setdefault(
                cell,
                {
                    "state": state,
                    "message": message,
                    "refusal": refusal,
                    "inputs": 0,
                    "committed": 0,
                    "witness": f"{harness}/{row.shown}",
                },
            )
            entry["inputs"] += 1
            entry["committed"] += row.committed
    return [table[cell] for cell in sorted(table)]
