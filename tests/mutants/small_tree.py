"""A small checkout with an engine of one file, for tests of what runs mutants of a real one."""

from __future__ import annotations

import shutil
from pathlib import Path

from ci.mutation.evaluation import Settings
from mutants.settings import ROOT
from tests.tools import suite_section

ENGINE = '''"""An engine of one file, in which every verdict can be had."""

import os

TABLE = {"seven": 7}


def double(x):
    return x + x


def slack(x):
    return x > 3


def count_down(n):
    while n > 0:
        n -= 1
    return n


def guarded(ok):
    if not ok:
        os.abort()
    return ok


def nobody_runs():
    return 1
'''

TESTS = '''"""Tests that are quick, and leave something."""

from engine.tiny import TABLE, count_down, double, guarded, slack


def test_double():
    assert double(3) == 6


def test_slack():
    assert slack(5) is True
    assert slack(1) is False


def test_count_down():
    assert count_down(2) == 0


def test_guarded():
    assert guarded(True) is True


def test_table():
    assert TABLE["seven"] == 7
'''

HARNESS = '''"""A harness whose outcome says how long its input is."""

from engine.tiny import double, slack

MAX_LEN = 64


def run(data, thorough=False):
    return f"waiting suite={double(len(data))} verdict={slack(len(data))}"
'''

# Of Hypothesis nothing is needed here, and its plugin would import all of it in each run.
SETUP = f"""{suite_section()}
[tool:pytest]
addopts = --import-mode=importlib -p no:hypothesispytest
pythonpath = .

[mutmut]
source_paths =
    engine
use_git_change_detection = false
"""

SETTINGS = Settings({"engine/tiny.py": ("tests/engine/test_tiny.py",)}, (), {})


def make(root: Path) -> Path:
    """The tree; `mutants` is ours, and so is what reads outcomes."""
    files = {
        "engine/__init__.py": "",
        "engine/tiny.py": ENGINE,
        "tests/engine/test_tiny.py": TESTS,
        "harnesses/__init__.py": 'HARNESSES = ("tiny",)\n',
        "harnesses/tiny.py": HARNESS,
        "setup.cfg": SETUP,
        "pyproject.toml": "",
        "corpus/tiny/empty": "",
        "corpus/tiny/long": "0123456789",
        "corpus/tiny.outcomes": (
            "empty\twaiting suite=0 verdict=False\nlong\twaiting suite=20 verdict=True\n"
        ),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    shutil.copy2(ROOT / "harnesses" / "outcomes.py", root / "harnesses" / "outcomes.py")
    (root / "mutants").symlink_to(ROOT / "mutants")
    return root
