"""A result is readable by a person and by a program, and says how to get it again."""

import json
from pathlib import Path

import pytest

from bench import table
from ci.results import Json

RESULT = table.Result(
    "example",
    [table.Column("name", "name"), table.Column("us", "µs", ".1f"), table.Column("aim", "aim")],
    [{"name": "one", "us": 1.25, "aim": None}, {"name": "another", "us": 100.0, "aim": "2"}],
    {"rounds": 3},
    ["A note."],
)


def test_columns_are_aligned_and_what_is_unknown_is_a_dash() -> None:
    """The first column to the left, figures to the right."""
    lines = RESULT.text().splitlines()
    assert lines[:4] == [
        "name        µs  aim",
        "-------  -----  ---",
        "one        1.2    -",
        "another  100.0    2",
    ]
    assert lines[5:7] == ["A note.", "rounds 3"]


def test_the_command_is_in_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure with its command."""
    monkeypatch.delenv(table.COMMAND, raising=False)
    monkeypatch.setattr("sys.argv", ["/anywhere/residue", "bench", "example"])
    assert RESULT.text().endswith("command: residue bench example")
    assert RESULT.document()["command"] == "residue bench example"
    monkeypatch.setattr("sys.argv", ["/anywhere/ci/__main__.py", "bench", "example"])
    assert RESULT.document()["command"] == "python -m ci bench example"


def test_a_file_is_written_besides_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is left of the writing."""
    target = tmp_path / "result.json"
    table.show(RESULT, Json(str(target)))
    assert json.loads(target.read_text())["rows"] == [dict(row) for row in RESULT.rows]
    assert list(tmp_path.iterdir()) == [target]
    assert "another" in capsys.readouterr().out
