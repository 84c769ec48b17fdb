"""The fuzzing phase: processes that the shares take turns on, watched by one loop in one thread.

The loop sleeps a tenth of a second at a time, so the phase ends within that of its time or of a
signal, plus what a process takes to write its last lines. One thing goes before its time: every
share has begun, which is to have gone through its seeds, so that a busy machine makes the phase
longer and not a harness unfuzzed. Whatever leaves the loop, no child of it is alive afterwards.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ci.fuzzing import allocation
from ci.fuzzing.allocation import SHORTEST, Share, Turn
from ci.fuzzing.shard import Shard
from ci.process import TICK, Stop

MakeShard = Callable[[Share, float, int], Shard]

# A first turn waits so long for its process to have gone through its seeds, in seconds of its own
# processor time: what needs longer on a quiet machine too is broken.
BEGINS = 60.0


@dataclass
class Begun:
    """A turn that has begun: which process has it, since when, and for how long at most."""

    share: Share
    shard: Shard
    at: float
    seconds: float
    before: int
    """The edges that the process had found when it began."""
    over: Turn | None = None

    def turn(self) -> Turn:
        """What the schedule wants to know of it."""
        found = max(0, self.shard.gained - self.before)
        return self.over or Turn(self.share, self.seconds, found)

    def end(self, now: float) -> None:
        """It was as long as until now, and has found what it has found."""
        self.seconds = now - self.at
        self.over = self.turn()


@dataclass
class Phase:
    """The shares at work, as the progress line and the summary want to know them."""

    seconds: float
    jobs: int
    shares: list[Share]
    shards: list[Shard] = field(default_factory=list)
    turns: list[Begun] = field(default_factory=list)
    began: float = 0.0
    took: float = 0.0
    troubles: list[str] = field(default_factory=list)
    """Why the phase is not to be trusted, where it was not this machine that ran it."""
    notes: list[str] = field(default_factory=list)

    @property
    def usual(self) -> float:
        """How long a turn is, in seconds."""
        return allocation.turn_seconds(len(self.shares), self.seconds, self.jobs)

    def left(self, now: float) -> float:
        """Seconds until the phase is over."""
        return max(0.0, self.seconds - (now - self.began))

    def of(self, harness: str) -> list[Shard]:
        """The shards of one harness."""
        return [shard for shard in self.shards if shard.task.harness == harness]

    def gained(self, harness: str) -> int:
        """The edges that a harness's first seeds did not reach."""
        shards = self.of(harness)
        first = min((shard.first_edges for shard in shards if shard.first_edges), default=0)
        return max(shard.edges for shard in shards) - first if first else 0

    def next(self, now: float) -> Share | None:
        """Whose turn it is now; nobody's when the time is up and every share has had one."""
        had = {begun.share for begun in self.turns}
        lost = {begun.share for begun in self.turns if begun.shard.gave_up}
        waiting = [share for share in self.shares if share not in had]
        open_ = [share for share in self.shares if share not in lost]
        if waiting:
            return waiting[0]
        # A process that has had nothing yet begins however short the phase is.
        late = self.left(now) < SHORTEST and len(self.turns) >= self.jobs
        if not open_ or late:
            return None
        return allocation.following(open_, [begun.turn() for begun in self.turns], self.usual)

    def until(self, now: float) -> float:
        """How long a turn that begins now is; what would be left of the phase after it for less
        than a start is its as well."""
        left = self.left(now)
        return left if left - self.usual < SHORTEST else self.usual

    def begin(self, share: Share, make: MakeShard, now: float) -> Shard:
        """Give a share a turn on a process of its own."""
        seconds = self.until(now)
        shard = make(share, seconds, len(self.shards) + 1)
        self.shards.append(shard)
        self.turns.append(Begun(share, shard, now, seconds, 0))
        return shard

    def again(self, begun: Begun, now: float) -> None:
        """The same share is next: its process goes on."""
        begun.end(now)
        seconds = self.until(now)
        begun.shard.seconds += seconds
        self.turns.append(Begun(begun.share, begun.shard, now, seconds, begun.shard.gained))

    def newest(self, shard: Shard) -> Begun:
        """The turn that a process is in, or was last."""
        return next(begun for begun in reversed(self.turns) if begun.shard is shard)


Report = Callable[[Phase, float], None]
Supervise = Callable[[Phase, MakeShard, Stop, Report], None]


def run(phase: Phase, make: MakeShard, stop: Stop, report: Report) -> None:
    """Run every share's turns to the phase's end, or until a signal; then nothing is running."""
    current: list[Shard | None] = [None for _ in range(phase.jobs)]
    phase.began = time.monotonic()
    try:
        while True:
            now = time.monotonic()
            current = [_lane(phase, shard, make, stop, now) for shard in current]
            if not any(current):
                return
            report(phase, now)
            time.sleep(TICK)
    finally:
        phase.took = time.monotonic() - phase.began
        for shard in phase.shards:
            shard.kill()


def _lane(
    phase: Phase, shard: Shard | None, make: MakeShard, stop: Stop, now: float
) -> Shard | None:
    """What runs on one process's place from now on: the same, the next, or nothing any more."""
    if shard is not None:
        _poll(phase, shard, stop, now)
        if not shard.finished:
            return shard
        phase.newest(shard).end(now)
    share = None if stop else phase.next(now)
    if share is None:
        return None
    following = phase.begin(share, make, now)
    following.begin(now)
    return following


def _poll(phase: Phase, shard: Shard, stop: Stop, now: float) -> None:
    """Look at a shard: whether it is to end, or is the next one itself."""
    if stop:
        shard.interrupt(now)
    elif shard.asked is None and shard.left(now) <= 0:
        begun = phase.newest(shard)
        if not shard.begun and shard.cpu < BEGINS and begun is _first(phase, begun.share):
            shard.seconds = now - shard.started + TICK
        elif phase.next(now) == begun.share:
            phase.again(begun, now)
    shard.poll(now)


def _first(phase: Phase, share: Share) -> Begun:
    return next(begun for begun in phase.turns if begun.share == share)
