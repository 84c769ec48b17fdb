"""Changes that take something from an engine and try to be let through the gate: each is red.

The changes, and the small tree that they change, are in tests/mutants/attempts.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.commands import gate
from ci.exits import Untrusted
from ci.gate import diff, judges, report
from ci.gate.stages import Gate
from ci.mutation.evaluation import Settings
from ci.process import ROOT, Stop
from tests.mutants.attempts import ATTEMPTS, ENGINE, FILES, HONEST, TEST, add, swap
from tests.tools import git


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, with a first commit."""
    root = tmp_path_factory.mktemp("start")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    code = shutil.ignore_patterns("__pycache__", "catalogue", "*.toml")
    shutil.copytree(ROOT / "mutants", root / "mutants", ignore=code, dirs_exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "start")
    git(root, "checkout", "-q", "-b", "topic")
    return root


@pytest.fixture
def repo(start: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(start, tmp_path / "repo")


# The stages in which a rule can be broken.
STAGES = {
    "survivor": {"mutants"},
    "unmutable": {"parts", "mutants"},
    "unseen": {"parts"},
    "tests": {"tests", "mutants"},
    "lost": {"tests"},
    "decision": {"catalogue"},
    "outside": {"reading"},
    "judge": {"reading", "parts", "mutants"},
}


class Some(Gate):
    """A gate that leaves out the stages which an attempt is not about: each takes seconds."""

    only: set[str] | None = None

    def stage(self, name: str, work: Callable[[], str]) -> None:
        if self.only is None or name in self.only:
            super().stage(name, work)


def judged(root: Path, folder: Path, only: set[str] | None = None) -> report.GateReport:
    """What the gate's stages that ask the tests say of the change."""
    change = diff.since("main", root)
    told = report.GateReport("main", change.base, judges.touched(change))
    with Stop() as stop:
        given = Some(change, Settings({}, (), {}), folder, 2, stop, told, root)
        given.only = only
        gate.judge(given)
    return told


def test_every_mutant_of_the_tree_dies(repo: Path, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "--orphan", "empty")
    git(repo, "rm", "-q", "--cached", ENGINE)
    git(repo, "commit", "-q", "-m", "without it")
    git(repo, "branch", "-qf", "main")
    told = judged(repo, tmp_path / "run")
    assert {finding.rule for finding in told.findings} <= {"unseen"}, report.text(told)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_it_is_not_talked_round(name: str, repo: Path, tmp_path: Path) -> None:
    edits, rule, message = ATTEMPTS[name]
    for edit in edits:
        edit(repo)
    only = set.union(*(STAGES[one] for one in rule.split("|")))
    told = judged(repo, tmp_path / "run", only)
    found = [(finding.rule, finding.message) for finding in told.findings]
    assert any(re.fullmatch(rule, r) and re.search(message, m) for r, m in found), report.text(told)


# -- honest changes ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_change_is_green(name: str, repo: Path, tmp_path: Path) -> None:
    for edit in HONEST[name]:
        edit(repo)
    told = judged(repo, tmp_path / "run")
    assert told.findings == [] and told.untrusted == [], report.text(told)


# -- the command ------------------------------------------------------------------------------

HARNESS = '''"""A harness whose outcome says whether an input is the secret."""

from engine.door import Door

MAX_LEN = 4


def run(data, thorough=False):
    return "passes" if Door(b"a").passes(data) else "fails"
'''
# A gate that finds nothing, whatever there is.
MILD = """

def run(args):
    from pathlib import Path

    Path(args.out).mkdir(parents=True)
    Path(args.out, "gate.json").write_text('{"findings": [], "untrusted": []}')
    return 0
"""


@pytest.fixture
def whole(repo: Path) -> Path:
    """The tree with a command of its own: this one."""
    for folder in ("ci", "triage"):
        code = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, repo / folder, ignore=code)
    # What the command imports of the engine is there too, and is none of this.
    for file in (ROOT / "engine").rglob("*.py"):
        there = repo / file.relative_to(ROOT)
        if not there.exists():
            there.parent.mkdir(exist_ok=True)
            shutil.copy2(file, there)
    (repo / "harnesses").mkdir()
    for file in (ROOT / "harnesses").glob("*.py"):
        shutil.copy2(file, repo / "harnesses")
    (repo / "harnesses" / "__init__.py").write_text('HARNESSES = ("door",)\n')
    (repo / "harnesses" / "door.py").write_text(HARNESS)
    git(repo, "checkout", "-q", "main")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "a command")
    git(repo, "branch", "-qf", "topic")
    git(repo, "checkout", "-q", "topic")
    return repo


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """`residue gate` from a folder; its code and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "ci", "gate", "--since", "main", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_gate_that_was_there_before_judges_a_change_of_the_gate(whole: Path) -> None:
    swap(
        "ci/gate/run.py",
        "    def add_finding(\n        self, ",
        "    def add_finding(self, *_: object) -> None:\n"
        "        return\n\n    def of_old(\n        self, ",
    )(whole)
    swap(TEST, 'assert state("open", 2) is False', "pass")(whole)
    code, said = run(whole)
    assert code == 1, said
    assert "the change touches what judges it: M ci/gate/run.py" in said
    assert "the merge base's gate: state, swap_op: only tests/engine/test_door.py" in said


def test_a_checkout_is_judged_from_another_whatever_its_own_gate_says(whole: Path) -> None:
    add("ci/commands/gate.py", MILD)(whole)
    swap(TEST, 'assert state("open", 2) is False', "pass")(whole)
    code, said = run(whole, "--out", str(whole / "build" / "mild"))
    assert code == 0, said
    out = whole / "build" / "judged"
    code, said = run(ROOT, "--tree", str(whole), "--out", str(out))
    assert code == 1, said
    assert "the change touches what judges it: M ci/commands/gate.py" in said
    assert "the merge base's gate: state, swap_op: only tests/engine/test_door.py" in said
    assert "the change's own gate: 0 red" in said


def test_a_merge_base_without_a_gate_judges_nothing(repo: Path, tmp_path: Path) -> None:
    add("ci/__main__.py", "")(repo)
    change = diff.since("main", repo)
    with pytest.raises(Untrusted, match="the merge base has no gate"):
        judges.tree(change, tmp_path / "tree", repo)
