"""The steps of a night: what each does, what starts it, how long it may take, who reads it.

Of the minutes, what is left when every step has its `fixed` seconds is shared by their `part`. It
is shared anew before each step: one that took longer or less changes what the later ones get.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.night import judge
from ci.night.context import Context
from ci.night.state import Line
from mutants.settings import SUITE


@dataclass(frozen=True)
class Step:
    """One row of the table. Times are in seconds."""

    name: str
    does: str
    argv: Callable[[Context, Path, float], list[str]]
    judge: Callable[[Context, Line, Path, int], None]
    needs: tuple[str, ...] = ()
    """Modules that it cannot do without."""
    part: float = 0.0
    fixed: float = 5.0
    """What it usually takes beside its share."""
    least: float = 0.0
    most: float = float("inf")
    """A share that is less is no use, and one that is more."""
    grace: float = 120.0
    """How much longer than all that it may take before it is cut."""
    env: Callable[[Context, float], dict[str, str]] | None = None
    answers: bool = False
    """Its standard output is a JSON file of its folder."""
    makes: bool = False
    """It makes its folder itself."""
    always: bool = False
    """It is done after an interruption too, quickly."""


def share(steps: Sequence[Step], left: float) -> float:
    """The seconds of the first of the steps that are still to do, when so many are left for all."""
    first = steps[0]
    if not first.part:
        return first.least
    spare = max(0.0, left - sum(step.fixed for step in steps))
    # A step that cannot use its share leaves the rest of it to the others.
    open_, given = [step for step in steps if step.part], {}
    while True:
        whole = sum(step.part for step in open_)
        given = {step.name: spare * step.part / whole for step in open_}
        full = [step for step in open_ if given[step.name] > step.most]
        if not full:
            return max(first.least, given[first.name])
        if first in full:
            return first.most
        spare -= sum(step.most for step in full)
        open_ = [step for step in open_ if step not in full]


def _residue(*words: str) -> list[str]:
    return [sys.executable, "-m", "ci", *words]


def _timed(context: Context, folder: Path, seconds: float, *words: str) -> list[str]:
    """A command that is given its seconds, and makes its folder itself."""
    argv = _residue(*words, "--seconds", str(int(seconds)), "--jobs", str(context.jobs))
    return [*argv, "--out", str(folder)]


def _replay(context: Context, folder: Path, seconds: float) -> list[str]:
    return _residue("replay", "--json", "-")


def _campaign(context: Context, folder: Path, seconds: float) -> list[str]:
    argv = _timed(context, folder, seconds, "campaign")
    argv += ["--value-profile", context.profiled]
    if context.corpus.is_dir():
        argv += ["--seeds", str(context.corpus)]
    for harness, weight in context.weights.items():
        argv += ["--weight", f"{harness}={weight}"]
    return argv


def _patch(context: Context, folder: Path, seconds: float) -> list[str]:
    new = Path(context.night.line("campaign").folder or "campaign") / "new"
    target = context.night.folder / "new-inputs.patch"
    new = context.night.folder / new
    return [sys.executable, "-m", "ci.night.patch", str(new), str(target), context.night.name]


def _recordings(context: Context, folder: Path, seconds: float) -> list[str]:
    return _timed(context, folder, seconds, "fuzz", "recordings")


def _inject(context: Context, folder: Path, seconds: float) -> list[str]:
    return _timed(context, folder, seconds, "inject")


# The state machine's test is as many tests as the pool has shapes, and they share the processes.
MACHINES = 4


def _machine(context: Context, folder: Path, seconds: float) -> list[str]:
    argv = [sys.executable, "-m", "pytest", "-q", "-n", str(min(context.jobs, MACHINES))]
    # A test of the nightly profile takes as long as it is given; the step's own limit is above it.
    return [*argv, "--timeout", "0", "-p", "no:cacheprovider", SUITE.state_machine]


def _machine_env(context: Context, seconds: float) -> dict[str, str]:
    return {
        "HYPOTHESIS_PROFILE": "nightly",
        "HYPOTHESIS_SECONDS": str(int(seconds * min(context.jobs, MACHINES) / MACHINES)),
        # Examples that failed are tried first the next night, wherever they were found.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(context.root / "hypothesis"),
    }


def _mutate(context: Context, folder: Path, seconds: float) -> list[str]:
    argv = _residue("mutate", *context.slice.arguments, "--jobs", str(context.jobs))
    return [*argv, "--json", str(folder / "results.json")]


# Where nothing new was found nothing is made smaller, and this costs no time; what was found is
# worth being late for.
MINIMISE = 60


def _triage(context: Context, folder: Path, seconds: float) -> list[str]:
    argv = _residue("triage", str(context.root / "buckets"))
    for path in judge.takes(context.night):
        argv += ["--from", str(path)]
    if not context.hurried:
        argv += ["--minimise", str(max(MINIMISE, int(seconds))), "--replay"]
    return [*argv, "--json", str(folder / "buckets.json")]


STEPS = (
    Step(
        "replay",
        "every committed input, against its committed outcome",
        _replay,
        judge.replay,
        fixed=15,
        grace=600,
        answers=True,
    ),
    Step(
        "campaign",
        "every harness under the fuzzer, from the committed and the kept inputs",
        _campaign,
        judge.campaign,
        needs=("atheris", "coverage"),
        part=5,
        fixed=75,
        least=30,
        grace=1200,
        makes=True,
    ),
    Step(
        "patch",
        "the new inputs as one patch",
        _patch,
        judge.patch,
        needs=("git",),
        grace=300,
        answers=True,
        always=True,
    ),
    Step(
        "mutate",
        f"the mutants of one slice of {SUITE.package}",
        _mutate,
        judge.mutate,
        needs=("mutmut", "pytest", "hypothesis"),
        part=2,
        least=45,
        most=120,
        grace=900,
    ),
    Step(
        "machine",
        "the state machine's test, the long profile",
        _machine,
        judge.machine,
        needs=("hypothesis", "pytest", "xdist", "pytest_timeout"),
        part=2,
        fixed=10,
        least=20,
        # Hypothesis takes up to five minutes to shrink what fails.
        grace=600,
        env=_machine_env,
    ),
    Step(
        "inject",
        "an exception at every place of every call",
        _inject,
        judge.inject,
        part=2,
        # The planted faults come first.
        fixed=30,
        least=15,
        # All places there are take less.
        most=900,
        grace=300,
        makes=True,
    ),
    Step(
        "recordings",
        "recorded conversations, mutated",
        _recordings,
        judge.recordings,
        part=1,
        least=10,
        makes=True,
    ),
    Step(
        "triage",
        "what was found, sorted into buckets",
        _triage,
        judge.triage,
        part=0.5,
        fixed=10,
        least=5,
        most=120,
        grace=600,
        always=True,
    ),
)
