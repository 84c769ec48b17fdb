"""Floors: what a campaign must have done before its "nothing found" means anything.

They are far below what is usual, so that a slow machine passes, and far above what a run does that
is broken: a harness that returns at once, an engine that was imported before it was instrumented,
a corpus folder that was empty. Time is the processes' own processor time: a machine that is busy
with other work gives them less of it, and is not broken for that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ci.coverage.covered import Reach
from ci.wording import many
from mutants.settings import SUITE

EXECUTIONS_A_SECOND = SUITE.floor_executions
EDGES = SUITE.floor_edges
LINES, BRANCHES = SUITE.floor_lines, SUITE.floor_branches
# A process executes its first input after three seconds of processor time. One that has had less
# than this and executed nothing was not reached; one that has had more does not fuzz.
START = 20.0


@dataclass(frozen=True)
class Done:
    """What one harness did."""

    harness: str
    executions: int
    cpu: float
    """Seconds of processor time."""
    edges: int
    imported: Reach
    merged: Reach | None
    gave_up: bool


def unreached(done: Done) -> bool:
    """Whether there was no time for a harness to show what it can: nothing speaks against it."""
    return not done.executions and not done.gave_up and done.cpu < START


def under_floor(done: Done) -> list[str]:
    """Why one harness's part of a run proves nothing; empty when it stands."""
    if unreached(done):
        return []
    why = []
    if done.gave_up:
        why.append(f"{done.harness}: a shard was given up, its processes ended at their start")
    if done.executions == 0:
        return [*why, f"{done.harness}: nothing was executed"]
    least = EXECUTIONS_A_SECOND * done.cpu
    if done.executions < least:
        why.append(
            f"{done.harness}: {many(done.executions, 'execution')} in {done.cpu:.0f} s of "
            f"processor time, fewer than {least:.0f}"
        )
    if done.edges < EDGES:
        edges = many(done.edges, "edge")
        why.append(f"{done.harness}: {edges}, so {SUITE.package} was not instrumented")
    if done.merged is None:
        why.append(f"{done.harness}: its coverage could not be measured")
    elif not done.imported.lost(done.merged):
        why.append(f"{done.harness}: its inputs reach nothing that its import does not")
    return why


def unlooked(
    harness_oracles: Iterable[tuple[str, str]],
    looked: Mapping[str, Mapping[str, int]],
    fuzzed: Iterable[str],
) -> list[str]:
    """Which oracles say nothing although harnesses that have them were `fuzzed`, in words.

    `looked` is how often each did, by harness and oracle.
    """
    had: dict[str, int] = {}
    names = set(fuzzed)
    for harness, oracle in harness_oracles:
        if harness in names:
            had[oracle] = had.get(oracle, 0) + looked.get(harness, {}).get(oracle, 0)
    return [f"the oracle {name} never looked at an input" for name in had if not had[name]]


def coverage_under_floor(total: Reach) -> list[str]:
    """Why the coverage of a whole campaign is too little to speak of; empty when it stands."""
    why = []
    if total.line_percent < LINES:
        why.append(f"{total.line_percent:.1f}% of all lines reached, under {LINES:.0f}%")
    if total.branch_percent < BRANCHES:
        why.append(f"{total.branch_percent:.1f}% of all branches reached, under {BRANCHES:.0f}%")
    return why
