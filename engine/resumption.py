"""Tickets in the handshake: taken at the ClientHello, made at the client's Finished.

The rules about a ticket are `tickets`'; here is when they are asked, and what is remembered
between the two messages. What a ticket binds is what the ClientHello was answered with, kept in the
handshake's scratch: an identity replaced in the meantime was never shown to this client. How many
tickets, for how long, under which key and at what time are the engine's at the Finished.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from . import codepoints as c
from . import tickets
from .client_certificate import REQUIRED
from .hello import Choice, ClientHello, HelloFault, require_scheme
from .identities import Identity
from .key_schedule import SUITES, Pads, Transcript, mac
from .layout import (
    ALPN,
    ALPN_LEN,
    AUTH_MODE,
    ENTROPY_END,
    ENTROPY_TICKETS,
    F_CLIENT_CERTIFICATE,
    F_TICKETS,
    FINGERPRINT,
    FLAGS,
    LEAF_NOT_AFTER,
    MASTER_SECRET,
    NAME,
    NAME_LEN,
    SUITE,
    VERDICT,
)
from .pool import Area
from .records import queue_sealed
from .refusals import Refusal
from .ticket_keys import Fill, TicketKeyRing

_FINGERPRINT_END: Final = FINGERPRINT + 32


class Resumed(NamedTuple):
    """A ticket was taken: which of those offered, and what the handshake secret starts from."""

    place: int
    derived: Pads


class Resumption:
    """What all connections of a server share for tickets: how many they get, and the keys."""

    __slots__ = ("count", "ring")

    def __init__(self) -> None:
        self.count = 0
        self.ring = TicketKeyRing(tickets.DEFAULT_LIFETIME_S * 1000)

    def configure(self, count: int, lifetime_s: int, fill: Fill | None) -> None:
        """The number of tickets a connection, 0 for off, and their lifetime; or `Refused`.

        `fill` is the source of randomness, None before there is one.
        """
        count, lifetime_ms = tickets.checked_settings(count, lifetime_s)
        ring = self.ring
        if not count:
            ring.wipe()
        elif fill is not None and ring.now_ms:
            # A connection may be waiting that was served before tickets were on.
            ring.renew(ring.now_ms, fill)
        self.count, ring.lifetime_ms = count, lifetime_ms

    def at_serve(self, now_ms: int, fill: Fill) -> None:
        """A connection begins: the clock moves, and with tickets on there is a key."""
        if self.count:
            self.ring.renew(now_ms, fill)
        else:
            self.ring.advance(now_ms)

    def accept(
        self, area: Area, raw: bytes, hello: ClientHello, choice: Choice, identity: Identity
    ) -> Resumed | Refusal | None:
        """Judge the tickets of a ClientHello, and the binder of the one that is taken.

        None is a full handshake. The two refusals are a wrong binder on a ticket that every rule
        accepted (§4.2.11.2), and a client that has no ticket taken and cannot be signed for.
        """
        offered, binders = hello.identities, hello.binders
        if offered is None or binders is None:
            return None
        words = area.words
        chosen = tickets.choose(
            self.ring,
            self.count > 0,
            hello.psk_modes or b"",
            offered,
            tickets.Moment(
                self.ring.now_ms,
                hello.server_name or b"",
                identity.fingerprint,
                choice.suite,
                choice.alpn or b"",
                words[AUTH_MODE] == REQUIRED,
            ),
        )
        ticket = chosen.ticket
        if ticket is None:
            words[VERDICT] = chosen.verdict
            try:
                require_scheme(hello)
            except HelloFault as fault:
                return fault.refusal
            return None
        hash_suite = SUITES[choice.suite].hash
        early = hash_suite.early(ticket.psk)
        ticket.wipe()
        # After a retry the transcript already holds the first ClientHello and the request.
        truncated = raw[: 4 + hello.binders_at]
        seen = hash_suite.new(truncated) if area.transcript is None else area.transcript.copy()
        if area.transcript is not None:
            seen.update(truncated)
        if not tickets.binder_holds(hash_suite, early, seen.digest(), binders[chosen.place]):
            return Refusal.SERVER_BINDER
        words[VERDICT] = tickets.RESUMED
        return Resumed(chosen.place, hash_suite.keyed(mac(early, hash_suite.derived)))

    def remember(self, area: Area, hello: ClientHello, identity: Identity, master: bytes) -> None:
        """Keep what the client's tickets will bind, if it can use any (§4.2.9)."""
        if hello.psk_modes is None or c.PSK_DHE_KE not in hello.psk_modes:
            return
        block = area.bytes
        area.words[FLAGS] |= F_TICKETS
        block[MASTER_SECRET : MASTER_SECRET + len(master)] = master
        block[FINGERPRINT:_FINGERPRINT_END] = identity.fingerprint
        block[LEAF_NOT_AFTER : LEAF_NOT_AFTER + 8] = identity.not_after_ms.to_bytes(8, signed=True)

    def send(self, area: Area, transcript: Transcript) -> None:
        """Queue the tickets of a connection whose Finished verified.

        `transcript` ends with that Finished. A client that presented a certificate gets none: its
        ticket would carry an identity that nobody verifies again. There is always room: the
        largest flight and the largest eight tickets together are less than the out buffer.
        """
        words = area.words
        flags = words[FLAGS]
        if not self.count or not flags & F_TICKETS or flags & F_CLIENT_CERTIFICATE:
            return
        block = area.bytes
        hash_suite = SUITES[words[SUITE]].hash
        master = hash_suite.keyed(block[MASTER_SECRET : MASTER_SECRET + hash_suite.size])
        secret = hash_suite.derive(master, b"res master", transcript.digest())
        session = tickets.Session(
            words[SUITE],
            bytes(block[FINGERPRINT:_FINGERPRINT_END]),
            int.from_bytes(block[LEAF_NOT_AFTER : LEAF_NOT_AFTER + 8], signed=True),
            bytes(block[NAME : NAME + words[NAME_LEN]]),
            bytes(block[ALPN : ALPN + words[ALPN_LEN]]),
        )
        entropy = block[ENTROPY_TICKETS:ENTROPY_END]
        messages = tickets.issue(self.ring, self.count, entropy, secret, session)
        queue_sealed(area, c.HANDSHAKE, b"".join(messages))
