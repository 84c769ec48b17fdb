"""A shard: one harness fuzzed for a while, in a folder of its own, whatever happens to the process.

The process may crash, hang in one input or run out of memory; that is a finding, and the shard goes
on with a new process and another seed for the time that is left. What was found lies in files from
the moment that it was found, so nothing here has to be told to save.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGUSR1
from subprocess import Popen

from ci.fuzzing import libfuzzer
from ci.fuzzing.libfuzzer import Status, Tail
from ci.process import GRACE, ROOT, cpu_seconds, importing, reap, signal_group, spawn

# Processes that end this often in a row before they have been through their seeds will not do
# better the next time: an import that fails, a committed input that hangs.
FRUITLESS = 3
# With less time than this left, another process would not get as far as its first input.
WORTH_A_START = 1.0


@dataclass(frozen=True)
class Task:
    """Everything that a shard's process is started with."""

    harness: str
    name: str
    folder: Path
    seeds: list[Path]
    findings: Path
    dictionary: Path | None
    seed: int
    limit: float
    """After so many seconds a process ends by itself, if nobody has ended it."""
    command: list[str]
    value_profile: bool = False
    earlier: list[Path] = field(default_factory=list)
    """What the harness's turns before have found: seeds as well."""


@dataclass
class Shard:
    """A task at work. The supervisor calls `poll` often and `stop` at the end."""

    task: Task
    seconds: float
    child: Popen[bytes] | None = None
    started: float = 0.0
    ended: float | None = None
    status: Status = field(default_factory=Status)
    earlier: int = 0
    most_edges: int = 0
    seeds_edges: int = 0
    """Edges that the seeds alone reached, in the first process that went through them."""
    cpu: float = 0.0
    """Seconds of processor time of all its processes: a busy machine does not slow these."""
    cpu_before: float = 0.0
    starts: int = 0
    fruitless: int = 0
    gave_up: bool = False
    asked: float | None = None
    ends: list[int] = field(default_factory=list)
    tail: Tail | None = None

    @property
    def corpus(self) -> Path:
        """Where the process writes inputs that reached something new."""
        return self.task.folder / "corpus"

    @property
    def artifacts(self) -> Path:
        """Where libFuzzer leaves an input that ended the process."""
        return self.task.folder / "artifacts"

    @property
    def log(self) -> Path:
        """Everything the processes of this shard printed."""
        return self.task.folder / "log"

    @property
    def looked(self) -> Path:
        """Where its processes count how often each oracle looked (`harnesses.tally`)."""
        return self.task.folder / "looked"

    @property
    def executions(self) -> int:
        """Inputs executed by all processes of this shard so far."""
        return self.earlier + self.status.executions

    @property
    def finished(self) -> bool:
        """Nothing runs and nothing will."""
        return self.ended is not None

    def elapsed(self, now: float) -> float:
        """Seconds since the first start, to the end if it has ended."""
        return (self.ended if self.ended is not None else now) - self.started

    def left(self, now: float) -> float:
        """Seconds until its time is up."""
        return self.seconds - (now - self.started)

    @property
    def begun(self) -> bool:
        """A process of it has gone through the seeds, or none will."""
        return bool(self.first_edges) or self.finished

    @property
    def first_edges(self) -> int:
        """The edges that its seeds reached; 0 while nobody knows."""
        return self.seeds_edges or self.status.seeded_edges

    def begin(self, now: float) -> None:
        """Make the folders and start the first process."""
        self.corpus.mkdir(parents=True)
        self.artifacts.mkdir()
        self.tail = Tail(self.log)
        self.started = now
        self._start()

    def _start(self) -> None:
        arguments = libfuzzer.fuzz_arguments(
            output=self.corpus,
            seeds=[*self.task.seeds, *self.task.earlier],
            artifacts=self.artifacts,
            dictionary=self.task.dictionary,
            seed=self.task.seed + self.starts,
            seconds=int(self.task.limit),
            value_profile=self.task.value_profile,
        )
        self.starts += 1
        self.child = spawn(
            [*self.task.command, *arguments],
            self.log,
            {
                **importing(ROOT),
                "RESIDUE_FINDINGS": str(self.task.findings),
                "RESIDUE_LOOKED": str(self.looked),
                "PYTHONUNBUFFERED": "1",
            },
            # What it leaves where it stands (libFuzzer, as it ends, forgets its prefix) is here.
            cwd=self.task.folder,
        )

    def poll(self, now: float) -> None:
        """Read what the process says, and start another when it ended before its time."""
        if self.child is None or self.tail is None:
            return
        for line in self.tail.lines():
            self.status.read(line)
        left = self.left(now)
        self.cpu = max(self.cpu, self.cpu_before + cpu_seconds(self.child.pid))
        if self.child.poll() is not None:
            self._ended(left, now)
        elif self.asked is None and left <= 0:
            self.asked = now
            signal_group(self.child, SIGUSR1)
        elif self.asked is not None and now - self.asked > GRACE:
            signal_group(self.child, SIGKILL)

    def _ended(self, left: float, now: float) -> None:
        assert self.child is not None and self.tail is not None
        code = reap(self.child)
        self.child = None
        self.cpu_before = self.cpu
        for line in self.tail.lines():
            self.status.read(line)
        self.earlier += self.status.executions
        # A new process counts its edges from nothing; its corpus brings them back soon.
        self.most_edges = self.edges
        self.seeds_edges = self.seeds_edges or self.status.seeded_edges
        self.fruitless = 0 if self.status.seeded else self.fruitless + 1
        self.status = Status()
        if self.asked is not None:
            self.ended = now
            return
        self.ends.append(code)
        self.gave_up = self.fruitless >= FRUITLESS
        if self.gave_up or left < WORTH_A_START:
            self.ended = now
        else:
            self._start()

    @property
    def edges(self) -> int:
        """The most edges that a process of this shard reported."""
        return max(self.most_edges, self.status.edges)

    @property
    def gained(self) -> int:
        """The edges that its seeds did not reach."""
        return self.edges - self.first_edges if self.first_edges else 0

    def interrupt(self, now: float) -> None:
        """Ask the process to end now; it keeps its corpus, and `poll` notices its end."""
        if self.child is not None and self.asked is None:
            self.asked = now
            signal_group(self.child, SIGINT)

    def kill(self) -> None:
        """Leave nothing running."""
        if self.child is not None:
            signal_group(self.child, SIGKILL)
            self.child.wait()
            self.child = None
            self.ended = time.monotonic() if self.ended is None else self.ended
