"""The transcript and the key schedule of RFC 8446 §4.4.1 and §7, and the AEADs of its suites.

The HkdfLabel of every label with an empty context is a constant, made once with HKDF-Expand's
counter byte behind it: every output here is at most one hash long, so that one HMAC is the whole
expansion (RFC 5869 §2.3). Most secrets key several HMACs, so each is hashed into HMAC's two pad
states once (RFC 2104 §4) and every label starts from copies of them; measured, that is twice as
fast as one `hmac.digest` a label.

Secrets come in as views of an area where they have one. What `hmac` returns is a `bytes` object
that Python cannot wipe: each lives in a local until it is written to the area, no longer.
"""

import hashlib
import struct
from collections.abc import Callable
from typing import Final, Protocol

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from . import codepoints as c
from .layout import MAX_TICKETS

Aead = AESGCM | ChaCha20Poly1305
Buffer = bytes | bytearray | memoryview


class Transcript(Protocol):
    """What is needed of a `hashlib` object."""

    def update(self, data: Buffer, /) -> None:
        """Add bytes to what is hashed."""

    def digest(self) -> bytes:
        """The hash of all so far; more can follow."""

    def copy(self) -> "Transcript":
        """Another that goes on from here by itself."""


Pads = tuple[Transcript, Transcript]

_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))


def mac(pads: Pads, message: Buffer) -> bytes:
    """HMAC of a message, from the states of its key."""
    inner = pads[0].copy()
    inner.update(message)
    outer = pads[1].copy()
    outer.update(inner.digest())
    return outer.digest()


def _info(length: int, label: bytes, context: bytes = b"") -> bytes:
    """HkdfLabel of §7.1, then the counter of HKDF-Expand's first and only block."""
    full = b"tls13 " + label
    return struct.pack(">HB", length, len(full)) + full + bytes([len(context)]) + context + b"\x01"


class HashSuite:
    """A suite's hash, and every constant of the key schedule that depends on it."""

    __slots__ = (
        "_context_prefix",
        "_fresh",
        "_resumption",
        "_zeros_keyed",
        "block",
        "derived",
        "empty",
        "finished",
        "name",
        "new",
        "no_psk",
        "res_binder",
        "size",
        "zeros",
    )

    def __init__(self, name: str, block: int, new: Callable[[Buffer], Transcript]) -> None:
        self.name = name
        self.new = new
        self.block = block
        # A copy of a fresh state costs less than OpenSSL's way from a name to one.
        self._fresh = new(b"")
        self.empty = new(b"").digest()
        self.size = len(self.empty)
        self.zeros = bytes(self.size)
        self.finished = _info(self.size, b"finished")
        self.derived = _info(self.size, b"derived", self.empty)
        self.res_binder = _info(self.size, b"res binder", self.empty)
        self._resumption = tuple(
            _info(self.size, b"resumption", bytes([index])) for index in range(MAX_TICKETS)
        )
        self._zeros_keyed = self.keyed(self.zeros)
        # Without a pre-shared key the early secret is a constant (§7.1).
        self.no_psk = self.keyed(mac(self.early(self.zeros), self.derived))
        self._context_prefix: dict[bytes, bytes] = {
            label: _info(self.size, label, self.empty)[: -self.size - 1]
            for label in (
                b"c hs traffic",
                b"s hs traffic",
                b"c ap traffic",
                b"s ap traffic",
                b"res master",
            )
        }

    def keyed(self, key: Buffer) -> "Pads":
        """HMAC's two states under a key of at most a block (RFC 2104 §2)."""
        padded = bytes(key).ljust(self.block, b"\x00")
        inner = self._fresh.copy()
        inner.update(padded.translate(_INNER))
        outer = self._fresh.copy()
        outer.update(padded.translate(_OUTER))
        return inner, outer

    def derive(self, pads: "Pads", label: bytes, transcript: bytes) -> bytes:
        """Derive-Secret over a transcript's hash (§7.1)."""
        return mac(pads, self._context_prefix[label] + transcript + b"\x01")

    def master(self, handshake_pads: "Pads") -> bytes:
        """The master secret, from the handshake secret (§7.1)."""
        return mac(self.keyed(mac(handshake_pads, self.derived)), self.zeros)

    def early(self, psk: Buffer) -> "Pads":
        """The early secret of a pre-shared key (§7.1)."""
        return self.keyed(mac(self._zeros_keyed, psk))

    def resumption_psk(self, resumption_master: "Pads", index: int) -> bytes:
        """The PSK of a connection's ticket number `index`, which is also its nonce (§4.6.1)."""
        return mac(resumption_master, self._resumption[index])

    def finished_mac(self, finished_key: Buffer, transcript: bytes) -> bytes:
        """verify_data of a Finished (§4.4.4)."""
        return mac(self.keyed(finished_key), transcript)

    def next_secret(self, secret: Buffer) -> bytes:
        """application_traffic_secret_N+1 (§7.2)."""
        return mac(self.keyed(secret), _UPDATE[self.size])


SHA256: Final = HashSuite("sha256", 64, hashlib.sha256)
SHA384: Final = HashSuite("sha384", 128, hashlib.sha384)

_UPDATE: Final = {32: _info(32, b"traffic upd"), 48: _info(48, b"traffic upd")}
_KEY_INFO: Final = {16: _info(16, b"key"), 32: _info(32, b"key")}
_IV_INFO: Final = _info(12, b"iv")


class CipherSuite:
    """One cipher suite (§B.4): its AEAD, the length of its key, its hash."""

    __slots__ = ("aead", "code", "hash", "key_info", "key_length", "record_limit")

    def __init__(
        self,
        code: int,
        aead: type[AESGCM] | type[ChaCha20Poly1305],
        key_length: int,
        hash_suite: HashSuite,
        record_limit: int,
    ) -> None:
        self.code = code
        self.aead = aead
        self.key_length = key_length
        self.hash = hash_suite
        self.key_info = _KEY_INFO[key_length]
        self.record_limit = record_limit

    def traffic_key(self, pads: Pads) -> bytes:
        """The key of a traffic secret (§7.3)."""
        return mac(pads, self.key_info)[: self.key_length]

    def traffic_iv(self, pads: Pads) -> bytes:
        """The IV of a traffic secret (§7.3)."""
        return mac(pads, _IV_INFO)[:12]


# Full-size records under one AES-GCM key stay below 2^24.5 (§5.5); the sequence number of any
# suite below 2^63 (§5.3: it must not wrap).
AES_GCM_RECORDS: Final = 23_726_566
LAST_SEQUENCE: Final = (1 << 63) - 1

SUITES: Final[dict[int, CipherSuite]] = {
    suite.code: suite
    for suite in (
        CipherSuite(c.TLS_AES_128_GCM_SHA256, AESGCM, 16, SHA256, AES_GCM_RECORDS),
        CipherSuite(c.TLS_AES_256_GCM_SHA384, AESGCM, 32, SHA384, AES_GCM_RECORDS),
        CipherSuite(c.TLS_CHACHA20_POLY1305_SHA256, ChaCha20Poly1305, 32, SHA256, LAST_SEQUENCE),
    )
}


def message_hash(suite: HashSuite, first_hello: Buffer) -> bytes:
    """The synthetic message that stands for the first ClientHello after a retry (§4.4.1)."""
    digest = suite.new(first_hello).digest()
    return bytes([c.MESSAGE_HASH, 0, 0, suite.size]) + digest
