"""How often each oracle looked: one that never did says nothing, which is not "nothing found".

A run counts in a file, so that what was counted is there whatever ends the process, and a process
that comes after another of the same shard goes on counting. The file says itself whose counts it
holds: a supervisor reads it without the engine.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

LENGTH = 2
"""Bytes of the length of the names, which come first, a comma between them."""
COUNT = 8


class Tally:
    """A count for each name: `looked("work")` adds one."""

    def __init__(self, names: Iterable[str]) -> None:
        self.place = {name: place for place, name in enumerate(names)}
        self._counts = memoryview(bytearray(COUNT * len(self.place))).cast("Q")

    def __call__(self, *names: str) -> None:
        for name in names:
            self._counts[self.place[name]] += 1

    def __getitem__(self, name: str) -> int:
        return self._counts[self.place[name]]

    def into(self, file: Path) -> None:
        """Count in this file from now on, on top of what is in it."""
        names = ",".join(self.place).encode()
        head = len(names).to_bytes(LENGTH) + names
        if not file.exists():
            file.write_bytes(head + bytes(COUNT * len(self.place)))
        with file.open("r+b") as opened:
            space = mmap.mmap(opened.fileno(), 0)
        self._counts = memoryview(space)[len(head) :].cast("Q")


def read(file: Path) -> dict[str, int]:
    """The counts of a file; none when no process came so far as to make it."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return {}
    start = LENGTH + int.from_bytes(data[:LENGTH])
    names = data[LENGTH:start].decode().split(",")
    counts = memoryview(data)[start : start + COUNT * len(names)].cast("Q")
    return dict(zip(names, counts, strict=False))
