"""Worker processes that run inputs of ours: they end with their parent, and no input holds one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from types import FrameType

from ci import process


class TooLong(BaseException):
    """An input that did not come to an end. A BaseException, so that no oracle catches it."""


def pool(jobs: int) -> ProcessPoolExecutor:
    """So many of them."""
    process.leash()
    return ProcessPoolExecutor(jobs, initializer=_begin)


def _begin() -> None:
    process.die_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A Ctrl-C reaches the whole group: it is for the parent to end the run, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Around inputs: `signal.alarm` raises TooLong, and what was set before is set again."""

    def too_long(signum: int, frame: FrameType | None) -> None:
        raise TooLong(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
