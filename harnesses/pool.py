"""Harness pool: an order of calls over several connections that share fewer areas.

The input's format is in `harnesses.formats.pool`; each operation is applied to the engine and to a
plain model of it (`harnesses.models.pool`), and everything the engine says is compared with what
the model says, after every call.
"""

from __future__ import annotations

from .formats.pool import MAX_OPERATIONS, decode
from .models.pool import Model
from .oracles import Broken, looked
from .server import UNKNOWN

MAX_LEN = 3 + 3 * MAX_OPERATIONS


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the outcome, or Broken. Everything is asked always, `thorough` or not."""
    order = decode(data)
    if order is None:
        return UNKNOWN
    model = Model(order)
    looked("raised", "residue", "model", "areas", "delivered")
    try:
        for operation in order.operations:
            model.apply(operation)
        outcome = model.outcome()
        model.finish()
    except Broken:
        raise
    except Exception as fault:
        raise Broken("raised", f"{type(fault).__name__}: {fault}") from fault
    model.close()
    return outcome
