"""What a person sees while mutants are judged."""

import sys
import time

from ci.progress import PLAIN_EVERY, TERMINAL_EVERY, clock


class MutationProgress:
    """One moving line on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.next = 0.0
        self.begun = time.monotonic()
        self.file = ""

    def __call__(self, file: str, judged: int, due: int, left: int) -> None:
        """So many judged of so many, of which nothing killed so many."""
        now = time.monotonic()
        if file != self.file:
            self.file, self.begun = file, now
        if now < self.next or not judged:
            return
        self.next = now + (TERMINAL_EVERY if self.terminal else PLAIN_EVERY)
        rate = judged / max(now - self.begun, 0.1)
        text = f"{file} {judged}/{due} | {left} survived | {rate:.1f}/s"
        text += f" | {clock((due - judged) / rate)} left"
        sys.stderr.write(f"\r\x1b[K{text}" if self.terminal else text + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        """What comes next begins a line of its own."""
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
