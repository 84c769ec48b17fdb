"""The three suites, how their servers stand, and the edits that hellos are given."""

from __future__ import annotations

from collections.abc import Callable

from peers.liar import codes
from peers.liar.client import Edit
from peers.liar.conversation import Setup, Suite
from peers.liar.hello import Hello
from peers.liar.identities import authority, make
from peers.liar.wire import u16, vec16

ROOT = authority()
FIRST = make(["server.example", "*.server.example"])
SECOND = make(["two.example", "host.wild.example"], label="a second server")
WILD = make(["*.wild.example"], label="a wildcard server")
SERVERS = (FIRST, SECOND, WILD)

HANDSHAKE = Suite("handshake", Setup(identities=SERVERS))
TICKETS = Suite("tickets", Setup(identities=SERVERS, tickets=2))
CLIENTS = Suite("clients", Setup(identities=SERVERS))

#: Types of GREASE (RFC 8701 §2).
GREASE = 0x0A0A
#: Groups that the server has not, with the size of a share that has the right shape.
OTHER_SHARES = {codes.SECP521R1: 133, codes.X25519MLKEM768: 1216, GREASE: 1}

Bytes = Callable[[bytes], bytes]


def put(kind: int, body: bytes) -> Edit:
    return lambda h: h.put(kind, body)


def add(kind: int, body: bytes = b"") -> Edit:
    """An extension more, at the end, whatever is there already."""
    return lambda h: h.extensions.append((kind, body))


def drop(*kinds: int) -> Edit:
    def edit(h: Hello) -> None:
        for kind in kinds:
            h.drop(kind)

    return edit


def again(kind: int) -> Edit:
    return lambda h: h.again(kind)


def change(kind: int, how: Bytes) -> Edit:
    return lambda h: h.put(kind, how(h.get(kind)))


def set_field(name: str, value: object) -> Edit:
    return lambda h: setattr(h, name, value)


def edit_body(how: Bytes) -> Edit:
    return lambda h: setattr(h, "edit_body", how)


def both(*edits: Edit) -> Edit:
    def edit(h: Hello) -> None:
        for one in edits:
            one(h)

    return edit


def append(more: bytes) -> Bytes:
    return lambda body: body + more


def pad_to(size: int) -> Edit:
    """Fill the hello's body to exactly ``size`` bytes with the padding extension (RFC 7685)."""

    def edit(h: Hello) -> None:
        h.drop(codes.PADDING)
        room = size - (len(h.message()) - 4) - 4
        h.put(codes.PADDING, bytes(room))

    return edit


def raw_vec(body: bytes, length: int) -> bytes:
    """A two-byte vector whose length lies."""
    return vec16(body, length)


def share_entry(group: int, public: bytes) -> bytes:
    return u16(group) + vec16(public)
