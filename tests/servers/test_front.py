"""The front door: who is silent, who waits for a handshake place, and for how long."""

import errno
import socket
import struct

import pytest

from servers.connections import HANDSHAKE, QUEUED, SILENT
from servers.front import PAUSE_MS
from tests.servers.inside import HELLO, Client


def test_who_says_nothing_has_no_place_and_no_area(start):
    inside = start(handshakes=2)
    silent = [inside.dial() for _ in range(8)]
    table = inside.loop.table
    assert (table.count[SILENT], table.count[QUEUED], table.count[HANDSHAKE]) == (8, 0, 0)
    assert inside.engine.areas_free() == inside.engine.areas()
    assert inside.connect().echo(b"at once") == b"at once"
    assert len(inside.lines(r"conn 9 .* established .* waited=0 handshake=0")) == 1
    for plain in silent:
        plain.close()


def test_a_connection_that_is_silent_ends_at_its_deadline_and_not_before(start):
    inside = start(handshake_timeout=10_000)
    plain = inside.dial()
    inside.turn(9_999)
    assert inside.lines() == []
    inside.turn(1)
    peer = f"127.0.0.1:{plain.getsockname()[1]}"
    assert inside.lines() == [f"conn 1 peer={peer} closed handshake-timeout in=0 ms=10000"]
    assert plain.recv(1) == b""


def test_silence_the_queue_and_the_handshake_have_a_deadline_each(start):
    inside = start(handshakes=1, handshake_timeout=10_000)
    first = inside.hello()
    inside.turn(5_000)
    second = inside.dial()
    inside.turn(1_000)
    inside.give(second, HELLO[:1])
    third = inside.hello()
    assert (inside.loop.table.count[HANDSHAKE], inside.loop.table.count[QUEUED]) == (1, 2)
    # The first times out; the oldest of the queue has its place, and all of its own deadline.
    inside.turn(4_000)
    assert len(inside.lines(r"conn 1 .* closed handshake-timeout in=0 ms=10000")) == 1
    assert inside.loop.table.count[HANDSHAKE] == 1
    inside.turn(6_000)
    assert len(inside.lines(r"conn 3 .* closed handshake-timeout in=0 ms=10000")) == 1
    # No byte puts a deadline back.
    inside.give(second, HELLO[1:])
    inside.turn(3_999)
    assert inside.lines(r"conn 2 .*") == []
    inside.turn(1)
    assert len(inside.lines(r"conn 2 .* closed handshake-timeout in=0 ms=15000")) == 1
    for plain in (first, second, third):
        plain.close()


def test_the_log_says_how_long_it_waited_and_shook_hands(start):
    inside = start(handshakes=1)
    slow = inside.hello()
    client = Client(inside)
    inside.clock.now += 200
    client.give(client.flight())
    inside.clock.now += 50
    inside.hang_up(slow)
    inside.turn()
    inside.clock.now += 40
    client.shake_hands()
    line = inside.lines(r"conn 2 .* established .*")[0]
    assert line.endswith(" waited=250 handshake=40")
    assert "ticket=none client=- fp=- " in line


def test_at_most_half_the_areas_are_in_handshakes(start):
    inside = start(connections=10, areas=5, handshakes=32)
    plain = [inside.hello() for _ in range(6)]
    assert inside.loop.table.count[HANDSHAKE] == 2
    assert inside.loop.table.count[QUEUED] == 4
    for one in plain:
        one.close()


def test_a_closed_connection_of_the_queue_is_found_out_when_it_is_served(start):
    inside = start(handshakes=1)
    first, second = inside.hello(), inside.hello()
    second.close()
    inside.turn()
    assert inside.lines() == []
    inside.hang_up(first)
    inside.until(lambda: len(inside.lines()) == 2)
    assert len(inside.lines(r"conn 1 .* closed tls-peer-closed .*")) == 1
    assert len(inside.lines(r"conn 2 .* closed tls-peer-closed .*")) == 1


@pytest.mark.parametrize("how", ["an end", "a reset"])
def test_who_leaves_without_a_word_uses_none_of_the_rate(start, how):
    inside = start(rate=1)
    for _ in range(5):
        plain = inside.dial()
        if how == "a reset":
            # Closing with this set sends a reset instead of an end.
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        inside.hang_up(plain)
    assert len(inside.lines(r"conn \d .* closed tls-peer-closed in=0 ms=0")) == 5
    assert inside.connect().echo(b"the first to begin") == b"the first to begin"


def test_the_rate_bounds_starts_in_any_second(start):
    inside = start(rate=3)
    plain = [inside.hello() for _ in range(8)]
    assert inside.loop.table.count[HANDSHAKE] == 3
    inside.turn(999)
    assert inside.loop.table.count[HANDSHAKE] == 3
    inside.turn(1)
    assert inside.loop.table.count[HANDSHAKE] == 6
    inside.turn(1_000)
    assert inside.loop.table.count[HANDSHAKE] == 8
    for one in plain:
        one.close()


def test_a_start_that_the_rate_allows_by_now_is_not_waited_for(start):
    inside = start(rate=1)
    first, second = inside.hello(), inside.hello()
    inside.clock.now += 999
    inside.loop.turn(longest_ms=0)
    assert inside.loop.table.count[QUEUED] == 1
    # A millisecond passes between the end of a turn and the wait that follows.
    inside.clock.now += 1
    assert inside.loop._timeout(None) == 0
    inside.loop.turn()
    assert inside.loop.table.count[QUEUED] == 0
    for plain in (first, second):
        plain.close()


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


def test_in_a_full_table_the_longest_silent_makes_room(start):
    inside = start(connections=3)
    speaking = inside.connect()
    silent = [inside.dial(), inside.dial()]
    client = inside.connect()
    assert len(inside.lines(r"conn 2 .* closed full in=0 ms=0")) == 1
    assert silent[0].recv(1) == b""
    assert client.echo(b"in") == b"in"
    assert speaking.echo(b"in") == b"in"
    inside.give(silent[1], HELLO[:1])
    assert len([inside.dial()]) == 1
    assert len(inside.lines(r"refused 5 .* full")) == 1


class Unwatchable:
    """An epoll that has no memory for one more descriptor, when told so (epoll_ctl(2))."""

    def __init__(self, real):
        self._real = real
        self.full = False

    def register(self, fd, mask):
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._real.register(fd, mask)

    def __getattr__(self, name):
        return getattr(self._real, name)


@pytest.fixture
def unwatchable(start):
    """A server over such an epoll."""
    inside = start()
    inside.loop._poll = Unwatchable(inside.loop._poll)
    inside.loop.front._poll = inside.loop.sessions._poll = inside.loop._poll
    return inside


def test_a_connection_that_cannot_be_watched_ends_and_no_other(unwatchable):
    inside = unwatchable
    client = inside.connect()
    inside.loop._poll.full = True
    lost = inside.dial()
    assert len(inside.lines(r"conn 2 .* closed error in=0 ms=0")) == 1
    assert lost.recv(1) == b""
    assert client.echo(b"goes on") == b"goes on"
    inside.loop._poll.full = False
    assert inside.connect().echo(b"and others again") == b"and others again"


def test_a_queued_connection_that_cannot_be_watched_ends_and_no_other(unwatchable):
    inside = unwatchable
    client, silent = inside.connect(), inside.dial()
    inside.loop._poll.full = True
    inside.give(silent, HELLO[:1])
    assert len(inside.lines(r"conn 2 .* closed error in=0 ms=0")) == 1
    assert client.echo(b"goes on") == b"goes on"


class Exhausted:
    """A listening socket without a descriptor for the next connection, when told so."""

    def __init__(self, real, number):
        self._real = real
        self.number = number

    def accept(self):
        if self.number:
            raise OSError(self.number, "nothing left")
        return self._real.accept()

    def __getattr__(self, name):
        return getattr(self._real, name)


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM], ids=errno.errorcode.get
)
def test_accepting_pauses_when_the_system_has_nothing_left(unwatchable, number):
    inside = unwatchable
    front = inside.loop.front
    ((fd, listener),) = front._listeners.items()
    front._listeners[fd] = exhausted = Exhausted(listener, number)
    with socket.create_connection(("127.0.0.1", inside.port)) as waiting:
        inside.until(lambda: "cannot accept for 100 ms" in inside.err.getvalue())
        # It sleeps through the pause; and goes on pausing when it cannot listen again.
        assert inside.loop._timeout(None) == PAUSE_MS / 1000
        inside.loop._poll.full = True
        inside.turn(PAUSE_MS)
        assert inside.loop._timeout(None) == PAUSE_MS / 1000
        inside.loop._poll.full, exhausted.number = False, 0
        inside.turn(PAUSE_MS)
        inside.until(lambda: inside.loop.table.count[SILENT] == 1)
        assert inside.err.getvalue().count("\n") == 2
        waiting.close()


def test_a_connection_that_was_gone_before_it_was_accepted_is_nobodys_fault(unwatchable):
    inside = unwatchable
    front = inside.loop.front
    ((fd, listener),) = front._listeners.items()
    front._listeners[fd] = Exhausted(listener, errno.ECONNABORTED)
    with socket.create_connection(("127.0.0.1", inside.port)):
        inside.turn()
        front._listeners[fd] = listener
        inside.until(lambda: inside.loop.table.count[SILENT] == 1)
    assert inside.err.getvalue() == ""
