"""The two clocks of a server. Tests put their own in their place.

Deadlines and durations are monotonic, so that setting the machine's clock ends no connection. The
engine is given Unix time, because certificates and tickets are dated with it.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds, of either kind."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment; never goes back."""
        ...

    def unix_ms(self) -> int:
        """Milliseconds since 1970."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def unix_ms(self) -> int:
        return time.time_ns() // 1_000_000
