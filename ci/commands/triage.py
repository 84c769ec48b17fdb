"""`residue triage`: what was found, one bucket for each bug, and whether somebody should look.

Without options it lists the buckets of the store and runs nothing. A bucket is new, or known to
triage/known.toml, or known and past its day, or fixed; new and expired ones make the exit code 1.
"""

import argparse
import sys
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

from ci import arguments
from ci.exits import Exit, Untrusted, UsageError
from ci.inputs.shrink import shrink_buckets
from ci.output import BUILD, shown
from ci.progress import Line
from ci.wording import many
from triage import intake, known, sightings
from triage.bucket import Bucket
from triage.intake import Probers
from triage.known import Entry, KnownError
from triage.prober import ProbeError
from triage.sightings import SightingsError, Taken
from triage.store import Store, StoreError

STORE = BUILD / "triage"
NIGHTS = BUILD / "nightly" / "buckets"
"""Where the nights keep theirs. A bucket that is named by its id is looked for in both."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue triage`."""
    parser.add_argument(
        "dir", nargs="?", metavar="DIR", help="the store of buckets (default build/triage)"
    )
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="PATH",
        help="sort in what lies at PATH: the output folder of a campaign or a fuzz, or a file of "
        "residue replay --json (may be given again; the same one twice counts once)",
    )
    parser.add_argument(
        "--replay",
        action="store_true",
        help="run the input of each bucket again; one that no longer fails is fixed",
    )
    parser.add_argument(
        "--minimise",
        type=arguments.positive,
        metavar="N",
        help="then make the inputs smaller that are not small yet, for N seconds in all",
    )
    arguments.against(parser, "for wrong outcomes with --minimise")
    parser.add_argument(
        "--known", metavar="FILE", help="the known findings (default triage/known.toml)"
    )
    arguments.json(parser, "the buckets, a list,")
    arguments.quiet(parser)
    parser.add_argument("--today", type=date.fromisoformat, help=argparse.SUPPRESS)


def open_store(named: str | None) -> Store:
    """The store that was named, or the usual one; UsageError for what is none."""
    try:
        return Store(Path(named) if named is not None else STORE)
    except StoreError as error:
        raise UsageError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Run `residue triage`."""
    asked = args.sources or args.replay or args.minimise
    if args.dir is not None and not asked and not Path(args.dir).exists():
        raise UsageError(f"there is no {args.dir}; residue triage {args.dir} --from OUT makes it")
    if args.against is not None and not args.minimise:
        raise UsageError("--against is for --minimise")
    today: date = args.today or date.today()
    store = open_store(args.dir)
    try:
        entries = known.read(Path(args.known) if args.known else known.PATH)
        taken = [sightings.read(Path(path)) for path in args.sources]
        unread = _work(args, store, taken, _now(args.today))
    except (KnownError, SightingsError, StoreError) as error:
        raise UsageError(str(error)) from None
    except ProbeError as error:
        raise Untrusted(str(error)) from None
    judged = [(made, *known.state(made, entries, today)) for made in store.buckets.values()]
    judged.sort(key=lambda one: (known.STATES.index(one[1]), one[0].signature.harness, one[0].id))
    args.json.write([as_data(store, *one) for one in judged])
    for line in _lines(store, judged, known.stale(store.buckets.values(), entries, today)):
        print(line)
    if any(state in known.RED for _, state, _ in judged):
        return Exit.FOUND
    if unread:
        raise Untrusted(f"{len(unread)} of what was to be read could not be")
    return Exit.CLEAN


def _now(today: date | None) -> str:
    now = datetime.now(UTC)
    if today is not None:
        now = datetime(today.year, today.month, today.day, tzinfo=UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _work(args: argparse.Namespace, store: Store, taken: list[Taken], now: str) -> list[str]:
    """Take, replay and shrink as asked. Returns what could not be read, which is shown as well."""
    unread = [*store.broken, *(text for one in taken for text in one.unread)]
    for text in unread:
        print(f"residue: {text}", file=sys.stderr)
    if not (args.sources or args.replay or args.minimise):
        return unread
    with store.writing(), Probers() as probers:
        line = Line("triage", quiet=args.quiet)
        try:
            for one in taken:
                intake.take(store, one.sightings, probers, line)
            # After taking, so that what is gone is not said to be fixed and then found again.
            for made in list(store.buckets.values()) if args.replay else []:
                line(f"replays {made.id}")
                data, prober = store.data(made.id), probers[made.signature.harness]
                store.put(intake.replay(made, data, prober, now))
            if args.minimise:
                shrink_buckets(store, probers, args.minimise, args.against, line)
        finally:
            line.end()
    return unread


def as_data(store: Store, made: Bucket, state: str, entry: Entry | None) -> dict[str, object]:
    """A bucket as `--json` has it."""
    file = store.input(made.id)
    reason, until = (entry.reason, entry.expires.isoformat()) if entry else ("", "")
    return made.as_data(file, shown(file.absolute()), state, reason, until)


def _lines(
    store: Store, judged: list[tuple[Bucket, str, Entry | None]], stale: list[Entry]
) -> list[str]:
    """The listing: what to look at first, comes first."""
    lines = []
    for made, state, entry in judged:
        signature = made.signature
        seen = made.first_seen[:10]
        if made.last_seen[:10] != seen:
            seen += f" to {made.last_seen[:10]}"
        lines.append(f"{state:<8} {made.id}  {signature.harness} {signature.name}: {made.detail}")
        size = many(made.size, "byte") + (", minimised" if made.minimised else "")
        lines.append(f"         {many(made.count, 'time')}, {seen}, {size}")
        if signature.frames:
            lines.append(f"         at {' > '.join(signature.frames)}")
        if made.note:
            lines.append(f"         {made.note}")
        if entry is not None:
            lines.append(f"         until {entry.expires}: {entry.reason}")
        if made.committed:
            lines.append(f"         a committed input: {made.committed}")
        lines.append(f"         {as_data(store, made, state, entry)['reproduce']}")
    lines += [f"stale    in the known findings: {entry}" for entry in stale]
    counts = Counter(state for _, state, _ in judged)
    told = ", ".join(f"{counts[state]} {state}" for state in known.STATES if counts[state])
    if not judged:
        where = shown(store.folder.absolute())
        told = f"none in {where}; residue triage --from OUT sorts in what a run found"
    return [*lines, f"{many(len(judged), 'bucket')}: {told}" if judged else f"no bucket: {told}"]
