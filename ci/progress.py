"""What a person sees while a command runs: one moving line on a terminal, plain lines elsewhere.

Everything goes to standard error: standard output is for the summary, which a program may read.
"""

import sys
import time
from typing import TextIO

from ci import wording

# Elsewhere than on a terminal a line is kept for ever, so there are few of them.
PLAIN_EVERY = 10.0
TERMINAL_EVERY = 0.5


class Progress:
    """Lines that stay, and lines that the next one replaces where the stream can do that.

    One that is quiet says nothing.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.quiet = quiet
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.every = TERMINAL_EVERY if self.terminal else PLAIN_EVERY
        self.moving = False

    def say(self, told: str) -> None:
        """A line that stays."""
        if self.quiet:
            return
        self.end()
        self.stream.write(wording.fold(told, wording.width_of(self.stream)) + "\n")
        self.stream.flush()

    def end(self) -> None:
        """Take the moving line away."""
        if self.moving:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.moving = False

    def show(self, told: str) -> None:
        """A line that the next one replaces, where the stream can do that."""
        if not self.terminal:
            self.say(told)
        elif not self.quiet:
            self.stream.write("\r\x1b[K" + told[: wording.width_of(self.stream)])
            self.stream.flush()
            self.moving = True


class Line(Progress):
    """One line that says where work is: it moves on a terminal, and is printed now and then else.

    Called as often as there is something to say; `end` leaves the terminal's line clean.
    """

    def __init__(self, what: str, stream: TextIO | None = None, quiet: bool = False) -> None:
        super().__init__(stream, quiet)
        self.what = what
        # Short work on no terminal prints nothing.
        self.next = time.monotonic() + (0.0 if self.terminal else self.every)
        if self.terminal:
            self.every /= 5

    def __call__(self, told: str) -> None:
        """Say it, if it is time to."""
        now = time.monotonic()
        if now >= self.next:
            self.next = now + self.every
            self.show(f"{self.what}: {told}")


def clock(seconds: float) -> str:
    """A duration as people write it."""
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def stamp() -> str:
    """The local time, as a name for a folder."""
    return time.strftime("%Y%m%d-%H%M%S")
