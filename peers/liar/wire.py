"""The presentation language of RFC 8446 §3: a writer whose lengths can lie, a strict reader."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .fault import ServerFault


def u8(value: int) -> bytes:
    """A number in one byte."""
    return value.to_bytes(1, "big")


def u16(value: int) -> bytes:
    """A number in two bytes."""
    return value.to_bytes(2, "big")


def u24(value: int) -> bytes:
    """A number in three bytes."""
    return value.to_bytes(3, "big")


def u32(value: int) -> bytes:
    """A number in four bytes."""
    return value.to_bytes(4, "big")


def vec8(body: bytes, length: int | None = None) -> bytes:
    """A vector with a one-byte length; ``length`` is the lie."""
    return u8(len(body) if length is None else length) + body


def vec16(body: bytes, length: int | None = None) -> bytes:
    """A vector under a length of two bytes, the true one or another."""
    return u16(len(body) if length is None else length) + body


def vec24(body: bytes, length: int | None = None) -> bytes:
    """A vector under a length of three bytes, the true one or another."""
    return u24(len(body) if length is None else length) + body


def u16s(values: Iterable[int]) -> bytes:
    """Numbers in two bytes each."""
    return b"".join(u16(v) for v in values)


def message(kind: int, body: bytes, length: int | None = None) -> bytes:
    """A handshake message (§4); ``length`` is the lie."""
    return u8(kind) + vec24(body, length)


class Randomness:
    """Bytes from a seed and a label: the order of the draws does not matter."""

    def __init__(self, seed: bytes | str | int) -> None:
        if isinstance(seed, int):
            seed = str(seed)
        self._seed = seed.encode() if isinstance(seed, str) else bytes(seed)

    def draw(self, label: str, size: int = 32) -> bytes:
        """Bytes that the seed and a label decide."""
        prefix = hashlib.sha256(self._seed).digest() + label.encode()
        out = b""
        while len(out) < size:
            out += hashlib.sha256(prefix + u32(len(out))).digest()
        return out[:size]


class Reader:
    """Reads a server's message; anything that does not fit is the server's fault."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.at = 0
        self.what = what

    def take(self, size: int) -> bytes:
        """The next bytes; ServerFault when there are not so many."""
        if self.at + size > len(self.data):
            raise ServerFault("RFC 8446 §3: a message holds what it declares", self.what)
        part = self.data[self.at : self.at + size]
        self.at += size
        return part

    def number(self, size: int) -> int:
        """The next bytes as a number."""
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int, low: int = 0, high: int = 1 << 24) -> bytes:
        """The next vector, under a length of `size` bytes; ServerFault outside its bounds."""
        part = self.take(self.number(size))
        if not low <= len(part) <= high:
            raise ServerFault(
                "RFC 8446 §3.4: a vector keeps its bounds", f"{self.what}: {len(part)} bytes"
            )
        return part

    def more(self) -> bool:
        """Whether anything is left."""
        return self.at < len(self.data)

    def end(self) -> None:
        """ServerFault when anything is left."""
        if self.at != len(self.data):
            raise ServerFault("RFC 8446 §3: nothing is left over", self.what)


def read_extensions(data: bytes, what: str) -> dict[int, bytes]:
    """An extension block without its length: no type twice (§4.2)."""
    reader = Reader(data, what)
    found: dict[int, bytes] = {}
    while reader.more():
        kind = reader.number(2)
        if kind in found:
            raise ServerFault("RFC 8446 §4.2: no extension twice", f"{what}: {kind}")
        found[kind] = reader.vector(2)
    return found


def read_u16s(body: bytes, what: str) -> list[int]:
    """Numbers in two bytes each; ServerFault for half of one."""
    if len(body) % 2:
        raise ServerFault("RFC 8446 §3.4: a list of 16-bit values is even", what)
    return [int.from_bytes(body[i : i + 2], "big") for i in range(0, len(body), 2)]
