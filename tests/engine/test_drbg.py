"""The generator against a ChaCha20 written here from RFC 8439, and what a draw leaves behind."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drbg import Drbg

SEED = bytes(range(32))


def rotate(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & 0xFFFFFFFF


def quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    for first, second, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[first] = (x[first] + x[second]) & 0xFFFFFFFF
        x[third] = rotate(x[third] ^ x[first], by)


def block(key: bytes, counter: int) -> bytes:
    """RFC 8439 §2.3, with a nonce of zero."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start += [*struct.unpack("<8I", key), counter, 0, 0, 0]
    x = list(start)
    for _ in range(10):
        for i in range(4):
            quarter(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start, strict=True)))


def expected(seed: bytes, sizes: list[int]) -> list[bytes]:
    """The draws of these sizes from a generator seeded so."""
    key, draws = seed, []
    for size in sizes:
        draw = b""
        while True:
            piece = min(size - len(draw), 1024)
            blocks = range(1, 1 + (32 + piece + 63) // 64)
            stream = b"".join(block(key, counter) for counter in blocks)
            key = stream[:32]
            draw += stream[32 : 32 + piece]
            if len(draw) == size:
                break
        draws.append(draw)
    return draws


def test_the_reference_here_gives_the_rfcs_first_vector() -> None:
    # RFC 8439 §A.1, test vector 1: a key of zeros, block counter 0.
    assert block(bytes(32), 0).hex().startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1a")


def test_draws_are_the_keystream_behind_the_next_key() -> None:
    sizes = [0, 1, 32, 352, 33]
    generator = Drbg(SEED)
    assert [generator.draw(size) for size in sizes] == expected(SEED, sizes)


def test_a_draw_longer_than_a_piece_is_several_draws() -> None:
    for size in (1023, 1024, 1025, 2048, 2500):
        assert Drbg(SEED).draw(size) == expected(SEED, [size])[0]


def test_filling_a_view_is_a_draw_of_its_length_and_touches_nothing_else() -> None:
    room = bytearray(b"\xee" * 400)
    with memoryview(room) as view:
        Drbg(SEED).fill(view[24:376])
    assert bytes(room) == b"\xee" * 24 + expected(SEED, [352])[0] + b"\xee" * 24


def test_every_kind_of_buffer_seeds_alike() -> None:
    kinds: list[bytes | bytearray | memoryview] = [SEED, bytearray(SEED), memoryview(SEED)]
    assert len({Drbg(kind).draw(64) for kind in kinds}) == 1


def test_the_callers_seed_is_neither_kept_nor_written() -> None:
    entropy = bytearray(SEED)
    generator = Drbg(entropy)
    entropy[:] = bytes(32)
    assert generator.draw(64) == expected(SEED, [64])[0]
    assert entropy == bytes(32)


def test_a_state_taken_after_a_draw_does_not_hold_the_key_before_it() -> None:
    generator = Drbg(SEED)
    generator.draw(352)
    assert bytes(generator._key) == block(SEED, 1)[:32]
    assert bytes(generator._stream) == bytes(len(generator._stream))


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_seed_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="seeded with exactly 32 bytes"):
        Drbg(bytes(size))


def test_a_wiped_generator_holds_zeros_and_draws_nothing() -> None:
    generator = Drbg(SEED)
    generator.wipe()
    assert bytes(generator._key) == bytes(32)
    assert generator._live is False
    for size in (0, 32):
        with pytest.raises(ValueError, match="was wiped"):
            generator.draw(size)


@given(st.binary(min_size=32, max_size=32), st.lists(st.integers(0, 200), max_size=4))
def test_the_same_seed_and_draws_give_the_same_bytes(seed: bytes, sizes: list[int]) -> None:
    one, other = Drbg(seed), Drbg(seed)
    assert [one.draw(n) for n in sizes] == [other.draw(n) for n in sizes] == expected(seed, sizes)


def test_a_second_seed_makes_the_next_key_with_the_state_and_leaves_nothing() -> None:
    second = bytes(range(100, 132))
    generator = Drbg(SEED)
    generator.mix(second)
    key = bytes(a ^ b for a, b in zip(block(SEED, 1), second, strict=False))
    assert bytes(generator._key) == key and len(generator._key) == 32
    assert generator.residue() == 0
    assert generator.draw(64) == expected(key, [64])[0]


def test_what_a_draw_that_broke_has_left_goes_with_the_state() -> None:
    generator = Drbg(SEED)
    generator._stream[:] = b"\xee" * len(generator._stream)
    assert generator.residue() == len(generator._stream)
    generator.wipe()
    assert generator.residue() == 0
