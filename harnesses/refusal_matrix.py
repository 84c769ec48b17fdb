"""Which refusals can happen, and which of them inputs reach: the matrix of refusal coverage.

The cells are those of the engine's own table (`engine.refusals`, `where`), held to its rules and
its record layer by a test; and no committed input reaches a cell that is not there. What is there
and reached by nothing is an empty cell of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from engine import codepoints as c
from engine.layout import (
    ESTABLISHED,
    WAIT_CERTIFICATE,
    WAIT_CERTIFICATE_VERIFY,
    WAIT_CLIENT_HELLO,
    WAIT_FINISHED,
    WAIT_SECOND_CLIENT_HELLO,
)
from engine.refusals import (
    AT_CERTIFICATE,
    AT_FINISHED,
    AT_HELLO,
    AT_UPDATE,
    AT_VERIFY,
    CERT,
    CONNECTED,
    CV,
    FIN,
    MESSAGES,
    RETRIED,
    START,
    STATES,
    Refusal,
)
from peers.recorder.refusals import ARGUED

# What the engine numbers, by its name in the table.
STATE_NAMES: Final = {
    WAIT_CLIENT_HELLO: START,
    WAIT_SECOND_CLIENT_HELLO: RETRIED,
    WAIT_CERTIFICATE: CERT,
    WAIT_CERTIFICATE_VERIFY: CV,
    WAIT_FINISHED: FIN,
    ESTABLISHED: CONNECTED,
}
HANDSHAKE: Final = {
    c.CLIENT_HELLO: AT_HELLO,
    c.CERTIFICATE: AT_CERTIFICATE,
    c.CERTIFICATE_VERIFY: AT_VERIFY,
    c.FINISHED: AT_FINISHED,
    c.KEY_UPDATE: AT_UPDATE,
}


def unreachable() -> dict[str, str]:
    """Refusals of a connection that no input can cause, and what would."""
    why = {argued.tag: argued.why for argued in ARGUED}
    return {r.tag: why[r.tag] for r in Refusal if not r.where and not r.of_a_call}


def cells() -> Iterator[tuple[str, str, str]]:
    """Every cell that an input may reach, once: state, message, tag; by message, tag, state."""
    for message in MESSAGES:
        for refusal in Refusal:
            for state in refusal.where.get(message, ()):
                yield state, message, refusal.tag


def coverage(tables: Iterable[list[dict[str, Any]]]) -> dict[str, Any]:
    """Refusal coverage over the cells that several harnesses reached
    (`ci.coverage.corpus.refusals`).

    `cells` is every cell that is possible, with `inputs` 0 and no witness where it is empty, and
    `unexpected` what was reached and is not in the table above, which then is wrong.
    """
    reached: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in (row for table in tables for row in table):
        cell = (row["state"], row["message"], row["refusal"])
        if cell in reached:
            reached[cell]["inputs"] += row["inputs"]
            reached[cell]["committed"] += row["committed"]
        else:
            reached[cell] = dict(row)
    rows = [reached.pop(cell) if cell in reached else _empty(*cell) for cell in cells()]
    return {
        "states": list(STATES),
        "possible": len(rows),
        "reached": sum(row["inputs"] > 0 for row in rows),
        "committed": sum(row["committed"] > 0 for row in rows),
        "cells": rows,
        "unexpected": [reached[cell] for cell in sorted(reached)],
        "unreachable": unreachable(),
    }


def _empty(state: str, message: str, refusal: str) -> dict[str, Any]:
    return {
        "state": state,
        "message": message,
        "refusal": refusal,
        "inputs": 0,
        "committed": 0,
        "witness": "",
    }
