"""Who fuzzes when: the harnesses' turns on the processes of a campaign.

The time asked for is the wall time of the whole fuzzing phase. JOBS lanes of that length are cut
into shares, one a harness, in order; a share that does not fit in the rest of its lane goes on at
the start of the next. Two harnesses of equal weight on two lanes have a lane each; one has both.
"""

from dataclasses import dataclass

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


def lanes(harnesses: list[str], seconds: float, jobs: int) -> list[list[Slice]]:
    """What each lane runs, one slice after the other."""
    time = seconds * jobs
    least = min(LEAST, time / len(harnesses))
    spare = time - least * len(harnesses)
    whole = sum(WEIGHTS.get(harness, 1.0) for harness in harnesses)
    plan: list[list[Slice]] = [[] for _ in range(jobs)]
    lane, free = 0, seconds
    for harness in harnesses:
        left = least + spare * WEIGHTS.get(harness, 1.0) / whole
        while left > ROUNDING and lane < jobs:
            turn = min(left, free)
            plan[lane].append(Slice(harness, turn))
            left -= turn
            free -= turn
            if free <= ROUNDING:
                lane, free = lane + 1, seconds
    # `max` takes the first of equals, so that of two halves one is the harness's own.
    best = {
        h: max((s for row in plan for s in row if s.harness == h), key=_time) for h in harnesses
    }
    return [_joined(row, best) for row in plan]


def _time(turn: Slice) -> float:
    return turn.seconds


def _joined(row: list[Slice], best: dict[str, Slice]) -> list[Slice]:
    """Gives a slice too short to be worth its start to its neighbours, never a harness's best."""
    kept = [s for s in row if s.seconds >= SHORTEST or s is best[s.harness]]
    if not kept:
        return row
    spare = sum(s.seconds for s in row) - sum(s.seconds for s in kept)
    return [Slice(s.harness, s.seconds + spare / len(kept)) for s in kept]
