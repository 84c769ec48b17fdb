"""The glossary is of words that are in use, and a reader of the README is led to it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
README = ROOT / "README.md"
FOLDERS = ("bench", "ci", "docs", "engine", "harnesses", "mutants", "peers", "servers", "triage")
# What nobody can guess. The others are English, or the field's.
PRIVATE = ("area", "bucket", "canary", "ledger", "liar", "promote", "refusal", "residue")


def words() -> dict[str, str]:
    """Each word, and the anchor of the heading that it stands under."""
    found: dict[str, str] = {}
    anchor = ""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            anchor = line[3:].lower().replace(" ", "-")
        elif line.startswith("| **"):
            for word in re.findall(r"\*\*([^*]+)\*\*", line.split("|")[1]):
                assert word not in found, f"{word} stands there twice"
                found[word] = anchor
    return found


def uses(word: str, text: str) -> bool:
    """The word or a form of it: harnesses, leased, resting, canaries."""
    stem = re.escape(word.rstrip("ey"))
    return bool(re.search(rf"\b{stem}(e|y|s|es|ies|d|ed|ing)?\b", text, re.IGNORECASE))


def texts() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md"} and path != GLOSSARY:
                yield path


def test_every_word_is_in_use() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in texts())
    assert len(words()) > 40
    assert [word for word in words() if not uses(word, text)] == []
    assert not uses("mirror-polish", text)


def prose(page: str) -> str:
    """A page without what stands in code, links' targets and comments."""
    page = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"^ {4}.*$", "", page, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "]", page)


@pytest.mark.parametrize("word", PRIVATE)
def test_the_readme_links_a_word_that_nobody_can_guess(word: str) -> None:
    readme = README.read_text(encoding="utf-8")
    target = f"docs/glossary.md#{words()[word]}"
    links = [text for text, to in re.findall(r"\[([^]]+)\]\(([^)]+)\)", readme) if to == target]
    assert sum(uses(word, text) for text in links) == uses(word, prose(readme))
