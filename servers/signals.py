"""Signals: a handler sets a flag and wakes the loop, and does nothing else.

Before the loop is there to be woken, and after it has ended, they wait in the kernel (`hold`): the
system's own answer to each of them is to end the process, whose status would then say that it
failed. A reload or a stop that is asked for while the server starts is done when it has started;
one that comes when the loop has ended finds nothing left to do.

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


def hold() -> None:
    """From here on the signals of a server wait until there is one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)


class Signals:
    """Flags and a descriptor to wait on; a context manager that puts back what was before."""

    def __init__(self) -> None:
        self.reload = False
        self.stop = False
        self.wake_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._previous: dict[signal.Signals, Any] = {}
        self._previous_wake = -1
        self._previous_mask: set[int] = set()

    def __enter__(self) -> "Signals":
        self._previous_wake = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        flags: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
            signal.SIGHUP: self.ask_reload,
            signal.SIGINT: self.ask_stop,
            signal.SIGTERM: self.ask_stop,
        }
        for number in HANDLED:
            self._previous[number] = signal.signal(number, flags[number])
        self._previous_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The mask first: held signals must not meet the old handlers.
        signal.pthread_sigmask(signal.SIG_SETMASK, self._previous_mask)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wake)
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def ask_reload(self, number: int = 0, frame: FrameType | None = None) -> None:
        """The handler of SIGHUP: the loop reads the files again."""
        self.reload = True

    def ask_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """The handler of SIGTERM and SIGINT: the loop says goodbye and ends."""
        self.stop = True

    def drain(self) -> None:
        """Empty the pipe: the flags say what was asked, the bytes only that something was."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 512):
                pass
