"""Harness differential: a client's first bytes to this engine and to OpenSSL, in one process.

Both have one identity and the same protocols. Compared is what each answers up to its flight: that
flight, a retry, nothing yet, or a refusal and its alert. A difference that no row of
`harnesses.models.differential_rows` covers is a finding, whichever of the two is wrong.
"""

from __future__ import annotations

import os
from functools import lru_cache

from engine import Engine, Event

from . import fixtures
from .connection import ended_as
from .models import differential as openssl
from .models import differential_rows as rows
from .models.differential import Answer
from .oracles import Broken, looked
from .play import MAIN_SLOT
from .whitebox import seed_again

MAX_LEN = 20_480
"""Longer than any ClientHello that is read."""

_out = bytearray(65_536)


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the engine's outcome, or Broken. Nothing is sampled."""
    return compare(data)[0]


def compare(data: bytes) -> tuple[str, rows.Row | None]:
    """The engine's outcome, and the row that expects OpenSSL's to be another, if it is."""
    looked("differential")
    outcome, ours = _ours(data)
    theirs = openssl.answer(data)
    said, answered = ours.word(theirs), theirs.word(ours)
    if said == answered:
        return outcome, None
    if ours.refused and said != "retry":
        said = outcome
    row = rows.find(data, said, answered, theirs.reason)
    if row is None:
        raise Broken("differential", f"the engine says {said}, OpenSSL {answered} {theirs.reason}")
    return outcome, row


def _ours(data: bytes) -> tuple[str, Answer]:
    engine = _engine()
    slot = MAIN_SLOT
    seed_again(engine, fixtures.SEED)
    engine.serve(slot, fixtures.NOW_MS)
    output = b""
    at = 0
    try:
        while at < len(data):
            taken = engine.feed(slot, data[at:])
            count = engine.take(slot, _out)
            output += _out[:count]
            at += taken
            if not taken and not count:
                break
        failed = engine.event(slot) is Event.FAILED
        output += _out[: engine.take(slot, _out)]
        answer = openssl.read(output, failed)
        failure = engine.failure(slot)
        if answer.refused and failure is not None:
            return failure.tag, answer
        return ended_as(engine, slot, "waiting"), answer
    except Exception as error:
        _engine.cache_clear()
        raise Broken("raised", f"{type(error).__name__}") from error
    finally:
        engine.drop(slot)


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return fixtures.server(MAIN_SLOT + 1, 1)


os.register_at_fork(after_in_child=_engine.cache_clear)
