"""What puts a pool right after a fault, a step at a time: mend, wipe, close, and a drop again."""

from __future__ import annotations

import mmap
from pickle import PickleBuffer
from typing import Any

import pytest

from engine import copies
from engine.layout import (
    CORE_LEN,
    ESTABLISHED,
    F_CLIENT_CERTIFICATE,
    F_LEAF_KEPT,
    FAILED,
    FLAGS,
    FREE,
    HANDSHAKE,
    IN,
    LEAF,
    LEAF_LEN,
    OUT,
    RECEIVED,
    ROOM_LEN,
    STATE,
)
from engine.pool import Area, Pool
from engine.refusals import Refusal

SECRET = 0x5A


def rest(pool: Pool, *slots: int) -> dict[int, Area]:
    """Connections at rest in their areas, with an object in each."""
    areas = {slot: pool.lease_for_handshake(slot) for slot in slots}
    for slot, area in areas.items():
        area.words[STATE] = ESTABLISHED
        pool.settle(slot, area)
        assert area.resting
        area.opener = object()  # type: ignore[assignment]
    return areas


def room(pool: Pool, slot: int) -> bytes:
    return pool.rooms.leaf(slot, ROOM_LEN)


# -- areas ------------------------------------------------------------------------------------


def test_a_wiped_area_is_as_a_new_one() -> None:
    pool = Pool(1, 1)
    area = rest(pool, 0)[0]
    area.bytes[:] = bytes([SECRET]) * len(area.bytes)
    area.in_end = area.in_high = IN + 1
    area.handshake_end = area.handshake_high = HANDSHAKE + 1
    area.out_start = area.out_end = area.out_high = OUT + 1
    area.received_start = area.received_end = area.received_high = RECEIVED + 1
    area.leaf_high, area.scratch_used = LEAF + 1, True
    area.wipe()
    assert not any(area.bytes) and area.resting is False
    new = Area(area.index, area.bytes)
    for name in Area.__slots__:
        assert getattr(area, name) == getattr(new, name), name


def test_mending_leaves_those_that_rest_at_rest() -> None:
    pool = Pool(3, 3)
    areas = rest(pool, 0, 1, 2)
    pool.mend()
    assert pool.held == pool.resting == areas
    assert [area.resting for area in areas.values()] == [True] * 3
    assert pool.areas_free() == 3


def test_a_connection_that_did_not_begin_keeps_none_of_the_others_from_being_mended() -> None:
    pool = Pool(3, 3)
    begun = pool.lease_for_handshake(0)
    areas = rest(pool, 1, 2)
    assert begun.words[STATE] == FREE
    # The core of one was not cleared when its area took over, and another's rest is half begun.
    pool.core(1)[CORE_LEN - 1] = SECRET
    del pool.resting[2]
    pool.mend()
    assert pool.held == areas and pool.resting == {1: areas[1]}
    assert not any(pool.core(1)) and areas[2].resting is False
    assert pool._free == [begun] and pool.residue() == 0


def test_a_drop_that_breaks_leaves_the_slot_failed_until_it_is_dropped_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Pool(2, 1)
    area = rest(pool, 0)[0]

    def breaks(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(copies, "clear", breaks)
        with pytest.raises(MemoryError):
            pool.drop(0)
    assert 0 not in pool.held and pool.state(0) == FAILED
    pool.drop(0)
    pool.mend()
    assert pool.state(0) == FREE and not any(pool.core(0))
    assert pool._free == [area] and pool.residue() == 0


# -- rooms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 255, 256, ROOM_LEN - 1])
def test_a_room_is_zero_after_a_fault_whatever_was_written(place: int) -> None:
    pool = Pool(3, 1)
    leaf = bytearray(ROOM_LEN)
    leaf[place] = SECRET
    pool.rooms.keep(1, memoryview(leaf))
    pool.forget_room(1)
    assert not any(room(pool, 1))


def test_the_rooms_beside_one_that_is_forgotten_stay() -> None:
    pool = Pool(3, 1)
    leaf = bytes([SECRET]) * ROOM_LEN
    for slot in range(3):
        pool.rooms.keep(slot, memoryview(leaf))
    pool.forget_room(1)
    assert [room(pool, slot) for slot in range(3)] == [leaf, bytes(ROOM_LEN), leaf]


def test_a_room_that_is_zero_is_not_written() -> None:
    pool = Pool(3, 1)
    pool.rooms = type(pool.rooms)(memoryview(bytes(3 * ROOM_LEN)), 3)
    for slot in range(3):
        pool.forget_room(slot)


def test_a_connection_that_fails_in_its_core_has_no_identity_any_more() -> None:
    pool = Pool(3, 1)
    leaf = bytes([SECRET]) * 600
    for slot in range(3):
        words = pool.words(slot)
        words[STATE], words[LEAF_LEN] = ESTABLISHED, len(leaf)
        words[FLAGS] = F_CLIENT_CERTIFICATE | F_LEAF_KEPT
        pool.rooms.keep(slot, memoryview(leaf))
    pool.fail_core(1, Refusal.INTERNAL_ERROR.code)
    assert [pool.state(slot) for slot in range(3)] == [ESTABLISHED, FAILED, ESTABLISHED]
    assert [pool.words(slot)[LEAF_LEN] for slot in range(3)] == [600, 0, 600]
    assert [any(room(pool, slot)) for slot in range(3)] == [True, False, True]


# -- the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [Pool.wipe, Pool.close])
def test_a_pool_that_ends_has_no_holder_and_no_object_of_a_connection(end: Any) -> None:
    # One that was held would be sealed for again, under a sequence number of zero.
    pool = Pool(2, 2)
    areas = rest(pool, 0, 1)
    end(pool)
    assert not pool.held and not pool.resting
    assert [area.opener for area in areas.values()] == [None, None]


def test_a_view_that_somebody_holds_keeps_only_its_own_map() -> None:
    pool = Pool(1, 1)
    area = rest(pool, 0)[0]
    holder = PickleBuffer(area.bytes)
    pool.close()
    assert pool._core_map.closed and pool._room_map.closed and not pool._area_map.closed
    holder.release()
    pool.close()
    assert pool._area_map.closed


def test_a_kernel_that_gives_a_child_no_zeros_does_for_a_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Older(mmap.mmap):
        def madvise(self, advice: int, *rest: int) -> None:
            if advice == 18:  # MADV_WIPEONFORK
                raise OSError("invalid argument")
            super().madvise(advice, *rest)

    monkeypatch.setattr(mmap, "mmap", Older)
    pool = Pool(1, 1)
    assert not any(pool.core(0))
    pool.close()
