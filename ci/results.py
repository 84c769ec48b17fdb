"""A file that the user named for results: looked at before the run, and written when it is over.

A plain file is written aside and renamed, so that no reader sees half of it. What is none (a pipe,
a device, a descriptor of this process) is written to: a rename would put a file in its place, and
leave whoever reads it without a word.
"""

import contextlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from ci.exits import Untrusted, UsageError

# What these are called leads to the file that is open there; opened again it would be cut short,
# and written from its beginning over what was printed meanwhile.
DESCRIPTOR = re.compile(r"/dev/std(?:in|(out)|(err))|(?:/dev|/proc/self)/fd/(\d{1,4})")

STANDARD_OUTPUT = "-"


class Json:
    """Where `--json` puts a result: in a file, on standard output for `-`, nowhere without it.

    It is made from the command line, before anything is run; UsageError for a file that cannot be
    written.
    """

    def __init__(self, target: str | None = None) -> None:
        self.target = target
        self.stream = sys.stdout
        if target is not None and target != STANDARD_OUTPUT:
            check(target)

    def write(self, data: object) -> None:
        """Write the result; Untrusted when that fails."""
        body = json.dumps(data, indent=1) + "\n"
        if self.target == STANDARD_OUTPUT:
            self.stream.write(body)
        elif self.target is not None:
            write(self.target, body)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """With `-`, what is printed for a person meanwhile is dropped: a program reads it all."""
        if self.target != STANDARD_OUTPUT:
            yield
            return
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            yield


NONE = Json()
"""No `--json`: what is written there is dropped."""


def check(asked: str) -> None:
    """UsageError when nothing can be written there. Nothing is, yet.

    A full disk, and a pipe that nobody reads, can only be seen when it is.
    """
    path, number = Path(asked), _descriptor(asked)
    try:
        if number is not None:
            os.fstat(number)
            return
        kind = _kind(path)
        if kind is not None and stat.S_ISDIR(kind):
            raise UsageError(f"{asked} is a folder")
        plain = kind is None or stat.S_ISREG(kind)
        folder = _plain(asked).parent
        if plain and not folder.is_dir():
            raise UsageError(f"{asked}: there is no folder {path.parent}")
        if not os.access(folder if plain else path, os.W_OK):
            raise UsageError(f"{asked} cannot be written")
    except OSError as error:
        raise UsageError(f"{asked} cannot be written: {error.strerror}") from None


def write(asked: str, data: str | bytes) -> None:
    """Write all of it; Untrusted when that fails, for then the caller has no results."""
    body = data.encode() if isinstance(data, str) else data
    try:
        _write(asked, body)
    except OSError as error:
        raise Untrusted(f"{asked} cannot be written: {error.strerror}") from None


def _write(asked: str, body: bytes) -> None:
    number = _descriptor(asked)
    kind = None if number is not None else _kind(Path(asked))
    if number is not None:
        sys.stdout.flush()
        _pour(os.dup(number), body)
    elif kind is None or stat.S_ISREG(kind):
        path = _plain(asked)
        # Its own name with something added could be too long.
        aside = path.with_name(f".residue.{os.getpid()}")
        try:
            _pour(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), body)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    else:
        # Not waiting for a reader that may never come: a pipe without one is an error.
        opened = os.open(asked, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        os.set_blocking(opened, True)
        _pour(opened, body)


def _pour(opened: int, body: bytes) -> None:
    with open(opened, "wb") as file:
        file.write(body)


def _descriptor(asked: str) -> int | None:
    match = DESCRIPTOR.fullmatch(asked)
    if match is None:
        return None
    return 1 if match[1] else 2 if match[2] else int(match[3] or 0)


def _plain(asked: str) -> Path:
    """Where a plain file is, links followed: a rename must not take the place of a link."""
    return Path(os.path.realpath(asked))


def _kind(path: Path) -> int | None:
    """What is there, links followed; None for nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
