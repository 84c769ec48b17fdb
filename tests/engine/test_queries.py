"""What an engine says of itself: counts, and nothing of a connection before it is true."""

from __future__ import annotations

import inspect

import pytest

from engine import Engine
from engine.client_identity import ClientIdentity
from engine.layout import ENTROPY, ENTROPY_END
from engine.queries import Queries
from engine.ticket_keys import LATEST_MS
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.mutual_pairs import client, device, mutual
from tests.engine.pairs import Pair, engine

# Where a class holds mutants, their names are not ASCII.
READINGS = sorted(
    name
    for face in (Queries, ClientIdentity)
    for name, call in vars(face).items()
    if callable(call) and not name.startswith("_") and name.isascii()
)


@pytest.mark.parametrize("name", READINGS)
def test_a_closed_engine_answers_nothing(name: str) -> None:
    made = engine()
    reading = getattr(made, name)
    of_a_slot = inspect.signature(reading).parameters
    made.close()
    with pytest.raises(ValueError, match="closed"):
        reading(*[0 for _ in of_a_slot])


@pytest.mark.parametrize(("slots", "areas"), [(1, 1), (5, 2), (7, 3), (4, None)])
def test_an_engine_has_the_areas_that_were_asked_for(slots: int, areas: int | None) -> None:
    made = engine(slots, areas)
    assert made.areas() == made.areas_free() == (areas or slots)
    assert made.areas_resting() == made.handshakes_in_progress() == 0


def test_residue_counts_what_an_unused_entry_or_ticket_key_holds() -> None:
    made = engine()
    identities, ring = made._server.identities, made._server.resumption.ring
    identities._entries[-1] = identities._entries[0]
    assert made.residue() == 1
    ring._unused()[0][:2] = b"ab"
    assert made.residue() == 3
    identities._entries[-1] = None
    assert made.residue() == 2


def test_a_client_is_not_verified_before_its_finished() -> None:
    """It has proved its certificate, and not yet that it saw this handshake (RFC 8446 §4.4.4)."""
    pair = Pair(mutual(), client=client(device())).greet()
    for message in pair.client.certificate_flight():
        pair.feed(pair.client.handshake_bytes(message))
        assert pair.engine.failure(0) is None
        assert pair.engine.peer_verified(0) == 0
        assert pair.engine.peer_certificate(0) is None
        assert pair.engine.peer_not_after(0) is None
    pair.feed(pair.client.handshake_bytes(pair.client.finished_message()))
    assert pair.engine.peer_verified(0) == pair.engine.client_generation()


REFUSED = {
    "no slots": (lambda: Engine.server(0), "slots must be at least 1, areas from 1 to slots"),
    "no areas": (lambda: Engine.server(3, 0), "slots must be at least 1, areas from 1 to slots"),
    "an area too many": (
        lambda: Engine.server(3, 4),
        "slots must be at least 1, areas from 1 to slots",
    ),
    "another way to sign": (
        lambda: Engine.server(1, signing="random"),
        'signing is "hedged" or "deterministic"',
    ),
    "a slot in use": (lambda: Pair(Pair(engine()).engine), "the slot has a connection"),
    "a time no ticket carries": (
        lambda: engine().serve(0, LATEST_MS),
        "the time is out of range",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_asked_wrongly_is_answered_in_a_sentence(case: str) -> None:
    call, sentence = REFUSED[case]
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == sentence


def test_serve_draws_what_a_connection_needs_and_no_byte_more() -> None:
    made = engine()
    made.serve(0, NOW_MS)
    block = made._pool.block(0)
    assert all(any(block[at : at + 16]) for at in range(ENTROPY, ENTROPY_END - 16, 16))
    assert not any(block[ENTROPY_END : ENTROPY_END + 64])


@pytest.mark.parametrize("description", [0, 40, 255])
def test_the_alert_of_the_peer_is_told_as_it_came(description: int) -> None:
    pair = Pair(engine())
    assert pair.engine.alert_received(0) is None
    pair.feed(b"\x15\x03\x03\x00\x02\x02" + bytes([description]))
    assert pair.engine.alert_received(0) == description


def test_what_was_asked_for_again_is_not_answered_yet() -> None:
    """The suite and the group of a HelloRetryRequest are known, and not yet the connection's."""
    pair = Pair(engine(), client=Client(b"again", now_ms=NOW_MS, groups=(29, 23), shares=()))
    pair.answer(pair.client.hello())
    assert pair.client.state == "retry"
    assert pair.engine.group(0) == pair.engine.suite(0) == 0
    pair.answer(pair.client.hello())
    assert pair.engine.group(0) == 29 and pair.engine.suite(0)
