"""Words for people: how many of what, the name that was probably meant, lines that fit.

A terminal gets lines that it need not break itself. Elsewhere a line is for a program or for a log,
and is let be unless it is very long. A command is broken as a shell breaks one, so that it can be
copied whatever its length.
"""

import contextlib
import difflib
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

PLAIN = 199
"""The longest line elsewhere than on a terminal, in characters."""
NARROWEST = 40
"""A terminal that says it has fewer columns is given lines of so many."""
CLOSE = 0.6
"""How alike two names are where one may be meant by the other, as difflib counts it."""

COMMAND = re.compile(r"\s*(?:residue|git|python -m) ")
# A word of a command: what is quoted stays together.
WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")


def many(count: float, noun: str, plural: str = "") -> str:
    """`1 finding`, `2 findings`; `1 entry`, `2 entries` where the plural is given."""
    return f"{count:,.0f} {noun if count == 1 else plural or noun + 's'}"


def meant(word: str, known: Iterable[str], shown: Callable[[str], str] = str) -> str:
    """`; did you mean NAME?` for the known name that is most like the word; nothing for none."""
    near = difflib.get_close_matches(word, sorted(known), 1, CLOSE)
    return f"; did you mean {shown(near[0])}?" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """What to say of a name that is none of the known ones: the nearest, or else all of them."""
    names = list(known)
    what = f"{what} {name!r}".lstrip()
    return f"there is no {what}{meant(name, names) or '; choose from ' + ', '.join(names)}"


def width_of(stream: TextIO) -> int:
    """How long a line on this stream may be, in characters."""
    if not stream.isatty():
        return PLAIN
    # One less than it has: in the last column some terminals go on to the next line.
    return max(NARROWEST, shutil.get_terminal_size().columns - 1)


def fit(parts: Sequence[str], width: int) -> str:
    """The parts in one line, as many of them as it holds, and how many it does not."""
    for count in range(len(parts), 1, -1):
        left = len(parts) - count
        line = " | ".join([*parts[:count], *([f"and {left} more"] if left else [])])
        if len(line) <= width:
            return line
    return parts[0]


def fold(text: str, width: int) -> str:
    """The text with each longer line broken at its spaces, what is left of it further in."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> list[str]:
    if len(line.expandtabs()) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    if COMMAND.match(line):
        return _command(line, indent, width)
    further = " " * (indent + 2)
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _command(line: str, indent: int, width: int) -> list[str]:
    parts: list[str] = []
    part = " " * indent
    for word in WORD.findall(line):
        if part.strip() and len(part) + len(word) + 3 > width:
            parts.append(part + " \\")
            part = " " * (indent + 2)
        part += word if not part.strip() else f" {word}"
    return [*parts, part]


class Folded(io.StringIO):
    """A stream whose lines are folded to what another bears, and written there line by line."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream
        self.width = width_of(stream)
        self.rest = ""

    def write(self, text: str) -> int:
        """Keep it until its line is whole."""
        whole, newline, self.rest = (self.rest + text).rpartition("\n")
        if newline:
            self.stream.write(fold(whole, self.width) + "\n")
        return len(text)

    def flush(self) -> None:
        """Write all there is, the line at hand as it is."""
        rest, self.rest = self.rest, ""
        self.stream.write(rest)
        self.stream.flush()

    def isatty(self) -> bool:
        """As the other."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """As the other."""
        return self.stream.fileno()


@contextlib.contextmanager
def folded() -> Iterator[None]:
    """What is printed meanwhile is folded to what standard output bears."""
    stream = Folded(sys.stdout)
    try:
        with contextlib.redirect_stdout(stream):
            yield
    except BaseException:
        # It is on its way to its own line and code; nothing said here may take its place.
        with contextlib.suppress(OSError):
            stream.flush()
        raise
    stream.flush()
