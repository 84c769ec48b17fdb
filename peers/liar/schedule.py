"""The key schedule of RFC 8446 §7, one HMAC at a time, and nothing hidden: secrets have names.

Every secret ever derived stays in `Schedule.secrets`, so that a script can use the wrong one.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from .codes import AES_128_GCM_SHA256, AES_256_GCM_SHA384, CHACHA20_POLY1305_SHA256
from .wire import u16, vec8


@dataclass(frozen=True)
class Suite:
    """A cipher suite: its hash, and its AEAD with the size of the key in bytes."""

    code: int
    hash: str
    hash_size: int
    key_size: int
    aead: type[AESGCM] | type[ChaCha20Poly1305]


SUITES = {
    AES_128_GCM_SHA256: Suite(AES_128_GCM_SHA256, "sha256", 32, 16, AESGCM),
    AES_256_GCM_SHA384: Suite(AES_256_GCM_SHA384, "sha384", 48, 32, AESGCM),
    CHACHA20_POLY1305_SHA256: Suite(CHACHA20_POLY1305_SHA256, "sha256", 32, 32, ChaCha20Poly1305),
}


def digest(name: str, data: bytes | bytearray) -> bytes:
    """The hash of some bytes."""
    return hashlib.new(name, data).digest()


@lru_cache(maxsize=512)
def _label(label: str, context: bytes, size: int) -> bytes:
    """HkdfLabel (§7.1)."""
    return u16(size) + vec8(b"tls13 " + label.encode()) + vec8(context)


def expand(name: str, secret: bytes, info: bytes, size: int) -> bytes:
    """HKDF-Expand (RFC 5869 §2.3)."""
    out = block = hmac.digest(secret, info + b"\x01", name)
    count = 1
    while len(out) < size:
        count += 1
        block = hmac.digest(secret, block + info + bytes((count,)), name)
        out += block
    return out[:size]


def expand_label(name: str, secret: bytes, label: str, context: bytes, size: int) -> bytes:
    """HKDF-Expand-Label (§7.1)."""
    if context:  # a transcript hash is new each time: no use in keeping it
        info = u16(size) + vec8(b"tls13 " + label.encode()) + vec8(context)
    else:
        info = _label(label, context, size)
    return expand(name, secret, info, size)


def finished_mac(name: str, secret: bytes, transcript_hash: bytes) -> bytes:
    """verify_data of a Finished, or a binder (§4.4.4, §4.2.11.2)."""
    size = len(transcript_hash)
    return hmac.digest(expand_label(name, secret, "finished", b"", size), transcript_hash, name)


def binder_key(name: str, psk: bytes, label: str = "res binder") -> bytes:
    """The key under a binder: "res binder" for a ticket, "ext binder" for another PSK."""
    size = hashlib.new(name).digest_size
    early = hmac.digest(bytes(size), psk, name)
    return expand_label(name, early, label, digest(name, b""), size)


class Schedule:
    """Early, handshake and application secrets of one connection."""

    def __init__(self, suite: Suite, psk: bytes = b"") -> None:
        self.suite = suite
        self.hash = suite.hash
        self.size = suite.hash_size
        self.secrets: dict[str, bytes] = {}
        zero = bytes(self.size)
        self._empty = digest(self.hash, b"")
        self.secrets["early"] = hmac.digest(zero, psk or zero, self.hash)

    def derive(self, base: str, label: str, transcript_hash: bytes) -> bytes:
        """Derive-Secret (§7.1) from the secret named ``base``; kept under its label."""
        value = expand_label(self.hash, self.secrets[base], label, transcript_hash, self.size)
        self.secrets[label] = value
        return value

    def handshake(self, shared: bytes, transcript_hash: bytes) -> None:
        """From the (EC)DHE secret and the transcript through the ServerHello."""
        salt = expand_label(self.hash, self.secrets["early"], "derived", self._empty, self.size)
        self.secrets["handshake"] = hmac.digest(salt, shared, self.hash)
        self.derive("handshake", "c hs traffic", transcript_hash)
        self.derive("handshake", "s hs traffic", transcript_hash)
        salt = expand_label(self.hash, self.secrets["handshake"], "derived", self._empty, self.size)
        self.secrets["master"] = hmac.digest(salt, bytes(self.size), self.hash)

    def application(self, transcript_hash: bytes) -> None:
        """From the transcript through the server's Finished."""
        self.derive("master", "c ap traffic", transcript_hash)
        self.derive("master", "s ap traffic", transcript_hash)

    def resumption(self, transcript_hash: bytes) -> None:
        """From the transcript through the client's Finished."""
        self.derive("master", "res master", transcript_hash)

    def ticket_psk(self, nonce: bytes) -> bytes:
        """The PSK of a NewSessionTicket (§4.6.1)."""
        return expand_label(self.hash, self.secrets["res master"], "resumption", nonce, self.size)


def early_secret(name: str, psk: bytes) -> bytes:
    """HKDF-Extract with no salt (§7.1)."""
    return hmac.digest(bytes(hashlib.new(name).digest_size), psk, name)
