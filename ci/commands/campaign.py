"""`residue campaign`: every harness over the committed corpus, for a while."""

import argparse
import functools
import sys
from collections.abc import Mapping
from pathlib import Path

from ci import arguments, extras, output, wording
from ci.exits import UsageError
from ci.fuzzing import summary
from ci.fuzzing.campaign import Options, as_data, run_campaign
from ci.fuzzing.progress import FuzzingProgress
from ci.inputs.execution import committed
from ci.process import Stop
from harnesses import HARNESSES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue campaign`."""
    add_common(parser, "campaign")
    parser.add_argument(
        "--harness",
        action="append",
        metavar="H",
        help="run only this harness (may be given again); without it, all of them",
    )
    parser.add_argument(
        "--seeds",
        type=Path,
        metavar="DIR",
        help="begin from the inputs in DIR/HARNESS too, which are merged with what is found",
    )
    parser.add_argument(
        "--weight",
        type=weight,
        action="append",
        metavar="HARNESS=N",
        help="its parts of the time that is left when each has a little (may be given again)",
    )
    parser.add_argument(
        "--value-profile",
        metavar="HARNESS",
        help="one more share for this harness, that looks at the values it compares",
    )


def add_common(parser: argparse.ArgumentParser, kind: str) -> None:
    """The arguments that `fuzz` and `campaign` share."""
    arguments.seconds(parser, "wall time of the whole fuzzing phase", 60)
    arguments.jobs(parser, "processes at once, which the harnesses share")
    arguments.out(parser, kind)
    arguments.json(parser, "the summary")
    arguments.quiet(parser)
    arguments.scheduler(parser, "fuzz")


def weight(text: str) -> tuple[str, float]:
    """HARNESS=N with N over 0."""
    name, _, number = text.partition("=")
    try:
        parts = float(number)
    except ValueError:
        parts = 0.0
    if not 0.0 < parts <= 1000.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not HARNESS=N with N over 0, up to 1000")
    return name, parts


def known(names: list[str]) -> list[str]:
    """The names, each once, if all are harnesses."""
    for name in names:
        if name not in HARNESSES:
            raise UsageError(wording.unknown("harness", name, HARNESSES))
    return list(dict.fromkeys(names))


def execute(args: argparse.Namespace, options: Options) -> int:
    """Run the harnesses and sum up; the exit code is the verdict."""
    extras.need("atheris", "coverage", *(["distributed"] if args.scheduler else []))
    for harness in options.harnesses:
        committed(harness)
    if args.scheduler:
        # Here and not above: Dask is an extra, and takes a second to import.
        from ci.cluster import fuzz as cluster

        options.lanes = cluster.lanes(args.scheduler)
        options.supervise = functools.partial(cluster.supervise, args.scheduler)
    with Stop() as stop:
        out = output.make(args.out, options.kind)
        progress = FuzzingProgress(quiet=args.quiet)
        names = ", ".join(options.harnesses)
        progress.say(f"{options.kind} of {names} into {output.shown(out.root)}")
        data = as_data(run_campaign(options, out, progress, stop))
        story = summary.write(out.root, data)
        _report(out.root, data, progress)
        print(f"\n{story}\n{output.shown(out.root)}/summary.json")
        args.json.write(data)
    return int(data["exit"])


def _report(folder: Path, data: Mapping[str, object], progress: FuzzingProgress) -> None:
    """Write the page. The run is over and its verdict stands, whatever becomes of the page."""
    # Here and not above: a wrong command line need not wait for it.
    from ci import report

    try:
        report.write(folder, data)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        print(f"the report could not be written: {why}", file=sys.stderr)
    else:
        progress.say(f"report: {output.shown(folder / 'report.html')}")


def options_of(kind: str, args: argparse.Namespace, names: list[str]) -> Options:
    """What `add_common` asked for, of these harnesses."""
    names = known(names)
    whole = set(names) == set(HARNESSES)
    return Options(kind, names, float(args.seconds), args.jobs, dictionary=_dictionary, whole=whole)


def _dictionary(path: Path) -> None:
    # Here and not above: it imports the engine, which a wrong command line need not wait for.
    from harnesses import dictionary

    dictionary.write(path)


def run(args: argparse.Namespace) -> int:
    """Run `residue campaign`."""
    options = options_of("campaign", args, args.harness or list(HARNESSES))
    options.seeds = args.seeds
    options.weights = dict(args.weight or [])
    options.value_profile = args.value_profile
    for name in [*options.weights, *filter(None, [options.value_profile])]:
        if name not in options.harnesses:
            known([name])
            raise UsageError(f"{name!r} is none of the harnesses that are run")
    if options.seeds is not None and not options.seeds.is_dir():
        raise UsageError(f"{options.seeds} is not a folder")
    return execute(args, options)
