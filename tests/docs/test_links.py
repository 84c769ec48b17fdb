"""Every link of a page leads to a file that is there, and its anchor to a heading of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "tests/*.md", ".github/**/*.md")
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.M)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
# `ci/process.py`, `tests/engine`: what stands in a folder of the checkout; no pattern, no blank.
NAMED = re.compile(
    r"(?<!`)`((?:bench|ci|docs|engine|harnesses|mutants|peers|servers|tests|triage)/[\w./-]+)`"
)


def links(text: str) -> Iterator[str]:
    """Where a page's links lead; what stands in code is none."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    for found in LINK.finditer(prose):
        yield found[1] or found[2]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def wrong(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in links(text):
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists():
            found.append(f"{link}: there is no such file")
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            found.append(f"{link}: there is no such heading")
    return found


def shown(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    assert wrong(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    names = NAMED.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [n for n in names if "NAME" not in n and not (ROOT / n).exists()] == []


def test_a_link_that_leads_nowhere_is_told_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# One two\n\n## `A` & b\n\n## One two\n", encoding="utf-8")
    right = "[a](other.md) [b](other.md#one-two) [c](other.md#a--b) [d](other.md#one-two-1) [e](#f)"
    text = f"# F\n{right} [g](https://example.invalid/#h) `[i](none.md)`\n```\n[j](none.md)\n```\n"
    page.write_text(text, encoding="utf-8")
    assert wrong(page, text) == []
    bad = "[k](none.md) ![l](none.png) [m](other.md#two) [n](#o)\n[p]: nowhere.md\n"
    page.write_text(bad, encoding="utf-8")
    assert [line.partition(":")[0] for line in wrong(page, bad)] == [
        "none.md", "none.png", "other.md#two", "#o", "nowhere.md",
    ]  # fmt: skip
