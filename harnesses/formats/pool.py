"""The byte format of harness pool, version 1: an order of calls over several connections.

    byte 0      1, the version
    byte 1      the shape: slots and areas (`SHAPES`), modulo their number
    byte 2      how many may rest (`RESTING`), modulo their number; bit 7 asks clients for
                certificates, bit 6 turns tickets on
    then        three bytes an operation: which (`OPERATIONS`), the slot, an argument; each modulo
                what there is, so that every input decodes

Every operation has its place in the table for good: new ones are added at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

VERSION = 1
SHAPES = ((4, 4), (5, 2), (1, 1), (7, 3))
RESTING = (0, 1, 32)
MAX_OPERATIONS = 300

OPERATIONS = (
    "serve",  # argument: which kind of client
    "speak",  # the client reads what came, and says what is next in its handshake
    "feed",  # argument: how much of what the client said, 0 all of it
    "take",  # argument: how much, 0 all of it
    "data",  # argument: how much application data the client sends
    "send",  # argument: how much the server sends
    "recv",  # argument: how much room, 0 all of it
    "half",  # feed half of the record that is next
    "finish",
    "eof",
    "drop",
    "close_notify",  # the client's
    "key_update",  # argument: whether it asks for one
    "empty",  # the client sends an empty record
    "corrupt",  # argument: which byte of what the client said and the server has not read
    "garbage",  # argument: the client's next bytes, again and again
    "replace_store",  # argument: which store
    "replace_identity",  # argument: which identity
    "rotate",  # the ticket key
    "clock",  # argument: how far it moves, in 10 s
    "set_resting",  # argument: how many
    "look",  # every call that only reads
    "close",  # the engine; a new one takes its place
)


class Operation(NamedTuple):
    """One call: its name, its slot, its argument from 0 to 255."""

    name: str
    slot: int
    argument: int


class Order(NamedTuple):
    """What an input says."""

    slots: int
    areas: int
    resting: int
    certificates: bool
    tickets: bool
    operations: tuple[Operation, ...]


def decode(data: bytes) -> Order | None:
    """An order of calls; None when the input is of no known version."""
    if len(data) < 3 or data[0] != VERSION:
        return None
    slots, areas = SHAPES[data[1] % len(SHAPES)]
    body = data[3 : 3 + 3 * MAX_OPERATIONS]
    operations = tuple(
        Operation(OPERATIONS[body[at] % len(OPERATIONS)], body[at + 1] % slots, body[at + 2])
        for at in range(0, len(body) - 2, 3)
    )
    resting = RESTING[(data[2] & 63) % len(RESTING)]
    return Order(slots, areas, resting, bool(data[2] & 128), bool(data[2] & 64), operations)


def encode(
    shape: int,
    resting: int,
    operations: Sequence[Operation],
    *,
    certificates: bool = False,
    tickets: bool = False,
) -> bytes:
    """The input for an order: `shape` and `resting` are places in their tables."""
    flags = resting | certificates << 7 | tickets << 6
    body = b"".join(
        bytes([OPERATIONS.index(one.name), one.slot, one.argument]) for one in operations
    )
    return bytes([VERSION, shape, flags]) + body
