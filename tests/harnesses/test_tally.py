"""How often each oracle looked, counted where a killed process leaves it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnesses import HARNESSES, outcomes, play, run, tally
from harnesses.formats.server import Script
from harnesses.oracles import ORACLES, looked
from harnesses.tally import Tally
from mutants import plants
from tests.tools import PATIENCE


def test_what_was_counted_is_there_when_the_process_was_killed(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom harnesses.tally import Tally\n"
        "seen = Tally(['one', 'two', 'three'])\nseen.into(Path(sys.argv[1]))\n"
        "seen('one', 'three')\nseen('three')\nos.kill(os.getpid(), 9)"
    )
    for times in (1, 2):
        argv = [sys.executable, "-c", script, str(tmp_path / "looked")]
        assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
        assert tally.read(tmp_path / "looked") == {"one": times, "two": 0, "three": 2 * times}


def test_what_no_process_came_to_count_is_none(tmp_path: Path) -> None:
    assert tally.read(tmp_path / "looked") == {}
    Tally(["one"]).into(tmp_path / "looked")
    assert tally.read(tmp_path / "looked") == {"one": 0}


def test_the_first_inputs_of_a_process_are_left_to_no_sample() -> None:
    asked: list[bool] = []

    def harness(data: bytes, thorough: bool = False) -> str:
        asked.append(thorough)
        return ""

    looking = run.thorough_at_first(harness)
    for data in [b"", *[b"x"] * (run.FIRST + 3)]:
        looking(data)
    assert asked == [False, *[True] * run.FIRST, *[False] * 3]


WITNESSES = {
    (harness, oracle): file
    for plant in plants.load_all()
    for harness, oracle, file in plants.oracle_witnesses(plant)
}


@pytest.mark.parametrize(("harness", "oracle"), WITNESSES)
def test_an_oracle_that_looks_says_so(harness: str, oracle: str) -> None:
    """On the input that shows its planted fault, or on one that ends well: a right engine may
    refuse the first before there is anything to prove."""
    before = looked[oracle]
    table = outcomes.read(harness)
    well = next((file for file in table if table[file].outcome.startswith("established")), None)
    for file in filter(None, (WITNESSES[harness, oracle], well)):
        data = (outcomes.folder(harness) / file).read_bytes()
        importlib.import_module(f"harnesses.{harness}").run(data, thorough=True)
    assert looked[oracle] > before


def test_an_oracle_that_is_taken_out_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "check_memory", lambda function, ceiling: None)
    before = {oracle: looked[oracle] for oracle in ORACLES}
    play.judge(Script(0, []), b"", thorough=True)
    assert looked["memory"] == before["memory"] and looked["work"] > before["work"]


def test_a_fuzzer_counts_in_the_file_that_it_is_given(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="the fuzzer is an extra")
    (tmp_path / "out").mkdir()
    argv = ["hello", "-runs=40", "-max_total_time=60", "out", str(outcomes.folder("hello"))]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "harnesses.run", *argv],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(outcomes.ROOT),
            "RESIDUE_LOOKED": str(tmp_path / "looked"),
            "PYTHONTRACEMALLOC": "1",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = tally.read(tmp_path / "looked")
    assert counts["repeat"] >= 40 and counts["memory"] >= run.FIRST and counts["work"] >= run.FIRST


def test_the_committed_inputs_show_themselves_to_every_oracle() -> None:
    """As a fuzzer runs them, so that no short run is without one: the first left to no sample."""
    before = {oracle: looked[oracle] for oracle in ORACLES}
    for name in HARNESSES:
        harness = run.thorough_at_first(importlib.import_module(f"harnesses.{name}").run)
        for file in sorted(outcomes.inputs(name), key=lambda file: file.stat().st_size):
            harness(file.read_bytes())
    assert [oracle for oracle in ORACLES if looked[oracle] == before[oracle]] == []
