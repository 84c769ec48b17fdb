"""The settings of tickets: what is refused, what is drawn when, and what close leaves."""

from __future__ import annotations

import pytest

from engine import Engine, Refused
from tests.engine.ticket_serving import (
    HOUR,
    KEY,
    NOW,
    Serving,
    identity,
)


@pytest.mark.parametrize(
    ("count", "lifetime_s"), [(9, 60), (-1, 60), (1, 0), (1, 604_801), (0, 8 * 86_400)]
)
def test_settings_out_of_range_are_refused_and_change_nothing(count: int, lifetime_s: int) -> None:
    serving = Serving(1, 60)
    with pytest.raises(Refused) as caught:
        serving.engine.set_tickets(count, lifetime_s)
    assert caught.value.refusal == "tls-server-ticket-config"
    client = serving.client()
    serving.connect(client)
    assert [ticket.lifetime for ticket in client.tickets] == [60]


@pytest.mark.parametrize(
    "keys", [[], [b""], [b"k" * 31], [b"k" * 33], [bytes([n]) * 32 for n in range(5)], [KEY, KEY]]
)
def test_a_bad_list_of_keys_is_refused_and_changes_nothing(keys: list[bytes]) -> None:
    serving = Serving()
    ticket = serving.ticket()
    with pytest.raises(Refused) as caught:
        serving.engine.set_ticket_keys(keys, NOW + 10 * HOUR)
    assert caught.value.refusal == "tls-server-ticket-key"
    assert serving.come_back(ticket) == "resumed"


def test_rotating_before_the_engine_is_seeded_is_refused() -> None:
    engine = Engine.server(1)
    with pytest.raises(Refused) as caught:
        engine.rotate_ticket_key(NOW)
    assert caught.value.refusal == "tls-no-entropy"
    assert engine.ticket_keys() == 0


def test_tickets_are_off_by_default_and_no_key_is_drawn() -> None:
    serving = Serving(0, keys=())
    assert serving.connect(serving.client()) == "none"
    serving.engine.set_time(NOW + HOUR)
    assert serving.engine.ticket_keys() == 0


def test_settings_may_come_before_the_seed_and_the_key_with_the_first_connection() -> None:
    engine = Engine.server(1)
    engine.set_tickets(1)
    engine.set_time(NOW)
    assert engine.ticket_keys() == 0
    engine.seed(bytes(32))
    engine.add_identity(*identity(), [], NOW)
    assert engine.ticket_keys() == 0
    engine.serve(0, NOW)
    assert engine.ticket_keys() == 1


def test_a_refused_start_moves_no_clock_and_draws_no_key() -> None:
    engine = Engine.server(2, 1)
    engine.seed(bytes(32))
    engine.set_tickets(1)
    with pytest.raises(Refused):
        engine.serve(0, NOW)
    assert engine.ticket_keys() == 0
    engine.add_identity(*identity(), [], NOW)
    engine.serve(0, NOW)
    with pytest.raises(Refused) as caught:
        engine.serve(1, NOW + 10 * HOUR)
    assert caught.value.refusal == "tls-pool"
    assert engine.ticket_keys() == 1
    with pytest.raises(ValueError, match="out of range"):
        engine.serve(1, 1 << 62)
    assert engine.residue() == 0


def test_after_close_no_key_is_left_and_every_call_raises() -> None:
    serving = Serving()
    engine = serving.engine
    ring = engine._server.resumption.ring
    key = ring.current()
    assert key is not None
    engine.close()
    assert key.secret == bytes(32)
    for call in (
        lambda: engine.set_tickets(1),
        lambda: engine.set_ticket_keys([KEY], NOW),
        lambda: engine.rotate_ticket_key(NOW),
        lambda: engine.set_time(NOW),
        engine.ticket_keys,
        lambda: engine.ticket_verdict(0),
        lambda: engine.resumed(0),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_residue_sees_a_key_left_in_an_unused_place() -> None:
    serving = Serving(keys=(KEY, b"j" * 32))
    ring = serving.engine._server.resumption.ring
    key = ring.current()
    assert key is not None
    serving.engine.set_ticket_keys([b"j" * 32], NOW)
    assert serving.engine.residue() == 0
    key.secret[3] = 1
    assert serving.engine.residue() == 1
