"""`residue fuzz HARNESS`: one harness, with everything that a campaign does for all of them.

`residue fuzz recordings` is no harness of libFuzzer's: it mutates recorded conversations.
"""

import argparse

from ci import arguments
from ci.commands import campaign
from ci.exits import UsageError

RECORDINGS = "recordings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue fuzz`."""
    parser.add_argument(
        "harness", metavar="HARNESS", help="which harness, or recordings: recorded conversations"
    )
    campaign.add_common(parser, "fuzz")
    # Recordings are counted, and a time alone is another wish than a time by default.
    parser.set_defaults(seconds=None)
    parser.add_argument(
        "--count",
        type=arguments.positive,
        metavar="N",
        help="recordings: so many inputs (default 20,000, or as many as --seconds holds)",
    )
    arguments.seed(parser, "recordings: the same inputs")


def run(args: argparse.Namespace) -> int:
    """Run `residue fuzz`."""
    if args.harness == RECORDINGS:
        if args.scheduler:
            raise UsageError("recordings are fuzzed here and not with --scheduler")
        # Here and not above: it imports the engine, which a campaign's process must not.
        from ci.commands import fuzz_recordings

        return fuzz_recordings.execute(args)
    if args.count is not None or args.seed is not None:
        raise UsageError("--count and --seed are for `residue fuzz recordings`")
    if args.seconds is None:
        args.seconds = 60
    return campaign.execute(args, campaign.options_of("fuzz", args, [args.harness]))
