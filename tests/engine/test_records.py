"""The record layer over one area, with no engine around it: where bytes stand, and under which key.

What is sealed is opened here by `cryptography` itself, with the key that the block holds, so that
nothing of the record layer judges its own work.
"""

from __future__ import annotations

import pytest

from engine import codepoints as c
from engine import copies, records
from engine.key_schedule import SUITES
from engine.layout import (
    AREA_LEN,
    CORE_WORDS,
    ESTABLISHED,
    F_CLOSE_SENT,
    F_RETRIED,
    FAILED,
    FAILURE,
    FLAGS,
    HANDSHAKE,
    HEADER,
    IN,
    MAX_PLAINTEXT,
    OUT,
    OUT_CAP,
    OUT_RESERVE,
    READ_IV,
    READ_KEY,
    READ_SECRET,
    RECEIVED,
    RUN,
    SCRATCH,
    STATE,
    SUITE,
    TAG,
    WAIT_FINISHED,
    WRITE_IV,
    WRITE_KEY,
    WRITE_SECRET,
    WRITE_SEQ,
)
from engine.pool import Area
from engine.refusals import Refusal

OUT_END = OUT + OUT_CAP
END_FLIGHT = b"\x02\x28"
SUITE_CODES = sorted(SUITES)


def bare() -> Area:
    """An area that nobody leased yet."""
    return Area(0, memoryview(bytearray(AREA_LEN)))


def keyed(code: int = c.TLS_AES_128_GCM_SHA256) -> Area:
    """An established connection's, with a key of its own in each direction."""
    area = bare()
    suite = SUITES[code]
    area.words[SUITE] = code
    area.words[STATE] = ESTABLISHED
    for install, first in ((records.set_read_secret, 1), (records.set_write_secret, 101)):
        secret = bytes(range(first, first + suite.hash.size))
        install(area, suite, secret, suite.hash.keyed(secret))
    return area


def queued(area: Area) -> bytes:
    return bytes(area.bytes[area.out_start : area.out_end])


def opened(area: Area, wire: bytes, sequence: int = 0) -> list[bytes]:
    """The inner plaintexts of every record, under the write key that the block has now."""
    suite = SUITES[area.words[SUITE]]
    aead = suite.aead(bytes(area.bytes[WRITE_KEY : WRITE_KEY + suite.key_length]))
    iv = int.from_bytes(area.bytes[WRITE_IV : WRITE_IV + 12])
    found = []
    while wire:
        end = HEADER + int.from_bytes(wire[3:HEADER])
        nonce = (iv ^ sequence).to_bytes(12)
        found.append(aead.decrypt(nonce, wire[HEADER:end], wire[:HEADER]))
        wire = wire[end:]
        sequence += 1
    return found


# -- keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", SUITE_CODES)
def test_a_core_that_is_leased_in_gets_both_of_its_keys_back(code: int) -> None:
    area = keyed(code)
    before = (area.read_iv, area.write_iv, area.write_limit)
    assert before[0] == int.from_bytes(area.bytes[READ_IV : READ_IV + 12])
    assert before[1] == int.from_bytes(area.bytes[WRITE_IV : WRITE_IV + 12])
    assert before[2] == SUITES[code].record_limit
    area.forget()
    records.reload_keys(area)
    assert (area.read_iv, area.write_iv, area.write_limit) == before
    key = bytes(area.bytes[READ_KEY : READ_KEY + SUITES[code].key_length])
    sealed = SUITES[code].aead(key).encrypt(bytes(12), b"mine", b"")
    assert area.opener is not None and area.sealer is not None
    assert area.opener.decrypt(bytes(12), sealed, b"") == b"mine"
    key = bytes(area.bytes[WRITE_KEY : WRITE_KEY + SUITES[code].key_length])
    sealed = area.sealer.encrypt(bytes(12), b"yours", b"")
    assert SUITES[code].aead(key).decrypt(bytes(12), sealed, b"") == b"yours"


@pytest.mark.parametrize("code", SUITE_CODES)
def test_a_new_key_is_ready_in_either_direction(code: int) -> None:
    area = keyed(code)
    assert area.opener is not None and area.sealer is not None
    assert area.bytes[READ_KEY : READ_KEY + 16] != area.bytes[WRITE_KEY : WRITE_KEY + 16]


@pytest.mark.parametrize("code", SUITE_CODES)
def test_the_next_secret_follows_from_the_whole_one_and_nothing_behind_it(code: int) -> None:
    area = keyed(code)
    suite = SUITES[code]
    for at, update in (
        (READ_SECRET, records.update_read_key),
        (WRITE_SECRET, records.send_key_update),
    ):
        before = bytes(area.bytes[at : at + suite.hash.size])
        update(area)
        after = bytes(area.bytes[at : at + suite.hash.size])
        assert after == suite.hash.next_secret(before) != before


def test_keys_are_loaded_once_and_by_whoever_needs_them_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[Area] = []
    real = records.reload_keys
    monkeypatch.setattr(records, "reload_keys", lambda area: (loaded.append(area), real(area)))
    for first in (
        lambda area: records.queue_sealed(area, c.ALERT, END_FLIGHT),
        lambda area: records.queue_application_data(area, memoryview(b"data")),
        records.must_update_key,
        lambda area: records.open_record(area, area.bytes[:HEADER], area.bytes[:TAG], IN),
    ):
        area = keyed()
        area.forget()
        first(area)
        assert loaded == [area]
        records.queue_sealed(area, c.ALERT, END_FLIGHT)
        records.must_update_key(area)
        records.open_record(area, area.bytes[:HEADER], area.bytes[:TAG], IN)
        assert loaded == [area]
        loaded.clear()


# -- opening --------------------------------------------------------------------------------


def test_what_does_not_open_leaves_no_plaintext_and_says_so() -> None:
    area = keyed()
    suite = SUITES[area.words[SUITE]]
    key = bytes(area.bytes[READ_KEY : READ_KEY + suite.key_length])
    header = records.protected_header(4)
    body = bytearray(suite.aead(key).encrypt(area.read_iv.to_bytes(12), b"data\x17", header))
    body[-1] ^= 1
    assert records.open_record(area, memoryview(header), memoryview(body), RECEIVED) is False
    assert not any(area.bytes[RECEIVED : RECEIVED + 64])
    assert area.received_high == RECEIVED + 5
    body[-1] ^= 1
    assert records.open_record(area, memoryview(header), memoryview(body), RECEIVED) is True
    assert bytes(area.bytes[RECEIVED : RECEIVED + 6]) == b"data\x17\x00"


# -- the out queue --------------------------------------------------------------------------


@pytest.mark.parametrize("held", [0, 1, 40])
@pytest.mark.parametrize("over", [-1, 0, 1, 500])
def test_what_is_queued_moves_to_the_front_when_more_would_not_fit_behind_it(
    held: int, over: int
) -> None:
    area = bare()
    block = area.bytes
    block[OUT - 1] = 0xEE
    start = OUT_END - 1000
    content = bytes(range(1, held + 1))
    area.out_start, area.out_end = start, start + held
    block[start - 1 : start + held + 1] = b"\xdd" + content + b"\xdd"
    records.make_out_room(area, OUT_END - area.out_end + over)
    assert area.out_start == (OUT if over > 0 else start)
    assert queued(area) == content
    assert block[OUT - 1] == 0xEE
    if over > 0:
        assert not any(block[OUT + held : OUT + held + 8])


def test_moving_over_itself_changes_nothing() -> None:
    area = bare()
    content = bytes(range(256)) * 100
    area.out_start, area.out_end = OUT + 7, OUT + 7 + len(content)
    area.bytes[area.out_start : area.out_end] = content
    records.make_out_room(area, OUT_CAP - len(content))
    assert area.out_start == OUT and queued(area) == content


def near_the_end(area: Area, left: int) -> Area:
    """A queue of one byte that stands so far from the end of the buffer."""
    area.out_start = OUT_END - left - 1
    area.bytes[area.out_start] = 0x55
    area.out_end = area.out_start + 1
    return area


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 511, 512, 600])
def test_a_plain_record_is_its_header_and_its_content(length: int) -> None:
    area = bare()
    content = bytes(i % 251 for i in range(length))
    records.queue_plain(area, c.HANDSHAKE, content)
    assert queued(area) == b"\x16\x03\x03" + length.to_bytes(2) + content
    assert area.out_high == area.out_end


@pytest.mark.parametrize("left", [1, HEADER + 1, HEADER + 2])
def test_a_plain_record_makes_its_room(left: int) -> None:
    area = near_the_end(bare(), left)
    records.queue_plain(area, c.ALERT, END_FLIGHT)
    assert queued(area) == b"\x55\x15\x03\x03\x00\x02" + END_FLIGHT
    assert (area.out_start == OUT) is (left < HEADER + 2)


@pytest.mark.parametrize("left", [1, HEADER + 3 + TAG - 1, HEADER + 3 + TAG])
def test_a_sealed_record_makes_its_room_and_no_more(left: int) -> None:
    area = near_the_end(keyed(), left)
    records.queue_sealed(area, c.ALERT, END_FLIGHT)
    assert (area.out_start == OUT) is (left < HEADER + 3 + TAG)
    assert area.out_end <= OUT_END and queued(area)[:1] == b"\x55"
    assert opened(area, queued(area)[1:]) == [END_FLIGHT + bytes([c.ALERT])]


@pytest.mark.parametrize(
    ("length", "pieces"),
    [
        (1, [1]),
        (MAX_PLAINTEXT - 1, [MAX_PLAINTEXT - 1]),
        (MAX_PLAINTEXT, [MAX_PLAINTEXT]),
        (MAX_PLAINTEXT + 1, [MAX_PLAINTEXT, 1]),
    ],
)
def test_content_is_sealed_in_as_few_records_as_hold_it(length: int, pieces: list[int]) -> None:
    area = keyed()
    content = bytes(i % 253 for i in range(length))
    records.queue_sealed(area, c.HANDSHAKE, content)
    found = opened(area, queued(area))
    assert [len(inner) - 1 for inner in found] == pieces
    assert b"".join(inner[:-1] for inner in found) == content
    assert {inner[-1] for inner in found} == {c.HANDSHAKE}
    assert area.words[WRITE_SEQ] == len(pieces)


@pytest.mark.parametrize("length", [0, 1, records.SHORT - 1, records.SHORT, MAX_PLAINTEXT])
@pytest.mark.parametrize("run", [0, 3])
def test_the_first_record_of_an_empty_queue(length: int, run: int) -> None:
    area = keyed()
    area.words[RUN] = area.run = run
    content = bytes(i % 249 for i in range(length))
    area.bytes[OUT + HEADER : OUT + HEADER + length] = content
    records.seal_first(area, length, 0)
    assert opened(area, queued(area)) == [content + bytes([c.APPLICATION_DATA])]
    assert (area.run, area.words[RUN]) == (0, 0)
    assert area.words[WRITE_SEQ] == 1


def test_the_header_of_a_short_record_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(records, "protected_header", lambda length: made.append(length) or b"12345")
    for length in (0, records.SHORT - 1, records.SHORT):
        records.seal_first(keyed(), length, 0)
    assert made == [records.SHORT]


def test_a_run_that_is_none_costs_the_first_record_no_write() -> None:
    area = keyed()
    area.words[RUN] = 5  # the core's own, which a connection that rests has in `run`
    records.seal_first(area, 0, 0)
    assert area.words[RUN] == 5


# -- application data -----------------------------------------------------------------------

OVERHEAD = HEADER + 1 + TAG


@pytest.mark.parametrize("beyond", [-1, 0, 1, OVERHEAD, OVERHEAD + 1, 300])
def test_application_data_leaves_the_reserve_free(beyond: int) -> None:
    """Room for so many bytes of content beyond the reserve, and two to send."""
    area = keyed()
    room = OUT_RESERVE + beyond
    area.out_start, area.out_end = OUT, OUT_END - room
    taken = records.queue_application_data(area, memoryview(b"xy" * 200))
    assert taken == max(0, min(400, beyond - OVERHEAD))
    assert records.out_room(area) >= min(room, OUT_RESERVE)
    assert area.words[WRITE_SEQ] == (1 if taken else 0)
    sealed = queued(area)[OUT_CAP - room :]
    assert b"".join(inner[:-1] for inner in opened(area, sealed)) == (b"xy" * 200)[:taken]


def test_application_data_makes_its_room() -> None:
    area = near_the_end(keyed(), 3)
    assert records.queue_application_data(area, memoryview(b"data")) == 4
    assert area.out_start == OUT and area.out_end <= OUT_END
    assert opened(area, queued(area)[1:]) == [b"data" + bytes([c.APPLICATION_DATA])]


def test_application_data_that_just_fits_behind_the_queue_does_not_move_it() -> None:
    area = near_the_end(keyed(), OVERHEAD + 4)
    start = area.out_start
    assert records.queue_application_data(area, memoryview(b"data")) == 4
    assert area.out_start == start


@pytest.mark.parametrize("count", [0, 1, MAX_PLAINTEXT, MAX_PLAINTEXT + 5])
def test_application_data_is_cut_at_the_largest_record(count: int) -> None:
    area = keyed()
    area.words[RUN] = 9
    data = bytes(i % 241 for i in range(count))
    taken = records.queue_application_data(area, memoryview(data))
    assert taken == min(count, OUT_CAP - OUT_RESERVE - 2 * OVERHEAD)
    found = opened(area, queued(area))
    assert [len(inner) - 1 for inner in found] == [
        size for size in (min(count, MAX_PLAINTEXT), taken - MAX_PLAINTEXT) if size > 0
    ]
    assert area.words[RUN] == (0 if taken else 9)


def test_a_queue_without_room_takes_nothing_and_ends_no_run() -> None:
    area = keyed()
    area.words[RUN] = 9
    area.out_start, area.out_end = OUT, OUT_END - OUT_RESERVE
    assert records.queue_application_data(area, memoryview(b"data")) == 0
    assert area.words[RUN] == 9 and area.words[WRITE_SEQ] == 0


@pytest.mark.parametrize("short", [0, 1])
def test_a_key_that_is_due_changes_only_where_its_update_and_the_reserve_fit(short: int) -> None:
    area = keyed()
    area.words[WRITE_SEQ] = area.write_limit
    area.out_start, area.out_end = OUT, OUT_END - 2 * OUT_RESERVE + short
    before = bytes(area.bytes[WRITE_KEY : WRITE_KEY + 16])
    end = area.out_end
    taken = records.queue_application_data(area, memoryview(b"data"))
    changed = bytes(area.bytes[WRITE_KEY : WRITE_KEY + 16]) != before
    assert (taken, changed) == ((0, False) if short else (4, True))
    assert area.words[WRITE_SEQ] == (area.write_limit if short else 1)
    if not short:
        update = end + HEADER + 5 + 1 + TAG
        wire = bytes(area.bytes[update : area.out_end])
        assert opened(area, wire) == [b"data" + bytes([c.APPLICATION_DATA])]


@pytest.mark.parametrize("code", SUITE_CODES)
def test_a_key_is_due_at_its_limit_and_not_before(code: int) -> None:
    area = keyed(code)
    for sequence, due in ((0, False), (SUITES[code].record_limit - 1, False)):
        area.words[WRITE_SEQ] = sequence
        assert records.must_update_key(area) is due
    area.words[WRITE_SEQ] = SUITES[code].record_limit
    assert records.must_update_key(area) is True


# -- the end --------------------------------------------------------------------------------


def test_close_notify_leaves_the_other_flags() -> None:
    area = keyed()
    area.words[FLAGS] = F_RETRIED
    records.queue_close_notify(area)
    assert area.words[FLAGS] == F_RETRIED | F_CLOSE_SENT
    assert opened(area, queued(area)) == [b"\x01\x00\x15"]


def test_the_first_refusal_stands_and_is_the_only_alert() -> None:
    area = keyed()
    records.fail(area, Refusal.DECODE_ERROR)
    said = queued(area)
    records.fail(area, Refusal.BAD_RECORD_MAC)
    assert area.words[FAILURE] == Refusal.DECODE_ERROR.code
    assert area.words[STATE] == FAILED
    assert queued(area) == said


def test_a_failed_connection_has_no_key_no_secret_and_no_input() -> None:
    area = keyed()
    area.words[STATE] = WAIT_FINISHED
    area.scratch_used = True
    for start in (SCRATCH, IN, HANDSHAKE):
        area.bytes[start : start + 9] = b"\xaa" * 9
    area.in_end = area.in_high = IN + 9
    area.handshake_end = area.handshake_high = HANDSHAKE + 9
    records.fail(area, Refusal.DECODE_ERROR)
    assert area.opener is None and area.sealer is None and area.transcript is None
    assert not any(area.bytes[CORE_WORDS * 8 : OUT])
    assert (area.in_end, area.in_high) == (IN, IN)
    assert (area.handshake_end, area.handshake_high) == (HANDSHAKE, HANDSHAKE)
    assert area.scratch_used is False


def test_a_scratch_that_was_not_used_costs_no_clearing(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[tuple[int, int]] = []
    real = copies.clear
    monkeypatch.setattr(
        copies, "clear", lambda block, at, end: (cleared.append((at, end)), real(block, at, end))
    )
    area = bare()
    records.forget_scratch(area)
    assert cleared == []
    area.scratch_used = True
    records.forget_scratch(area)
    assert len(cleared) == 1 and area.scratch_used is False
    records.forget_scratch(area)
    assert len(cleared) == 1


@pytest.mark.parametrize("way", ["plain", "sealed", "data"])
def test_the_mark_is_up_before_a_byte_is_written(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks afterwards leaves nothing above it."""
    area = keyed()
    room = records.make_out_room
    marks: list[int] = []

    def asked(area: Area, length: int) -> None:
        room(area, length)
        marks.append(area.out_high)

    monkeypatch.setattr(records, "make_out_room", asked)
    if way == "plain":
        records.queue_plain(area, c.ALERT, b"xy")
    elif way == "sealed":
        records.queue_sealed(area, c.HANDSHAKE, bytes(500))
    else:
        records.queue_application_data(area, memoryview(bytes(500)))
    assert marks == [area.out_end] and area.out_high == area.out_end
