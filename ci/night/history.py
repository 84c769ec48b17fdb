"""history.jsonl: one line of JSON a night, appended and never rewritten.

A line that a kill or a full disk tore has no end of line: it is left out when rows are read, and
cut off before the next is appended, so that it harms no other. A line in the middle that is no row
(somebody edited the file) is left out too, and left alone.
"""

import json
import os
from pathlib import Path
from typing import Any

Row = dict[str, Any]
# What later nights and the report read of a row. Older rows may lack some.
SHAPES: dict[str, type | tuple[type, ...]] = {
    "night": str,
    "started": str,
    "seconds": (int, float),
    "exit": int,
    "commit": str,
    "executions": dict,
    "edges": dict,
    "inputs": dict,
    "new": dict,
    "gained": dict,
    "fuzzed": dict,
    "profiled": list,
    "coverage": dict,
    "slice": (dict, type(None)),
    "findings": dict,
}


def read(path: Path) -> tuple[list[Row], list[str]]:
    """The rows, oldest first, and what is wrong with the file, in words."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"{path.name} cannot be read: {error.strerror}"]
    rows, wrong = [], []
    *lines, torn = data.split(b"\n")
    if torn:
        wrong.append(f"{path.name}: its last line is torn and is left out")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if _is_row(row):
            rows.append(row)
        else:
            wrong.append(f"{path.name}: line {number} is no row")
    return rows, wrong


def _is_row(row: Any) -> bool:
    """Whether a line is a row that a night wrote; a part of it that is not of its kind is none."""
    return (
        isinstance(row, dict)
        and "night" in row
        and all(isinstance(row[key], kind) for key, kind in SHAPES.items() if key in row)
    )


def append(path: Path, row: Row) -> None:
    """Add a row at the end, after cutting off what is torn there. OSError when it cannot be."""
    with path.open("ab+") as file:
        end = _end_of_lines(path)
        file.truncate(end)
        try:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            # Half a row on a full disk: take it away again, which needs no space.
            os.truncate(path, end)
            raise


def _end_of_lines(path: Path) -> int:
    """Where the last whole line ends."""
    data = path.read_bytes()
    return data.rfind(b"\n") + 1
