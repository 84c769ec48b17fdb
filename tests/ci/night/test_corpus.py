"""What a night keeps of the fuzzers' inputs, and what it proposes."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from ci.fuzzing.merge import content
from ci.night import corpus, patch
from ci.process import ROOT
from tests.ci import tiny
from tests.tools import needs_git

GIT = ["git", "-c", "user.name=n", "-c", "user.email=n@example.invalid", "-c", "gc.auto=0"]


def fill(folder, *inputs):
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (folder / f"{number}").write_bytes(data)
    return folder


def held(folder):
    assert all(file.name == content(file) for file in folder.iterdir())
    return {file.read_bytes() for file in folder.iterdir()}


def test_what_is_kept_is_what_was_merged_and_is_not_committed(tmp_path):
    committed = fill(tmp_path / "committed", b"a")
    kept = tmp_path / "kept"
    assert corpus.keep(kept, fill(tmp_path / "one", b"a", b"b", b"c"), committed) == 2
    assert held(kept) == {b"b", b"c"}
    assert corpus.keep(kept, fill(tmp_path / "two", b"a", b"c", b"d"), committed) == 1
    assert held(kept) == {b"c", b"d"}


def test_an_update_that_is_cut_short_has_lost_nothing(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    corpus.keep(kept, fill(tmp_path / "one", b"b"), tmp_path)
    monkeypatch.setattr(corpus, "_add", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        corpus.keep(kept, fill(tmp_path / "two", b"c"), tmp_path)
    assert held(kept) == {b"b"}


def test_the_inputs_of_a_killed_campaign_are_kept_once(tmp_path):
    fill(tmp_path / "out" / "shards" / "hello-1" / "corpus", b"one", b"two")
    fill(tmp_path / "out" / "shards" / "hello-2-values" / "corpus", b"two")
    fill(tmp_path / "out" / "shards" / "server-3" / "corpus", b"three")
    root = tmp_path / "kept"
    assert corpus.salvage(tmp_path / "out", root, ["hello", "server"]) == 3
    assert corpus.salvage(tmp_path / "out", root, ["hello", "server"]) == 0
    assert held(root / "hello") == {b"one", b"two"} and held(root / "server") == {b"three"}


@needs_git
def test_what_an_oracle_is_against_is_not_proposed(tmp_path, monkeypatch, capsys):
    tiny.install(monkeypatch, tmp_path / "corpus", known=b"k")
    monkeypatch.setattr(patch, "HARNESSES", ("tiny",))
    new = fill(tmp_path / "new" / "tiny", b"k", b"e!", b"!", b"?")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "night 1").mkdir()
    target = tmp_path / "night 1" / "it.patch"
    patch.main(new.parent, target, "n1")
    said = json.loads(capsys.readouterr().out)
    assert said["notes"][2] == "1 new input (tiny 1): git apply 'night 1/it.patch'"
    assert said["inputs"] == {"tiny": 1}
    assert [note.split(": ")[0] for note in said["notes"][:2]] == [
        "tiny/2 is not proposed",
        "tiny/3 is not proposed",
    ]
    text = target.read_text()
    assert "+1\testablished suite=S group=G retried=no\n" in text
    assert "+tiny/1\tfound by fuzzing, night n1\n" in text


def test_with_nothing_new_the_patch_is_empty(tmp_path, monkeypatch, capsys):
    tiny.install(monkeypatch, tmp_path / "corpus", known=b"k")
    patch.main(tmp_path / "none", tmp_path / "it.patch", "n1")
    assert (tmp_path / "it.patch").read_bytes() == b""
    assert json.loads(capsys.readouterr().out) == {"inputs": {}, "notes": []}


@needs_git
def test_the_patch_applies_to_a_clone_whose_corpus_then_holds(tmp_path):
    """Binary inputs, an empty one, and one without an end of line."""
    body = next((ROOT / "corpus" / "hello").glob("chromium-*")).read_bytes()
    fill(tmp_path / "new" / "hello", b"", body + b"\n", body[:-1], bytes(range(256)))
    fill(tmp_path / "new" / "ticket", b"\x00new ticket")
    target, clone = tmp_path / "new-inputs.patch", tmp_path / "clone"
    argv = [sys.executable, "-m", "ci.night.patch", str(tmp_path / "new"), str(target), "n1"]
    said = json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True).stdout)
    assert said["inputs"]["hello"] >= 2 and said["inputs"]["ticket"] == 1
    # A copy of the files that git has and not a clone: what is changed here counts too.
    listed = subprocess.run(
        ["git", "ls-files", "-z", "engine", "harnesses", "peers", "ci", "mutants", "corpus",
         "tests/conftest.py", "tests/harnesses", "setup.cfg"],
        cwd=ROOT, check=True, capture_output=True,
    ).stdout  # fmt: skip
    for name in listed.decode().split("\0")[:-1]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, clone / name)
    subprocess.run([*GIT, "init", "-q"], cwd=clone, check=True)
    subprocess.run([*GIT, "apply", "--check", str(target)], cwd=clone, check=True)
    # As it is told: whoever copies the command from the report stands in the checkout.
    _, _, told = said["notes"][-1].partition(": git ")
    subprocess.run([*GIT, *shlex.split(told)], cwd=clone, check=True)
    tests = ["tests/harnesses/test_corpus.py", "-k", "hello or ticket or provenance"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
