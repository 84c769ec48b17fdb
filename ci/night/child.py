"""One step's process: started, watched, asked to end when its time is up, and then killed.

A step may hang, crash, or not start at all: that is what came of it, never an exception here.
"""

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from ci.process import TICK, Stop, reap, signal_group, spawn

# What follows the first polite signal, and after how many seconds: a campaign merges what it has
# after the first and leaves that out after the second.
ASKS = ((0.0, signal.SIGINT), (45.0, signal.SIGINT), (60.0, signal.SIGKILL))


@dataclass(frozen=True)
class Ended:
    """How a process ended. `code` is None when it never ran, and `why` says why."""

    code: int | None
    seconds: float
    cut: bool = False
    """It was asked to end, because its time was up or because of a signal to us."""
    why: str = ""


def run(
    argv: list[str],
    log: Path,
    limit: float,
    stop: Stop,
    *,
    tolerates: int = 0,
    env: Mapping[str, str] | None = None,
    answer: Path | None = None,
    beat: Callable[[float], None] = lambda seconds: None,
    asks: tuple[tuple[float, signal.Signals], ...] = ASKS,
) -> Ended:
    """Run a command for at most `limit` seconds and a little.

    It goes on through so many signals to us as it `tolerates`. `beat` is called with the seconds
    since its start, about ten times a second.
    """
    began = time.monotonic()
    try:
        child = spawn(argv, log, env, answer=answer)
    except OSError as error:
        what = f" ({Path(str(error.filename)).name})" if error.filename else ""
        return Ended(None, 0.0, why=f"it could not be started: {error.strerror}{what}")
    asked: float | None = None
    given = 0
    try:
        while child.poll() is None:
            now = time.monotonic()
            beat(now - began)
            if asked is None and (now - began > limit or stop.count > tolerates):
                asked = now
            # One more signal of a person who has no patience is passed on at once.
            hurried = stop.count > tolerates + 1
            while asked is not None and given < len(asks):
                after, number = asks[given]
                if now - asked < after and not hurried:
                    break
                signal_group(child, number)
                given += 1
            time.sleep(TICK)
        code = reap(child)
    finally:
        _leave_nothing(child)
    return Ended(code, time.monotonic() - began, asked is not None)


def _leave_nothing(child: "Popen[bytes]") -> None:
    signal_group(child, signal.SIGKILL)
    child.wait()
