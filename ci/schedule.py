"""Who fuzzes when: the harnesses' turns on the processes of a campaign.

The time asked for is the wall time of the whole fuzzing phase. JOBS lanes of that length are cut
into shares, one a harness, in order; a share that does not fit in the rest of its lane goes on at
the start of the next. Two harnesses of equal weight on two lanes have a lane each; one has both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

# Starting Python and instrumenting the engine takes a little over two seconds; a slice that is not
# longer than that by much would be spent on it.
SHORTEST = 4.0
# What every harness has at least, where there is as much, so that it does something on a slow day.
LEAST = 5.0
ROUNDING = 1e-6
# What a stranger reaches before he has any key is fuzzed longer than the rest. Of the time that is
# left when every harness has its least, these have so many parts and the others one: on
# two processes for a minute, enough for 300,000 inputs of hello.
WEIGHTS = {"hello": 4.0, "server": 8.0}


@dataclass(frozen=True)
class Slice:
    """One harness's turn on one lane, in seconds."""

    harness: str
    seconds: float
    value_profile: bool = False
    """The turn looks at the values that are compared too: slow, so it is one beside the others."""

    @property
    def whose(self) -> tuple[str, bool]:
        """The share that this turn is a part of."""
        return self.harness, self.value_profile


def lanes(
    harnesses: list[str],
    seconds: float,
    jobs: int,
    weights: Mapping[str, float] | None = None,
    value_profile: str | None = None,
) -> list[list[Slice]]:
    """What each lane runs, one slice after the other.

    `weights` go before WEIGHTS; `value_profile` names the harness that has one more share, with
    the weight of one.
    """
    parts = {**WEIGHTS, **(weights or {})}
    shares = [(Slice(harness, 0.0), parts.get(harness, 1.0)) for harness in harnesses]
    if value_profile is not None:
        shares.append((Slice(value_profile, 0.0, True), 1.0))
    time = seconds * jobs
    least = min(LEAST, time / len(shares))
    spare = time - least * len(shares)
    whole = sum(part for _, part in shares)
    plan: list[list[Slice]] = [[] for _ in range(jobs)]
    lane, free = 0, seconds
    for share, part in shares:
        left = least + spare * part / whole
        while left > ROUNDING and lane < jobs:
            turn = min(left, free)
            plan[lane].append(replace(share, seconds=turn))
            left -= turn
            free -= turn
            if free <= ROUNDING:
                lane, free = lane + 1, seconds
    # `max` takes the first of equals, so that of two halves one is the share's own.
    best = {
        share.whose: max((s for row in plan for s in row if s.whose == share.whose), key=_time)
        for share, _ in shares
    }
    return [_joined(row, best) for row in plan]


def _time(turn: Slice) -> float:
    return turn.seconds


def _joined(row: list[Slice], best: dict[tuple[str, bool], Slice]) -> list[Slice]:
    """Gives a slice too short to be worth its start to its neighbours, never a share's best."""
    kept = [s for s in row if s.seconds >= SHORTEST or s is best[s.whose]]
    if not kept:
        return row
    spare = sum(s.seconds for s in row) - sum(s.seconds for s in kept)
    return [replace(s, seconds=s.seconds + spare / len(kept)) for s in kept]
