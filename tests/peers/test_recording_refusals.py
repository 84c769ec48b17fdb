"""docs/refusals.md is what the recordings say, and nothing is out of their reach unargued."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from engine import tickets
from engine.refusals import Refusal
from peers import recording_refusals
from peers.recording_format import all_names, load
from peers.recording_refusals import ARGUED, PAGE, VERDICTS, WHEN, Coverage, measure, page

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return measure(load(name) for name in all_names())


def test_every_tag_and_verdict_is_reached_or_argued(coverage: Coverage) -> None:
    assert coverage.unreached() == []


def test_the_page_is_the_recordings_own(coverage: Coverage) -> None:
    made = page(coverage, len(all_names()))
    assert PAGE.read_text(encoding="utf-8") == made, (
        "stale: python -m peers.recording_refusals --update"
    )


def test_the_page_has_a_row_for_each(coverage: Coverage) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for word in (*(r.tag for r in Refusal), *tickets.VERDICT_NAMES):
        assert text.count(f"\n| `{word}` |") == 1, word


def test_what_is_told_of_is_there() -> None:
    assert set(WHEN) <= {r.tag for r in Refusal}
    assert set(VERDICTS) == set(tickets.VERDICT_NAMES)


@pytest.mark.parametrize("argued", ARGUED, ids=lambda a: a.tag)
def test_a_test_that_is_argued_with_is_there(argued: recording_refusals.Argued) -> None:
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
    more = (*ARGUED, recording_refusals.Argued("tls-pool", "nobody ever waits"))
    monkeypatch.setattr(recording_refusals, "ARGUED", more)
    assert coverage.unreached() == ["argued, but reached: tls-pool"]


def test_the_command_writes_the_page_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "refusals.md"
    assert recording_refusals.main([], copy) == 1
    assert "is stale" in capsys.readouterr().out and not copy.exists()
    assert recording_refusals.main(["--update"], copy) == 0
    assert copy.read_bytes() == PAGE.read_bytes()
    assert recording_refusals.main([], copy) == 0
