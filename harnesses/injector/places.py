"""Raises an exception at one place of a call: the machinery of injection, without its questions.

A *place* is where an exception that is not the engine's own may come: the n-th line that a call
runs under engine/ (no memory, a signal's handler), the n-th call that it makes into C,
before that has any effect or after all of it (a primitive that fails), or the n-th frame of a stack
that has room for no more. Places are counted, so they are the same ones each time.
"""

from __future__ import annotations

import dis
import hmac
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import cryptography

from ..oracles import ENGINE_FOLDER

Hook = Callable[[FrameType, str, Any], Any]


class NoMemory(MemoryError):
    """A MemoryError that injection raised."""


class TooDeep(RecursionError):
    """A RecursionError that injection raised."""


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt that injection raised."""


class PrimitiveFailed(Exception):
    """An Exception that injection raised in the place of a call into C, or after it."""


class Kind(NamedTuple):
    """Which places, and what is raised there."""

    event: str
    error: type[BaseException]
    closes: bool = False
    """The program closes the engine while it still has the exception."""


KINDS = {
    "memory": Kind("line", NoMemory),
    "recursion": Kind("line", TooDeep),
    "interrupt": Kind("line", Interrupted),
    "before": Kind("c_call", PrimitiveFailed),
    "after": Kind("c_return", PrimitiveFailed),
    "stack": Kind("stack", RecursionError),
    "closing": Kind("line", Interrupted, closes=True),
}
# Where C is called from: the engine, and the Python that stands before the C of a primitive.
CALLERS = (ENGINE_FOLDER, str(Path(cryptography.__file__).parent), hmac.__file__)
FRAMES_OF_C = 3


class Injector:
    """Counts the places of a call, and raises at one of them; with place 0 at none."""

    def __init__(self, kind: Kind, place: int = 0) -> None:
        self.kind = kind
        self.place = place
        self.count = 0
        self.where = ""
        """The place, once it was reached."""

    def make(self, call: Callable[[], object]) -> object:
        """Make the call."""
        if self.kind.event == "stack":
            return self._in_a_short_stack(call) if self.place else self._measured(call)
        if self.kind.event == "line":
            with _hooked(sys.gettrace, sys.settrace, self._called):
                return call()
        with _hooked(sys.getprofile, sys.setprofile, self._profiled):
            return call()

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(ENGINE_FOLDER) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and frame.f_lasti not in _ends_of_handlers(frame.f_code):
            self._reached(frame)
        return self._line

    def _profiled(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == self.kind.event and frame.f_code.co_filename.startswith(CALLERS):
            self._reached(frame, f" {arg.__name__}()")

    def _reached(self, frame: FrameType, what: str = "") -> None:
        self.count += 1
        if self.count == self.place:
            code = frame.f_code
            self.where = _name(code.co_filename, frame.f_lineno, code.co_name) + what
            raise self.kind.error

    def _in_a_short_stack(self, call: Callable[[], object]) -> object:
        """With room for so many frames more; a tracer's own frames would need some of it."""
        try:
            with (
                _hooked(sys.gettrace, sys.settrace, None),
                _hooked(sys.getprofile, sys.setprofile, None),
            ):
                return _with_room(self.place, call)
        except RecursionError as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if last.filename.startswith(CALLERS):
                self.where = _name(last.filename, last.lineno or 0, last.name)
            raise

    def _measured(self, call: Callable[[], object]) -> object:
        """How many frames the call has at most, with some for what C asks for."""
        here = _depth(sys._getframe())

        def entered(frame: FrameType, event: str, arg: Any) -> None:
            if event == "call":
                self.count = max(self.count, _depth(frame) - here + FRAMES_OF_C)

        with _hooked(sys.getprofile, sys.setprofile, entered):
            return call()


@lru_cache(maxsize=1024)
def _ends_of_handlers(code: CodeType) -> frozenset[int]:
    """The instructions that end an `except` block. None can fail, and no signal is looked at there:
    what a tracer raises at one leaves CPython with a handled exception that never ends."""
    found = dis.get_instructions(code)
    return frozenset(one.offset for one in found if one.opname == "POP_EXCEPT")


@contextmanager
def _hooked(
    get: Callable[[], Any], put: Callable[[Any], None], hook: Hook | None
) -> Iterator[None]:
    """With a tracer or a profiler of ours, or none; the one that was there is put back."""
    before = get()
    put(hook)
    try:
        yield
    finally:
        put(before)


def _with_room(frames: int, call: Callable[[], object]) -> object:
    """`frames` more than the least limit that is taken here: C has frames that are in no list."""
    limit = sys.getrecursionlimit()
    least = _depth(sys._getframe())
    try:
        while True:
            try:
                sys.setrecursionlimit(least)
                break
            except RecursionError:
                least += 1
        sys.setrecursionlimit(least + frames)
        return call()
    finally:
        sys.setrecursionlimit(limit)


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        frame = frame.f_back
        depth += 1
    return depth


def _name(file: str, line: int, function: str) -> str:
    return f"{'/'.join(Path(file).parts[-2:])}:{line} {function}"
