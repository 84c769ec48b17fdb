"""What a mutant leaves running: found again although it left its process group, and killed.

A process that a mutant starts in a session of its own is out of reach of a signal to the group.
Its parent is known, though: the kernel gives an orphan to the nearest ancestor that asked for
orphans. The driver and each mutant's process ask for them, so an orphan that comes to the driver is
of a mutant that has ended, and one of a mutant that still runs stays with that.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None)


def adopt(wanted: bool = True) -> None:
    """Be given the orphans among this process's descendants, or no longer."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def children() -> set[int]:
    """The processes whose parent this one is, ended ones that nobody waited for too."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found |= {int(word) for word in (task / "children").read_text("ascii").split()}
    return found


def kill(spared: Collection[int]) -> None:
    """Kill every child but these, and the children that come to this process by that."""
    while strangers := children().difference(spared):
        for pid in strangers:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
