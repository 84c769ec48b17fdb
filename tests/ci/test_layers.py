"""Who may import whom (DESIGN: the house), and that what is here is what is installed."""

import ast
import configparser
import importlib
import sys
import tomllib
from pathlib import Path

import pytest

from ci.process import ROOT

# Each folder and the folders of ours that it may import. What is not here may import nothing.
MAY_IMPORT = {
    "engine": set(),
    # A second reading of the RFC, which is its worth; the rest of `peers` may stand between.
    "peers/liar": {"peers"},
    "peers": {"engine"},
    "harnesses": {"engine", "peers"},
    "servers": {"engine"},
    # Of `ci` what writes results for every command; that starts the benches by name.
    "bench": {"engine", "peers", "servers", "ci"},
    "mutants": {"engine", "harnesses", "peers"},
    "triage": {"engine", "harnesses", "peers"},
    "ci": {"engine", "harnesses", "mutants", "peers", "servers", "triage"},
}
# What a folder may use besides the standard library; None is anything that is installed.
PACKAGES = {
    "engine": {"cryptography"},
    "peers/liar": {"cryptography"},
    "servers": {"cryptography"},
    "harnesses": {"cryptography", "atheris"},
    "triage": set(),
    "mutants": {"libcst", "mutmut", "pytest", "_pytest", "hypothesis"},
    "ci": {"coverage", "cryptography", "distributed"},
}


def folder_of(path: Path) -> str:
    """The room a file is in."""
    inside = path.relative_to(ROOT).as_posix()
    return "peers/liar" if inside.startswith("peers/liar/") else inside.split("/", 1)[0]


def sources() -> list[Path]:
    """Every module of every package at the root but the tests."""
    packages = [folder for folder in ROOT.iterdir() if (folder / "__init__.py").is_file()]
    return [
        path
        for package in packages
        if package.name != "tests"
        for path in sorted(package.rglob("*.py"))
    ]


def imported(path: Path) -> set[str]:
    """The absolute names that a file imports, in functions too; relative ones made absolute."""
    names = set()
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            names.add(".".join([*base, *([node.module] if node.module else [])]))
    return names


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_folder_may(path):
    folder = folder_of(path)
    assert folder in MAY_IMPORT, f"{folder} is a new folder: say above what it may import"
    ours = {entry.name for entry in ROOT.iterdir() if (entry / "__init__.py").is_file()}
    for name in imported(path):
        top = name.split(".", 1)[0]
        if top in ours:
            own = folder.split("/", 1)[0]
            assert top == own or top in MAY_IMPORT[folder], f"{path}: {name}"
            if folder == "peers/liar" and top == "peers":
                assert name == "peers" or name.startswith("peers.liar"), f"{path}: {name}"
        elif top not in sys.stdlib_module_names:
            allowed = PACKAGES.get(folder)
            assert allowed is None or top in allowed, f"{path}: {name}"


def test_the_engine_calls_itself_by_no_name():
    """A program imports it as `residue_tls` and this tree as `engine`: it says neither."""
    for path in sorted((ROOT / "engine").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module or "")
            assert not {"engine", "residue_tls"} & {name.split(".")[0] for name in names}, path
        assert "`engine." not in text, path


def test_the_rules_can_be_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    for name in ("engine", "ci"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    bad = tmp_path / "engine" / "bad.py"
    for line in ("import ci.exits", "from ci import exits", "from ..ci import x", "import numpy"):
        bad.write_text(f"def f():\n    {line}\n")
        with pytest.raises(AssertionError):
            test_a_module_imports_only_what_its_folder_may(bad)
    bad.write_text("import os\nfrom . import pool\nfrom cryptography import x509\n")
    test_a_module_imports_only_what_its_folder_may(bad)


def test_every_package_is_typed_and_every_typed_package_is_here():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    here = {entry.name for entry in ROOT.iterdir() if (entry / "__init__.py").is_file()}
    listed = {name.strip() for name in config["mypy"]["files"].split(",")}
    assert listed == here - {"tests"} | {"residue_suite.py"}


def test_every_package_is_imported_from_this_checkout():
    for path in sources():
        if path.name == "__init__.py":
            name = ".".join(path.parent.relative_to(ROOT).parts)
            assert Path(importlib.import_module(name).__file__) == path


def test_the_suite_asks_for_what_the_engine_needs():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    package = tomllib.loads((ROOT / "engine" / "pyproject.toml").read_text(encoding="utf-8"))
    assert config["options"]["install_requires"].split() == package["project"]["dependencies"]


def test_every_package_of_the_lock_has_an_exact_version_and_a_hash():
    entries = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in entries.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) > 20
    for line in lines:
        assert "==" in line.split(" ", 1)[0] and "--hash=sha256:" in line, line[:80]


def test_no_file_of_code_is_longer_than_a_person_reads():
    long = [
        str(path.relative_to(ROOT))
        for path in sources()
        if len(path.read_text(encoding="utf-8").splitlines()) > 600
    ]
    assert not long
