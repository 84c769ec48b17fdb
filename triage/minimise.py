"""Makes an input smaller while it shows the same bucket: pieces cut out, then bytes set to zero.

The order of the tries is fixed, so the same input gives the same result where the time lasts. A
plain run costs a fifth of one that leaves no oracle to a sample; so tries are made with plain runs
first, as long as the bucket shows in them, and what one accepts is run again in full before it
counts: every step that is taken shows the bucket as `residue replay` will see it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .limits import MINIMISE_SECONDS
from .prober import Prober
from .signature import Signature

CONFIRMATIONS = 3
"""How often the input must show its bucket before anything is cut from it."""

TOGETHER = ("exception", "oracle", "outcome")
"""Kinds whose tries may share a process, which is several times faster. What one of them accepts is
run again in a process of its own."""

BATCH = 8_192
"""How many bytes go to such a process at once: enough to make its start cheap."""

MOST_RUNS = 1_000_000

TEXT = ("recordings",)
"""Harnesses whose inputs are text, which zeros would only spoil."""


class NotReproduced(Exception):
    """The input does not show what is to be kept, or not each time. The message says which."""


class _Over(Exception):
    """The time, or the number of runs, is used up."""


@dataclass
class Minimiser:
    """One input on its way down.

    `best` showed the bucket in the last try, `checked` showed it under the full limits: of a hang
    only that is worth keeping.
    """

    prober: Prober
    wanted: Signature
    best: bytes
    seconds: float
    report: Callable[[str], None] = lambda text: None
    right: Prober | None = None
    """The same harness in a tree that is right: there a wrong outcome's input ends as expected."""
    finished: bool = False
    runs: int = 0
    checked: bytes = b""
    _thorough: bool = False
    _deadline: float = 0.0

    def confirm(self) -> None:
        """Raises NotReproduced unless the input shows its bucket each time."""
        shown = sum(self._shows_in_full(self.best) for _ in range(CONFIRMATIONS))
        if shown < CONFIRMATIONS:
            raise NotReproduced(f"the input shows it in {shown} of {CONFIRMATIONS} runs")

    def run(self) -> bytes:
        """The smallest input that the time allows; `finished` when no try is left."""
        self._deadline = time.monotonic() + self.seconds
        self.checked = self.best
        try:
            self.confirm()
            for thorough in self._modes():
                self._thorough = thorough
                while self._cut() | self._zero():
                    self._settle()
            self.finished = True
        except _Over:
            self._settle()
        return self.checked

    def _modes(self) -> list[bool]:
        plain = self.prober.shows(self.best, self.wanted, False, self._limit())
        if self.wanted.kind in ("timeout", "slow", "hungry"):
            return [False]
        return [False, True] if plain else [True]

    def _limit(self) -> float:
        hang = self.prober.limits.seconds
        return min(MINIMISE_SECONDS, hang) if self.wanted.kind == "timeout" else hang

    def _shows_in_full(self, data: bytes) -> bool:
        thorough = self.wanted.kind not in ("timeout", "slow", "hungry")
        if not self.prober.shows(data, self.wanted, thorough, self._limit()):
            return False
        # A wrong outcome is wrong only beside the right one: to many inputs it is the right one.
        return self.wanted.kind != "outcome" or (
            self.right is not None and self.right.ask(data).outcome == self.wanted.expected
        )

    def _settle(self) -> None:
        """Check a hang under the full limit: a try that took longer than it had may end yet."""
        if self.best == self.checked:
            return
        limit = self.prober.limits.seconds
        if self.wanted.kind != "timeout" or self.prober.shows(self.best, self.wanted, False, limit):
            self.checked = self.best
        else:
            self.best = self.checked
            raise NotReproduced("smaller inputs take long and do come to an end")

    def _first(self, candidates: list[bytes]) -> int | None:
        """Which candidate is the first that shows the bucket; it is the best now."""
        at = 0
        while at < len(candidates):
            if time.monotonic() >= self._deadline or self.runs >= MOST_RUNS:
                raise _Over
            self.report(f"{len(self.best)} bytes, {self.runs} runs")
            ran, shown = self._run(candidates[at:])
            self.runs += ran
            at += ran
            if shown and self._shows_in_full(candidates[at - 1]):
                self.best = candidates[at - 1]
                if self.wanted.kind != "timeout":
                    self.checked = self.best
                return at - 1
        return None

    def _run(self, candidates: list[bytes]) -> tuple[int, bool]:
        """Run candidates up to one that may show it: how many, and whether the last does."""
        if self.wanted.kind in TOGETHER:
            ran, shown = self.prober.first(candidates, self.wanted, self._thorough)
            if ran:
                return ran, shown
        one = candidates[0]
        return 1, self.prober.shows(one, self.wanted, self._thorough, self._limit())

    def _cut(self) -> bool:
        """Cut pieces out, large ones first; whether any went."""
        before = self.best
        if self.best:
            self._first([b""])
        size = len(self.best) // 2
        while size:
            self._sweep(size, _without, 0)
            size //= 2
        return self.best != before

    def _zero(self) -> bool:
        """Set pieces to zero, large ones first; whether any was not."""
        before = self.best
        size = 0 if self.wanted.harness in TEXT else len(self.best)
        while size:
            self._sweep(size, _zeroed, size)
            size //= 2
        return self.best != before

    def _sweep(self, size: int, change: Callable[[bytes, int, int], bytes], onward: int) -> None:
        """Try a change at every piece of the best; after one that is taken go `onward`."""
        at = 0
        while at < len(self.best):
            places = range(at, len(self.best), size)[: max(1, BATCH // len(self.best))]
            tries = [(place, change(self.best, place, size)) for place in places]
            new = [(place, made) for place, made in tries if made != self.best]
            hit = self._first([made for _, made in new])
            at = places[-1] + size if hit is None else new[hit][0] + onward


def _without(data: bytes, at: int, size: int) -> bytes:
    return data[:at] + data[at + size :]


def _zeroed(data: bytes, at: int, size: int) -> bytes:
    piece = data[at : at + size]
    return data[:at] + bytes(len(piece)) + data[at + size :]
