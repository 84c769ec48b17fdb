"""One connection of an engine and the lying client at its other end, for the engine's own tests."""

from __future__ import annotations

from collections.abc import Callable

from engine import Engine
from peers.liar import Client
from peers.liar.identities import NOW_MS, Identity, make

ENTROPY = bytes(range(32))
NAME = "server.example"


def identity() -> Identity:
    return make((NAME,))


def engine(slots: int = 5, areas: int | None = 2, **options: object) -> Engine:
    made = Engine.server(slots, areas, signing="deterministic", **options)  # type: ignore[arg-type]
    made.seed(ENTROPY)
    own = identity()
    made.add_identity(own.chain_pem, own.key_pem, [NAME], NOW_MS)
    return made


class Pair:
    """A slot and its client. Residue is asked after every call that moves bytes."""

    def __init__(self, made: Engine, slot: int = 0, client: Client | None = None) -> None:
        self.engine = made
        self.slot = slot
        self.client = Client(b"pair", now_ms=NOW_MS) if client is None else client
        made.serve(slot, NOW_MS)
        self.clean()

    def clean(self) -> None:
        assert self.engine.residue() == 0

    def feed(self, data: bytes, step: int | None = None) -> int:
        taken = 0
        step = step or len(data) or 1
        while taken < len(data):
            n = self.engine.feed(self.slot, data[taken : taken + step])
            self.clean()
            if not n:
                break
            taken += n
        return taken

    def take(self, room: int = 1 << 16) -> bytes:
        out = bytearray(room)
        said = b""
        while n := self.engine.take(self.slot, out):
            said += out[:n]
            self.clean()
        return said

    def recv(self, room: int = 1 << 16) -> bytes:
        """All that can be received, and nothing of what ended it."""
        out = bytearray(room)
        got = b""
        while (n := self.engine.recv(self.slot, out)) > 0:
            got += out[:n]
            self.clean()
        return got

    def answer(self, data: bytes) -> bytes:
        """Feed all of it, and have the client read what the server says."""
        assert self.feed(data) == len(data)
        said = self.take()
        self.client.read(said)
        return said

    def greet(self, edit: Callable[..., None] | None = None) -> Pair:
        """To the server's whole flight, over a retry where there is one."""
        self.answer(self.client.hello(edit))
        if self.client.state == "retry":
            self.answer(self.client.hello())
        return self

    def establish(self) -> Pair:
        self.greet()
        self.answer(self.client.finish())
        assert self.engine.event(self.slot) == "established"
        return self

    def fails(self, data: bytes, tag: str, alert: int | None, key: str = "") -> None:
        """These bytes end the connection so: the refusal, the alert, and the key it goes under."""
        assert self.feed(data) == len(data)
        assert self.engine.failure(self.slot) == tag
        assert self.engine.event(self.slot) == "failed"
        self.client.read(self.take())
        said = self.client.alerts
        if alert is None:
            assert said == []
        else:
            assert [(a.level, a.description, a.key) for a in said] == [(2, alert, key)]
        assert self.engine.feed(self.slot, b"\x16\x03\x01 more") == 8
        assert self.take() == b""
        assert self.engine.recv(self.slot, bytearray(9)) == -2
        assert not self.engine.holds_area(self.slot)
        self.clean()
