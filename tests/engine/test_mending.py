"""What an engine does after a fault besides mending its pool, and what it leaves when it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine import Engine
from engine.base import NOBODY, Whole
from engine.layout import F_CLIENT_CERTIFICATE, FLAGS, LEAF_LEN, ROOM_LEN
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.mutual_pairs import big_leaf, client, mutual
from tests.engine.pairs import Pair, engine


class Stop(BaseException):
    """What comes from outside."""


def stop(*_: object) -> None:
    raise Stop


class Breaks:
    """A sealer that seals nothing."""

    def encrypt_into(self, *_: object) -> None:
        raise MemoryError


def breaks(made: Engine, slot: int = 0) -> None:
    """A send that breaks, as does the alert for it."""
    area = made._pool.held[slot]
    area.sealer = Breaks()  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        made.send(slot, b"secret")
    assert made.failure(slot) == "tls-internal-error"


def breaks_in_a_setting(made: Engine) -> None:
    with pytest.raises(TypeError):
        made.set_resting("one")  # type: ignore[arg-type]


# -- the call that broke ----------------------------------------------------------------------


def test_a_call_of_an_engine_that_is_whole_mends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    Pair(made).establish()
    monkeypatch.setattr(made, "_mend", stop)
    made.set_resting(1)
    assert made.event(0) == "established" and made.event(1) == "free"
    assert made.client_generation() == 0


@pytest.mark.parametrize("resting", [0, 1])
def test_a_connection_whose_call_is_not_mended_yet_is_failed_before_it_is_asked(
    resting: int,
) -> None:
    made = engine()
    made.set_resting(resting)
    Pair(made).establish()
    made._torn = (0,)
    assert made.failure(0) == "tls-internal-error"


def test_one_that_broke_gives_back_its_area_when_it_has_nothing_to_send() -> None:
    made = engine(3, 2)
    Pair(made).establish()
    breaks(made)
    assert not made.holds_area(0) and made.areas_free() == 2


def test_the_connection_after_one_that_broke_is_not_failed_for_it() -> None:
    made = engine(3, 2)
    Pair(made).establish()
    breaks(made)
    made.drop(0)
    pair = Pair(made, 0, Client(b"after", now_ms=NOW_MS)).establish()
    made.send(0, b"yes")
    pair.client.read(pair.take())
    assert pair.client.received == b"yes"


def test_a_slot_whose_call_broke_before_it_began_or_after_it_went_is_free() -> None:
    made = engine()
    made._torn = (0,)
    assert made.client_generation() == 0
    assert made.event(0) == "free" and made.residue() == 0


def test_one_that_broke_has_no_identity_and_its_room_is_zero() -> None:
    made = mutual()
    Pair(made, client=client(big_leaf())).establish()
    area = made._pool.held[0]
    assert area.words[FLAGS] & F_CLIENT_CERTIFICATE
    # As far as the leaf was written when the fault came.
    made._pool.rooms.keep(0, memoryview(b"\x30" * ROOM_LEN))
    breaks(made)
    assert made._pool.words(0)[LEAF_LEN] == 0
    assert not made.holds_area(0) and made.residue() == 0
    assert not any(made._pool.rooms.leaf(0, ROOM_LEN))


BROKEN: dict[str, tuple[str, Callable[[Engine], object], int]] = {
    "serve": ("lease_for_handshake", lambda made: made.serve(2, NOW_MS), NOBODY),
    "feed": ("lease", lambda made: made.feed(0, b"\x17"), 0),
    "send": ("lease", lambda made: made.send(0, b"secret"), 0),
    "finish": ("lease", lambda made: made.finish(0), 0),
    "eof": ("fail_core", lambda made: made.eof(0), 0),
    "drop": ("drop", lambda made: made.drop(0), 0),
    "take": ("settle", lambda made: made.take(0, bytearray(99)), 0),
    "recv": ("settle", lambda made: made.recv(0, bytearray(99)), 0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_call_that_breaks_is_marked_mended_and_heard_of(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(3, 2)
    made.set_resting(0)
    pair = Pair(made).establish()
    step, call, slot = BROKEN[name]
    if step == "settle":
        made.feed(0, pair.client.send(b"secret"))
        made.send(0, b"secret")
    marked = []

    def breaks_beside_another(*_: object) -> None:
        made._torn += (1,)  # a handler's call that broke and is not mended yet
        raise Stop

    monkeypatch.setattr(made._pool, step, breaks_beside_another)
    monkeypatch.setattr(made, "_broke", lambda: marked.append(made._torn))
    with pytest.raises(Stop):
        call(made)
    assert marked == [(1, slot)]


@pytest.mark.parametrize("name", ["feed", "send", "take", "recv"])
def test_so_is_one_that_breaks_on_its_short_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine(3, 2)
    pair = Pair(made).establish()
    area = made._pool.held[0]
    marked = []

    class Broken:
        """In the place of a cipher, and of the end of the longest rest."""

        def __call__(self, *_: object) -> None:
            made._torn += (1,)
            raise Stop

        encrypt_into = decrypt_into = __call__

    data = pair.client.send(b"secret")
    if name == "recv":
        made.feed(0, data)
    if name == "take":
        made.send(0, b"secret")
    assert area.quick == (name in ("recv", "take"))
    area.opener = area.sealer = Broken()  # type: ignore[assignment]
    made._pool.may_rest = 0
    monkeypatch.setattr(made._pool, "end_longest_rest", Broken())
    monkeypatch.setattr(made, "_broke", lambda: marked.append(made._torn))
    calls: dict[str, Callable[[], object]] = {
        "feed": lambda: made.feed(0, data),
        "send": lambda: made.send(0, b"secret"),
        "take": lambda: made.take(0, bytearray(99)),
        "recv": lambda: made.recv(0, bytearray(99)),
    }
    with pytest.raises(Stop):
        calls[name]()
    assert marked == [(1, 0)]


def test_a_time_that_is_none_is_refused_before_an_area_is_leased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = engine()
    monkeypatch.setattr(made._pool, "lease_for_handshake", stop)
    with pytest.raises(TypeError):
        made.serve(0, 1.0)  # type: ignore[arg-type]


def test_one_whose_transport_ended_does_not_rest_when_its_last_record_is_taken() -> None:
    made = engine(3, 2)
    Pair(made).establish()
    made.send(0, b"secret")
    made.eof(0)
    while made.take(0, bytearray(99)):
        pass
    assert made.failure(0) == "tls-peer-closed"
    assert not made.holds_area(0) and made.areas_resting() == 0


# -- a setting that broke ---------------------------------------------------------------------


def test_a_setting_that_breaks_is_nobody_s() -> None:
    # -1 is the last slot where it is taken for one.
    made = engine(3, 2)
    made.set_resting(0)
    Pair(made, 2).establish()
    breaks_in_a_setting(made)
    assert made.event(2) == "established"


def test_what_a_key_that_was_not_drawn_has_left_is_overwritten_at_once() -> None:
    made = engine()
    ring = made._server.resumption.ring
    ring._unused()[0][:] = b"k" * 32
    breaks_in_a_setting(made)
    assert ring.residue() == 0


def test_a_setting_whose_mending_breaks_is_mended_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = engine()
    ring = made._server.resumption.ring
    ring._unused()[0][:] = b"k" * 32
    with monkeypatch.context() as patch:
        patch.setattr(made._pool, "mend", stop)
        with pytest.raises(Stop):
            made.set_resting("one")  # type: ignore[arg-type]
    assert made.client_generation() == 0
    assert ring.residue() == 0


def test_a_connection_that_a_handler_broke_within_a_setting_is_failed() -> None:
    made = engine()
    Pair(made).establish()
    with pytest.raises(Stop), Whole(made):
        made._torn += (0,)
        raise Stop
    assert made.failure(0) == "tls-internal-error"
    assert NOBODY not in made._torn


# -- the end ----------------------------------------------------------------------------------


def test_an_engine_that_is_closed_has_no_secret_of_any_part() -> None:
    made = engine()
    made.set_tickets(1)
    Pair(made).establish()
    drbg, ring = made._drbg, made._server.resumption.ring
    assert drbg is not None and ring.current() is not None
    made.close()
    assert not any(drbg._key) and drbg.residue() == 0
    assert ring.current() is None and not any(map(any, ring._places))
    assert len(made._server.identities) == 0
    pool = made._pool
    assert pool._core_map.closed and pool._area_map.closed and pool._room_map.closed


def test_an_engine_without_entropy_can_be_closed() -> None:
    made = Engine.server(2, 1)
    made.close()
    assert made._pool._core_map.closed


@pytest.mark.parametrize("step", ["wipe", "close"])
def test_a_close_that_broke_goes_on_where_it_was(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine()
    Pair(made).establish()
    real: Callable[[], None] = getattr(made._pool, step)
    times = [Stop, None]

    def once(*_: Any) -> None:
        real()
        if times.pop(0):
            raise Stop

    monkeypatch.setattr(made._pool, step, once)
    with pytest.raises(Stop):
        made.close()
    assert times == []
    assert made._pool._core_map.closed and made._pool._room_map.closed
    with pytest.raises(ValueError, match="closed"):
        made.event(0)
