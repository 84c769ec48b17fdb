"""Every public name has a docstring, and one that raises says what."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Engine
from tests.docs.test_engine import CALLS, RAISES

ROOT = Path(__file__).parents[2]
FOLDERS = ("engine", "harnesses", "peers", "servers")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
Definition = ast.FunctionDef | ast.ClassDef


def definitions(
    tree: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, Definition]]:
    """What a module or a class defines, and what its classes do: not what is inside a function."""
    for node in tree.body:
        if isinstance(node, Definition):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, f"{prefix}{node.name}.")


def public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def without(source: str) -> list[str]:
    """The public names that say nothing of themselves, the module's own first."""
    tree = ast.parse(source)
    missing = ["the module"] if tree.body and not ast.get_docstring(tree) else []
    found = definitions(tree)
    return missing + [name for name, node in found if public(name) and not ast.get_docstring(node)]


def unsaid(source: str) -> list[str]:
    """Each public function and each exception that it raises and does not name.

    What the private functions that it calls in its module raise counts as its own; what it calls
    elsewhere does not, nor does what it raises where it is caught.
    """
    tree = ast.parse(source)
    named = {name.rpartition(".")[2]: node for name, node in definitions(tree) if not public(name)}

    def raised(node: ast.AST, seen: frozenset[str]) -> set[str]:
        found: set[str] = set()
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.Raise) and part.exc is not None:
                kind = part.exc.func if isinstance(part.exc, ast.Call) else part.exc
                found.add(ast.unparse(kind).rpartition(".")[2])
            if isinstance(part, ast.Call):
                called = ast.unparse(part.func).removeprefix("self.")
                if called in named and called not in seen:
                    found |= raised(named[called], seen | {called})
            if not isinstance(part, ast.Try) or not part.handlers:
                found |= raised(part, seen)
        return found

    missing = []
    for name, node in definitions(tree):
        if public(name) and isinstance(node, ast.FunctionDef):
            said = ast.get_docstring(node) or ""
            missing += [
                f"{name}: {kind}" for kind in sorted(raised(node, frozenset())) if kind not in said
            ]
    return missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(path: Path) -> None:
    assert without(path.read_text()) == []


def test_a_name_without_one_would_be_seen() -> None:
    source = "class A:\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    def e(): ...\n"
    assert without(source) == ["the module", "A", "A.b", "d"]


@pytest.mark.parametrize(
    "path", [path for path in FILES if "engine" in path.parts], ids=lambda path: path.name
)
def test_what_the_engine_raises_is_in_its_docstrings(path: Path) -> None:
    assert unsaid(path.read_text()) == []


def test_what_is_not_said_would_be_seen() -> None:
    source = (
        'def a():\n    """Raises KeyError."""\n    raise KeyError\n'
        'def b():\n    """Nothing."""\n    _c()\n'
        "def _c():\n    if 1:\n        raise ValueError(1)\n    try:\n        raise OSError\n"
        "    except OSError:\n        pass\n"
    )
    assert unsaid(source) == ["b: ValueError"]


@pytest.mark.parametrize("call", RAISES)
def test_a_call_of_the_engine_names_what_the_manual_names(call: str) -> None:
    said = getattr(Engine, call).__doc__
    assert [what for what, _ in RAISES[call] if what.partition("(")[0] not in said] == []
    tags = [what[len("Refused(") : -1] for what, _ in RAISES[call] if what.startswith("Refused(")]
    # A row of tags has the first whole, and of the others what they do not share with it.
    assert [tag for tag in tags if f"`{tag}`" not in said and f"`{tag[10:]}`" not in said] == []


def test_a_call_that_raises_nothing_of_its_own_needs_no_row() -> None:
    assert set(RAISES) < set(CALLS)
