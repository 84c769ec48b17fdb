"""Harness server: the engine from `serve`, fed in the pieces that the input names.

The input is settings, steps and a client's bytes (`harnesses.formats.server`); how it is played,
and by what it is judged, is `harnesses.play`.
"""

from __future__ import annotations

from .formats.server import decode
from .play import judge

MAX_LEN = 20_480
UNKNOWN = "unknown-format"
"""The outcome of an input whose first byte is no version: nothing of it is fed."""


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the outcome, or Broken. `thorough` leaves no oracle to a sample."""
    script = decode(data)
    return UNKNOWN if script is None else judge(script, data, thorough).outcome
