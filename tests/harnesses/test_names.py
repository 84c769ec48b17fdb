"""The parts of a harness have its name, and nothing else has it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from harnesses import HARNESSES, WITHOUT_FORMAT

ROOT = Path(__file__).resolve().parents[2]
# What the seeds of all harnesses share.
SHARED = {"seeds": {"case"}}


def faults(root: Path, names: Sequence[str], without_format: Sequence[str]) -> list[str]:
    """The parts that a harness has not, and the modules among the parts that are nobody's."""
    harnesses = root / "harnesses"
    wanted = [
        *(harnesses / f"{name}.py" for name in names),
        *(harnesses / "formats" / f"{name}.py" for name in names if name not in without_format),
        *(harnesses / "seeds" / f"{name}.py" for name in names),
        *(harnesses / "targets" / f"{name}_fuzzer.py" for name in names),
        *(root / "corpus" / name for name in names),
        *(root / "corpus" / f"{name}.outcomes" for name in names),
    ]
    found = [f"missing: {path.relative_to(root)}" for path in wanted if not path.exists()]
    for path in sorted((root / "corpus").iterdir()):
        if path.name.removesuffix(".outcomes") not in names and path.name != "provenance.tsv":
            found.append(f"nobody's: {path.relative_to(root)}")
    for part in ("formats", "models", "seeds", "targets"):
        for path in sorted((harnesses / part).glob("[!_]*.py")):
            if not _is_somebodys(part, path.stem, names):
                found.append(f"nobody's: {path.relative_to(root)}")
    return found


def _is_somebodys(part: str, stem: str, names: Sequence[str]) -> bool:
    """A model and the seeds may be several modules: NAME, and NAME_ and more."""
    if part == "targets":
        return stem.endswith("_fuzzer") and stem.removesuffix("_fuzzer") in names
    if part == "formats":
        return stem in names
    return stem.partition("_")[0] in names or stem in SHARED.get(part, ())


def test_every_part_of_a_harness_has_its_name() -> None:
    assert faults(ROOT, HARNESSES, WITHOUT_FORMAT) == []
    assert set(WITHOUT_FORMAT) <= set(HARNESSES)


@pytest.mark.parametrize("name", HARNESSES)
def test_a_harness_has_what_every_command_asks_of_it(name: str) -> None:
    harness = importlib.import_module(f"harnesses.{name}")
    assert callable(harness.run) and harness.MAX_LEN > 0
    assert importlib.import_module(f"harnesses.seeds.{name}").cases()


def test_every_harness_has_its_line_in_the_table_of_harnesses() -> None:
    page = (ROOT / "docs" / "fuzzing.md").read_text(encoding="utf-8")
    table = page.partition("## The oracles")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE)) == HARNESSES


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two harnesses with all their parts; the second has no format."""
    files = (
        "harnesses/one.py harnesses/two.py harnesses/formats/one.py harnesses/models/one.py "
        "harnesses/models/one_peer.py harnesses/seeds/one.py harnesses/seeds/two.py "
        "harnesses/seeds/two_ends.py harnesses/seeds/case.py harnesses/targets/one_fuzzer.py "
        "harnesses/targets/two_fuzzer.py corpus/one/a corpus/two/a corpus/one.outcomes "
        "corpus/two.outcomes corpus/provenance.tsv"
    )
    for file in files.split():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert faults(tmp_path, ("one", "two"), ("two",)) == []
    return tmp_path


@pytest.mark.parametrize(
    ("file", "misnamed"),
    [
        ("harnesses/formats/one.py", "first.py"),
        ("harnesses/formats/one.py", "one_more.py"),
        ("harnesses/seeds/two.py", "twofold.py"),
        ("harnesses/targets/one_fuzzer.py", "one.py"),
        ("corpus/two.outcomes", "second.outcomes"),
        ("corpus/one", "first"),
    ],
)
def test_a_part_that_is_misnamed_is_missing_and_nobodys(
    tree: Path, file: str, misnamed: str
) -> None:
    path = tree / file
    path.rename(path.with_name(misnamed))
    nobodys = path.with_name(misnamed).relative_to(tree)
    assert faults(tree, ("one", "two"), ("two",)) == [f"missing: {file}", f"nobody's: {nobodys}"]


def test_a_harness_without_a_module_and_a_model_without_a_harness_are_seen(tree: Path) -> None:
    (tree / "harnesses" / "two.py").unlink()
    (tree / "harnesses" / "models" / "one.py").rename(tree / "harnesses" / "models" / "rules.py")
    assert faults(tree, ("one", "two"), ("two",)) == [
        "missing: harnesses/two.py",
        "nobody's: harnesses/models/rules.py",
    ]


def test_a_harness_has_a_format_unless_it_is_said_to_have_none(tree: Path) -> None:
    assert faults(tree, ("one", "two"), ()) == ["missing: harnesses/formats/two.py"]


def test_nothing_that_runs_an_input_imports_what_makes_seeds() -> None:
    """What a harness imports, every process of a campaign imports."""
    for path in (ROOT / "harnesses").rglob("*.py"):
        if path.parent.name == "seeds":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
                assert not any("seeds" in name.split(".") for name in names), path
