"""What a person sees while shards run: the time that is left, and how far each harness is."""

from typing import TextIO

from ci.fuzzing.supervisor import Phase
from ci.progress import Progress

# A rate over this many seconds follows what happens and does not flicker.
WINDOW = 5.0


class FuzzingProgress(Progress):
    """Shows the state of a fuzzing phase, as often as its stream can bear."""

    def __init__(self, stream: TextIO | None = None, finds: dict[str, int] | None = None) -> None:
        super().__init__(stream)
        self.finds = finds if finds is not None else {}
        self.next = 0.0
        self.history: dict[str, list[tuple[float, int]]] = {}

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
