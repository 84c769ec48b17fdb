"""The shape of report.json: the types of the figures, from which the rest of a report is made.

None is "not measured", wherever a type allows it. docs/reports.md says what each key is.
"""

from __future__ import annotations

from typing import TypedDict

from ci.fuzzing.summary import CanaryRow
from mutants.verdicts import Verdict


class Banner(TypedDict):
    """The verdict: its colour, the exit code, a sentence and the reasons."""

    colour: str
    exit: int | None
    sentence: str
    why: list[str]


class Action(TypedDict):
    """What to do next, and the command that does it."""

    do: str
    command: str


class Step(TypedDict):
    """A step of a night."""

    name: str
    does: str
    state: str
    exit: int | None
    seconds: float | None
    why: str
    findings: int | None


class Finding(TypedDict):
    """One finding, or `findings` of one rule that are told together."""

    id: str | None
    findings: int
    harness: str
    kind: str
    oracle: str
    message: str
    detail: str
    frames: list[str]
    traceback: list[str]
    state: str | None
    red: bool
    reproduced: bool
    note: str
    reason: str
    expires: str
    input: str
    first_seen: str
    last_seen: str
    size: int | None
    count: int | None
    reproduce: str


class Floor(TypedDict):
    """What must be reached at least, next to what was."""

    what: str
    floor: float
    was: float | None
    cleared: bool


class Trust(TypedDict):
    """Whether the run can be trusted, and what speaks for it."""

    untrusted: list[str]
    notes: list[str]
    canaries: list[CanaryRow]
    oracles: dict[str, int]
    floors: list[Floor]


class Harness(TypedDict):
    """What one harness did. Times are in seconds, `rate` is a second of processor time."""

    name: str
    committed: int | None
    edges: int | None
    executions: int | None
    findings: int | None
    found: int | None
    new: int | None
    rate: float | None
    seconds: float | None
    shards: int
    line_percent: float | None
    branch_percent: float | None
    new_folder: str
    kept_all: str


class File(TypedDict):
    """Coverage of one file; what is missed is as coverage.py writes it, `3-5 9` and `4>7 8>-1`."""

    file: str
    lines: int | None
    all_lines: int | None
    branches: int | None
    all_branches: int | None
    missed_lines: str
    missed_branches: str
    sha256: str | None


class Coverage(TypedDict):
    """Coverage by all merged inputs; the changes are since the night before, in points."""

    line_percent: float | None
    branch_percent: float | None
    lines: int | None
    all_lines: int | None
    branches: int | None
    all_branches: int | None
    line_change: float | None
    branch_change: float | None
    files: list[File]


class CurvePoint(TypedDict):
    """How far a harness was, `t` seconds after the fuzzing began."""

    harness: str
    t: float
    executions: float | None
    edges: float | None
    finds: float | None


class Night(TypedDict):
    """A row of the history; `executions`, `edges` and `inputs` are by harness."""

    night: str
    exit: int | None
    seconds: float | None
    commit: str
    executions: dict[str, int]
    edges: dict[str, int]
    inputs: dict[str, int]
    line_percent: float | None
    branch_percent: float | None
    slice: str
    score: float | None
    findings: dict[str, int]


class Cell(TypedDict):
    """A refusal in a state at a message: how many inputs reach it, and the first of them."""

    state: str
    message: str
    refusal: str
    witness: str
    inputs: int
    committed: int


class Refusals(TypedDict):
    """Refusal coverage: `cells` are the possible ones, `unexpected` what was reached besides."""

    states: list[str]
    possible: int
    reached: int
    committed: int
    cells: list[Cell]
    unexpected: list[Cell]
    unreachable: dict[str, str]


class Mutant(TypedDict):
    """A mutant that nothing killed; `argued` is the ledger's argument, empty without one."""

    name: str
    file: str
    function: str
    line: int
    operator: str
    verdict: Verdict
    diff: str
    argued: str


class Survivors(TypedDict):
    """What mutants came to, and those that are left; of these the first are shown."""

    slice: str | None
    score: float | None
    last_score: float | None
    counts: dict[str, int]
    results: str | None
    read: bool
    files: dict[str, dict[str, int]]
    left: int
    by_function: dict[str, dict[str, int]]
    shown: list[Mutant]
    argued: int
    argued_shown: list[Mutant]


class Size(TypedDict):
    """How many inputs are of at most so many bytes, and above the size before."""

    up_to: int | None
    inputs: int


class Input(TypedDict):
    """An input of the corpus."""

    name: str
    bytes: int | None
    outcome: str


class Corpus(TypedDict):
    """The corpus of one harness."""

    harness: str
    inputs: int | None
    committed: int | None
    bytes: int | None
    sizes: list[Size]
    outcomes: dict[str, int]
    largest: list[Input]
    new: list[Input]


class Figures(TypedDict):
    """A report. `next` is empty until somebody asks what to do (ci/report/actions.py)."""

    format: int
    kind: str
    started: str | None
    commit: str | None
    seconds: float | None
    fuzzing_seconds: float | None
    jobs: int | None
    steps: list[Step] | None
    findings: list[Finding]
    trust: Trust
    harnesses: list[Harness] | None
    left_out: list[str]
    coverage: Coverage | None
    curve: list[CurvePoint] | None
    history: list[Night] | None
    refusals: Refusals | None
    survivors: Survivors | None
    corpus: list[Corpus] | None
    verdict: Banner
    next: list[Action]
