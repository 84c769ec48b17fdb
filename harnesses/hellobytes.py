"""A ClientHello as lists that can be edited, for making inputs: nothing is checked, so it can be
made wrong.

Written apart from the engine's reader on purpose, and never used by a harness while it fuzzes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from engine import codepoints as c

RANDOM = bytes(range(32))
SESSION_ID = bytes(range(64, 96))
CLIENT_KEY = bytes([7]) * 32
"""The private key whose share the handmade hellos offer, so that a client can go on from them."""


def vector(width: int, *parts: bytes) -> bytes:
    """A vector of the presentation language: its length in `width` bytes, then its content."""
    content = b"".join(parts)
    return len(content).to_bytes(width) + content


def numbers(*values: int) -> bytes:
    """Two-byte numbers in a row."""
    return b"".join(value.to_bytes(2) for value in values)


def x25519_share(private: bytes = CLIENT_KEY) -> bytes:
    """The public half of an X25519 key."""
    key = X25519PrivateKey.from_private_bytes(private)
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def share(group: int, key: bytes) -> bytes:
    """A KeyShareEntry."""
    return numbers(group) + vector(2, key)


def shares(*entries: bytes) -> bytes:
    """The body of a client's key_share."""
    return vector(2, *entries)


def names(*entries: tuple[int, bytes]) -> bytes:
    """The body of server_name."""
    return vector(2, *(bytes([kind]) + vector(2, name) for kind, name in entries))


def alpn(*protocols: bytes) -> bytes:
    """The body of application_layer_protocol_negotiation."""
    return vector(2, *(vector(1, protocol) for protocol in protocols))


def psk(identities: list[bytes], binders: list[bytes]) -> bytes:
    """The body of pre_shared_key; every ticket's age is 0."""
    listed = vector(2, *(vector(2, identity) + bytes(4) for identity in identities))
    return listed + vector(2, *(vector(1, binder) for binder in binders))


@dataclass
class Hello:
    """The parts of a ClientHello in wire order."""

    version: int = c.VERSION_TLS_1_2
    random: bytes = RANDOM
    session_id: bytes = SESSION_ID
    suites: bytes = numbers(
        c.TLS_AES_128_GCM_SHA256, c.TLS_CHACHA20_POLY1305_SHA256, c.TLS_AES_256_GCM_SHA384
    )
    compressions: bytes = b"\0"
    extensions: list[tuple[int, bytes]] | None = field(default_factory=list)

    def body(self) -> bytes:
        """The message's body, without its four header bytes."""
        head = (
            numbers(self.version)
            + self.random
            + vector(1, self.session_id)
            + vector(2, self.suites)
            + vector(1, self.compressions)
        )
        if self.extensions is None:
            return head
        return head + vector(2, *(numbers(kind) + vector(2, x) for kind, x in self.extensions))

    def put(self, kind: int, data: bytes) -> Hello:
        """Replaces an extension where it stands, or adds it at the end."""
        listed = self.extensions or []
        if all(known != kind for known, _ in listed):
            listed.append((kind, b""))
        self.extensions = [(known, data if known == kind else old) for known, old in listed]
        return self

    def without(self, kind: int) -> Hello:
        """Takes an extension away."""
        self.extensions = [entry for entry in self.extensions or [] if entry[0] != kind]
        return self


def plain() -> Hello:
    """A small hello that every rule accepts: X25519, all suites, `server.example`."""
    return Hello(
        extensions=[
            (c.EXT_SERVER_NAME, names((c.HOST_NAME, b"server.example"))),
            (c.EXT_SUPPORTED_GROUPS, vector(2, numbers(c.X25519, c.P256, c.P384))),
            (c.EXT_SIGNATURE_ALGORITHMS, vector(2, numbers(c.ECDSA_SECP256R1_SHA256))),
            (c.EXT_SUPPORTED_VERSIONS, vector(1, numbers(c.VERSION_TLS_1_3))),
            (c.EXT_KEY_SHARE, shares(share(c.X25519, x25519_share()))),
        ]
    )


def message(kind: int, body: bytes) -> bytes:
    """A handshake message."""
    return bytes([kind]) + vector(3, body)


def record(kind: int, data: bytes, version: int = c.VERSION_TLS_1_2) -> bytes:
    """One record."""
    return bytes([kind]) + numbers(version) + vector(2, data)


def hello_record(body: bytes) -> bytes:
    """A ClientHello's body as the records that carry it, each as full as it may be."""
    whole = message(c.CLIENT_HELLO, body)
    return b"".join(
        record(c.HANDSHAKE, whole[at : at + 16_384]) for at in range(0, len(whole), 16_384)
    )
