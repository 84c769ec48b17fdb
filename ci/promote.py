"""`residue promote`: make an input a committed one, with the outcome that is right for it.

The right outcome is what the harness says, unless `--outcome` says otherwise: for an input that
shows a bug, the outcome it must have once the bug is gone. Until then `residue replay` is red.
"""

import argparse
import hashlib
import os
import re
from pathlib import Path

from ci.exits import Exit, UsageError
from ci.replay import attempt, committed, load, read_input, read_outcomes
from harnesses import outcomes, provenance
from harnesses.outcomes import Outcome

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
WORDS = ("waiting", "established", "closed")
DETAILS = ("suite", "group", "retried", "verdict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue promote`."""
    parser.add_argument("file", metavar="FILE", help="the input")
    parser.add_argument("--harness", required=True, metavar="H", help="whose input it is")
    parser.add_argument(
        "--outcome",
        metavar="O",
        help="what it must end as (default: what it ends as now): a refusal's tag, or waiting, "
        "established or closed with suite= group= retried= verdict= as they apply",
    )
    parser.add_argument("--name", metavar="N", help="its name in the corpus (default: FILE's)")
    parser.add_argument(
        "--reason",
        metavar="R",
        help="why its outcome is right, when that surprises; kept beside it",
    )
    parser.add_argument(
        "--source",
        default="found by fuzzing",
        metavar="S",
        help="where it is from, for corpus/provenance.tsv (default: found by fuzzing)",
    )


def check_outcome(text: str) -> str:
    """The outcome, if it is one that a harness could give."""
    from engine import Refusal

    first, *details = text.split(" ")
    if first not in WORDS and first not in {refusal.value for refusal in Refusal}:
        raise UsageError(f"{first!r} is no refusal's tag and none of {', '.join(WORDS)}")
    for detail in details:
        if detail.partition("=")[0] not in DETAILS or not detail.partition("=")[2]:
            raise UsageError(f"{detail!r} is none of {'= '.join(DETAILS)}= with a value")
    return text


def run(args: argparse.Namespace) -> int:
    """Run `residue promote`."""
    harness = load(args.harness)
    file = Path(args.file)
    data = read_input(file)
    name = args.name or file.name
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for an input; give one with --name")
    for word, text in (("reason", args.reason), ("source", args.source)):
        if text is not None and not (text.strip() and text.isprintable()):
            raise UsageError(f"a {word} is one line of text, without tabs")
    for other in committed(args.harness):
        if other.read_bytes() == data:
            raise UsageError(f"{args.harness} has this input already, as {other.name}")
        if other.name == name:
            raise UsageError(f"{args.harness} has another input called {name}; give --name")
    found, wrong = attempt(harness, data)
    if found is None and args.outcome is None:
        raise UsageError(f"it has no outcome ({wrong}); say with --outcome what it must become")
    right = check_outcome(args.outcome) if args.outcome is not None else found
    assert right is not None
    table = dict(read_outcomes(args.harness))
    table[name] = Outcome(right, args.reason or "")
    folder = outcomes.folder(args.harness)
    folder.mkdir(parents=True, exist_ok=True)
    # First the input, whole or not at all, then what is said of it: cut short in between, replay
    # is red and says which input has no outcome.
    aside = folder.parent / f".{name}.{os.getpid()}"
    aside.write_bytes(data)
    aside.replace(folder / name)
    outcomes.write(args.harness, table)
    provenance.write({**provenance.read(), f"{args.harness}/{name}": args.source})
    print(f"corpus/{args.harness}/{name}\t{right}")
    print(f"sha256 {hashlib.sha256(data).hexdigest()}, {len(data)} bytes")
    if right != found:
        print(f"today it ends otherwise ({found or wrong}): residue replay is red until that is so")
    return Exit.CLEAN
