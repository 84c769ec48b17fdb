"""Commands of the system that a test may need: without one it is skipped, and says why."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
