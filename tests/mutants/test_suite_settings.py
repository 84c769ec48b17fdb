"""[suite] of setup.cfg says what is under test, and no module of the suite says it itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesses import HARNESSES
from mutants.settings import ROOT, SUITE, SettingsError, Suite, read

TEXT = (ROOT / "setup.cfg").read_text(encoding="utf-8")
FOLDERS = ("ci", "mutants", "triage")


def section(folder: Path, old: str, new: str) -> Suite:
    """What is read where one text of setup.cfg is another."""
    assert TEXT.count(old) == 1
    (folder / "setup.cfg").write_text(TEXT.replace(old, new), encoding="utf-8")
    return read(folder / "setup.cfg")


def test_everything_that_is_named_is_there() -> None:
    for name in (SUITE.tests, SUITE.corpus, SUITE.catalogue, *SUITE.planted, *SUITE.read):
        assert (ROOT / name).is_dir(), name
    example = f"{SUITE.corpus}/{HARNESSES[0]}/{SUITE.small_input}"
    for name in (SUITE.ledger, SUITE.state_machine, SUITE.small_file, *SUITE.mutated, example):
        assert (ROOT / name).is_file(), name
    for name in (SUITE.refusal_probe, SUITE.refusal_matrix):
        assert (ROOT / name.replace(".", "/")).with_suffix(".py").is_file(), name
    assert set(SUITE.weights) <= set(HARNESSES)
    assert all(map(SUITE.has, SUITE.mutated)) and not SUITE.has("engineer/x.py")


def test_another_project_has_other_names(tmp_path: Path) -> None:
    assert section(tmp_path, "\npackage = engine\n", "\npackage = motor\n").package == "motor"
    assert section(tmp_path, "\nbeside = peers\n", "\nbeside =\n").planted == (
        "engine",
        "harnesses",
    )
    made = section(tmp_path, "\nweights = server=4\n", "\nweights = a=2 b=0.5\n")
    assert made.weights == {"a": 2.0, "b": 0.5}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\npackage = engine\n", "\n", r"\[suite\] has no package"),
        ("\nfloor_edges = 100\n", "\nfloor_edges = 100\nfloor = 1\n", "an unknown floor"),
        ("\nfloor_edges = 100\n", "\nfloor_edges = many\n", "floor_edges: 'many'"),
        ("\nfloor_lines = 50\n", "\nfloor_lines = nan\n", "floor_lines: 'nan'"),
        ("\nfloor_lines = 50\n", "\nfloor_lines = -1\n", "floor_lines: '-1'"),
        ("\nweights = server=4\n", "\nweights = server\n", "weights: 'server'"),
        ("\n[suite]\n", "\n[sweet]\n", r"no section \[suite\]"),
        ("\n[suite]\n", "\n[suite\n", "cannot be read"),
    ],
    ids=["missing", "unknown", "no number", "nan", "negative", "no weight", "none", "not a file"],
)
def test_a_section_that_cannot_be_meant_is_refused(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=said):
        section(tmp_path, old, new)


def names_in(source: str) -> Iterator[str]:
    """Where code names what is under test: an import, a string, an attribute.

    In a sentence a word may be the word that it is: there only the package's name counts. A text
    that is no sentence is a name or a path, and then so is each of its parts.
    """
    tree = ast.parse(source)
    words = {SUITE.package, *HARNESSES}
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        found: set[str] = set()
        if isinstance(node, ast.Import):
            found = {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom):
            # What a module of the suite itself is called is its own affair.
            outside = not (node.module or "").startswith(tuple(f"{name}." for name in FOLDERS))
            inside = {alias.name for alias in node.names} if outside else set()
            found = {*(node.module or "").split("."), *inside} if outside else set()
        elif isinstance(node, ast.Constant) and id(node) not in prose:
            if isinstance(node.value, str | bytes):
                value = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                parts = set(re.findall(r"[A-Za-z0-9_]+", value))
                found = parts & {SUITE.package} if " " in value.strip() else parts
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            found = {name} & {SUITE.package}
        for name in sorted(found & words):
            yield f"line {getattr(node, 'lineno', 0)}: {name}"


@pytest.mark.parametrize(
    "path",
    [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_module_of_the_suite_names_what_it_tests(path: Path) -> None:
    assert list(names_in(path.read_text(encoding="utf-8"))) == []


def test_a_name_is_found_wherever_code_can_have_it() -> None:
    for bad in (
        "import engine.pool",
        "from engine import Refusal",
        "from harnesses import hello",
        "from harnesses.hello import run",
        "FOLDER = 'engine/'",
        "x = f'{root}/engine'",
        "say('so the engine was not instrumented')",
        "name == 'hello'",
        "open(b'corpus/hello/x')",
        "root.glob('engine/*.py')",
        "change.engine",
        "engine = 1",
    ):
        assert list(names_in(bad)), bad
    for good in (
        '"""The engine, as a docstring may call it."""',
        "from ci.cluster import server",
        "from harnesses import HARNESSES",
        "say('a server that says nothing for S s')",
        "engineer = pool",
    ):
        assert list(names_in(good)) == [], good
