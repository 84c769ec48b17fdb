"""Rooms: where a verified client's leaf lies once its area has gone back.

A slot's room is not in one place. The map is cut in columns, one for each 256 bytes of a room, and
each column has its piece of every slot's: neighbours in a column are neighbours in slots. A page
then holds the first pieces of sixteen leaves, and not two whole rooms that are mostly zeros, so a
leaf of 600 bytes costs 768 resident ones and not 2,048.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from . import copies
from .layout import ROOM_LEN

PIECE: Final = 256


class Rooms:
    """The rooms of all slots, over a map of ROOM_LEN bytes a slot."""

    __slots__ = ("_map", "_slots")

    def __init__(self, memory: memoryview, slots: int) -> None:
        self._map = memory
        self._slots = slots

    def keep(self, slot: int, leaf: memoryview) -> None:
        """Write a leaf of at most ROOM_LEN bytes into an empty room."""
        for at, start, end in self._pieces(slot, len(leaf)):
            self._map[start:end] = leaf[at : at + end - start]

    def leaf(self, slot: int, length: int) -> bytes:
        """The leaf that is kept."""
        return b"".join(self._map[start:end] for _, start, end in self._pieces(slot, length))

    def clear(self, slot: int, length: int) -> None:
        """Empty a room of its leaf."""
        for _, start, end in self._pieces(slot, length):
            copies.clear(self._map, start, end)

    def nonzero_past(self, slot: int, length: int) -> int:
        """How many bytes of a room that lie past `length` are not zero."""
        count = 0
        for at, start, end in self._pieces(slot, ROOM_LEN):
            first = start + max(length - at, 0)
            if first < end:
                count += copies.nonzero(self._map[first:end])
        return count

    def _pieces(self, slot: int, length: int) -> Iterator[tuple[int, int, int]]:
        """Where each piece of a room's first `length` bytes lies: offset, start and end."""
        stride = self._slots * PIECE
        start = slot * PIECE
        for at in range(0, length, PIECE):
            yield at, start, start + min(PIECE, length - at)
            start += stride
