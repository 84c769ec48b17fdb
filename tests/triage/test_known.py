"""Known findings: until when, and what becomes of them afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from triage import known
from triage.bucket import Bucket
from triage.known import EXPIRED, FIXED, KNOWN, NEW, KnownError
from triage.signature import Signature

MADE = Bucket(Signature("server", "oracle", "chunks", frames=("a.py:b",)), "", "", "", 1)
DAY = date(2027, 1, 31)


def entries(tmp_path: Path, text: str) -> list[known.Entry]:
    file = tmp_path / "known.toml"
    file.write_text(text)
    return known.read(file)


def entry(tmp_path: Path, match: str) -> known.Entry:
    (made,) = entries(tmp_path, f'[[known]]\n{match}\nreason = "r"\nexpires = 2027-01-31\n')
    return made


@pytest.mark.parametrize(
    ("match", "covers"),
    [
        (f'bucket = "{MADE.id}"', True),
        ('bucket = "000000000000"', False),
        ('harness = "server"\noracle = "chunks"', True),
        ('harness = "server"\noracle = "residue"', False),
        ('frames = ["a.py:b"]', True),
        ('frames = ["a.py:c"]', False),
    ],
)
def test_an_entry_covers_a_bucket_when_all_that_it_says_is_so(
    tmp_path: Path, match: str, covers: bool
) -> None:
    assert entry(tmp_path, match).covers(MADE) == covers


def test_the_last_day_counts_and_the_next_is_red(tmp_path: Path) -> None:
    one = [entry(tmp_path, 'harness = "server"')]
    assert known.state(MADE, one, DAY) == (KNOWN, one[0])
    assert known.state(MADE, one, date(2027, 2, 1)) == (EXPIRED, one[0])
    assert known.state(MADE, [], DAY) == (NEW, None)
    assert known.state(replace(MADE, fixed="2027"), one, DAY) == (FIXED, one[0])


def test_of_two_entries_the_one_that_lasts_longer_counts(tmp_path: Path) -> None:
    both = entries(
        tmp_path,
        '[[known]]\nkind = "oracle"\nreason = "a"\nexpires = 2027-01-01\n'
        '[[known]]\nharness = "server"\nreason = "b"\nexpires = 2027-03-01\n',
    )
    state, one = known.state(MADE, both, DAY)
    assert (state, one and one.reason) == (KNOWN, "b")


def test_an_entry_is_stale_when_its_day_has_passed_and_it_excuses_nothing(tmp_path: Path) -> None:
    one = entry(tmp_path, 'harness = "server"')
    other = entry(tmp_path, 'harness = "hello"')
    after = date(2027, 2, 1)
    assert known.stale([MADE], [one, other], DAY) == []
    assert known.stale([MADE], [one, other], after) == [other]
    assert known.stale([replace(MADE, fixed="2027")], [one], after) == [one]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[known]\n", "line 1"),
        ('name = "x"\n', "nothing in it but"),
        ("known = 3\n", "nothing in it but"),
        ("known = [3]\n", "no table"),
        ('[[known]]\nbucket = "x"\nexpires = 2027-01-31\n', "entry 1 has no reason"),
        ('[[known]]\nbucket = "x"\nreason = "r"\n', "no expires"),
        ('[[known]]\nbucket = "x"\nreason = "r"\nexpires = "soon"\n', "no expires"),
        ('[[known]]\nbucket = "x"\nreason = "r"\nexpires = 2027-01-31T00:00:00Z\n', "no expires"),
        ('[[known]]\nreason = "r"\nexpires = 2027-01-31\n', "neither a bucket"),
        ('[[known]]\nbucket = "x"\nkind = "y"\nreason = "r"\nexpires = 2027-01-31\n', "1 more"),
        ('[[known]]\ncolour = "x"\nreason = "r"\nexpires = 2027-01-31\n', "'colour' is none of"),
        ('[[known]]\nframes = "x"\nreason = "r"\nexpires = 2027-01-31\n', "list of strings"),
    ],
)
def test_a_broken_file_says_what_is_wrong_with_it(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(KnownError, match=says):
        entries(tmp_path, text)


def test_the_committed_file_can_be_read() -> None:
    assert isinstance(known.read(known.PATH), list)
