"""Child processes that cannot be left behind.

Each child leads a process group of its own, so that a signal reaches what it started in turn
(libFuzzer runs itself again through a shell when it merges), and so that a Ctrl-C on the terminal
reaches the supervisor alone, which then stops its children in order. The kernel kills the child
when the supervisor dies without a chance to do so.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
"""The checkout. Children run here, so that they import its packages and no others."""

PR_SET_PDEATHSIG = 1
# How long a child may take to write down what it has after a polite signal.
GRACE = 5.0
TICK = 0.1

_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """In a child: the kernel kills it when its parent is gone."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The supervisor's own handlers do nothing here; the child begins with the defaults.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def spawn(
    argv: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    answer: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child in its own process group with its output appended to `log`.

    Its standard output goes to the new file `answer` instead, where a program is to read it.
    """
    with contextlib.ExitStack() as files:
        said = files.enter_context(log.open("ab"))
        out = said if answer is None else files.enter_context(answer.open("wb"))
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=said,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
            # Safe although it runs Python between fork and exec: the supervisor has one thread.
            preexec_fn=die_with_parent,
        )


def signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the child's group; a group that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def reap(child: subprocess.Popen[bytes], grace: float = GRACE) -> int:
    """Wait a while for a child that was asked to end, then kill its whole group."""
    try:
        return child.wait(timeout=grace)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Also when the child ended in time: what it started may still be there.
        signal_group(child, signal.SIGKILL)
    return child.wait()


class Stop:
    """Counts SIGINT and SIGTERM while it is entered; nobody is interrupted in mid-step.

    The first asks the phase at hand to end and the rest to be done with what there is; the second
    asks for the rest to be left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, object] = {}

    def __bool__(self) -> bool:
        return self.count > 0

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


@dataclass
class Job:
    """One bounded child: what to run, where its output goes, and how it ended."""

    argv: list[str]
    log: Path
    limit: float
    env: dict[str, str] = field(default_factory=dict)
    cwd: Path = ROOT
    code: int | None = None
    timed_out: bool = False


def run_all(jobs: Sequence[Job], at_once: int, stop: Stop, stops_at: int) -> None:
    """Run every job, `at_once` at a time; give up on all of them at the `stops_at`-th signal."""
    waiting = list(jobs)
    with contextlib.ExitStack() as cleanup:
        running: list[tuple[Job, subprocess.Popen[bytes], float]] = []
        while waiting or running:
            while waiting and len(running) < at_once and stop.count < stops_at:
                job = waiting.pop(0)
                child = spawn(job.argv, job.log, job.env, job.cwd)
                cleanup.callback(signal_group, child, signal.SIGKILL)
                running.append((job, child, time.monotonic() + job.limit))
            for entry in list(running):
                job, child, deadline = entry
                job.timed_out = time.monotonic() > deadline
                if job.timed_out or stop.count >= stops_at:
                    signal_group(child, signal.SIGKILL)
                    child.wait()
                if child.poll() is not None:
                    job.code = reap(child)
                    running.remove(entry)
            if stop.count >= stops_at:
                return
            time.sleep(TICK / 2)


@contextlib.contextmanager
def all_killed(children: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Whatever happens inside, no child of the list is alive afterwards."""
    try:
        yield
    finally:
        for child in children:
            signal_group(child, signal.SIGKILL)
        for child in children:
            child.wait()
