"""The summary page of a hosted run."""

import pytest

from ci.command import main
from ci.report import hosted
from mutants.verdicts import Mutant, Report, Result, Verdict


@pytest.fixture
def page(tmp_path, monkeypatch):
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    return file


def test_what_is_told_is_added_and_stays_as_it_is(page):
    hosted.told("Night", "a  b\n``` c\n")
    assert page.read_text() == "before\n### Night\n\n````\na  b\n``` c\n````\n\n"


def test_where_there_is_no_page_nothing_is_written(page, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    hosted.told("Night", "a")
    assert page.read_text() == "before\n"


def test_the_merged_shards_are_told(page, tmp_path, capsys):
    mutant = Mutant("m__mutmut_1", "engine/new.py", "m", 1, "number", "x = 1", "x = 2", "")
    Report([Result(mutant, Verdict.KILLED, "test")], {"engine/new.py": 1}, 1).write(
        tmp_path / "1.json"
    )
    main(["mutate", "--merge", str(tmp_path / "1.json")])
    text = page.read_text()
    assert "### Mutation" in text and "engine/new.py" in text and "100" in text
