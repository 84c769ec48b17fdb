"""night.json: what a night has done and found so far, true at every moment that it may be killed.

It is written aside and renamed after every change, so that what is there is whole; where it cannot
be written the older one stays, and the night goes on with what it has in memory. A night whose
`finished` is null was killed, or is at work: the lock says which.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ci.exits import Exit, UsageError

WAITING, DONE, FAILED, CUT, SKIPPED = "waiting", "done", "failed", "cut", "skipped"


@dataclass
class Line:
    """One step of the night: what it does, how it stands, and how it ended."""

    name: str
    does: str
    state: str = WAITING
    exit: int | None = None
    seconds: float = 0.0
    why: str = ""
    findings: int = 0
    folder: str = ""


@dataclass
class Night:
    """Everything that night.json has; `folder` is where that lies."""

    folder: Path
    started: str
    minutes: float
    commit: str
    steps: list[Line]
    kind: str = "nightly"
    finished: str | None = None
    exit: int | None = None
    interrupted: bool = False
    resumed: int = 0
    spent: float = 0.0
    """Seconds that it was at work, without those between a kill and the next start."""
    at: str = ""
    """The step at hand, so that whoever takes the night up knows what was cut."""
    findings: list[dict[str, str]] = field(default_factory=list)
    untrusted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    takes: list[str] = field(default_factory=list)
    """Folders and files for triage that an older night, which was killed, left behind."""
    campaign: dict[str, Any] | None = None
    kept: dict[str, int] = field(default_factory=dict)
    """For each harness, inputs of the kept corpus that it did not have before this night."""
    buckets: list[dict[str, Any]] = field(default_factory=list)
    mutation: dict[str, Any] | None = None
    machine: str = ""
    injection: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    def line(self, step: str) -> Line:
        """The line of a step."""
        return next(line for line in self.steps if line.name == step)

    def find(self, rule: str, message: str, detail: str = "") -> None:
        """Add a finding."""
        self.findings.append({"rule": rule, "message": message, "detail": detail})

    def doubt(self, why: str) -> None:
        """Add something that was not watched, once."""
        if why not in self.untrusted:
            self.untrusted.append(why)

    @property
    def verdict(self) -> Exit:
        """What the night comes to, as far as it is."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.findings:
            return Exit.FOUND
        return Exit.UNTRUSTED if self.untrusted else Exit.CLEAN

    def as_data(self) -> dict[str, Any]:
        """What night.json has."""
        return {key: value for key, value in asdict(self).items() if key != "folder"}

    def save(self) -> None:
        """Write night.json. A disk that is full is said once, and leaves the older file whole."""
        try:
            write_aside(self.folder / "night.json", json.dumps(self.as_data(), indent=1) + "\n")
        except OSError as error:
            self.doubt(f"night.json could not be written: {error.strerror}")


def load(folder: Path) -> Night | None:
    """The night of a folder; None when it has none that can be read."""
    try:
        data = json.loads((folder / "night.json").read_text(encoding="utf-8"))
        known = {one.name for one in fields(Night)}
        data = {key: value for key, value in data.items() if key in known}
        return Night(folder=folder, **{**data, "steps": [Line(**row) for row in data["steps"]]})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_aside(path: Path, text: str) -> None:
    """Write a file whole or not at all; what could not be written leaves nothing behind."""
    aside = path.with_name(f".{path.name}.new")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


@contextlib.contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Hold the folder of the nights; UsageError when another night does.

    The kernel lets go of it when this process ends, however it ends.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / "lock").open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{root} cannot be used: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another nightly is at work in {root}") from None
        yield
