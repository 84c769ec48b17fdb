"""Each oracle can fail: a planted fault trips it, and just it.

The harness runs in a process of its own over a planted copy of the tree, with one committed input
and every oracle on. What it must report is in the catalogue.

The pool's faults are many, and each costs a process: one of three is planted here, and all of them
in the nightly run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Refusal
from harnesses import outcomes
from harnesses.oracles import (
    ORACLES,
    Broken,
    check_alert,
    check_memory,
    check_work,
    one_in,
    records,
)
from mutants import plants
from mutants.plants import Plant
from tests.tools import PATIENCE

# Runs one harness over one input, and prints what it reports.
DRIVER = """
import importlib, sys
from harnesses.oracles import Broken
name, file = sys.argv[1:]
harness = importlib.import_module("harnesses." + name)
try:
    print(harness.run(open(file, "rb").read(), thorough=True))
except Broken as broken:
    print("broken", broken.oracle)
"""


def witnesses() -> Iterator[tuple[Plant, str, str, str]]:
    for plant in plants.load_all():
        for harness, oracle, file in plants.oracle_witnesses(plant):
            yield plant, harness, oracle, file


LONG = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def planted_here() -> list[tuple[Plant, str, str, str]]:
    """The oracles' own faults, and every third of the pool's or, at night, all."""
    found = list(witnesses())
    pool = [one for one in found if one[0].name.startswith("pool-")]
    rest = [one for one in found if one not in pool]
    # The first fault that each oracle sees in the pool is always among them.
    first = {one[2]: one for one in reversed(pool)}.values()
    return rest + [one for place, one in enumerate(pool) if LONG or place % 3 == 0 or one in first]


def drive(tree: Path, harness: str, file: str) -> str:
    done = subprocess.run(
        [sys.executable, "-B", "-c", DRIVER, harness, str(outcomes.folder(harness) / file)],
        cwd=tree,
        env={"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("plant", "harness", "oracle", "file"),
    [pytest.param(*found, id=f"{found[0].name}-{found[1]}") for found in planted_here()],
)
def test_a_planted_fault_trips_its_oracle(
    plant: Plant, harness: str, oracle: str, file: str, tmp_path: Path
) -> None:
    tree = plants.apply(plant, tmp_path)
    assert drive(tree, harness, file) == f"broken {oracle}"


def test_every_oracle_has_a_plant() -> None:
    assert {oracle for _, _, oracle, _ in witnesses()} == set(ORACLES)


def test_a_tree_without_a_fault_trips_none(tmp_path: Path) -> None:
    tree = plants.copy(tmp_path)
    assert drive(tree, "hello", "handmade-plain").startswith("waiting ")


# The oracles that are plain functions.


def test_one_input_in_a_share_is_looked_at_and_always_the_same() -> None:
    picked = [n for n in range(4_000) if one_in(8, n.to_bytes(2))]
    assert 400 < len(picked) < 600
    assert picked == [n for n in range(4_000) if one_in(8, n.to_bytes(2))]


def test_output_that_ends_inside_a_record_is_broken() -> None:
    assert records(b"\x15\3\3\0\2\2\x28" * 2) == [b"\x15\3\3\0\2\2\x28"] * 2
    with pytest.raises(Broken, match="inside a record"):
        records(b"\x15\3\3\0\2\2")


ALERT = b"\x15\3\3\0\2\2"
SEALED = b"\x17\3\3\0\x13" + bytes(19)


@pytest.mark.parametrize(
    ("output", "refusal", "closing"),
    [
        (b"", Refusal.PEER_CLOSED, False),
        (ALERT + b"\x0a", Refusal.UNEXPECTED_MESSAGE, False),
        (SEALED, Refusal.UNEXPECTED_MESSAGE, False),
        (SEALED, Refusal.UNEXPECTED_MESSAGE, True),
    ],
)
def test_the_refusals_alert_is_right(output: bytes, refusal: Refusal, closing: bool) -> None:
    check_alert(output, refusal, closing)


@pytest.mark.parametrize(
    ("output", "refusal", "closing"),
    [
        (b"", Refusal.UNEXPECTED_MESSAGE, False),
        (ALERT + b"\x32", Refusal.UNEXPECTED_MESSAGE, False),
        (ALERT + b"\x0a", Refusal.PEER_CLOSED, False),
        (ALERT + b"\x0a" + ALERT + b"\x0a", Refusal.UNEXPECTED_MESSAGE, False),
        (SEALED + ALERT + b"\x0a", Refusal.UNEXPECTED_MESSAGE, False),
        (ALERT + b"\x0a", Refusal.UNEXPECTED_MESSAGE, True),
        (b"\x17\3\3\0\x14" + bytes(20), Refusal.UNEXPECTED_MESSAGE, False),
    ],
)
def test_any_other_is_broken(output: bytes, refusal: Refusal, closing: bool) -> None:
    with pytest.raises(Broken, match="alert"):
        check_alert(output, refusal, closing)


def test_work_is_counted_in_lines_of_the_engine_alone() -> None:
    check_work(lambda: sum(n for n in range(1_000)), 0)
    with pytest.raises(Broken, match="work"):
        check_work(lambda: Refusal.ALERT.tag, 0)


@pytest.mark.parametrize("others", [False, True])
def test_memory_is_what_is_allocated_and_what_is_kept(others: bool) -> None:
    """Whether or not somebody else (PYTHONTRACEMALLOC) measures in the same process."""
    if others:
        tracemalloc.start()
    try:
        held = bytes(200_000)
        check_memory(lambda: bytes(50_000) and None, 60_000)
        with pytest.raises(Broken, match="a peak of"):
            check_memory(lambda: bytes(70_000) and None, 60_000)
        kept: list[bytes] = []
        with pytest.raises(Broken, match="are kept"):
            check_memory(lambda: kept.append(bytes(50_000)), 60_000)
        assert tracemalloc.is_tracing() is others and held
    finally:
        tracemalloc.stop()
