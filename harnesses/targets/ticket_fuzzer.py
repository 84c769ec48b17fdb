"""Fuzz target ticket as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("ticket")
    from harnesses import ticket

    argv = run.arguments(run.program(), sys.argv[1:], ticket.MAX_LEN)
    run.fuzz("ticket", ticket.run, argv)


if __name__ == "__main__":
    main()
