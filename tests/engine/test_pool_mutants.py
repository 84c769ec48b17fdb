"""What the mutants of pool.py and copies.py showed that no other test looked at.

Several of these are about cost alone: a page that is written for nothing becomes resident, and a
scan that goes a byte at a time is a hundred times slower. Cost is seen by what is called, or by a
view that cannot be written, and not by a clock.
"""

import ctypes
import mmap
import os
import re
from collections.abc import Callable
from functools import partial

import pytest

from engine import copies
from engine.copies import clear, content_end, nonzero, wipe
from engine.layout import (
    AREA_LEN,
    CORE_LEN,
    CORE_WORDS,
    ESTABLISHED,
    F_CLIENT_CERTIFICATE,
    F_CLOSE_SENT,
    F_LEAF_KEPT,
    F_PEER_CLOSED,
    FAILED,
    FLAGS,
    FREE,
    HANDSHAKE,
    IN,
    KEYS,
    KEYS_END,
    LEAF,
    LEAF_LEN,
    OUT,
    PEER_GENERATION,
    PEER_NOT_AFTER,
    RECEIVED,
    ROOM_LEN,
    RUN,
    SCRATCH,
    SCRATCH_END,
    STATE,
    STORE_GENERATION,
    WAIT_FINISHED,
)
from engine.pool import Area, Pool
from harnesses.oracles import lines_run

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


SIZES = [0, 1, 255, 256, 257, 700, 16_383, 16_384, 16_385]


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("content", SIZES)
@pytest.mark.parametrize("zeros", SIZES)
def test_content_ends_where_its_last_zeros_begin(start: int, content: int, zeros: int) -> None:
    # Before the start there are zeros too, which are not of this content.
    block = bytes(start) + FILLED * content + bytes(zeros)
    end = len(block)
    assert content_end(memoryview(block + FILLED * 4), start, end) == end - zeros
    assert content_end(memoryview(bytes(9) + block), 9 + start, 9 + end) == 9 + end - zeros


def test_padding_costs_as_much_whatever_its_length() -> None:
    """The peer chooses it: the lines that run are those of the longest."""
    for zeros in (0, 1, 255, 256, 10_000, 16_384, 16_385):
        block = memoryview(FILLED + bytes(zeros))
        assert lines_run(partial(content_end, block, 0, len(block))) <= 4 * 15
    # Most records have none.
    assert lines_run(partial(content_end, memoryview(FILLED * 9), 0, 9)) == 2


# -- the pool ---------------------------------------------------------------------------------

FRESH = {
    "quick": False,
    "run": 0,
    "opener": None,
    "sealer": None,
    "transcript": None,
    "peer_key": None,
    "read_iv": 0,
    "write_iv": 0,
    "write_limit": 0,
    "in_end": IN,
    "in_high": IN,
    "handshake_end": HANDSHAKE,
    "handshake_high": HANDSHAKE,
    "out_start": OUT,
    "out_end": OUT,
    "out_high": OUT,
    "received_start": RECEIVED,
    "received_end": RECEIVED,
    "received_high": RECEIVED,
    "leaf_high": LEAF,
    "scratch_used": False,
    "resting": False,
}


def values_of(area: Area) -> dict[str, object]:
    return {name: getattr(area, name) for name in FRESH}


def leased(pool: Pool, slot: int, state: int = ESTABLISHED) -> Area:
    area = pool.lease_for_handshake(slot)
    assert area is not None
    area.words[STATE] = state
    return area


def test_every_field_of_an_area_is_listed_here() -> None:
    assert set(FRESH) | {"index", "bytes", "words"} == set(Area.__slots__)


def test_an_area_is_the_same_fresh_and_given_back() -> None:
    pool = Pool(2, 2)
    first = leased(pool, 0)
    second = leased(pool, 1)
    assert (first.index, second.index) == (0, 1)
    assert first.scratch_used is True
    for area in (first, second):
        for name in FRESH:
            setattr(area, name, 7 if isinstance(FRESH[name], int) else object())
        # What moves with the core or says where bytes are must be right for the way back.
        area.resting = False
        area.in_high, area.handshake_high, area.out_high = IN, HANDSHAKE, OUT
        area.received_high, area.leaf_high = RECEIVED, LEAF
    pool.release(0, first)
    pool.drop(1)
    for area in (first, second):
        given_back = values_of(area)
        assert given_back == FRESH
        assert {name: type(value) for name, value in given_back.items()} == {
            name: type(value) for name, value in FRESH.items()
        }


def test_words_are_signed_and_are_the_slots_own_and_no_more() -> None:
    pool = Pool(3, 1)
    area = leased(pool, 1)
    for words in (pool.words(1), pool.words(2)):
        assert (words.format, len(words)) == ("q", CORE_WORDS)
        words[PEER_NOT_AFTER] = -1  # before 1970
        assert words[PEER_NOT_AFTER] == -1
        words[PEER_NOT_AFTER] = 0
    pool.words(1)[RUN] = 5
    assert area.words[RUN] == 5 and pool.block(1) is area.bytes
    pool.words(2)[RUN] = 6
    assert pool.core(2).cast("q")[RUN] == 6 and pool.block(2)[:CORE_LEN] == pool.core(2)
    assert pool.state(1) == ESTABLISHED and pool.state(2) == FREE


def test_only_what_was_written_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(1, 1)
    area = leased(pool, 0)
    area.scratch_used = False
    cleared: list[tuple[int, int]] = []
    monkeypatch.setattr(copies, "clear", lambda view, start, end: cleared.append((start, end)))
    area.clear_buffers()
    assert cleared == []
    marks = {
        "received_high": RECEIVED,
        "out_high": OUT,
        "in_high": IN,
        "handshake_high": HANDSHAKE,
        "leaf_high": LEAF,
    }
    for name, start in marks.items():
        setattr(area, name, start + 3)
        area.clear_buffers()
        assert cleared == [(start, start + 3)]
        assert getattr(area, name) == start
        cleared.clear()
    area.scratch_used = True
    area.clear_buffers()
    assert cleared == [(SCRATCH, SCRATCH_END)] and area.scratch_used is False


def flags_of(memory: mmap.mmap) -> set[str]:
    """The kernel's flags of the mapping that the first byte lies in."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    with open("/proc/self/smaps") as file:
        blocks = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", file.read())
    for block in filter(None, blocks):
        start, end = (int(word, 16) for word in block.split(" ", 1)[0].split("-"))
        if start <= address < end:
            (flags,) = re.findall(r"(?m)^VmFlags: (.*)$", block)
            return set(flags.split())
    raise AssertionError("the map is mapped nowhere")


def test_the_maps_are_private_unreserved_undumped_and_of_small_pages() -> None:
    before = len(os.listdir("/proc/self/fd"))
    pool = Pool(3000, 40)
    assert len(os.listdir("/proc/self/fd")) == before
    for memory in (pool._core_map, pool._area_map, pool._room_map):
        flags = flags_of(memory)
        assert {"nr", "dd", "nh"} <= flags and "sh" not in flags


@pytest.mark.parametrize(
    ("length", "flags", "kept"),
    [
        (0, F_CLIENT_CERTIFICATE, False),
        (1, F_CLIENT_CERTIFICATE, True),
        (600, F_CLIENT_CERTIFICATE | F_PEER_CLOSED, True),
        (ROOM_LEN, F_CLIENT_CERTIFICATE, True),
        (ROOM_LEN + 1, F_CLIENT_CERTIFICATE, False),
        (600, 0, False),
        (600, F_PEER_CLOSED, False),
        (600, F_CLIENT_CERTIFICATE | F_LEAF_KEPT, False),
    ],
)
def test_a_verified_leaf_that_fits_goes_to_its_room_once(
    length: int, flags: int, kept: bool
) -> None:
    pool = Pool(2, 2)
    area = leased(pool, 0)
    area.bytes[LEAF : LEAF + length + 1] = FILLED * (length + 1)
    area.words[LEAF_LEN] = length
    area.words[FLAGS] = flags
    pool.mind_leaf(0, area)
    assert area.words[FLAGS] == (flags | F_LEAF_KEPT if kept else flags)
    assert pool.rooms.leaf(0, ROOM_LEN) == (FILLED * length if kept else b"").ljust(ROOM_LEN, b"\0")
    assert pool.rooms.leaf(1, ROOM_LEN) == bytes(ROOM_LEN)
    assert area.words[LEAF_LEN] == length


PEER = (LEAF_LEN, PEER_NOT_AFTER, PEER_GENERATION, STORE_GENERATION)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("way", ["failed", "dropped", "forgotten"])
def test_a_peer_that_is_forgotten_leaves_nothing(way: str, kept: bool) -> None:
    pool = Pool(2, 2)
    area = leased(pool, 0)
    for word in PEER:
        area.words[word] = 600
    area.words[FLAGS] = F_CLIENT_CERTIFICATE | F_PEER_CLOSED
    area.bytes[LEAF : LEAF + 600] = FILLED * 600
    area.leaf_high = LEAF + 600
    pool.rooms.keep(1, memoryview(FILLED * ROOM_LEN))
    if kept:
        pool.mind_leaf(0, area)
    if way == "failed":
        area.words[STATE] = FAILED
        pool.mind_leaf(0, area)
    elif way == "dropped":
        pool.drop(0)
    else:
        pool.forget_peer(0, area.words)
    words = pool.words(0)
    assert [words[word] for word in PEER] == [0, 0, 0, 0]
    assert words[FLAGS] == (0 if way == "dropped" else F_PEER_CLOSED)
    assert pool.rooms.leaf(0, ROOM_LEN) == bytes(ROOM_LEN)
    assert pool.rooms.leaf(1, ROOM_LEN) == FILLED * ROOM_LEN


def test_with_no_leaf_there_is_no_peer_to_forget() -> None:
    pool = Pool(1, 1)
    area = leased(pool, 0)
    area.words[FLAGS] = F_CLIENT_CERTIFICATE
    pool.forget_peer(0, area.words)
    assert area.words[FLAGS] == F_CLIENT_CERTIFICATE


def test_a_leaf_that_was_never_kept_is_not_cleared_out_of_the_room() -> None:
    pool = Pool(1, 1)
    area = leased(pool, 0)
    area.words[FLAGS], area.words[LEAF_LEN] = F_CLIENT_CERTIFICATE, 5
    pool.rooms.keep(0, memoryview(FILLED * 5))  # another's, if there could be one
    pool.forget_peer(0, area.words)
    assert pool.rooms.leaf(0, 5) == FILLED * 5


def test_a_lease_wakes_what_rests_and_is_no_longer_quick() -> None:
    pool = Pool(2, 2)
    area = leased(pool, 0)
    pool.settle(0, area)
    assert area.resting is True and list(pool.resting) == [0]
    area.quick = True
    assert pool.lease(0) is area
    assert (area.quick, area.resting) == (False, False)
    assert not pool.resting and pool.held == {0: area}
    area.quick = True
    assert pool.lease(0) is area and area.quick is False


def test_nothing_is_leased_when_there_is_nothing() -> None:
    pool = Pool(3, 1)
    leased(pool, 0)
    assert pool.lease(1) is None
    assert list(pool.held) == [0]


def test_areas_are_made_one_behind_the_other_and_no_more_than_there_are() -> None:
    pool = Pool(4, 3)
    areas = [leased(pool, slot) for slot in range(3)]
    for at, area in enumerate(areas):
        assert (area.index, len(area.bytes)) == (at, AREA_LEN)
        area.bytes[:] = bytes([at + 1]) * AREA_LEN
    assert [bytes(area.bytes) for area in areas] == [bytes([at + 1]) * AREA_LEN for at in range(3)]
    assert pool.lease(3) is None


@pytest.mark.parametrize(
    ("state", "flags", "ends"),
    [
        (WAIT_FINISHED, 0, "kept"),
        (ESTABLISHED, 0, "rests"),
        (ESTABLISHED, F_PEER_CLOSED, "home"),
        (ESTABLISHED, F_CLOSE_SENT, "home"),
        (ESTABLISHED, F_CLIENT_CERTIFICATE, "kept"),
        (ESTABLISHED, F_CLIENT_CERTIFICATE | F_LEAF_KEPT, "rests"),
        (FAILED, 0, "home"),
        (FAILED, F_CLIENT_CERTIFICATE, "kept"),
    ],
)
def test_where_an_idle_connection_goes(state: int, flags: int, ends: str) -> None:
    pool = Pool(1, 1)
    area = leased(pool, 0, state)
    area.words[FLAGS] = flags
    area.words[RUN] = 9
    area.transcript = object()  # type: ignore[assignment]
    pool.settle(0, area)
    assert (0 in pool.held, area.resting) == (ends != "home", ends == "rests")
    assert (0 in pool.resting) is (ends == "rests")
    assert (area.transcript is None) is (ends != "kept")
    if ends == "rests":
        assert area.run == 9 and pool.words(0)[RUN] == 9


@pytest.mark.parametrize("may_rest", [0, 1, 2, 3])
def test_as_many_rest_as_may_and_the_longest_go_first(may_rest: int) -> None:
    pool = Pool(3, 3)
    pool.set_resting(may_rest)
    for slot in range(3):
        pool.settle(slot, leased(pool, slot) if slot not in pool.held else pool.held[slot])
    # A handshake takes a resting area before a new one, so one rests at a time unless two are held.
    assert len(pool.resting) <= may_rest
    areas = [pool.lease(slot) for slot in range(3)]
    for slot, area in enumerate(areas):
        assert area is not None
        pool.settle(slot, area)
    assert list(pool.resting) == [0, 1, 2][3 - may_rest :]
    for fewer in range(may_rest, -1, -1):
        pool.set_resting(fewer)
        assert (pool.may_rest, list(pool.resting)) == (fewer, [0, 1, 2][3 - fewer :])
    assert pool.residue() == 0


@pytest.mark.parametrize("where", ["held", "home"])
def test_keys_are_residue_of_a_failed_connection_alone(where: str) -> None:
    pool = Pool(2, 1)
    pool.set_resting(0)
    area = leased(pool, 0)
    area.bytes[KEYS:KEYS_END] = FILLED * (KEYS_END - KEYS)
    area.bytes[KEYS - 1], area.bytes[KEYS_END : KEYS_END + 1] = 1, b"\1"
    if where == "home":
        pool.settle(0, area)
    assert pool.residue() == 0
    pool.words(0)[STATE] = FAILED
    assert pool.residue() == KEYS_END - KEYS


@pytest.mark.parametrize(
    ("state", "flags", "length", "count"),
    [
        (ESTABLISHED, F_LEAF_KEPT, 300, 0),
        (ESTABLISHED, F_LEAF_KEPT, 299, 1),
        (ESTABLISHED, F_LEAF_KEPT, 0, 300),
        (ESTABLISHED, F_PEER_CLOSED, 300, 300),
        (FAILED, F_LEAF_KEPT, 300, 300),
        (FREE, F_LEAF_KEPT, 300, 300),
    ],
)
def test_a_room_holds_the_leaf_of_a_live_verified_connection_and_no_more(
    state: int, flags: int, length: int, count: int
) -> None:
    pool = Pool(3, 3)
    for slot in range(3):
        leased(pool, slot)
    area = pool.held[1]
    area.words[STATE], area.words[FLAGS], area.words[LEAF_LEN] = state, flags, length
    pool.rooms.keep(1, memoryview(FILLED * 300))
    assert pool.residue() == count


def test_residue_scans_nothing_twice_that_is_zero(asked: list[int]) -> None:
    pool = Pool(4, 1)
    assert pool.residue() == 0
    # The area never leased, the cores, the rooms: each in one piece.
    assert asked == [AREA_LEN, 4 * CORE_LEN, 4 * ROOM_LEN]


def test_residue_adds_up_what_lies_in_every_kind_of_place() -> None:
    pool = Pool(6, 4)
    areas = [leased(pool, slot) for slot in range(4)]
    pool.settle(0, areas[0])
    pool.settle(1, areas[1])
    pool.release(2, areas[2])
    areas[3].words[STATE] = FAILED
    for area in areas[:2]:
        area.bytes[CORE_LEN : CORE_LEN + 2] = FILLED * 2  # 4 in resting areas
    areas[2].bytes[0:3] = FILLED * 3  # 3 in a free one
    areas[3].bytes[KEYS : KEYS + 5] = FILLED * 5  # 5 of failed keys
    pool.core(0)[0:7] = FILLED * 7  # 7 in a core that an area holds
    pool.core(5)[0:1] = FILLED  # 1 in a free slot's, which is in its state: it is not free then
    pool.core(5)[0:1] = b"\0"
    pool.core(5)[CORE_LEN - 11 :] = FILLED * 11  # 11 in a free slot's
    pool.rooms.keep(4, memoryview(FILLED * 13))  # 13 in a room
    pool.rooms.keep(5, memoryview(FILLED * 17))  # 17 in another
    areas[2].opener = object()  # type: ignore[assignment]
    areas[2].sealer = object()  # type: ignore[assignment]
    assert pool.residue() == 4 + 3 + 5 + 7 + 11 + 13 + 17 + 2


def test_close_lets_everything_go() -> None:
    pool = Pool(4, 4)
    held = leased(pool, 0)
    rests = leased(pool, 1)
    free = leased(pool, 2)
    held.opener = object()  # type: ignore[assignment]
    pool.settle(1, rests)
    pool.release(2, free)
    pool.wipe()
    pool.close()
    assert (pool.held, pool.resting, pool._free) == ({}, {}, [])
    for area in (held, rests, free):
        for view in (area.words, area.bytes):
            with pytest.raises(ValueError, match="released"):
                view[0]
    assert held.opener is None
    for view in (pool._core_words, pool._cores, pool._area_bytes, pool._rooms):
        with pytest.raises(ValueError, match="released"):
            view[0]
    assert pool._core_map.closed and pool._area_map.closed and pool._room_map.closed


def test_close_wipes_the_areas_that_were_made_and_reads_no_other(asked: list[int]) -> None:
    pool = Pool(1, 5)
    leased(pool, 0)
    asked.clear()
    pool.wipe()
    pool.close()
    assert asked == [AREA_LEN, CORE_LEN, ROOM_LEN]


@pytest.mark.parametrize("kind", ["area", "core", "room"])
def test_close_wipes_every_map_and_closes_those_that_nobody_looks_at(kind: str) -> None:
    pool = Pool(2, 3)
    leased(pool, 0)
    pool.release(0, pool.held[0])
    leased(pool, 1)
    maps = {"area": pool._area_map, "core": pool._core_map, "room": pool._room_map}
    outside = memoryview(maps[kind])
    made = len(outside) if kind != "area" else AREA_LEN
    for at in (0, 1, made - 1):
        outside[at] = 0xFF
    pool.wipe()
    pool.close()
    assert not any(outside)
    outside.release()
    assert [name for name, memory in maps.items() if not memory.closed] == [kind]


def test_every_failed_connections_keys_are_counted() -> None:
    pool = Pool(4, 4)
    pool.set_resting(0)
    for slot in range(4):
        area = leased(pool, slot, FAILED)
        area.bytes[KEYS + slot] = 1
        if slot > 1:
            pool.release(slot, area)
    assert pool.residue() == 4


def test_bytes_at_the_edges_of_what_is_counted() -> None:
    pool = Pool(2, 3)
    rests = leased(pool, 0)
    leased(pool, 1)
    pool.settle(0, rests)
    rests.bytes[CORE_LEN - 1] = 1  # the core's last byte, which is the connection's own
    assert pool.residue() == 0
    rests.bytes[CORE_LEN] = rests.bytes[AREA_LEN - 1] = 1
    assert pool.residue() == 2
    never = memoryview(pool._area_map)[2 * AREA_LEN :]
    never[0] = never[AREA_LEN - 1] = 1
    assert pool.residue() == 4


def test_an_area_taken_from_a_resting_connection_rests_no_more() -> None:
    pool = Pool(2, 1)
    area = leased(pool, 0)
    pool.settle(0, area)
    assert pool.lease_for_handshake(1) is area
    assert area.resting is False


def test_areas_given_back_and_areas_never_leased_are_both_counted() -> None:
    pool = Pool(2, 3)
    areas = [leased(pool, slot) for slot in range(2)]
    for slot, area in enumerate(areas):
        pool.release(slot, area)
        area.bytes[AREA_LEN // 2] = 1
    memoryview(pool._area_map)[2 * AREA_LEN] = 1
    assert pool.residue() == 3


@pytest.mark.parametrize(("length", "pieces"), [(0, 8), (255, 8), (256, 7), (300, 7), (2048, 0)])
def test_only_the_pieces_of_a_room_past_its_leaf_are_read(
    length: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(2, 1)
    read: list[int] = []
    monkeypatch.setattr(copies, "nonzero", lambda view: read.append(len(view)) or 0)
    assert pool.rooms.nonzero_past(1, length) == 0
    assert len(read) == pieces and sum(read) == ROOM_LEN - length
