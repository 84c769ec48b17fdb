"""Fuzz target hello as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("hello")
    from harnesses import hello

    argv = run.arguments(run.program(), sys.argv[1:], hello.MAX_LEN)
    run.fuzz("hello", hello.run, argv)


if __name__ == "__main__":
    main()
