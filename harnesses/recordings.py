"""A recorded conversation as a harness: its steps under the oracles, whatever its bytes are now.

`mutate` turns one line of a client's into another: bits, cuts, repeats, insertions, lengths. The
recording that holds the mutated line is itself a recording, so a finding is a text file that a
person can read and `residue replay recordings FILE` can run.

What is judged is what the harnesses judge after every call (harnesses/oracles.py): nothing raises,
nothing is left, nothing hangs, the alert is the refusal's, silence after a failure, zeros after
drop; and, for one input in eight, that the same bytes in other pieces give the same. The server's
recorded bytes are not compared: the client's are not the recorded ones.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from zlib import crc32

from engine import END, Engine, Event, Refused
from peers.recorder.format import (
    Block,
    Call,
    Eof,
    Exchange,
    FormatError,
    Recording,
    Serve,
    parse,
    render,
)
from peers.recorder.program import SLOTS, Pieces, single, whole

from .connection import Connection
from .oracles import Broken, one_in

#: One input in so many is run a second time in other pieces.
SHARE = 8
HEADER = 5
LENGTHS = (0, 1, 2, 3, 4, 16, 17, 255, 256, 16383, 16384, 16385, 16640, 16641, 65535)
MOST = 70_000


class Player:
    """The server's program under the oracles. It does as `peers.recorder.program.Program` does."""

    def __init__(self, recording: Recording, pieces: Pieces) -> None:
        self.pieces = pieces
        self.engine = Engine.server(
            SLOTS, recording.areas, signing="deterministic", hardware_aes=recording.aes
        )
        self.connections: dict[int, Connection] = {}

    def step(self, step: Call | Serve | Exchange | Eof) -> None:
        """Do one step of a recording, and ask the oracles."""
        if isinstance(step, Call):
            self._call(step)
        elif isinstance(step, Serve):
            self._serve(step)
        elif step.slot not in self.connections:
            return  # it could not begin, since a mutated one holds its area
        elif isinstance(step, Eof):
            self.connections[step.slot].eof()
        else:
            self._exchange(self.connections[step.slot], step.sent)

    def _call(self, step: Call) -> None:
        try:
            getattr(self.engine, step.name)(*step.arguments)
        except Refused:
            pass
        except Exception as error:
            raise Broken("raised", f"{step.name} raised {type(error).__name__}") from error
        if self.engine.residue():
            raise Broken("residue", f"after {step.name}")

    def _serve(self, step: Serve) -> None:
        try:
            self.engine.serve(step.slot, step.now_ms)
        except Refused:
            return
        connection = self.connections[step.slot] = Connection(self.engine, step.slot)
        connection.check()

    def _exchange(self, connection: Connection, data: bytes) -> None:
        before = len(connection.plaintext)
        for piece in self.pieces(data):
            if connection.feed_all(piece) < len(piece):
                break
        connection.drain()
        back = bytes(connection.plaintext[before:])
        while back and not connection.closing and connection.event is Event.ESTABLISHED:
            sent = connection.send(back)
            back = back[sent:]
            connection.take()
            if not sent:
                break
        if connection.event is Event.CLOSED and not connection.closing:
            if back:
                connection.send(back)
                connection.take()
            if connection.recv() == END:
                connection.finish()
            connection.take()

    def end(self) -> list[tuple[object, ...]]:
        """Every connection judged, its story kept, and dropped."""
        stories = []
        for connection in self.connections.values():
            connection.check_end(True)
            stories.append(connection.story())
        for connection in self.connections.values():
            connection.drop()
        self.engine.close()
        return stories


def _pieces_of(seed: int) -> Pieces:
    chance = random.Random(seed)

    def pieces(data: bytes) -> Iterable[memoryview]:
        view, at = memoryview(data), 0
        while at < len(view):
            size = chance.choice((1, 4, 5, 6, 21, 100, 1000, 1000, 5000))
            yield view[at : at + size]
            at += size

    return pieces


def _stories(recording: Recording, pieces: Pieces) -> tuple[list[tuple[object, ...]], str]:
    player = Player(recording, pieces)
    for step in recording.steps:
        player.step(step)
    outcome = next((c.outcome() for c in reversed(player.connections.values())), "waiting")
    return player.end(), outcome


def play(recording: Recording, key: bytes, thorough: bool = False) -> str:
    """How its last connection ends. Raises `Broken`. ``key`` chooses what is looked at twice."""
    stories, outcome = _stories(recording, whole)
    if thorough or one_in(SHARE, key):
        # One byte at a time is for a person who waits: the oracles judge after every call.
        for pieces in (_pieces_of(crc32(key)), *((single,) if thorough else ())):
            if _stories(recording, pieces)[0] != stories:
                raise Broken("chunks", "the same bytes in other pieces gave something else")
    return outcome


def read(data: bytes) -> Recording:
    """A recording from its text. Raises `FormatError` for a file that is none."""
    try:
        return parse(data.decode("utf-8"))
    except (FormatError, UnicodeDecodeError, ValueError, OSError) as error:
        raise FormatError(f"no recording: {error}") from None


def run(data: bytes, thorough: bool = False) -> str:
    """A recording's text, as a harness runs it. Raises `FormatError` for a file that is none."""
    recording = read(data)
    sent = b"".join(s.sent for s in recording.steps if isinstance(s, Exchange))
    return play(recording, sent, thorough)


# Mutation.


@dataclass(frozen=True)
class RecordedLine:
    """One thing a client says in a recording."""

    recording: Recording
    step: int

    @property
    def data(self) -> bytes:
        """What the client sends in this step."""
        step = self.recording.steps[self.step]
        assert isinstance(step, Exchange)
        return step.sent

    def saying(self, data: bytes) -> Recording:
        """The recording with other bytes in its place, and what was answered left out."""
        made = replace(self.recording, steps=list(self.recording.steps))
        for number, step in enumerate(made.steps):
            if isinstance(step, Exchange) and number >= self.step:
                sent = data if number == self.step else step.sent
                made.steps[number] = replace(
                    step, client=(Block(sent),) if sent else (), server=(), state="unknown"
                )
            elif isinstance(step, Eof) and number > self.step:
                made.steps[number] = replace(step, state="unknown")
        note = re.sub(r" \(.*\)$", "", made.header["rule"])
        made.header = {**made.header, "honest": "no", "rule": f"{note} (a line was mutated)"}
        return made


def lines_of(recordings: Iterable[Recording]) -> list[RecordedLine]:
    """Every line of the honest ones."""
    return [
        RecordedLine(recording, number)
        for recording in recordings
        if recording.honest
        for number, step in enumerate(recording.steps)
        if isinstance(step, Exchange) and step.sent
    ]


def text_of(recording: Recording) -> bytes:
    """A recording as the bytes of its file."""
    return render(recording).encode()


def mutate(chance: random.Random, data: bytes) -> bytes:
    """One to three changes, one after the other; never the same bytes."""
    while True:
        made = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            chance.choice(_CHANGES)(chance, made)
        if bytes(made) != data:
            return bytes(made[:MOST])


def _place(chance: random.Random, data: bytearray) -> int:
    """Anywhere, but for every second time in the first bytes, where the headers are."""
    near = chance.random() < 0.5
    return chance.randrange(min(len(data), 64) if near else len(data)) if data else 0


def _stretch(chance: random.Random, data: bytearray) -> slice:
    at = _place(chance, data)
    return slice(at, at + chance.choice((1, 1, 2, 3, 4, 5, 16, 32, len(data))))


def _bits(chance: random.Random, data: bytearray) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        if data:
            data[_place(chance, data)] ^= 1 << chance.randrange(8)


def _byte(chance: random.Random, data: bytearray) -> None:
    if data:
        data[_place(chance, data)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _cut(chance: random.Random, data: bytearray) -> None:
    if chance.random() < 0.5:
        del data[_place(chance, data) :]
    else:
        del data[_stretch(chance, data)]


def _repeat(chance: random.Random, data: bytearray) -> None:
    part = data[_stretch(chance, data)] * chance.choice((1, 1, 2, 3, 33))
    at = chance.choice((0, len(data), _place(chance, data)))
    data[at:at] = part[:MOST]


def _insert(chance: random.Random, data: bytearray) -> None:
    part = chance.choice(
        (
            chance.randbytes(chance.choice((1, 2, 4, 16, 300))),
            bytes(chance.choice((1, 5, 255, 16400))),
            b"\x14\x03\x03\x00\x01\x01",
            b"\x15\x03\x03\x00\x02" + chance.choice((b"\x01\x00", b"\x02\x28", b"\x01\x5a")),
            b"\x16\x03\x03\x00\x00",
            b"\x17\x03\x03\x00\x13" + chance.randbytes(19),
        )
    )
    records = _records(data)
    at = chance.choice([*records, len(data)]) if chance.random() < 0.6 else _place(chance, data)
    data[at:at] = part


def _records(data: bytearray) -> list[int]:
    """Where the line's records begin, as far as they hold together."""
    found, at = [], 0
    while at + HEADER <= len(data):
        found.append(at)
        at += HEADER + int.from_bytes(data[at + 3 : at + HEADER], "big")
    return found


def _length(chance: random.Random, data: bytearray) -> None:
    """A length set: a record's, the first message's, or any two bytes in the place of one."""
    records = _records(data)
    value = chance.choice((*LENGTHS, len(data), max(0, len(data) - HEADER)))
    if chance.random() < 0.1:
        value = chance.randrange(1 << 16)
    where = chance.random()
    if records and where < 0.4:
        at = chance.choice(records) + 3
    elif where < 0.5:
        at = HEADER + 2
    else:
        at = _place(chance, data)
    if at + 2 <= len(data):
        if chance.random() < 0.3:
            value = int.from_bytes(data[at : at + 2], "big") + chance.choice((-2, -1, 1, 2))
        data[at : at + 2] = (value & 0xFFFF).to_bytes(2, "big")


def _swap(chance: random.Random, data: bytearray) -> None:
    """Two records change places."""
    starts = _records(data)
    if len(starts) > 1:
        at = chance.randrange(len(starts) - 1)
        first, second = starts[at], starts[at + 1]
        end = starts[at + 2] if at + 2 < len(starts) else len(data)
        data[first:end] = data[second:end] + data[first:second]


_CHANGES = (_bits, _bits, _byte, _cut, _repeat, _insert, _length, _length, _swap)
