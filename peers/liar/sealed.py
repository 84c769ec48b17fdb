"""This project's tickets, sealed and opened a second time (SPEC §5.1), to lie inside them.

ticket  = key_name (16) || salt (32) || ChaCha20-Poly1305(subkey, zero nonce, plaintext)
subkey  = HKDF-Expand(HKDF-Extract(salt, key), "cancho tls ticket v1", 32)
aad     = 01 || key_name || salt
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from .fault import ServerFault, check
from .schedule import expand
from .wire import Reader, u8, u16, u32, vec8


def key_name(key: bytes) -> bytes:
    """The name that tickets under a key begin with."""
    return hmac.digest(key, b"cancho tls ticket key name v1", "sha256")[:16]


@dataclass(frozen=True)
class Contents:
    """A ticket's plaintext; ``more`` follows it, ``psk_size`` is the lie about the PSK's length."""

    issue_ms: int
    expiry_ms: int
    age_add: int
    suite: int
    psk: bytes
    fingerprint: bytes
    name: bytes = b""
    alpn: bytes = b""
    version: int = 1
    auth: int = 0
    more: bytes = b""
    psk_size: int | None = None

    def plaintext(self) -> bytes:
        """The bytes that are sealed."""
        return (
            u8(self.version) + u8(self.auth) + self.issue_ms.to_bytes(8, "big")
            + self.expiry_ms.to_bytes(8, "big") + u32(self.age_add) + u16(self.suite)
            + vec8(self.psk, self.psk_size) + self.fingerprint + vec8(self.name) + vec8(self.alpn)
            + self.more
        )  # fmt: skip


def _aead(key: bytes, salt: bytes) -> ChaCha20Poly1305:
    extracted = hmac.digest(salt, key, "sha256")
    return ChaCha20Poly1305(expand("sha256", extracted, b"cancho tls ticket v1", 32))


def seal(key: bytes, salt: bytes, plaintext: bytes) -> bytes:
    """A ticket: a plaintext sealed under a ticket key."""
    head = key_name(key) + salt
    return head + _aead(key, salt).encrypt(bytes(12), plaintext, b"\x01" + head)


def unseal(key: bytes, ticket: bytes) -> Contents:
    """Open a ticket of the server's; raises `ServerFault` when it is not in the format."""
    check(ticket[:16] == key_name(key), "SPEC §5.1: a ticket names the current key")
    salt, body = ticket[16:48], ticket[48:]
    try:
        plaintext = _aead(key, salt).decrypt(bytes(12), body, b"\x01" + ticket[:48])
    except InvalidTag:
        raise ServerFault("SPEC §5.1: a ticket opens under its subkey") from None
    reader = Reader(plaintext, "ticket")
    version, auth = reader.number(1), reader.number(1)
    issue, expiry = reader.number(8), reader.number(8)
    age_add, suite = reader.number(4), reader.number(2)
    psk = reader.vector(1)
    found = Contents(
        issue, expiry, age_add, suite, psk, reader.take(32), reader.vector(1), reader.vector(1),
        version, auth,
    )  # fmt: skip
    reader.end()
    return found
