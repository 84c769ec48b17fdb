"""Where a run writes: never over something, never into the corpus."""

import pytest

from ci import output
from ci.exits import UsageError
from ci.process import ROOT


def test_a_folder_without_a_name_is_new_each_time_and_latest_points_at_the_last(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(output, "BUILD", tmp_path)
    first, second = output.make(None, "campaign"), output.make(None, "campaign")
    assert first.root != second.root and first.root.is_dir()
    assert (tmp_path / "campaign" / "latest").resolve() == second.root.resolve()


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        output.make(str(tmp_path), "campaign")
    assert [f.name for f in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("inside", ["corpus", "corpus/hello", "corpus/hello/new", "docs/../corpus"])
def test_the_committed_corpus_is_no_output_folder(inside):
    with pytest.raises(UsageError, match="committed corpus"):
        output.make(str(ROOT / inside), "campaign")
    assert not (ROOT / "corpus" / "hello" / "new").exists()


def test_a_file_and_a_folder_that_cannot_be_made_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        output.make(str(tmp_path / "file"), "campaign")
    with pytest.raises(UsageError, match="cannot be made"):
        output.make(str(tmp_path / "file" / "below"), "campaign")
