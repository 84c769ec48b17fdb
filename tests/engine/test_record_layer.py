"""The record layer on the wire: each refusal, its alert, and the key the alert goes under."""

from __future__ import annotations

import pytest

from engine import key_schedule, layout, receive
from engine.records import MAX_RUN
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.pairs import Pair, engine

CCS = b"\x14\x03\x03\x00\x01\x01"
PLAIN = ""
SEALED = "application"

UNEXPECTED = ("tls-unexpected-message", 10)
OVERFLOW = ("tls-record-overflow", 22)
BAD_MAC = ("tls-bad-record-mac", 20)
DECODE = ("tls-decode-error", 50)
VERSION = ("tls-protocol-version", 70)
TOO_MANY = ("tls-too-many-messages", 10)
LENGTH = ("tls-server-client-hello-length", 50)
FINISHED = ("tls-server-finished", 51)
ILLEGAL = ("tls-server-illegal-parameter", 47)


def header(kind: int, length: int, version: int = 0x0303) -> bytes:
    return bytes([kind]) + version.to_bytes(2, "big") + length.to_bytes(2, "big")


def record(kind: int, content: bytes) -> bytes:
    return header(kind, len(content)) + content


def hello(pair: Pair) -> bytes:
    return pair.client.hello()


AT_START = {
    "application data first": (lambda p: header(23, 17), UNEXPECTED),
    "a change_cipher_spec first": (lambda p: header(20, 1), UNEXPECTED),
    "an unknown record type": (lambda p: header(99, 1), UNEXPECTED),
    "the type is judged before the version": (lambda p: header(99, 1, 0x0203), UNEXPECTED),
    "the version is judged before the length": (lambda p: header(22, 1 << 15, 0x0203), VERSION),
    "a version of SSL 2": (lambda p: header(22, 5, 0x0002), VERSION),
    "a record of one byte too many": (lambda p: header(22, (1 << 14) + 1), OVERFLOW),
    "an alert of one byte too many": (lambda p: header(21, (1 << 14) + 1), OVERFLOW),
    "an empty handshake record": (lambda p: header(22, 0), UNEXPECTED),
    "an empty alert record": (lambda p: header(21, 0), UNEXPECTED),
    "an alert of three bytes": (lambda p: record(21, b"\x02\x28\x00"), DECODE),
    "an alert of one byte": (lambda p: record(21, b"\x02"), DECODE),
    "another message than a ClientHello": (lambda p: record(22, b"\x14\x00\x00\x20"), UNEXPECTED),
    "a ClientHello of one byte too many": (lambda p: record(22, b"\x01\x00\x40\x01"), LENGTH),
    "a declared length of 2^24-1": (lambda p: record(22, b"\x01\xff\xff\xff"), LENGTH),
    "an alert inside a fragmented ClientHello": (
        lambda p: record(22, hello(p)[5:50]) + header(21, 2),
        UNEXPECTED,
    ),
    "a change_cipher_spec inside a fragmented ClientHello": (
        lambda p: record(22, hello(p)[5:50]) + CCS,
        UNEXPECTED,
    ),
    "a byte behind the ClientHello in its record": (
        lambda p: record(22, hello(p)[5:] + b"\x01"),
        UNEXPECTED,
    ),
}


@pytest.mark.parametrize("case", AT_START)
def test_before_the_flight(case: str) -> None:
    make, (tag, alert) = AT_START[case]
    pair = Pair(engine())
    pair.fails(make(pair), tag, alert, PLAIN)


def broken(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def finish_and(pair: Pair, behind: bytes) -> bytes:
    """The client's Finished with more behind it in the same record."""
    return pair.client.handshake_bytes(pair.client.finished_message() + behind)


AFTER_THE_FLIGHT = {
    "a handshake record in the clear": (lambda p: header(22, 4), UNEXPECTED),
    "a change_cipher_spec of another value": (lambda p: record(20, b"\x02"), UNEXPECTED),
    "a change_cipher_spec of two bytes": (lambda p: header(20, 2), UNEXPECTED),
    "an empty change_cipher_spec": (lambda p: header(20, 0), UNEXPECTED),
    "a protected record under 16 bytes": (lambda p: header(23, 15), BAD_MAC),
    "a protected record over 2^14+256": (lambda p: header(23, (1 << 14) + 257), OVERFLOW),
    "a record that does not open": (lambda p: broken(p.client.finish()), BAD_MAC),
    "a record of 16 bytes that does not open": (lambda p: record(23, bytes(16)), BAD_MAC),
    "application data before the Finished": (lambda p: p.client.protect(23, b"x"), UNEXPECTED),
    "an inner plaintext of zeros alone": (lambda p: p.client.protect(0, bytes(5)), UNEXPECTED),
    "an inner plaintext of nothing": (lambda p: p.client.protect(0, b"", 0), UNEXPECTED),
    "an empty inner handshake": (lambda p: p.client.protect(22, b""), UNEXPECTED),
    "an empty inner alert": (lambda p: p.client.protect(21, b""), UNEXPECTED),
    "an inner alert of three bytes": (lambda p: p.client.protect(21, b"\x01\x00\x00"), DECODE),
    "an inner change_cipher_spec": (lambda p: p.client.protect(20, b"\x01"), UNEXPECTED),
    "an unknown inner type": (lambda p: p.client.protect(24, b"x"), UNEXPECTED),
    "inner plaintext of 2^14+2": (lambda p: p.client.protect(22, b"x", (1 << 14) + 1), OVERFLOW),
    "a KeyUpdate before the Finished": (
        lambda p: p.client.handshake_bytes(b"\x18\x00\x00\x01\x00"),
        UNEXPECTED,
    ),
    "a Finished of 31 bytes": (
        lambda p: p.client.handshake_bytes(b"\x14\x00\x00\x1f"),
        DECODE,
    ),
    "a Finished of 33 bytes": (
        lambda p: p.client.handshake_bytes(b"\x14\x00\x00\x21"),
        DECODE,
    ),
    "a wrong Finished": (
        lambda p: p.client.handshake_bytes(broken(p.client.finished_message())),
        FINISHED,
    ),
    "a byte behind the Finished": (lambda p: finish_and(p, b"\x18"), UNEXPECTED),
    "a wrong Finished with a byte behind it": (
        lambda p: p.client.handshake_bytes(broken(p.client.finished_message()) + b"x"),
        UNEXPECTED,
    ),
    "application data inside a fragmented Finished": (
        lambda p: (
            p.client.handshake_bytes(p.client.finished_message()[:9]) + p.client.protect(23, b"x")
        ),
        UNEXPECTED,
    ),
    "a change_cipher_spec inside a fragmented Finished": (
        lambda p: p.client.handshake_bytes(p.client.finished_message()[:9]) + CCS,
        UNEXPECTED,
    ),
    "an alert in the clear inside a fragmented Finished": (
        lambda p: (
            p.client.handshake_bytes(p.client.finished_message()[:9]) + record(21, b"\x02\x28")
        ),
        UNEXPECTED,
    ),
    "an alert inside a fragmented Finished": (
        lambda p: (
            p.client.handshake_bytes(p.client.finished_message()[:9])
            + p.client.protect(21, b"\x01\x00")
        ),
        UNEXPECTED,
    ),
}


@pytest.mark.parametrize("case", AFTER_THE_FLIGHT)
def test_between_the_flight_and_the_finished(case: str) -> None:
    make, (tag, alert) = AFTER_THE_FLIGHT[case]
    pair = Pair(engine()).greet()
    pair.fails(make(pair), tag, alert, SEALED)


ESTABLISHED = {
    "a change_cipher_spec": (lambda p: CCS, UNEXPECTED),
    "an alert in the clear": (lambda p: record(21, b"\x01\x00"), UNEXPECTED),
    "a handshake record in the clear": (lambda p: header(22, 4), UNEXPECTED),
    "an inner plaintext of zeros alone": (lambda p: p.client.protect(0, bytes(700)), UNEXPECTED),
    "a record that does not open": (lambda p: broken(p.client.send(b"x")), BAD_MAC),
    "a record seen twice": (lambda p: p.client.send(b"x") * 2, BAD_MAC),
    "a ClientHello": (lambda p: p.client.handshake_bytes(b"\x01\x00\x00\x30"), UNEXPECTED),
    "a second Finished": (lambda p: p.client.handshake_bytes(b"\x14\x00\x00\x20"), UNEXPECTED),
    "a Certificate": (lambda p: p.client.handshake_bytes(b"\x0b\x00\x00\x04"), UNEXPECTED),
    "a NewSessionTicket": (lambda p: p.client.handshake_bytes(b"\x04\x00\x00\x40"), UNEXPECTED),
    "a KeyUpdate of two bytes": (
        lambda p: p.client.handshake_bytes(b"\x18\x00\x00\x02\x00\x00"),
        DECODE,
    ),
    "an empty KeyUpdate": (lambda p: p.client.handshake_bytes(b"\x18\x00\x00\x00"), DECODE),
    "a KeyUpdate of another value": (lambda p: p.client.key_update(2), ILLEGAL),
    "a byte behind a KeyUpdate": (
        lambda p: p.client.handshake_bytes(b"\x18\x00\x00\x01\x00\x18"),
        UNEXPECTED,
    ),
    "application data inside a fragmented KeyUpdate": (
        lambda p: p.client.handshake_bytes(b"\x18\x00") + p.client.send(b"x"),
        UNEXPECTED,
    ),
    "a close_notify inside a fragmented KeyUpdate": (
        lambda p: p.client.handshake_bytes(b"\x18\x00\x00\x01") + p.client.close_notify(),
        UNEXPECTED,
    ),
    "33 KeyUpdates in a row": (
        lambda p: b"".join(p.client.key_update() for _ in range(MAX_RUN + 1)),
        TOO_MANY,
    ),
    "33 empty records in a row": (
        lambda p: b"".join(p.client.send(b"") for _ in range(MAX_RUN + 1)),
        TOO_MANY,
    ),
    "33 user_canceled in a row": (
        lambda p: b"".join(p.client.alert(90) for _ in range(MAX_RUN + 1)),
        TOO_MANY,
    ),
    "33 of all kinds in a row": (
        lambda p: b"".join(
            [p.client.alert, p.client.send, p.client.key_update][n % 3]([90, b"", 0][n % 3])
            for n in range(MAX_RUN + 1)
        ),
        TOO_MANY,
    ),
}


@pytest.mark.parametrize("case", ESTABLISHED)
def test_once_established(case: str) -> None:
    make, (tag, alert) = ESTABLISHED[case]
    pair = Pair(engine()).establish()
    data = make(pair)
    if case == "a record seen twice":
        taken = pair.feed(data[: len(data) // 2])
        assert pair.recv() == b"x"
        data = data[taken:]
    pair.fails(data, tag, alert, SEALED)


@pytest.mark.parametrize("state", ["start", "flight", "established"])
@pytest.mark.parametrize("level", [0, 1, 2, 9])
@pytest.mark.parametrize("description", [10, 40, 80, 255])
def test_the_peers_alert_ends_the_connection_whatever_its_level(
    state: str, level: int, description: int
) -> None:
    pair = Pair(engine())
    if state == "flight":
        pair.greet()
    elif state == "established":
        pair.establish()
    pair.fails(pair.client.alert(description, level), "tls-alert", None)
    assert pair.engine.alert_received(0) == description


def test_a_plaintext_alert_is_read_after_the_flight() -> None:
    pair = Pair(engine()).greet()
    pair.fails(record(21, b"\x02\x2a"), "tls-alert", None)
    assert pair.engine.alert_received(0) == 42


@pytest.mark.parametrize("sealed", [False, True])
def test_a_close_notify_before_the_handshake_is_complete_is_an_alert(sealed: bool) -> None:
    pair = Pair(engine())
    if sealed:
        pair.greet()
    pair.fails(pair.client.close_notify(), "tls-alert", None)
    assert pair.engine.alert_received(0) == 0


def test_user_canceled_is_read_past_until_close_notify() -> None:
    pair = Pair(engine()).establish()
    pair.feed(pair.client.alert(90) + pair.client.send(b"still here") + pair.client.close_notify())
    assert pair.recv() == b"still here"
    assert pair.engine.event(0) == "closed"


def test_change_cipher_spec_is_dropped_between_the_hello_and_the_finished() -> None:
    pair = Pair(engine())
    hello = pair.client.hello()
    pair.feed(hello + CCS + CCS)
    pair.client.read(pair.take())
    pair.feed(CCS + pair.client.finish())
    assert pair.engine.event(0) == "established"


def test_33_change_cipher_specs_in_a_row_are_a_flood() -> None:
    pair = Pair(engine()).greet()
    pair.feed(CCS * MAX_RUN)
    assert pair.engine.failure(0) is None
    pair.fails(CCS, *TOO_MANY, SEALED)


def test_data_in_either_direction_ends_the_run() -> None:
    pair = Pair(engine()).establish()
    for end_run in (
        lambda: pair.feed(pair.client.send(b"x")),
        lambda: pair.engine.send(0, b"y"),
        lambda: pair.feed(pair.client.send(b"x" * 20_000)),
        lambda: pair.engine.send(0, b"y" * 20_000),
    ):
        pair.feed(b"".join(pair.client.send(b"") for _ in range(MAX_RUN)))
        end_run()
        pair.recv()
        pair.client.read(pair.take())
    assert pair.engine.event(0) == "established"


def test_the_largest_inner_plaintext_is_read() -> None:
    pair = Pair(engine()).establish()
    content = bytes(range(256)) * 64
    pair.feed(pair.client.send(content) + pair.client.send(b"z", padding=(1 << 14) - 1))
    assert pair.recv() == content + b"z"


@pytest.mark.parametrize("padding", [1, 255, 256, 257, 4000])
def test_padding_of_any_length_is_stripped(padding: int) -> None:
    pair = Pair(engine()).establish()
    pair.feed(pair.client.send(b"content\x00\x00", padding=padding))
    assert pair.recv() == b"content\x00\x00"


@pytest.mark.parametrize("minor", [0, 1, 3, 255])
def test_a_records_minor_version_is_not_read(minor: int) -> None:
    pair = Pair(engine())
    pair.client.read(b"")
    data = bytearray(pair.client.hello())
    data[2] = minor
    pair.answer(bytes(data))
    data = bytearray(pair.client.finish())
    pair.feed(bytes(data))
    assert pair.engine.event(0) == "established"


# -- back-pressure ---------------------------------------------------------------------------


def test_input_waits_for_room_and_nothing_is_lost() -> None:
    pair = Pair(engine()).establish()
    content = bytes(range(250)) * 400
    data = pair.client.send(content)
    got = b""
    while data:
        taken = pair.feed(data, step=5000)
        data = data[taken:]
        assert taken or pair.engine.recv(0, memoryview(bytearray(1))) != -1 or not data
        got += pair.recv()
    assert len(got) in (len(content), len(content) - 1) or got == content


def test_feed_takes_nothing_more_when_the_plaintext_is_not_received() -> None:
    pair = Pair(engine()).establish()
    data = b"".join(pair.client.send(b"%05d" % n * 3000) for n in range(4))
    taken = pair.feed(data)
    assert 0 < taken < len(data)
    assert pair.engine.feed(0, data[taken:]) == 0
    got = pair.recv()
    pair.feed(data[taken:])
    got += pair.recv()
    assert got == b"".join(b"%05d" % n * 3000 for n in range(4))


def test_input_is_not_read_while_there_is_no_room_for_its_answer() -> None:
    pair = Pair(engine()).establish()
    queued = 0
    while n := pair.engine.send(0, b"y" * 5000):
        queued += n
    assert queued > 16_384
    updates = pair.client.key_update(1) + pair.client.key_update(1)
    taken = pair.engine.feed(0, updates)
    assert taken < len(updates)
    pair.client.read(pair.take())
    pair.feed(updates[taken:])
    pair.client.read(pair.take())
    assert pair.client.received == b"y" * queued
    assert pair.engine.send(0, b"under the new key") == 17
    pair.client.read(pair.take())


def test_send_fills_the_queue_and_leaves_room_for_an_alert() -> None:
    pair = Pair(engine()).establish()
    while pair.engine.send(0, b"z" * 999):
        pass
    pair.feed(b"\x17\x03\x03\x00\x20"[:3])
    pair.engine.finish(0)
    pair.client.read(pair.take())
    assert pair.client.state == "closed"


def test_no_alert_follows_our_close_notify() -> None:
    pair = Pair(engine()).establish()
    pair.engine.finish(0)
    pair.client.read(pair.take())
    pair.feed(header(23, 3))
    assert pair.engine.failure(0) == "tls-bad-record-mac"
    assert pair.take() == b""


# -- keys ------------------------------------------------------------------------------------


def test_a_key_update_that_asks_for_one_is_answered_at_once() -> None:
    pair = Pair(engine()).establish()
    pair.answer(pair.client.key_update(1))
    assert pair.engine.send(0, b"new key") == 7
    pair.client.read(pair.take())
    pair.feed(pair.client.send(b"new key too"))
    assert pair.recv() == b"new key too"
    assert pair.client.received == b"new key"


def test_a_key_update_after_our_close_notify_is_not_answered() -> None:
    pair = Pair(engine()).establish()
    pair.engine.finish(0)
    pair.client.read(pair.take())
    pair.feed(pair.client.key_update(1) + pair.client.send(b"more"))
    assert pair.take() == b""
    assert pair.recv() == b"more"


@pytest.mark.parametrize("suite", sorted(key_schedule.SUITES))
def test_the_server_updates_its_key_before_the_limit(
    suite: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_schedule.SUITES[suite], "record_limit", 3)
    client = Client(b"limit", now_ms=NOW_MS, suites=[suite])
    pair = Pair(engine(), client=client).establish()
    for n in range(10):
        assert pair.engine.send(0, b"%d" % n) == 1
        pair.client.read(pair.take())
    assert pair.engine.send(0, b"x" * 40_000) > 0
    pair.client.read(pair.take())
    assert pair.client.received.startswith(b"0123456789")


def test_a_sequence_number_never_wraps() -> None:
    pair = Pair(engine()).establish()
    words = pair.engine._pool.words(0)
    words[layout.READ_SEQ] = key_schedule.LAST_SEQUENCE
    pair.feed(header(23, 20) + bytes(20))
    assert pair.engine.failure(0) == "tls-too-many-messages"


# -- early data ------------------------------------------------------------------------------


def early_client(groups: tuple[int, ...] = (29, 23), shares: tuple[int, ...] = (29,)) -> Client:
    return Client(b"early", now_ms=NOW_MS, early_data=True, groups=groups, shares=shares)


def noise(length: int) -> bytes:
    return record(23, bytes(length))


@pytest.mark.parametrize(
    "lengths", [(receive.MAX_SKIPPED,), (16_000, 368, 16), (15,), (0,), (1,) * 40]
)
def test_early_data_is_skipped_up_to_its_bound(lengths: tuple[int, ...]) -> None:
    pair = Pair(engine(), client=early_client())
    data = pair.client.hello() + b"".join(map(noise, lengths))
    assert pair.feed(data) == len(data)
    pair.client.read(pair.take())
    assert pair.engine.failure(0) is None
    pair.answer(pair.client.finish())
    assert pair.engine.event(0) == "established"


def test_early_data_over_its_bound_is_refused() -> None:
    pair = Pair(engine(), client=early_client())
    pair.answer(pair.client.hello() + noise(16_000))
    pair.fails(noise(385), "tls-server-early-data-size", 10, SEALED)


def test_early_data_is_skipped_before_a_second_hello_and_counted_with_what_follows() -> None:
    client = early_client(shares=())
    pair = Pair(engine(), client=client)
    pair.answer(client.hello() + noise(16_384))
    assert client.state == "retry"
    pair.fails(noise(1), "tls-server-early-data-size", 10, PLAIN)


def test_a_record_that_does_not_open_is_refused_once_one_did() -> None:
    pair = Pair(engine(), client=early_client())
    pair.answer(pair.client.hello() + noise(20))
    pair.feed(pair.client.alert(90))
    pair.fails(noise(20), *BAD_MAC, SEALED)


def test_early_data_that_was_not_offered_is_refused() -> None:
    pair = Pair(engine()).greet()
    pair.fails(noise(20), *BAD_MAC, SEALED)


def test_application_data_before_a_second_hello_is_refused_when_none_was_offered() -> None:
    client = Client(b"retry", now_ms=NOW_MS, shares=())
    pair = Pair(engine(), client=client)
    pair.answer(client.hello())
    pair.fails(noise(20), *UNEXPECTED, PLAIN)
