"""What a run left: each input once, whoever wrote it down."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harnesses.oracles import Broken
from harnesses.run import save
from triage import sightings
from triage.sightings import SightingsError


def broken() -> Exception:
    try:
        raise Broken("residue", "3 bytes left")
    except Broken as error:
        return error


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A campaign that was killed: findings, artifacts, no summary."""
    save(tmp_path / "out" / "findings" / "server", "server", b"one", broken())
    artifacts = tmp_path / "out" / "shards" / "server-2" / "artifacts"
    artifacts.mkdir(parents=True)
    for name in ("crash", "timeout", "oom", "slow-unit"):
        (artifacts / f"{name}-aa").write_bytes(name.encode())
    (artifacts / "leak-aa").write_bytes(b"leak")
    (tmp_path / "out" / "new" / "hello").mkdir(parents=True)
    (tmp_path / "out" / "new" / "hello" / "0a1b").write_bytes(b"new")
    return tmp_path / "out"


def test_findings_artifacts_and_new_inputs_are_taken(out: Path) -> None:
    taken = sightings.read(out)
    told = {(s.harness, s.data, s.said.kind if s.said else "") for s in taken.sightings}
    assert told == {
        ("server", b"one", "oracle"),
        ("server", b"crash", "crash"),
        ("server", b"timeout", "timeout"),
        ("server", b"oom", "out-of-memory"),
        ("server", b"slow-unit", "slow"),
        ("hello", b"new", ""),
    }
    assert taken.unread == []


def test_an_artifact_and_the_finding_made_of_it_are_one(out: Path) -> None:
    before = {s.data: s.key for s in sightings.read(out).sightings}
    folder = out / "findings" / "server"
    finding = {
        "harness": "server",
        "signature": {"oracle": None, "kind": "timeout", "frames": ["a.py:b"]},
        "detail": "timeout after 10 seconds",
        "input": "x.input",
        "traceback": ["line"],
    }
    (folder / "x.json").write_text(json.dumps(finding))
    (folder / "x.input").write_bytes(b"timeout")
    after = sightings.read(out).sightings
    assert {s.data: s.key for s in after} == before
    (one,) = (s for s in after if s.data == b"timeout")
    assert one.said is not None and one.said.frames == ("a.py:b",) and one.traceback == ["line"]


def test_a_folder_that_moved_is_the_same_and_a_new_one_of_its_name_is_not(out: Path) -> None:
    before = {s.key for s in sightings.read(out).sightings}
    shutil.move(out, out.with_name("elsewhere"))
    assert {s.key for s in sightings.read(out.with_name("elsewhere")).sightings} == before
    for file in out.with_name("elsewhere").rglob("*-aa"):
        os.utime(file, (1, 1))
    assert {s.key for s in sightings.read(out.with_name("elsewhere")).sightings} != before


def test_when_it_was_seen_is_when_its_oldest_file_was_written(out: Path) -> None:
    for file in out.rglob("*"):
        os.utime(file, (86_400, 86_400))
    assert {s.when for s in sightings.read(out).sightings} == {"1970-01-02T00:00:00Z"}


def test_a_finding_that_cannot_be_read_is_named_and_the_rest_is_taken(out: Path) -> None:
    (out / "findings" / "server" / "half.json").write_text('{"harness": "ser')
    taken = sightings.read(out)
    assert len(taken.sightings) == 6
    (text,) = taken.unread
    assert "half.json is no finding" in text


def row(**fields: object) -> dict[str, object]:
    usual = {"harness": "hello", "file": "handmade-plain", "committed": True}
    return {**usual, "outcome": "waiting", "expected": "tls-alert", "wrong": "expected", **fields}


def test_a_replays_wrong_outcomes_are_taken_with_what_was_expected(tmp_path: Path) -> None:
    rows = [
        row(),
        row(file="handmade-alpn", outcome=None, wrong="oracle residue: 3"),
        row(file="handmade-cut", wrong=""),
        row(file="handmade-empty", expected=None, wrong="has no committed outcome"),
        row(file="gone", outcome=None, wrong="is no input"),
    ]
    (tmp_path / "replay.json").write_text(json.dumps(rows))
    taken = sightings.read(tmp_path / "replay.json")
    first, second = taken.sightings
    assert first.said is not None
    assert (first.said.kind, first.said.expected, first.said.found) == (
        "outcome",
        "tls-alert",
        "waiting",
    )
    assert first.committed == "hello/handmade-plain" and first.data
    assert second.said is None and second.committed == "hello/handmade-alpn"
    assert taken.unread == []


@pytest.mark.parametrize("text", ["", "{}", "[3]", '[{"wrong": "x"}]'])
def test_another_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(SightingsError, match="is not what residue replay --json prints"):
        sightings.read(tmp_path / "file")


def test_a_run_that_found_nothing_leaves_nothing_to_take(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert sightings.read(tmp_path) == sightings.Taken()


def test_a_folder_that_no_run_left_is_named_and_one_that_is_not_there_are_errors(
    tmp_path: Path,
) -> None:
    (text,) = sightings.read(tmp_path).unread
    assert "no run left it" in text
    with pytest.raises(SightingsError, match="there is no"):
        sightings.read(tmp_path / "nothing")
    (tmp_path / "new" / "nobody").mkdir(parents=True)
    (tmp_path / "new" / "nobody" / "x").write_bytes(b"")
    with pytest.raises(SightingsError, match="there is no harness 'nobody'"):
        sightings.read(tmp_path)
