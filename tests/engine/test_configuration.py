"""What a configuration call changes, what it refuses, and the sentence that the caller reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from engine import Engine, Refused
from engine.drbg import Drbg
from engine.resumption import Resumption
from peers.liar import Client
from peers.liar.identities import NOW_MS, make
from tests.engine.mutual_pairs import root
from tests.engine.pairs import ENTROPY, NAME, Pair, engine, identity

KEYS = [b"a" * 32, b"b" * 32]
HOUR = 3_600_000
Call = Callable[[Engine], object]


def replaced(made: Engine, names: list[str] | None = None, now_ms: int = NOW_MS) -> None:
    own = make(("other.example",))
    made.replace_identity(0, own.chain_pem, own.key_pem, now_ms, names)


def added(made: Engine, now_ms: int = NOW_MS) -> int:
    own = identity()
    return made.add_identity(own.chain_pem, own.key_pem, [NAME], now_ms)


EVERY_CALL: dict[str, Call] = {
    "seed": lambda made: made.seed(ENTROPY),
    "add_identity": added,
    "replace_identity": replaced,
    "set_alpn": lambda made: made.set_alpn(["h2"]),
    "set_tickets": lambda made: made.set_tickets(1),
    "set_ticket_keys": lambda made: made.set_ticket_keys(KEYS, NOW_MS),
    "rotate_ticket_key": lambda made: made.rotate_ticket_key(NOW_MS),
    "set_time": lambda made: made.set_time(NOW_MS),
    "trust_clients": lambda made: made.trust_clients(root().pem),
    "client_auth_mode": lambda made: made.client_auth_mode(0),
    "client_generation": lambda made: made.client_generation(),
    "set_resting": lambda made: made.set_resting(0),
}


@pytest.mark.parametrize("call", EVERY_CALL)
def test_a_call_is_taken_before_close_and_not_behind_it(call: str) -> None:
    made = engine()
    EVERY_CALL[call](made)
    made.close()
    with pytest.raises(ValueError) as raised:
        EVERY_CALL[call](made)
    assert str(raised.value) == "the engine is closed"


def wiped() -> None:
    generator = Drbg(ENTROPY)
    generator.wipe()
    generator.draw(1)


MISTAKES: list[tuple[Callable[[], object], type[Exception], str]] = [
    (wiped, ValueError, "the generator was wiped"),
    (lambda: Drbg(b""), ValueError, "the generator is seeded with exactly 32 bytes"),
    (lambda: engine(5).failure(4), ValueError, "the slot is free"),
    (lambda: engine(5).failure(5), IndexError, "no such slot"),
    (lambda: engine(5).failure(-1), IndexError, "no such slot"),
    (lambda: engine(5).set_time(1 << 62), ValueError, "the time is out of range"),
    *(
        (lambda one=one: engine().set_alpn(one), TypeError, sentence)
        for sentence in ["protocols is a list of names, not one name"]
        for one in ("h2", b"h2", bytearray(b"h2"), memoryview(b"h2"))
    ),
    (
        lambda: engine().set_alpn(cast(list[bytes], [2])),
        TypeError,
        "the name of a protocol is bytes or str",
    ),
    *(
        (lambda one=one: engine().set_ticket_keys(one, NOW_MS), TypeError, sentence)
        for sentence in ["keys is a list of keys, not one key"]
        for one in ("k" * 32, b"k" * 4, bytearray(4), memoryview(b"kkkk"))
    ),
    (lambda: engine(5).set_time(-(1 << 62)), ValueError, "the time is out of range"),
    *(
        (lambda n=n: engine(5, 2).set_resting(n), ValueError, sentence)
        for sentence in ["from 0 to the number of areas may rest"]
        for n in (-1, 3)
    ),
    *(
        (lambda mode=mode: engine().client_auth_mode(mode), ValueError, sentence)
        for sentence in ["the mode is 0 (off), 1 (optional) or 2 (required)"]
        for mode in (-1, 3)
    ),
]


@pytest.mark.parametrize(("call", "kind", "sentence"), MISTAKES)
def test_a_caller_s_mistake_is_told_in_one_sentence(
    call: Callable[[], object], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == sentence


NUMBERS: dict[str, Callable[[Engine, Any], object]] = {
    "add_identity": lambda made, now: added(made, now),
    "replace_identity": lambda made, now: replaced(made, now_ms=now),
    "set_tickets": lambda made, count: made.set_tickets(count),
    "set_time": lambda made, now: made.set_time(now),
    "client_auth_mode": lambda made, mode: made.client_auth_mode(mode),
    "set_resting": lambda made, count: made.set_resting(count),
}


@pytest.mark.parametrize("wrong", [1.0, float("nan"), "1", None])
@pytest.mark.parametrize("call", NUMBERS)
def test_a_number_that_is_no_integer_is_refused_where_it_is_given(call: str, wrong: object) -> None:
    # One that is only compared would be kept, and break a connection that comes later.
    made = engine()
    made.trust_clients(root().pem)
    with pytest.raises(TypeError):
        NUMBERS[call](made, wrong)
    made.serve(0, NOW_MS)


# Identities and protocols.


def test_an_identity_that_is_replaced_has_the_names_that_come_with_it() -> None:
    made = engine()
    own = make(("second.example",))
    assert made.add_identity(own.chain_pem, own.key_pem, ["second.example"], NOW_MS) == 1
    renewed = make(("third.example",))
    made.replace_identity(1, renewed.chain_pem, renewed.key_pem, NOW_MS, ["third.example"])
    find = made._server.identities.find
    assert find(b"third.example") is not find(b"second.example") is find(None)


def test_a_protocol_s_name_has_one_byte_to_255() -> None:
    made = engine()
    for protocol in (b"x", b"y" * 255):
        made.set_alpn([protocol])
        client = Client(b"alpn", now_ms=NOW_MS, alpn=[protocol])
        Pair(made, client=client).establish()
        assert client.alpn == protocol
        made.drop(0)


# Resting.


def test_as_many_rest_as_there_are_areas_and_no_more_than_were_allowed() -> None:
    made = engine(3, 2)
    for allowed in (2, 1, 0):
        made.set_resting(allowed)
        # Both are served first: a handshake takes the area of one that rests.
        for pair in [Pair(made, slot) for slot in (0, 1)]:
            pair.establish()
        assert len(made._resting) == allowed
        for slot in (0, 1):
            made.drop(slot)


def test_a_call_on_a_slot_with_an_area_asks_the_pool_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = Pair(engine())

    def asked(*_: object) -> memoryview:
        raise AssertionError("the pool was asked")

    monkeypatch.setattr(type(pair.engine._pool), "words", asked)
    assert pair.engine.failure(0) is None


# Tickets.


def test_a_server_that_was_told_nothing_of_tickets_draws_no_key_and_sends_none() -> None:
    made = engine()
    pair = Pair(made).establish()
    assert made.ticket_keys() == 0
    assert pair.client.tickets == []


def test_keys_that_come_before_the_settings_open_for_an_hour() -> None:
    assert Resumption().ring.lifetime_ms == HOUR
    made = Engine.server(1)
    made.set_ticket_keys(KEYS, NOW_MS)
    made.set_time(NOW_MS + HOUR - 1)
    assert made.ticket_keys() == 2
    made.set_time(NOW_MS + HOUR)
    assert made.ticket_keys() == 1


def test_tickets_that_are_turned_on_before_any_time_is_known_draw_no_key_yet() -> None:
    made = engine()
    made.set_tickets(1)
    assert made.ticket_keys() == 0


def test_rotating_draws_a_key_at_the_time_that_is_given() -> None:
    made = engine()
    made.set_tickets(1, 60)
    made.rotate_ticket_key(NOW_MS)
    made.rotate_ticket_key(NOW_MS + 1_000)
    assert made.ticket_keys() == 2
    made.set_time(NOW_MS + 60_999)
    assert made.ticket_keys() == 2
    made.set_time(NOW_MS + 61_000)
    # The first is over, and the second's turn to be replaced has come.
    assert made.ticket_keys() == 2
    assert made.residue() == 0


def test_a_refused_rotation_says_that_there_is_no_entropy() -> None:
    with pytest.raises(Refused) as refused:
        Engine.server(1).rotate_ticket_key(NOW_MS)
    assert refused.value.refusal == "tls-no-entropy"


# Clients.


def test_the_generation_counts_the_replacements_of_the_store() -> None:
    made = engine()
    assert made.client_generation() == 0
    for generation in (1, 2):
        assert made.trust_clients(root().pem) == 1
        assert made.client_generation() == generation
