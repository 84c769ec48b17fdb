"""Fuzz target clientauth as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("clientauth")
    from harnesses import clientauth

    argv = run.arguments(run.program(), sys.argv[1:], clientauth.MAX_LEN)
    run.fuzz("clientauth", clientauth.run, argv)


if __name__ == "__main__":
    main()
