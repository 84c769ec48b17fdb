"""Documents are cited in one form: "RFC 8446 §4.2.11", and "§4.2.11" where the document is named.

An appendix is a section too (§D.4), and several are each of them (§4.3.2, §4.4.2). So a reader, and
whoever searches, finds all that rests on one rule by one text.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "bench", "ci", "docs", "engine", "examples", "harnesses", "mutants", "peers", "recordings",
    "servers", "tests", "triage",
)  # fmt: skip
READ = {".py", ".md", ".toml", ".txt", ".cfg"}
OTHER_FORMS = re.compile(
    r"""
    RFC[ ]\d+,?\s+(?:\#\s+)?(?:[Ss]ections?|[Aa]ppendix|[Cc]hapter|sec\.)  # RFC 8446 section 4
    | RFC[ ]\d+,?[ ]\d+(?:\.\d+)+           # RFC 8446 4.2
    | RFC[ ]\d+,[ ]§                        # RFC 8446, §4
    | \bRFC-?\d{4}\b(?!_)                   # RFC8446
    | \b[Ss]ections?[ ](?:\d|[A-E]\.)       # section 4.2
    | \b[Aa]ppendix[ ][A-E]\b               # appendix D.4
    | §[ ]\d | §§                           # § 4.2
    """,
    re.VERBOSE,
)
# OpenSSL's name of a form, for its option -nameopt.
NAMES = {"RFC2253"}


def other_forms(text: str) -> list[str]:
    return [found for found in OTHER_FORMS.findall(text) if found not in NAMES]


def files() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in READ and path != Path(__file__):
                yield path


def test_there_is_one_form_of_citation() -> None:
    wrong = {
        f"{path.relative_to(ROOT)}: {form}"
        for path in files()
        for form in other_forms(path.read_text(errors="replace"))
    }
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "RFC 8446 section 4.2",
        "(RFC 8446 section\n# 4.2)",
        "RFC 8446, appendix D.4",
        "RFC 8446 4.2",
        "RFC 8446, §4.2",
        "RFC8446 §4.2",
        "see section 4.2",
        "of appendix D.4",
        "§ 4.2",
    ],
)
def test_another_form_would_be_seen(text: str) -> None:
    assert other_forms(text)


def test_the_one_form_is_not() -> None:
    text = "RFC 8446 §4.2.11, §D.4 and RFC 5280 §6; -nameopt RFC2253; RFC 8446 has 10 sections"
    assert not other_forms(text)
