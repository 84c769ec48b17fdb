"""A result, as a table for a person and as JSON for a program, with the command that made it."""

import os
import platform
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cryptography
from cryptography.hazmat.backends.openssl import backend

from ci.results import Json

Value = str | int | float | None

COMMAND = "RESIDUE_BENCH_COMMAND"
"""Set for a bench that was started again by another process: the command a person typed."""


@dataclass(frozen=True)
class Column:
    """A column: its key in the JSON, its heading, and how a value is written."""

    key: str
    heading: str
    form: str = ""

    def write(self, value: Value) -> str:
        """The value as the table shows it; what is not known is a dash."""
        return "-" if value is None else format(value, self.form)


@dataclass(frozen=True)
class Result:
    """What one bench found."""

    bench: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Value]]
    conditions: Mapping[str, Value]
    notes: Sequence[str] = ()

    def document(self) -> dict[str, object]:
        """The result as JSON: rows with every key, and what is needed to read them later."""
        return {
            "bench": self.bench,
            "command": command(),
            "unix_time": int(time.time()),
            "machine": machine(),
            "conditions": dict(self.conditions),
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """The table, the conditions and notes, and the command under it."""
        cells = [
            [column.write(row.get(column.key)) for column in self.columns] for row in self.rows
        ]
        heads = [column.heading for column in self.columns]
        widths = [max(map(len, lane)) for lane in zip(heads, *cells, strict=True)]
        lines = [_line(heads, widths), _line(["-" * width for width in widths], widths)]
        lines += [_line(row, widths) for row in cells]
        lines.append("")
        lines += self.notes
        lines.append(", ".join(f"{key} {value}" for key, value in self.conditions.items()))
        lines.append(", ".join(f"{key} {value}" for key, value in machine().items()))
        lines.append(f"command: {command()}")
        return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first column to the left, the figures to the right."""
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest]).rstrip()


def machine() -> dict[str, Value]:
    """What the figures depend on and the command line does not say."""
    return {
        "python": platform.python_version(),
        "ssl": ssl.OPENSSL_VERSION,
        "cryptography": f"{cryptography.__version__} ({backend.openssl_version_text()})",
        "cores": os.cpu_count(),
    }


def command() -> str:
    """The command line that gives this result again."""
    if COMMAND in os.environ:
        return os.environ[COMMAND]
    name = Path(sys.argv[0]).name
    if name == "__main__.py":
        name = f"python -m {Path(sys.argv[0]).parent.name}"
    return " ".join([name, *sys.argv[1:]])


def show(result: Result, target: Json) -> None:
    """Print the table; write the JSON. Untrusted when that fails."""
    print(result.text())
    target.write(result.document())
