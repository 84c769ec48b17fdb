"""Known findings: what somebody has looked at, why it may stay, and until when.

    [[known]]
    bucket = "1f2e3d4c5b6a"        # or fields of the signature, all of which must be equal:
    # harness = "server"
    # oracle = "chunks"
    reason = "the split of a record of 16,385 bytes, fixed with the next release"
    expires = 2027-01-31

The last day counts. An entry whose day has passed excuses nothing: its bucket makes a night red
again. One that has passed and has no bucket left to excuse is stale, and is listed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

from .bucket import Bucket
from .signature import Signature

PATH = Path(__file__).resolve().parent / "known.toml"
FIELDS = tuple(field.name for field in fields(Signature))

NEW, KNOWN, EXPIRED, FIXED = "new", "known", "expired", "fixed"
STATES = (EXPIRED, NEW, KNOWN, FIXED)
"""What a bucket can be, in the order in which a person should look at them."""
RED = (EXPIRED, NEW)


class KnownError(ValueError):
    """A file of known findings that cannot be used. The message is one line that says why."""


@dataclass(frozen=True)
class Entry:
    """One entry: which buckets, why, and the last day."""

    match: dict[str, object]
    reason: str
    expires: date

    def covers(self, made: Bucket) -> bool:
        """Whether a bucket is one of its."""
        if "bucket" in self.match:
            return made.id == self.match["bucket"]
        return all(getattr(made.signature, name) == value for name, value in self.match.items())

    def __str__(self) -> str:
        what = " ".join(f"{name}={value}" for name, value in self.match.items())
        return f"{what} (until {self.expires}: {self.reason})"


def read(path: Path) -> list[Entry]:
    """The entries of a file; KnownError for one that is not whole."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KnownError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise KnownError(f"{path}: {error}") from None
    entries = data.pop("known", [])
    if data or not isinstance(entries, list):
        raise KnownError(f"{path}: there is nothing in it but [[known]]")
    return [_entry(entry, f"{path}: entry {n}") for n, entry in enumerate(entries, 1)]


def _entry(entry: object, where: str) -> Entry:
    if not isinstance(entry, dict):
        raise KnownError(f"{where} is no table")
    match = dict(entry)
    reason, expires = match.pop("reason", None), match.pop("expires", None)
    if not isinstance(reason, str) or not reason.strip():
        raise KnownError(f"{where} has no reason")
    # A moment is a date too, to Python.
    if type(expires) is not date:
        raise KnownError(f"{where} has no expires = YEAR-MONTH-DAY")
    if not match:
        raise KnownError(f"{where} says neither a bucket nor a field of a signature")
    if "bucket" in match and len(match) > 1:
        raise KnownError(f"{where} has a bucket, which says all, and {len(match) - 1} more")
    for name in match:
        if name != "bucket" and name not in FIELDS:
            raise KnownError(f"{where}: {name!r} is none of bucket, {', '.join(FIELDS)}")
    if "frames" in match:
        if not isinstance(match["frames"], list):
            raise KnownError(f"{where}: frames is a list of strings")
        match["frames"] = tuple(match["frames"])
    return Entry(match, reason, expires)


def state(made: Bucket, entries: Iterable[Entry], today: date) -> tuple[str, Entry | None]:
    """What a bucket is today, and the entry that says so; of several the one that lasts longest."""
    covering = [entry for entry in entries if entry.covers(made)]
    entry = max(covering, key=lambda entry: entry.expires, default=None)
    if made.fixed:
        return FIXED, entry
    if entry is None:
        return NEW, None
    return (KNOWN if today <= entry.expires else EXPIRED), entry


def stale(buckets: Iterable[Bucket], entries: Iterable[Entry], today: date) -> list[Entry]:
    """The entries whose day has passed and that have nothing left to excuse."""
    open_ones = [made for made in buckets if not made.fixed]
    return [
        entry
        for entry in entries
        if entry.expires < today and not any(entry.covers(made) for made in open_ones)
    ]
