"""How a command ends that cannot go on: one line and a code, whatever broke (docs/exit-codes.md).

A traceback says nothing to who typed the command, and the interpreter's own code for it is 1, which
here is "something was found". So every exception is given a line. What is ours says itself what is
wrong. Of what is not, the line says the kind and the place; its message is shown with the traceback
alone, since nobody knows what it quotes: a key, a line of a file of keys.
"""

import contextlib
import errno
import io
import os
import select
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import TextIO

from ci import extras, wording
from ci.exits import Exit, Interrupted, Untrusted, UsageError
from ci.process import ROOT

TRACEBACK = "RESIDUE_TRACEBACK"
"""Set to anything but nothing, it shows the traceback above the line, as -v does."""
VERBOSE = frozenset({"-v", "--verbose"})
TOLD = (UsageError, Untrusted, Interrupted, KeyboardInterrupt)
"""What says itself what is wrong: a traceback of it says nothing more."""

# What is wrong with a path, and not with the machine: the operator's, where he named that path.
PATHS = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
# Our own packages: one that is missing is no extra.
OURS = frozenset(entry.parent.name for entry in ROOT.glob("*/__init__.py"))


# By their numbers: the name, how it is open, and what it is called where it matters.
STREAMS = (
    ("stdin", "r", ""),
    ("stdout", "w", "standard output"),
    ("stderr", "w", "standard error"),
)


def guard(work: Callable[[], int], words: Sequence[str] = ()) -> int:
    """Run the work of a process and return its code; nothing but argparse's SystemExit gets out.

    `words` are the command line's.
    """
    verbose = bool(os.environ.get(TRACEBACK)) or not VERBOSE.isdisjoint(words)
    before = {n: signal.signal(n, _interrupt) for n in (signal.SIGINT, signal.SIGTERM)}
    code: int | SystemExit
    line, broken = "", None
    try:
        try:
            _check_streams()
            code = work()
            # Here as well: a signal is noticed at a call, and the last one may come this late.
            sys.stdout.flush()
        except SystemExit as ended:
            code = ended
        except (Exception, Interrupted, KeyboardInterrupt) as error:
            (code, line), broken = ending(error, words), error
        spilled = spill()
        if spilled is not None and (not line or isinstance(broken, OSError)):
            code, line = spilled
        tell(line, broken if verbose and not isinstance(broken, TOLD) else None)
    except (Interrupted, KeyboardInterrupt):
        code = Exit.INTERRUPTED
        tell("interrupted")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if isinstance(code, SystemExit):
        raise code
    return code


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """A handler for SIGINT and SIGTERM, which are the same to us."""
    raise Interrupted(signal.Signals(signum).name)


def _check_streams() -> None:
    if closed := closed_streams():
        raise Untrusted(f"{' and '.join(closed)} is closed: what goes there would be lost")
    for stream in (sys.stdout, sys.stderr):
        # A name of a file may be of any bytes, and the locale of any age.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def ending(error: BaseException, words: Iterable[str] = ()) -> tuple[Exit, str]:
    """The code and the line of what ended a command; the line is empty where nobody would read it.

    `words` are the command line's: a path among them is the operator's.
    """
    match error:
        case UsageError():
            return Exit.USAGE, str(error)
        case Untrusted():
            return Exit.UNTRUSTED, str(error)
        case Interrupted() | KeyboardInterrupt():
            return Exit.INTERRUPTED, "interrupted"
        case BrokenPipeError() if reader_left(sys.stdout):
            # What was not read cannot be judged; and who read it does not want to hear of it.
            return Exit.UNTRUSTED, ""
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] not in OURS:
            return Exit.UNTRUSTED, extras.missing(name)
        case OSError(filename=str() | bytes() as name) if named(name, words) and (
            error.errno in PATHS
        ):
            return Exit.USAGE, f"{os.fsdecode(name)}: {error.strerror}"
        case _:
            return Exit.UNTRUSTED, f"{_what(error)} ({_where(error)}; {TRACEBACK}=1 shows more)"


def named(path: str | bytes, words: Iterable[str]) -> bool:
    """Whether one of the words of a command line is this path, or an option with it."""
    wanted = os.path.abspath(os.fsdecode(path))
    values = (word.partition("=")[2] if word.startswith("-") else word for word in words)
    return any(value and os.path.abspath(value) == wanted for value in values)


def _what(error: BaseException) -> str:
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        # Of a tree that was to be copied: (from, to, why) for each file.
        return str(error.args[0][0][-1])
    if not isinstance(error, OSError) or error.strerror is None:
        return type(error).__name__
    if error.filename is None:
        return error.strerror
    return f"{os.fsdecode(str(error.filename))}: {error.strerror}"


def _where(error: BaseException) -> str:
    """The innermost line of ours that it came through."""
    frames = [
        f"{path.relative_to(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (path := Path(frame.filename)).is_relative_to(ROOT) and "site-packages" not in path.parts
    ]
    return f"in {frames[-1]}" if frames else "not in a file of ours"


def reader_left(stream: TextIO) -> bool:
    """Whether a stream is a pipe or a socket that nobody reads any more."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def closed_streams() -> list[str]:
    """The standard streams that are closed, which are opened on nothing.

    Otherwise the next file that is opened would be one, and what is printed lands in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    closed = []
    for number, (name, mode, shown) in enumerate(STREAMS):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
            closed.append(shown)
    # Nothing is read from standard input.
    return [shown for shown in closed if shown]


def spill() -> tuple[Exit, str] | None:
    """Write what is left for standard output; how the command ends when that fails, else None."""
    try:
        sys.stdout.flush()
    except OSError as error:
        quiet = reader_left(sys.stdout)
        _lead_nowhere(sys.stdout)
        return Exit.UNTRUSTED, "" if quiet else f"standard output: {error.strerror}"
    return None


def tell(line: str, error: BaseException | None = None) -> None:
    """Print one line on standard error, and above it the traceback of an error.

    It is one line wherever a program may read it; a terminal gets it folded. What cannot be printed
    is let go: the code says the same.
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    try:
        if error is not None:
            traceback.print_exception(error)
        if line:
            told = f"residue: {shown}"
            if sys.stderr.isatty():
                told = wording.fold(told, wording.width_of(sys.stderr))
            print(told, file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        _lead_nowhere(sys.stderr)


def _lead_nowhere(stream: TextIO) -> None:
    """Let a stream that cannot be written lead to nothing.

    Else the interpreter writes again at its end, fails again, says so and ends with 120.
    """
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
