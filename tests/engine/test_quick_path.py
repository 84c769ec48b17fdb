"""The common case of feed, take, send and recv: one record of a connection that rests.

It is a short cut and must be nothing else: the same answer as the long way, taken whenever it may
be and only then. Which way a call went is seen by the long way being closed, or counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine import Engine
from engine.key_schedule import LAST_SEQUENCE
from engine.layout import MAX_PLAINTEXT, OUT, READ_SEQ, RECEIVED, RUN, WRITE_SEQ
from engine.records import OVERHEAD, SHORT
from tests.engine.pairs import Pair
from tests.engine.pairs import engine as made_engine

LONG_WAYS = ("_feed_any", "_take_any", "_send_any", "_recv_any")
SIZES = [1, 2, SHORT - OVERHEAD - 1, SHORT - OVERHEAD, SHORT - 1, SHORT, SHORT + 1, MAX_PLAINTEXT]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The long ways that are taken meanwhile."""
    taken: list[str] = []
    with monkeypatch.context() as patch:
        for name in LONG_WAYS:
            real = getattr(Engine, name)

            def long_way(self: Engine, *args: object, name=name, real=real) -> object:
                taken.append(name)
                return real(self, *args)

            patch.setattr(Engine, name, long_way)
        yield taken


def resting(slot: int = 0, made: Engine | None = None) -> Pair:
    pair = Pair(made or made_engine(), slot).establish()
    pair.recv()
    assert not pair.engine.holds_area(slot) and pair.engine.areas_resting() >= 1
    return pair


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_round_trip_of_one_record_takes_no_long_way(
    size: int, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    sent = bytes(i % 256 for i in range(size))
    wire = pair.client.send(sent)
    room, out = bytearray(size), bytearray(size + OVERHEAD)
    answer = sent[::-1]
    given = memoryview(answer) if kind is memoryview else answer
    with counted(monkeypatch) as long_ways:
        assert pair.engine.feed(0, kind(wire)) == len(wire)
        assert pair.engine.recv(0, memoryview(room)) == size
        assert pair.engine.areas_resting() == 1
        assert pair.engine.send(0, given) == size
        assert pair.engine.take(0, memoryview(out)) == size + OVERHEAD
        assert pair.engine.areas_resting() == 1
    assert long_ways == []
    assert bytes(room) == sent
    pair.clean()
    pair.client.read(bytes(out))
    assert bytes(pair.client.received) == answer


def test_a_second_record_before_the_first_is_received_goes_the_long_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = resting()
    one, two = pair.client.send(b"one"), pair.client.send(b"two")
    with counted(monkeypatch) as long_ways:
        pair.feed(one)
        pair.feed(two)
        assert pair.engine.send(0, b"answer") == 6
    assert long_ways == ["_feed_any", "_send_any"]
    assert pair.recv() == b"onetwo"


@pytest.mark.parametrize("size", [0, 1, MAX_PLAINTEXT])
def test_the_shortest_and_the_longest_record_that_may_be_quick(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without content is judged where every other message is that carries nothing."""
    pair = resting()
    with counted(monkeypatch) as long_ways:
        pair.feed(pair.client.send(bytes(size)))
    assert long_ways == ([] if size else ["_feed_any"])


def test_a_record_too_long_is_refused_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = resting()
    wire = pair.client.protect(23, bytes(MAX_PLAINTEXT), 1)
    with counted(monkeypatch) as long_ways:
        pair.feed(wire)
    assert long_ways == ["_feed_any"]
    assert pair.engine.failure(0) == "tls-record-overflow"


OTHER_HEADERS = {
    "another type": b"\x16\x03\x03",
    "an older minor version": b"\x17\x03\x01",
}


@pytest.mark.parametrize("name", OTHER_HEADERS)
def test_another_header_than_the_usual_goes_the_long_way(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    wire = OTHER_HEADERS[name] + pair.client.send(b"data")[3:]
    with counted(monkeypatch) as long_ways:
        pair.feed(wire)
    assert long_ways == ["_feed_any"]


@pytest.mark.parametrize("change", [-1, 1])
def test_more_or_less_than_one_record_goes_the_long_way(
    change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    wire = pair.client.send(b"data")
    piece = wire[:-1] if change < 0 else wire + b"\x17"
    with counted(monkeypatch) as long_ways:
        assert pair.engine.feed(0, piece) == len(piece)
    assert long_ways == ["_feed_any"]
    assert pair.recv() == (b"data" if change > 0 else b"")


@pytest.mark.parametrize("left", [1, 0])
def test_the_last_sequence_number_is_read_the_long_way(
    left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    pair.engine._pool.words(0)[READ_SEQ] = LAST_SEQUENCE - left
    with counted(monkeypatch) as long_ways:
        pair.feed(pair.client.send(b"data"))
    assert long_ways == ([] if left else ["_feed_any"])
    assert pair.engine.failure(0) == ("tls-bad-record-mac" if left else "tls-too-many-messages")


def test_a_record_that_does_not_open_leaves_nothing_of_itself() -> None:
    pair = resting()
    wire = bytearray(pair.client.send(b"data" * 50))
    wire[-1] ^= 1
    area = pair.engine._pool.resting[0]
    pair.fails(bytes(wire), "tls-bad-record-mac", 20, "application")
    assert not any(area.bytes)


@pytest.mark.parametrize("kind", [20, 24])
def test_what_a_record_turns_out_to_be_is_judged_as_ever(kind: int) -> None:
    pair = resting()
    pair.fails(pair.client.protect(kind, b"x"), "tls-unexpected-message", 10, "application")


def test_data_ends_a_run_and_padding_is_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = resting()
    pair.feed(pair.client.send(b""))
    assert pair.engine._pool.words(0)[RUN] == 1
    with counted(monkeypatch) as long_ways:
        pair.feed(pair.client.send(b"x"))
    assert long_ways == []
    assert pair.engine._pool.words(0)[RUN] == 0
    assert pair.recv() == b"x"
    pair.feed(pair.client.send(b"padded", padding=3))
    assert pair.recv() == b"padded"


@pytest.mark.parametrize("call", ["recv", "take"])
def test_a_buffer_that_is_too_small_gets_what_fits(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    if call == "recv":
        pair.feed(pair.client.send(b"0123456789"))
    else:
        pair.engine.send(0, b"0123456789")
    move = getattr(pair.engine, call)
    whole, out = b"", bytearray(4)
    with counted(monkeypatch) as long_ways:
        while (n := move(0, out)) > 0:
            whole += out[:n]
            pair.clean()
    assert long_ways[0] == f"_{call}_any"
    if call == "recv":
        assert whole == b"0123456789"
    else:
        pair.client.read(whole)
        assert bytes(pair.client.received) == b"0123456789"
    assert pair.engine.areas_resting() == 1


@pytest.mark.parametrize("call", ["recv", "take"])
def test_a_buffer_of_just_the_size_is_filled_at_once(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for spare in (0, 1):
        pair = resting()
        if call == "recv":
            pair.feed(pair.client.send(b"ten bytes!"))
        else:
            pair.engine.send(0, b"ten bytes!")
        size = 10 if call == "recv" else 10 + OVERHEAD
        with counted(monkeypatch) as long_ways:
            assert getattr(pair.engine, call)(0, bytearray(size + spare)) == size
        assert long_ways == []
        pair.clean()


def test_who_rests_last_of_too_many_has_the_longest_give_up_its_area() -> None:
    made = made_engine(4, 4)
    made.set_resting(2)
    pairs = [Pair(made, slot).establish() for slot in range(3)]
    for pair in pairs:
        pair.recv()
    for pair in pairs[:2]:
        pair.feed(pair.client.send(b"x"))
        assert pair.recv() == b"x"
    assert list(made._pool.resting) == [0, 1] and made.areas_resting() == 2
    pairs[2].engine.send(2, b"y")
    pairs[2].take()
    assert made.areas_resting() == 2 and 0 not in made._pool.resting


@pytest.mark.parametrize("due", [0, 1])
def test_a_key_that_is_due_is_changed_the_long_way(
    due: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    area = pair.engine._pool.resting[0]
    area.write_limit = 1 - due + pair.engine._pool.words(0)[WRITE_SEQ]
    with counted(monkeypatch) as long_ways:
        assert pair.engine.send(0, b"data") == 4
    assert long_ways == (["_send_any"] if due else [])


@pytest.mark.parametrize("size", [0, MAX_PLAINTEXT + 1])
def test_nothing_and_more_than_a_record_are_sent_the_long_way(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    with counted(monkeypatch) as long_ways:
        assert pair.engine.send(0, bytes(size)) == size
    assert long_ways == ["_send_any"]


def test_marks_are_where_the_record_ended() -> None:
    pair = resting()
    area = pair.engine._pool.resting[0]
    pair.feed(pair.client.send(b"abc"))
    assert (area.received_end, area.received_high) == (RECEIVED + 3, RECEIVED + 4)
    pair.recv()
    assert (area.received_end, area.received_high) == (RECEIVED, RECEIVED)
    pair.engine.send(0, b"abc")
    assert area.out_end == area.out_high == OUT + 3 + OVERHEAD
    pair.take()
    assert area.out_end == area.out_high == OUT
