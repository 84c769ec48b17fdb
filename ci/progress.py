"""What a person sees while a command runs: one moving line on a terminal, plain lines elsewhere.

Everything goes to standard error: standard output is for the summary, which a program may read.
"""

import shutil
import sys
import time
from typing import TextIO

# Elsewhere than on a terminal a line is kept for ever, so there are few of them.
PLAIN_EVERY = 10.0
TERMINAL_EVERY = 0.5


class Progress:
    """Lines that stay, and lines that the next one replaces where the stream can do that."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.every = TERMINAL_EVERY if self.terminal else PLAIN_EVERY
        self.moving = False

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.moving:
            self.stream.write("\r\x1b[K")
            self.moving = False
        self.stream.write(text + "\n")
        self.stream.flush()

    def show(self, text: str) -> None:
        """A line that the next one replaces, where the stream can do that."""
        if self.terminal:
            width = shutil.get_terminal_size().columns
            self.stream.write("\r\x1b[K" + text[: width - 1])
            self.stream.flush()
            self.moving = True
        else:
            self.say(text)


class Line:
    """One line that says where work is: it moves on a terminal, and is printed now and then else.

    Called as often as there is something to say; `end` leaves the terminal's line clean.
    """

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what = what
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.every = TERMINAL_EVERY / 5 if self.terminal else PLAIN_EVERY
        # Short work on no terminal prints nothing.
        self.next = time.monotonic() + (0.0 if self.terminal else PLAIN_EVERY)
        self.moving = False

    def __call__(self, text: str) -> None:
        """Say it, if it is time to."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + self.every
        told = f"{self.what}: {text}"
        if self.terminal:
            self.stream.write("\r\x1b[K" + told[: shutil.get_terminal_size().columns - 1])
            self.moving = True
        else:
            self.stream.write(told + "\n")
        self.stream.flush()

    def end(self) -> None:
        """Take the moving line away."""
        if self.moving:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.moving = False


def clock(seconds: float) -> str:
    """A duration as people write it."""
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def stamp() -> str:
    """The local time, as a name for a folder."""
    return time.strftime("%Y%m%d-%H%M%S")
