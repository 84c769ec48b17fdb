"""Fuzz target differential as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("differential")
    from harnesses import differential

    argv = run.arguments(run.program(), sys.argv[1:], differential.MAX_LEN)
    run.fuzz("differential", differential.run, argv)


if __name__ == "__main__":
    main()
