"""What the pool harness's handmade inputs are made of: operations in a row, by what they do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from ..formats.pool import RESTING, SHAPES, Operation
from ..models.pool import SIZES
from ..outcomes import chosen

Steps = list[Operation]

CHACHA20, RETRY, SMALL_LEAF, LARGE_LEAF, TICKET, NO_SESSION = range(6)
PLAIN = NO_SESSION
"""A client with nothing special about it."""

WORD = chosen().replace("waiting", "established")
WAITING = chosen()
PEER_CLOSED = "tls-peer-closed"

FOUR, FEW, ONE, SEVEN = range(len(SHAPES))
NONE_REST, ONE_RESTS, ALL_REST = range(len(RESTING))

IN_PROOF = {SMALL_LEAF: 215, LARGE_LEAF: 247, PLAIN: 20}
"""How much of a second flight to feed, of 255, to be behind the Certificate (behind the first
record, where there is none) and before the last message."""

OTHER_STORE = 2
"""The store that does not trust the clients."""


def op(name: str, slot: int = 0, argument: int = 0) -> Operation:
    """One operation."""
    return Operation(name, slot, argument)


def ops(slot: int, *names: str) -> Steps:
    """Operations of one slot without arguments."""
    return [op(name, slot) for name in names]


def size(length: int) -> int:
    """The argument of `data` and `send` for so many bytes."""
    return 100 + SIZES.index(length)


def honest(slot: int, kind: int = PLAIN) -> Steps:
    """A whole handshake, its tickets read."""
    rounds = 3 if kind == RETRY else 2
    return [op("serve", slot, kind), *ops(slot, *("speak", "feed", "take") * rounds, "speak")]


def together(slots: int, kind: int = PLAIN) -> Steps:
    """Handshakes that begin together: none takes the area in which another rests."""
    begun = [op("serve", slot, kind) for slot in range(slots)]
    return begun + each(slots, lambda slot: ops(slot, *("speak", "feed", "take") * 2, "speak"))


def flight(slot: int, kind: int = PLAIN) -> Steps:
    """A handshake as far as the client's second flight, which is said and not fed."""
    return [op("serve", slot, kind), *ops(slot, "speak", "feed", "take", "speak")]


def echo(slot: int, length: int) -> Steps:
    """Data to the server, and as much back."""
    return [
        op("data", slot, size(length)),
        *ops(slot, "feed", "recv"),
        op("send", slot, size(length)),
        *ops(slot, "take", "speak"),
    ]


def each(slots: int, steps: Callable[[int], Steps]) -> Steps:
    """The same of every slot in turn."""
    return list(chain.from_iterable(map(steps, range(slots))))
