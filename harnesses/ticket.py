"""Harness ticket: a ticket's plaintext, sealed under the server's key, and how it is damaged.

The input's format is in `harnesses.formats.ticket`; it is compiled to a ClientHello and judged as
the server harness judges. And the engine must come to the verdict of the rules as they were read a
second time (`harnesses.models.ticket`): no ticket resumes, or is refused, by one reading alone.
"""

from __future__ import annotations

from .formats.ticket import decode
from .oracles import Broken, looked
from .play import judge
from .server import UNKNOWN

MAX_LEN = 700


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the outcome, or Broken. `thorough` leaves no oracle to a sample."""
    offered = decode(data)
    if offered is None:
        return UNKNOWN
    played = judge(offered.script, data, thorough)
    looked("verdict")
    if played.outcome != offered.outcome:
        raise Broken("verdict", f"the engine says {played.outcome}, the rules {offered.outcome}")
    return played.outcome
