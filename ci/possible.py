"""Which refusals can happen: for each state the messages, for each message the refusals.

Written by hand from the engine's tables and held to them by a test: every refusal that a peer can
cause is here, the messages of each state are those of the engine's rules, and no committed input
reaches a cell that is not here. What is here and reached by nothing is an empty cell of the report.
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
from engine.refusals import Refusal as R

# RFC 8446 appendix A.2 names them so; a retry leads back to its START.
START, RETRIED, CERT, CV, FIN, CONNECTED = (
    "START",
    "START, retried",
    "WAIT_CERT",
    "WAIT_CV",
    "WAIT_FINISHED",
    "CONNECTED",
)
STATES: Final = {
    WAIT_CLIENT_HELLO: START,
    WAIT_SECOND_CLIENT_HELLO: RETRIED,
    WAIT_CERTIFICATE: CERT,
    WAIT_CERTIFICATE_VERIFY: CV,
    WAIT_FINISHED: FIN,
    ESTABLISHED: CONNECTED,
}
ALL: Final = tuple(STATES.values())
SEALED: Final = (CERT, CV, FIN, CONNECTED)
FLIGHT: Final = (CERT, CV, FIN)

HEADER, PROTECTED, EARLY = "record header", "protected record", "early data"
ALERT, CCS, END = "Alert", "change_cipher_spec", "end of transport"
HELLO, CERTIFICATE, VERIFY = "ClientHello", "Certificate", "CertificateVerify"
FINISHED, UPDATE, OTHER = "Finished", "KeyUpdate", "another handshake message"
HANDSHAKE: Final = {
    c.CLIENT_HELLO: HELLO,
    c.CERTIFICATE: CERTIFICATE,
    c.CERTIFICATE_VERIFY: VERIFY,
    c.FINISHED: FINISHED,
    c.KEY_UPDATE: UPDATE,
}
# Where each handshake message has a handler; elsewhere it is unexpected.
HANDLED: Final = {
    HELLO: (START, RETRIED),
    CERTIFICATE: (CERT,),
    VERIFY: (CV,),
    FINISHED: (FIN,),
    UPDATE: (CONNECTED,),
    OTHER: (),
}

UNREACHABLE: Final = {
    R.INTERNAL_ERROR: "a defect of the engine itself",
    R.SERVER_SIGN_CHECK: "a signer that faults, which no peer can cause",
}
"""Refusals of a connection that no input can cause, and what would."""

_CHOICE: Final = (
    R.SERVER_CLIENT_HELLO_LENGTH,
    R.SERVER_CLIENT_HELLO_FORMAT,
    R.SERVER_EXTENSION_REPEAT,
    R.SERVER_MISSING_EXTENSION,
    R.SERVER_ILLEGAL_PARAMETER,
    R.SERVER_VERSION,
    R.SERVER_SUITE,
    R.SERVER_GROUP,
    R.SERVER_SIGALG,
    R.SERVER_ALPN,
    R.SERVER_BINDER,
    R.KEY_SHARE,
    R.UNEXPECTED_MESSAGE,
)
_TABLE: Final[tuple[tuple[str, tuple[str, ...], tuple[R, ...]], ...]] = (
    (HEADER, ALL, (R.UNEXPECTED_MESSAGE, R.PROTOCOL_VERSION, R.RECORD_OVERFLOW)),
    (HEADER, SEALED, (R.BAD_RECORD_MAC,)),
    (PROTECTED, SEALED, (R.BAD_RECORD_MAC, R.RECORD_OVERFLOW, R.UNEXPECTED_MESSAGE)),
    (PROTECTED, (CONNECTED,), (R.TOO_MANY_MESSAGES,)),
    # Once a record has opened no early data is skipped, and WAIT_CV comes after one.
    (EARLY, (RETRIED, CERT, FIN), (R.SERVER_EARLY_DATA_SIZE, R.TOO_MANY_MESSAGES)),
    (CCS, (RETRIED, *FLIGHT), (R.UNEXPECTED_MESSAGE, R.TOO_MANY_MESSAGES)),
    (ALERT, ALL, (R.ALERT, R.DECODE_ERROR, R.TOO_MANY_MESSAGES)),
    # In the clear an empty alert is the header's to refuse.
    (ALERT, SEALED, (R.UNEXPECTED_MESSAGE,)),
    (END, ALL, (R.PEER_CLOSED,)),
    (HELLO, (START, RETRIED), _CHOICE),
    (HELLO, (RETRIED,), (R.SERVER_RETRY_SHARE,)),
    (
        CERTIFICATE,
        (CERT,),
        (
            R.DECODE_ERROR,
            R.SERVER_ILLEGAL_PARAMETER,
            R.UNSUPPORTED_EXTENSION,
            R.SERVER_CLIENT_CERT_REQUIRED,
            *(refusal for refusal in R if refusal.tag.startswith("x509-")),
        ),
    ),
    (VERIFY, (CV,), (R.DECODE_ERROR, R.SERVER_CLIENT_SIGALG, R.BAD_CERTIFICATE_VERIFY)),
    (
        FINISHED,
        (FIN,),
        (
            R.DECODE_ERROR,
            R.UNEXPECTED_MESSAGE,
            R.SERVER_FINISHED,
            R.SERVER_CLIENT_STORE_REPLACED,
        ),
    ),
    (
        UPDATE,
        (CONNECTED,),
        (
            R.DECODE_ERROR,
            R.UNEXPECTED_MESSAGE,
            R.SERVER_ILLEGAL_PARAMETER,
            R.TOO_MANY_MESSAGES,
        ),
    ),
    *(
        (message, tuple(state for state in ALL if state not in handled), (R.UNEXPECTED_MESSAGE,))
        for message, handled in HANDLED.items()
    ),
)


def cells() -> Iterator[tuple[str, str, str]]:
    """Every cell that an input may reach, once: state, message, tag; by message, tag, state."""
    found = {
        (message, refusal.tag, state)
        for message, states, refusals in _TABLE
        for refusal in refusals
        for state in states
    }
    messages = list(dict.fromkeys(row[0] for row in _TABLE))
    tags = [refusal.tag for refusal in R]
    for message, tag, state in sorted(
        found, key=lambda f: (messages.index(f[0]), tags.index(f[1]), ALL.index(f[2]))
    ):
        yield state, message, tag


def coverage(tables: Iterable[list[dict[str, Any]]]) -> dict[str, Any]:
    """Refusal coverage over the cells that several harnesses reached (`ci.inventory.refusals`).

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
        "states": list(ALL),
        "possible": len(rows),
        "reached": sum(row["inputs"] > 0 for row in rows),
        "committed": sum(row["committed"] > 0 for row in rows),
        "cells": rows,
        "unexpected": [reached[cell] for cell in sorted(reached)],
        "unreachable": {refusal.tag: why for refusal, why in UNREACHABLE.items()},
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
