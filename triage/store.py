"""A folder of buckets: ID.json and ID.input, the smallest input so far.

Both are written aside and renamed, the input first: whenever the program ends, each file is whole,
and an input that is newer than what is said of it still shows the bucket, because only such an
input is ever put there.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from . import bucket
from .bucket import Bucket
from .signature import Signature


class StoreError(Exception):
    """A store that cannot be used. The message is one line that says why."""


class Store:
    """The buckets of one folder, by their ids. Reading changes nothing and makes no folder."""

    def __init__(self, folder: Path) -> None:
        """StoreError for a folder that is none.

        A file in it that is no bucket is left alone and named in `broken`: one bad sector is no
        reason to sort nothing any more. When its bucket is found again it is written anew.
        """
        self.folder = folder
        self.buckets: dict[str, Bucket] = {}
        self.broken: list[str] = []
        if folder.exists() and not folder.is_dir():
            raise StoreError(f"{folder} is not a folder")
        self._read()

    def _read(self) -> None:
        self.broken.clear()
        for path in sorted(self.folder.glob("[0-9a-f]*.json")):
            try:
                made = bucket.from_stored(json.loads(path.read_bytes()))
                size = self.input(made.id).stat().st_size
            except (OSError, ValueError, TypeError, KeyError) as error:
                self.broken.append(f"{path} is no bucket: {error}")
                continue
            self.buckets[made.id] = replace(made, size=size)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone with the folder, which is made if need be; read again when that had to wait."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"another triage is at work in {self.folder}") from None
            # What a process that was killed had begun; nobody else writes here now.
            for aside in self.folder.glob(".*.aside"):
                aside.unlink()
            self._read()
            yield
        finally:
            os.close(lock)

    def input(self, name: str) -> Path:
        """The file of a bucket's smallest input."""
        return self.folder / f"{name}.input"

    def data(self, name: str) -> bytes:
        """A bucket's smallest input."""
        return self.input(name).read_bytes()

    def find(self, sighting: str) -> Bucket | None:
        """The bucket that counted a sighting."""
        return next((b for b in self.buckets.values() if sighting in b.sightings), None)

    def get(self, made: Signature) -> Bucket | None:
        """The bucket of a signature."""
        return self.buckets.get(made.id)

    def put(self, made: Bucket, data: bytes | None = None) -> None:
        """Keep a bucket, and with `data` its smallest input."""
        if data is not None:
            self._write(self.input(made.id), data)
            made = replace(made, size=len(data))
        text = json.dumps(made.stored(), indent=1) + "\n"
        self._write(self.folder / f"{made.id}.json", text.encode())
        self.buckets[made.id] = made

    def _write(self, path: Path, data: bytes) -> None:
        aside = path.with_name(f".{path.name}.aside")
        aside.write_bytes(data)
        aside.replace(path)
