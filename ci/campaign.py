"""`residue campaign`: every harness over the committed corpus, for a while."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

from ci import output, summary
from ci.conduct import Options, as_data, conduct
from ci.exits import Untrusted, UsageError
from ci.process import Stop
from ci.progress import Progress
from harnesses import HARNESSES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue campaign`."""
    add_common(parser)
    parser.add_argument(
        "--harness",
        action="append",
        metavar="H",
        help="run only this harness (may be given again); without it, all of them",
    )


def add_common(parser: argparse.ArgumentParser) -> None:
    """The arguments that `fuzz` and `campaign` share."""
    parser.add_argument(
        "--seconds",
        type=positive,
        default=60,
        metavar="N",
        help="wall time of the whole fuzzing phase (default 60)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=2,
        metavar="N",
        help="processes at once, which the harnesses share (default 2)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="a new or empty folder for what comes of it (default: a new one under build/)",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def positive(text: str) -> int:
    """A whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1,000,000")
    return number


def known(names: list[str]) -> list[str]:
    """The names, each once, if all are harnesses."""
    for name in names:
        if name not in HARNESSES:
            raise UsageError(f"there is no harness {name!r}; there are {', '.join(HARNESSES)}")
    return list(dict.fromkeys(names))


def execute(kind: str, args: argparse.Namespace, names: list[str]) -> int:
    """Run the harnesses and sum up; the exit code is the verdict."""
    for package, extra in (("atheris", "fuzz"), ("coverage", "fuzz")):
        if importlib.util.find_spec(package) is None:
            raise Untrusted(f"{package} is not installed: pip install -e '.[{extra}]'")
    whole = set(names) == set(HARNESSES)
    options = Options(
        kind, names, float(args.seconds), args.jobs, dictionary=_dictionary, whole=whole
    )
    with Stop() as stop:
        out = output.make(args.out, kind)
        progress = Progress()
        progress.say(f"{kind} of {', '.join(names)} into {output.shown(out.root)}")
        data = as_data(conduct(options, out, progress, stop))
        story = summary.write(out.root, data)
        if args.json:
            json.dump(data, sys.stdout, indent=1)
            print()
        else:
            print(f"\n{story}\n{output.shown(out.root)}/summary.json")
    return int(data["exit"])


def _dictionary(path: Path) -> None:
    # Here and not above: it imports the engine, which a wrong command line need not wait for.
    from harnesses import dictionary

    dictionary.write(path)


def run(args: argparse.Namespace) -> int:
    """Run `residue campaign`."""
    return execute("campaign", args, known(args.harness or list(HARNESSES)))
