"""Records (RFC 8446 §5): any type, any version, any length, any padding, any cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cryptography.exceptions import InvalidTag

from .codes import APPLICATION_DATA
from .fault import ServerFault, check
from .schedule import Suite, expand_label
from .wire import u16

PLAIN_LIMIT = 1 << 14
SEALED_LIMIT = (1 << 14) + 256


def record(kind: int, fragment: bytes, version: int = 0x0303, length: int | None = None) -> bytes:
    """One plaintext record; ``length`` is the lie."""
    size = len(fragment) if length is None else length
    return bytes((kind,)) + u16(version) + u16(size) + fragment


def pieces(data: bytes, sizes: int | Sequence[int]) -> list[bytes]:
    """Cut data: an int is the size of every piece, a sequence the sizes of the first ones."""
    if isinstance(sizes, int):
        return [data[i : i + sizes] for i in range(0, len(data), sizes)]
    out, at = [], 0
    for size in sizes:
        out.append(data[at : at + size])
        at += size
    return [*out, data[at:]] if at < len(data) else out


def records(
    kind: int, data: bytes, sizes: int | Sequence[int] = PLAIN_LIMIT, version: int = 0x0303
) -> bytes:
    """Data in plaintext records of the given sizes."""
    return b"".join(record(kind, part, version) for part in pieces(data, sizes))


class Protection:
    """One direction's key, from its traffic secret (§7.3), and its sequence number (§5.3)."""

    def __init__(self, suite: Suite, secret: bytes, name: str = "") -> None:
        self.suite = suite
        self.secret = secret
        self.name = name
        self.key = expand_label(suite.hash, secret, "key", b"", suite.key_size)
        self.iv = int.from_bytes(expand_label(suite.hash, secret, "iv", b"", 12), "big")
        self.sequence = 0
        self._aead = suite.aead(self.key)

    def updated(self) -> Protection:
        """The next generation (§7.2)."""
        suite = self.suite
        secret = expand_label(suite.hash, self.secret, "traffic upd", b"", suite.hash_size)
        return Protection(suite, secret, self.name)

    def _nonce(self) -> bytes:
        nonce = (self.iv ^ self.sequence).to_bytes(12, "big")
        self.sequence += 1
        return nonce

    def seal_inner(
        self, inner: bytes, version: int = 0x0303, outer: int = APPLICATION_DATA
    ) -> bytes:
        """Seal a whole TLSInnerPlaintext, whatever it holds."""
        header = bytes((outer,)) + u16(version) + u16(len(inner) + 16)
        return header + self._aead.encrypt(self._nonce(), inner, header)

    def seal(self, kind: int, content: bytes, padding: int = 0, version: int = 0x0303) -> bytes:
        """One protected record."""
        return self.seal_inner(content + bytes((kind,)) + bytes(padding), version)

    def open(self, header: bytes, body: bytes) -> tuple[int, bytes, int]:
        """The inner type, the content and the length of the padding."""
        try:
            inner = self._aead.decrypt(self._nonce(), body, header)
        except InvalidTag:
            rule = "RFC 8446 §5.2: a record is sealed under the key of its time"
            raise ServerFault(rule, f"does not open under {self.name}") from None
        check(len(inner) <= PLAIN_LIMIT + 1, "RFC 8446 §5.4: inner plaintext is at most 2^14 + 1")
        content = inner.rstrip(b"\0")
        check(content, "RFC 8446 §5.4: an inner plaintext has a type")
        return content[-1], content[:-1], len(inner) - len(content)


def seal_all(
    protection: Protection,
    kind: int,
    data: bytes,
    sizes: int | Sequence[int] = PLAIN_LIMIT,
    padding: int = 0,
) -> bytes:
    """Data in protected records of the given sizes."""
    parts: Iterable[bytes] = pieces(data, sizes)
    return b"".join(protection.seal(kind, part, padding) for part in parts)
