"""What git leaves out of a commit: what runs leave behind, and never a committed input."""

import shutil
from pathlib import Path

import pytest

from ci.process import ROOT
from tests.tools import git, needs_git

LEFT_BEHIND = (
    "crash-0a1b", "timeout-0a1b", "leak-0a1b", "oom-0a1b", "slow-unit-0a1b", "harnesses/crash-0a1b",
    "build/fuzz/x", ".venv/bin/python", "engine/__pycache__/x.pyc",
)  # fmt: skip
COMMITTED = ("corpus/server/timeout-0a1b", "corpus/hello/crash-0a1b", "engine/pool.py")


@needs_git
def test_what_runs_leave_is_ignored_and_an_input_is_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    shutil.copyfile(ROOT / ".gitignore", tmp_path / ".gitignore")
    for name in (*LEFT_BEHIND, *COMMITTED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    listed = git(tmp_path, "ls-files", "--others", "--exclude-standard").split()
    assert sorted(listed) == sorted([*COMMITTED, ".gitignore"])


@needs_git
@pytest.mark.parametrize("name", [".venv", ".venv-python3.13"])
def test_an_environment_that_is_a_link_is_ignored(tmp_path: Path, name: str) -> None:
    git(tmp_path, "init", "-q")
    shutil.copyfile(ROOT / ".gitignore", tmp_path / ".gitignore")
    (tmp_path / name).symlink_to(tmp_path.parent)
    listed = git(tmp_path, "ls-files", "--others", "--exclude-standard").split()
    assert listed == [".gitignore"]
