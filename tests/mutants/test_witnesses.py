"""Every test that the catalogue names as a witness is there, so that no entry waits for nobody."""

from __future__ import annotations

import ast
from functools import cache

from mutants import plants, settings


@cache
def nodes_of(file: str) -> frozenset[str]:
    """The node ids of a test file, without parameters; those of its classes too."""
    path = settings.ROOT / file
    if not path.is_file():
        return frozenset()
    found = {file}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(f"{file}::{node.name}")
        elif isinstance(node, ast.ClassDef):
            found.add(f"{file}::{node.name}")
            names = (inner.name for inner in node.body if isinstance(inner, ast.FunctionDef))
            found.update(f"{file}::{node.name}::{name}" for name in names)
        elif isinstance(node, ast.Assign):
            # A state machine's TestCase is assigned to a name.
            names = (target.id for target in node.targets if isinstance(target, ast.Name))
            found.update(f"{file}::{name}" for name in names)
    return frozenset(found)


def test_every_test_that_must_see_an_entry_is_there() -> None:
    missing = []
    for plant in plants.load_all():
        for line in plant.detected_by:
            kind, _, node = line.partition(" ")
            node = node.partition("[")[0].removesuffix("::runTest")
            if kind == "test" and node not in nodes_of(node.partition("::")[0]):
                missing.append(f"{plant.name}: {node}")
    assert missing == []


def test_every_entry_has_a_witness() -> None:
    for plant in plants.load_all():
        assert plant.detected_by, plant.name


def test_the_catalogue_is_not_smaller_than_the_contract_asks() -> None:
    assert len(plants.load_all()) >= 220
