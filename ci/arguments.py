"""The options that commands share, each with one name, one meaning and one help text.

What a command line may not have is an ArgumentTypeError here, which argparse makes one line of.
"""

import argparse

from ci import results

AT_MOST = 10**6
JOBS = 2


def positive(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= AT_MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {AT_MOST:,}")
    return int(text)


def jobs(
    parser: argparse.ArgumentParser, does: str = "processes at once", default: int = JOBS
) -> None:
    """`--jobs N`, which `make` and compilers call -j."""
    parser.add_argument(
        "-j",
        "--jobs",
        type=positive,
        default=default,
        metavar="N",
        help=f"{does} (default {default})",
    )


def json(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """`--json FILE`, of every command that has a result; see `ci.results.Json`."""
    parser.add_argument(
        "--json",
        type=results.Json,
        default=results.NONE,
        metavar="FILE",
        help=f"write {what} to FILE as JSON; - for standard output, and nothing else there",
    )


def quiet(parser: argparse.ArgumentParser, does: str = "no progress on standard error") -> None:
    """`--quiet`."""
    parser.add_argument("-q", "--quiet", action="store_true", help=does)


def out(parser: argparse.ArgumentParser, kind: str) -> None:
    """`--out DIR`, a folder that is made (`ci.output.make`)."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=f"a new or empty folder for what comes of it (default: a new one in build/{kind})",
    )


def seconds(parser: argparse.ArgumentParser, does: str, default: int | None = None) -> None:
    """`--seconds N`."""
    shown = f"{does} (default {default})" if default else does
    parser.add_argument("--seconds", type=positive, default=default, metavar="N", help=shown)


def seed(parser: argparse.ArgumentParser, same: str) -> None:
    """`--seed N`, of what is made by chance."""
    parser.add_argument(
        "--seed",
        type=positive,
        metavar="N",
        help=f"{same} again (default: another each time, which is printed)",
    )


def scheduler(parser: argparse.ArgumentParser, does: str) -> None:
    """`--scheduler ADDRESS`, of a cluster."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help=f"{does} on the workers of the Dask cluster at tcp://HOST:PORT (tls:// as well)",
    )


def bucket(parser: argparse.ArgumentParser) -> None:
    """An input, or the bucket that has one."""
    parser.add_argument("file", metavar="FILE|BUCKET", help="the input, or a bucket of the store")
    parser.add_argument("--harness", metavar="H", help="whose input it is; a bucket knows it")
    parser.add_argument(
        "--dir", metavar="DIR", help="the store (default build/triage, then build/nightly/buckets)"
    )


def against(parser: argparse.ArgumentParser, does: str) -> None:
    """`--against TREE`, of a tree that is right (`ci.reference_tree`)."""
    parser.add_argument(
        "--against", metavar="TREE", help=f"a checkout or a git revision that is right, {does}"
    )
