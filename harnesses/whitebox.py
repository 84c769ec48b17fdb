"""What the oracles read behind the engine's calls, so that it need not be believed.

`residue()` is the engine's own scan; a fault in it would hide what it should count. Here the maps
are read directly. And an alert under the server's key can be judged only by who has the key: it is
read from the connection's core before the record that makes it fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cryptography.exceptions import InvalidTag

from engine import Engine, Refusal
from engine import codepoints as c
from engine.drbg import Drbg
from engine.key_schedule import SUITES
from engine.layout import (
    AREA_LEN,
    CORE_LEN,
    ESTABLISHED,
    FREE,
    KEYS,
    KEYS_END,
    WRITE_IV,
    WRITE_KEY,
    WRITE_SEQ,
)

from .oracles import HEADER, Broken, looked

_zeros: dict[int, bytearray] = {}


class WriteKey(NamedTuple):
    """The key under which a connection's next record will be sealed, and that record's number."""

    suite: int
    key: bytes
    iv: bytes
    sequence: int


def check_zero(engine: Engine) -> None:
    """`drop`: with every slot free, every byte of every core, area and room is zero."""
    looked("drop")
    for name, view in _maps(engine):
        if not _is_zero(view):
            raise Broken("drop", f"every slot is free and a byte of a {name} is not zero")


class HeldMaps:
    """Views of an engine's maps, which keep them mapped when it is closed."""

    def __init__(self, engine: Engine) -> None:
        self._views = [(name, view[:]) for name, view in _maps(engine)]

    def check_wiped(self) -> None:
        """`drop`: the engine is closed, and every byte is zero."""
        for name, view in self._views:
            if not _is_zero(view):
                raise Broken("drop", f"the engine is closed and a byte of a {name} is not zero")

    def release(self) -> None:
        """Let the maps go."""
        for _, view in self._views:
            view.release()


@contextmanager
def wiped(engine: Engine) -> Iterator[None]:
    """`drop`, around `close`."""
    held = HeldMaps(engine)
    yield
    held.check_wiped()
    held.release()


def core_of(engine: Engine, slot: int) -> bytes:
    """The core of a connection that has no area."""
    return bytes(engine._pool.core(slot))


def put_core(engine: Engine, slot: int, core: bytes) -> None:
    """Give a free slot the connection whose core this is."""
    engine._pool.core(slot)[:] = core


def stray(engine: Engine, idle: int) -> str:
    """What lies in the maps beside the cores of so many idle connections; empty for nothing.

    The engine's own books are not asked: an area that is in none of them is looked at too.
    """
    areas, cores = engine._pool._area_bytes, engine._pool._cores
    used = [at for at in range(0, len(areas), AREA_LEN) if not _is_zero(areas[at : at + AREA_LEN])]
    kept = [at for at in range(0, len(cores), CORE_LEN) if not _is_zero(cores[at : at + CORE_LEN])]
    if len(used) + len(kept) > idle:
        return f"{len(used)} areas and {len(kept)} cores are not zero for {idle} idle connections"
    if any(not _is_zero(areas[at + CORE_LEN : at + AREA_LEN]) for at in used):
        return "behind the core of an idle connection something is not zero"
    return "" if _is_zero(engine._pool._rooms) else "a room of nobody is not zero"


def areas_in_use(engine: Engine) -> int:
    """How many areas have a byte that is not zero."""
    areas = engine._pool._area_bytes
    return sum(not _is_zero(areas[at : at + AREA_LEN]) for at in range(0, len(areas), AREA_LEN))


def handshaking(engine: Engine) -> int:
    """How many slots are between `serve` and the end of their handshake."""
    states = (engine._pool.state(slot) for slot in range(engine._slots))
    return sum(FREE < state < ESTABLISHED for state in states)


def keys_are_zero(engine: Engine, slot: int) -> bool:
    """Whether a slot has no secret, key or IV left."""
    return _is_zero(engine._pool.block(slot)[KEYS:KEYS_END])


def settings(engine: Engine) -> tuple[object, ...]:
    """What the configuration calls set, one item a setting."""
    server = engine._server
    ring, clients = server.resumption.ring, server.clients
    key = ring.current()
    default, _ = server.identities.find(None)
    return (
        (len(server.identities), default.names, default.fingerprint),
        server.policy.alpn,
        server.resumption.count,
        ring.lifetime_ms,
        ring.now_ms,
        (ring.open_keys(), None if key is None else key.name),
        (clients.generation, len(clients.store or ())),
        clients.mode,
        clients.clock_ms,
        engine._pool.may_rest,
    )


def resting(engine: Engine) -> list[int]:
    """The slots that rest in their area, the longest first."""
    return list(engine._pool.resting)


def seed_again(engine: Engine, entropy: bytes) -> None:
    """As after the first `seed`: an input's bytes are the same whatever the engine served before,
    where a second `seed` would mix with what is there."""
    engine._drbg = Drbg(entropy)


def _maps(engine: Engine) -> tuple[tuple[str, memoryview], ...]:
    pool = engine._pool
    return ("core", pool._cores), ("area", pool._area_bytes), ("room", pool._rooms)


def _is_zero(view: memoryview) -> bool:
    size = len(view)
    if size not in _zeros:
        _zeros[size] = bytearray(size)
    return _zeros[size] == view


def write_key(engine: Engine, slot: int) -> WriteKey | None:
    """The server's key in force; None before there is one."""
    suite = engine.suite(slot)
    if not suite:
        return None
    block = engine._pool.block(slot)
    length = SUITES[suite].key_length
    key = bytes(block[WRITE_KEY : WRITE_KEY + length])
    iv = bytes(block[WRITE_IV : WRITE_IV + 12])
    return WriteKey(suite, key, iv, engine._pool.words(slot)[WRITE_SEQ])


def check_sealed_alert(key: WriteKey, record: bytes, refusal: Refusal) -> None:
    """`alert`: the record opens under the key and holds the refusal's alert, fatal."""
    aead = SUITES[key.suite].aead(key.key)
    nonce = (int.from_bytes(key.iv) ^ key.sequence).to_bytes(12)
    try:
        inner = aead.decrypt(nonce, record[HEADER:], record[:HEADER])
    except InvalidTag:
        raise Broken("alert", f"{refusal.tag}: its alert is not under the key in force") from None
    if inner != bytes([c.ALERT_LEVEL_FATAL, refusal.alert or 0, c.ALERT]):
        raise Broken("alert", f"{refusal.tag}: the sealed alert is {inner.hex()}")
