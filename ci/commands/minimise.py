"""`residue minimise`: an input made smaller that shows the same bug, one step after the other.

FILE stays as it is; the smaller input is written beside it. With the id of a bucket instead it is
the bucket's input that is made smaller, in the store.
"""

import argparse
import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ci import arguments, results
from ci.commands import triage
from ci.exits import Exit, Untrusted, UsageError
from ci.inputs import reference_tree
from ci.inputs.execution import load, read_input
from ci.inputs.shrink import shrink
from ci.output import real, shown
from ci.progress import Line
from ci.results import Json
from ci.wording import many
from triage.bucket import Bucket
from triage.minimise import Minimiser, NotReproduced
from triage.prober import ProbeError, Prober
from triage.signature import Signature, outcome
from triage.store import Store, StoreError

SECONDS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue minimise`."""
    arguments.bucket(parser)
    arguments.seconds(parser, "for how long to try", SECONDS)
    parser.add_argument(
        "--out", metavar="FILE", help="where the smaller input goes (default: FILE.smaller)"
    )
    arguments.against(
        parser,
        "to make a wrong outcome smaller: here an input must end as FILE does, and there as FILE "
        "does there",
    )
    arguments.json(parser, "how small it is now")
    arguments.quiet(parser)


def find_bucket(named: str, folder: str | None) -> tuple[Store, Bucket] | None:
    """The bucket of that id, or of the only id that begins so; None for the name of a file.

    Raises UsageError for a name that is neither.
    """
    if Path(named).exists():
        return None
    folders = [folder] if folder is not None else [str(triage.STORE), str(triage.NIGHTS)]
    stores = [triage.open_store(one) for one in folders]
    found = {
        name: (store, made)
        for store in reversed(stores)
        for name, made in store.buckets.items()
        if named and name.startswith(named)
    }
    if len(found) > 1:
        raise UsageError(f"{named} begins the ids of {many(len(found), 'bucket')}")
    if not found:
        where = " or ".join(shown(store.folder.absolute()) for store in stores)
        raise UsageError(f"{named} is neither a file nor a bucket of {where}")
    return next(iter(found.values()))


def run(args: argparse.Namespace) -> int:
    """Run `residue minimise`."""
    found = find_bucket(args.file, args.dir)
    line = Line("minimise", quiet=args.quiet)
    try:
        return _bucket(args, *found, line) if found else _file(args, line)
    except NotReproduced as error:
        raise Untrusted(f"{args.file}: {error}; nothing was changed") from None
    except ProbeError as error:
        raise Untrusted(str(error)) from None
    except StoreError as error:
        raise UsageError(str(error)) from None
    finally:
        line.end()


def _bucket(args: argparse.Namespace, store: Store, made: Bucket, line: Line) -> int:
    harness = made.signature.harness
    if args.harness not in (None, harness) or args.out is not None:
        raise UsageError(f"{made.id} is a bucket of {harness}: its input stays in the store")
    if made.signature.kind == "outcome" and args.against is None:
        raise UsageError(_unjudged(made.id))
    with store.writing(), ExitStack() as stack:
        prober = stack.enter_context(Prober(harness))
        beside = _beside(args.against, harness, stack)
        before = store.buckets[made.id].size
        work = shrink(store, made, prober, args.seconds, line, beside)
    line.end()
    shows = f"{harness} {made.signature.name}"
    _say(args.json, Smaller(harness, shows, store.input(made.id), before, work))
    return Exit.CLEAN


def _file(args: argparse.Namespace, line: Line) -> int:
    if args.harness is None:
        raise UsageError(f"whose input is {args.file}? say it with --harness")
    load(args.harness)
    file = Path(args.file)
    data = read_input(file)
    out = Path(args.out) if args.out is not None else file.with_name(f"{file.name}.smaller")
    if real(out).parent == real(file).parent and out.name == file.name:
        raise UsageError(f"{out} is the input itself; name another file")
    results.check(str(out))
    with ExitStack() as stack:
        prober = stack.enter_context(Prober(args.harness))
        beside = _beside(args.against, args.harness, stack)
        wanted = _wanted(prober, beside, data, args.file)
        work = Minimiser(prober, wanted, data, args.seconds, report=line, right=beside)
        try:
            work.run()
        finally:
            # Also when it was interrupted: the smallest so far is worth as much.
            line.end()
            if work.checked not in (b"", data):
                results.write(str(out), work.checked)
                shows = f"{args.harness} {wanted.name}"
                _say(args.json, Smaller(args.harness, shows, out, len(data), work))
    if work.checked == data:
        told = f"{many(len(data), 'byte')}, and nothing could be left out"
        print(f"{args.file}: {told}; {many(work.runs, 'run')}")
        args.json.write(Smaller(args.harness, wanted.name, file, len(data), work).as_data())
    return Exit.CLEAN


def _wanted(prober: Prober, beside: Prober | None, data: bytes, name: str) -> Signature:
    """What an input shows and must go on to show; NotReproduced when it shows nothing."""
    verdict = prober.judge(data)
    if verdict.found:
        return verdict.found[0].signature
    if beside is not None and verdict.outcome is not None:
        expected = beside.ask(data).outcome
        if expected is not None and expected != verdict.outcome:
            return outcome(prober.harness, expected, verdict.outcome)
        raise NotReproduced(f"it ends as {verdict.outcome} here and there")
    raise NotReproduced(f"it shows nothing: it ends as {verdict.outcome}")


def _beside(against: str | None, harness: str, stack: ExitStack) -> Prober | None:
    if against is None:
        return None
    return stack.enter_context(Prober(harness, stack.enter_context(reference_tree.tree(against))))


def _unjudged(name: str) -> str:
    return (
        f"{name} is a wrong outcome: what a smaller input must end as, only a tree that is right "
        "can say; name one with --against"
    )


@dataclass(frozen=True)
class Smaller:
    """A smaller input: the file that shows the same, and how many bytes it had before."""

    harness: str
    shows: str
    file: Path
    before: int
    work: Minimiser

    @property
    def replay(self) -> str:
        """The command that shows it."""
        return f"residue replay {self.harness} {shlex.quote(shown(self.file.absolute()))}"

    def as_data(self) -> dict[str, object]:
        """As `--json` has it."""
        return {
            "harness": self.harness,
            "shows": self.shows,
            "file": str(self.file),
            "before": self.before,
            "bytes": len(self.work.checked),
            "runs": self.work.runs,
            "finished": self.work.finished,
            "replay": self.replay,
        }


def _say(result: Json, made: Smaller) -> None:
    work = made.work
    state = "nothing more can be left out" if work.finished else "there was no time for more"
    runs = many(work.runs, "run")
    print(f"{made.shows}: {many(made.before, 'byte')}, {len(work.checked)} now; {runs}, {state}")
    print(made.replay)
    result.write(made.as_data())
