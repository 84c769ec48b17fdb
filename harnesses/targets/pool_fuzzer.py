"""Fuzz target pool as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("pool")
    from harnesses import pool

    argv = run.arguments(run.program(), sys.argv[1:], pool.MAX_LEN)
    run.fuzz("pool", pool.run, argv)


if __name__ == "__main__":
    main()
