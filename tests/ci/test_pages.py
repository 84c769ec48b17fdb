"""The pages keep their word: their commands exist, and no link is dead."""

import re

import pytest

from ci.command import COMMANDS, GROUPS
from ci.process import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_is_dead_and_every_command_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    names = {name.split(" ")[0] for name in COMMANDS} | set(GROUPS)
    for command in re.findall(r"(?:`|^ {4}|\n)residue ([a-z]+)", text):
        assert command in names, command


def test_every_page_is_listed():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([^)]+)\)", index))
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
