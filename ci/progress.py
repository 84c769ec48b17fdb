"""What a person sees while a campaign runs: one moving line on a terminal, plain lines elsewhere.

Everything goes to standard error: standard output is for the summary, which a program may read.
"""

import shutil
import sys
import time
from typing import TextIO

from ci.fuzzing.supervisor import Phase

# Elsewhere than on a terminal a line is kept for ever, so there are few of them.
PLAIN_EVERY = 10.0
TERMINAL_EVERY = 0.5
# A rate over this many seconds follows what happens and does not flicker.
WINDOW = 5.0


class Progress:
    """Prints the state of a fuzzing phase, as often as its stream can bear."""

    def __init__(self, stream: TextIO | None = None, finds: dict[str, int] | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.finds = finds if finds is not None else {}
        self.every = TERMINAL_EVERY if self.terminal else PLAIN_EVERY
        self.next = 0.0
        self.history: dict[str, list[tuple[float, int]]] = {}
        self.moving = False

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.moving:
            self.stream.write("\r\x1b[K")
            self.moving = False
        self.stream.write(text + "\n")
        self.stream.flush()

    def __call__(self, phase: Phase, now: float) -> None:
        """Show the phase, if it is time to."""
        for name in dict.fromkeys(shard.task.harness for shard in phase.shards):
            self._sample(name, now, sum(shard.executions for shard in phase.of(name)))
        if not self.next:
            self.next = now + min(self.every, 2.0)
        if now < self.next:
            return
        self.next = now + self.every
        self.show(self.line(phase, now))

    def show(self, text: str) -> None:
        """A line that the next one replaces, where the stream can do that."""
        if self.terminal:
            width = shutil.get_terminal_size().columns
            self.stream.write("\r\x1b[K" + text[: width - 1])
            self.stream.flush()
            self.moving = True
        else:
            self.say(text)

    def line(self, phase: Phase, now: float) -> str:
        """The state in one line: time left, then each harness."""
        names = list(dict.fromkeys(share.harness for share in phase.shares))
        parts = [f"{phase.left(now):4.0f} s left"]
        for name in names:
            shards = phase.of(name)
            executions = sum(shard.executions for shard in shards)
            state = f"{self._rate(name):,.0f}/s" if executions else "starts"
            if all(shard.finished for shard in shards):
                state = "waits"
            edges = max((shard.edges for shard in shards), default=0)
            finds = self.finds.get(name, 0)
            parts.append(f"{name} {state} {executions:,} runs {edges} edges {finds} finds")
        return " | ".join(parts)

    def _sample(self, name: str, now: float, executions: int) -> None:
        history = self.history.setdefault(name, [])
        # libFuzzer says its count now and then; only a count that moved tells a rate.
        if not history or history[-1][1] != executions:
            history.append((now, executions))
        while len(history) > 2 and history[1][0] < now - WINDOW:
            history.pop(0)

    def _rate(self, name: str) -> float:
        history = self.history.get(name, [])
        if len(history) < 2:
            return 0.0
        (before, first), (after, last) = history[0], history[-1]
        return (last - first) / (after - before)


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
