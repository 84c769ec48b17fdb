"""`python -m peers.servers KIND DIR [--mode MODE] -- COMMAND`: a server, while a command runs.

``{}`` in the command is the server's HOST:PORT; its exit code is ours. Without a command the
server's version is printed.
"""

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from .foreign import KINDS, MODES, Absent, start, version


def main() -> int:
    """Start a server of a kind, and play against it or wait."""
    parser = argparse.ArgumentParser(prog="python -m peers.servers", description=__doc__)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("folder", type=Path, help="of residue play --make-identities")
    parser.add_argument("--mode", choices=MODES, default="plain")
    arguments, command = sys.argv[1:], list[str]()
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1 :]
    args = parser.parse_args(arguments)
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
        return 3


if __name__ == "__main__":
    sys.exit(main())
