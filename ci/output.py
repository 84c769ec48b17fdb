"""The output folder of a run: what lies where, and that nothing older is written over.

summary.txt, summary.json   the verdict
report.html, report.json    the report of it, and chat.txt
seeds/HARNESS/              further seeds that it was given, a copy
findings/HARNESS/           one JSON and one input for each signature
new/HARNESS/                new inputs that reach more than the committed ones, the least set
merged/HARNESS/             the committed inputs and the new ones
shards/NAME/                corpus, artifacts and log of each process
"""

import os
from dataclasses import dataclass
from pathlib import Path

from ci.exits import UsageError
from ci.process import ROOT
from ci.progress import stamp
from mutants.settings import SUITE

BUILD = ROOT / "build"


@dataclass(frozen=True)
class Output:
    """An output folder that exists, was empty, and lies outside of the committed corpus."""

    root: Path

    @property
    def shards(self) -> Path:
        """One folder a process."""
        return self.root / "shards"

    @property
    def scratch(self) -> Path:
        """What nobody needs afterwards."""
        return self.root / "scratch"

    def seeds(self, harness: str) -> Path:
        """Further seeds of one harness, beside the committed ones."""
        return self.root / "seeds" / harness

    def findings(self, harness: str) -> Path:
        """Findings of one harness, shared by its processes."""
        return self.root / "findings" / harness

    def merged(self, harness: str) -> Path:
        """The committed inputs and the new ones."""
        return self.root / "merged" / harness

    def new(self, harness: str) -> Path:
        """The new inputs alone, to look at and to promote."""
        return self.root / "new" / harness


def make(asked: str | None, kind: str) -> Output:
    """The folder asked for, or a new one under build/KIND/, with `latest` pointing at it."""
    if asked is not None:
        root = Path(asked).absolute()
        if inside(root, ROOT / SUITE.corpus):
            raise UsageError(f"{asked} is in the committed corpus, which no fuzzer writes to")
        if root.exists() and not root.is_dir():
            raise UsageError(f"{asked} is not a folder")
        if root.exists() and any(root.iterdir()):
            raise UsageError(f"{asked} is not empty; name a new folder")
        _create(root, asked)
    else:
        root = _fresh(BUILD / kind)
        _point(BUILD / kind / "latest", root.name)
    output = Output(root)
    for folder in (output.shards, output.scratch):
        _create(folder, str(folder))
    return output


def _create(folder: Path, name: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{name} cannot be made: {error.strerror}") from None


def _fresh(parent: Path) -> Path:
    _create(parent, str(parent))
    base = stamp()
    for number in range(1000):
        root = parent / (base if number == 0 else f"{base}-{number}")
        try:
            root.mkdir()
        except FileExistsError:
            continue
        return root
    raise UsageError(f"{parent} has a thousand folders called {base}")


def _point(link: Path, name: str) -> None:
    aside = link.with_name(f".latest.{os.getpid()}")
    aside.symlink_to(name)
    aside.replace(link)


def inside(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or in it, links followed."""
    return real(path).is_relative_to(real(folder))


def real(path: Path) -> Path:
    """A path without links. One that leads to itself stays, where `Path.resolve` would raise."""
    return Path(os.path.realpath(path))


def shown(path: Path) -> str:
    """A path as a person would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
