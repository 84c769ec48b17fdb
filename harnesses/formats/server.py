"""The input of the server harness, version 1: settings, steps, and the client's bytes.

    byte 0      1, the version of this format
    byte 1      settings, a bit or three each (SETTINGS)
    byte 2      n, how many steps follow, modulo 32
    n bytes     steps
    the rest    the stream: what the client sends

A step up to 0xEF feeds that many bytes of the stream (0 feeds nothing); 0xF8 to 0xFF feed 256 to
32,768; those between are other calls (CALLS). What is left of the stream when the steps are done is
fed whole. So `01 00 00` and the bytes of a client's flight is an input, a mutated length moves a
cut without moving the bytes, and no value is without a meaning.

A later version takes another first byte. The committed corpus is read by its own version, so that
a change of format never changes silently what an old input tests.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

VERSION = 1
HEADER = 3
STEPS = 31
"""The most steps: each is a call and all that is checked after it, and a fuzzer would soon keep
nothing but inputs of two hundred of them."""

NO_AES = 0x01
NO_RESTING = 0x02
NEIGHBOUR = 0x04
EOF = 0x08
CHECK_SIGNATURE = 0x10
CLIENT_AUTH = 0xE0
CLIENT_MODES = (0, 1, 2, 0, 0, 1, 0, 0)
"""The mode of client authentication by the value of those three bits: on for three of eight."""
CLIENT_OPTIONAL, CLIENT_REQUIRED = 0x20, 0x40
SETTINGS = {
    NO_AES: "the engine prefers ChaCha20, as without AES instructions",
    NO_RESTING: "no connection rests in its area",
    NEIGHBOUR: "another connection is in its handshake and holds an area",
    EOF: "the transport ends after the stream",
    CHECK_SIGNATURE: "the server checks its signature before it sends it, as it does by default",
    CLIENT_AUTH: "whether clients are asked for a certificate (CLIENT_MODES)",
}


class Call(Enum):
    """What a step does."""

    FEED = "feed"
    SEND = "send five bytes"
    FINISH = "finish"
    EOF = "the transport ends"
    TAKE_SEVEN = "take seven bytes and leave the rest"
    FEED_NOTHING = "feed of nothing"
    NEWCOMER = "a third connection starts and stops half way"
    AGAIN = "drop, and serve the slot again"


CALLS = {
    0xF0: Call.SEND,
    0xF1: Call.FINISH,
    0xF2: Call.EOF,
    0xF3: Call.TAKE_SEVEN,
    0xF4: Call.NEWCOMER,
    0xF5: Call.AGAIN,
}


class Step(NamedTuple):
    """One call, and the bytes that a feed feeds."""

    call: Call
    data: bytes


class Script(NamedTuple):
    """A parsed input."""

    settings: int
    steps: list[Step]

    @property
    def sent(self) -> int:
        """How many bytes the peer sends: what cost is measured by. An input may be much shorter,
        where a byte of it stands for a record's padding."""
        return sum(len(step.data) for step in self.steps)


def decode(data: bytes) -> Script | None:
    """The script of an input; None for an input of no version that is known."""
    if len(data) < HEADER or data[0] != VERSION:
        return None
    count = data[2] % (STEPS + 1)
    stream = data[HEADER + count :]
    steps = []
    at = 0
    for step in data[HEADER : HEADER + count]:
        if step in CALLS:
            steps.append(Step(CALLS[step], b""))
            continue
        size = 256 << (step - 0xF8) if step >= 0xF8 else min(step, 0xEF)
        piece = stream[at : at + size]
        at += size
        steps.append(Step(Call.FEED if piece else Call.FEED_NOTHING, piece))
    if at < len(stream):
        steps.append(Step(Call.FEED, stream[at:]))
    return Script(data[1], steps)


def encode(stream: bytes, steps: bytes = b"", settings: int = 0) -> bytes:
    """The input of a stream: what the corpus is made with."""
    if len(steps) > STEPS:
        raise ValueError(f"{len(steps)} steps are more than {STEPS}")
    return bytes([VERSION, settings, len(steps)]) + steps + stream


def code_of(call: Call) -> int:
    """The step that makes a call."""
    return (
        0 if call is Call.FEED_NOTHING else next(n for n, known in CALLS.items() if known is call)
    )


def feeding(size: int) -> bytes:
    """The steps that feed just this many bytes."""
    steps = b""
    for step in range(0xFF, 0xF7, -1):
        while size >= 256 << (step - 0xF8):
            size -= 256 << (step - 0xF8)
            steps += bytes([step])
    while size:
        steps += bytes([min(size, 0xEF)])
        size -= min(size, 0xEF)
    return steps
