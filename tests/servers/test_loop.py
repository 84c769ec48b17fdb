"""The loop's deadlines, bounds and faults, on a clock that the test turns."""

import os
import signal

from engine import Engine, Event
from servers.connections import HANDSHAKE, OPEN, QUEUED
from servers.loop import SPEAK_MS, STOP_MS
from tests.servers.inside import Client


def test_a_handshake_that_is_silent_ends_at_its_deadline_and_not_before(start):
    inside = start(handshake_timeout=10_000)
    plain = inside.dial()
    inside.turn(9_999)
    assert inside.lines() == []
    inside.turn(1)
    peer = f"127.0.0.1:{plain.getsockname()[1]}"
    assert inside.lines() == [f"conn 1 peer={peer} closed handshake-timeout in=0 ms=10000"]
    assert plain.recv(1) == b""


def test_the_queue_and_the_handshake_have_a_deadline_each(start):
    inside = start(handshakes=1, handshake_timeout=10_000)
    first = inside.dial()
    inside.turn(5_000)
    second, third = inside.dial(), inside.dial()
    assert (inside.loop.table.count[HANDSHAKE], inside.loop.table.count[QUEUED]) == (1, 2)
    # The first times out; the oldest of the queue has its place, and all of its own deadline.
    inside.turn(5_000)
    assert inside.loop.table.count[HANDSHAKE] == 1
    inside.turn(5_000)
    assert len(inside.lines(r"conn 3 .* closed handshake-timeout in=0 ms=10000")) == 1
    inside.turn(4_999)
    assert inside.lines(r"conn 2 .*") == []
    inside.turn(1)
    assert len(inside.lines(r"conn 2 .* closed handshake-timeout in=0 ms=15000")) == 1
    for plain in (first, second, third):
        plain.close()


def test_the_log_says_how_long_it_waited_and_shook_hands(start):
    inside = start(handshakes=1)
    silent = inside.dial()
    client = Client(inside)
    inside.clock.now += 250
    inside.hang_up(silent)
    inside.turn()
    inside.clock.now += 40
    client.shake_hands()
    line = inside.lines(r"conn 2 .* established .*")[0]
    assert line.endswith(" waited=250 handshake=40")
    assert "ticket=none client=- fp=- " in line


def test_at_most_half_the_areas_are_in_handshakes(start):
    inside = start(connections=10, areas=5, handshakes=32)
    plain = [inside.dial() for _ in range(6)]
    assert inside.loop.table.count[HANDSHAKE] == 2
    assert inside.loop.table.count[QUEUED] == 4
    for one in plain:
        one.close()


def test_a_closed_connection_of_the_queue_is_found_out_when_it_is_served(start):
    inside = start(handshakes=1)
    first, second = inside.dial(), inside.dial()
    second.close()
    inside.turn()
    assert inside.lines() == []
    inside.hang_up(first)
    inside.until(lambda: len(inside.lines()) == 2)
    assert len(inside.lines(r"conn 1 .* closed tls-peer-closed .*")) == 1
    assert len(inside.lines(r"conn 2 .* closed tls-peer-closed .*")) == 1


def test_idle_counts_from_the_last_byte(start):
    inside = start(idle=60_000)
    client = inside.connect()
    inside.turn(59_999)
    assert client.echo(b"still here") == b"still here"
    inside.turn(59_999)
    assert inside.lines(r".* closed .*") == []
    inside.turn(1)
    assert len(inside.lines(r"conn 1 .* closed idle in=10 ms=119999")) == 1
    assert client.ended_cleanly()


def test_a_drained_connection_is_closed_after_a_moment(start):
    inside = start(idle=1_000)
    client = inside.connect()
    inside.turn(1_000)
    assert inside.loop.table.held() == 1
    assert inside.engine.event(0) == Event.FREE
    inside.turn(999)
    assert inside.loop.table.held() == 1
    inside.turn(1)
    assert inside.loop.table.held() == 0
    assert len(inside.lines(r".* closed .*")) == 1
    client.plain.close()


def test_half_a_record_holds_an_area_until_its_time_is_up(start):
    inside = start(connections=4, areas=2, handshake_timeout=10_000)
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


def test_a_whole_record_ends_the_time_of_its_area(start):
    inside = start(connections=4, areas=2, handshake_timeout=10_000)
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


def test_what_no_area_is_free_for_stays_in_the_kernel(start):
    inside = start(connections=6, areas=2, handshake_timeout=10_000)
    clients = [inside.connect() for _ in range(3)]
    halves = [client.record(b"half") for client in clients]
    for client, record in zip(clients, halves, strict=True):
        client.give(record[:5])
    inside.until(lambda: list(inside.loop.sessions.waiting) == [2])
    assert inside.engine.areas_free() == 0
    assert inside.loop.sessions._transfer.held == {}
    # It waits without being watched, so the loop sleeps; a queued handshake waits behind it.
    queued = inside.dial()
    assert inside.loop.table.count[QUEUED] == 1
    clients[0].give(halves[0][5:])
    inside.until(lambda: inside.engine.holds_area(2))
    assert not inside.loop.sessions.waiting
    clients[1].give(halves[1][5:])
    inside.until(lambda: inside.loop.table.count[HANDSHAKE] == 1)
    clients[2].give(halves[2][5:])
    for client in clients:
        assert client.read(4) == b"half"
    queued.close()


def test_a_connection_that_waits_for_an_area_is_closed_when_idle(start):
    inside = start(connections=6, areas=2, handshake_timeout=10_000, idle=3_000)
    clients = [inside.connect() for _ in range(3)]
    for client in clients:
        client.give(client.record(b"half")[:5])
    inside.until(lambda: inside.loop.sessions.waiting)
    inside.turn(3_000)
    assert len(inside.lines(r".* closed idle in=0 ms=3000")) == 3
    assert not inside.loop.sessions.waiting


def test_close_notify_waits_for_an_area_too(start):
    inside = start(connections=6, areas=2, handshake_timeout=900, idle=1_000)
    clients = [inside.connect() for _ in range(3)]
    inside.turn(500)
    for client in clients[1:]:
        client.give(client.record(b"half")[:5])
    inside.until(lambda: inside.engine.areas_free() == 0)
    inside.turn(500)
    # The first is idle, and the areas are with the others, who have theirs for 400 ms more.
    assert list(inside.loop.sessions.waiting) == [0]
    assert inside.lines(r".* closed .*") == []
    inside.turn(400)
    assert len(inside.lines(r"conn 1 .* closed idle in=0 ms=1400")) == 1
    assert len(inside.lines(r".* closed record-timeout .* ms=1400")) == 2
    assert all(client.ended_cleanly() for client in clients)


def test_a_stop_says_close_notify_where_stalled_records_had_the_areas(start):
    inside = start(connections=6, areas=2)
    clients = [inside.connect() for _ in range(4)]
    for client in clients[2:]:
        client.give(client.record(b"half")[:5])
    inside.until(lambda: inside.engine.areas_free() == 0)
    inside.signals.ask_stop()
    inside.turn()
    assert all(client.ended_cleanly() for client in clients)


def test_a_full_table_refuses_and_a_free_place_is_taken_again(start):
    inside = start(connections=2)
    first, second = inside.connect(), inside.connect()
    third = inside.dial()
    port = third.getsockname()[1]
    assert inside.lines("refused .*") == [f"refused 3 peer=127.0.0.1:{port} full"]
    inside.hang_up(first.plain)
    fourth = inside.connect()
    assert fourth.echo(b"in") == b"in"
    assert second.echo(b"in") == b"in"
    assert len(inside.lines(r"conn 4 .* established .*")) == 1


def test_the_rate_bounds_starts_in_any_second(start):
    inside = start(rate=3)
    plain = [inside.dial() for _ in range(8)]
    assert inside.loop.table.count[HANDSHAKE] == 3
    inside.turn(999)
    assert inside.loop.table.count[HANDSHAKE] == 3
    inside.turn(1)
    assert inside.loop.table.count[HANDSHAKE] == 6
    inside.turn(1_000)
    assert inside.loop.table.count[HANDSHAKE] == 8
    for one in plain:
        one.close()


class Faulty(Engine):
    """An engine with a defect: it raises in one call when told to."""

    fault = ""

    def feed(self, slot, data):
        if self.fault == "feed":
            self.fault = ""
            raise RuntimeError(bytes(data).hex())
        return super().feed(slot, data)

    def drop(self, slot):
        if self.fault == "drop":
            self.fault = ""
            super().drop(slot)
            raise RuntimeError("drop")
        super().drop(slot)


def test_a_defect_ends_its_connection_and_no_other(start):
    engine = Faulty.server(8, 8)
    inside = start(engine, connections=8)
    first, second = inside.connect(), inside.connect()
    engine.fault = "feed"
    record = first.record(b"secret")
    first.give(record)
    inside.until(lambda: inside.lines(r"conn 1 .* closed error in=0 ms=0"))
    assert inside.err.getvalue().startswith("residue serve: error: conn 1: RuntimeError at test_")
    assert record.hex() not in inside.err.getvalue()
    assert second.echo(b"goes on") == b"goes on"
    third = inside.connect()
    assert third.echo(b"in its place") == b"in its place"


def test_a_slot_that_cannot_be_freed_is_not_used_again(start):
    engine = Faulty.server(2, 2)
    inside = start(engine, connections=2)
    first = inside.connect()
    engine.fault = "drop"
    inside.hang_up(first.plain)
    assert inside.loop.table.held() == 0
    second, third = inside.dial(), inside.dial()
    assert len(inside.lines("refused 3 .* full")) == 1
    for plain in (second, third):
        plain.close()


def test_a_reload_that_raises_is_a_fault_and_no_end(start):
    inside = start()
    inside.loop._reload = lambda: 1 / 0
    inside.signals.ask_reload()
    inside.turn()
    assert "error: reload: ZeroDivisionError" in inside.err.getvalue()
    assert inside.connect().echo(b"on") == b"on"


def test_signals_wake_the_loop_and_do_nothing_else(start):
    inside = start()
    with inside.signals:
        client = inside.connect()
        os.kill(os.getpid(), signal.SIGHUP)
        assert inside.reloads == 0
        inside.loop.turn()  # would wait for ever without the wake
        assert inside.reloads == 1
        os.kill(os.getpid(), signal.SIGTERM)
        assert not inside.loop.over()
        inside.loop.turn()
        assert inside.loop.table.count[OPEN] == 0
        assert len(inside.lines(r"conn 1 .* closed shutdown in=0 ms=0")) == 1
        assert client.ended_cleanly()
        client.plain.close()
        inside.until(inside.loop.over)


def test_a_stop_gives_up_when_its_time_is_over(start):
    inside = start()
    client = inside.connect()
    inside.signals.ask_stop()
    inside.turn()
    assert not inside.loop.over()
    inside.clock.now += STOP_MS - 1
    assert not inside.loop.over()
    inside.clock.now += 1
    assert inside.loop.over()
    client.plain.close()


def test_a_stop_that_cannot_tell_everybody_in_time_closes_the_rest(start):
    inside = start()
    clients = [inside.connect() for _ in range(3)]
    reads = iter([0, SPEAK_MS + 1])
    real = inside.clock.monotonic_ms
    inside.signals.ask_stop()
    inside.clock.monotonic_ms = lambda: real() + next(reads, SPEAK_MS + 1)
    inside.loop._obey(real())
    del inside.clock.monotonic_ms
    assert inside.loop.table.count[OPEN] == 2
    inside.loop._end_all(inside.clock.now)
    assert len(inside.lines(r"conn \d .* closed shutdown .*")) == 3
    for client in clients:
        client.plain.close()
