"""Input that brings a connection no further is bounded: each kind of record, in each state.

The table is peers/bounds.py's. Each cell sends its record again and again, and looks after how many
of them, and as what, the connection ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice

import pytest

from engine import Engine
from engine.layout import MAX_BODY
from engine.receive import MAX_SKIPPED
from engine.records import MAX_RUN
from engine.refusals import STATES
from peers.bounds import TABLE, Bound
from peers.liar import Client, codes
from peers.liar.identities import NOW_MS
from peers.liar.record import record
from peers.liar.wire import message
from tests.engine.mutual_pairs import credential, device, mutual
from tests.engine.pairs import Pair, engine

START, RETRIED, WAIT_CERT, WAIT_CV, WAIT_FINISHED, CONNECTED = STATES
BYTE = b"\x00"
NOISE = record(codes.APPLICATION_DATA, bytes(40))
CANCELED = record(codes.ALERT, bytes((1, codes.USER_CANCELED)))

Records = Iterator[bytes]


def begin(made: Engine, **options: object) -> Pair:
    return Pair(made, client=Client(b"bound", now_ms=NOW_MS, **options))  # type: ignore[arg-type]


def in_state(state: str, early: bool = False) -> Pair:
    """A connection in this state, whose client did or did not offer early data."""
    if state in (WAIT_CERT, WAIT_CV):
        pair = begin(mutual(), early_data=early, credential=credential(device()))
    else:
        shares = () if state == RETRIED else None
        pair = begin(engine(), early_data=early, shares=shares)
    if state == START:
        return pair
    pair.answer(pair.client.hello())
    if state == WAIT_CV:
        pair.answer(pair.client.handshake_bytes(pair.client.add(pair.client.certificate_message())))
    if state == CONNECTED:
        pair.answer(pair.client.finish())
    return pair


def clear(content: bytes) -> Callable[[Pair, str], Records]:
    return lambda pair, state: cycle((content,))


def sealed(kind: int, content: bytes) -> Callable[[Pair, str], Records]:
    """A protected record of this content; noise while the client has no key."""

    def make(pair: Pair, state: str) -> Records:
        while True:
            yield pair.client.protect(kind, content) if pair.client.writing else NOISE

    return make


def whole_message(state: str) -> bytes:
    """The longest that the state has: its body is zeros."""
    kind = {
        WAIT_CERT: codes.CERTIFICATE,
        WAIT_CV: codes.CERTIFICATE_VERIFY,
        WAIT_FINISHED: codes.FINISHED,
    }.get(state, codes.CLIENT_HELLO)
    return message(kind, bytes(32 if state == WAIT_FINISHED else MAX_BODY))


def in_bytes(pair: Pair, state: str) -> Records:
    for byte in whole_message(state):
        yield record(codes.HANDSHAKE, bytes((byte,)))


def in_protected_bytes(pair: Pair, state: str) -> Records:
    if state == CONNECTED:
        while True:
            for byte in message(codes.KEY_UPDATE, b"\x00"):
                yield pair.client.protect(codes.HANDSHAKE, bytes((byte,)))
            pair.client.next_key()
    for byte in whole_message(state):
        yield pair.client.protect(codes.HANDSHAKE, bytes((byte,))) if pair.client.writing else NOISE


def key_updates(pair: Pair, state: str) -> Records:
    while True:
        yield pair.client.key_update(0) if pair.client.writing else NOISE


def once_opened(pair: Pair, state: str) -> Records:
    """A protected user_canceled goes first; in the clear states there can be none."""
    yield (pair.client.alert(codes.USER_CANCELED) if pair.client.writing else NOISE) + CANCELED


KINDS: dict[str, Callable[[Pair, str], Records]] = {
    "a handshake record in the clear, empty": clear(record(codes.HANDSHAKE, b"")),
    "a handshake record in the clear, of a byte": in_bytes,
    "change_cipher_spec": clear(record(codes.CHANGE_CIPHER_SPEC, b"\x01")),
    "user_canceled in the clear": clear(CANCELED),
    "user_canceled in the clear, once a record opened": once_opened,
    "a record that does not open": clear(NOISE),
    "early data that was offered, empty": clear(record(codes.APPLICATION_DATA, b"")),
    "early data that was offered, of a byte": clear(record(codes.APPLICATION_DATA, BYTE)),
    "a protected handshake record, empty": sealed(codes.HANDSHAKE, b""),
    "a protected handshake record, of a byte": in_protected_bytes,
    "a protected KeyUpdate": key_updates,
    "a protected user_canceled": sealed(codes.ALERT, bytes((1, codes.USER_CANCELED))),
    "a protected change_cipher_spec": sealed(codes.CHANGE_CIPHER_SPEC, b"\x01"),
    "protected padding alone": sealed(0, bytes(20)),
    "protected application data, empty": sealed(codes.APPLICATION_DATA, b""),
    "protected application data": sealed(codes.APPLICATION_DATA, bytes(1_000)),
}


def taken(pair: Pair, records: Records) -> int:
    """How many records are read until the connection fails, or takes no more."""
    count = 0
    # Every bound is under this: without one a test must fail, and not go on for ever.
    for data in islice(records, 2 * MAX_SKIPPED):
        if pair.engine.feed(0, data) < len(data):
            break
        count += 1
        if pair.engine.failure(0):
            break
        # A second hello and a KeyUpdate are answered: the room for that is not what is looked at.
        pair.engine.take(0, bytearray(1 << 16))
    return count


def test_the_table_has_every_kind_in_every_state() -> None:
    assert list(KINDS) == list(TABLE)
    assert all(len(bounds) == len(STATES) for bounds in TABLE.values())


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", TABLE)
def test_every_kind_of_input_has_its_bound_in_every_state(kind: str, state: str) -> None:
    pair = in_state(state, early=kind.startswith("early data"))
    bound = TABLE[kind][STATES.index(state)]
    count = taken(pair, KINDS[kind](pair, state))
    refusal = pair.engine.failure(0)
    if bound is Bound.REFUSED:
        assert count == 1 and refusal
    elif bound is Bound.RUN:
        each = 5 if kind == "a protected handshake record, of a byte" else 1
        assert count == (MAX_RUN + 1) * each and refusal == "tls-too-many-messages"
    elif bound is Bound.SUM:
        assert count == MAX_SKIPPED + 1 and refusal == "tls-server-early-data-size"
    elif bound is Bound.MESSAGE:
        assert count == len(whole_message(state)) and refusal
    else:
        assert count > 30 and refusal is None
        assert len(pair.recv()) == 1_000 * count
    pair.clean()


def test_a_run_is_of_all_kinds_together() -> None:
    pair = in_state(RETRIED, early=True)
    empty = record(codes.APPLICATION_DATA, b"")
    ccs = record(codes.CHANGE_CIPHER_SPEC, b"\x01")
    pair.feed(empty * 11 + ccs * 11 + CANCELED * 10)
    assert pair.engine.failure(0) is None
    pair.fails(empty, "tls-too-many-messages", 10, "")


def test_a_run_before_a_retry_and_one_after_it_are_one() -> None:
    """No message of the handshake ends it but the Finished. A second hello brings its own."""
    pair = begin(engine(), shares=())
    pair.answer(CANCELED * 16 + pair.client.hello())
    pair.answer(CANCELED * 15 + pair.client.hello())
    assert pair.engine.failure(0) is None
    pair.fails(CANCELED, "tls-too-many-messages", 10, "application")


@pytest.mark.parametrize("shares", [None, ()])
def test_a_few_empty_records_of_early_data_are_read_past(shares: tuple[int, ...] | None) -> None:
    pair = begin(engine(), early_data=True, shares=shares)
    empty = record(codes.APPLICATION_DATA, b"")
    pair.answer(pair.client.hello() + empty * 5)
    if pair.client.state == "retry":
        pair.answer(empty * 5 + pair.client.hello())
    else:
        pair.feed(empty * 5)
    pair.answer(pair.client.finish())
    assert pair.engine.event(0) == "established"
