"""Commands of the system that a test may need: without one it is skipped, and says why."""

import shutil

import pytest

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def need_git() -> None:
    """The same for a fixture, and for what several tests call."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
