"""The calls of an engine where they meet its memory: buffers of every type, an area that is not to
be had, who rests, and what is left when something of ours breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import pytest

from engine import Engine, engine
from engine.drbg import Drbg
from engine.events import FAILED, WOULD_BLOCK
from engine.hardware import has_aes
from engine.layout import ENTROPY, ENTROPY_END, MAX_PLAINTEXT, RECEIVED
from engine.records import OVERHEAD, SHORT
from engine.ticket_keys import LATEST_MS
from peers.liar.identities import NOW_MS
from tests.engine.mutual_pairs import client, device, mutual
from tests.engine.pairs import Pair
from tests.engine.pairs import engine as made_engine

SLOT = 3


def resting(slot: int = SLOT, made: Engine | None = None) -> Pair:
    pair = Pair(made or made_engine(), slot).establish()
    pair.recv()
    return pair


# -- an engine and a connection begin --------------------------------------------------------


def test_a_signature_is_checked_unless_the_program_says_otherwise() -> None:
    assert Engine.server(1)._server.check_signature is True
    for checked in (True, False):
        assert Engine.server(1, check_signature=checked)._server.check_signature is checked


def test_the_hardware_is_asked_for_aes_where_nothing_is_said() -> None:
    suites = [Engine.server(1, hardware_aes=aes)._server.policy.suites for aes in (True, False)]
    assert suites[0] != suites[1]
    assert Engine.server(1)._server.policy.suites == suites[not has_aes()]


def test_a_connection_draws_its_entropy_at_once_and_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[bytes] = []
    real = Drbg.fill

    def fill(self: Drbg, view: memoryview) -> None:
        real(self, view)
        drawn.append(bytes(view))

    made = made_engine()
    monkeypatch.setattr(Drbg, "fill", fill)
    made.serve(SLOT, NOW_MS)
    assert drawn[-1] == bytes(made._pool.held[SLOT].bytes[ENTROPY:ENTROPY_END])


def test_a_time_that_is_refused_takes_no_area() -> None:
    made = made_engine()
    free = made.areas_free()
    with pytest.raises(ValueError, match="out of range"):
        made.serve(SLOT, LATEST_MS)
    assert made.areas_free() == free
    assert SLOT not in made._pool.held


# -- buffers ---------------------------------------------------------------------------------

# Bytes that a view names by another type of item.
Item = Literal["b", "c", "H", "I"]
ITEMS: list[Item] = ["b", "c", "H", "I"]


def named(data: bytes | bytearray, item: Item) -> memoryview:
    """The bytes as a view of such items."""
    return cast("memoryview[int]", memoryview(data).cast(item))


@pytest.mark.parametrize("item", ITEMS)
def test_any_contiguous_buffer_is_its_bytes(item: Item) -> None:
    pair = resting()
    wire = pair.client.send(b"16 bytes of data")
    wire += pair.client.send(bytes(-len(wire) % 4 + 4 - OVERHEAD % 4))
    wire = wire[: len(wire) - len(wire) % 4]
    out = bytearray(64)
    assert pair.engine.feed(SLOT, named(wire, item)) == len(wire)
    assert pair.engine.recv(SLOT, named(out, item)) >= 16
    assert out[:16] == b"16 bytes of data"


@pytest.mark.parametrize("item", ITEMS)
def test_what_is_sent_and_taken_in_views_of_another_item_is_the_same(item: Item) -> None:
    pair = resting()
    out = bytearray(64)
    assert pair.engine.send(SLOT, named(b"an answer of 20 byte", item)) == 20
    assert pair.engine.take(SLOT, named(out, item)) == 20 + OVERHEAD
    pair.client.read(bytes(out[: 20 + OVERHEAD]))
    assert bytes(pair.client.received) == b"an answer of 20 byte"
    assert pair.engine.send(SLOT, b"again") == 5
    assert pair.engine.take(SLOT, named(out, item)) == 5 + OVERHEAD
    pair.client.read(bytes(out[: 5 + OVERHEAD]))
    assert bytes(pair.client.received) == b"an answer of 20 byteagain"
    pair.feed(pair.client.send(b"8 bytes!"))
    assert pair.engine.recv(SLOT, named(out, item)) == 8
    assert out[:8] == b"8 bytes!"
    assert pair.engine.areas_resting() == 1
    pair.clean()


CALLS: dict[str, Callable[[Engine, memoryview], int]] = {
    "feed": lambda made, view: made.feed(SLOT, view),
    "send": lambda made, view: made.send(SLOT, view),
    "take": lambda made, view: made.take(SLOT, view),
    "recv": lambda made, view: made.recv(SLOT, view),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", ["rests", "received", "queued"])
def test_bytes_with_gaps_are_a_type_error_and_nothing_happens(name: str, state: str) -> None:
    pair = resting()
    if state == "received":
        pair.feed(pair.client.send(b"ten bytes!"))
    elif state == "queued":
        assert pair.engine.send(SLOT, bytearray(b"ten bytes!")) == 10
    gaps = memoryview(bytearray(200))[::2]
    for view in (gaps, memoryview(bytearray(64)).cast("B", (8, 8))[::2]):
        with pytest.raises(TypeError, match=r"^a contiguous buffer of bytes is needed$"):
            CALLS[name](pair.engine, view)
    assert pair.recv() == (b"ten bytes!" if state == "received" else b"")
    pair.client.read(pair.take())
    assert bytes(pair.client.received) == (b"ten bytes!" if state == "queued" else b"")


@pytest.mark.parametrize("name", ["take", "recv"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_buffer_to_fill_must_be_writable_and_not_empty(name: str, waits: bool) -> None:
    pair = resting()
    if waits:
        pair.feed(pair.client.send(b"x"))
        pair.engine.send(SLOT, b"y")
    with pytest.raises(TypeError, match=r"^a writable buffer is needed$"):
        getattr(pair.engine, name)(SLOT, bytes(90))
    with pytest.raises(TypeError):
        getattr(pair.engine, name)(SLOT, memoryview(bytes(90)))
    for out in (bytearray(), memoryview(bytearray())):
        with pytest.raises(ValueError, match=r"^a buffer of at least one byte is needed$"):
            getattr(pair.engine, name)(SLOT, out)


@pytest.mark.parametrize("size", [1, SHORT - OVERHEAD - 1, SHORT - OVERHEAD, SHORT - 1, SHORT])
def test_no_view_and_no_header_is_made_that_is_not_needed(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = resting()
    wire = pair.client.send(bytes(size))
    made: list[str] = []
    for name in ("_readable", "_writable", "protected_header"):
        real = getattr(engine, name)

        def counting(*args: object, name=name, real=real) -> object:
            made.append(name)
            return real(*args)

        monkeypatch.setattr(engine, name, counting)
    room = memoryview(bytearray(size + OVERHEAD))
    assert pair.engine.feed(SLOT, wire) == len(wire)
    assert pair.engine.recv(SLOT, room) == size
    assert pair.engine.send(SLOT, bytes(size)) == size
    assert pair.engine.take(SLOT, room) == size + OVERHEAD
    long = ["_readable"] if len(wire) >= SHORT else []
    assert made == long + (["protected_header"] if size >= SHORT else [])


def test_only_another_shape_than_bytes_in_a_row_is_made_flat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = memoryview(b"abcdef").cast("B", (2, 3))
    assert bytes(engine._readable(grid)) == b"abcdef" and engine._readable(grid).ndim == 1
    monkeypatch.setattr(engine, "_flat", None)
    assert bytes(engine._readable(b"abc")) == b"abc"


# -- half of it ------------------------------------------------------------------------------


def test_what_is_taken_in_part_goes_on_where_it_stopped() -> None:
    pair = resting()
    pair.engine.send(SLOT, b"0123456789")
    some, rest = bytearray(4), bytearray(200)
    assert pair.engine.take(SLOT, some) == 4
    assert pair.engine._pool.held[SLOT].quick is False
    assert pair.engine.take(SLOT, rest) == 6 + OVERHEAD
    pair.client.read(bytes(some + rest[: 6 + OVERHEAD]))
    assert bytes(pair.client.received) == b"0123456789"


def test_what_is_received_in_part_goes_on_where_it_stopped() -> None:
    pair = resting()
    pair.feed(pair.client.send(b"0123456789"))
    out = bytearray(200)
    assert pair.engine.recv(SLOT, memoryview(out)[:4]) == 4
    assert pair.engine._pool.held[SLOT].quick is False
    assert pair.engine.recv(SLOT, out) == 6
    assert out[:6] == b"456789"


def test_with_one_side_empty_the_other_waits_on() -> None:
    pair = resting()
    out = bytearray(100)
    pair.feed(pair.client.send(b"waits"))
    assert pair.engine.take(SLOT, out) == 0
    assert pair.engine.areas_resting() == 0
    assert pair.recv() == b"waits"
    assert pair.engine.send(SLOT, b"answer") == 6
    assert pair.engine.recv(SLOT, out) == WOULD_BLOCK
    assert pair.engine.areas_resting() == 0
    pair.client.read(pair.take())
    assert bytes(pair.client.received) == b"answer"


# -- who rests -------------------------------------------------------------------------------


def test_a_connection_that_is_at_work_does_not_rest() -> None:
    pair = resting()
    area = pair.engine._pool.resting[SLOT]
    for _ in range(2):
        assert area.resting is True
        pair.feed(pair.client.send(b"x"))
        assert (area.resting, area.quick, pair.engine.areas_resting()) == (False, True, 0)
        assert pair.recv() == b"x"
        assert area.resting is True
        pair.engine.send(SLOT, b"y")
        assert (area.resting, area.quick, pair.engine.areas_resting()) == (False, True, 0)
        pair.take()
    assert pair.engine._pool.resting == {SLOT: area}


def test_a_record_that_is_no_plain_data_leaves_the_quick_way() -> None:
    pair = resting()
    area = pair.engine._pool.resting[SLOT]
    said = bytearray(100)
    pair.engine.send(SLOT, b"y")
    pair.client.read(bytes(said[: pair.engine.take(SLOT, said)]))
    assert area.quick
    pair.feed(pair.client.send(b"padded", padding=3))
    assert area.quick is False
    assert pair.recv() == b"padded"
    pair.engine.send(SLOT, b"y")
    pair.client.read(bytes(said[: pair.engine.take(SLOT, said)]))
    assert area.quick
    pair.fails(pair.client.protect(20, b"x"), "tls-unexpected-message", 10, "application")
    assert pair.engine.areas_resting() == 0


@pytest.mark.parametrize("call", ["take", "recv"])
def test_one_more_than_may_rest_ends_the_longest_rest(call: str) -> None:
    made = made_engine(4, 4)
    made.set_resting(2)
    first, second, third = (resting(slot, made) for slot in range(3))
    pool = made._pool
    out = bytearray(100)
    for pair in (first, second, second, second):
        pair.feed(pair.client.send(b"x"))
        assert made.recv(pair.slot, out) == 1
        made.send(pair.slot, b"y")
        assert made.take(pair.slot, out) == 1 + OVERHEAD
    assert list(pool.resting) == [0, 1]
    if call == "take":
        made.send(1, b"y")
    else:
        second.feed(second.client.send(b"x"))
    third.feed(third.client.send(b"x"))
    third.recv()
    assert list(pool.resting) == [0, 2]
    assert getattr(made, call)(1, out) > 0
    assert list(pool.resting) == [2, 1]
    assert set(pool.held) == {1, 2}
    assert all(pool.held[slot] is area for slot, area in pool.resting.items())
    first.feed(first.client.send(b"still here"))
    assert first.recv() == b"still here"
    assert list(pool.resting) == [1, 0]


# -- no area ---------------------------------------------------------------------------------


def test_without_an_area_nothing_is_taken_and_nothing_is_lost() -> None:
    made = made_engine(2, 1)
    pair = resting(0, made)
    other = Pair(made, 1)
    assert not made.holds_area(0)
    wire = pair.client.send(b"later")
    out = bytearray(9)
    answers = (
        made.feed(0, wire),
        made.send(0, b"x"),
        made.finish(0),
        made.take(0, out),
        made.recv(0, out),
    )
    assert answers == (0, 0, False, 0, WOULD_BLOCK)
    assert [type(answer) for answer in answers] == [int, int, bool, int, int]
    made.drop(other.slot)
    pair.feed(wire)
    assert pair.recv() == b"later"
    assert made.finish(0) is True


def test_nothing_is_fed_without_an_area_being_taken() -> None:
    made = made_engine(2, 1)
    first = resting(0, made)
    resting(1, made)
    assert list(made._pool.resting) == [1]
    assert made.feed(0, b"") == made.send(0, b"") == 0
    assert list(made._pool.resting) == [1]
    assert first.recv() == b""


def test_before_the_handshake_is_complete_there_is_nothing_to_finish() -> None:
    made = made_engine()
    made.serve(SLOT, NOW_MS)
    assert made.finish(SLOT) is False
    assert made.take(SLOT, bytearray(9)) == 0


# -- the end ---------------------------------------------------------------------------------


def test_what_waits_when_the_transport_ends_is_received_and_then_the_failure() -> None:
    """A stream without its close_notify was cut (RFC 8446 §6.1)."""
    pair = resting()
    pair.feed(pair.client.send(b"the last"))
    pair.engine.eof(SLOT)
    assert pair.recv() == b"the last"
    assert pair.engine.recv(SLOT, bytearray(9)) == FAILED
    assert pair.engine.areas_resting() == 0 and not pair.engine.holds_area(SLOT)
    assert pair.engine.failure(SLOT) == "tls-peer-closed"


def test_handshakes_are_counted_until_they_are_dropped() -> None:
    made = made_engine(4, 4)
    for slot in range(3):
        made.serve(slot, NOW_MS)
    for left in (2, 1, 0):
        made.drop(left)
        assert made.handshakes_in_progress() == left


def test_closing_wipes_identities_ticket_keys_and_the_generator() -> None:
    made = made_engine()
    server, drbg = made._server, made._drbg
    server.resumption.ring.set_keys([b"k" * 32], NOW_MS)
    assert drbg is not None and len(drbg.draw(1)) == 1
    made.close()
    assert made._ended == "the engine is closed"
    assert len(server.identities) == 0
    assert server.resumption.ring.current() is None
    with pytest.raises(ValueError, match="wiped"):
        drbg.draw(1)


def test_an_engine_that_was_never_seeded_closes() -> None:
    made = Engine.server(1)
    made.close()
    with pytest.raises(ValueError, match="closed"):
        made.areas()


# -- something of ours breaks ----------------------------------------------------------------


def feed_quick(pair: Pair) -> None:
    pair.engine.feed(pair.slot, pair.client.send(b"x", padding=1))


def feed_any(pair: Pair) -> None:
    pair.engine.feed(pair.slot, pair.client.send(b"x") * 2)


def send_quick(pair: Pair) -> None:
    pair.engine.send(pair.slot, b"x")


def send_any(pair: Pair) -> None:
    pair.engine.send(pair.slot, bytes(MAX_PLAINTEXT + 1))


def finish(pair: Pair) -> None:
    pair.engine.finish(pair.slot)


BREAKS = {
    "on_opened": feed_quick,
    "feed_records": feed_any,
    "seal_first": send_quick,
    "queue_application_data": send_any,
    "queue_close_notify": finish,
}
# Those that may be without an area when they are called.
LONG = ("feed_records", "queue_application_data", "queue_close_notify")


@pytest.mark.parametrize(
    ("name", "area"),
    [*((name, True) for name in BREAKS), *((name, False) for name in LONG)],
)
@pytest.mark.parametrize("others", [0, 1])
def test_what_breaks_ends_its_connection_and_no_other(
    name: str, others: int, area: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = mutual()
    for slot in range(others):
        made.serve(slot, NOW_MS)
    pair = Pair(made, SLOT, client(device())).greet()
    pair.answer(pair.client.finish())
    pair.recv()
    assert made.peer_verified(SLOT)
    if not area:
        made.set_resting(0)
    bug = RuntimeError("ours")

    def broken(*_: object) -> None:
        raise bug

    monkeypatch.setattr(engine, name, broken)
    with pytest.raises(RuntimeError) as raised:
        BREAKS[name](pair)
    assert raised.value is bug
    assert made.failure(SLOT) == "tls-internal-error"
    assert made.peer_certificate(SLOT) is None and not made.peer_verified(SLOT)
    assert made.handshakes_in_progress() == others
    pair.client.read(pair.take())
    assert [alert.description for alert in pair.client.alerts] == [80]
    assert made.recv(SLOT, bytearray(9)) == FAILED
    assert not made.holds_area(SLOT)
    pair.clean()


def test_what_breaks_after_our_close_notify_gives_its_area_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing may follow it, an alert neither (RFC 8446 §6.1)."""
    pair = resting()
    assert pair.engine.finish(SLOT) is True
    pair.take()

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(engine, "feed_records", broken)
    with pytest.raises(RuntimeError):
        feed_any(pair)
    assert pair.take() == b""
    assert not pair.engine.holds_area(SLOT)
    assert pair.engine.failure(SLOT) == "tls-internal-error"


def test_a_record_that_does_not_open_is_cleared_where_it_was_opened() -> None:
    pair = resting()
    wire = bytearray(pair.client.send(b"data" * 50))
    wire[-1] ^= 1
    assert pair.engine.feed(SLOT, bytes(wire)) == len(wire)
    block = pair.engine._pool.held[SLOT].bytes
    assert not any(block[RECEIVED : RECEIVED + len(wire)])
    assert pair.engine.failure(SLOT) == "tls-bad-record-mac"
