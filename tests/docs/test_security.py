"""SECURITY.md has the figures of the pages that it points to, and names nobody."""

import re
from pathlib import Path

import pytest

from harnesses import HARNESSES
from harnesses.oracles import ORACLES
from peers.liar.suites import SUITES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
ROWS = [line for line in TEXT.partition("## What was reviewed")[2].splitlines() if "docs/" in line]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1][:20].strip())
def test_a_figure_is_its_pages_too(row: str) -> None:
    if "recorded and replayed" in row:
        return  # counted below
    pages = "\n".join((ROOT / page).read_text() for page in re.findall(r"\((docs/[\w.-]+)", row))
    for figure in re.findall(r"\d[\d,.]*%?", row.split("|")[2]):
        assert figure in pages


def test_it_counts_conversations_harnesses_and_oracles_as_they_are() -> None:
    conversations = sum(len(suite.conversations) for suite in SUITES.values())
    assert f"| {conversations} conversations, recorded and replayed |" in TEXT
    words = dict(
        enumerate(
            ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
        )
    )
    words |= {19: "nineteen", 20: "twenty", 21: "twenty-one", 22: "twenty-two"}
    assert f"{words[len(HARNESSES)]} harnesses under {words[len(ORACLES)]} oracles" in TEXT


def test_it_has_no_address_of_anybody() -> None:
    assert not re.search(r"\w@\w|https?://", TEXT)
