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
from engine.layout import WRITE_IV, WRITE_KEY, WRITE_SEQ
from engine.schedule import SUITES

from .oracles import HEADER, Broken

_zeros: dict[int, bytearray] = {}


class WriteKey(NamedTuple):
    """The key under which a connection's next record will be sealed, and that record's number."""

    suite: int
    key: bytes
    iv: bytes
    sequence: int


def check_zero(engine: Engine) -> None:
    """`drop`: with every slot free, every byte of every core, area and room is zero."""
    for name, view in _maps(engine):
        if not _is_zero(view):
            raise Broken("drop", f"every slot is free and a byte of a {name} is not zero")


@contextmanager
def wiped(engine: Engine) -> Iterator[None]:
    """`drop`, around `close`: the maps, which views held here keep mapped, are zero after it."""
    held = [(name, view[:]) for name, view in _maps(engine)]
    yield
    for name, view in held:
        if not _is_zero(view):
            raise Broken("drop", f"the engine is closed and a byte of a {name} is not zero")
        view.release()


def resting(engine: Engine) -> list[int]:
    """The slots that rest in their area, the longest first."""
    return list(engine._pool.resting)


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
