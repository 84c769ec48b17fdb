"""The ledger of survivors argued equivalent, `mutants/equivalent.toml`.

An entry is keyed by the code and not by a number: the file, the function, the lines before and
after, as `residue mutate` prints them without indentation. It has an argument, which the gate
shows, and `count` when a function has the same line more than once (1 without it).

An entry that matches no mutant any more, or another number of them, is stale; one whose mutant a
test kills is wrong. Both are red: an argument about code that is gone proves nothing, and would
cover the next mutant that happens to look alike.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mutants.settings import ROOT, SUITE
from mutants.verdicts import Mutant, Result, Verdict

LEDGER = ROOT / SUITE.ledger
_TEXTS = ("file", "function", "before", "after", "argument")
# A kill is a proof that the argument is wrong; a crash or a time-out is one too.
_SPARED = (Verdict.SURVIVED, Verdict.NOT_RUN)


class LedgerError(ValueError):
    """A ledger that cannot be read: a field missing, empty or unknown, or an entry twice."""


@dataclass(frozen=True)
class Entry:
    """One argued mutant."""

    file: str
    function: str
    before: str
    after: str
    argument: str
    count: int = 1

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a mutant is known by."""
        return (self.file, self.function, self.before, self.after)

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.before!r} to {self.after!r}"


@dataclass
class Settled:
    """Results read against the ledger."""

    argued: dict[str, Entry] = field(default_factory=dict)
    """Survivors by name, with the entry that argues them."""
    stale: list[str] = field(default_factory=list)
    """What is wrong with the ledger itself."""
    left: list[Result] = field(default_factory=list)
    """Mutants that nothing killed and nobody argued: survivors, and those no test runs."""


def load(path: Path = LEDGER) -> tuple[Entry, ...]:
    """The entries of the ledger; none when there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    return parse(text, path.name)


def parse(text: str, name: str) -> tuple[Entry, ...]:
    """The entries of a ledger's text."""
    try:
        tables = tomllib.loads(text).get("equivalent", [])
    except tomllib.TOMLDecodeError as error:
        raise LedgerError(f"{name}: {error}") from None
    entries = tuple(_entry(table, name) for table in tables)
    for at, entry in enumerate(entries):
        if any(other.key == entry.key for other in entries[:at]):
            raise LedgerError(f"{name}: twice: {entry}")
    return entries


def settle(
    entries: Iterable[Entry], mutants: Iterable[Mutant], results: Collection[Result]
) -> Settled:
    """Which survivors are argued, which are left, and which entries do not hold.

    `mutants` is everything that was made of the functions looked at, `results` the verdicts, of a
    shard perhaps. An entry for a function that was not looked at is not judged.
    """
    made: dict[tuple[str, str, str, str], list[Mutant]] = {}
    seen: set[tuple[str, str]] = set()
    files: set[str] = set()
    for mutant in mutants:
        key = (mutant.file, mutant.function, mutant.before, mutant.after)
        made.setdefault(key, []).append(mutant)
        seen.add((mutant.file, mutant.function))
        files.add(mutant.file)
    verdicts = {result.mutant.name: result for result in results}
    settled = Settled()
    for entry in entries:
        if (entry.file, entry.function) not in seen:
            continue
        matching = made.get(entry.key, [])
        if len(matching) != entry.count:
            what = f"stale: {len(matching)} mutants match, not {entry.count}"
            settled.stale.append(f"{what}: {entry}")
            continue
        for mutant in matching:
            result = verdicts.get(mutant.name)
            if result is None:
                continue
            if result.verdict in _SPARED:
                settled.argued[mutant.name] = entry
            else:
                settled.stale.append(f"wrong: {result.verdict} by {result.by or 'itself'}: {entry}")
    settled.left = [
        result
        for result in results
        if result.verdict in _SPARED and result.mutant.name not in settled.argued
    ]
    return settled


def orphans(entries: Iterable[Entry], functions: Mapping[str, Collection[str]]) -> list[str]:
    """Entries for a function that its file does not have, which no run would ever look at."""
    return [
        f"stale: {entry.file} has no {entry.function}: {entry}"
        for entry in entries
        if entry.function not in functions.get(entry.file, ())
    ]


def _entry(table: object, name: str) -> Entry:
    if not isinstance(table, dict):
        raise LedgerError(f"{name}: an entry is a table")
    missing = [key for key in _TEXTS if not isinstance(table.get(key), str)]
    unknown = sorted(set(table) - {*_TEXTS, "count"})
    # `before` or `after` may be empty, where lines are only added or taken away.
    missing += [key for key in ("file", "function", "argument") if not table.get(key)]
    count = table.get("count", 1)
    if missing or unknown or not isinstance(count, int) or count < 1:
        what = f"missing {missing}, unknown {unknown}, count {count}"
        raise LedgerError(f"{name}: {table.get('file')} {table.get('function')}: {what}")
    file, function, before, after, argument = (str(table[key]) for key in _TEXTS)
    return Entry(file, function, before, after, argument, count)
