"""The outcomes files: what every committed input must end as.

`corpus/<harness>.outcomes` has one sorted line a file of `corpus/<harness>/`:

    FILE<TAB>OUTCOME[<TAB>REASON]

OUTCOME is what the harness's `run` returns. REASON is free text, for an outcome that surprises.
Replaying a corpus is thereby a test of behaviour, not only of "no crash". An input without an
outcome, and an outcome without an input, are disagreements like any other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "corpus"
# A name stands in outcomes files, between tabs, and in the catalogue, between spaces.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")

AES_128 = "TLS_AES_128_GCM_SHA256"
AES_256 = "TLS_AES_256_GCM_SHA384"
CHACHA = "TLS_CHACHA20_POLY1305_SHA256"


def chosen(suite: str = AES_128, group: str = "X25519", retried: str = "no", more: str = "") -> str:
    """The outcome of a hello that is answered."""
    return f"waiting suite={suite} group={group} retried={retried}{more}"


@cache
def tags() -> frozenset[str]:
    """The tag of every refusal, which an outcome may begin with."""
    # Not above: who reads outcomes need not have the engine.
    from engine.refusals import Refusal

    return frozenset(refusal.tag for refusal in Refusal)


class Outcome(NamedTuple):
    """What an input must end as, and why when that surprises."""

    outcome: str
    reason: str = ""


class Disagreement(NamedTuple):
    """One input whose outcome is not the committed one; either side is None when it is missing."""

    file: str
    expected: str | None
    found: str | None

    def __str__(self) -> str:
        if self.expected is None:
            return f"{self.file}: has no outcome (found: {self.found})"
        if self.found is None:
            return f"{self.file}: has an outcome and is no input"
        return f"{self.file}: expected {self.expected}, found {self.found}"


def folder(name: str) -> Path:
    """The committed inputs of a harness."""
    return CORPUS / name


def path(name: str) -> Path:
    """The outcomes file of a harness."""
    return CORPUS / f"{name}.outcomes"


def inputs(name: str) -> list[Path]:
    """Every committed input of a harness, by name; ValueError for an entry that cannot be one.

    An entry that some readers skip and others follow (libFuzzer reads sub-folders too) would be
    an input in one command and none in the next.
    """
    entries = sorted(folder(name).iterdir())
    for entry in entries:
        if entry.is_symlink() or not entry.is_file():
            raise ValueError(f"corpus/{name}: {entry.name!a} is no file but a folder or a link")
        if not NAME.fullmatch(entry.name):
            raise ValueError(f"corpus/{name}: {entry.name!a} is no name of an input")
    return entries


def parse(text: str) -> dict[str, Outcome]:
    """The lines of an outcomes file; ValueError for a line that is not one, unsorted or twice."""
    table: dict[str, Outcome] = {}
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t")
        if not 2 <= len(fields) <= 3 or not all(fields):
            raise ValueError(f"line {number} is not FILE<TAB>OUTCOME[<TAB>REASON]")
        if fields[0] <= last:
            raise ValueError(f"line {number}: {fields[0]} is out of order or there twice")
        last = fields[0]
        table[last] = Outcome(*fields[1:])
    return table


def read(name: str) -> dict[str, Outcome]:
    """The committed outcomes of a harness."""
    return parse(path(name).read_text(encoding="utf-8"))


def render(table: dict[str, Outcome]) -> str:
    """The text of an outcomes file."""
    lines = ("\t".join(filter(None, (file, *table[file]))) + "\n" for file in sorted(table))
    return "".join(lines)


def write(name: str, table: dict[str, Outcome]) -> None:
    """Replaces a harness's outcomes file at once, so that a broken run leaves the old one."""
    target = path(name)
    aside = target.with_suffix(".outcomes.new")
    aside.write_text(render(table), encoding="utf-8")
    os.replace(aside, target)


def compare(name: str, run: Callable[[bytes], str]) -> Iterator[Disagreement]:
    """Runs every committed input, yields where the outcome differs; what `run` raises passes."""
    table = read(name)
    for entry in inputs(name):
        found = run(entry.read_bytes())
        expected = table.pop(entry.name, None)
        if expected is None or expected.outcome != found:
            yield Disagreement(entry.name, expected and expected.outcome, found)
    for file, left in sorted(table.items()):
        yield Disagreement(file, left.outcome, None)
