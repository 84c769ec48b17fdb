"""At most N starts in any second: a bound on the CPU that handshakes take (SPEC 4).

One ClientHello costs a key exchange and a signature, and the engine cannot see how many come. A
window of fixed seconds would let twice the number through around its edge; this one keeps the times
of the last N starts, and a start is allowed when the one N ago is a second old.
"""

from array import array

WINDOW_MS = 1000


class Rate:
    """A sliding window over the last `limit` starts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times = array("q")
        self._oldest = 0

    def wait_ms(self, now: int) -> int:
        """How long until a start is allowed; 0 is now."""
        if len(self._times) < self._limit:
            return 0
        return max(0, self._times[self._oldest] + WINDOW_MS - now)

    def start(self, now: int) -> None:
        """Note a start. The caller has asked `wait_ms`."""
        if len(self._times) < self._limit:
            self._times.append(now)
            return
        self._times[self._oldest] = now
        self._oldest = (self._oldest + 1) % self._limit
