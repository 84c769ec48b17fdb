"""docs/refusals.md is what the recordings say, and nothing is out of their reach unargued."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from engine import tickets
from engine.refusals import Refusal
from peers.recorder import refusals
from peers.recorder.format import all_names, load
from peers.recorder.refusals import (
    ARGUED,
    CONTRACT,
    DOCS,
    PAGE,
    VERDICTS,
    Coverage,
    measure,
    pages,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return measure(load(name) for name in all_names())


def test_every_tag_and_verdict_is_reached_or_argued(coverage: Coverage) -> None:
    assert coverage.unreached() == []


def test_the_pages_are_what_the_table_and_the_recordings_say(coverage: Coverage) -> None:
    for name, made in pages(coverage, len(all_names())).items():
        assert (DOCS / name).read_text(encoding="utf-8") == made, f"{name} is stale: make docs"


def test_the_pages_have_a_row_for_each() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    for word in (*(r.tag for r in Refusal), *tickets.VERDICT_NAMES):
        assert text.count(f"\n| `{word}` |") == 1, word
    text = (DOCS / CONTRACT).read_text(encoding="utf-8")
    for refusal in Refusal:
        assert text.count(f"\n| `{refusal.tag}` |") == 1, refusal


def test_what_is_told_of_is_there() -> None:
    assert set(VERDICTS) == set(tickets.VERDICT_NAMES)


@pytest.mark.parametrize("argued", ARGUED, ids=lambda a: a.tag)
def test_a_test_that_is_argued_with_is_there(argued: refusals.Argued) -> None:
    assert Refusal(argued.tag) and argued.why
    if argued.test:
        file, name = argued.test.split("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
        assert len(found) == 1
        assert argued.tag in ast.unparse(found[0])


def test_a_tag_and_a_verdict_out_of_reach_are_seen() -> None:
    """Without the one recording that asks for an area too many, its tag is missing."""
    names = [n for n in all_names() if not n.startswith("handshake/served-without-an-area")]
    names = [n for n in names if not n.startswith("tickets/")]
    missing = measure(load(name) for name in names).unreached()
    assert {"tls-pool", "tls-server-binder", "ticket=tampered"} <= set(missing)


def test_an_argument_that_is_stale_is_seen(
    coverage: Coverage, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = (*ARGUED, refusals.Argued("tls-pool", "nobody ever waits"))
    monkeypatch.setattr(refusals, "ARGUED", more)
    assert coverage.unreached() == ["argued, but reached: tls-pool"]


def test_the_command_writes_the_pages_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = (DOCS / CONTRACT).read_text(encoding="utf-8")
    (tmp_path / CONTRACT).write_text(table.replace("unknown_ca 48", "-"), encoding="utf-8")
    assert refusals.main([], tmp_path) == 1
    assert capsys.readouterr().out.count("is stale") == 2 and not (tmp_path / PAGE).exists()
    assert refusals.main(["--update"], tmp_path) == 0
    for name in (PAGE, CONTRACT):
        assert (tmp_path / name).read_bytes() == (DOCS / name).read_bytes()
    assert refusals.main([], tmp_path) == 0
