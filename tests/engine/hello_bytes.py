"""ClientHellos for tests: built field by field, without the engine's own writers, or real ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

SERVER_NAME, GROUPS, SCHEMES, ALPN = 0, 10, 13, 16
PRE_SHARED_KEY, EARLY_DATA, VERSIONS, COOKIE, MODES, SHARES = 41, 42, 43, 44, 45, 51

X25519, P256, P384, HYBRID, GREASE = 29, 23, 24, 0x11EC, 0x2A2A


def u16(n: int) -> bytes:
    return n.to_bytes(2, "big")


def v8(data: bytes) -> bytes:
    return bytes([len(data)]) + data


def v16(data: bytes) -> bytes:
    return u16(len(data)) + data


def words(values: Iterable[int]) -> bytes:
    return b"".join(map(u16, values))


def versions(*values: int) -> bytes:
    return v8(words(values))


def word_list(*values: int) -> bytes:
    return v16(words(values))


def shares(*pairs: tuple[int, bytes]) -> bytes:
    return v16(b"".join(u16(group) + v16(share) for group, share in pairs))


def names(*pairs: tuple[int, bytes]) -> bytes:
    return v16(b"".join(bytes([kind]) + v16(name) for kind, name in pairs))


def protocols(*values: bytes) -> bytes:
    return v16(b"".join(map(v8, values)))


def tickets(identities: list[tuple[bytes, int]], binders: list[bytes]) -> bytes:
    offered = b"".join(v16(name) + age.to_bytes(4, "big") for name, age in identities)
    return v16(offered) + v16(b"".join(map(v8, binders)))


@dataclass(frozen=True)
class Body:
    """A ClientHello's body. `extensions` None leaves out even the length of the list."""

    legacy_version: int = 0x0303
    random: bytes = bytes(range(32))
    session_id: bytes = b"\x55" * 32
    suites: bytes = words([0x1301, 0x1302, 0x1303])
    compression: bytes = b"\x00"
    extensions: tuple[tuple[int, bytes], ...] | None = field(default=())

    def encode(self) -> bytes:
        head = u16(self.legacy_version) + self.random + v8(self.session_id)
        head += v16(self.suites) + v8(self.compression)
        if self.extensions is None:
            return head
        return head + v16(b"".join(u16(kind) + v16(data) for kind, data in self.extensions))

    def put(self, kind: int, data: bytes) -> Body:
        """With the extension of this type replaced, or added at the end."""
        own = list(self.extensions or ())
        kinds = [k for k, _ in own]
        if kind in kinds:
            own[kinds.index(kind)] = (kind, data)
        else:
            own.append((kind, data))
        return replace(self, extensions=tuple(own))

    def add(self, kind: int, data: bytes) -> Body:
        """With one more extension at the end, whatever is there already."""
        return replace(self, extensions=(*(self.extensions or ()), (kind, data)))

    def without(self, kind: int) -> Body:
        return replace(self, extensions=tuple(e for e in self.extensions or () if e[0] != kind))


SHARE = b"\x09" + bytes(31)

GOOD = Body(
    extensions=(
        (VERSIONS, versions(0x0304)),
        (GROUPS, word_list(X25519, P256, P384)),
        (SCHEMES, word_list(0x0403, 0x0804)),
        (SHARES, shares((X25519, SHARE))),
    )
)
"""The least that is accepted: one share, no name, no ALPN, no ticket."""

TICKET = b"t" * 155
BINDER = b"b" * 32
RESUMING = GOOD.put(MODES, v8(b"\x01")).put(
    PRE_SHARED_KEY, tickets([(TICKET, 0x01020304)], [BINDER])
)
"""The same with a ticket."""


def real() -> dict[str, bytes]:
    """The bodies of the recorded ClientHellos, by the name of the client."""
    found = {}
    for path in sorted((Path(__file__).parent / "hellos").glob("*.hex")):
        flight = bytes.fromhex(path.read_text().strip())
        message = b""
        while flight:
            end = 5 + int.from_bytes(flight[3:5], "big")
            message += flight[5:end]
            flight = flight[end:]
        found[path.stem] = message[4 : 4 + int.from_bytes(message[1:4], "big")]
    return found
