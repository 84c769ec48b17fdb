"""The store: whole whenever it is looked at, and nothing counted twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harnesses.outcomes import ROOT
from triage.bucket import MOST_SIGHTINGS, Bucket
from triage.signature import Signature
from triage.store import Store, StoreError

MADE = Bucket(
    Signature("server", "oracle", "chunks", frames=("a.py:b",)),
    "differs",
    "2026-01-02T00:00:00Z",
    "2026-01-02T00:00:00Z",
)


def test_a_bucket_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "store")
    with store.writing():
        store.put(MADE.seen("k", "2026-01-03T00:00:00Z"), b"four")
    again = Store(store.folder)
    (made,) = again.buckets.values()
    assert (made.count, made.size, made.sightings) == (1, 4, ["k"])
    assert made.last_seen > made.first_seen and made.signature == MADE.signature
    assert again.data(made.id) == b"four" and again.get(MADE.signature) == made


def test_a_sighting_counts_once_and_their_number_is_bounded() -> None:
    made = MADE.seen("a", "2026-01-05T00:00:00Z").seen("a", "2026-01-06T00:00:00Z")
    assert (made.count, made.last_seen) == (1, "2026-01-05T00:00:00Z")
    for number in range(MOST_SIGHTINGS + 5):
        made = made.seen(f"b{number}", "2026-01-01T00:00:00Z")
    assert made.count == MOST_SIGHTINGS + 6 and len(made.sightings) == MOST_SIGHTINGS
    assert made.first_seen == "2026-01-01T00:00:00Z"


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    assert Store(tmp_path / "store").buckets == {}
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("damage", ["no json", "{}", '{"id": "x"}', "other id", "no input"])
def test_a_file_that_is_no_bucket_is_named_and_the_others_are_read(
    tmp_path: Path, damage: str
) -> None:
    store = Store(tmp_path)
    other = replace(MADE, signature=Signature("hello", "timeout"))
    store.put(other, b"y")
    store.put(MADE, b"x")
    file = tmp_path / f"{MADE.id}.json"
    if damage == "no input":
        store.input(MADE.id).unlink()
    elif damage == "other id":
        data = json.loads(file.read_text())
        file.write_text(json.dumps({**data, "id": "0" * 12}))
    else:
        file.write_text(damage)
    broken = Store(tmp_path)
    assert list(broken.buckets) == [other.id]
    (said,) = broken.broken
    assert f"{MADE.id}.json is no bucket" in said
    with broken.writing():
        assert len(broken.broken) == 1
        broken.put(MADE, b"x")
    assert Store(tmp_path).broken == []


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is not a folder"):
        Store(tmp_path / "file")


def test_two_do_not_write_at_once_and_what_a_killed_one_began_goes(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    (tmp_path / ".x.json.aside").write_text("half")
    with first.writing():
        assert not list(tmp_path.glob(".*.aside"))
        with pytest.raises(StoreError, match="another triage"), second.writing():
            pass
    with second.writing():
        pass


KEEPS_PUTTING = """
import sys
from pathlib import Path
from tests.triage.test_store import MADE
from triage.store import Store
store = Store(Path(sys.argv[1]))
with store.writing():
    print("ready", flush=True)
    for number in range(10**9):
        store.put(MADE.seen(str(number), MADE.first_seen), bytes(number % 7))
"""


def test_a_store_whose_writer_was_killed_is_whole(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-B", "-c", KEEPS_PUTTING, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        while not (tmp_path / f"{MADE.id}.json").exists():
            pass
        os.kill(child.pid, signal.SIGKILL)
    store = Store(tmp_path)
    with store.writing():
        made = store.buckets[MADE.id]
        assert made.size == len(store.data(made.id))
