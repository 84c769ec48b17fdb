"""How time is taken: CPU of this thread, collector off, rounds that alternate, medians.

The machine drifts (other processes, the clock of the processor), so single times say little. Every
candidate therefore runs once a round, the order turns by one place each round, and a ratio is the
median of the ratios of the rounds: both sides of it were taken within a few milliseconds.

What it cannot see: work that another thread or the kernel does for us, and what a cold cache costs.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

now = time.thread_time_ns
"""CPU nanoseconds of this thread, user and system. A call costs about 0.3 µs."""

METHOD = (
    "CPU of the server alone: the median of the rounds; a ratio is the median of the rounds' "
    "ratios; least is the fastest round; spread is the middle half of the rounds."
)


@dataclass
class Candidate:
    """One side of a comparison: `turn(count)` does `count` operations and answers the CPU
    nanoseconds that they took, of the part that is measured alone."""

    name: str
    turn: Callable[[int], int]
    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Nanoseconds an operation, the median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def least(self) -> float:
        """Nanoseconds an operation in the fastest round: what it costs with no neighbour."""
        return min(self.rounds)

    def ratio(self, other: "Candidate") -> float:
        """How much of the other's time this one takes, the median of the rounds' ratios."""
        pairs = zip(self.rounds, other.rounds, strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)

    def spread(self) -> float:
        """The middle half of the rounds, as a part of the median: how far to trust it."""
        if len(self.rounds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.rounds, n=4)
        return (high - low) / self.median


@contextmanager
def quiet() -> Iterator[None]:
    """Collect what is there, then keep the collector from running inside a measured part."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def alternate(candidates: Sequence[Candidate], rounds: int, count: int, label: str) -> None:
    """Run every candidate `rounds` times, `count` operations each, after one uncounted turn."""
    for candidate in candidates:
        candidate.turn(max(1, count // 4))
    order = list(candidates)
    for number in range(rounds):
        with quiet():
            for candidate in order:
                candidate.rounds.append(candidate.turn(count) / count)
        order.append(order.pop(0))
        progress(label, number + 1, rounds)


def progress(label: str, done: int, total: int) -> None:
    """One line on a terminal, nothing elsewhere: the table is what a file should hold."""
    if not sys.stderr.isatty():
        return
    sys.stderr.write(f"\r\x1b[K{label} {done}/{total}")
    if done == total:
        sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()
