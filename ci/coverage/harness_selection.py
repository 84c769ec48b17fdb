"""Which harnesses reach a file: a sample of the committed inputs, run with every call watched."""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from ci.inputs.execution import attempt, committed, load
from ci.process import ROOT
from harnesses import HARNESSES

SAMPLE = 25


def harnesses_that_reach(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """The harnesses that call into any of the files; all of them when none is seen to.

    What no sampled input calls may still be reached by another, so too much is fuzzed rather than
    nothing.
    """
    wanted = {str(root / file) for file in files}
    found = [name for name in HARNESSES if _reached(name) & wanted]
    return found or list(HARNESSES)


def _reached(harness: str) -> set[str]:
    """The files whose functions a sample of a harness's inputs calls."""
    inputs = committed(harness)
    run = load(harness)
    seen: set[str] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    for file in inputs[:: max(1, len(inputs) // SAMPLE)]:
        data = file.read_bytes()
        sys.setprofile(watch)
        try:
            attempt(run, data)
        finally:
            sys.setprofile(before)
    return seen
