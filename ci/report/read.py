"""Reading what another program wrote, or wrote a part of: the right type, or what stands for none.

A summary may be of an older version, of a night that was cut, or damaged; the report says "not
measured" of what is not there and never fails for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Raw = Mapping[str, object]
"""A JSON object of which nothing is known yet."""


def mapping(value: object) -> Raw:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[Raw]:
    """The objects of a JSON list; none for anything else."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    """The strings of a JSON list; none for anything else."""
    return [row for row in value if isinstance(row, str)] if isinstance(value, list) else []


def string(value: object) -> str:
    """A string; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """A number that is one (no NaN); None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e18 else None


def whole(value: object) -> int | None:
    """A whole number; None for anything else."""
    found = number(value)
    return None if found is None else int(found)


def counts(value: object) -> dict[str, int]:
    """Whole numbers by name; what is none is left out."""
    found = {str(key): whole(entry) for key, entry in mapping(value).items()}
    return {key: entry for key, entry in found.items() if entry is not None}


def file(path: Path) -> dict[str, object] | None:
    """A JSON object from a file; None when there is none to read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
