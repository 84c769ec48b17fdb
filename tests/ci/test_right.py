"""The tree that is right: a checkout, or a revision of this one."""

import subprocess

import pytest

from ci import extras, right
from ci.exits import Untrusted, UsageError
from tests.tools import need_git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout whose only commit has no triage yet; what is on the disk differs from it."""
    need_git()
    for folder in (*right.THEN, right.NOW):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file.py").write_text("then")
    (tmp_path / "harnesses" / "signature.py").write_text("now")
    (tmp_path / "triage" / "probe.py").write_text("now")
    for words in (
        ["init", "-q"],
        ["add", "engine", "peers", "harnesses/file.py"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "engine" / "file.py").write_text("now")
    monkeypatch.setattr(right, "ROOT", tmp_path)
    return tmp_path


def test_a_revisions_tree_is_as_it_was_with_todays_means_to_run_it(repository):
    with right.tree("HEAD") as tree:
        assert (tree / "engine" / "file.py").read_text() == "then"
        assert (tree / "triage" / "probe.py").read_text() == "now"
        assert (tree / "harnesses" / "signature.py").read_text() == "now"
    assert not tree.exists()


def test_a_checkout_is_used_where_it_lies(repository):
    with right.tree(str(repository)) as tree:
        assert tree == repository
    assert repository.exists()


def test_what_is_neither_is_bad_input(repository, tmp_path):
    with pytest.raises(UsageError, match="neither a folder nor a revision"), right.tree("nothing"):
        pass
    with pytest.raises(UsageError, match="is no checkout"), right.tree(str(tmp_path / "engine")):
        pass


def test_without_git_a_revision_is_not_said_to_be_none(monkeypatch):
    monkeypatch.setattr(extras.shutil, "which", lambda name: None)
    with pytest.raises(Untrusted, match="git is not installed"), right.tree("HEAD"):
        pass
