"""What a person sees while shards run: the time that is left, and how far each harness is."""

from typing import TextIO

from ci.fuzzing.supervisor import Phase
from ci.progress import Progress
from ci.wording import fit, many, width_of

# A rate over this many seconds follows what happens and does not flicker.
WINDOW = 5.0


class FuzzingProgress(Progress):
    """Shows the state of a fuzzing phase, as often as its stream can bear."""

    def __init__(
        self,
        stream: TextIO | None = None,
        finds: dict[str, int] | None = None,
        quiet: bool = False,
    ) -> None:
        super().__init__(stream, quiet)
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
        """The state in one line: time left, runs and finds, then each harness that is at work."""
        names = list(dict.fromkeys(share.harness for share in phase.shares))
        runs = sum(shard.executions for name in names for shard in phase.of(name))
        finds = many(sum(self.finds.get(name, 0) for name in names), "find")
        parts = [f"{phase.left(now):4.0f} s left, {many(runs, 'run')}, {finds}"]
        for name in names:
            shards = phase.of(name)
            if all(shard.finished for shard in shards):
                continue
            if not any(shard.executions for shard in shards):
                parts.append(f"{name} starts")
                continue
            edges = max(shard.edges for shard in shards)
            parts.append(f"{name} {self._rate(name):,.0f}/s {many(edges, 'edge')}")
        return fit(parts, width_of(self.stream))

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
