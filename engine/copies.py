"""Block moves, clears and counts over a slot's bytes. Nothing else moves or clears secrets.

Every clear writes from one constant block of zeros: no object is made for the purpose, and a
clear costs a memmove. Every count is a scan of the memory itself.
"""

import struct
from functools import lru_cache
from typing import Final

from .layout import AREA_LEN, CORE_LEN, KEYS, KEYS_END

_ZEROS: Final = memoryview(bytes(AREA_LEN))
# A bytearray compares with a view as one memcmp; bytes and other views compare an item at a time.
_ZERO_RUNS: Final = tuple(bytearray(1 << digit) for digit in range(14, -1, -1))
# Packing pad bytes writes zeros: for the length of a small record, half the price of two slices.
_BLANKS: Final = tuple(struct.Struct(f"{length}x").pack_into for length in range(513))
_MOST_BLANKS: Final = len(_BLANKS) - 1


def clear(view: memoryview, start: int, end: int) -> None:
    """Zero bytes start to end of a block of at most an area."""
    length = end - start
    if length <= _MOST_BLANKS:
        _BLANKS[length](view, start)
    else:
        view[start:end] = _ZEROS[:length]


def clear_keys(block: memoryview) -> None:
    """Zero both directions' secrets, keys and IVs of a core, or of an area's copy of it."""
    block[KEYS:KEYS_END] = _ZEROS[: KEYS_END - KEYS]


def copy_core(target: memoryview, source: memoryview) -> None:
    """Move a core: in at a lease, out when the area goes back."""
    target[:CORE_LEN] = source[:CORE_LEN]


@lru_cache(maxsize=16)
def _blank(length: int) -> bytearray:
    """Zeros to compare with. A bytearray compares with a view as one memcmp; bytes and other views
    compare an item at a time, a hundred times slower."""
    return bytearray(length)


def wipe(view: memoryview) -> None:
    """Zero a block of any length. What is zero already is only read, so that a page nobody wrote
    does not become resident."""
    for start in range(0, len(view), AREA_LEN):
        piece = view[start : start + AREA_LEN]
        if _blank(len(piece)) != piece:
            piece[:] = _ZEROS[: len(piece)]


def nonzero(view: memoryview) -> int:
    """How many bytes of a block are not zero: a scan, not a counter."""
    count = 0
    for start in range(0, len(view), AREA_LEN):
        piece = view[start : start + AREA_LEN]
        if _blank(len(piece)) != piece:
            count += len(piece) - bytes(piece).count(0)
    return count


def content_end(view: memoryview, start: int, end: int) -> int:
    """Where the zeros at the end of bytes start to end begin; start when there is nothing else.

    At most 32,767 of them. As many comparisons whatever their number, because it is the peer who
    says how much padding there is; and no copy, because the bytes are plaintext.
    """
    if view[end - 1]:
        return end
    # The length of the zeros, one binary digit after the other.
    for zeros in _ZERO_RUNS:
        place = end - len(zeros)
        if place >= start and zeros == view[place:end]:
            end = place
    return end
