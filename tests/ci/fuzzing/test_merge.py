"""A merge is believed only when it gave what it should."""

import sys

import pytest

from ci.fuzzing import merge
from ci.fuzzing.merge import Merge
from ci.process import ROOT, Stop, run_all

FAKE = ROOT / "tests" / "ci" / "fake_runner.py"


def merged(tmp_path, behaviour, limit=merge.LIMIT):
    committed, one, two = (tmp_path / name for name in ("committed", "one", "two"))
    for folder in (committed, one, two):
        folder.mkdir()
    (committed / "real-client").write_bytes(b"a")
    (one / "1").write_bytes(b"b")
    (one / "2").write_bytes(b"a")
    (two / "3").write_bytes(b"c")
    (two / "4").write_bytes(b"b")
    m = Merge("hello", committed, [one, two], tmp_path / "merged", tmp_path / "new")
    (tmp_path / "scratch").mkdir()
    command = [sys.executable, str(FAKE), behaviour]
    merge.prepare(m, tmp_path / "log", tmp_path, command, tmp_path / "findings")
    m.job.limit = limit
    assert m.job is not None
    run_all([m.job], 1, Stop(), stops_at=2)
    merge.judge(m)
    return m


def test_the_new_inputs_are_what_is_not_committed(tmp_path):
    m = merged(tmp_path, "good")
    assert not m.kept_all and m.found == 4
    assert (tmp_path / "merged" / "real-client").read_bytes() == b"a"
    assert m.hand_over() == 2
    assert sorted(f.read_bytes() for f in m.new.iterdir()) == [b"b", b"c"]


def test_a_merge_that_ends_badly_keeps_everything(tmp_path):
    m = merged(tmp_path, "no-such-behaviour")
    m.job.code = 1
    merge.judge(m)
    assert m.kept_all == "it ended with 1"
    assert m.hand_over() == 2


def test_a_merge_that_gives_nothing_can_be_given_everything_back(tmp_path):
    m = merged(tmp_path, "emptied")
    assert not m.kept_all, "its exit code says that all is well"
    assert m.new_inputs() == []
    m.keep_all("it lost 3 lines and branches")
    assert m.hand_over() == 2


def test_a_merge_that_hangs_keeps_everything(tmp_path):
    m = merged(tmp_path, "good", limit=0.0)
    assert "longer" in m.kept_all and m.hand_over() == 2


def test_with_nothing_found_there_is_nothing_to_merge(tmp_path):
    m = Merge("hello", tmp_path / "none", [], tmp_path / "merged", tmp_path / "new")
    merge.prepare(m, tmp_path / "log", tmp_path, ["never-run"], tmp_path / "findings")
    merge.judge(m)
    assert m.job is None and m.hand_over() == 0


@pytest.mark.parametrize("twice", [1, 2])
def test_an_input_is_handed_over_once_whatever_its_name(tmp_path, twice):
    m = merged(tmp_path, "good")
    m.add([tmp_path / "two" / "4"] * twice)
    assert m.hand_over() == 2
