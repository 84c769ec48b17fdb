"""How bytes become records and records messages, wherever a peer or a network cuts them.

The same conversation in other pieces is the same conversation: what the server says, what it
delivers and what it takes does not depend on where a segment, a record or a message ends
(RFC 8446 §5.1 and §4).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from engine import codepoints as c
from engine import layout, receive
from engine.layout import HANDSHAKE, HEADER, IN, MAX_CIPHERTEXT, MAX_PLAINTEXT, RECEIVED, TAG
from engine.pool import Area
from engine.refusals import Refusal
from harnesses.oracles import lines_run
from tests.engine.mutual_pairs import client, device, mutual
from tests.engine.pairs import Pair, engine

RECEIVED_END = RECEIVED + layout.RECEIVED_CAP
STATES = (
    layout.WAIT_CLIENT_HELLO,
    layout.WAIT_SECOND_CLIENT_HELLO,
    layout.WAIT_CERTIFICATE,
    layout.WAIT_CERTIFICATE_VERIFY,
    layout.WAIT_FINISHED,
    layout.ESTABLISHED,
)


def held(pair: Pair) -> Area:
    return pair.engine._pool.held[pair.slot]


def rewrapped(record: bytes, sizes: list[int]) -> bytes:
    """The content of one record in the clear, as records of these sizes and one of the rest."""
    content, wire = record[HEADER:], b""
    for size in [*sizes, len(content) - sum(sizes)]:
        piece, content = content[:size], content[size:]
        wire += record[:3] + size.to_bytes(2) + piece
    return wire


# -- pieces of records ----------------------------------------------------------------------


def conversation(step: int | None) -> Iterator[bytes]:
    """What the server says at each turn of a connection that is fed in pieces of this size."""
    pair = Pair(mutual(), client=client(device()))
    for turn in (
        lambda: pair.client.hello(),
        lambda: pair.client.finish(),
        lambda: pair.client.send(b"one") + pair.client.send(b"two"),
        lambda: pair.client.key_update(1),
        lambda: pair.client.send(b"three", padding=9) + pair.client.close_notify(),
    ):
        wire = turn()
        assert pair.feed(wire, step) == len(wire)
        said = pair.take()
        pair.client.read(said)
        yield said + pair.recv()
    assert pair.engine.failure(pair.slot) is None


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 6, 7, 21, 300])
def test_a_connection_does_not_depend_on_how_its_bytes_are_cut(step: int) -> None:
    assert list(conversation(step)) == list(conversation(None))


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, 6, 20, -2, -1])
def test_a_record_in_two_pieces_is_taken_whole_and_leaves_nothing(cut: int) -> None:
    pair = Pair(engine()).establish()
    wire = pair.client.send(b"in two pieces")
    first, rest = wire[:cut], wire[cut:]
    assert pair.engine.feed(pair.slot, first) == len(first)
    assert held(pair).in_end == IN + len(first)
    assert bytes(held(pair).bytes[IN : IN + len(first)]) == first
    assert pair.recv() == b""
    assert pair.engine.feed(pair.slot, rest) == len(rest)
    assert pair.recv() == b"in two pieces"


@pytest.mark.parametrize("more", range(8))
def test_what_follows_a_whole_record_is_kept_for_the_next(more: int) -> None:
    pair = Pair(engine()).establish()
    one, two = pair.client.send(b"first"), pair.client.send(b"second")
    assert pair.engine.feed(pair.slot, one + two[:more]) == len(one) + more
    assert pair.recv() == b"first"
    assert pair.engine.feed(pair.slot, two[more:]) == len(two) - more
    assert pair.recv() == b"second"


def test_a_record_that_ends_a_gathered_one_is_read_with_it() -> None:
    pair = Pair(engine()).establish()
    one, two = pair.client.send(b"first"), pair.client.send(b"second")
    pair.engine.feed(pair.slot, one[:3])
    assert pair.engine.feed(pair.slot, one[3:] + two) == len(one) - 3 + len(two)
    assert pair.recv() == b"firstsecond"


def test_after_a_close_notify_all_that_is_fed_is_taken() -> None:
    pair = Pair(engine()).establish()
    wire = pair.client.close_notify() + b"whatever else"
    assert pair.engine.feed(pair.slot, wire) == len(wire)
    assert pair.engine.feed(pair.slot, b"and more") == len(b"and more")


def test_a_close_notify_leaves_what_else_is_known_of_the_connection() -> None:
    pair = Pair(engine()).establish()
    before = pair.engine._pool.words(pair.slot)[layout.FLAGS]
    assert before & layout.F_ANSWERED
    pair.feed(pair.client.close_notify())
    assert pair.engine._pool.words(pair.slot)[layout.FLAGS] == before | layout.F_PEER_CLOSED


# -- pieces of messages ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [[n] for n in (1, 2, 3, 4, 5, 6, 100)]
    + [[1, 1], [1, 2], [1, 3], [2, 2], [3, 1], [1, 1, 1, 1], [2, 1, 1, 7], [4, 50], [50, 4]],
)
def test_a_client_hello_in_any_records_is_the_same(sizes: list[int]) -> None:
    pair = Pair(engine())
    wire = rewrapped(pair.client.hello(), sizes)
    pair.answer(wire)
    pair.answer(pair.client.finish())
    assert pair.engine.event(pair.slot) == "established"


def test_all_but_the_last_byte_of_a_message_is_kept_as_it_came() -> None:
    pair = Pair(engine())
    hello = pair.client.hello()
    wire = rewrapped(hello, [3, 20, len(hello) - HEADER - 24])
    assert pair.feed(wire[: -HEADER - 1]) == len(wire) - HEADER - 1
    area = held(pair)
    assert area.handshake_end == area.handshake_high == HANDSHAKE + len(hello) - HEADER - 1
    assert bytes(area.bytes[HANDSHAKE : area.handshake_end]) == hello[HEADER:-1]
    pair.answer(wire[-HEADER - 1 :])
    assert pair.client.state != "start"


SPLITS = [1, 2, 3, 4, 5, 17, (1, 1), (1, 3), (2, 2), (1, 1, 1, 1, 1), (5, 4)]


@pytest.mark.parametrize("split", SPLITS)
def test_messages_under_keys_in_any_records_are_the_same(split: int | tuple[int, ...]) -> None:
    """Certificate, CertificateVerify and Finished, and then a KeyUpdate."""
    pair = Pair(mutual(), client=client(device())).greet()
    flight = b"".join(pair.client.certificate_flight()) + pair.client.finished_message()
    sizes = [split] if isinstance(split, int) else list(split)
    wire = b""
    for size in sizes:
        wire += pair.client.protect(c.HANDSHAKE, flight[:size])
        flight = flight[size:]
    wire += pair.client.protect(c.HANDSHAKE, flight)
    pair.feed(wire)
    assert pair.engine.event(pair.slot) == "established", pair.engine.failure(pair.slot)
    assert pair.engine.peer_verified(pair.slot)


@pytest.mark.parametrize("split", [1, 2, 3, 4])
def test_a_key_update_in_two_records_takes_effect_once(split: int) -> None:
    pair = Pair(engine()).establish()
    message = bytes([c.KEY_UPDATE, 0, 0, 1, 0])
    pair.feed(pair.client.protect(c.HANDSHAKE, message[:split]))
    pair.feed(pair.client.protect(c.HANDSHAKE, message[split:]))
    pair.client.next_key()
    pair.feed(pair.client.send(b"under the new key"))
    assert pair.recv() == b"under the new key"
    assert not pair.engine.failure(pair.slot)


def test_only_what_arrives_in_pieces_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a whole record, and of a message that is whole in its record, no copy is made."""
    copied: list[int] = []
    for name in ("_gather", "_keep"):
        real = getattr(receive, name)

        def counting(area: Area, piece: memoryview, real=real) -> None:
            copied.append(len(piece))
            real(area, piece)

        monkeypatch.setattr(receive, name, counting)
    pair = Pair(mutual(), client=client(device())).greet()
    pair.feed(pair.client.finish(apart=True))
    pair.feed(pair.client.send(b"two whole") + pair.client.send(b"records"))
    assert pair.recv() == b"two wholerecords"
    assert copied == []
    wire = pair.client.send(b"in pieces")
    pair.feed(wire[:5])
    pair.feed(wire[5:])
    assert copied == [5, len(wire) - 5]


def test_of_a_message_in_pieces_nothing_is_kept_but_itself() -> None:
    pair = Pair(mutual(), client=client(device())).greet()
    certificate, verify = pair.client.certificate_flight()
    pair.feed(pair.client.protect(c.HANDSHAKE, certificate[:9]))
    pair.feed(pair.client.protect(c.HANDSHAKE, certificate[9:] + verify))
    assert pair.engine.failure(0) is None
    assert held(pair).handshake_high == HANDSHAKE + len(certificate)
    finished = pair.client.finished_message()
    pair.feed(pair.client.protect(c.HANDSHAKE, finished[:9]))
    assert held(pair).handshake_end == HANDSHAKE + 9
    assert held(pair).handshake_high == HANDSHAKE + len(certificate)


@pytest.mark.parametrize("low", [0, 200])
def test_every_byte_of_a_declared_length_counts(low: int) -> None:
    pair = Pair(engine())
    start = bytes([1, 1, 0, low])
    pair.fails(b"\x16\x03\x01\x00\x04" + start, "tls-server-client-hello-length", 50)


@pytest.mark.parametrize("kept", [1, 2, 3, 4, 30])
def test_fragments_must_not_be_interleaved(kept: int) -> None:
    pair = Pair(engine())
    wire = rewrapped(pair.client.hello(), [kept])[: HEADER + kept]
    pair.fails(wire + b"\x15\x03\x03\x00\x02", "tls-unexpected-message", 10)


@pytest.mark.parametrize("before", [0, 1, 5])
@pytest.mark.parametrize(
    ("wrong", "tag"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x28", "tls-unexpected-message"),
        (b"\x14\x03\x03\x00\x01\x01", "tls-unexpected-message"),
        (b"\x17\x03\x03\x00\x01x", "tls-unexpected-message"),
        (b"\x16\x03\x03\x00\x00", "tls-unexpected-message"),
        (b"\x16\x02\x03\x00\x01x", "tls-protocol-version"),
        (b"\x16\x03\x03\x40\x01", "tls-record-overflow"),
    ],
)
@pytest.mark.parametrize("step", [None, 1])
@pytest.mark.parametrize("more", [True, False])
def test_the_parts_of_a_message_are_records_like_any_other(
    before: int, wrong: bytes, tag: str, step: int | None, more: bool
) -> None:
    """Whether they come together or not, and however many right ones come first and behind."""
    pair = Pair(engine())
    wire = rewrapped(pair.client.hello(), [20] + [1] * before)
    end = HEADER + 20 + before * (HEADER + 1)
    pair.feed(wire[:end] + wrong + (wire[end:] if more else b""), step)
    assert pair.engine.failure(pair.slot) == tag


@pytest.mark.parametrize("left", [0, 1, 2, HEADER, HEADER + 1])
def test_the_last_part_of_a_message_ends_it_and_one_that_is_not_whole_waits(left: int) -> None:
    pair = Pair(engine())
    hello = pair.client.hello()
    wire = rewrapped(hello, [4] + [1] * (len(hello) - HEADER - 5))
    end = len(wire) - left
    assert pair.feed(wire[:end]) == end
    assert (pair.engine.event(pair.slot) == "want_write") is (left == 0)
    pair.answer(wire[end:])
    pair.answer(pair.client.finish())
    assert pair.engine.event(pair.slot) == "established"


def test_more_than_the_message_in_its_last_part_is_refused() -> None:
    pair = Pair(engine())
    hello = pair.client.hello()
    wire = rewrapped(hello + b"\x00", [4] + [1] * (len(hello) - HEADER - 6))
    pair.fails(wire, "tls-unexpected-message", 10)


def test_a_hello_in_records_of_a_byte_costs_a_few_lines_each() -> None:
    """Nobody has proved anything yet, and there may be sixteen thousand of them."""
    pair = Pair(engine())
    hello = pair.client.hello()
    wire = rewrapped(hello, [1] * (len(hello) - HEADER - 1))
    whole = Pair(engine())
    once = lines_run(lambda: whole.engine.feed(0, hello))
    assert lines_run(lambda: pair.engine.feed(0, wire)) - once < 16 * len(hello)
    assert pair.take() == whole.take()


@pytest.mark.parametrize("last", [1, 2, 300, 378])
def test_every_part_behind_the_first_is_cheap(last: int) -> None:
    """The last of those that are fed too, and one that leaves a byte of the message."""
    message = b"\x01\x00\x01\x8c" + bytes(396)
    wire = rewrapped(b"\x16\x03\x01\x01\x90" + message, [20, 1, last])
    ends = HEADER + 20, 2 * HEADER + 21, 3 * HEADER + 21 + last
    ran = [lines_run(partial(Pair(engine()).engine.feed, 0, wire[:end])) for end in ends]
    assert all(more - fewer < 16 for fewer, more in pairwise(ran)), ran


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_length_is_judged_when_its_last_byte_is_there(kept: int) -> None:
    pair = Pair(engine())
    start = b"\x01\x00\x40\x01"
    first = b"\x16\x03\x01" + kept.to_bytes(2) + start[:kept]
    assert pair.feed(first) == len(first)
    assert pair.engine.failure(pair.slot) is None
    rest = b"\x16\x03\x01" + (4 - kept).to_bytes(2) + start[kept:]
    pair.fails(rest, "tls-server-client-hello-length", 50)


# -- headers --------------------------------------------------------------------------------

UNEXPECTED = Refusal.UNEXPECTED_MESSAGE
OVERFLOW = Refusal.RECORD_OVERFLOW
MAC = Refusal.BAD_RECORD_MAC
CCS, ALERT, SEALED = c.CHANGE_CIPHER_SPEC, c.ALERT, c.APPLICATION_DATA

# (content type, length) and what is wrong with that, in a state that reads the type.
LENGTHS = [
    (SEALED, TAG - 1, MAC),
    (SEALED, TAG, None),
    (SEALED, MAX_CIPHERTEXT, None),
    (SEALED, MAX_CIPHERTEXT + 1, OVERFLOW),
    (ALERT, 0, UNEXPECTED),
    (ALERT, 1, None),
    (ALERT, MAX_PLAINTEXT, None),
    (ALERT, MAX_PLAINTEXT + 1, OVERFLOW),
    (CCS, 0, UNEXPECTED),
    (CCS, 1, None),
    (CCS, 2, UNEXPECTED),
]


def in_state(state: int, fragment: int = 0, flags: int = 0) -> Area:
    area = Area(0, memoryview(bytearray(layout.AREA_LEN)))
    area.words[layout.STATE] = state
    area.words[layout.FLAGS] = flags
    area.handshake_end = HANDSHAKE + fragment
    return area


@pytest.mark.parametrize(("kind", "length", "wrong"), LENGTHS)
def test_the_length_of_a_record(kind: int, length: int, wrong: Refusal | None) -> None:
    area = in_state(layout.WAIT_FINISHED)
    assert receive._judge(area, kind, 3, length) is wrong
    assert receive._judge(area, kind, 2, length) is Refusal.PROTOCOL_VERSION


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("fragment", [0, 1])
def test_what_each_state_reads(state: int, fragment: int) -> None:
    """The types of §5, and inside a fragmented message only more of it (§5.1)."""
    clear = state in (layout.WAIT_CLIENT_HELLO, layout.WAIT_SECOND_CLIENT_HELLO)
    reads = {c.HANDSHAKE} if clear else {SEALED}
    if not fragment:
        # WAIT_CERTIFICATE_VERIFY comes after a record that opened.
        keyed = state in (layout.WAIT_CERTIFICATE_VERIFY, layout.ESTABLISHED)
        reads |= set() if keyed else {ALERT}
        reads |= {CCS} if state not in (layout.WAIT_CLIENT_HELLO, layout.ESTABLISHED) else set()
    for kind in (0, CCS, ALERT, c.HANDSHAKE, SEALED, 24, 255):
        length = TAG if kind == SEALED else 1
        found = receive._judge(in_state(state, fragment), kind, 3, length)
        assert found is (None if kind in reads else UNEXPECTED), kind


@pytest.mark.parametrize("opened", [0, 1, 2])
@pytest.mark.parametrize("state", [layout.WAIT_CERTIFICATE, layout.WAIT_FINISHED])
def test_an_alert_in_the_clear_is_read_until_a_record_opened(state: int, opened: int) -> None:
    area = in_state(state)
    area.words[layout.READ_SEQ] = opened
    assert receive._judge(area, ALERT, 3, 2) is (UNEXPECTED if opened else None)
    assert receive._judge(area, CCS, 3, 1) is None  # §5: at any time before the Finished


@pytest.mark.parametrize("state", STATES)
def test_early_data_is_read_past_only_where_a_second_hello_is_awaited(state: int) -> None:
    waiting = state == layout.WAIT_SECOND_CLIENT_HELLO
    sealed = state > layout.WAIT_SECOND_CLIENT_HELLO
    whole = in_state(state, 0, layout.F_EARLY_DATA)
    assert (receive._judge(whole, SEALED, 3, 1) is None) is (waiting or sealed)
    inside = in_state(state, 1, layout.F_EARLY_DATA)
    assert (receive._judge(inside, SEALED, 3, TAG) is None) is sealed


# -- room -----------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [layout.OUT_RESERVE - 1, layout.OUT_RESERVE])
def test_nothing_is_read_without_room_to_answer(free: int) -> None:
    area = in_state(layout.ESTABLISHED)
    area.out_end = layout.OUT + layout.OUT_CAP - free
    assert receive._has_room(area, 100) is (free == layout.OUT_RESERVE)


@pytest.mark.parametrize("received", [0, 1, 700])
@pytest.mark.parametrize("short", [-1, 0, 1, TAG, TAG + 1])
def test_what_waits_to_be_received_moves_to_the_front_for_a_record(
    received: int, short: int
) -> None:
    """`short`: how many bytes too long the record's ciphertext is for the room behind."""
    area = in_state(layout.ESTABLISHED)
    block = area.bytes
    waiting = bytes(range(1, 101))
    end = RECEIVED_END - 1000
    area.received_end = end
    area.received_start = start = RECEIVED if not received else end - len(waiting)
    block[end - len(waiting) : end] = waiting
    block[RECEIVED - 1] = 0xEE
    block[end : end + 4] = b"\xdd" * 4
    moves = bool(received) and short > 0
    assert receive._has_room(area, 1000 + short) is (moves or short <= TAG)
    assert area.received_start == (RECEIVED if moves else start)
    assert area.received_end - area.received_start == end - start
    assert bytes(block[area.received_end - len(waiting) : area.received_end]) == waiting
    assert block[RECEIVED - 1] == 0xEE
    if moves:
        assert not any(block[RECEIVED + len(waiting) : RECEIVED + len(waiting) + 8])


def test_half_received_plaintext_and_full_buffers_lose_nothing() -> None:
    pair = Pair(engine()).establish()
    sent = bytes(i % 256 for i in range(60_000))
    wire = pair.client.send(sent)
    got, out = b"", bytearray(5_000)
    while wire:
        wire = wire[pair.engine.feed(pair.slot, wire) :]
        count = pair.engine.recv(pair.slot, out)
        if count > 0:
            got += out[:count]
    got += pair.recv()
    assert got == sent


# -- what a record held ---------------------------------------------------------------------


@pytest.mark.parametrize("inner", [b"", b"\x00", bytes(40)])
@pytest.mark.parametrize("split", [False, True])
def test_a_protected_record_of_no_type_is_refused(inner: bytes, split: bool) -> None:
    """An inner plaintext of nothing, and of zeros alone (§5.4). It did open."""
    pair = Pair(engine()).establish()
    pair.feed(pair.client.send(b"waits"))
    assert pair.client.writing is not None
    pair.feed(pair.client.writing.seal_inner(inner), 7 if split else None)
    assert pair.engine.failure(pair.slot) == "tls-unexpected-message"
    assert pair.recv() == b"waits"
