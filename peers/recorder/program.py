"""The server's program in a recorded conversation: one engine, driven the same way each time.

It echoes what it reads at the end of an exchange and not before, so that what it says does not
depend on the pieces in which the client's bytes came. It knows nothing of the liar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine import END, Engine, Refused
from engine.codepoints import GROUP_NAMES, SUITE_NAMES
from peers.recorder.format import Call, Eof, Exchange, Recording, Serve

SLOTS = 8

Pieces = Callable[[bytes], Iterable[memoryview]]


def whole(data: bytes) -> Iterable[memoryview]:
    """All of it in one piece."""
    return (memoryview(data),)


def single(data: bytes) -> Iterable[memoryview]:
    """One byte at a time."""
    view = memoryview(data)
    return (view[at : at + 1] for at in range(len(view)))


class Program:
    """The server's program in a recording: one engine, and every call that is made of it."""

    def __init__(self, areas: int, aes: bool) -> None:
        self.engine = Engine.server(SLOTS, areas, signing="deterministic", hardware_aes=aes)
        self.read = [0] * SLOTS
        self._room = bytearray(1 << 16)

    def call(self, name: str, arguments: Iterable[object]) -> str:
        """A call of the engine's; "" when it is taken, the tag when it is refused."""
        try:
            getattr(self.engine, name)(*arguments)
        except Refused as refused:
            return str(refused.refusal.tag)
        finally:
            self.check()
        return ""

    def serve(self, slot: int, now_ms: int) -> None:
        """`Engine.serve`; AssertionError when bytes are left."""
        self.engine.serve(slot, now_ms)
        self.check()

    def exchange(self, slot: int, data: bytes, pieces: Pieces = whole) -> tuple[bytes, int]:
        """What the server says to the bytes, and how many of them it did not take."""
        engine = self.engine
        out, plain = bytearray(), bytearray()
        taken = 0
        ended = self._drain(slot, out, plain)
        for piece in pieces(data):
            while True:
                count = engine.feed(slot, piece) if piece else 0
                taken += count
                piece = piece[count:]
                before = len(out) + len(plain)
                ended = self._drain(slot, out, plain)
                if not piece or (not count and len(out) + len(plain) == before):
                    break
            if piece:
                break
        self.read[slot] += len(plain)
        while plain:
            sent = engine.send(slot, plain)
            before = len(out)
            self._take(slot, out)
            del plain[:sent]
            if not sent and len(out) == before:
                break  # failed, or closed by us: nobody is left to echo to
        if ended:
            engine.finish(slot)
            self._take(slot, out)
        self.check()
        return bytes(out), len(data) - taken

    def eof(self, slot: int) -> None:
        """`Engine.eof`; AssertionError when bytes are left."""
        self.engine.eof(slot)
        self.check()

    def _drain(self, slot: int, out: bytearray, plain: bytearray) -> bool:
        """Take and read all there is; whether the client has ended."""
        self._take(slot, out)
        while (count := self.engine.recv(slot, self._room)) > 0:
            plain += memoryview(self._room)[:count]
        return count == END

    def _take(self, slot: int, out: bytearray) -> None:
        while count := self.engine.take(slot, self._room):
            out += memoryview(self._room)[:count]

    def check(self) -> None:
        """AssertionError when the engine has bytes left where nothing may be."""
        left = self.engine.residue()
        if left:
            raise AssertionError(f"residue {left}")

    def state(self, slot: int) -> str:
        """All that the program can ask about a connection, in one line; defaults are left out."""
        engine = self.engine
        words = [str(engine.event(slot).value)]
        failure = engine.failure(slot)
        if failure is not None:
            words.append(failure.tag)
        alert = engine.alert_received(slot)
        if alert is not None:
            words.append(f"alert_received={alert}")
        if self.read[slot]:
            words.append(f"read={self.read[slot]}")
        suite, group = engine.suite(slot), engine.group(slot)
        if suite:
            words += [f"suite={SUITE_NAMES[suite]}", f"group={GROUP_NAMES[group]}"]
        words += [name for name in ("retried", "resumed") if getattr(engine, name)(slot)]
        for name in ("server_name", "alpn"):
            value = getattr(engine, name)(slot)
            if value is not None:
                words.append(f"{name}={value!r}")
        verdict = engine.ticket_verdict(slot)
        if verdict != "none":
            words.append(f"ticket={verdict}")
        generation = engine.peer_verified(slot)
        if generation:
            fingerprint = bytes(engine.peer_fingerprint(slot) or b"").hex()[:16]
            words.append(f"verified={generation} client={fingerprint}")
        return " ".join(words)

    def close(self) -> None:
        """Drop every connection that is left, and see that nothing of any stays."""
        for slot in range(SLOTS):
            if self.engine.event(slot) != "free":
                self.engine.drop(slot)
        self.check()
        self.engine.close()


def replay(recording: Recording, pieces: Pieces = whole) -> list[str]:
    """What is not as it was recorded: nothing, if all is well."""
    program = Program(recording.areas, recording.aes)
    wrong: list[str] = []

    number = 0

    def compare(what: str, was: object, found: object) -> None:
        if was != found:
            wrong.append(f"step {number}: {what} was {was}, is {found}")

    for step in recording.steps:
        number += 1
        if isinstance(step, Call):
            compare(f"{step.name}'s answer", step.answer, program.call(step.name, step.arguments))
        elif isinstance(step, Serve):
            program.serve(step.slot, step.now_ms)
        elif isinstance(step, Eof):
            program.eof(step.slot)
            compare("the state", step.state, program.state(step.slot))
        else:
            assert isinstance(step, Exchange)
            said, dropped = program.exchange(step.slot, step.sent, pieces)
            compare("the server's answer", step.said.hex(), said.hex())
            compare("the count of bytes not taken", step.dropped, dropped)
            compare("the state", step.state, program.state(step.slot))
    program.close()
    return wrong
