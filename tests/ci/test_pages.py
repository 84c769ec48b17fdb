"""The pages keep their word: the README's code runs, its commands exist, no link is dead."""

import re

import pytest

from ci.command import COMMANDS, GROUPS
from ci.process import ROOT
from harnesses import fixtures

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_code_of_the_readme_answers_a_client_hello():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    identity = ROOT / "harnesses" / "identity"
    body = (ROOT / "corpus" / "hello" / "chromium-156-0").read_bytes()
    message = b"\x01" + len(body).to_bytes(3) + body
    given = {
        "entropy": bytes(range(32)),
        "chain_pem": (identity / "chain.pem").read_bytes(),
        "key_pem": (identity / "key.pem").read_bytes(),
        "now_ms": fixtures.NOW_MS,
        "slot": 0,
        "received": b"\x16\x03\x01" + len(message).to_bytes(2) + message,
        "out": bytearray(16384),
    }
    # `count` is what `take` gave until `recv` says that there is no plaintext yet.
    exec(code.replace("count = tls.recv", "last = tls.recv"), given)
    assert given["taken"] == len(given["received"])
    assert given["out"][:3] == b"\x16\x03\x03" and given["count"] > 500
    assert given["last"] == -1


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
