"""Rows of setup.cfg that say nothing, or what they cannot mean, are refused before a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ci.exits import UsageError
from ci.mutation import evaluation
from ci.process import ROOT

TEXT = (ROOT / "setup.cfg").read_text(encoding="utf-8")
ROW = "    engine/hardware.py = test_hardware\n"

WRONG: dict[str, tuple[Callable[[str], str], str]] = {
    "no threshold": (lambda t: t.replace("\ncrashed = 0\n", "\n"), "has no crashed"),
    "none of its words": (lambda t: t.replace("survivors = 0", "survivors = few"), "no number"),
    "not a number": (lambda t: t.replace("survivors = 0", "survivors = nan"), "no number"),
    "without an end": (lambda t: t.replace("survivors = 0", "survivors = inf"), "no number"),
    "below nothing": (lambda t: t.replace("crashed = 0", "crashed = -1"), "no number from 0"),
    "more than all": (lambda t: t.replace("percent = 3", "percent = 300"), "from 0 to 100"),
    "no time": (lambda t: t.replace("fuzz_seconds = 30", "fuzz_seconds = 0"), "from 1"),
    "an unknown one": (
        lambda t: t.replace("crashed = 0", "crashed = 0\ncrash = 5"),
        "unknown crash",
    ),
    "one twice": (lambda t: t.replace("crashed = 0", "crashed = 0\ncrashed = 5"), "cannot be read"),
    "an unknown table": (lambda t: t.replace("leave_out =", "more =\nleave_out ="), "unknown more"),
    "no section": (lambda t: t.replace("[gate]", "[gates]"), "has no section [gate]"),
    "a file without a test": (
        lambda t: t.replace(ROW, "    engine/hardware.py =\n"),
        "has no test",
    ),
    "a file twice": (lambda t: t.replace(ROW, ROW * 2), "is there twice"),
    "a file of nothing": (
        lambda t: t.replace(ROW, "    engine/hardwar.py = test_hardware\n"),
        "engine/hardwar.py",
    ),
    "a test of nothing": (
        lambda t: t.replace("= test_hardware", "= test_hardwar"),
        "test_hardwar.py",
    ),
    "a test left out that is in no file": (
        lambda t: t.replace("leave_out =", "leave_out =\n    tests/engine/test_no.py::test_a"),
        "there is no test",
    ),
    "a test left out that its file has not": (
        lambda t: t.replace("leave_out =", "leave_out =\n    tests/engine/test_drbg.py::test_no"),
        "there is no test",
    ),
    "a file left out": (
        lambda t: t.replace("leave_out =", "leave_out =\n    tests/engine/test_hardware.py"),
        "there is no test",
    ),
}


def read(folder: Path, text: str) -> evaluation.Settings:
    for name in ("engine", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "setup.cfg").write_text(text, encoding="utf-8")
    return evaluation.read_settings(folder / "setup.cfg")


def test_the_committed_settings_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).tests["engine/hardware.py"] == ("tests/engine/test_hardware.py",)


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_meant_is_refused(what: str, tmp_path: Path) -> None:
    change, says = WRONG[what]
    changed = change(TEXT)
    assert changed != TEXT
    with pytest.raises(UsageError) as refused:
        read(tmp_path, changed)
    assert says in str(refused.value) and "\n" not in str(refused.value)
