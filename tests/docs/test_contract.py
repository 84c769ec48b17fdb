"""What cites a section of the contract cites one that is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs" / "contract.md"
# "SPEC 6.4", "SPEC §1.3", "SPEC 6.4 and 6.5".
CITED = re.compile(r"\bSPEC §?(\d+(?:\.\d+)?)(?![\d-])(?:,? (?:and |§)(\d+\.\d+))?")
READ = {".py", ".md", ".toml", ".txt", ".cfg", ".outcomes"}
FOLDERS = (
    "bench", "ci", "corpus", "docs", "engine", "harnesses", "mutants", "peers", "recordings",
    "servers", "tests", "triage",
)  # fmt: skip


def sections(text: str) -> set[str]:
    """Each heading's number, and each numbered rule of a section as SECTION.RULE."""
    found: set[str] = set()
    section = ""
    for line in text.splitlines():
        if heading := re.match(r"##+ (\d+(?:\.\d+)?)\.? ", line):
            section = heading[1]
            found.add(section)
        elif (rule := re.match(r"(\d+)\. ", line)) and "." not in section:
            found.add(f"{section}.{rule[1]}")
    return found


def citations(text: str) -> Iterator[str]:
    for found in CITED.finditer(text):
        yield from (number for number in found.groups() if number)


def files(folder: str) -> Iterator[Path]:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and path.suffix in READ and path != Path(__file__):
            yield path


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_section_that_is_cited_is_in_the_contract(folder: str) -> None:
    there = sections(CONTRACT.read_text())
    missing = {
        f"{path.relative_to(ROOT)}: SPEC {number}"
        for path in files(folder)
        for number in citations(path.read_text(errors="replace"))
        if number not in there
    }
    assert not missing


def test_a_section_that_is_not_there_would_be_seen() -> None:
    there = sections("## 2. Memory\n\n1. *Lease.*\n\n### 2.7 Other\n")
    assert there == {"2", "2.1", "2.7"}
    assert set(citations("SPEC 2.1, SPEC §9.9 and SPEC 3.")) == {"2.1", "9.9", "3"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_document_is_cited_that_is_not_in_the_repository(folder: str) -> None:
    cited = [
        str(path.relative_to(ROOT))
        for path in files(folder)
        if re.search(r"\bseed §", path.read_text(errors="replace"))
    ]
    assert not cited
