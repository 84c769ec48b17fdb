"""A verified client's leaf: in its room or in its area, told while it may be, and gone after."""

from __future__ import annotations

import pytest
from cryptography import x509

from engine import Engine, Refused
from engine.layout import ROOM_LEN
from peers.liar import Client, codes
from peers.liar.identities import NOW_MS
from peers.liar.wire import message
from tests.engine.mutual_pairs import (
    KEY,
    OPTIONAL,
    big_leaf,
    client,
    device,
    flight,
    has_identity,
    mutual,
    no_identity,
    wrong,
)
from tests.engine.pairs import Pair
from tests.engine.x509.chain_maker import Made

UNEXPECTED = "tls-unexpected-message"

# Rooms.


@pytest.mark.parametrize("resting", [0, 1])
def test_a_small_leaf_moves_to_its_room_and_the_area_goes_back(resting: int) -> None:
    made = mutual(slots=4, areas=1)
    made.set_resting(resting)
    owns = [device(serial=100 + i) for i in range(4)]
    pairs = [Pair(made, i, client(own)).establish() for i, own in enumerate(owns)]
    for i, own in enumerate(owns):
        assert not made.holds_area(i)
        has_identity(made, own, i)
    for pair, own in zip(pairs, owns, strict=True):
        # The area comes back for half a record, and the identity is still the room's.
        record = pair.client.send(b"half")
        pair.feed(record[:9])
        assert made.holds_area(pair.slot)
        has_identity(made, own, pair.slot)
        pair.feed(record[9:])
        assert pair.recv() == b"half"
        has_identity(made, own, pair.slot)


def test_a_large_leaf_keeps_its_area_for_the_connections_life() -> None:
    made = mutual(slots=3, areas=1)
    own = big_leaf()
    pair = Pair(made, 0, client(own)).establish()
    assert made.holds_area(0) and made.areas_free() == 0
    with pytest.raises(Refused):
        made.serve(1, NOW_MS)
    for text in (b"one", b"two"):
        pair.feed(pair.client.send(text))
        assert pair.recv() == text
        has_identity(made, own)
    made.drop(0)
    assert made.residue() == 0 and made.areas_free() == 1
    Pair(made, 1, client(device())).establish()
    assert not made.holds_area(1)


def test_a_leaf_of_just_a_room_is_kept_and_one_byte_more_is_not() -> None:
    def of_size(size: int) -> Made:
        pad = 1200
        while True:
            extra = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4.5"), bytes(pad))
            made = device(extra=[(extra, False)])
            if len(made.der) == size:
                return made
            pad += size - len(made.der)

    for size, kept in ((ROOM_LEN, True), (ROOM_LEN + 1, False)):
        made = mutual(slots=2, areas=2)
        made.set_resting(0)
        own = of_size(size)
        Pair(made, 0, client(own)).establish()
        assert made.holds_area(0) is not kept
        has_identity(made, own)


@pytest.mark.parametrize("large", [False, True])
def test_a_failure_forgets_the_identity_before_its_alert_is_taken(large: bool) -> None:
    made = mutual(slots=2, areas=1)
    pair = Pair(made, 0, client(big_leaf() if large else device())).establish()
    pair.feed(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert made.failure(0) == "tls-bad-record-mac"
    no_identity(made)
    pair.take()
    no_identity(made)
    assert not made.holds_area(0)
    assert made.residue() == 0


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("resting", [0, 1])
def test_the_transports_end_forgets_the_identity(large: bool, resting: int) -> None:
    made = mutual(slots=2, areas=1)
    made.set_resting(resting)
    Pair(made, 0, client(big_leaf() if large else device())).establish()
    made.eof(0)
    assert made.failure(0) == "tls-peer-closed"
    no_identity(made)
    assert made.residue() == 0


def test_the_transports_end_forgets_the_identity_with_no_area_free() -> None:
    made = mutual(slots=2, areas=1)
    Pair(made, 0, client(device())).establish()
    made.serve(1, NOW_MS)
    made.eof(0)
    no_identity(made)
    assert made.residue() == 0


def test_a_closed_connection_keeps_its_identity_until_it_is_dropped() -> None:
    made = mutual(slots=2, areas=1)
    own = device()
    pair = Pair(made, 0, client(own)).establish()
    pair.feed(pair.client.close_notify())
    assert made.event(0) == "closed"
    has_identity(made, own)
    made.eof(0)
    has_identity(made, own)
    made.drop(0)
    assert made.residue() == 0


def test_a_slots_next_connection_has_nothing_of_the_last() -> None:
    made = mutual(OPTIONAL, slots=2, areas=1)
    long = device(san=[x509.DNSName(f"a-long-name-{i}.example") for i in range(20)])
    Pair(made, 0, client(long)).establish()
    made.drop(0)
    assert made.residue() == 0
    pair = Pair(made, 0, client()).establish()
    no_identity(made)
    made.drop(pair.slot)
    short = device()
    Pair(made, 0, client(short)).establish()
    has_identity(made, short)


def place(made: Engine, slot: int, offset: int) -> int:
    """Where a byte of a slot's room lies in the map."""
    pieces = made._pool.rooms._pieces(slot, ROOM_LEN)
    return next(start + offset - at for at, start, end in pieces if offset - at < end - start)


def test_residue_counts_what_is_left_in_a_room() -> None:
    made = mutual(slots=3, areas=1)
    own = device()
    Pair(made, 1, client(own)).establish()
    rooms = made._pool._rooms
    for slot, offsets in ((1, (len(own.der), 1023, 1024, ROOM_LEN - 1)), (0, (0, 700)), (2, (0,))):
        for offset in offsets:
            at = place(made, slot, offset)
            assert rooms[at] == 0
            rooms[at] = 1
            assert made.residue() == 1
            rooms[at] = 0
    assert made.residue() == 0


def test_rooms_do_not_overlap() -> None:
    made = mutual(slots=3, areas=1)
    every = [place(made, slot, offset) for slot in range(3) for offset in range(ROOM_LEN)]
    assert sorted(every) == list(range(3 * ROOM_LEN))


@pytest.mark.parametrize("length", [1, 255, 256, 257, 1000, ROOM_LEN])
def test_a_room_gives_back_what_it_keeps_and_nothing_when_cleared(length: int) -> None:
    made = mutual(slots=3, areas=1)
    rooms = made._pool.rooms
    leaf_bytes = bytes(1 + i % 255 for i in range(length))
    for slot in range(3):
        rooms.keep(slot, memoryview(leaf_bytes))
    for slot in range(3):
        assert rooms.leaf(slot, length) == leaf_bytes
        assert rooms.nonzero_past(slot, length) == 0
        assert rooms.nonzero_past(slot, 0) == length
        rooms.clear(slot, length)
        assert rooms.nonzero_past(slot, 0) == 0
    assert made.residue() == 0


def test_closing_wipes_the_rooms() -> None:
    made = mutual(slots=2, areas=1)
    Pair(made, 0, client(device())).establish()
    view = made._pool._rooms[:]
    assert bytes(view).strip(b"\0")
    made.close()
    assert not bytes(view).strip(b"\0")


def test_a_handshake_that_fails_at_each_message_leaves_nothing() -> None:
    def certificate(c: Client) -> bytes:
        return c.add(c.certificate_message())

    def verify(c: Client) -> bytes:
        return c.add(c.certificate_verify_message())

    for steps in ((), (certificate,), (certificate, verify)):
        pair, c = wrong()
        data = b"".join(step(c) for step in steps)
        if data:
            pair.feed(flight(pair, data))
        pair.fails(flight(pair, message(codes.NEW_SESSION_TICKET, b"")), UNEXPECTED, 10, KEY)
        pair.engine.drop(0)
        assert pair.engine.residue() == 0
