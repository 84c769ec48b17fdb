"""Where every committed input comes from: `corpus/provenance.tsv`.

One sorted line a file, `HARNESS/FILE<TAB>SOURCE`. A file without a line, and a line without a file,
are red in the tests: an input nobody can account for is one nobody dares to delete.
"""

from __future__ import annotations

import os

from .outcomes import CORPUS

PATH = CORPUS / "provenance.tsv"


def parse(text: str) -> dict[str, str]:
    """The lines of the file; ValueError for what is no line, is out of order, or is there twice."""
    table: dict[str, str] = {}
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        file, tab, source = line.partition("\t")
        if not tab or not source.strip() or file.count("/") != 1:
            raise ValueError(f"line {number} is not HARNESS/FILE<TAB>SOURCE")
        if file <= last:
            raise ValueError(f"line {number}: {file} is out of order or there twice")
        last = file
        table[file] = source
    return table


def read() -> dict[str, str]:
    """Every file's source."""
    return parse(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def write(table: dict[str, str]) -> None:
    """Replaces the file at once."""
    aside = PATH.with_suffix(".tsv.new")
    lines = (f"{file}\t{table[file]}\n" for file in sorted(table))
    aside.write_text("".join(lines), encoding="utf-8")
    os.replace(aside, PATH)
