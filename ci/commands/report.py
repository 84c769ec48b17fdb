"""`residue report`: the report of a campaign or a night again, from what it left in its folder."""

import argparse
from pathlib import Path

from ci import arguments, report
from ci.exits import Exit, UsageError
from ci.output import shown
from ci.report import read
from ci.report.chat import chat

# A night's record first: its folder has no summary of its own.
RECORDS = ("night.json", "summary.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue report`."""
    parser.add_argument(
        "folder", metavar="DIR", help="the output folder of a campaign, or a night's"
    )
    parser.add_argument(
        "--mutants",
        metavar="FILE",
        help="show these results of residue mutate --json in it, instead of the night's own",
    )
    arguments.json(parser, "the figures of the report")


def run(args: argparse.Namespace) -> int:
    """Run `residue report`; 0 whatever the verdict that it reports."""
    folder = Path(args.folder).absolute()
    found = (read.file(folder / name) for name in RECORDS)
    data = next((record for record in found if record is not None), None)
    if data is None:
        raise UsageError(f"{args.folder} has neither a {RECORDS[0]} nor a {RECORDS[1]} to read")
    if args.mutants is not None:
        results = Path(args.mutants).absolute()
        if read.file(results) is None:
            raise UsageError(f"{args.mutants} cannot be read as results of residue mutate")
        data["mutation"] = {**read.mapping(data.get("mutation")), "results": str(results)}
    try:
        figures = report.write(folder, data)
    except OSError as error:
        raise UsageError(f"{args.folder} cannot be written to: {error.strerror}") from None
    print(chat(figures), end="")
    print(shown(folder / "report.html"))
    args.json.write(figures)
    return Exit.CLEAN
