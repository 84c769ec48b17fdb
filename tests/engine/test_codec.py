"""The reader and the writers of the presentation language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import codec
from engine.codec import Malformed, Reader


def test_numbers_and_vectors_are_read_in_turn() -> None:
    reader = Reader(bytes.fromhex("01 0203 040506 02aabb 0003ccddee".replace(" ", "")))
    assert [reader.number(n) for n in (1, 2, 3)] == [1, 0x0203, 0x040506]
    assert reader.vector(1) == b"\xaa\xbb"
    assert reader.left() == 5
    assert reader.vector(2) == b"\xcc\xdd\xee"
    reader.done()


def test_nothing_is_read_past_the_end() -> None:
    for size in range(3):
        with pytest.raises(Malformed):
            Reader(bytes(size)).take(size + 1)
        with pytest.raises(Malformed):
            Reader(bytes(size)).number(3)


def test_the_end_given_is_the_end() -> None:
    reader = Reader(b"abcdef", 1, 3)
    assert reader.take(2) == b"bc"
    with pytest.raises(Malformed):
        reader.take(1)


def test_a_vector_longer_than_what_is_left_is_malformed() -> None:
    with pytest.raises(Malformed):
        Reader(b"\x02a").vector(1)
    with pytest.raises(Malformed):
        Reader(b"\x02a").inner(1)


def test_a_vector_under_its_least_is_malformed() -> None:
    assert Reader(b"\x01a").vector(1, 1) == b"a"
    assert Reader(b"\x01a").inner(1, 1).left() == 1
    with pytest.raises(Malformed):
        Reader(b"\x01a").vector(1, 2)
    with pytest.raises(Malformed):
        Reader(b"\x01a").inner(1, 2)


def test_an_inner_reader_ends_where_its_vector_does_and_the_outer_goes_on_behind_it() -> None:
    outer = Reader(b"\x00\x02abc")
    inner = outer.inner(2)
    assert inner.take(2) == b"ab"
    inner.done()
    with pytest.raises(Malformed):
        inner.take(1)
    assert outer.take(1) == b"c"


def test_bytes_left_over_are_malformed() -> None:
    with pytest.raises(Malformed):
        Reader(b"a").done()


@pytest.mark.parametrize(("at", "end"), [(-1, 1), (2, 1), (0, 4)])
def test_bounds_outside_the_data_are_the_callers_mistake(at: int, end: int) -> None:
    with pytest.raises(ValueError):
        Reader(b"abc", at, end)


def test_a_message_and_an_extension_are_written_under_their_lengths() -> None:
    assert codec.handshake(11, b"abc").hex() == "0b000003616263"
    assert codec.extension(43, b"\x03\x04").hex() == "002b00020304"
    assert codec.u8(1) + codec.u16(2) + codec.u24(3) == bytes.fromhex("010002000003")


def test_what_does_not_fit_its_length_is_not_written() -> None:
    with pytest.raises(OverflowError):
        codec.vector8(bytes(256))
    with pytest.raises(OverflowError):
        codec.vector16(bytes(65536))


@given(st.binary(max_size=255))
def test_what_is_written_is_read_back(data: bytes) -> None:
    written = codec.vector8(data) + codec.vector16(data) + codec.vector24(data)
    reader = Reader(written)
    assert [reader.vector(1), reader.vector(2), reader.inner(3).take(len(data))] == [data] * 3
    reader.done()
