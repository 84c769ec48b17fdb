"""The two clocks of a server. Tests put their own in their place.

Deadlines and durations are monotonic, so that setting the machine's clock ends no connection. The
engine is given Unix time, because certificates and tickets are dated with it.
"""

import time
from typing import Protocol

JUMP_MS = 1_000
BELIEVED_MS = 60_000


class Clock(Protocol):
    """Milliseconds, of either kind."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment; never goes back."""
        ...

    def unix_ms(self) -> int:
        """Milliseconds since 1970."""
        ...


class SystemClock:
    """The machine's clocks, the calendar's steadied.

    Unix time is the monotonic clock and what lies between the two. That follows the calendar's
    clock where it is adjusted bit by bit. A jump is followed only when it has stood for a minute:
    an engine's time never goes back, so that one wrong reading, put right a moment later, would
    leave every certificate of a client expired until the process ends.
    """

    def __init__(self) -> None:
        self._between = self._read_between()
        self._jump: tuple[int, int] | None = None  # what lies between since, and since when

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that never jumps, from no particular moment."""
        return time.monotonic_ns() // 1_000_000

    def unix_ms(self) -> int:
        """Unix milliseconds, which follow a jump of the system's clock once it has lasted."""
        now, between = self.monotonic_ms(), self._read_between()
        if abs(between - self._between) < JUMP_MS:
            self._between, self._jump = between, None
        elif self._jump is None or abs(between - self._jump[0]) >= JUMP_MS:
            self._jump = between, now
        elif now - self._jump[1] >= BELIEVED_MS:
            self._between, self._jump = between, None
        return now + self._between

    def _read_between(self) -> int:
        return (time.time_ns() - time.monotonic_ns()) // 1_000_000
