"""The staged copy: a tree under build/ where mutants are made and run, and nothing else is.

mutmut's own folder is called mutants/, as ours is; it is never made. A mutated file takes the
place of the original in the copy, whose every import is checked to be of the copy
(mutants/drive.py).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mutants import plants, survey
from mutants.loop import Limits
from mutants.settings import ROOT, SUITE
from mutants.verdicts import Mutant

# Everything that a test may import or read. What is not here (build/ above all) is not copied.
FOLDERS = (*SUITE.planted, "mutants", *SUITE.read)
FILES = ("setup.cfg", "pyproject.toml")
ENVIRONMENT = {
    "CI": "true",
    "HYPOTHESIS_PROFILE": "mutation",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class Stage:
    """A staged copy and the mutants of the files in it."""

    root: Path
    mutants: tuple[Mutant, ...]

    @property
    def files(self) -> list[str]:
        """The files that have mutants."""
        return list(dict.fromkeys(mutant.file for mutant in self.mutants))


def copy(dest: Path, root: Path = ROOT) -> Path:
    """A clean copy of what tests need at `dest`, which must not be there yet."""
    dest.mkdir(parents=True)
    plants.copy(dest, root=root, folders=FOLDERS)
    for file in FILES:
        shutil.copy2(root / file, dest / file)
    return dest


def stage(
    dest: Path, files: Iterable[str], only: frozenset[str] | None = None, root: Path = ROOT
) -> Stage:
    """A copy in which the files have all of their mutants behind switches."""
    copy(dest, root)
    mutants: list[Mutant] = []
    for file in files:
        code, made = survey.mutate(file, (dest / file).read_text(encoding="utf-8"), only)
        if made:
            (dest / file).write_text(code, encoding="utf-8")
            mutants += made
    return Stage(dest, tuple(mutants))


@dataclass(frozen=True)
class DriverJob:
    """What mutants.drive is to do, for which there is nothing but this, as a file."""

    out: Path
    """Where it says what came of each mutant."""
    mutants: Sequence[str]
    """Their names."""
    jobs: int
    limits: Limits = field(default_factory=Limits)
    tests: Sequence[str] = ()
    leave_out: Sequence[str] = ()
    corpus: Sequence[str] | None = None
    """The harnesses whose committed inputs kill, in place of tests."""
    beyond: float = 0.0
    hunt: float = 0.0
    last: Sequence[str] = ()
    """Tests that are asked when no other kills."""

    def write(self, path: Path, stage: Stage, unchanged: bool = False) -> None:
        """Write it for a staged copy; with its mutants that change nothing, if they are wanted."""
        job = {
            **asdict(self),
            "out": str(self.out),
            "files": stage.files,
            "unchanged": survey.unchanged(stage.mutants) if unchanged else [],
            "proposals": str(self.out.parent / "proposals"),
        }
        path.write_text(json.dumps(job, indent=1), encoding="utf-8")


def environment() -> dict[str, str]:
    """What a driver is started with, so that every run is alike."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MUTANT_UNDER_TEST")}
    return {**kept, **ENVIRONMENT}
