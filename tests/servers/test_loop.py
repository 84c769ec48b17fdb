"""The loop's faults, signals and stops, on a clock that the test turns."""

import contextlib
import os
import signal

import pytest

from engine import Engine, Event
from servers.connections import OPEN
from servers.loop import SPEAK_MS, STOP_MS


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
    assert isinstance(engine, Faulty)
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


CALLS = ["serve", "feed", "take", "recv", "send", "finish", "event", "failure", "holds_area"]


class Breaking(Engine):
    """An engine that raises once in the call that is named."""

    fault = ""

    def __getattribute__(self, name):
        if name == "fault" or name != self.fault:
            return super().__getattribute__(name)
        return self._break

    def _break(self, *arguments):
        self.fault = ""
        raise MemoryError


@pytest.mark.parametrize("areas", [2, 8])
@pytest.mark.parametrize("call", [*CALLS, "suite", "set_time", "client_generation"])
def test_a_defect_in_any_call_ends_one_connection_at_most(start, call, areas):
    engine = Breaking.server(8, areas)
    assert isinstance(engine, Breaking)
    inside = start(engine, connections=8, areas=areas)
    steady = inside.connect()
    victim = inside.client()
    engine.fault = call
    victim.give(victim.flight())
    with contextlib.suppress(OSError):
        victim.pull()
        victim.plain.send(victim.flight())
        inside.turn()
        victim.plain.send(victim.record(b"secret"))
        inside.turn()
    inside.signals.ask_reload()
    victim.plain.close()
    inside.turn()
    assert engine.fault == "" or call in ("failure", "finish")
    engine.fault = ""
    inside.until(lambda: inside.loop.table.held() == 1)
    assert inside.lines(r"conn 1 .* closed .*") == []
    assert steady.echo(b"goes on") == b"goes on"
    assert inside.connect().echo(b"and others come") == b"and others come"


def test_a_slot_that_cannot_be_freed_is_not_used_again(start):
    engine = Faulty.server(2, 2)
    assert isinstance(engine, Faulty)
    inside = start(engine, connections=2)
    first = inside.connect()
    engine.fault = "drop"
    inside.hang_up(first.plain)
    assert inside.loop.table.held() == 0
    second = inside.connect()
    third = inside.dial()
    assert len(inside.lines("refused 3 .* full")) == 1
    for plain in (second.plain, third):
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
