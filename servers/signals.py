"""Signals: a handler sets a flag and wakes the loop, and does nothing else.

Python runs handlers between two bytecodes of whatever is running, the engine in the middle of a
record included, so a handler must not touch a connection. The interpreter writes the signal's
number to the wake descriptor itself (`signal.set_wakeup_fd`), which ends the loop's wait.
"""

import contextlib
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

HANDLED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Signals:
    """Flags and a descriptor to wait on; a context manager that puts the old handlers back."""

    def __init__(self) -> None:
        self.reload = False
        self.stop = False
        self.wake_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._previous: dict[signal.Signals, Any] = {}
        self._previous_wake = -1

    def __enter__(self) -> "Signals":
        self._previous_wake = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        flags: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
            signal.SIGHUP: self.ask_reload,
            signal.SIGINT: self.ask_stop,
            signal.SIGTERM: self.ask_stop,
        }
        for number in HANDLED:
            self._previous[number] = signal.signal(number, flags[number])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wake)
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def ask_reload(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.reload = True

    def ask_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.stop = True

    def drain(self) -> None:
        """Empty the pipe: the flags say what was asked, the bytes only that something was."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 512):
                pass
