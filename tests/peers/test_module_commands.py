"""The commands that are modules, for who works on the project: their help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("peers.recorder.record", "peers.recorder.refusals", "harnesses.seeds")


@pytest.mark.parametrize("name", MODULES)
def test_its_help_has_an_example_its_exit_codes_and_no_wide_line(name: str) -> None:
    """And does nothing else: the last of them takes no option and writes files."""
    before = (ROOT / "corpus" / "provenance.tsv").stat().st_mtime_ns
    done = subprocess.run(
        [sys.executable, "-m", name, "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert f"\n    python -m {name}" in done.stdout
    assert all(f"{code} " in done.stdout.partition("Exit codes: ")[2] for code in (0, 2))
    assert (ROOT / "corpus" / "provenance.tsv").stat().st_mtime_ns == before
