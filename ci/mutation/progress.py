"""What a person sees while mutants are judged."""

import time

from ci.progress import Progress, clock


class MutationProgress:
    """The progress of mutants, file after file; a quiet one says nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self.progress = Progress(quiet=quiet)
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
        self.next = now + self.progress.every
        rate = judged / max(now - self.begun, 0.1)
        told = f"{file} {judged}/{due} | {left} survived | {rate:.1f}/s"
        self.progress.show(f"{told} | {clock((due - judged) / rate)} left")

    def end(self) -> None:
        """What comes next begins a line of its own."""
        self.progress.end()
