"""`residue replay`: inputs without a fuzzer, the outcome of each, and whether it is the right one.

It runs in this process, so a debugger can be put on it. An input that takes longer than any could
is stopped by an alarm and is a finding like another.
"""

import argparse
import importlib
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ci import arguments
from ci.exits import Exit, Untrusted, UsageError
from ci.inputs.execution import (
    INJECTION,
    RECORDINGS,
    attempt,
    committed,
    load,
    read_input,
    read_outcomes,
)
from ci.wording import many
from harnesses import HARNESSES, outcomes
from harnesses.outcomes import Outcome
from harnesses.signature import signature
from triage.signature import raised

# What is wrong with an outcome whose input is not there.
GONE = "is no input"


@dataclass(frozen=True)
class Replayed:
    """One input: what it ended as, and what is wrong with that (nothing, mostly)."""

    harness: str
    file: str
    outcome: str | None
    expected: str | None
    wrong: str = ""
    committed: bool = True
    bucket: str = ""
    """The bucket that triage would sort it into; none for an outcome, or a hang."""
    frames: tuple[str, ...] = ()
    """Where it went wrong, innermost last."""
    trace: str = ""

    def as_data(self) -> dict[str, object]:
        """As `--json` has it."""
        return {name: value for name, value in vars(self).items() if name != "trace"}


class Ended(NamedTuple):
    """How an input ended: an outcome, or what an oracle or an exception said against it."""

    outcome: str | None
    wrong: str = ""
    error: Exception | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue replay`."""
    parser.add_argument("harness", nargs="?", metavar="HARNESS", help="default: every harness")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="default: every committed input of the harness"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="rewrite the committed outcomes that differ, and show the difference",
    )
    arguments.json(parser, "a list of outcomes")
    arguments.quiet(parser, "only what is wrong, and how many there are")


def only_recordings(inputs: list[tuple[Path, bytes]]) -> None:
    """UsageError for a file that is no recording: it says nothing about the engine."""
    recorded = importlib.import_module("harnesses.recordings")
    if not inputs:
        raise UsageError("which recordings? residue replay recordings FILE...")
    for file, data in inputs:
        try:
            recorded.read(data)
        except recorded.FormatError as error:
            raise UsageError(f"{file}: {error}") from None


def only_injections(inputs: list[tuple[Path, bytes]]) -> None:
    """UsageError for a file that is no injection."""
    injection = importlib.import_module("harnesses.injection")
    if not inputs:
        raise UsageError("which injections? residue replay injection FILE...")
    for file, data in inputs:
        try:
            injection.read(data)
        except ValueError as error:
            raise UsageError(f"{file}: {error}") from None


def replay(harness: str, files: list[Path] | None) -> Iterator[Replayed]:
    """Replay the files, or without any the committed inputs, against the committed outcomes."""
    run = load(harness)
    table = read_outcomes(harness)
    folder = outcomes.folder(harness).resolve()
    given = files if files is not None else committed(harness)
    inputs = [(file, read_input(file)) for file in given]
    if harness == RECORDINGS:
        only_recordings(inputs)
    if harness == INJECTION:
        only_injections(inputs)
    for file, data in inputs:
        ours = file.resolve().parent == folder
        expected = table.get(file.name) if ours else None
        outcome, wrong, error = attempt(run, data)
        if not wrong and ours and expected is None:
            wrong = "has no committed outcome"
        elif not wrong and expected is not None and expected.outcome != outcome:
            wrong = f"expected {expected.outcome}"
        name = file.name if ours else str(file)
        made = Replayed(harness, name, outcome, expected and expected.outcome, wrong, ours)
        yield made if error is None else _located(made, error)
    if files is None:
        for name in sorted(set(table) - {file.name for file in given}):
            yield Replayed(harness, name, None, table[name].outcome, GONE)


def _located(made: Replayed, error: Exception) -> Replayed:
    """With its bucket, and with where and how it went wrong."""
    detail = "".join(traceback.format_exception_only(error))
    found = raised(made.harness, signature(error), detail)
    trace = "".join(traceback.format_exception(error))
    return replace(made, bucket=found.id, frames=found.frames, trace=trace)


def update(harness: str, results: list[Replayed]) -> tuple[list[Replayed], list[str]]:
    """Commit what the inputs came to; the results as they are then, and what changed.

    A finding has no outcome to commit and stays what it is, and so does a file that is not
    committed.
    """
    table = dict(read_outcomes(harness))
    settled: list[Replayed] = []
    changes: list[str] = []
    for result in results:
        gone = result.wrong == GONE
        if not result.committed or (result.outcome is None and not gone):
            settled.append(result)
            continue
        if result.outcome == result.expected:
            settled.append(result)
            continue
        if result.expected is not None:
            changes.append(f"- {result.file}\t{result.expected}")
        if result.outcome is None:
            del table[result.file]
        else:
            changes.append(f"+ {result.file}\t{result.outcome}")
            reason = table[result.file].reason if result.file in table else ""
            table[result.file] = Outcome(result.outcome, reason)
            settled.append(replace(result, expected=result.outcome, wrong=""))
    if changes:
        outcomes.write(harness, table)
    return settled, changes


def run(args: argparse.Namespace) -> int:
    """Run `residue replay`."""
    harnesses = [args.harness] if args.harness else list(HARNESSES)
    files = [Path(file) for file in args.files] or None
    everything: list[Replayed] = []
    for harness in harnesses:
        results = []
        for result in replay(harness, files):
            results.append(result)
            if result.wrong or not args.quiet:
                print(_line(result), flush=True)
            if result.trace and args.verbose:
                print(textwrap.indent(result.trace, "  "), end="", flush=True)
        if args.update:
            results, changes = update(harness, results)
            for change in changes:
                print(change)
        everything += results
    wrong = sum(bool(result.wrong) for result in everything)
    inputs = many(len(everything), "input")
    print(f"{inputs}, {wrong} wrong{' now' if args.update else ''}")
    args.json.write([result.as_data() for result in everything])
    if not everything:
        raise Untrusted("there is no committed input to replay")
    return Exit.FOUND if wrong else Exit.CLEAN


def _line(result: Replayed) -> str:
    shown = result.outcome if result.outcome is not None else "-"
    line = f"{result.harness}\t{result.file}\t{shown}"
    if not result.wrong:
        return line
    line = f"{line}\tWRONG: {result.wrong}"
    if not result.bucket:
        return line
    return f"{line} (bucket {result.bucket}, at {' > '.join(result.frames) or 'no frame of ours'})"
