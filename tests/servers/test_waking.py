"""The loop never sleeps while somebody could go on: random peers on a clock that the test turns.

What the loop waits for is compared with what a turn does: a turn that comes before the wait is
over, with nothing ready, must change nothing, neither now nor a moment before the wait ends; and a
loop with nothing to do must sleep.
"""

import contextlib
import os
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from peers.liar import codes
from peers.liar.client import Client as Liar
from peers.liar.client import Credential
from servers.settings import Settings
from tests.servers.certificates import Authority, write_identity
from tests.servers.inside import KEY_UPDATE, Inside, shown

FOR_EVER = 10**9


class Peer:
    """A client that does a step when told to, a right one or a rude one, and never waits."""

    def __init__(self, inside: Inside, credential: Credential | None) -> None:
        self.plain = socket.create_connection(("127.0.0.1", inside.port))
        self.plain.setblocking(False)
        self.plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.liar = Liar(b"", server_name="localhost", credential=credential)
        self.pending = self.liar.hello()
        self.half = False

    def say(self, count: int) -> None:
        """Send some of what there is to say."""
        with contextlib.suppress(OSError):
            self.pending = self.pending[self.plain.send(self.pending[:count]) :]

    def read(self) -> None:
        """Read what there is; the second flight is the answer to the first."""
        with contextlib.suppress(OSError):
            self.liar.read(self.plain.recv(100_000))
        if self.liar.state == "flight":
            self.pending += self.liar.finish()

    def add(self, size: int) -> None:
        """A record of application data, where one may stand."""
        if self.liar.state == "established" and not self.half:
            self.pending += self.liar.send(b"x" * size)

    def message(self) -> None:
        """One half of a KeyUpdate, in a record of its own."""
        if self.liar.state != "established":
            return
        piece = KEY_UPDATE[3:] if self.half else KEY_UPDATE[:3]
        self.pending += self.liar.protect(codes.HANDSHAKE, piece)
        if self.half:
            self.liar.next_key()
        self.half = not self.half

    def leave(self, how: str) -> None:
        if how == "close_notify" and self.liar.state == "established":
            self.pending += self.liar.close_notify()
        with contextlib.suppress(OSError):
            if how == "end":
                self.plain.shutdown(socket.SHUT_WR)
            elif how == "reset":
                # Closing with this set sends a reset instead of an end.
                self.plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.plain.close()


class Told:
    """An epoll that remembers whether it had something to tell."""

    def __init__(self, real) -> None:
        self._real = real
        self.events: list[tuple[int, int]] = []

    def poll(self, *arguments):
        self.events = self._real.poll(*arguments)
        return self.events

    def __getattr__(self, name):
        return getattr(self._real, name)


class World:
    """A server, its peers, and the one question."""

    def __init__(self, identity: Path, limits: Settings, roots: bytes, credential) -> None:
        self.inside = Inside(identity, limits, clients=roots)
        # Resting areas are free areas to the server; without them a shortage comes sooner.
        self.inside.engine.set_resting(0)
        self.inside.when_reloaded = lambda: self.inside.engine.trust_clients(roots)
        self.poll = Told(self.inside.loop._poll)
        vars(self.inside.loop)["_poll"] = self.poll
        self._credential = credential
        self.peers: list[Peer] = []

    def do(self, name: str, which: int, number: int) -> None:
        """One step of somebody, or of the clock."""
        if name == "open" or not self.peers:
            self.peers.append(Peer(self.inside, self._credential if which % 2 else None))
            self.peers[-1].say(number % 3)
            return
        peer = self.peers[which % len(self.peers)]
        if name == "get on":
            for _ in range(3):
                peer.say(FOR_EVER)
                self.turn()
                peer.read()
        elif name == "say":
            peer.say((1, 7, 100, FOR_EVER)[number % 4])
        elif name == "read":
            peer.read()
        elif name == "add":
            peer.add((1, 5000, 16384)[number % 3])
        elif name == "message":
            peer.message()
        elif name == "leave":
            peer.leave(("close_notify", "end", "reset")[number % 3])
        elif name == "time":
            self.inside.clock.now += (1, 50, 400, 999)[number % 4]
        elif name == "reload":
            self.inside.signals.ask_reload()
            os.write(self.inside.signals._write_fd, b"\1")

    def turn(self) -> bool:
        """A turn; whether something was ready for it."""
        self.inside.loop.turn(longest_ms=0)
        return bool(self.poll.events)

    def wait_ms(self) -> int:
        seconds = self.inside.loop._timeout(None)
        return FOR_EVER if seconds < 0 else round(seconds * 1000)

    def look(self) -> tuple[object, ...]:
        """All that a turn can change."""
        loop, table, sessions = self.inside.loop, self.inside.loop.table, self.inside.loop.sessions
        return (
            *(bytes(column.cast("B")) for column in (table.stage, table.watch, table.received)),
            *(table.numbers, list(sessions.waiting), dict(sessions.holding)),
            *(sorted(sessions._transfer.held), self.inside.engine.areas_free()),
            *(self.inside.reloads, self.inside.out.getvalue(), self.inside.err.getvalue()),
            loop.front._paused_until,
        )

    def check(self, passed: int, *, asleep: bool) -> None:
        """Whatever can go on is not waited for; whatever cannot is."""
        for _ in range(200):
            if not self.turn() and self.wait_ms():
                break
        else:
            raise AssertionError("it never sleeps")
        # The clock goes on between a turn and the wait that follows it.
        self.inside.clock.now += passed
        wait = self.wait_ms()
        if asleep and wait:
            self.inside.clock.now += min(wait, 30_000) - 1
        before = self.look()
        if wait and not self.turn():
            assert self.look() == before, "it would have slept"

    def close(self) -> None:
        loop = self.inside.loop
        for peer in self.peers:
            peer.plain.close()
        for _ in range(20):
            self.inside.clock.now += 100_000
            self.turn()
        left = loop.table.held(), list(loop.sessions.waiting), list(loop.sessions.holding)
        assert left == (0, [], [])
        assert loop.sessions._transfer.held == {}
        assert self.inside.engine.residue() == 0
        assert self.inside.engine.areas_free() == self.inside.engine.areas()
        assert self.inside.err.getvalue() == ""
        loop.front.close()
        self.poll.close()
        os.close(self.inside.signals.wake_fd)
        os.close(self.inside.signals._write_fd)


@pytest.fixture(scope="module")
def clients(tmp_path_factory) -> tuple[Path, bytes, Credential]:
    """A server's directory, the roots of its clients, and one of them."""
    directory = tmp_path_factory.mktemp("waking")
    write_identity(directory, "localhost")
    authority = Authority("Clients")
    made = authority.client(directory, "device")
    return directory, authority.pem(), shown(made)


# Peers talk more than they leave, or nobody would ever be established.
NAMES = [
    *(["open"] * 3 + ["get on"] * 4 + ["message"] * 2 + ["say"] * 2),
    *("read", "add", "leave", "time", "reload"),
]
STEPS = st.tuples(
    st.sampled_from(NAMES),
    st.integers(0, 7),
    st.integers(0, 11),
    st.sampled_from((0, 1, 1, 2)),
    st.sampled_from((False, False, True)),
)
LIMITS = st.builds(
    lambda connections, areas, **rest: Settings(
        connections=connections, areas=min(areas, connections), **rest
    ),
    connections=st.sampled_from((4, 8)),
    areas=st.sampled_from((2, 3, 8)),
    rate=st.sampled_from((1, 3, 1000, 1000)),
    handshakes=st.sampled_from((1, 2, 8)),
    handshake_timeout=st.sampled_from((700, 10_000)),
    idle=st.sampled_from((900, 60_000)),
)


@settings(
    max_examples=100,
    deadline=None,
    # Making a failure small would take longer than a test may.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(limits=LIMITS, steps=st.lists(STEPS, min_size=10, max_size=60))
def test_whatever_can_go_on_is_never_waited_for(clients, limits, steps):
    world = World(clients[0], limits, clients[1], clients[2])
    try:
        for name, which, number, passed, asleep in steps:
            world.do(name, which, number)
            world.check(passed, asleep=asleep)
    finally:
        world.close()
