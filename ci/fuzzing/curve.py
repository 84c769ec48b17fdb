"""How a fuzzing phase went: executions, edges and finds of each harness over its time.

A point is kept every two hundredth of the phase, so that a night has as many as a minute.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ci.fuzzing.supervisor import Phase

POINTS = 200
# libFuzzer says its counts now and then; points closer than this would be the same.
CLOSEST = 0.5


@dataclass
class Curve:
    """The points so far. It is called as often as the phase reports."""

    finds: Callable[[str], int]
    points: list[dict[str, Any]] = field(default_factory=list)
    due: float = 0.0

    def __call__(self, phase: Phase, now: float) -> None:
        """Add a point for each harness that has begun, if it is time to."""
        since = now - phase.began
        if since < self.due:
            return
        self.due = since + max(phase.seconds / (POINTS - 2), CLOSEST)
        self.end(phase, now)

    def end(self, phase: Phase, now: float) -> None:
        """Add a point whatever the time is: the last."""
        for harness in dict.fromkeys(shard.task.harness for shard in phase.shards):
            shards = phase.of(harness)
            self.points.append(
                {
                    "t": round(max(0.0, now - phase.began), 1),
                    "harness": harness,
                    "executions": sum(shard.executions for shard in shards),
                    "edges": max((shard.edges for shard in shards), default=0),
                    "finds": self.finds(harness),
                }
            )
