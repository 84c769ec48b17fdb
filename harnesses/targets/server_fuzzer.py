"""Fuzz target server as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("server")
    from harnesses import server

    argv = run.arguments(run.program(), sys.argv[1:], server.MAX_LEN)
    run.fuzz("server", server.run, argv)


if __name__ == "__main__":
    main()
