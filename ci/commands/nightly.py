"""`residue nightly`: everything that takes longer than a change can wait for.

What happens is `ci.night.plan.STEPS`; how, `ci.night.runner`.
"""

import argparse
import sys
from pathlib import Path

from ci import arguments, output
from ci.exits import Exit, UsageError
from ci.night.runner import Asked, run_night
from ci.night.state import Night
from ci.output import BUILD, shown
from ci.process import ROOT, Stop
from ci.progress import Progress, clock
from mutants.settings import SUITE

VERDICTS = {
    Exit.CLEAN: "nothing found",
    Exit.FOUND: "something was found",
    Exit.UNTRUSTED: "something was not watched",
    Exit.INTERRUPTED: "interrupted; what was found until then is kept",
}
# More lines of a finding than this are read in the report.
SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue nightly`."""
    parser.add_argument(
        "--minutes",
        type=arguments.positive,
        default=60,
        metavar="N",
        help="how long all of it may take (default 60); fewer than 4 only show that it works",
    )
    arguments.jobs(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        default=str(BUILD / "nightly"),
        help="where the nights, their history and the kept corpus lie (default build/nightly)",
    )
    arguments.json(parser, "night.json, what the night has done and found,")
    arguments.quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Run `residue nightly`."""
    root = Path(args.out).absolute()
    if output.inside(root, ROOT / SUITE.corpus):
        raise UsageError(f"{args.out} is in the committed corpus, which no fuzzer writes to")
    with Stop() as stop:
        progress = Progress(quiet=args.quiet)
        night = run_night(Asked(root, float(args.minutes), args.jobs), stop, progress)
    print(f"\n{text(night)}", end="")
    args.json.write(night.as_data())
    sys.stdout.flush()
    return int(night.verdict)


def text(night: Night) -> str:
    """The night as a person reads it."""
    told = [f"nightly: {VERDICTS[night.verdict]}", ""]
    rows = [("step", "state", "exit", "time", "found", "")]
    for line in night.steps:
        code = "-" if line.exit is None else str(line.exit)
        rows.append(
            (line.name, line.state, code, clock(line.seconds), str(line.findings), line.why)
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        told.append("  ".join([*cells, row[-1]]).rstrip())
    told += ["", *_figures(night)]
    for number, finding in enumerate(night.findings, 1):
        told += ["", f"finding {number}: {finding['rule']}: {finding['message']}"]
        told += [f"  {line}" for line in finding["detail"].splitlines()[:SHOWN]]
    if night.untrusted:
        told += ["", "not to be trusted because", *(f"  {why}" for why in night.untrusted)]
    if night.notes:
        told += ["", "notes", *(f"  {note}" for note in night.notes)]
    told.append("")
    for name in ("report.html", "new-inputs.patch", "night.json"):
        path = night.folder / name
        if path.exists() and path.stat().st_size:
            told.append(shown(path))
    return "\n".join(told) + "\n"


def _figures(night: Night) -> list[str]:
    """What was done, a line a step that counts something."""
    told = []
    if night.campaign is not None:
        harnesses = night.campaign["harnesses"].items()
        runs = ", ".join(f"{name} {one['executions']:,}" for name, one in harnesses)
        told.append(f"executions: {runs}")
        edges = ", ".join(f"{name} {one['edges']} (+{one['gained']})" for name, one in harnesses)
        told.append(f"edges, and how many no seed reached: {edges}")
        reach = night.campaign["coverage"]
        if reach:
            told.append(
                f"coverage over {SUITE.package}/: {reach['line_percent']}% of lines, "
                f"{reach['branch_percent']}% of branches"
            )
    if night.mutation is not None:
        score, last = night.mutation["score"], night.mutation["last_score"]
        was = "the first time" if last is None else f"{last}% the last time"
        told.append(
            f"mutation of {night.mutation['slice']}: "
            + ("not judged whole" if score is None else f"{score}% ({was})")
        )
    if night.machine:
        told.append(f"the state machine: {night.machine}")
    if night.injection:
        told.append(f"injections: {night.injection}")
    if night.buckets:
        states = [bucket["state"] for bucket in night.buckets]
        counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
        told.append(f"buckets: {counts}")
    return told
