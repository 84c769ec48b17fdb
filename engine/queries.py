"""The calls that only read. None leases an area: a core says the same wherever it is."""

from .base import EngineBase
from .events import Event
from .layout import (
    ALERT_RECEIVED,
    ALPN,
    ALPN_LEN,
    ESTABLISHED,
    F_ANSWERED,
    F_PEER_CLOSED,
    F_RESUMED,
    F_RETRIED,
    FAILED,
    FAILURE,
    FLAGS,
    FREE,
    GROUP,
    NAME,
    NAME_LEN,
    OUT,
    STATE,
    SUITE,
    VERDICT,
)
from .refusals import BY_CODE, Refusal
from .tickets import VERDICT_NAMES


class Queries(EngineBase):
    """What an engine and its connections say of themselves."""

    def event(self, slot: int) -> Event:
        """The first that holds of free, failed, want_write, closed, established, want_read."""
        self._check_range(slot)
        words = self._pool.words(slot)
        state = words[STATE]
        if state == FREE:
            return Event.FREE
        if state == FAILED:
            return Event.FAILED
        area = self._held.get(slot)
        if area is not None and area.out_end != OUT:
            return Event.WANT_WRITE
        if words[FLAGS] & F_PEER_CLOSED:
            return Event.CLOSED
        return Event.ESTABLISHED if state == ESTABLISHED else Event.WANT_READ

    def failure(self, slot: int) -> Refusal | None:
        """Why the connection failed; None while it has not."""
        code = self._words_of(slot)[FAILURE]
        return BY_CODE[code]

    def alert_received(self, slot: int) -> int | None:
        """The peer's alert when the failure is `tls-alert`, otherwise None."""
        alert: int = self._words_of(slot)[ALERT_RECEIVED]
        return alert - 1 if alert else None

    def suite(self, slot: int) -> int:
        """The cipher suite's code point, 0 before the ClientHello is answered."""
        return self._answered(slot, SUITE)

    def group(self, slot: int) -> int:
        """The key exchange group's code point, 0 before the ClientHello is answered."""
        return self._answered(slot, GROUP)

    def retried(self, slot: int) -> bool:
        """A HelloRetryRequest was sent."""
        return bool(self._words_of(slot)[FLAGS] & F_RETRIED)

    def resumed(self, slot: int) -> bool:
        """The connection resumed a session by a ticket."""
        return bool(self._words_of(slot)[FLAGS] & F_RESUMED)

    def ticket_verdict(self, slot: int) -> str:
        """What became of the tickets that the client offered: "none", "resumed", or why not."""
        return VERDICT_NAMES[self._words_of(slot)[VERDICT]]

    def ticket_keys(self) -> int:
        """How many keys open tickets now."""
        self._check_open()
        return self._server.resumption.ring.open_keys()

    def server_name(self, slot: int) -> bytes | None:
        """The host name the client asked for, lower-cased; None for none."""
        return self._name(slot, NAME, NAME_LEN)

    def alpn(self, slot: int) -> bytes | None:
        """The application protocol chosen; None for none."""
        return self._name(slot, ALPN, ALPN_LEN)

    def handshakes_in_progress(self) -> int:
        """Connections between `serve` and the end of their handshake. Each has an area, and every
        area that is held is asked."""
        self._check_open()
        return sum(area.words[STATE] < ESTABLISHED for area in self._held.values())

    # -- memory -----------------------------------------------------------------------------

    def areas(self) -> int:
        """How many areas the engine has."""
        self._check_open()
        return self._pool.areas

    def areas_free(self) -> int:
        """Areas a connection could have: free ones, and those in which one rests."""
        self._check_open()
        return self._pool.areas_free()

    def areas_resting(self) -> int:
        """Idle connections that still have their area."""
        self._check_open()
        return len(self._resting)

    def holds_area(self, slot: int) -> bool:
        """In a handshake, or bytes in a buffer; false when resting."""
        self._words_of(slot)
        return slot in self._held and slot not in self._resting

    def residue(self) -> int:
        """Bytes and objects that clearing left where nothing may be; 0 after every call."""
        self._check_open()
        server = self._server
        stray = server.identities.stray_keys() + server.resumption.ring.residue()
        if self._drbg is not None:
            stray += self._drbg.residue()
        return self._pool.residue() + stray

    def _answered(self, slot: int, word: int) -> int:
        words = self._words_of(slot)
        value: int = words[word]
        return value if words[FLAGS] & F_ANSWERED else 0

    def _name(self, slot: int, start: int, length_word: int) -> bytes | None:
        length = self._words_of(slot)[length_word]
        return bytes(self._pool.block(slot)[start : start + length]) if length else None
