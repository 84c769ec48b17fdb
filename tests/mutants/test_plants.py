"""The catalogue of planted faults: whole, not stale, and applied to a copy alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesses import HARNESSES, outcomes
from mutants import plants
from mutants.plants import Plant, PlantError

WHOLE = """
[[plant]]
name = "one"
file = "engine/a.py"
text = "x = 1\\n"
replacement = "x = 2\\n"
rule = "SPEC 1"
detected_by = ["oracle hello raised some"]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "engine" / "__pycache__").mkdir(parents=True)
    (tmp_path / "tree" / "engine" / "a.py").write_text("x = 1\ny = 1\n")
    (tmp_path / "tree" / "engine" / "__pycache__" / "a.pyc").write_text("old")
    return tmp_path / "tree"


def plant(**changes: str) -> Plant:
    fields = {
        "name": "one",
        "file": "engine/a.py",
        "text": "x = 1\n",
        "replacement": "x = 2\n",
        "rule": "SPEC 1",
    } | changes
    return Plant(**fields, detected_by=())


@pytest.mark.parametrize("entry", plants.load_all(), ids=lambda entry: entry.name)
def test_no_entry_is_stale(entry: Plant) -> None:
    compile(plants.planted(entry), entry.file, "exec")


@pytest.mark.parametrize("entry", plants.load_all(), ids=lambda entry: entry.name)
def test_what_must_see_an_entry_is_there(entry: Plant) -> None:
    for harness, _, file in plants.oracle_witnesses(entry):
        assert harness in HARNESSES
        assert (outcomes.folder(harness) / file).is_file()


def test_a_fault_is_planted_in_the_copy_and_nowhere_else(tree: Path, tmp_path: Path) -> None:
    copy = plants.apply(plant(), tmp_path / "copy", root=tree, folders=["engine"])
    assert (copy / "engine" / "a.py").read_text() == "x = 2\ny = 1\n"
    assert (tree / "engine" / "a.py").read_text() == "x = 1\ny = 1\n"


def test_bytecode_is_not_copied(tree: Path, tmp_path: Path) -> None:
    copy = plants.apply(plant(), tmp_path / "copy", root=tree, folders=["engine"])
    assert not (copy / "engine" / "__pycache__").exists()


@pytest.mark.parametrize(
    ("text", "told"), [("z", "occurs 0 times"), ("= 1", "occurs 2 times"), ("y", "changes nothing")]
)
def test_a_text_that_is_not_there_just_once_is_an_error(tree: Path, text: str, told: str) -> None:
    with pytest.raises(PlantError, match=told):
        plants.planted(plant(text=text, replacement="y"), root=tree)


def test_a_file_outside_the_copied_folders_is_an_error(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(PlantError, match="none of the copied folders"):
        plants.apply(plant(), tmp_path / "copy", root=tree, folders=[])


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHOLE)
    (found,) = plants.load_all(tmp_path)
    assert found == Plant(
        "one", "engine/a.py", "x = 1\n", "x = 2\n", "SPEC 1", ("oracle hello raised some",)
    )
    assert list(plants.oracle_witnesses(found)) == [("hello", "raised", "some")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('rule = "SPEC 1"', "missing"),
        ('detected_by = ["oracle hello raised some"]', "missing"),
        ('name = "one"', "missing"),
    ],
)
def test_an_entry_with_a_field_missing_is_an_error(line: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHOLE.replace(line, ""))
    with pytest.raises(PlantError, match=told):
        plants.load_all(tmp_path)


def test_an_unknown_field_and_a_witness_of_no_known_kind_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHOLE + 'also = "x"\n')
    with pytest.raises(PlantError, match="unknown"):
        plants.load_all(tmp_path)
    (tmp_path / "a.toml").write_text(WHOLE.replace("oracle hello", "somebody hello"))
    with pytest.raises(PlantError, match="detected_by"):
        plants.load_all(tmp_path)


def test_two_entries_of_one_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHOLE + WHOLE)
    with pytest.raises(PlantError, match="two plants are called one"):
        plants.load_all(tmp_path)
