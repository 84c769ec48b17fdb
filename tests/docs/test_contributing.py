"""CONTRIBUTING.md names files that are there, and each of its lists is short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LISTS = dict(re.findall(r"^### (.*?)\n\n(.*?)(?=^###|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def test_nine_things_can_be_added() -> None:
    assert list(LISTS) == [
        "A TLS extension",
        "A refusal",
        "A harness",
        "An oracle",
        "A mutation operator",
        "A stage of the gate",
        "A section of the report",
        "A server",
        "A bench",
    ]


@pytest.mark.parametrize("what", LISTS)
def test_a_list_is_of_at_most_six_files(what: str) -> None:
    numbers = re.findall(r"^(\d)\. ", LISTS[what], re.MULTILINE)
    assert [int(number) for number in numbers] == [*range(1, len(numbers) + 1)]
    assert 2 <= len(numbers) <= 6


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "RELEASING.md"])
def test_every_file_that_is_named_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", text))
    assert names
    for name in names:
        if "NAME" in name:
            assert (ROOT / name).parent.is_dir(), name
        elif not name.startswith(("build/", "residue_tls/")):
            assert (ROOT / name).exists(), name
