"""A sequence number never wraps, in neither direction: the last ends the connection (§5.3).

In a word of 64 bits with a sign the last is 2^63 - 1. No connection lives to see it, which is why
nobody would notice what it does then.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine import Engine, key_schedule, layout
from engine.key_schedule import LAST_SEQUENCE
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.mutual_pairs import client, device, mutual, no_identity
from tests.engine.pairs import Pair, engine

SUITES = sorted(key_schedule.SUITES)
TOO_MANY = "tls-too-many-messages"

SUITE = pytest.mark.parametrize("suite", SUITES)
# A resting connection sends and reads by the quick path, one without rest by the general one.
PATH = pytest.mark.parametrize("rests", [True, False])


def established(suite: int, rests: bool = True, **numbers: int) -> Pair:
    """A connection whose keys have protected so many records that `left` are left of each."""
    pair = Pair(engine(), client=Client(b"last", now_ms=NOW_MS, suites=[suite])).establish()
    if not rests:
        pair.engine.set_resting(0)
    words = pair.engine._pool.words(0)
    for name, left in numbers.items():
        words[getattr(layout, name)] = LAST_SEQUENCE - left
    peer = pair.client
    assert peer.writing is not None and peer.reading is not None
    peer.writing.sequence = words[layout.READ_SEQ]
    peer.reading.sequence = words[layout.WRITE_SEQ]
    return pair


def ended(pair: Pair) -> None:
    """The connection failed, without a word where no number was left to say one."""
    assert pair.engine.failure(0) == TOO_MANY
    assert not pair.engine.holds_area(0)
    pair.clean()
    pair.engine.drop(0)
    assert pair.engine.areas_free() == pair.engine.areas()


@SUITE
@PATH
@pytest.mark.parametrize("left", [0, 1, 2])
def test_data_is_sent_up_to_the_last_number(suite: int, rests: bool, left: int) -> None:
    pair = established(suite, rests, WRITE_SEQ=left)
    if key_schedule.SUITES[suite].record_limit < LAST_SEQUENCE:
        # AES-GCM: the key is replaced long before, and here as soon as there is data to send.
        assert pair.engine.send(0, b"x") == (1 if left else 0)
        if left:
            assert pair.engine._pool.words(0)[layout.WRITE_SEQ] == 1
            return
    else:
        for _ in range(left):
            assert pair.engine.send(0, b"x") == 1
            pair.client.read(pair.take())
        assert bytes(pair.client.received) == b"x" * left
        assert pair.engine.send(0, b"x") == 0
    assert pair.take() == b""
    ended(pair)


@pytest.mark.parametrize("suite", [0x1301, 0x1302])
@PATH
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_key_of_aes_gcm_protects_as_many_records_as_it_may(
    suite: int, rests: bool, left: int
) -> None:
    """And then a KeyUpdate, which takes no room of a full record (§5.5)."""
    used = key_schedule.AES_GCM_RECORDS - left
    pair = established(suite, rests, WRITE_SEQ=LAST_SEQUENCE - used)
    for sent in range(3):
        assert pair.engine.send(0, b"x") == 1
        pair.client.read(pair.take())
        words = pair.engine._pool.words(0)
        assert words[layout.WRITE_SEQ] == (used + sent + 1 if sent < left else sent - left + 1)
    assert bytes(pair.client.received) == b"xxx"


@PATH
def test_what_has_a_number_is_sent_of_more(rests: bool) -> None:
    pair = established(0x1303, rests, WRITE_SEQ=1)
    data = bytes(layout.MAX_PLAINTEXT)
    assert pair.engine.send(0, data + b"more") == len(data)
    assert pair.engine.event(0) == "failed"
    pair.client.read(pair.take())
    assert bytes(pair.client.received) == data
    ended(pair)


@SUITE
@PATH
@pytest.mark.parametrize("left", [0, 1, 2])
def test_data_is_read_up_to_the_last_number(suite: int, rests: bool, left: int) -> None:
    pair = established(suite, rests, READ_SEQ=left)
    for _ in range(left):
        pair.feed(pair.client.send(b"x"))
        assert pair.recv() == b"x"
    pair.fails(pair.client.send(b"x"), TOO_MANY, 10, "application")


@SUITE
@PATH
def test_the_answer_to_a_key_update_needs_a_number(suite: int, rests: bool) -> None:
    pair = established(suite, rests, WRITE_SEQ=0)
    assert pair.feed(pair.client.key_update(1)) > 0
    ended(pair)
    pair = established(suite, rests, WRITE_SEQ=1)
    pair.answer(pair.client.key_update(1))
    pair.engine.send(0, b"under the next key")
    pair.client.read(pair.take())
    assert bytes(pair.client.received) == b"under the next key"


@SUITE
@PATH
def test_a_close_notify_needs_a_number(suite: int, rests: bool) -> None:
    pair = established(suite, rests, WRITE_SEQ=0)
    assert not pair.engine.finish(0)
    ended(pair)
    pair = established(suite, rests, WRITE_SEQ=1)
    assert pair.engine.finish(0)
    pair.client.read(pair.take())
    assert pair.client.state == "closed" or pair.client.alerts


@PATH
@pytest.mark.parametrize(
    "end", [lambda made: made.send(0, b"x"), lambda made: made.finish(0)], ids=["send", "finish"]
)
def test_a_verified_client_whose_connection_ends_so_is_forgotten(
    rests: bool, end: Callable[[Engine], object]
) -> None:
    pair = Pair(mutual(), client=client(device(), suites=[0x1303])).establish()
    assert pair.engine.peer_verified(0)
    if not rests:
        pair.engine.set_resting(0)
    pair.engine._pool.words(0)[layout.WRITE_SEQ] = LAST_SEQUENCE
    assert not end(pair.engine)
    no_identity(pair.engine)
    ended(pair)


@SUITE
@PATH
@pytest.mark.parametrize(
    "wrong",
    [lambda peer: peer.protect(22, b""), lambda peer: b"\x17\x03\x03\x00\x14" + bytes(20)],
    ids=["that opens", "that does not open"],
)
def test_no_alert_is_sealed_under_a_spent_key(
    suite: int, rests: bool, wrong: Callable[[Client], bytes]
) -> None:
    pair = established(suite, rests, WRITE_SEQ=0)
    pair.feed(wrong(pair.client))
    assert pair.engine.event(0) == "failed" and pair.take() == b""
    pair.clean()
    assert not pair.engine.holds_area(0)
