"""What makes two findings the same, wherever they were found: under a fuzzer or without one.

A frame is ours when its file lies in this tree. Of those the engine's tell where a fault is, and
where the engine had returned already, the check that failed. Who called them is no part of what
went wrong: one fault would have as many signatures as an oracle has callers.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
FRAMES = 3
DRIVERS = frozenset({"run.py", "probe.py", "fuzz_recordings.py", "places.py"})
ENGINE = "engine/"
NUMBERS = re.compile("-?[0-9a-f]*[0-9][0-9a-f]*")


def signature(error: BaseException) -> dict[str, object]:
    """What makes two findings the same: the oracle and what it says with its numbers left out, the
    exception's kind, and the frames that tell where.

    An oracle that reports an exception raises `from` it; then the frames are the cause's, which is
    where the bug is.
    """
    cause = error.__cause__ or error
    frames = our_frames(cause.__traceback__)
    if isinstance(cause, RecursionError):
        frames = once(frames)
    return {
        "oracle": getattr(error, "oracle", None),
        "says": NUMBERS.sub("N", getattr(error, "detail", "")),
        "kind": type(cause).__name__,
        "frames": telling(frames),
    }


def our_frames(trace: TracebackType | None) -> list[str]:
    """The frames of our own code as PATH:FUNCTION, innermost last."""
    return [
        name_of(frame.filename, frame.name)
        for frame in traceback.extract_tb(trace)
        if ours(frame.filename)
    ]


def name_of(file: str, function: str) -> str:
    """A frame of ours, its file as it lies in the tree."""
    return f"{Path(file).relative_to(ROOT)}:{function}"


def telling(frames: Sequence[str]) -> list[str]:
    """Of our frames those that tell one fault from another, as FILE:FUNCTION, innermost last: the
    last few of the engine, where it is the engine that was at work; else the innermost alone. FILE
    is told from the top folder on: one name has a file in many.
    """
    engine = list(takewhile(lambda frame: frame.startswith(ENGINE), reversed(frames)))
    chosen = engine[:FRAMES] or list(frames[-1:])
    return [frame.partition("/")[2] for frame in reversed(chosen)]


def ours(file: str) -> bool:
    """Whether a file is code of this tree that a harness runs."""
    path = Path(file)
    inside = path.is_relative_to(ROOT) and "site-packages" not in path.parts
    return inside and path.name not in DRIVERS


def once(frames: Iterable[str]) -> list[str]:
    """The frames down to the first that comes again: where a recursion was when its depth was met
    differs from run to run, how it was entered does not."""
    seen: list[str] = []
    for frame in frames:
        if frame in seen:
            break
        seen.append(frame)
    return seen
