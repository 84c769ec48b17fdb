"""The TLS presentation language (RFC 8446 section 3): a bounded reader, and the writers.

For the messages that are read once a connection at most, a client's Certificate above all. The
ClientHello has a reader of its own (`engine.hello`), because it is the hot one and its faults have
several names; here there is one, `Malformed`, and the caller knows what refusal it stands for.
"""

from __future__ import annotations


class Malformed(Exception):
    """The bytes are not what the language says. Never leaves the engine."""


class Reader:
    """Reads forward over `data[at:end]` and never past it."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self._data = data
        self._at = at
        self._end = len(data) if end is None else end
        if not 0 <= self._at <= self._end <= len(data):
            raise ValueError("the bounds are not inside the data")

    def number(self, width: int) -> int:
        """An unsigned number of `width` bytes."""
        return int.from_bytes(self.take(width), "big")

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        at = self._at
        if size > self._end - at:
            raise Malformed
        self._at = at + size
        return self._data[at : at + size]

    def vector(self, width: int, least: int = 0) -> bytes:
        """A vector under a length of `width` bytes, of at least `least` bytes."""
        size = self.number(width)
        if size < least:
            raise Malformed
        return self.take(size)

    def inner(self, width: int, least: int = 0) -> Reader:
        """A reader over a vector's content, which is stepped over here and not copied."""
        size = self.number(width)
        at = self._at
        if size < least or size > self._end - at:
            raise Malformed
        self._at = at + size
        return Reader(self._data, at, self._at)

    def left(self) -> int:
        """How many bytes have not been read."""
        return self._end - self._at

    def done(self) -> None:
        """Bytes left over are an error."""
        if self._at != self._end:
            raise Malformed


def u8(value: int) -> bytes:
    return value.to_bytes(1, "big")


def u16(value: int) -> bytes:
    return value.to_bytes(2, "big")


def u24(value: int) -> bytes:
    return value.to_bytes(3, "big")


def vector8(data: bytes) -> bytes:
    """`data` under a length of one byte. OverflowError when it is too long, as for the others."""
    return u8(len(data)) + data


def vector16(data: bytes) -> bytes:
    return u16(len(data)) + data


def vector24(data: bytes) -> bytes:
    return u24(len(data)) + data


def handshake(kind: int, body: bytes) -> bytes:
    """A handshake message (section 4): its type, a length of three bytes, its body."""
    return u8(kind) + vector24(body)


def extension(kind: int, data: bytes) -> bytes:
    """An extension (section 4.2): its type, a length of two bytes, its data."""
    return u16(kind) + vector16(data)
