"""A call that breaks at any of its lines, by an exception that is not the engine's own.

Every line of every call is `residue inject`'s; here are the transitions of the pool, each with its
neighbours, and what a caller can do afterwards.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from engine import Engine
from engine.layout import ESTABLISHED, FAILED, STATE, WRITE_KEY
from engine.pool import Pool
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.mutual_pairs import client, device, mutual
from tests.engine.pairs import Pair, engine


class Stop(BaseException):
    """What comes from outside."""


Call = Callable[[], object]
Begin = Callable[[], tuple[Engine, Call]]


def stopped(line: int, call: Call) -> bool:
    """Raise at that line of the engine, counted within the call; whether it was reached."""
    left = line

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if not frame.f_globals["__name__"].startswith("engine."):
            return None
        if event == "line":
            left -= 1
            if not left:
                sys.settrace(None)
                raise Stop
        return trace

    sys.settrace(trace)
    try:
        call()
    except Stop:
        return True
    finally:
        sys.settrace(None)
    return False


def established(areas: int = 2, resting: int | None = None) -> tuple[Engine, Pair]:
    made = engine(3, areas)
    if resting is not None:
        made.set_resting(resting)
    return made, Pair(made, 0).establish()


def serves_beside_one_that_rests() -> tuple[Engine, Call]:
    made, _ = established(1)
    return made, lambda: made.serve(1, NOW_MS)


def leases_from_its_core() -> tuple[Engine, Call]:
    made, _ = established(2, 0)
    return made, lambda: made.send(0, b"secret" * 5000)


def takes_its_area_from_another() -> tuple[Engine, Call]:
    made, pair = established(1)
    Pair(made, 1, Client(b"other", now_ms=NOW_MS)).establish()
    data = pair.client.send(b"secret" * 50)
    return made, lambda: made.feed(0, data)


def sends_at_rest() -> tuple[Engine, Call]:
    made, _ = established()
    return made, lambda: made.send(0, b"secret" * 20)


def receives_and_ends_the_rest_of_another() -> tuple[Engine, Call]:
    made, pair = established(2, 1)
    made.feed(0, pair.client.send(b"secret" * 20))
    Pair(made, 1, Client(b"other", now_ms=NOW_MS)).establish()
    return made, lambda: made.recv(0, bytearray(500))


def takes_to_its_core() -> tuple[Engine, Call]:
    made, _ = established(2, 0)
    made.send(0, b"secret" * 20)
    return made, lambda: made.take(0, bytearray(500))


def rests_no_more() -> tuple[Engine, Call]:
    made, _ = established()
    return made, lambda: made.set_resting(0)


def drops_at_rest() -> tuple[Engine, Call]:
    made, _ = established()
    return made, lambda: made.drop(0)


def drops_a_verified_client() -> tuple[Engine, Call]:
    made = mutual()
    Pair(made, 0, client(device())).establish()
    return made, lambda: made.drop(0)


def ends_at_rest() -> tuple[Engine, Call]:
    made, _ = established()
    return made, lambda: made.eof(0)


BEGIN: list[Begin] = [
    serves_beside_one_that_rests, leases_from_its_core, takes_its_area_from_another, sends_at_rest,
    receives_and_ends_the_rest_of_another, takes_to_its_core, rests_no_more, drops_at_rest,
    drops_a_verified_client, ends_at_rest,
]  # fmt: skip


def whole(made: Engine) -> None:
    """Every area is somebody's or free, and what is derived says the same."""
    pool = made._pool
    assert made.residue() == 0
    assert sorted(area.index for area in (*pool.held.values(), *pool._free)) == [*range(pool._made)]
    assert list(pool.resting) == [slot for slot in pool.resting if pool.held[slot].resting]
    assert made.areas_resting() == sum(area.resting for area in pool.held.values())


@pytest.mark.parametrize("begin", BEGIN, ids=lambda begin: begin.__name__)
def test_a_call_that_breaks_at_any_line_loses_nothing(begin: Begin) -> None:
    line = 0
    while True:
        line += 1
        made, call = begin()
        others = {slot: made.event(slot) for slot in (1, 2)}
        if not stopped(line, call):
            break
        whole(made)
        assert others == {slot: made.event(slot) for slot in (1, 2)}
        if made.event(0) == "failed":
            assert made.failure(0) in ("tls-internal-error", "tls-peer-closed")
        for slot in range(3):
            if made.event(slot) != "free":
                made.drop(slot)
        whole(made)
        assert made.areas_free() == made.areas() and made.handshakes_in_progress() == 0
        for slot in range(made.areas()):
            Pair(made, slot).greet()
    assert line > 10


def test_an_area_that_no_list_has_is_residue() -> None:
    pool = Pool(3, 3)
    for slot in range(2):
        pool.lease_for_handshake(slot).words[STATE] = ESTABLISHED
    pool.drop(0)
    lost = pool._free.pop()
    assert pool.residue() == 1
    pool.mend()
    assert pool._free == [lost]
    assert pool.residue() == 0


@pytest.mark.parametrize("room", range(1, 8))
def test_a_drop_in_too_deep_a_stack_can_be_made_again(room: int) -> None:
    made, _ = established(1)
    key = bytes(made._pool.held[0].bytes[WRITE_KEY : WRITE_KEY + 16])
    limit, depth, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    try:
        sys.setrecursionlimit(depth + 1 + room)
        made.drop(0)
    except RecursionError:
        pass
    finally:
        sys.setrecursionlimit(limit)
    if made.event(0) != "free":
        made.drop(0)
    assert key not in bytes(made._pool._area_bytes) and not any(made._pool.core(0))
    whole(made)
    made.serve(0, NOW_MS)


class Breaks:
    """A sealer that breaks a number of times."""

    def __init__(self, real: Any, times: int) -> None:
        self.real, self.left = real, times

    def encrypt_into(self, *arguments: object) -> object:
        if self.left:
            self.left -= 1
            raise MemoryError
        return self.real.encrypt_into(*arguments)


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize("rests", [True, False])
def test_plaintext_that_was_not_sealed_goes_with_its_connection(rests: bool, times: int) -> None:
    made, _ = established(1)
    if not rests:
        made.send(0, b"first")
    area = made._pool.held[0]
    area.sealer = Breaks(area.sealer, times)  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        made.send(0, b"the password" * 40)
    assert made.failure(0) == "tls-internal-error"
    made.drop(0)
    assert made.residue() == 0 and not any(area.bytes)


def test_what_broke_keeps_nothing_of_the_callers() -> None:
    class Data(bytearray):
        pass

    made, _ = established(1)
    area = made._pool.held[0]
    area.sealer = Breaks(area.sealer, 1)  # type: ignore[assignment]
    data = Data(b"the program's plaintext")
    alive = weakref.ref(data)
    gc.disable()
    try:
        with pytest.raises(MemoryError) as raised:
            made.send(0, data)
        del raised
        data.extend(bytes(1000))
        del data
        assert alive() is None
    finally:
        gc.enable()


def test_a_mending_that_breaks_is_done_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = established(2)
    area = made._pool.held[0]
    area.sealer = Breaks(area.sealer, 1)  # type: ignore[assignment]
    with monkeypatch.context() as patch:
        patch.setattr(made._pool, "mend", lambda: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            made.send(0, b"secret")
    assert made.residue() == 0
    assert made.event(0) == "failed"


@pytest.mark.parametrize("line", range(1, 60))
def test_a_close_that_breaks_has_wiped_or_can_be_made_again(line: int) -> None:
    made, _ = established()
    maps = [memoryview(m) for m in (made._pool._area_map, made._pool._core_map)]
    stopped(line, made.close)
    if not made._ended:
        made.close()
    assert not any(map(any, maps))
    with pytest.raises(ValueError, match="closed"):
        made.event(0)


def test_a_core_that_was_failed_half_way_is_failed() -> None:
    made, _ = established(2, 0)
    made._pool.words(0)[STATE] = FAILED
    made._torn = (0,)
    assert made.failure(0) == "tls-internal-error"
    assert made.residue() == 0
