"""Cores and areas: every order of lease and release, and residue 0 after each step.

The tests of the pool alone plant bytes where none may be; those over an engine drive connections
through fewer areas than there are slots.
"""

from __future__ import annotations

import gc
import os
import tracemalloc

import pytest

import engine as engine_package
from engine import FAILED, WOULD_BLOCK, Refused
from engine.layout import (
    AREA_LEN,
    CORE_LEN,
    ESTABLISHED,
    HANDSHAKE,
    IN,
    KEYS,
    KEYS_END,
    LEAF,
    OUT,
    RECEIVED,
    SCRATCH,
    STATE,
)
from engine.layout import FAILED as STATE_FAILED
from engine.pool import Area, Pool
from tests.engine.pairs import Pair, engine

SHAPES = [(4, 4), (5, 2), (1, 1), (7, 3)]


def rest_some(pool: Pool, slot: int) -> Area:
    """An established connection with an area, its core marked with the slot's number."""
    area = pool.lease_for_handshake(slot)
    assert area is not None
    area.words[STATE] = ESTABLISHED
    area.bytes[KEYS] = slot + 1
    return area


# -- the pool alone --------------------------------------------------------------------------


def test_a_fresh_pool_has_no_residue_and_every_area_free() -> None:
    pool = Pool(5, 3)
    assert pool.residue() == 0
    assert pool.areas_free() == 3


def test_a_core_moves_into_the_area_and_back_and_is_never_in_two_places() -> None:
    pool = Pool(2, 1)
    pool.set_resting(0)
    area = rest_some(pool, 1)
    assert bytes(pool.core(1)) == bytes(CORE_LEN)
    pool.settle(1, area)
    assert pool.core(1)[KEYS] == 2
    assert bytes(area.bytes) == bytes(AREA_LEN)
    again = pool.lease(1)
    assert again is area
    assert again.bytes[KEYS] == 2
    assert bytes(pool.core(1)) == bytes(CORE_LEN)
    assert pool.residue() == 0


def test_free_areas_are_last_in_first_out() -> None:
    pool = Pool(4, 4)
    pool.set_resting(0)
    areas = [rest_some(pool, slot) for slot in range(3)]
    for slot in (0, 2, 1):
        pool.settle(slot, areas[slot])
    assert pool.lease(0) is areas[1]
    assert pool.lease(1) is areas[2]
    assert pool.lease(2) is areas[0]
    assert pool.lease(3) not in areas


def test_a_handshake_takes_the_longest_resting_area_before_a_free_one() -> None:
    pool = Pool(4, 4)
    areas = [rest_some(pool, slot) for slot in range(3)]
    for slot in (1, 0, 2):
        pool.settle(slot, areas[slot])
    assert pool.lease_for_handshake(3) is areas[1]
    assert list(pool.resting) == [0, 2]
    assert pool.core(1)[KEYS] == 2


def test_a_lease_takes_a_free_area_before_a_resting_one() -> None:
    pool = Pool(3, 3)
    resting = rest_some(pool, 0)
    other = rest_some(pool, 1)
    pool.settle(0, resting)
    pool.release(1, other)
    assert pool.lease(1) is other
    assert list(pool.resting) == [0]


def test_a_lease_takes_the_longest_resting_area_when_none_is_free() -> None:
    pool = Pool(3, 2)
    areas = [rest_some(pool, slot) for slot in range(2)]
    pool.settle(1, areas[1])
    pool.settle(0, areas[0])
    pool.core(2)[KEYS] = 3
    assert pool.lease(2) is areas[1]
    assert list(pool.resting) == [0]
    assert pool.lease(1) is areas[0]
    assert pool.lease(0) is None


def test_more_than_may_rest_send_the_longest_home() -> None:
    pool = Pool(4, 4)
    pool.set_resting(2)
    areas = [rest_some(pool, slot) for slot in range(3)]
    for slot in (2, 0, 1):
        pool.settle(slot, areas[slot])
    assert list(pool.resting) == [0, 1]
    assert pool.core(2)[KEYS] == 3
    pool.set_resting(1)
    assert list(pool.resting) == [1]
    pool.set_resting(0)
    assert not pool.resting
    assert pool.areas_free() == 4


def test_resting_and_waking_moves_a_connection_to_the_end_of_the_order() -> None:
    pool = Pool(3, 3)
    areas = [rest_some(pool, slot) for slot in range(3)]
    for slot in range(3):
        pool.settle(slot, areas[slot])
    assert pool.lease(0) is areas[0]
    assert not areas[0].resting
    assert list(pool.resting) == [1, 2]
    pool.settle(0, areas[0])
    assert list(pool.resting) == [1, 2, 0]


def test_by_default_32_may_rest_or_as_many_as_there_are_areas() -> None:
    assert Pool(100, 50).may_rest == 32
    assert Pool(100, 5).may_rest == 5


@pytest.mark.parametrize("buffer", ["in", "handshake", "out", "received"])
def test_bytes_in_any_buffer_keep_the_area(buffer: str) -> None:
    pool = Pool(1, 1)
    area = rest_some(pool, 0)
    setattr(area, f"{buffer}_end", getattr(area, f"{buffer}_end") + 1)
    pool.settle(0, area)
    assert pool.held == {0: area}
    assert not pool.resting


def test_a_handshake_keeps_its_area() -> None:
    pool = Pool(1, 1)
    area = rest_some(pool, 0)
    area.words[STATE] = ESTABLISHED - 1
    pool.settle(0, area)
    assert pool.held == {0: area}


@pytest.mark.parametrize("resting", [True, False])
@pytest.mark.parametrize(
    ("start", "mark"),
    [
        (IN, "in_high"),
        (HANDSHAKE, "handshake_high"),
        (OUT, "out_high"),
        (RECEIVED, "received_high"),
        (LEAF, "leaf_high"),
    ],
)
def test_a_settled_area_is_zero_to_each_high_water_mark(
    start: int, mark: str, resting: bool
) -> None:
    pool = Pool(1, 1)
    pool.set_resting(int(resting))
    area = rest_some(pool, 0)
    area.bytes[start : start + 3] = b"abc"
    setattr(area, mark, start + 3)
    area.bytes[SCRATCH] = 9
    pool.settle(0, area)
    assert bytes(area.bytes[CORE_LEN:]) == bytes(AREA_LEN - CORE_LEN)
    assert getattr(area, mark) == start
    assert not area.scratch_used
    assert pool.residue() == 0
    assert (0 in pool.resting) is resting


def test_drop_clears_area_and_core_whatever_holds_them() -> None:
    pool = Pool(3, 3)
    held = rest_some(pool, 0)
    held.bytes[OUT] = 1
    held.out_high = held.out_end = OUT + 1
    resting = rest_some(pool, 1)
    pool.settle(1, resting)
    released = rest_some(pool, 2)
    pool.release(2, released)
    for slot in range(3):
        pool.drop(slot)
        assert bytes(pool.core(slot)) == bytes(CORE_LEN)
        assert pool.residue() == 0
    assert pool.areas_free() == 3
    assert not pool.held
    assert not pool.resting


def test_an_area_that_goes_back_refers_to_nothing() -> None:
    pool = Pool(1, 1)
    area = rest_some(pool, 0)
    area.transcript = area.opener = area.sealer = object()  # type: ignore[assignment]
    area.read_iv = area.write_iv = 5
    pool.release(0, area)
    assert (area.transcript, area.opener, area.sealer) == (None, None, None)
    assert (area.read_iv, area.write_iv) == (0, 0)


# -- residue sees what is left ---------------------------------------------------------------


def test_residue_counts_each_byte_left_in_a_free_area() -> None:
    pool = Pool(1, 1)
    area = rest_some(pool, 0)
    pool.drop(0)
    for at in (0, CORE_LEN, AREA_LEN - 1):
        area.bytes[at] = 1
    assert pool.residue() == 3


def test_residue_counts_bytes_in_an_area_never_leased() -> None:
    pool = Pool(2, 2)
    first = rest_some(pool, 0)
    other = rest_some(pool, 1)
    pool.drop(1)
    pool.drop(0)
    fresh = Pool(2, 2)
    view = fresh._area_bytes
    view[AREA_LEN + 5] = 1
    assert fresh.residue() == 1
    assert {first.index, other.index} == {0, 1}


def test_residue_counts_what_a_resting_area_holds_past_its_core() -> None:
    pool = Pool(1, 1)
    area = rest_some(pool, 0)
    pool.settle(0, area)
    assert pool.residue() == 0
    area.bytes[CORE_LEN] = 1
    area.bytes[AREA_LEN - 1] = 1
    assert pool.residue() == 2


def test_residue_counts_a_free_slots_core_and_a_second_copy_of_a_held_one() -> None:
    pool = Pool(2, 2)
    pool.core(0)[CORE_LEN - 1] = 1
    assert pool.residue() == 1
    area = rest_some(pool, 1)
    pool.core(1)[KEYS] = 1
    assert pool.residue() == 2
    assert area is pool.held[1]


def test_residue_counts_the_keys_of_a_failed_connection_held_or_not() -> None:
    pool = Pool(2, 2)
    area = rest_some(pool, 0)
    area.words[STATE] = STATE_FAILED
    assert pool.residue() == 1
    area.bytes[KEYS_END - 1] = 1
    assert pool.residue() == 2
    pool.release(0, area)
    assert pool.residue() == 2


def test_residue_counts_every_object_a_free_area_refers_to() -> None:
    pool = Pool(1, 1)
    area = rest_some(pool, 0)
    pool.drop(0)
    area.sealer = area.transcript = object()  # type: ignore[assignment]
    assert pool.residue() == 2


def test_an_established_connection_may_keep_its_keys() -> None:
    pool = Pool(1, 1)
    pool.set_resting(0)
    pool.settle(0, rest_some(pool, 0))
    assert pool.core(0)[KEYS] == 1
    assert pool.residue() == 0


# -- the maps --------------------------------------------------------------------------------


def test_a_forked_childs_writes_do_not_come_back() -> None:
    pool = Pool(2, 2)
    area = rest_some(pool, 0)
    child = os.fork()
    if child == 0:
        area.bytes[OUT] = 77
        pool.core(1)[0] = 77
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert area.bytes[OUT] == 0
    assert pool.core(1)[0] == 0


def test_an_engine_of_many_slots_costs_memory_only_where_it_is_written() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    gc.collect()
    before = resident()
    pool = Pool(100_000, 100_000)
    assert resident() - before < 4 << 20
    pool.wipe()
    pool.close()


def test_close_zeroes_what_a_view_held_outside_still_shows() -> None:
    pool = Pool(2, 2)
    area = rest_some(pool, 0)
    outside = area.bytes[:CORE_LEN]
    core = pool.core(1)
    core[0] = 1
    pool.wipe()
    pool.close()
    assert bytes(outside) == bytes(CORE_LEN)
    assert bytes(core) == bytes(CORE_LEN)
    assert area.transcript is None


def test_close_gives_the_maps_back() -> None:
    pool = Pool(2, 2)
    rest_some(pool, 0)
    pool.wipe()
    pool.close()
    assert pool._core_map.closed
    assert pool._area_map.closed


# -- connections over fewer areas than slots ---------------------------------------------------


@pytest.mark.parametrize("resting", [0, 1, 32])
@pytest.mark.parametrize(("slots", "areas"), SHAPES)
def test_every_connection_echoes_whatever_areas_there_are(
    slots: int, areas: int, resting: int
) -> None:
    made = engine(slots, areas)
    made.set_resting(min(resting, areas))
    pairs = [Pair(made, slot).establish() for slot in range(slots)]
    for turn in range(3):
        for pair in pairs:
            text = b"%d in turn %d" % (pair.slot, turn)
            record = pair.client.send(text)
            pair.feed(record, step=9)
            assert pair.recv(5) == text
            assert made.send(pair.slot, text) == len(text)
            pair.client.read(pair.take(50))
            held = sum(made.holds_area(slot) for slot in range(slots))
            assert held + made.areas_free() == areas
            assert made.areas_resting() <= min(resting, areas)
    for pair in pairs:
        assert pair.client.received == b"".join(b"%d in turn %d" % (pair.slot, t) for t in range(3))
        made.drop(pair.slot)
        pair.clean()
    assert made.areas_free() == areas


def hog(made: object, slot: int) -> Pair:
    """An established connection that holds its area with half a record."""
    pair = Pair(made, slot).establish()  # type: ignore[arg-type]
    record = pair.client.send(b"the other half comes later")
    pair.feed(record[:20])
    pair.rest = record[20:]  # type: ignore[attr-defined]
    assert made.holds_area(slot)  # type: ignore[attr-defined]
    return pair


def test_with_no_area_to_be_had_a_connection_gets_back_pressure_not_failure() -> None:
    made = engine(3, 1)
    parked = Pair(made, 0).establish()
    closed = Pair(made, 1).establish()
    closed.feed(closed.client.close_notify())
    holder = hog(made, 2)
    record = parked.client.send(b"patience")
    room = bytearray(99)
    with pytest.raises(ValueError, match="has a connection"):
        made.serve(2, 0)
    assert made.feed(0, record) == 0
    assert made.send(0, b"x") == 0
    assert not made.finish(0)
    assert made.take(0, room) == 0
    assert made.recv(0, room) == WOULD_BLOCK
    assert made.recv(1, room) == 0
    assert made.send(1, b"x") == 0
    assert made.event(0) == "established"
    parked.clean()
    holder.feed(holder.rest)  # type: ignore[attr-defined]
    assert holder.recv() == b"the other half comes later"
    parked.feed(record)
    assert parked.recv() == b"patience"


def test_a_transports_end_with_no_area_to_be_had_fails_the_core_and_clears_its_keys() -> None:
    made = engine(3, 1)
    Pair(made, 0).establish()
    closed = Pair(made, 1).establish()
    closed.feed(closed.client.close_notify())
    holder = hog(made, 2)
    made.eof(0)
    made.eof(1)
    holder.clean()
    assert made.failure(0) == "tls-peer-closed"
    assert made.recv(0, bytearray(9)) == FAILED
    assert made.failure(1) is None
    assert made.holds_area(2)


def test_serve_is_refused_when_nothing_can_be_taken_back() -> None:
    made = engine(2, 1)
    hog(made, 0)
    with pytest.raises(Refused) as refused:
        made.serve(1, 0)
    assert refused.value.refusal == "tls-pool"
    assert made.event(1) == "free"


@pytest.mark.parametrize("call", ["take", "recv", "event", "failure", "suite", "server_name"])
def test_a_call_that_reads_takes_no_area_and_moves_none(call: str) -> None:
    made = engine(2, 2)
    made.set_resting(1)
    Pair(made, 0).establish()
    Pair(made, 1).establish()
    assert made.areas_resting() == 1
    for slot in (0, 1):
        arguments = (bytearray(9),) if call in ("take", "recv") else ()
        getattr(made, call)(slot, *arguments)
        assert made.areas_resting() == 1
        assert made.areas_free() == 2
        assert not made.holds_area(slot)


@pytest.mark.parametrize("count", [-1, 3])
def test_more_resting_than_areas_is_the_callers_mistake(count: int) -> None:
    with pytest.raises(ValueError, match="areas may rest"):
        engine(5, 2).set_resting(count)


def test_a_failed_connection_keeps_its_area_until_its_alert_is_taken() -> None:
    made = engine(2, 2)
    pair = Pair(made).establish()
    pair.feed(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert made.failure(0) == "tls-bad-record-mac"
    assert made.holds_area(0)
    pair.client.read(pair.take(3))
    assert not made.holds_area(0)
    assert made.areas_free() == 2


def test_a_failed_opening_leaves_no_plaintext() -> None:
    made = engine(1, 1)
    pair = Pair(made).establish()
    record = bytearray(pair.client.send(b"\xaa" * 4000))
    record[-1] ^= 1
    area = made._pool.held[0]
    pair.feed(bytes(record))
    assert b"\xaa" * 16 not in bytes(area.bytes)
    pair.take()
    pair.clean()


def test_an_idle_connection_has_no_object_of_its_own() -> None:
    made = engine(380, 2)
    made.set_resting(0)
    for slot in range(200):
        Pair(made, slot).establish()
    folder = os.path.dirname(engine_package.__file__)
    # Signing and checking aside: what `cryptography` keeps there for a while is not a connection's.
    own = [
        tracemalloc.Filter(True, f"{folder}/*"),
        tracemalloc.Filter(False, f"{folder}/identities.py"),
    ]
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.take_snapshot().filter_traces(own)
        for slot in range(200, 380):
            Pair(made, slot).establish()
        gc.collect()
        after = tracemalloc.take_snapshot().filter_traces(own)
    finally:
        tracemalloc.stop()
    kept = sum(change.count_diff for change in after.compare_to(before, "filename"))
    assert kept < 20  # one object a connection would be 180


def test_close_wipes_connections_in_every_state() -> None:
    made = engine(3, 2)
    Pair(made, 0).establish()
    hog(made, 1)
    Pair(made, 2)
    views = [area.bytes[:CORE_LEN] for area in made._pool.held.values()]
    cores = made._pool._cores[:]
    made.close()
    assert all(bytes(view) == bytes(CORE_LEN) for view in views)
    assert bytes(cores) == bytes(3 * CORE_LEN)
