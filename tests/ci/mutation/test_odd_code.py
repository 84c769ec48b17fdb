"""Code that gets no mutants is listed whatever it looks like; a mutant leaves nothing running."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from ci.command import main
from ci.exits import Exit
from ci.mutation import evaluation
from ci.mutation.evaluation import Asked, Judged
from ci.process import Stop
from mutants import survey
from mutants.verdicts import Verdict
from tests.mutants.small_tree import SETTINGS, make

TEST = "tests/engine/test_tiny.py"


def judge(folder: Path, engine: str, tests: str, after: str = "") -> Judged:
    """The mutants of an engine, or those whose lines are these."""
    root = make(folder / "tree")
    (root / "engine" / "tiny.py").write_text(engine)
    (root / TEST).write_text(tests)
    made = survey.mutate("engine/tiny.py", engine)[1]
    names = frozenset(mutant.name for mutant in made if after in ("", mutant.after))
    with Stop() as stop:
        asked = Asked("engine/tiny.py", folder / "run", 2, names=names, root=root)
        return evaluation.evaluate(asked, SETTINGS, stop, lambda *_: None)


# -- what gets no mutants ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def hidden(x):\n    return x < 3  # pragma: no mutate\n", 2),
        ("def hidden(x):  # pragma: no mutate: function\n    return x < 3\n", 1),
        ("def hidden(x):  # pragma: no mutate: block\n    y = x < 3\n    return y\n", 1),
        ("def hidden(x):\n    # pragma: no mutate block\n    y = x < 3\n    return y\n", 2),
        (
            "def hidden(x):\n    # pragma: no mutate start\n    y = x < 3\n"
            "    # pragma: no mutate end\n    return y\n",
            2,
        ),
        (
            "class hidden:  # pragma: no mutate class\n    def f(self, x):\n        return x < 3\n",
            1,
        ),
    ],
)
def test_a_comment_that_asks_for_no_mutants_is_not_obeyed_and_is_listed(
    source: str, line: int
) -> None:
    made = survey.mutate("engine/a.py", source)[1]
    assert any("<=" in mutant.after for mutant in made)
    (told, *_) = [place for place in survey.unmutable(source).places if "pragma" in place[0]]
    assert told == ("hidden: `pragma: no mutate`, which is not obeyed", line, 0)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("def f(x, most=2 < 3):\n    return x\n", ("f: default arguments 2 < 3", 1, 1)),
        ("def f(*, g=lambda: 1):\n    return g\n", ("f: default arguments lambda: 1", 1, 1)),
        (
            "if True:\n    def f(x):\n        return x\n",
            ("f: under a statement of the module", 2, 2),
        ),
        (
            "try:\n    A = 1\nexcept ValueError:\n    def f(x):\n        return x\n",
            ("f: under a statement of the module", 4, 2),
        ),
        (
            "class A:\n    if True:\n        def f(self):\n            return 1\n",
            ("A.f: under a statement of its class", 3, 2),
        ),
        (
            "class A:\n    class B:\n        def f(self):\n            return 1\n",
            ("A.B.f: under a statement of its class", 3, 2),
        ),
        (
            "class A(Enum):\n    def __init__(self):\n        self.x = 1\n",
            ("A.__init__: mutmut leaves it out", 2, 2),
        ),
        ("@cache\ndef f(x):\n    return x\n", ("f: decorated with cache", 2, 2)),
    ],
)
def test_what_mutants_cannot_reach_is_listed_with_its_statements(
    source: str, place: tuple[str, int, int]
) -> None:
    assert survey.mutate("engine/a.py", source)[1] == [] or "default" in place[0]
    found = survey.unmutable(source)
    assert place in found.places and found.count <= found.statements


def test_a_default_that_is_a_name_or_a_constant_is_mutated_and_not_listed() -> None:
    source = "def f(x, most=3):\n    return x\n"
    assert any("most=4" in mutant.after for mutant in survey.mutate("engine/a.py", source)[1])
    assert survey.unmutable(source).places == []


# -- processes --------------------------------------------------------------------------------

STARTS = """import os


def careful(ok, path):
    if not ok:
        if not os.fork():
            os.setsid()
            if not os.fork():
                open(path + ".new", "w").write(str(os.getpid()))
                os.rename(path + ".new", path)
                while True:
                    os.read(os.pipe()[0], 1)
            os._exit(0)
        while not os.path.exists(path):
            pass
        {last}
    return ok
"""


@pytest.mark.parametrize("last", ["pass", "os.abort()", "os.kill(os.getpid(), 9)"])
def test_nothing_that_a_mutant_starts_outlives_it(last: str, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    tests = (
        "from engine.tiny import careful\n\n\n"
        f"def test_it():\n    assert careful(True, {str(path)!r})\n"
    )
    judge(tmp_path, STARTS.format(last=last), tests, "if True:")
    pid = int(path.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_mutant_is_there_in_a_process_that_a_test_starts(tmp_path: Path) -> None:
    tests = (
        "import subprocess\nimport sys\n\nfrom engine.tiny import less\n\n\n"
        "def test_here():\n    assert less(1)\n\n\n"
        "def test_there():\n"
        "    code = 'from engine.tiny import less; print(less(2), less(3))'\n"
        "    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "    assert done.stdout.split() == ['True', 'False']\n"
    )
    judged = judge(tmp_path, "def less(x):\n    return x < 3\n", tests)
    assert {row.verdict for row in judged.report.results} == {Verdict.KILLED}
    (edge,) = [row for row in judged.report.results if "<=" in row.mutant.after]
    assert edge.by == f"{TEST}::test_there"


# -- what it needs ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["mutate"], ["gate", "--since", "HEAD"]])
def test_a_missing_extra_is_said_in_a_line(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(command) == Exit.UNTRUSTED
    said = capsys.readouterr().err
    assert said == "residue: mutmut is not installed: pip install -e '.[mutation]'\n"
