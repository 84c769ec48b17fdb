"""`residue fuzz HARNESS`: one harness, with everything that a campaign does for all of them."""

import argparse

from ci import campaign


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue fuzz`."""
    parser.add_argument("harness", metavar="HARNESS", help="which harness")
    campaign.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Run `residue fuzz`."""
    return campaign.execute("fuzz", args, campaign.known([args.harness]))
