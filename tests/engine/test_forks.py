"""A forked process and the engines it inherits: none answers, and none of their keys is there."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from engine import Engine
from engine.layout import WRITE_KEY
from engine.pool import Pool
from peers.liar.identities import NOW_MS
from tests.engine.pairs import ENTROPY, Pair, engine

CALLS: dict[str, Callable[[Engine], object]] = {
    "seed": lambda made: made.seed(ENTROPY),
    "serve": lambda made: made.serve(1, NOW_MS),
    "feed": lambda made: made.feed(0, b"\x17\x03\x03\x00\x20" + bytes(32)),
    "take": lambda made: made.take(0, bytearray(99)),
    "send": lambda made: made.send(0, b"under a nonce that the parent will use"),
    "recv": lambda made: made.recv(0, bytearray(99)),
    "finish": lambda made: made.finish(0),
    "eof": lambda made: made.eof(0),
    "drop": lambda made: made.drop(0),
    "event": lambda made: made.event(0),
    "rotate": lambda made: made.rotate_ticket_key(NOW_MS),
    "set_time": lambda made: made.set_time(NOW_MS),
    "residue": lambda made: made.residue(),
    "close": lambda made: made.close(),
}


def in_a_child(asks: Callable[[], bool]) -> bool:
    """What a forked process answers; False when it raises."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if asks() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def is_refused(call: Callable[[Engine], object], made: Engine) -> bool:
    try:
        call(made)
    except ValueError as error:
        return str(error) == "the engine was made in another process"
    return False


@pytest.mark.parametrize("resting", [True, False])
def test_an_engine_that_is_inherited_answers_no_call(resting: bool) -> None:
    made = engine()
    made.set_resting(int(resting))
    pair = Pair(made).establish()
    assert in_a_child(lambda: all(is_refused(call, made) for call in CALLS.values()))
    # The parent goes on.
    assert made.send(0, b"yes") == 3
    pair.client.read(pair.take())
    assert pair.client.received == b"yes"
    made.serve(1, NOW_MS)


def test_a_grandchild_and_an_engine_of_the_child() -> None:
    made = engine()

    def child() -> bool:
        own = engine()
        Pair(own).establish()
        inherited = is_refused(CALLS["serve"], made) and in_a_child(
            lambda: all(is_refused(CALLS["event"], each) for each in (own, made))
        )
        return inherited and own.event(0) == "established"

    assert in_a_child(child)


def test_a_child_has_none_of_the_keys() -> None:
    made = engine()
    made.set_tickets(1)
    Pair(made).establish()
    pool, drbg, ring = made._pool, made._drbg, made._server.resumption.ring
    block = pool.held[0].bytes[: WRITE_KEY + 16]
    key = ring.current()
    assert drbg is not None and key is not None and any(block)

    def nothing() -> bool:
        held = [*block, *drbg._key, *key.secret]
        return not any(held) and len(made._server.identities) == 0 and not pool.held

    assert in_a_child(nothing)
    assert any(block) and any(drbg._key) and any(key.secret)


def test_no_engine_that_is_inherited_answers_with_entropy_or_without() -> None:
    # The first that cannot be ended must not keep the others from it.
    inherited = [Engine.server(2, 1) for _ in range(8)] + [engine()]
    assert in_a_child(lambda: all(is_refused(CALLS["event"], each) for each in inherited))


def test_a_map_is_given_to_a_child_as_zeros() -> None:
    pool = Pool(1, 1)
    pool.core(0)[5] = 1
    assert in_a_child(lambda: not any(pool.core(0)))
    assert pool.core(0)[5] == 1


def test_an_engine_that_is_gone_is_not_kept_for_a_fork() -> None:
    made = engine()
    made.close()
    del made
    assert in_a_child(lambda: True)
