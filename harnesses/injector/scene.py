"""What every injection is made on: an engine, a connection at work in it, and a neighbour.

Nothing here is random and nothing is kept between two scenes, so the n-th line of a call is the
same line each time, and what an injection broke is in no later one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from engine import Engine, Event
from engine.layout import ROOM_LEN
from peers.liar import Client, Credential
from peers.liar.identities import authority, make
from peers.liar.observer import Ticket
from peers.liar.record import Protection
from peers.liar.schedule import Suite

from .. import fixtures
from ..build_identity import CLIENT_ROOT
from ..build_identity import client as client_identity
from ..whitebox import core_of, put_core

SLOT, NEIGHBOUR = 0, 1
SLOTS = 4
FEW, MANY = 1, 3
"""Areas: so few that every lease takes a resting neighbour's, and more than are wanted."""

NOW_MS = fixtures.NOW_MS
TEXT = b"what the client keeps to itself " * 9
ANSWER = b"what the server keeps to itself " * 9
LARGE_RECORD = bytes(range(256)) * 64
ROOM = 70_000
# What a connection comes to: its call's answer, then what `Scene.go_on` tells.
STORY = (
    "answer",
    "event",
    "failure",
    "end",
    "plaintext",
    "output",
    "count of alerts",
    "hold on an area",
    "identity",
)


@dataclass(frozen=True)
class Setting:
    """How a scene differs from the usual one."""

    areas: int = MANY
    tickets: bool = True
    mode: int = 0
    checked: bool = False
    """The server checks its own signature."""
    aes: bool = True


class Peer:
    """A client of ours and the slot that serves it; a program as honest as its calls are."""

    def __init__(self, engine: Engine, slot: int, client: Client) -> None:
        self.engine = engine
        self.slot = slot
        self.client = client
        self.received = bytearray()

    def serve(self) -> Peer:
        """The connection begins."""
        self.engine.serve(self.slot, NOW_MS)
        return self

    def say(self, data: bytes) -> None:
        """The engine takes all of it; what there is to take and to receive makes room."""
        while data:
            taken = self.engine.feed(self.slot, data)
            data = data[taken:]
            if data and not taken and not self.hear() and not self.receive():
                raise AssertionError("feed takes nothing, and there is nothing to take")

    def hear(self) -> int:
        """The client reads all that the engine says; how many bytes."""
        out, heard = bytearray(ROOM), 0
        while count := self.engine.take(self.slot, out):
            self.client.read(bytes(out[:count]))
            heard += count
        return heard

    def receive(self) -> int:
        """The program receives all that there is; how many bytes."""
        out, count = bytearray(ROOM), 0
        while (got := self.engine.recv(self.slot, out)) > 0:
            self.received += out[:got]
            count += got
        return count

    def greet(self) -> Peer:
        """To the server's whole flight, over a retry where there is one."""
        self.serve()
        self.say(self.client.hello())
        self.hear()
        if self.client.state == "retry":
            self.say(self.client.hello())
            self.hear()
        return self

    def establish(self) -> Peer:
        """A whole handshake, and the tickets taken."""
        self.greet()
        self.say(self.client.finish())
        self.hear()
        return self

    def revive(self, seed: str, aes: bool) -> Peer:
        """As after `establish` and a record each way, for a twelfth of what a handshake costs."""
        kept = _established(seed, aes)
        put_core(self.engine, self.slot, kept.core)
        client = self.client
        client.state = "established"
        client.reading = Protection(kept.suite, kept.reading, "application")
        client.reading.sequence = kept.heard
        client.writing = Protection(kept.suite, kept.writing, "application")
        client.tickets = list(kept.tickets)
        self.echo()
        return self

    def echo(self) -> None:
        """A record each way, and each arrives as it was sent."""
        self.receive()
        for word in (b"ping", b"pong" * 99):
            before = len(self.received)
            self.say(self.client.send(word))
            self.receive()
            if self.received[before:] != word:
                raise AssertionError("what the client sent is not what is received")
            before = len(self.client.received)
            if self.engine.send(self.slot, word) != len(word):
                raise AssertionError("send does not take a record")
            self.hear()
            if self.client.received[before:] != word:
                raise AssertionError("what the server sent is not what is received")


class Scene:
    """One engine with a neighbour that is established and idle, and the connection in SLOT."""

    def __init__(self, setting: Setting, client: Client) -> None:
        self.engine = fixtures.server(
            SLOTS,
            setting.areas,
            hardware_aes=setting.aes,
            check_signature=setting.checked,
            tickets=setting.tickets,
        )
        self.neighbour = Peer(self.engine, NEIGHBOUR, honest("neighbour")).revive(
            "neighbour", setting.aes
        )
        self.engine.client_auth_mode(setting.mode)
        self.peer = Peer(self.engine, SLOT, client)
        self.aes = setting.aes
        self.rest = b""
        """What the client has said and the engine has not taken."""

    def establish(self) -> None:
        """The connection is established, and rests where it may."""
        if self.peer.client.credential is None:
            self.peer.revive("client", self.aes)
        else:
            self.peer.establish()

    def go_on(self) -> tuple[object, ...]:
        """Bring the connection to its end, as an honest program and client do, and tell of it."""
        engine, peer = self.engine, self.peer
        client = peer.client
        if engine.event(SLOT) == Event.FREE:
            return ("free",)
        while engine.event(SLOT) != Event.FAILED:
            rest, self.rest = self.rest, b""
            peer.say(rest)
            peer.hear()
            if client.state in ("start", "retry"):
                self.rest = client.hello()
            elif client.state == "flight":
                self.rest = client.finish()
            elif not self.rest:
                break
        peer.receive()
        if engine.event(SLOT) == Event.CLOSED:
            engine.send(SLOT, ANSWER)
        elif client.state == "established" and engine.event(SLOT) == Event.ESTABLISHED:
            peer.echo()
        peer.hear()
        ending = engine.event(SLOT), engine.failure(SLOT), engine.recv(SLOT, bytearray(9))
        said = bytes(peer.received), bytes(client.received), len(client.alerts)
        return *ending, *said, engine.holds_area(SLOT), engine.peer_verified(SLOT)


def honest(seed: str, **options: object) -> Client:
    """A client at the fixtures' time."""
    return Client(seed, now_ms=NOW_MS, **options)  # type: ignore[arg-type]


class Kept(NamedTuple):
    """An established connection: the server's core, and what its client knows."""

    core: bytes
    suite: Suite
    reading: bytes
    heard: int
    writing: bytes
    tickets: tuple[Ticket, ...]


@lru_cache(maxsize=8)
def _established(seed: str, aes: bool) -> Kept:
    """A handshake that is made once, with an engine of its own."""
    engine = fixtures.server(SLOTS, MANY, hardware_aes=aes)
    client = honest(seed)
    Peer(engine, SLOT, client).establish()
    engine.set_resting(0)
    reading, writing = client.reading, client.writing
    assert reading is not None and writing is not None
    return Kept(
        core_of(engine, SLOT),
        reading.suite,
        reading.secret,
        reading.sequence,
        writing.secret,
        tuple(client.tickets),
    )


@lru_cache(maxsize=3)
def credential(kind: str) -> Credential:
    """Of a client that is believed, with a leaf that its slot's room holds (`small`) or does not
    (`large`), and of one whom nobody knows (`stranger`)."""
    if kind == "small":
        return client_identity("p256").credential
    if kind == "stranger":
        return make([], issuer=authority("harness stranger"), usage="client").credential
    names = [f"device-{number}.of-a-long-name.example" for number in range(80)]
    made = make(names, issuer=CLIENT_ROOT, usage="client", label="large").credential
    assert len(made.chain[0]) > ROOM_LEN
    return made


Asker = Callable[[Scene], "Call"]


@dataclass
class Call:
    """A call that is about to be made: what it lends to the engine, and what its answer means."""

    thunk: Callable[[], object]
    lent: tuple[bytes | bytearray | memoryview, ...] = ()
    answered: Callable[[object], None] = lambda answer: None


def calling(method: str, *arguments: object) -> Asker:
    """A call whose answer changes nothing outside."""
    return lambda scene: Call(partial(getattr(scene.engine, method), *arguments))


def feeding(make_data: Callable[[Scene], bytes | bytearray | memoryview]) -> Asker:
    """feed: what is not taken is fed later."""

    def ask(scene: Scene) -> Call:
        data = make_data(scene)

        def answered(taken: object) -> None:
            assert isinstance(taken, int)
            scene.rest = bytes(data[taken:]) + scene.rest

        return Call(partial(scene.engine.feed, SLOT, data), (data,), answered)

    return ask


def taking(room: int) -> Asker:
    """take: what is taken, the client reads."""

    def ask(scene: Scene) -> Call:
        out = bytearray(room)

        def answered(count: object) -> None:
            assert isinstance(count, int)
            scene.peer.client.read(bytes(out[:count]))

        return Call(partial(scene.engine.take, SLOT, out), (out,), answered)

    return ask


def receiving(room: int) -> Asker:
    """recv: what is received, the program has."""

    def ask(scene: Scene) -> Call:
        out = bytearray(room)

        def answered(count: object) -> None:
            assert isinstance(count, int)
            scene.peer.received += out[: max(count, 0)]

        return Call(partial(scene.engine.recv, SLOT, out), (out,), answered)

    return ask


def sending(make_data: Callable[[], bytes | bytearray | memoryview]) -> Asker:
    """send: what is not taken is not sent."""

    def ask(scene: Scene) -> Call:
        data = make_data()
        return Call(partial(scene.engine.send, SLOT, data), (data,))

    return ask
