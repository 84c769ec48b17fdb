"""A recorded conversation as a text file, and back.

A recording is made for a reviewer first: it says what each side sent, decoded, next to the bytes.
What a replay needs is the bytes, the calls and the states; the notes, which begin with a bar, are
passed over. Nothing in a recording names the liar, so a replay needs the engine alone::

    conversation: handshake two-host-names
    rule: server_name holds one name of a type
    ...
    engine areas=8 aes=yes
    call seed ["hex:0001..."] -> ok
    serve 0 1796083200000
    client 0
      | record handshake 0x0301, 290 bytes
      | client_hello 286: ...
      16030101220100...
    server 0
      | alert fatal illegal_parameter
      1503030002022f
    state 0 failed tls-server-illegal-parameter

A line of 40 bytes that comes several times in a row is written once, with ``x`` and a count. PEM
(certificates, keys, bundles) lies in files of its own, named by the SHA-256 of what they hold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "recordings"

BYTES_A_LINE = 40
HEADER = ("conversation", "rule", "section", "basis", "end", "honest")


class FormatError(ValueError):
    """A file that is no recording."""


@dataclass(frozen=True)
class Block:
    """Some bytes, and what they are."""

    data: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call of the server's program: "" when it was taken, the tag when it was refused."""

    name: str
    arguments: tuple[object, ...]
    answer: str = ""


@dataclass(frozen=True)
class Serve:
    """A step: a connection begins in a slot, at a time in Unix milliseconds."""

    slot: int
    now_ms: int


@dataclass(frozen=True)
class Exchange:
    """The client's bytes, what the server says to them, and how the connection stands then.

    ``dropped`` is how many bytes the server did not take, because no area was free.
    """

    slot: int
    client: tuple[Block, ...]
    server: tuple[Block, ...]
    state: str
    dropped: int = 0

    @property
    def sent(self) -> bytes:
        """What the client sends."""
        return b"".join(block.data for block in self.client)

    @property
    def said(self) -> bytes:
        """What the server answers."""
        return b"".join(block.data for block in self.server)


@dataclass(frozen=True)
class Eof:
    """The client's transport ends."""

    slot: int
    state: str


Step = Call | Serve | Exchange | Eof


@dataclass
class Recording:
    """``header`` has the keys of `HEADER`; ``areas`` and ``aes`` are how the engine was made."""

    header: dict[str, str]
    areas: int
    aes: bool
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The suite and the conversation, as in the path of the file."""
        return self.header["conversation"].replace(" ", "/")

    @property
    def honest(self) -> bool:
        """Whether the client breaks no rule."""
        return self.header["honest"] == "yes"


def path_of(name: str, root: Path = ROOT) -> Path:
    """The file of a recording."""
    return root / f"{name}.txt"


def all_names(root: Path = ROOT) -> list[str]:
    """Every recorded conversation, sorted."""
    return sorted(p.relative_to(root).with_suffix("").as_posix() for p in root.glob("*/*.txt"))


# PEM in files of its own.


def object_name(data: bytes) -> str:
    """The file of a PEM text, named after what is in it."""
    return f"pem/{hashlib.sha256(data).hexdigest()[:16]}.pem"


def objects_of(recording: Recording) -> dict[str, bytes]:
    """The PEM files a recording refers to."""
    found = {}
    for step in recording.steps:
        if isinstance(step, Call):
            for value in step.arguments:
                if isinstance(value, bytes) and value.startswith(b"-----BEGIN"):
                    found[object_name(value)] = value
    return found


def _packed(value: object) -> object:
    if isinstance(value, bytes):
        if value.startswith(b"-----BEGIN"):
            return object_name(value)
        return f"hex:{value.hex()}"
    if isinstance(value, list | tuple):
        return [_packed(v) for v in value]
    if isinstance(value, str):
        return f"text:{value}"
    return value


def _unpacked(value: object, root: Path) -> object:
    if isinstance(value, list):
        return [_unpacked(v, root) for v in value]
    if not isinstance(value, str):
        return value
    if value.startswith("hex:"):
        return bytes.fromhex(value[4:])
    if value.startswith("text:"):
        return value[5:]
    data = (root / value).read_bytes()
    if object_name(data) != value:
        raise FormatError(f"{value} does not hold what its name says")
    return data


# Writing.


def render(recording: Recording) -> str:
    """A recording as the text of its file."""
    lines = [f"{key}: {recording.header[key]}" for key in HEADER]
    lines.append(f"engine areas={recording.areas} aes={'yes' if recording.aes else 'no'}")
    for step in recording.steps:
        lines += _step_lines(step)
    return "\n".join(lines) + "\n"


def _step_lines(step: Step) -> Iterator[str]:
    if isinstance(step, Call):
        arguments = json.dumps(_packed(step.arguments), ensure_ascii=True)
        yield f"call {step.name} {arguments} -> {step.answer or 'ok'}"
    elif isinstance(step, Serve):
        yield f"serve {step.slot} {step.now_ms}"
    elif isinstance(step, Eof):
        yield f"eof {step.slot}"
        yield f"state {step.slot} {step.state}"
    else:
        dropped = f" dropped {step.dropped}" if step.dropped else ""
        yield f"client {step.slot}{dropped}"
        yield from _block_lines(step.client)
        if step.server:
            yield f"server {step.slot}"
            yield from _block_lines(step.server)
        yield f"state {step.slot} {step.state}"


def _block_lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from (f"  | {note}" for note in block.notes)
        digits = block.data.hex()
        size = 2 * BYTES_A_LINE
        rows = (digits[at : at + size] for at in range(0, len(digits), size))
        for row, same in groupby(rows):
            count = sum(1 for _ in same)
            yield f"  {row} x {count}" if count > 1 else f"  {row}"


# Reading.

_ROW = re.compile(r"  ([0-9a-f]+)(?: x (\d+))?")
_CALL = re.compile(r"(\w+) (\[.*\]) -> (\S+)")
_ENGINE = re.compile(r"engine areas=(\d+) aes=(yes|no)")
_CLIENT = re.compile(r"(\d+)(?: dropped (\d+))?")


def parse(text: str, root: Path = ROOT) -> Recording:
    """Raises `FormatError`. ``root`` is where the PEM files lie."""
    lines = text.splitlines()
    header = {}
    for key, line in zip(HEADER, lines, strict=False):
        found, _, value = line.partition(": ")
        if found != key:
            raise FormatError(f"there is no {key}")
        header[key] = value
    made = _ENGINE.fullmatch(lines[len(HEADER)]) if len(lines) > len(HEADER) else None
    if made is None:
        raise FormatError("there is no engine")
    recording = Recording(header, int(made[1]), made[2] == "yes")
    _Steps(root, recording.steps).read(lines[len(HEADER) + 1 :])
    return recording


class _Steps:
    """Reads steps, one line after the other."""

    def __init__(self, root: Path, steps: list[Step]) -> None:
        self.root = root
        self.steps = steps
        self.sides: dict[str, bytearray] = {}
        self.at: bytearray | None = None
        self.slot = self.dropped = 0
        self.ends = False

    def read(self, lines: list[str]) -> None:
        for line in lines:
            if line.startswith("  | "):
                continue
            if line.startswith("  "):
                self._bytes(line)
            else:
                word, _, rest = line.partition(" ")
                self._word(word, rest)

    def _bytes(self, line: str) -> None:
        row = _ROW.fullmatch(line)
        if row is None or self.at is None:
            raise FormatError(f"no bytes belong here: {line[:60]}")
        self.at += bytes.fromhex(row[1]) * int(row[2] or 1)

    def _word(self, word: str, rest: str) -> None:
        self.at = None
        if word == "call" and (call := _CALL.fullmatch(rest)):
            arguments = _unpacked(json.loads(call[2]), self.root)
            assert isinstance(arguments, list)
            answer = "" if call[3] == "ok" else call[3]
            self.steps.append(Call(call[1], tuple(arguments), answer))
        elif word == "serve":
            slot, now_ms = rest.split(" ")
            self.steps.append(Serve(int(slot), int(now_ms)))
        elif word == "client" and (client := _CLIENT.fullmatch(rest)):
            self.slot, self.dropped = int(client[1]), int(client[2] or 0)
            self.sides = {"client": bytearray(), "server": bytearray()}
            self.at = self.sides["client"]
        elif word == "server" and rest == str(self.slot) and self.sides:
            self.at = self.sides["server"]
        elif word == "eof":
            self.slot, self.ends = int(rest), True
        elif word == "state":
            self._state(rest)
        else:
            raise FormatError(f"no such line: {word}")

    def _state(self, rest: str) -> None:
        slot, _, state = rest.partition(" ")
        if slot != str(self.slot) or not (self.ends or self.sides):
            raise FormatError(f"whose state is this: {rest[:60]}")
        if self.ends:
            self.steps.append(Eof(self.slot, state))
        else:
            client, server = ((Block(bytes(data)),) if data else () for data in self.sides.values())
            self.steps.append(Exchange(self.slot, client, server, state, self.dropped))
        self.ends, self.sides = False, {}


def load(name: str, root: Path = ROOT) -> Recording:
    """A committed recording; ValueError for a text that is none."""
    return parse(path_of(name, root).read_text(encoding="utf-8"), root)
