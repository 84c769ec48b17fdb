"""What each call of the engine answers, and whose mistake raises what."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import pytest

from engine import END, FAILED, WOULD_BLOCK, Engine, Refused
from engine.layout import CORE_LEN
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.pairs import ENTROPY, NAME, Pair, engine, identity


def bare(slots: int = 2, areas: int | None = None) -> Engine:
    return Engine.server(slots, areas)


@pytest.mark.parametrize(("slots", "areas"), [(0, None), (4, 0), (4, 5), (-1, None)])
def test_slots_and_areas_out_of_range_are_the_callers_mistake(
    slots: int, areas: int | None
) -> None:
    with pytest.raises(ValueError, match="areas"):
        Engine.server(slots, areas)


def test_an_unknown_way_of_signing_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="signing"):
        Engine.server(1, signing="random")


def test_a_start_without_entropy_is_refused_and_starts_nothing() -> None:
    made = bare()
    own = identity()
    made.add_identity(own.chain_pem, own.key_pem, [NAME], NOW_MS)
    with pytest.raises(Refused) as refused:
        made.serve(0, NOW_MS)
    assert refused.value.refusal == "tls-no-entropy"
    assert made.event(0) == "free"
    assert made.areas_free() == 2


def test_a_start_without_an_identity_is_refused() -> None:
    made = bare()
    made.seed(ENTROPY)
    with pytest.raises(Refused) as refused:
        made.serve(0, NOW_MS)
    assert refused.value.refusal == "tls-server-chain"
    assert made.event(0) == "free"


def test_a_start_with_no_area_to_be_had_is_refused_and_the_slot_stays_free() -> None:
    made = engine(3, 1)
    made.serve(0, NOW_MS)
    with pytest.raises(Refused) as refused:
        made.serve(1, NOW_MS)
    assert refused.value.refusal == "tls-pool"
    assert made.event(1) == "free"
    assert made.handshakes_in_progress() == 1
    made.drop(0)
    made.serve(1, NOW_MS)


def test_a_refused_start_draws_nothing() -> None:
    def first_bytes(refuse: bool) -> bytes:
        made = engine(3, 1)
        made.serve(0, NOW_MS)
        if refuse:
            with pytest.raises(Refused):
                made.serve(1, NOW_MS)
        made.drop(0)
        pair = Pair(made, 1)
        pair.feed(pair.client.hello())
        return pair.take()

    assert first_bytes(True) == first_bytes(False)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_entropy_of_another_length_is_the_callers_mistake(length: int) -> None:
    with pytest.raises(ValueError, match="32"):
        bare().seed(bytes(length))


CALLS = {
    "feed": lambda e, s: e.feed(s, b"x"),
    "take": lambda e, s: e.take(s, bytearray(9)),
    "send": lambda e, s: e.send(s, b"x"),
    "recv": lambda e, s: e.recv(s, bytearray(9)),
    "finish": lambda e, s: e.finish(s),
    "eof": lambda e, s: e.eof(s),
    "drop": lambda e, s: e.drop(s),
    "failure": lambda e, s: e.failure(s),
    "alert_received": lambda e, s: e.alert_received(s),
    "resumed": lambda e, s: e.resumed(s),
    "suite": lambda e, s: e.suite(s),
    "group": lambda e, s: e.group(s),
    "retried": lambda e, s: e.retried(s),
    "server_name": lambda e, s: e.server_name(s),
    "alpn": lambda e, s: e.alpn(s),
    "holds_area": lambda e, s: e.holds_area(s),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_on_a_free_slot_is_the_callers_mistake(call: str) -> None:
    with pytest.raises(ValueError, match="free"):
        CALLS[call](engine(), 1)


@pytest.mark.parametrize("slot", [-1, 5, 1 << 40])
@pytest.mark.parametrize("call", [*CALLS, "serve", "event"])
def test_a_slot_out_of_range_is_an_index_error(call: str, slot: int) -> None:
    made = engine()
    calls = {
        **CALLS,
        "serve": lambda e, s: e.serve(s, NOW_MS),
        "event": lambda e, s: e.event(s),
    }
    with pytest.raises(IndexError):
        calls[call](made, slot)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("call", [*CALLS, "serve", "event", "areas", "areas_free", "close"])
def test_every_call_after_close_is_a_value_error(call: str, held: bool) -> None:
    made = engine()
    if held:
        Pair(made)
    made.close()
    with pytest.raises(ValueError, match="closed"):
        if call in CALLS:
            CALLS[call](made, 0)
        elif call == "serve":
            made.serve(0, NOW_MS)
        elif call == "event":
            made.event(0)
        else:
            getattr(made, call)()
    with pytest.raises(ValueError, match="closed"):
        made.residue()
    with pytest.raises(ValueError, match="closed"):
        made.set_resting(0)
    with pytest.raises(ValueError, match="closed"):
        made.seed(ENTROPY)


def test_serve_on_a_busy_slot_is_the_callers_mistake() -> None:
    made = engine()
    Pair(made)
    with pytest.raises(ValueError, match="has a connection"):
        made.serve(0, NOW_MS)


def test_an_empty_out_is_the_callers_mistake() -> None:
    made = engine()
    Pair(made)
    for call in (made.take, made.recv):
        for empty in (bytearray(), memoryview(bytearray(9))[:0]):
            with pytest.raises(ValueError, match="one byte"):
                call(0, empty)


def test_a_buffer_that_is_read_only_or_no_contiguous_bytes_is_a_type_error() -> None:
    made = engine()
    Pair(made)
    for call in (made.take, made.recv):
        with pytest.raises(TypeError):
            call(0, memoryview(b"read only"))
        with pytest.raises(TypeError):
            call(0, memoryview(bytearray(20))[::2])
    for give in (made.feed, made.send):
        with pytest.raises(TypeError):
            give(0, memoryview(bytearray(20))[::2])
        with pytest.raises(TypeError):
            give(0, "text")  # type: ignore[arg-type]


def test_any_contiguous_buffer_of_bytes_is_taken() -> None:
    made = engine(2, 2)
    pair = Pair(made)
    hello = pair.client.hello()
    assert made.feed(0, bytearray(hello[:10])) == 10
    assert made.feed(0, memoryview(hello)[10:30]) == 20
    characters: memoryview[Any] = memoryview(hello[30:]).cast("c")
    assert made.feed(0, characters) == len(hello) - 30
    assert made.event(0) == "want_write"


def test_events_come_in_their_order_over_a_connections_life() -> None:
    made = engine()
    assert made.event(0) == "free"
    pair = Pair(made)
    client = pair.client
    assert made.event(0) == "want_read"
    pair.feed(client.hello())
    assert made.event(0) == "want_write"
    client.read(pair.take())
    assert made.event(0) == "want_read"
    pair.feed(client.finish())
    assert made.event(0) == "established"
    pair.feed(client.send(b"plaintext that waits is no event"))
    assert made.event(0) == "established"
    made.send(0, b"x")
    assert made.event(0) == "want_write"
    client.read(pair.take())
    pair.feed(client.close_notify())
    assert made.event(0) == "closed"
    assert made.send(0, b"half-closed") == 11
    assert made.event(0) == "want_write"
    pair.take()
    assert made.event(0) == "closed"
    assert made.finish(0)
    assert made.event(0) == "want_write"
    made.drop(0)
    assert made.event(0) == "free"


def test_failed_is_said_even_with_its_alert_to_take() -> None:
    made = engine()
    pair = Pair(made)
    pair.feed(b"\x17\x03\x03\x00\x20")
    assert made.event(0) == "failed"
    assert pair.take() == b"\x15\x03\x03\x00\x02\x02\x0a"
    assert made.event(0) == "failed"


def test_what_was_negotiated_answers_once_the_hello_is_answered() -> None:
    made = engine()
    made.set_alpn([b"h2", b"http/1.1"])
    client = Client(b"names", now_ms=NOW_MS, alpn=[b"http/1.1", b"h2"])
    pair = Pair(made, client=client)
    assert (made.suite(0), made.group(0)) == (0, 0)
    assert made.server_name(0) is None
    assert made.alpn(0) is None
    pair.feed(client.hello())
    assert (made.suite(0), made.group(0)) == (client.suites[0], 29)
    assert made.server_name(0) == NAME.encode()
    assert made.alpn(0) == b"h2"
    assert not made.retried(0)
    assert not made.resumed(0)


def test_send_takes_nothing_before_established_after_finish_and_when_failed() -> None:
    made = engine()
    pair = Pair(made)
    assert made.send(0, b"early") == 0
    assert not made.finish(0)
    pair.greet()
    assert made.send(0, b"early") == 0
    assert not made.finish(0)
    pair.answer(pair.client.finish())
    assert made.send(0, b"") == 0
    assert not made.holds_area(0)
    assert made.finish(0)
    assert made.finish(0)
    assert made.send(0, b"late") == 0
    pair.client.read(pair.take())
    assert pair.client.state == "closed"
    made.eof(0)
    assert made.failure(0) == "tls-peer-closed"
    assert made.send(0, b"failed") == 0
    assert not made.finish(0)


def test_recv_gives_data_then_the_end_or_the_failure() -> None:
    made = engine()
    pair = Pair(made).establish()
    room = bytearray(4)
    assert made.recv(0, room) == WOULD_BLOCK
    pair.feed(pair.client.send(b"abcdef"))
    pair.feed(pair.client.close_notify())
    assert made.recv(0, room) == 4
    assert made.recv(0, room) == 2
    assert room[:2] == b"ef"
    assert made.recv(0, room) == END
    made.eof(0)
    assert made.recv(0, room) == END
    assert made.failure(0) is None

    pair = Pair(made, 1).establish()
    pair.feed(pair.client.send(b"abcdef"))
    made.eof(1)
    assert made.event(1) == "failed"
    assert made.recv(1, room) == 4
    assert made.recv(1, room) == 2
    assert made.recv(1, room) == FAILED
    assert made.recv(1, room) == FAILED


def test_after_a_close_notify_everything_is_taken_dropped_and_leases_nothing() -> None:
    made = engine()
    pair = Pair(made).establish()
    pair.feed(pair.client.close_notify() + b"bytes behind it")
    assert made.feed(0, b"anything") == 8
    assert not made.holds_area(0)
    assert made.areas_free() == 2
    assert made.failure(0) is None
    assert made.event(0) == "closed"


def test_feed_of_nothing_leases_nothing() -> None:
    made = engine()
    Pair(made).establish()
    made.set_resting(0)
    assert made.feed(0, b"") == 0
    assert made.areas_free() == 2
    assert not made.holds_area(0)


def test_an_end_of_the_transport_in_every_state_is_a_failure_without_an_alert() -> None:
    made = engine(6, 6)
    steps = [
        lambda p: None,
        lambda p: p.feed(p.client.hello()[:7]),
        lambda p: p.greet(),
        lambda p: p.establish(),
        lambda p: p.establish().feed(p.client.send(b"x")[:9]),
    ]
    for slot, step in enumerate(steps):
        pair = Pair(made, slot)
        step(pair)
        made.eof(slot)
        pair.clean()
        assert made.failure(slot) == "tls-peer-closed"
        assert pair.take() == b""
        assert made.alert_received(slot) is None
        assert not made.holds_area(slot)
    assert made.handshakes_in_progress() == 0


def test_handshakes_in_progress_are_those_between_serve_and_their_end() -> None:
    made = engine(5, 5)
    pairs = [Pair(made, slot) for slot in range(4)]
    assert made.handshakes_in_progress() == 4
    pairs[0].establish()
    assert made.handshakes_in_progress() == 3
    pairs[1].feed(b"\x17\x03\x03\x00\x20")
    assert made.handshakes_in_progress() == 2
    made.drop(2)
    assert made.handshakes_in_progress() == 1
    made.eof(3)
    assert made.handshakes_in_progress() == 0
    for slot in (0, 1, 3):
        made.drop(slot)
    assert made.handshakes_in_progress() == 0


def test_take_in_any_split_gives_the_same_bytes() -> None:
    said = []
    for room in (1, 7, 4096):
        made = engine()
        pair = Pair(made)
        pair.feed(pair.client.hello())
        said.append(pair.take(room))
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize(
    "protocols",
    [[b""], [b"x" * 256], [b"h2", b"h2"], [b"x" * 255, b"y" * 255, b"z" * 3], [""]],
)
def test_an_alpn_list_that_cannot_be_is_refused_and_changes_nothing(
    protocols: list[bytes | str],
) -> None:
    made = engine()
    made.set_alpn([b"h2"])
    with pytest.raises(Refused) as refused:
        made.set_alpn(protocols)
    assert refused.value.refusal == "tls-server-alpn-list"
    client = Client(b"alpn", now_ms=NOW_MS, alpn=[b"h2"])
    Pair(made, client=client).establish()
    assert client.alpn == b"h2"


def test_an_alpn_list_of_512_bytes_is_taken_and_an_empty_one_unsets_it() -> None:
    made = engine()
    made.set_alpn([b"x" * 255, b"y" * 255])
    made.set_alpn([])
    client = Client(b"alpn", now_ms=NOW_MS, alpn=[b"h2"])
    Pair(made, client=client).establish()
    assert client.alpn is None
    assert made.alpn(0) is None


def test_a_fault_of_ours_ends_the_connection_and_is_raised_with_empty_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = engine()
    pair = Pair(made)

    def broken(*_: object) -> None:
        secret = b"a secret in a local"
        raise RuntimeError(str(len(secret)))

    monkeypatch.setattr("engine.server.exchange", broken)
    with pytest.raises(RuntimeError) as raised:
        made.feed(0, pair.client.hello())
    assert made.failure(0) == "tls-internal-error"
    assert pair.take() == b"\x15\x03\x03\x00\x02\x02\x50"
    assert made.handshakes_in_progress() == 0
    pair.clean()
    frames = [entry.frame for entry in raised.traceback if "engine" in str(entry.path)]
    assert frames
    trace: TracebackType | None = raised.tb
    locals_left = []
    while trace is not None:
        if trace.tb_frame.f_code.co_name in ("broken", "_answer", "_on_client_hello"):
            locals_left.append(dict(trace.tb_frame.f_locals))
        trace = trace.tb_next
    assert locals_left
    assert all(not values for values in locals_left)


def test_a_server_core_is_at_most_1536_bytes() -> None:
    assert CORE_LEN <= 1536
