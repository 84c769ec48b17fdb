"""`residue promote`: make an input a committed one, with the outcome that is right for it.

The right outcome of a file is what the harness says, unless `--outcome` says otherwise: for an
input that shows a bug, the outcome it must have once the bug is gone. Until then `residue replay`
is red. A bucket is a bug, so there the outcome is asked for and never guessed: what the input ends
as today may be the bug.
"""

import argparse
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci import arguments
from ci.commands.minimise import find_bucket
from ci.exits import Exit, Untrusted, UsageError
from ci.inputs import reference_tree
from ci.inputs.execution import attempt, committed, load, read_input, read_outcomes
from ci.results import Json
from ci.wording import many
from harnesses import outcomes, provenance
from harnesses.outcomes import Outcome
from triage.bucket import Bucket
from triage.intake import COSTS
from triage.prober import ProbeError, Prober

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
WORDS = ("waiting", "established", "closed")
DETAILS = ("suite", "group", "retried", "verdict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue promote`."""
    arguments.bucket(parser)
    arguments.against(parser, "to take its outcome from: what the input ends as there")
    parser.add_argument(
        "--outcome",
        metavar="O",
        help="what it must end as (default for a FILE: what it ends as now): a refusal's tag, or "
        "waiting, established or closed with suite= group= retried= verdict= as they apply",
    )
    parser.add_argument(
        "--name", metavar="N", help="its name in the corpus (default: FILE's, or KIND-BUCKET)"
    )
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
    arguments.json(parser, "what is committed now")


def check_outcome(text: str) -> str:
    """The outcome, if it is one that a harness could give."""
    first, *details = text.split(" ")
    if first not in WORDS and first not in outcomes.tags():
        raise UsageError(f"{first!r} is no refusal's tag and none of {', '.join(WORDS)}")
    for detail in details:
        if detail.partition("=")[0] not in DETAILS or not detail.partition("=")[2]:
            raise UsageError(f"{detail!r} is none of {'= '.join(DETAILS)}= with a value")
    return text


@dataclass(frozen=True)
class Candidate:
    """An input that is to be committed: what it ends as now, and what is wrong with that."""

    harness: str
    name: str
    data: bytes
    found: str | None
    wrong: str


def run(args: argparse.Namespace) -> int:
    """Run `residue promote`."""
    for word, text in (("reason", args.reason), ("source", args.source)):
        if text is not None and not (text.strip() and text.isprintable()):
            raise UsageError(f"a {word} is one line of text, without tabs")
    if args.outcome is not None and args.against is not None:
        raise UsageError("--outcome says what is right, and --against who knows it; give one")
    found = find_bucket(args.file, args.dir)
    if found is None:
        candidate = _of_file(args)
    else:
        store, made = found
        if args.harness not in (None, made.signature.harness):
            raise UsageError(f"{made.id} is a bucket of {made.signature.harness}")
        if made.committed:
            return _committed(made, args.json)
        candidate = _of_bucket(args, made, store.data(made.id))
    if not NAME.fullmatch(candidate.name):
        raise UsageError(f"{candidate.name!r} is no name for an input; give one with --name")
    _must_be_new(candidate)
    return _commit(candidate, _right(candidate, args), args)


def _of_file(args: argparse.Namespace) -> Candidate:
    if args.harness is None:
        raise UsageError(f"whose input is {args.file}? say it with --harness")
    harness = _harness(args.harness)
    file = Path(args.file)
    data = read_input(file)
    found, wrong, _ = attempt(harness, data)
    if found is None and args.outcome is None and args.against is None:
        raise UsageError(
            f"it has no outcome ({wrong}); say with --outcome what it must become, or with "
            "--against which tree is right"
        )
    return Candidate(args.harness, args.name or file.name, data, found, wrong)


def _of_bucket(args: argparse.Namespace, made: Bucket, data: bytes) -> Candidate:
    """The bucket's input, run where it may hang or eat memory."""
    signature = made.signature
    _harness(signature.harness)
    try:
        with Prober(signature.harness) as prober:
            verdict = prober.judge(data)
    except ProbeError as error:
        raise Untrusted(str(error)) from None
    told = args.outcome is not None or args.against is not None
    if not told and (signature.kind not in COSTS or verdict.outcome is None):
        ends = f"; it ends as {verdict.outcome} today" if verdict.outcome else ""
        raise UsageError(
            f"{made.id} ({signature.harness} {signature.name}): what must it end as once the bug "
            f"is gone{ends}? residue promote {made.id} --outcome "
            "TAG|waiting|'established suite=...'|..., or --against TREE"
        )
    name = args.name or f"{signature.name}-{made.id}"
    wrong = verdict.found[0].detail if verdict.found else ""
    return Candidate(signature.harness, name, data, verdict.outcome, wrong)


def _harness(name: str) -> Callable[[bytes], str]:
    if name == "recordings":
        raise UsageError("a recording is no input of a harness: docs/recordings.md says what to do")
    if name == "injection":
        raise UsageError("every injection is made each time: there is none to commit")
    return load(name)


def _right(candidate: Candidate, args: argparse.Namespace) -> str:
    """The outcome that is right for it: the one that is given, a right tree's, or today's."""
    if args.outcome is not None:
        return check_outcome(args.outcome)
    if args.against is None:
        assert candidate.found is not None
        return candidate.found
    try:
        with reference_tree.tree(args.against) as tree, Prober(candidate.harness, tree) as prober:
            ends = prober.ask(candidate.data).outcome
    except ProbeError as error:
        raise Untrusted(f"{args.against}: {error}") from None
    if ends is None:
        raise UsageError(f"it has no outcome in {args.against} either: that tree has the bug too")
    return ends


def _committed(made: Bucket, result: Json) -> int:
    """A wrong outcome is an input's that is committed already; nothing is left to do but to say so.

    So is it with any other bug that a replay of the corpus found.
    """
    print(
        f"corpus/{made.committed} is committed already; residue replay is red until it ends", end=""
    )
    print(f" as {made.signature.expected}" if made.signature.expected else " as its line says")
    result.write({"file": f"corpus/{made.committed}", "outcome": made.signature.expected or None})
    return Exit.CLEAN


def _must_be_new(candidate: Candidate) -> None:
    harness = candidate.harness
    for other in committed(harness):
        if other.read_bytes() == candidate.data:
            raise UsageError(f"{harness} has this input already, as {other.name}")
        if other.name == candidate.name:
            raise UsageError(f"{harness} has another input called {other.name}; give --name")


def _commit(candidate: Candidate, outcome: str, args: argparse.Namespace) -> int:
    harness, name, data = candidate.harness, candidate.name, candidate.data
    table = dict(read_outcomes(harness))
    table[name] = Outcome(outcome, args.reason or "")
    folder = outcomes.folder(harness)
    folder.mkdir(parents=True, exist_ok=True)
    # First the input, whole or not at all, then what is said of it: cut short in between, replay
    # is red and says which input has no outcome.
    aside = folder.parent / f".{name}.{os.getpid()}"
    aside.write_bytes(data)
    aside.replace(folder / name)
    outcomes.write(harness, table)
    provenance.write({**provenance.read(), f"{harness}/{name}": args.source})
    digest = hashlib.sha256(data).hexdigest()
    print(f"corpus/{harness}/{name}\t{outcome}")
    print(f"sha256 {digest}, {many(len(data), 'byte')}")
    if outcome != candidate.found or candidate.wrong:
        ends = candidate.wrong or candidate.found
        print(f"today it ends otherwise ({ends}): residue replay is red until that is so")
    args.json.write(
        {
            "file": f"corpus/{harness}/{name}",
            "outcome": outcome,
            "sha256": digest,
            "bytes": len(data),
            "today": candidate.found,
            "wrong": candidate.wrong,
        }
    )
    return Exit.CLEAN
