"""The tree that is right: a checkout, or a revision of this one."""

import shutil
import subprocess

import pytest

from ci.exits import Untrusted, UsageError
from ci.inputs import reference_tree
from tests.tools import need_git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout whose only commit has no triage yet; what is on the disk differs from it."""
    need_git()
    for folder in (*reference_tree.THEN, reference_tree.NOW):
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
    monkeypatch.setattr(reference_tree, "ROOT", tmp_path)
    return tmp_path


def test_a_revisions_tree_is_as_it_was_with_todays_means_to_run_it(repository):
    with reference_tree.tree("HEAD") as tree:
        assert (tree / "engine" / "file.py").read_text() == "then"
        assert (tree / "triage" / "probe.py").read_text() == "now"
        assert (tree / "harnesses" / "signature.py").read_text() == "now"
    assert not tree.exists()


def test_a_checkout_is_used_where_it_lies(repository):
    with reference_tree.tree(str(repository)) as tree:
        assert tree == repository
    assert repository.exists()


def test_what_is_neither_is_bad_input(repository, tmp_path):
    with (
        pytest.raises(UsageError, match="neither a folder nor a revision"),
        reference_tree.tree("nothing"),
    ):
        pass
    with (
        pytest.raises(UsageError, match="is no checkout"),
        reference_tree.tree(str(tmp_path / "engine")),
    ):
        pass


def test_without_git_a_revision_is_not_said_to_be_none(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Untrusted, match="git is not installed"), reference_tree.tree("HEAD"):
        pass
