"""What a handmade input is: bytes, and what they are there to show."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One input: its bytes, the outcome it must have, what it is there for, and why it ends so
    where that surprises."""

    data: bytes
    outcome: str
    what: str
    reason: str = ""
