"""`python -m peers.servers KIND DIR [--mode MODE] -- COMMAND`: a server, while a command runs.

``{}`` in the command is the server's HOST:PORT; its exit code is ours. Without a command the
server's version is printed.
"""

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .foreign import KINDS, MODES, Absent, start, version

NOT_HERE = 3
ENDS = f"""\
exit codes:
  0  the version was printed; with a COMMAND, what the command ends with
  2  the command line cannot be used
  {NOT_HERE}  the server is not installed, or cannot be kept to this machine

example:
  python -m peers.servers openssl identities -- residue play {{}} --jobs 1
"""


def parser() -> argparse.ArgumentParser:
    """The command line, without what comes after the dashes."""
    made = argparse.ArgumentParser(
        prog="python -m peers.servers",
        usage="python -m peers.servers KIND DIR [--mode MODE] [-- COMMAND]",
        description="Run a server that is not ours while COMMAND runs, with its HOST:PORT for {};\n"
        "without a COMMAND, print its version.",
        epilog=ENDS,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=79),
    )
    made.add_argument(
        "kind", metavar="KIND", choices=sorted(KINDS), help=f"one of {', '.join(sorted(KINDS))}"
    )
    made.add_argument(
        "folder", metavar="DIR", type=Path, help="what residue play --make-identities wrote"
    )
    made.add_argument(
        "--mode",
        metavar="MODE",
        choices=MODES,
        default="plain",
        help=f"one of {', '.join(MODES)}: how it stands towards tickets and client certificates "
        "(default plain)",
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    arguments, command = list(sys.argv[1:] if argv is None else argv), list[str]()
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1 :]
    args = parser().parse_args(arguments)
    # Leave by the way out, which ends the server too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if not command:
            print(version(args.kind))
            return 0
        with start(args.kind, args.folder, args.mode) as server:
            words = [word.replace("{}", server.address) for word in command]
            return subprocess.run(words, check=False).returncode
    except Absent as reason:
        print(f"{args.kind}: {reason}", file=sys.stderr)
        return NOT_HERE


if __name__ == "__main__":
    sys.exit(main())
