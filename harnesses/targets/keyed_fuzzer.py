"""Fuzz target keyed as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("keyed")
    from harnesses import keyed

    argv = run.arguments(run.program(), sys.argv[1:], keyed.MAX_LEN)
    run.fuzz("keyed", keyed.run, argv)


if __name__ == "__main__":
    main()
