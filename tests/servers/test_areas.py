"""Fewer areas than connections: who may hold one, for how long, and who waits for it."""

from collections import OrderedDict

import pytest

from engine import Engine
from servers.connections import HANDSHAKE, OPEN, QUEUED
from tests.servers.certificates import Authority
from tests.servers.inside import Sealer, shown


def areas_held(inside) -> list[int]:
    slots = inside.loop.table.slots(OPEN)
    return [slot for slot in slots if inside.engine.holds_area(slot)]


def test_half_a_record_holds_nothing_where_others_may_need_it(start):
    inside = start(connections=6, areas=2, idle=60_000)
    clients = [inside.connect() for _ in range(3)]
    halves = [client.record(b"half") for client in clients]
    for client, record in zip(clients, halves, strict=True):
        client.give(record[:5])
        client.give(record[5:9])
    assert areas_held(inside) == []
    assert not inside.loop.sessions.waiting and not inside.loop.sessions.holding
    # Its descriptor stays readable, and the loop sleeps all the same.
    assert inside.quiet()
    assert inside.connect().echo(b"served") == b"served"
    for client, record in zip(clients, halves, strict=True):
        client.give(record[9:])
        assert client.read(4) == b"half"


def test_half_a_record_counts_as_silence(start):
    inside = start(connections=6, areas=2, idle=3_000)
    client = inside.connect()
    record = client.record(b"never whole")
    for at in range(3):
        inside.turn(900)
        client.give(record[at : at + 1])
    inside.turn(300)
    assert len(inside.lines(r"conn 1 .* closed idle in=0 ms=3000")) == 1
    assert client.ended_cleanly()


@pytest.mark.parametrize("sent", [0, 3, 5, 20])
def test_an_end_in_the_middle_of_a_record_is_found_out(start, sent):
    inside = start(connections=6, areas=2)
    client = inside.connect()
    record = client.record(b"cut short")
    client.give(record[:sent])
    inside.hang_up(client.plain)
    assert len(inside.lines(r"conn 1 .* closed tls-peer-closed in=0 ms=0")) == 1


def test_records_that_come_with_a_half_are_answered_and_the_half_is_left(start):
    inside = start(connections=6, areas=2)
    client = inside.connect()
    first, second, third = (client.record(data) for data in (b"1" * 9000, b"2" * 9000, b"3"))
    client.give(first + second + third[:7])
    assert client.read(18_000) == b"1" * 9000 + b"2" * 9000
    assert areas_held(inside) == []
    client.give(third[7:])
    assert client.read(1) == b"3"


def test_what_cannot_begin_a_record_is_refused_and_not_waited_for(start):
    inside = start(connections=6, areas=2)
    for number, header in enumerate(("1603010000", "1703039999", "1803030001", "1701030001"), 1):
        client = inside.connect()
        client.give(bytes.fromhex(header))
        inside.until(lambda number=number: inside.lines(rf"conn {number} .* closed tls-.*"))
        client.plain.close()


def test_areas_for_all_are_held_over_half_a_record_until_its_time_is_up(start):
    inside = start(connections=4, areas=4, handshake_timeout=10_000)
    client = inside.connect()
    record = client.record(b"never whole")
    client.give(record[:5])
    inside.until(lambda: inside.engine.holds_area(0))
    for at in range(5, 14):
        inside.turn(1_000)
        client.give(record[at : at + 1])
        inside.turn()
    inside.turn(999)
    assert inside.lines(r".* closed .*") == []
    inside.turn(1)
    assert len(inside.lines(r".* closed record-timeout in=0 ms=10000")) == 1
    assert client.ended_cleanly()


def test_where_there_are_areas_for_all_a_whole_record_ends_the_time_of_its_area(start):
    inside = start(connections=4, areas=4, handshake_timeout=10_000)
    client = inside.connect()
    first, second = client.record(b"one"), client.record(b"two")
    client.give(first[:5])
    inside.until(lambda: inside.engine.holds_area(0))
    inside.turn(9_000)
    client.give(first[5:] + second[:5])
    assert client.read(3) == b"one"
    inside.turn(9_000)
    assert inside.lines(r".* closed .*") == []
    inside.turn(1_000)
    assert len(inside.lines(r".* closed record-timeout in=3 .*")) == 1


@pytest.mark.parametrize(("areas", "ends"), [(2, [10_000]), (6, [])])
def test_half_a_message_behind_every_record_holds_an_area_for_so_long(start, areas, ends):
    inside = start(connections=6, areas=areas, handshake_timeout=10_000)
    drip = Sealer(inside)
    drip.give(drip.half_message())
    assert areas_held(inside) == [0]
    for _ in range(9):
        inside.turn(1_000)
        drip.give(drip.rest_of_message() + drip.liar.send(b"x") + drip.half_message())
        assert areas_held(inside) == [0]
    inside.turn(1_000)
    ended = inside.lines(r".* closed record-timeout .*")
    assert [int(line.rpartition("ms=")[2]) for line in ended] == ends
    drip.plain.close()


def test_an_honest_client_is_served_in_time_whoever_drips(start):
    inside = start(connections=12, areas=4, handshake_timeout=10_000)
    drips = [Sealer(inside) for _ in range(4)]
    for drip in drips:
        drip.give(drip.half_message())
    inside.until(lambda: inside.engine.areas_free() == 0)
    inside.turn(3_000)
    client = inside.client()
    client.give(client.flight())
    assert inside.loop.table.count[QUEUED] == 1
    for _ in range(6):
        inside.turn(1_000)
        for drip in drips:
            drip.give(drip.rest_of_message() + drip.liar.send(b"x") + drip.half_message())
    assert inside.loop.table.count[QUEUED] == 1
    inside.turn(1_000)
    client.shake_hands()
    assert len(inside.lines(r"conn 5 .* established .* waited=7000 handshake=0")) == 1
    assert client.echo(b"at last") == b"at last"
    for drip in drips:
        drip.plain.close()


def hold_all(inside, count: int = 2) -> list[Sealer]:
    """Clients that hold every area, with half a message each."""
    holders = [Sealer(inside) for _ in range(count)]
    for holder in holders:
        holder.give(holder.half_message())
    inside.until(lambda: inside.engine.areas_free() == 0)
    return holders


def test_what_no_area_is_free_for_stays_in_the_kernel(start):
    inside = start(connections=6, areas=2, handshake_timeout=10_000)
    client, queued = inside.connect(), inside.client()
    first, second = hold_all(inside)
    client.give(client.record(b"whole"))
    assert list(inside.loop.sessions.waiting) == [0]
    assert inside.loop.sessions._transfer.held == {}
    # It waits without being watched; a queued handshake waits behind it; and the loop sleeps.
    queued.give(queued.flight())
    assert inside.loop.table.count[QUEUED] == 1
    assert inside.quiet() and inside.loop._timeout(None) > 1
    first.give(first.rest_of_message())
    assert client.read(5) == b"whole"
    assert not inside.loop.sessions.waiting
    inside.until(lambda: inside.loop.table.count[HANDSHAKE] == 1)
    second.give(second.rest_of_message())
    queued.shake_hands()


def test_a_connection_that_waits_for_an_area_is_closed_when_idle(start):
    inside = start(connections=6, areas=2, handshake_timeout=10_000, idle=3_000)
    client = inside.connect()
    holders = hold_all(inside)
    inside.turn(1_000)
    client.give(client.record(b"whole"))
    assert list(inside.loop.sessions.waiting) == [0]
    inside.turn(2_999)
    assert len(inside.lines(r".* closed idle in=0 ms=3999")) == 2
    inside.turn(1)
    assert not inside.loop.sessions.waiting
    for holder in holders:
        holder.plain.close()


def test_close_notify_waits_for_an_area_too(start):
    inside = start(connections=6, areas=2, handshake_timeout=900, idle=1_000)
    client = inside.connect()
    inside.turn(500)
    holders = hold_all(inside)
    inside.turn(500)
    # The first is idle, and the areas are with the others, who have theirs for 400 ms more.
    assert list(inside.loop.sessions.waiting) == [0]
    assert inside.lines(r".* closed .*") == []
    inside.turn(400)
    assert len(inside.lines(r"conn 1 .* closed idle in=0 ms=1400")) == 1
    assert len(inside.lines(r".* closed record-timeout .* ms=900")) == 2
    assert client.ended_cleanly()
    for holder in holders:
        holder.plain.close()


def test_a_stop_says_close_notify_where_stalled_records_had_the_areas(start):
    inside = start(connections=6, areas=2)
    clients = [inside.connect() for _ in range(2)]
    holders = hold_all(inside)
    inside.signals.ask_stop()
    inside.turn()
    assert all(client.ended_cleanly() for client in clients)
    for holder in holders:
        holder.plain.close()


class Looked(OrderedDict[int, None]):
    """A dictionary that counts how many of its entries are looked at one after the other."""

    looks = 0

    def __iter__(self):
        for key in super().__iter__():
            self.looks += 1
            yield key


class Asked(Engine):
    """An engine that counts what is asked of it."""

    asked = 0

    def feed(self, slot, data):
        self.asked += 1
        return super().feed(slot, data)

    def recv(self, slot, out):
        self.asked += 1
        return super().recv(slot, out)

    def holds_area(self, slot):
        self.asked += 1
        return super().holds_area(slot)


def test_a_turn_asks_of_those_that_wait_only_as_many_as_get_on(start):
    counted = []
    for waiting in (3, 30):
        engine = Asked.server(40, 4)
        assert isinstance(engine, Asked)
        inside = start(engine, connections=40, areas=4)
        clients = [inside.connect() for _ in range(waiting)]
        holders = hold_all(inside, 4)
        # One that gets an area keeps it: an answer that is not read would, and so does this.
        for client in clients:
            client.give(client.record(b"whole"))
        sessions = inside.loop.sessions
        assert len(sessions.waiting) == waiting
        sessions.waiting = looked = Looked(sessions.waiting)
        looked.looks = engine.asked = 0
        inside.turn(turns=5)
        assert (looked.looks, engine.asked) == (0, 0)
        # The area of a holder comes free for as long as one answer takes.
        engine.recv = keeping(engine)
        holders[0].give(holders[0].rest_of_message())
        counted.append((looked.looks, engine.asked))
        assert len(sessions.waiting) == waiting - 1
        del engine.recv
        for one in (*holders, *clients):
            one.plain.close()
        inside.clock.now += 100_000
        inside.turn()
    assert counted[0] == counted[1]


def keeping(engine):
    """A `recv` that leaves what was received where it is, and so the area with who received it."""

    def recv(slot, out):
        engine.asked += 1
        return -1

    return recv


def test_after_a_reload_who_waits_to_say_close_notify_is_told_of_a_free_area(start, tmp_path):
    authority = Authority("Clients")
    credential = authority.client(tmp_path, "device")
    inside = start(connections=6, areas=2, clients=authority.pem())
    client = inside.connect(credential=credential)
    holders = [Sealer(inside, shown(credential)) for _ in range(2)]
    for holder in holders:
        holder.give(holder.half_message())
    assert inside.engine.areas_free() == 0
    # The first has no area for what it has to say, until those after it have said theirs.
    inside.when_reloaded = lambda: inside.engine.trust_clients(authority.pem())
    inside.signals.ask_reload()
    inside.loop.turn(longest_ms=0)
    assert not inside.loop.sessions.waiting
    assert len(inside.lines(r"conn \d .* closed revoked in=0 .*")) == 3
    assert client.ended_cleanly()
    for holder in holders:
        holder.plain.close()
