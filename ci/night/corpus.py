"""The inputs that are kept between nights: ROOT/corpus/HARNESS, named by content.

The next night's campaign begins from them. Nothing is there that is committed. An update first adds
and then takes away, so that a kill in between leaves more than is needed and never less.
"""

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from ci.fuzzing.merge import content, files
from ci.process import ROOT
from mutants.settings import SUITE


def keep(folder: Path, merged: Path, committed: Path) -> int:
    """Make `folder` what is merged and not committed; how many inputs it did not have before."""
    theirs = {content(file) for file in files(committed)}
    wanted = {content(file): file for file in files(merged)}
    wanted = {digest: file for digest, file in wanted.items() if digest not in theirs}
    fresh = _add(folder, wanted)
    for file in files(folder):
        if file.name not in wanted:
            file.unlink()
    return fresh


def salvage(campaign: Path, root: Path, harnesses: Iterable[str]) -> int:
    """Add every input that the shards of a killed campaign had kept; how many were new."""
    total = 0
    for harness in harnesses:
        committed = {content(file) for file in files(ROOT / SUITE.corpus / harness)}
        found = {
            content(file): file
            for shard in sorted(campaign.glob(f"shards/{harness}-*"))
            for file in files(shard / "corpus")
        }
        wanted = {digest: file for digest, file in found.items() if digest not in committed}
        if wanted:
            total += _add(root / harness, wanted)
    return total


def _add(folder: Path, wanted: dict[str, Path]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    have = {file.name for file in files(folder)}
    for digest, file in wanted.items():
        if digest not in have:
            aside = folder / f".{digest}"
            shutil.copyfile(file, aside)
            aside.replace(folder / digest)
    return len(set(wanted) - have)


def tidy(campaign: Path) -> None:
    """Take away what a campaign leaves that is kept elsewhere, or that its merge did not want."""
    for folder in [campaign / "seeds", campaign / "merged", *campaign.glob("shards/*/corpus")]:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
