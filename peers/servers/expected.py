"""What a foreign server is known to do otherwise than this project's engine, and why that is so.

A table (`expected.toml`) is made of rows. A row names conversations of a suite by glob, says what
the server does in them, and argues it. A difference that no row has is news; a glob under which
nothing differs any more is stale, and its row says something that is no longer so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from peers.liar.live import Played

PATH = Path(__file__).with_name("expected.toml")


@dataclass(frozen=True)
class Row:
    """``does`` are the ends that may be seen in the conversations: "alert 47", "established"."""

    suite: str
    names: tuple[str, ...]
    does: tuple[str, ...]
    why: str

    def covers(self, played: Played, name: str) -> bool:
        """Whether this is the difference that the row speaks of, under one of its globs."""
        return (
            played.conversation.suite == self.suite
            and fnmatchcase(played.conversation.name, name)
            and end_of(played) in self.does
        )


@dataclass(frozen=True)
class Table:
    """All differences that are expected of one server in one version."""

    server: str
    version: str
    rows: tuple[Row, ...]

    def row(self, played: Played) -> Row | None:
        """The first row that has this difference."""
        for row in self.rows:
            if any(row.covers(played, name) for name in row.names):
                return row
        return None

    def unexplained(self, all_played: Iterable[Played]) -> list[Played]:
        """The differences that no row has."""
        return [one for one in all_played if differs(one) and self.row(one) is None]

    def stale(self, all_played: Iterable[Played]) -> list[str]:
        """The globs under which nothing differs as their row says."""
        different = [one for one in all_played if differs(one)]
        return [
            f"{row.suite} {name}: {', '.join(row.does)}"
            for row in self.rows
            for name in row.names
            if not any(row.covers(one, name) for one in different)
        ]


def differs(played: Played) -> bool:
    """Whether the server did another thing than the conversation's end says."""
    return played.what not in ("right", "not played")


def end_of(played: Played) -> str:
    """What was seen on the wire, in the table's words: the outcome, and an alert's number."""
    seen = played.seen
    if seen is None:
        return played.what
    return seen.outcome if seen.alert is None else f"{seen.outcome} {seen.alert}"


def load(path: Path = PATH) -> Table:
    """The table of a file. Raises `ValueError` for a row without an argument."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = []
    for row in data["row"]:
        if not row["why"].strip():
            raise ValueError(f"a row of {path.name} has no argument: {row['names']}")
        rows.append(Row(row["suite"], tuple(row["names"]), tuple(row["does"]), row["why"].strip()))
    return Table(data["server"], data["version"], tuple(rows))
