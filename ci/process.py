"""Child processes that cannot be left behind.

Each child leads a process group of its own, so that a signal reaches what it started in turn
(libFuzzer runs itself again through a shell when it merges), and so that a Ctrl-C on the terminal
reaches the supervisor alone, which then stops its children in order. The kernel kills the whole
group when the supervisor dies without a chance to do so: the group has the reading end of a pipe
whose writing end the supervisor alone has, and asked for SIGKILL as the word of the pipe's end.
"""

import contextlib
import fcntl
import functools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from ci.exits import Untrusted

ROOT = Path(__file__).resolve().parent.parent
"""The checkout. Children import its packages and no others."""

# How long a child may take to write down what it has after a polite signal.
GRACE = 5.0
TICK = 0.1


@functools.cache
def leash() -> tuple[int, int]:
    """The pipe of this process; its writing end closes with it."""
    return os.pipe()


def _reading_end() -> int:
    # Opened anew: who is told, and how, belongs to what was opened and not to the pipe.
    return os.open(f"/proc/self/fd/{leash()[0]}", os.O_RDONLY)


def _put_on(owner: int, reading: int) -> None:
    """The kernel kills a process, or of a negative number a group, when the pipe has no writer."""
    fcntl.fcntl(reading, fcntl.F_SETOWN, owner)
    fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(reading, fcntl.F_GETFL)
    fcntl.fcntl(reading, fcntl.F_SETFL, flags | os.O_ASYNC)


def die_with_parent() -> None:
    """In a child that was forked and runs this program still: the kernel kills it when its parent,
    which has called `leash` before, is gone."""
    _put_on(os.getpid(), _reading_end())
    os.close(leash()[1])


def spawn(
    argv: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    answer: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child in its own process group with its output appended to `log`.

    Its standard output goes to the new file `answer` instead, where a program is to read it. The
    group ends with this process, at the latest.
    """
    with contextlib.ExitStack() as files:
        said = files.enter_context(log.open("ab"))
        out = said if answer is None else files.enter_context(answer.open("wb"))
        reading = _reading_end()
        files.callback(os.close, reading)
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=said,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
            pass_fds=(reading,),
        )
        _put_on(-child.pid, reading)
        return child


def importing(root: Path) -> dict[str, str]:
    """The environment of a Python that takes its packages from a tree wherever it stands itself."""
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def cpu_seconds(pid: int) -> float:
    """The processor time of a child that was not waited for yet; 0 of one that is gone."""
    with contextlib.suppress(OSError):
        # The kernel's name for another process's clock.
        return time.clock_gettime(~pid << 3 | 2)
    return 0.0


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
    answer: Path | None = None
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
                child = spawn(job.argv, job.log, job.env, job.cwd, job.answer)
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


def git(*arguments: str, root: Path = ROOT) -> str:
    """What git prints; Untrusted when it cannot."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        raise Untrusted("git is not installed") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["failed"]
        raise Untrusted(f"git {arguments[0]}: {said[0]}")
    return done.stdout.decode(errors="surrogateescape")


def commit() -> str:
    """What is checked out, with a mark when the tracked files differ from it."""
    argv = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"
