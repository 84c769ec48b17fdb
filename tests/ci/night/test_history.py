"""The history of nights: what tears it, and what mends it."""

import errno
import os

import pytest

from ci.night import history

ONE, TWO = {"night": "1", "exit": 0}, {"night": "2", "exit": 1}


def test_rows_are_read_as_they_were_appended(tmp_path):
    path = tmp_path / "history.jsonl"
    assert history.read(path) == ([], [])
    history.append(path, ONE)
    history.append(path, TWO)
    assert history.read(path) == ([ONE, TWO], [])


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_told_left_out_and_cut_off_by_the_next(tmp_path, cut):
    path = tmp_path / "history.jsonl"
    history.append(path, ONE)
    whole = path.stat().st_size
    history.append(path, TWO)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - cut)
    rows, wrong = history.read(path)
    assert rows == [ONE] and "torn" in wrong[0]
    history.append(path, {"night": "3"})
    assert history.read(path) == ([ONE, {"night": "3"}], [])
    assert path.read_bytes()[:whole].endswith(b"}\n")


def test_a_line_in_the_middle_that_is_no_row_is_left_alone(tmp_path):
    path = tmp_path / "history.jsonl"
    history.append(path, ONE)
    with path.open("ab") as file:
        file.write(b"<<<<<<< ours\n[1]\n")
    history.append(path, TWO)
    rows, wrong = history.read(path)
    assert rows == [ONE, TWO] and wrong == [
        "history.jsonl: line 2 is no row",
        "history.jsonl: line 3 is no row",
    ]
    assert b"<<<<<<< ours" in path.read_bytes()


@pytest.mark.parametrize(
    "part", [{"slice": "all"}, {"fuzzed": [1]}, {"profiled": 7}, {"findings": None}, {"night": 1}]
)
def test_a_row_with_a_part_that_no_night_writes_is_none(tmp_path, part):
    path = tmp_path / "history.jsonl"
    history.append(path, ONE | part)
    history.append(path, TWO | {"slice": None, "fuzzed": {}, "profiled": []})
    rows, wrong = history.read(path)
    assert [row["night"] for row in rows] == ["2"] and wrong == ["history.jsonl: line 1 is no row"]


def test_a_full_disk_leaves_the_older_rows_and_no_half_a_row(tmp_path, monkeypatch):
    path = tmp_path / "history.jsonl"
    history.append(path, ONE)

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError):
        history.append(path, TWO)
    assert history.read(path) == ([ONE], [])
