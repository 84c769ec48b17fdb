"""What tests of several folders use: git where it is installed, and the ends of processes."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.process import ROOT

# How long a test waits for what must come. It takes a moment; where seven others work, a minute.
PATIENCE = 240.0

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def need_git() -> None:
    """The same for a fixture, and for what several tests call."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")


def git(root: Path, *arguments: str) -> str:
    """A command of git in a tree, under a name of its own; what it printed."""
    need_git()
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root, capture_output=True, check=True, text=True
    )
    return done.stdout


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Until it holds, which it has to at last."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def suite_section() -> str:
    """The section [suite] of setup.cfg, for a small tree with the same names."""
    text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    return "[suite]" + text.partition("\n[suite]")[2].partition("\n[")[0] + "\n"
