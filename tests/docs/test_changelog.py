"""CHANGELOG.md begins with the version that the engine says it is."""

import re
from pathlib import Path

from engine import __version__

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_newest_version_is_the_engines() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+) - (unreleased|\d{4}-\d{2}-\d{2})$", TEXT, re.M)
    assert versions[0][0] == __version__
    assert len(versions) == TEXT.count("\n## ")
