"""The handmade inputs of the pool harness: every end, of a connection and of the engine."""

from __future__ import annotations

from ..formats.pool import RESTING, SHAPES, encode
from .case import Case
from .pool_steps import (
    ALL_REST,
    FEW,
    FOUR,
    IN_PROOF,
    LARGE_LEAF,
    NONE_REST,
    PEER_CLOSED,
    PLAIN,
    SMALL_LEAF,
    WAITING,
    WORD,
    Steps,
    echo,
    flight,
    honest,
    op,
    ops,
    size,
)

CLOSED = WORD.replace("established", "closed")
BAD_MAC = "tls-bad-record-mac"
TOO_MANY = "tls-too-many-messages"
FORGET = ("eof", "close", "close-both", "drop", "corrupt", "again")
"""The ends that are played with a leaf as well: there is something to forget."""


def ends() -> dict[str, Case]:
    """Every end of a connection, with and without an area, with and without a leaf."""
    both: tuple[tuple[str, str, str, Steps], ...] = (
        ("eof", PEER_CLOSED, "the transport ends", ops(0, "eof", "recv", "look")),
        (
            "eof-owed",
            PEER_CLOSED,
            "with data not received",
            [op("data", 0, size(300)), *ops(0, "feed", "eof", "recv", "recv", "look")],
        ),
        (
            "eof-queued",
            PEER_CLOSED,
            "with data not taken",
            [op("send", 0, size(300)), *ops(0, "eof", "take", "recv", "look")],
        ),
        ("close", CLOSED, "the client closes", ops(0, "close_notify", "feed", "recv", "look")),
        (
            "close-both",
            CLOSED,
            "and the server",
            ops(0, "close_notify", "feed", "recv", "finish", "take", "speak", "eof", "look"),
        ),
        (
            "close-half",
            CLOSED,
            "and the server still sends",
            [
                op("data", 0, size(64)), *ops(0, "close_notify", "feed"), op("send", 0, size(300)),
                *ops(0, "take", "speak", "recv", "recv", "look"),
            ],
        ),
        (
            "close-late",
            CLOSED,
            "and sends on",
            [*ops(0, "close_notify", "feed"), op("data", 0, size(64)), *ops(0, "feed", "recv")],
        ),
        (
            "finish",
            WORD,
            "the server closes and still receives",
            [*ops(0, "finish", "finish", "take", "speak"), *echo(0, 64)],
        ),
        ("drop", "waiting", "the program drops it", ops(0, "drop", "look")),
        (
            "drop-owed",
            "waiting",
            "with data in every buffer",
            [
                op("data", 0, size(300)), *ops(0, "feed"), op("data", 0, size(64)),
                *ops(0, "half"), op("send", 0, size(64)), *ops(0, "drop", "look"),
            ],
        ),
        (
            "again",
            WORD,
            "and another comes",
            [*ops(0, "drop"), *honest(0), *echo(0, 300)],
        ),
        (
            "corrupt",
            BAD_MAC,
            "a byte of a record is another",
            [
                op("data", 0, size(300)), op("corrupt", 0, 128),
                *ops(0, "feed", "take", "recv", "look"),
            ],
        ),
        (
            "corrupt-second",
            BAD_MAC,
            "of the second of two",
            [
                op("data", 0, size(64)), op("data", 0, size(300)), op("corrupt", 0, 200),
                *ops(0, "feed", "take", "recv", "recv", "look"),
            ],
        ),
        (
            "corrupt-twice",
            BAD_MAC,
            "the same byte again: it is not made whole",
            [
                op("data", 0, size(300)), op("corrupt", 0, 128), op("corrupt", 0, 128),
                *ops(0, "feed", "take", "recv", "look"),
            ],
        ),
        (
            "corrupt-cut",
            BAD_MAC,
            "of a record in two pieces",
            [
                op("data", 0, size(300)), op("corrupt", 0, 128),
                *ops(0, "half", "half", "feed", "take", "look"),
            ],
        ),
        (
            "garbage",
            "tls-unexpected-message",
            "an alert in the clear",
            [op("garbage", 0, 1), *ops(0, "feed", "take", "recv", "look")],
        ),
        (
            "key-update",
            WORD,
            "both kinds",
            [op("key_update", 0, 0), op("key_update", 0, 1), *ops(0, "feed", "take", "speak"),
             *echo(0, 300)],
        ),
        (
            "empty",
            WORD,
            "32 empty records",
            [op("empty", 0, 32), *ops(0, "feed", "recv"), *echo(0, 5), op("empty", 0, 32),
             *ops(0, "feed", "recv")],
        ),
        (
            "empty-many",
            TOO_MANY,
            "33 of them",
            [op("empty", 0, 33), *ops(0, "feed", "recv", "take", "look")],
        ),
        ("clock", WORD, "time passes", [op("clock", 0, 200), *echo(0, 5), op("clock", 0, 255)]),
    )  # fmt: skip
    found = {}
    kinds = (("", PLAIN), ("-small", SMALL_LEAF), ("-large", LARGE_LEAF))
    for name, outcome, what, steps in both:
        for resting in (NONE_REST, ALL_REST):
            for suffix, kind in kinds:
                if suffix and name not in FORGET:
                    continue
                data = encode(FEW, resting, [*honest(0, kind), *steps], certificates=True)
                file = f"{name}{suffix}-{RESTING[resting]}"
                found[file] = Case(data, outcome, f"{what}; {RESTING[resting]} may rest")
    return found


def wholes() -> dict[str, Case]:
    """The engine closed with connections in every state, and what ends inside a handshake."""
    states = [
        op("serve", 0, PLAIN), *flight(1), *honest(2), *honest(3, SMALL_LEAF),
        op("data", 2, size(300)), *ops(2, "feed"), op("send", 3, size(64)),
    ]  # fmt: skip
    table: tuple[tuple[str, str, str, Steps], ...] = (
        ("closed", "waiting", "with a connection in each state", [*states, op("close")]),
        ("closed-twice", "waiting", "and a new one at once", [*states, op("close"), op("close")]),
        ("closed-after", WORD, "and a new one", [*states, op("close"), *honest(0), *echo(0, 5)]),
        (
            "closed-room",
            "waiting",
            "with a leaf in its room and its area another's",
            [*honest(3, SMALL_LEAF), *echo(3, 5), op("set_resting"), op("close", 3)],
        ),
        (
            "handshake-eof",
            PEER_CLOSED,
            "the transport ends in a handshake",
            [*flight(0), *ops(0, "eof", "take", "look")],
        ),
        (
            "handshake-drop",
            "waiting",
            "dropped in a handshake",
            [*flight(0, SMALL_LEAF), op("feed", 0, IN_PROOF[SMALL_LEAF]), *ops(0, "drop", "look")],
        ),
        (
            "handshake-corrupt",
            BAD_MAC,
            "a wrong record where the Finished is due",
            [*flight(0), op("corrupt", 0, 200), *ops(0, "feed", "take", "look")],
        ),
        (
            "handshake-bytewise",
            WORD,
            "in small pieces",
            [
                op("serve", 0, PLAIN), *ops(0, "speak"), *[op("feed", 0, 40)] * 12,
                *ops(0, "feed"), *[op("take", 0, 99)] * 16, *ops(0, "take", "speak"),
                *[op("feed", 0, 40)] * 12, *ops(0, "feed", "take", "speak", "look"),
            ],
        ),
        (
            "handshake-vanished",
            WAITING,
            "a client that says no more",
            [*flight(0), *ops(0, "half"), op("clock", 0, 255), *ops(0, "look")],
        ),
    )  # fmt: skip
    return {
        name: Case(encode(FOUR, ALL_REST, steps, certificates=True), outcome, what)
        for name, outcome, what, steps in table
    }


def formats() -> dict[str, Case]:
    """Inputs that are no order of calls, and one that says each value modulo what there is."""
    steps = honest(0)
    wrapped = bytearray(encode(FOUR, ALL_REST, steps))
    wrapped[1] += 4 * len(SHAPES)
    wrapped[4::3] = bytes(4 * (place % 60) for place in range(len(steps)))
    return {
        "version": Case(b"\2" + encode(FOUR, ALL_REST, steps)[1:], "unknown-format", "version 2"),
        "wrapped": Case(bytes(wrapped), WORD, "slots and shape beyond their number"),
        "cut": Case(encode(FOUR, ALL_REST, steps)[:-1], WORD, "half an operation at the end"),
    }


def cases() -> dict[str, Case]:
    """The inputs by name."""
    return {**ends(), **wholes(), **formats()}
