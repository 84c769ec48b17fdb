"""SECURITY.md has the figures of the pages that it points to, and names nobody."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
ROWS = [line for line in TEXT.partition("## What was reviewed")[2].splitlines() if "docs/" in line]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1][:20].strip())
def test_a_figure_is_its_pages_too(row: str) -> None:
    pages = "\n".join((ROOT / page).read_text() for page in re.findall(r"\((docs/[\w.-]+)", row))
    for figure in re.findall(r"\d[\d,.]*%?", row.split("|")[2]):
        assert figure in pages


def test_it_has_no_address_of_anybody() -> None:
    assert not re.search(r"\w@\w|https?://", TEXT)
