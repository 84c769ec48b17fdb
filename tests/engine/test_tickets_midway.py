"""What is read at one message and trusted at a later one: the engine changed in between.

The identity, the keys, the clock and the settings are changed between the answer to the ClientHello
and the client's Finished, on a full and on a resumed handshake. What the tickets then bind is shown
by opening one, and by coming back with it. Keys and clocks over several connections follow.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine import Engine, Event, Refused
from engine.layout import (
    CLIENT_SECRET,
    ENTROPY_END,
    ENTROPY_TICKETS,
    MASTER_SECRET,
    SCRATCH,
    SCRATCH_END,
)
from peers.liar import Client, Ticket
from tests.engine import ticket_format
from tests.engine.ticket_serving import HOUR, KEY, NOW, Serving, fingerprint, identity

OTHER = b"o" * 32
A, B, C, D, E = (bytes([n]) * 32 for n in range(1, 6))


def started(resuming: bool, **settings: object) -> tuple[Serving, Client]:
    """A connection whose ClientHello is answered and whose Finished is due."""
    serving = Serving(**settings)  # type: ignore[arg-type]
    client = serving.client(*([serving.ticket()] if resuming else []))
    serving.hello(client)
    assert client.resumed == resuming
    return serving, client


def finished(serving: Serving, client: Client) -> list[Ticket]:
    serving.finish(client)
    assert serving.engine.event(0) is Event.ESTABLISHED
    serving.engine.drop(0)
    assert serving.engine.residue() == 0
    return client.tickets


both = pytest.mark.parametrize("resuming", [False, True])


@both
def test_an_identity_replaced_midway_is_not_the_one_that_the_tickets_bind(resuming: bool) -> None:
    serving, client = started(resuming)
    serving.replace("renewed.example")
    ticket = finished(serving, client)[0]
    assert ticket_format.opened(ticket.identity, KEY)["fingerprint"] == fingerprint()
    assert serving.come_back(ticket) == "identity"
    serving.replace()
    assert serving.come_back(ticket) == "resumed"


@both
def test_an_identity_that_ends_later_midway_does_not_make_the_tickets_live_longer(
    resuming: bool,
) -> None:
    end_s = NOW // 1000 + 60
    serving, client = started(resuming, end_s=end_s)
    serving.replace()
    ticket = finished(serving, client)[0]
    assert ticket.lifetime == 60
    assert ticket_format.opened(ticket.identity, KEY)["expiry_ms"] == end_s * 1000


@both
def test_keys_rotated_midway_seal_the_tickets_with_the_new_one(resuming: bool) -> None:
    serving, client = started(resuming)
    serving.engine.set_ticket_keys([OTHER, KEY], NOW)
    ticket = finished(serving, client)[0]
    assert ticket_format.opened(ticket.identity, OTHER)["issue_ms"] == NOW
    serving.engine.set_ticket_keys([OTHER], NOW)
    assert serving.come_back(ticket) == "resumed"


@both
def test_a_key_dropped_midway_ends_no_handshake_that_it_began(resuming: bool) -> None:
    serving, client = started(resuming)
    serving.engine.set_ticket_keys([OTHER], NOW)
    tickets = finished(serving, client)
    assert client.resumed == resuming
    assert serving.come_back(tickets[0]) == "resumed"


@both
def test_a_clock_moved_midway_dates_the_tickets(resuming: bool) -> None:
    serving, client = started(resuming)
    serving.engine.set_time(NOW + 100_000)
    ticket = finished(serving, client)[0]
    opened = ticket_format.opened(ticket.identity, KEY)
    assert opened["issue_ms"] == NOW + 100_000
    assert opened["expiry_ms"] == NOW + 100_000 + HOUR


@both
def test_a_clock_moved_midway_past_the_leaf_s_end_leaves_no_ticket_to_send(resuming: bool) -> None:
    serving, client = started(resuming, end_s=NOW // 1000 + 60)
    serving.engine.set_time(NOW + 60_000)
    assert finished(serving, client) == []


@both
def test_a_count_and_a_lifetime_set_midway_are_those_of_the_tickets(resuming: bool) -> None:
    serving, client = started(resuming)
    serving.engine.set_tickets(5, 7)
    assert [ticket.lifetime for ticket in finished(serving, client)] == [7] * 5


@both
def test_tickets_turned_off_midway_are_not_sent(resuming: bool) -> None:
    serving, client = started(resuming)
    serving.engine.set_tickets(0)
    assert finished(serving, client) == []


@both
def test_where_none_is_to_be_sent_none_is_made(
    resuming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*_: object) -> list[bytes]:
        raise AssertionError("a ticket is made")

    serving, client = started(resuming)
    monkeypatch.setattr("engine.tickets.issue", made)
    serving.engine.set_tickets(0)
    assert finished(serving, client) == []
    # Nor where the client could not use one (§4.2.9: it did not list psk_dhe_ke).
    serving.engine.set_tickets(2)
    client = serving.client(psk_modes=(0,))
    serving.hello(client)
    assert finished(serving, client) == []


@both
def test_the_salts_and_the_ages_are_the_connection_s_draw_for_tickets(resuming: bool) -> None:
    # A byte more on either side would show part of the draw that the key share is made from.
    serving, client = started(resuming)
    drawn = bytes(serving.engine._held[0].bytes[ENTROPY_TICKETS:ENTROPY_END])
    for index, ticket in enumerate(finished(serving, client)):
        own = drawn[index * 36 : index * 36 + 36]
        assert ticket.identity[16:48] == own[:32]
        assert ticket.age_add == int.from_bytes(own[32:])


def test_tickets_turned_on_midway_are_sent_and_have_a_key() -> None:
    serving = Serving(0, keys=())
    client = serving.client()
    serving.hello(client)
    serving.engine.set_tickets(2)
    assert serving.engine.ticket_keys() == 1
    tickets = finished(serving, client)
    assert serving.come_back(tickets[1]) == "resumed"


@both
def test_a_ticket_key_forgotten_midway_by_its_own_rotation_still_ends_the_handshake(
    resuming: bool,
) -> None:
    serving, client = started(resuming, keys=(), lifetime_s=60)
    for turn in range(1, 6):
        serving.engine.rotate_ticket_key(NOW + turn)
    serving.now_ms = NOW + 5
    tickets = finished(serving, client)
    assert client.resumed == resuming
    assert serving.come_back(tickets[0]) == "resumed"


def test_a_ticket_judged_at_a_second_hello_is_judged_by_what_holds_then() -> None:
    changes: list[tuple[Callable[[Serving], None], str]] = [
        (lambda serving: serving.replace("renewed.example"), "identity"),
        (lambda serving: serving.engine.set_ticket_keys([OTHER], NOW), "unknown"),
        (lambda serving: serving.engine.set_time(NOW + HOUR), "expired"),
        (lambda serving: serving.engine.set_time(NOW + 30_001), "age"),
        (lambda serving: serving.engine.set_tickets(0), "off"),
        (lambda serving: None, "resumed"),
    ]
    for change, verdict in changes:
        serving = Serving()
        client = serving.client(serving.ticket(), groups=[29], shares=[])
        serving.engine.serve(0, NOW)
        client.read(serving.exchange(0, client.hello()))
        assert serving.engine.ticket_verdict(0) == "none"
        change(serving)
        client.read(serving.exchange(0, client.hello()))
        serving.finish(client)
        assert serving.engine.ticket_verdict(0) == verdict
        assert client.resumed == (verdict == "resumed")


def test_what_a_handshake_needed_is_gone_with_it_and_before_the_tickets_are_taken() -> None:
    serving, client = started(False)
    engine = serving.engine
    area = engine._held[0]
    assert any(area.bytes[MASTER_SECRET : MASTER_SECRET + 32])
    assert any(area.bytes[CLIENT_SECRET : CLIENT_SECRET + 32])
    engine.feed(0, client.finish())
    assert engine.event(0) is Event.WANT_WRITE
    assert bytes(area.bytes[SCRATCH:SCRATCH_END]) == bytes(SCRATCH_END - SCRATCH)
    assert engine.residue() == 0


# The leaf's end, to the second and the millisecond.


def test_a_ticket_never_outlives_the_leaf() -> None:
    end_s = NOW // 1000 + 60
    serving = Serving(end_s=end_s)
    serving.now_ms = NOW + 1
    ticket = serving.ticket()
    assert ticket.lifetime == 59
    serving.now_ms = end_s * 1000 - 1
    assert serving.come_back(ticket) == "resumed"
    serving.now_ms = end_s * 1000
    assert serving.come_back(ticket) == "expired"


def test_a_leaf_that_ended_before_1970_serves_without_tickets() -> None:
    serving = Serving(end_s=-60, now_ms=-120_000, keys=())
    client = serving.client()
    assert serving.connect(client) == "none"
    assert client.state == "established" and client.tickets == []


# Keys and the clock over several connections.


def test_the_engine_s_own_key_is_replaced_after_exactly_a_lifetime() -> None:
    serving = Serving(keys=(), lifetime_s=60)
    first = serving.ticket()
    serving.now_ms = NOW + 59_999
    second = serving.ticket()
    assert first.identity[:16] == second.identity[:16]
    assert serving.engine.ticket_keys() == 1
    serving.now_ms = NOW + 60_000
    third = serving.ticket()
    assert third.identity[:16] != first.identity[:16]
    assert serving.engine.ticket_keys() == 2
    assert serving.come_back(second) == "resumed"
    assert serving.come_back(first) == "expired"
    serving.now_ms = NOW + 119_999
    assert serving.come_back(third) == "resumed"
    serving.now_ms = NOW + 120_000
    assert serving.come_back(first) == "unknown"


def test_set_time_alone_replaces_the_engine_s_own_key() -> None:
    serving = Serving(keys=(), lifetime_s=60)
    first = serving.ticket()
    serving.engine.set_time(NOW + 60_000)
    assert serving.engine.ticket_keys() == 2
    serving.now_ms = NOW + 60_000
    assert serving.ticket().identity[:16] != first.identity[:16]


def test_supplied_keys_are_never_replaced_by_the_engine_s() -> None:
    serving = Serving(lifetime_s=60)
    for hours in range(5):
        serving.now_ms = NOW + hours * HOUR
        ticket_format.opened(serving.ticket().identity, KEY)
    assert serving.engine.ticket_keys() == 1


def test_a_previous_key_s_tickets_end_with_its_time_to_the_millisecond() -> None:
    serving = Serving(lifetime_s=60)
    serving.engine.set_ticket_keys([KEY], NOW)
    early = serving.ticket()
    serving.engine.set_tickets(2, 3_600)
    late = serving.ticket()
    serving.engine.set_tickets(2, 60)
    serving.engine.set_ticket_keys([OTHER, KEY], NOW)
    serving.now_ms = NOW + 59_999
    assert serving.come_back(late) == "resumed"
    assert serving.come_back(early) == "resumed"
    serving.now_ms = NOW + 60_000
    assert serving.come_back(late) == "unknown"
    serving.engine.set_ticket_keys([OTHER, KEY], serving.now_ms)
    assert serving.come_back(late) == "unknown"


def test_two_engines_with_one_list_of_keys_resume_each_other_s_tickets() -> None:
    one, two = Serving(keys=(A,)), Serving(keys=(B, A), seed=bytes(32))
    assert two.come_back(one.ticket()) == "resumed"
    assert one.come_back(two.ticket()) == "unknown"
    assert Serving(keys=(C,)).come_back(one.ticket()) == "unknown"


def test_a_ring_of_four_keeps_a_key_for_three_rotations() -> None:
    serving = Serving(keys=(A, B, C, D))
    assert serving.engine.ticket_keys() == 4
    ticket = serving.ticket()
    for _ in range(3):
        serving.engine.rotate_ticket_key(NOW)
        assert serving.come_back(ticket) == "resumed"
        assert serving.engine.residue() == 0
    serving.engine.rotate_ticket_key(NOW)
    assert serving.come_back(ticket) == "unknown"
    assert serving.engine.ticket_keys() == 4


def test_dropping_a_key_refuses_its_tickets_and_the_same_list_refuses_none() -> None:
    serving = Serving(keys=(A,))
    ticket = serving.ticket()
    serving.engine.set_ticket_keys([A], NOW + 1)
    assert serving.come_back(ticket) == "resumed"
    serving.engine.set_ticket_keys([B, A], NOW + 2)
    assert serving.come_back(ticket) == "resumed"
    serving.engine.set_ticket_keys([B], NOW + 3)
    assert serving.come_back(ticket) == "unknown"


def test_the_clock_of_tickets_only_moves_forward() -> None:
    serving = Serving()
    serving.engine.set_time(NOW + 20_000)
    ticket = serving.ticket()
    assert ticket_format.opened(ticket.identity, KEY)["issue_ms"] == NOW + 20_000
    serving.engine.set_time(NOW - HOUR)
    assert ticket_format.opened(serving.ticket().identity, KEY)["issue_ms"] == NOW + 20_000


def test_a_clock_far_ahead_costs_full_handshakes_and_accepts_nothing() -> None:
    serving = Serving()
    before = serving.ticket()
    serving.engine.set_time(NOW + 10 * HOUR)
    assert serving.come_back(before) == "expired"
    ahead = serving.ticket()
    right = Serving()
    assert right.come_back(ahead) == "age"


def test_the_clock_moves_while_a_connection_lives() -> None:
    serving = Serving()
    serving.connect(serving.client(), 1, keep=True)
    serving.engine.set_time(NOW + 30 * 60_000)
    serving.now_ms = NOW + 30 * 60_000
    ticket = serving.ticket()
    serving.now_ms += HOUR - 1
    assert serving.come_back(ticket) == "resumed"
    serving.engine.drop(1)


@pytest.mark.parametrize("now_ms", [1 << 62, 1 << 70])
def test_a_time_out_of_range_is_the_caller_s_mistake(now_ms: int) -> None:
    serving = Serving()
    calls: list[Callable[[], None]] = [
        lambda: serving.engine.set_time(now_ms),
        lambda: serving.engine.set_ticket_keys([A], now_ms),
        lambda: serving.engine.rotate_ticket_key(now_ms),
        lambda: serving.engine.serve(0, now_ms),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="out of range"):
            call()
    assert serving.come_back(serving.ticket()) == "resumed"


def test_with_fewer_areas_than_slots_tickets_wait_like_any_output() -> None:
    engine = Engine.server(2, 1, signing="deterministic")
    engine.seed(bytes(32))
    engine.add_identity(*identity(), [], NOW)
    engine.set_tickets(8)
    client = Client("client", now_ms=NOW)
    out = bytearray(65_536)
    engine.serve(0, NOW)
    engine.feed(0, client.hello())
    client.read(bytes(out[: engine.take(0, out)]))
    engine.feed(0, client.finish())
    assert engine.holds_area(0)
    with pytest.raises(Refused):
        engine.serve(1, NOW)
    taken = bytearray()
    small = bytearray(7)
    while count := engine.take(0, small):
        taken += small[:count]
        assert engine.residue() == 0
    client.read(bytes(taken))
    assert len(client.tickets) == 8
    assert not engine.holds_area(0)
    engine.serve(1, NOW)
    assert engine.residue() == 0
