"""What the mutants of pool.py and copies.py showed that no other test looked at.

Several of these are about cost alone: a page that is written for nothing becomes resident, and a
scan that goes a byte at a time is a hundred times slower. Cost is seen by what is called, or by a
view that cannot be written, and not by a clock.
"""

from collections.abc import Callable

import pytest

from engine import copies
from engine.copies import clear, content_end, nonzero, wipe
from engine.layout import AREA_LEN

FILLED = b"\xff"


def filled(length: int) -> bytearray:
    return bytearray(FILLED * length)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of every comparison with zeros, as they are made."""
    lengths: list[int] = []
    blank: Callable[[int], bytearray] = copies._blank

    def counting(length: int) -> bytearray:
        lengths.append(length)
        return blank(length)

    monkeypatch.setattr(copies, "_blank", counting)
    return lengths


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 514, AREA_LEN - 7])
def test_a_clear_zeroes_just_its_bytes(length: int) -> None:
    block = filled(AREA_LEN)
    clear(memoryview(block), 7, 7 + length)
    assert block == FILLED * 7 + bytes(length) + FILLED * (AREA_LEN - 7 - length)


def test_a_short_clear_packs_and_a_long_one_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[int] = []

    def packing(length: int) -> Callable[[memoryview, int], None]:
        return lambda view, start: packed.append(length)

    most = copies._MOST_BLANKS
    monkeypatch.setattr(copies, "_BLANKS", [packing(length) for length in range(most + 1)])
    for length in (0, 1, most, most + 1):
        clear(memoryview(bytearray(AREA_LEN)), 0, length)
    assert packed == [0, 1, most]


@pytest.mark.parametrize("length", [0, 1, AREA_LEN - 1, AREA_LEN, AREA_LEN + 1, 3 * AREA_LEN + 5])
def test_a_wipe_and_a_count_take_a_block_of_any_length(length: int) -> None:
    block = filled(length)
    assert nonzero(memoryview(block)) == length
    wipe(memoryview(block))
    assert not any(block) and nonzero(memoryview(block)) == 0


def test_a_wipe_and_a_count_go_by_areas(asked: list[int]) -> None:
    wipe(memoryview(bytearray(2 * AREA_LEN + 5)))
    assert asked == [AREA_LEN, AREA_LEN, 5]
    asked.clear()
    assert nonzero(memoryview(bytes(2 * AREA_LEN + 5))) == 0
    assert asked == [AREA_LEN, AREA_LEN, 5]


def test_a_wipe_writes_nothing_where_everything_is_zero() -> None:
    wipe(memoryview(bytes(2 * AREA_LEN)))  # which could not be written


def test_a_count_copies_no_piece_that_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []

    def copying(piece: memoryview) -> bytes:
        copied.append(len(piece))
        return piece.tobytes()

    monkeypatch.setattr(copies, "bytes", copying, raising=False)
    assert nonzero(memoryview(bytearray(2 * AREA_LEN) + FILLED)) == 1
    assert copied == [1]


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("content", [0, 1, 255, 256, 257, 700])
@pytest.mark.parametrize("zeros", [0, 1, 255, 256, 257, 1024])
def test_content_ends_where_its_last_zeros_begin(start: int, content: int, zeros: int) -> None:
    # Before the start there are zeros too, which are not of this content.
    block = bytes(start) + FILLED * content + bytes(zeros) + FILLED * 4
    end = start + content + zeros
    assert content_end(memoryview(block), start, end) == start + content


@pytest.mark.parametrize(("zeros", "stretches"), [(255, 0), (256, 1), (512, 2), (1024, 4)])
def test_content_of_zeros_alone_is_passed_a_stretch_at_a_time(
    zeros: int, stretches: int, asked: list[int]
) -> None:
    block = bytes(300) + bytes(zeros)
    assert content_end(memoryview(block), 300, 300 + zeros) == 300
    assert asked == [256] * stretches
