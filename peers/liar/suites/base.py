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
    """An edit that sets an extension."""
    return lambda h: h.put(kind, body)


def add(kind: int, body: bytes = b"") -> Edit:
    """An extension more, at the end, whatever is there already."""
    return lambda h: h.extensions.append((kind, body))


def drop(*kinds: int) -> Edit:
    """An edit that leaves extensions out."""

    def edit(h: Hello) -> None:
        for kind in kinds:
            h.drop(kind)

    return edit


def again(kind: int) -> Edit:
    """An edit that sends an extension a second time."""
    return lambda h: h.again(kind)


def change(kind: int, how: Bytes) -> Edit:
    """An edit that changes an extension's body."""
    return lambda h: h.put(kind, how(h.get(kind)))


def set_field(name: str, value: object) -> Edit:
    """An edit that sets a field of the hello."""
    return lambda h: setattr(h, name, value)


def edit_body(how: Bytes) -> Edit:
    """An edit that changes the encoded hello."""
    return lambda h: setattr(h, "edit_body", how)


def both(*edits: Edit) -> Edit:
    """An edit that makes several, in this order."""

    def edit(h: Hello) -> None:
        for one in edits:
            one(h)

    return edit


def append(more: bytes) -> Bytes:
    """A change that puts bytes behind a body."""
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
    """One entry of a key_share extension."""
    return u16(group) + vec16(public)
