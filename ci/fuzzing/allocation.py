"""Who fuzzes next: the harnesses' turns on the processes of a campaign.

Every share, mostly one a harness, has a turn before any has a second. After that a turn goes to
the share that has had the least of the last turns for its energy, which is its weight and the edges
that it found in them: time goes where it still finds. One that finds nothing is not forgotten:
who is in none of the last turns is next. All of it follows from the turns so far and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mutants.settings import SUITE

WEIGHTS = SUITE.weights
# The turns that are looked back at, for each share: what was found before says little of now, and
# this often a share that finds nothing is tried again.
RECENT = 3
# A turn is so long that each share may have this many, between these seconds. Starting a fuzzer
# takes two of them and its seeds once more; a worker of a cluster that is lost takes a turn's finds
# with it.
TURNS = 8
SHORT, LONG = 10.0, 300.0
# Less time than this is not worth the start of a process.
SHORTEST = 4.0


@dataclass(frozen=True)
class Share:
    """Who may have a turn: a harness, and how much of it."""

    harness: str
    weight: float = 1.0
    value_profile: bool = False
    """Its turns look at the values that are compared too: slow, so it is one beside the others."""


@dataclass(frozen=True)
class Turn:
    """A share's time on a process, in seconds, and the edges that it found and its seeds had not.

    Of one that is not over yet, the time that it was given and what it has found so far.
    """

    share: Share
    seconds: float
    edges: int = 0


def shares(
    harnesses: Sequence[str],
    weights: Mapping[str, float] | None = None,
    value_profile: str | None = None,
) -> list[Share]:
    """The shares of a campaign: one a harness, and one more for that of `value_profile`.

    `weights` go before WEIGHTS.
    """
    parts = {**WEIGHTS, **(weights or {})}
    found = [Share(harness, parts.get(harness, 1.0)) for harness in harnesses]
    return found if value_profile is None else [*found, Share(value_profile, value_profile=True)]


def turn_seconds(count: int, seconds: float, jobs: int) -> float:
    """How long a turn is when `count` shares have `jobs` processes for so many seconds.

    In a run that is too short for it each share's part of the time, so that all have one.
    """
    part = seconds * jobs / count
    return min(max(part / TURNS, SHORT), LONG, max(part, SHORTEST), seconds)


def following(shares: Sequence[Share], turns: Sequence[Turn], usual: float) -> Share:
    """Who is next after these turns, in the order of their beginnings; `usual` is a turn's seconds.

    Of two that are next alike, the one that comes first in `shares`.
    """
    recent = turns[-RECENT * len(shares) :]

    def due(share: Share) -> float:
        own = [turn for turn in recent if turn.share == share]
        had = sum(turn.seconds for turn in own)
        # One edge in a usual turn is as much as the weight alone.
        found = sum(turn.edges for turn in own) * usual / max(had, usual)
        return had / (share.weight * (1 + found))

    return min(shares, key=due)
