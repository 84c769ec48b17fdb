"""Which harness gets how much of a night's fuzzing: more to those that still find edges.

A harness's part is its usual one (`ci.fuzzing.allocation`) times how much more than the others it
found in a second of the last nights, and never more than four times or less than a quarter of it:
what found nothing for a week may find something tomorrow. Beside its part each has its least.
"""

from collections.abc import Sequence

from ci.fuzzing.allocation import WEIGHTS
from ci.night.history import Row

NIGHTS = 5
MOST = 4.0
# An edge is worth so many inputs, most of which only count something differently.
EDGE = 10


def weights(history: Sequence[Row], harnesses: Sequence[str]) -> dict[str, float]:
    """For each harness its weight; none for the first night, which takes the usual ones."""
    rows = [row for row in history if row.get("fuzzed")][-NIGHTS:]
    rates: dict[str, float] = {}
    for harness in harnesses:
        seconds = sum(row["fuzzed"].get(harness, 0.0) for row in rows)
        found = sum(
            EDGE * row.get("gained", {}).get(harness, 0) + row.get("new", {}).get(harness, 0)
            for row in rows
        )
        if seconds:
            rates[harness] = found / seconds
    mean = sum(rates.values()) / len(rates) if rates else 0.0
    if not mean:
        return {}
    return {
        harness: round(
            WEIGHTS.get(harness, 1.0) * min(MOST, max(1 / MOST, rates.get(harness, mean) / mean)), 3
        )
        for harness in harnesses
    }


def longest_ago(names: Sequence[str], done: Sequence[str]) -> str:
    """Of the names, the one that was never done, or else whose last time is longest ago."""
    last = {name: at for at, name in enumerate(done)}
    return min(names, key=lambda name: last.get(name, -1))
