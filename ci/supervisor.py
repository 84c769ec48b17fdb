"""The fuzzing phase: lanes of shards, watched by one loop in one thread.

The loop sleeps a tenth of a second at a time, so the phase ends within that of its time or of a
signal, plus what a process takes to write its last lines. Whatever leaves the loop, no child of it
is alive afterwards.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ci.process import TICK, Stop
from ci.schedule import Slice
from ci.shard import Shard

MakeShard = Callable[[Slice, int], Shard]


@dataclass
class Phase:
    """The lanes at work, as the progress line and the summary want to know them."""

    seconds: float
    lanes: list[list[Slice]]
    shards: list[Shard] = field(default_factory=list)
    began: float = 0.0
    took: float = 0.0
    troubles: list[str] = field(default_factory=list)
    """Why the phase is not to be trusted, where it was not this machine that ran it."""
    notes: list[str] = field(default_factory=list)

    def left(self, now: float) -> float:
        """Seconds until the phase is over."""
        return max(0.0, self.seconds - (now - self.began))

    def of(self, harness: str) -> list[Shard]:
        """The shards of one harness."""
        return [shard for shard in self.shards if shard.task.harness == harness]


Report = Callable[[Phase, float], None]
Supervise = Callable[[Phase, MakeShard, Stop, Report], None]


def run(phase: Phase, make: MakeShard, stop: Stop, report: Report) -> None:
    """Run every lane to its end, or until a signal; then nothing is left running."""
    waiting = [with_ends(lane) for lane in phase.lanes]
    current: list[Shard | None] = [None for _ in waiting]
    phase.began = time.monotonic()
    try:
        while True:
            now = time.monotonic()
            for lane, shard in enumerate(current):
                if shard is not None:
                    shard.tend(now)
                    if stop:
                        shard.interrupt(now)
                    if shard.finished:
                        shard = current[lane] = None
                if shard is None and waiting[lane] and not stop:
                    slot, end = waiting[lane].pop(0)
                    now = time.monotonic()
                    turn = replace(slot, seconds=phase.began + end - now)
                    shard = current[lane] = make(turn, len(phase.shards) + 1)
                    phase.shards.append(shard)
                    shard.begin(now)
            if all(shard is None for shard in current) and (stop or not any(waiting)):
                return
            report(phase, now)
            time.sleep(TICK)
    finally:
        phase.took = time.monotonic() - phase.began
        for shard in phase.shards:
            shard.kill()


def with_ends(lane: list[Slice]) -> list[tuple[Slice, float]]:
    """When each slice is over, from the phase's beginning: a late start makes no late end."""
    ends: list[tuple[Slice, float]] = []
    total = 0.0
    for turn in lane:
        total += turn.seconds
        ends.append((turn, total))
    return ends
