"""The handmade inputs of the pool harness: every operation, every shape, every way an area moves.

As in `seeds.hello` each outcome is written by hand. It is that of the slot of the last
operation; what became of the others is compared with the model on the way.
"""

from __future__ import annotations

from ..formats.pool import RESTING, SHAPES, encode
from ..outcomes import AES_128, CHACHA
from . import pool_ends
from .case import Case
from .pool_steps import (
    ALL_REST,
    CHACHA20,
    FEW,
    FOUR,
    IN_PROOF,
    LARGE_LEAF,
    NONE_REST,
    ONE,
    ONE_RESTS,
    OTHER_STORE,
    PEER_CLOSED,
    PLAIN,
    RETRY,
    SEVEN,
    SMALL_LEAF,
    TICKET,
    WAITING,
    WORD,
    Steps,
    each,
    echo,
    flight,
    honest,
    op,
    ops,
    size,
    together,
)

REPLACED = "tls-server-client-store-replaced"


def shapes() -> dict[str, Case]:
    """Every shape and resting value: all slots in turn, then all again, backwards."""
    found = {}
    for shape, (slots, areas) in enumerate(SHAPES):
        for resting, count in enumerate(RESTING):
            steps = each(slots, honest)
            steps += each(slots, lambda slot: echo(slot, 300))
            steps += each(slots, lambda slot, last=slots - 1: echo(last - slot, 5))  # type: ignore[misc]
            what = f"{slots} slots, {areas} areas, {count} may rest"
            found[f"shape-{slots}-{areas}-{count}"] = Case(
                encode(shape, resting, steps), WORD, what
            )
    return found


def handshakes() -> dict[str, Case]:
    """Each kind of client, and what becomes of what it brings."""
    chacha = WORD.replace(AES_128, CHACHA)
    retry = WORD.replace("retried=no", "retried=yes")
    resumed = WORD + " verdict=resumed"
    ask, sell = {"certificates": True}, {"tickets": True}
    store, other = op("replace_store"), op("replace_store", 0, OTHER_STORE)

    def started(kind: int) -> Steps:
        return [*flight(0, kind), op("feed", 0, IN_PROOF[kind])]

    table: tuple[tuple[str, str, str, Steps, dict[str, bool]], ...] = (
        ("nothing", "waiting", "not an operation", [], {}),
        ("served", "waiting", "a slot that nobody feeds", [op("serve")], {}),
        ("flight", WAITING, "half a handshake", flight(0), {}),
        ("chacha20", chacha, "ChaCha20", [*honest(0, CHACHA20), *echo(0, 2_000)], {}),
        ("retry", retry, "a retry", [*honest(0, RETRY), *echo(0, 2_000)], {}),
        ("leaf-unasked", WORD, "a certificate nobody asks for", honest(0, SMALL_LEAF), {}),
        ("leaf-none", WORD, "asked, and has none", honest(0), ask),
        ("leaf-small", WORD, "fits its room", [*honest(0, SMALL_LEAF), *echo(0, 300)], ask),
        ("leaf-large", WORD, "keeps its area", [*honest(0, LARGE_LEAF), *echo(0, 300)], ask),
        (
            "leaf-each-record",
            WORD,
            "in halves of records",
            [*flight(0, SMALL_LEAF), *ops(0, *["half"] * 40), *ops(0, "feed", "look")],
            ask,
        ),
        (
            "leaf-stranger",
            "x509-unknown-issuer",
            "of no store's issuer",
            [other, *honest(0, SMALL_LEAF)],
            ask,
        ),
        (
            "store-before",
            WORD,
            "replaced before the certificate",
            [*flight(0, SMALL_LEAF), store, *ops(0, "feed", "look")],
            ask,
        ),
        (
            "store-between",
            REPLACED,
            "replaced behind the certificate",
            [*started(SMALL_LEAF), store, *ops(0, "feed", "take", "speak")],
            ask,
        ),
        (
            "store-between-large",
            REPLACED,
            "and its leaf fits no room",
            [*started(LARGE_LEAF), store, *ops(0, "feed", "take", "speak")],
            ask,
        ),
        (
            "store-after",
            WORD,
            "replaced when it is verified",
            [*honest(0, SMALL_LEAF), store, op("replace_store", 0, 1), *ops(0, "look")],
            ask,
        ),
        (
            "store-proof",
            WORD,
            "replaced when nobody proved anything",
            [*started(PLAIN), store, *ops(0, "feed", "look")],
            ask,
        ),
        ("tickets", WORD, "two tickets", [*honest(0), *ops(0, "look")], sell),
        ("resumed", resumed, "one of them", [*honest(1), *honest(0, TICKET), *echo(0, 64)], sell),
        (
            "resumed-rotated",
            resumed,
            "behind a new key",
            [*honest(1), op("rotate"), *honest(0, TICKET)],
            sell,
        ),
        (
            "resumed-unknown",
            WORD + " verdict=unknown",
            "behind two new keys, an hour and a half apart",
            [
                *honest(1), op("rotate"), *[op("clock", 0, 250)] * 2, op("rotate"),
                *honest(0, TICKET),
            ],
            sell,
        ),
        (
            "resumed-identity",
            WORD + " verdict=identity",
            "of another leaf",
            [*honest(1), op("replace_identity", 0, 1), *honest(0, TICKET)],
            sell,
        ),
        (
            "identity-meanwhile",
            WORD,
            "the identity is replaced behind the flight",
            [*flight(0), op("replace_identity", 0, 1), *ops(0, "feed", "take"), *honest(1),
             op("replace_identity"), *ops(0, "speak")],
            sell,
        ),
        (
            "no-ticket-of-a-client",
            WORD,
            "tickets on, and a certificate shown",
            [*honest(0, SMALL_LEAF), *ops(0, "look")],
            ask | sell,
        ),
    )  # fmt: skip
    return {
        name: Case(encode(FOUR, ALL_REST, steps, **flags), outcome, what)
        for name, outcome, what, steps, flags in table
    }


def data() -> dict[str, Case]:
    """Data both ways, in all the places where it can wait."""
    table: tuple[tuple[str, str, int, int, str, Steps], ...] = (
        *(
            (
                f"data-{length}-{RESTING[resting]}",
                WORD,
                FEW,
                resting,
                f"{length} bytes each way, {RESTING[resting]} may rest",
                [*honest(0), *honest(1), *echo(0, length), *echo(1, length), *echo(0, length)],
            )
            for length in (1, 300, 16_384, 40_000)
            for resting in (NONE_REST, ALL_REST)
        ),
        (
            "data-empty",
            WORD,
            FOUR,
            ALL_REST,
            "of no bytes",
            [*honest(0), *echo(0, 0), *echo(0, 5)],
        ),
        (
            "data-small-room",
            WORD,
            FEW,
            ALL_REST,
            "received and taken seven bytes at a time",
            [
                *honest(0), op("data", 0, size(64)), *ops(0, "feed"), *[op("recv", 0, 7)] * 10,
                op("send", 0, size(64)), *[op("take", 0, 7)] * 13, *ops(0, "speak"), *echo(0, 5),
            ],
        ),
        (
            "data-unreceived",
            WORD,
            FEW,
            ALL_REST,
            "left where it is, while others want areas",
            [
                *honest(0), op("data", 0, size(300)), *ops(0, "feed"), *honest(1), *honest(2),
                *ops(0, "recv"), *echo(0, 5),
            ],
        ),
        (
            "data-untaken",
            WORD,
            FEW,
            ALL_REST,
            "queued, while others want areas",
            [
                *honest(0), op("send", 0, size(300)), *honest(1), *honest(2),
                *ops(0, "take", "speak"),
            ],
        ),
        (
            "data-half",
            WORD,
            FEW,
            ALL_REST,
            "half a record, while others want areas",
            [
                *honest(0), op("data", 0, size(300)), *ops(0, "half"), *honest(1), *honest(2),
                *ops(0, "half", "feed", "recv", "look"),
            ],
        ),
        (
            "data-twice",
            WORD,
            FEW,
            ALL_REST,
            "two records in one piece",
            [*honest(0), op("data", 0, size(5)), op("data", 0, size(16)), *ops(0, "feed", "recv")],
        ),
        (
            "data-full",
            WORD,
            ONE,
            NONE_REST,
            "more than there is room for",
            [
                *honest(0), *[op("data", 0, size(16_384))] * 4, *ops(0, *("feed", "recv") * 6),
                *[op("send", 0, size(40_000))] * 3, *ops(0, *("take", "speak") * 4),
            ],
        ),
        (
            "data-both-wait",
            WORD,
            FEW,
            ALL_REST,
            "to take and to receive at once",
            [
                *honest(0), op("data", 0, size(16)), *ops(0, "feed"), op("send", 0, size(64)),
                *ops(0, "take", "speak", "recv", "look"), *echo(0, 5),
            ],
        ),
        (
            "data-flushed",
            WORD,
            FEW,
            NONE_REST,
            "with the Finished in one piece",
            [*flight(0), *ops(0, "feed", "take"), op("data", 0, size(64)), *ops(0, "feed", "recv")],
        ),
    )  # fmt: skip
    return {
        name: Case(encode(shape, resting, steps), outcome, what)
        for name, outcome, shape, resting, what, steps in table
    }


def pressure() -> dict[str, Case]:
    """More connections than areas."""
    table: tuple[tuple[str, str, int, int, str, Steps], ...] = (
        (
            "pressure-serve",
            "waiting",
            FEW,
            ALL_REST,
            "a third handshake where two are",
            [op("serve"), op("serve", 1), op("serve", 2)],
        ),
        (
            "pressure-feed",
            WORD,
            FEW,
            NONE_REST,
            "nothing is read, sent or closed with no area to be had",
            [
                *honest(2), op("serve", 0, PLAIN), op("serve", 1, PLAIN), op("data", 2, size(5)),
                *ops(2, "feed"), op("send", 2, size(5)), *ops(2, "finish", "recv", "take", "look"),
                *ops(0, "drop"), *ops(2, "feed", "recv", "look"),
            ],
        ),
        (
            "pressure-eof",
            PEER_CLOSED,
            FEW,
            NONE_REST,
            "the transport ends with no area to be had",
            [*honest(2), op("serve", 0), op("serve", 1), *ops(2, "eof", "recv", "feed", "look")],
        ),
        (
            "pressure-resting-serve",
            WORD,
            FEW,
            ALL_REST,
            "a handshake takes what rests longest",
            [*honest(0), *honest(1), *honest(2), *echo(0, 5), *honest(3), *honest(4), *echo(1, 5)],
        ),
        (
            "pressure-resting-feed",
            WORD,
            FEW,
            ALL_REST,
            "a connection takes what rests longest",
            [
                *honest(0), *honest(1), *honest(2), op("serve", 3, PLAIN), *echo(0, 300),
                *echo(1, 300), *echo(2, 300),
            ],
        ),
        (
            "pressure-spare",
            WORD,
            FOUR,
            ONE_RESTS,
            "a connection takes a free area before one that rests",
            [*honest(0), *honest(1), *honest(2), *echo(0, 300), *echo(2, 300), *echo(1, 300)],
        ),
        (
            "pressure-order",
            WORD,
            SEVEN,
            ALL_REST,
            "who was busy last rests shortest",
            [
                *together(3), *echo(0, 5), *honest(3), *echo(2, 5), *honest(4), *honest(5),
                *echo(0, 5),
            ],
        ),
        (
            "resting-less",
            WORD,
            FOUR,
            ALL_REST,
            "fewer may rest",
            [
                *together(4), op("set_resting", 0, 3), op("set_resting", 0, 1),
                op("set_resting", 0, 0), *echo(0, 5),
            ],
        ),
        (
            "resting-more",
            WORD,
            FOUR,
            NONE_REST,
            "more may rest",
            [*together(4), op("set_resting", 0, 2), *each(4, lambda slot: echo(slot, 5))],
        ),
        (
            "resting-one",
            WORD,
            FOUR,
            ONE_RESTS,
            "one may rest, and it is the last",
            [*together(4), *each(4, lambda slot: echo(slot, 300)), *echo(0, 5)],
        ),
        (
            "resting-received",
            WORD,
            FOUR,
            ONE_RESTS,
            "one is busy, another begins to rest, and the first goes back to it by receiving",
            [
                *together(2), *echo(0, 5), op("data", 0, size(300)), *ops(0, "feed"), *echo(1, 5),
                *ops(0, "recv", "look"),
            ],
        ),
        (
            "resting-taken",
            WORD,
            FOUR,
            ONE_RESTS,
            "by taking",
            [
                *together(2), *echo(0, 5), op("send", 0, size(300)), *echo(1, 5),
                *ops(0, "take", "speak", "look"),
            ],
        ),
        (
            "leaf-small-pressure",
            WORD,
            ONE,
            ALL_REST,
            "the leaf is in its room and the area another's",
            [*honest(0, SMALL_LEAF), *ops(0, "look"), *echo(0, 5), *ops(0, "look")],
        ),
        (
            "leaf-small-others",
            WORD,
            FEW,
            NONE_REST,
            "five verified clients, two areas",
            [*each(5, lambda slot: honest(slot, SMALL_LEAF)), *each(5, lambda slot: echo(slot, 5))],
        ),
        (
            "leaf-large-others",
            "waiting",
            FEW,
            ALL_REST,
            "two large leaves have both areas for good",
            [
                *honest(0, LARGE_LEAF), *honest(1, LARGE_LEAF), *echo(0, 5),
                op("serve", 2, PLAIN), *ops(2, "look"),
            ],
        ),
        (
            "leaf-large-gone",
            WORD,
            FEW,
            ALL_REST,
            "until one of them goes",
            [
                *honest(0, LARGE_LEAF), *honest(1, LARGE_LEAF), *ops(0, "drop"), *honest(0),
                *echo(1, 300), *echo(0, 300),
            ],
        ),
    )  # fmt: skip
    return {
        name: Case(encode(shape, resting, steps, certificates=True), outcome, what)
        for name, outcome, shape, resting, what, steps in table
    }


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    parts = {
        **shapes(), **handshakes(), **data(), **pressure(), **pool_ends.cases()
    }  # fmt: skip
    return {f"handmade-{name}": case for name, case in parts.items()}
