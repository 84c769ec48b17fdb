"""Who may import whom (docs/architecture.md), and that what is here is what is installed."""

import ast
import configparser
import importlib
import sys
import tomllib
from pathlib import Path

import pytest

from ci.process import ROOT
from docs.architecture import imported, packages, rules, sources

# Each folder and what it may import, as the page has it. What is not there may import nothing.
RULES = rules()


def folder_of(path: Path, root: Path) -> str:
    """The row of the table that a file is under: the innermost one."""
    inside = path.relative_to(root).as_posix()
    return max((f for f in RULES if inside.startswith(f"{f}/")), key=len, default="")


def faults(path: Path, root: Path = ROOT) -> list[str]:
    """What a file imports and may not."""
    folder = folder_of(path, root)
    if not folder:
        return [f"{path} is in no row of docs/architecture.md: say there what it may import"]
    rule = RULES[folder]
    ours = set(packages(root))
    found = []
    for name in imported(path, root):
        top = name.split(".", 1)[0]
        if top in ours:
            own = f"{name}.".startswith(folder.replace("/", ".") + ".") or name == top == folder
            inner = "/" in folder and name == top
            allowed = own or inner or top in rule.ours
        else:
            allowed = (
                top in sys.stdlib_module_names or rule.packages is None or top in rule.packages
            )
        if not allowed:
            found.append(f"{path}: {name}")
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_folder_may(path):
    assert faults(path) == []


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


def test_the_rules_can_be_broken(tmp_path):
    for name in ("engine", "ci", "peers", "peers/liar", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "peers" / "memory.py").write_text("")
    bad = tmp_path / "engine" / "bad.py"
    for line in ("import ci.exits", "from ci import exits", "from ..ci import x", "import numpy"):
        bad.write_text(f"def f():\n    {line}\n")
        assert faults(bad, tmp_path), line
    bad.write_text("import os\nfrom . import pool\nfrom cryptography import x509\n")
    assert faults(bad, tmp_path) == []
    liar = tmp_path / "peers" / "liar" / "bad.py"
    for line in ("from peers import memory", "import peers.memory", "from .. import memory"):
        liar.write_text(f"{line}\n")
        assert faults(liar, tmp_path), line
    liar.write_text("from peers.liar import codes\nfrom . import wire\n")
    assert faults(liar, tmp_path) == []
    assert faults(tmp_path / "elsewhere" / "__init__.py", tmp_path)


def test_every_package_is_typed_and_every_typed_package_is_here():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = {name.strip() for name in config["mypy"]["files"].split(",")}
    assert listed == set(packages()) | {"residue_suite.py", "tests"}


def test_every_package_is_imported_from_this_checkout():
    for path in sources():
        if path.name == "__init__.py":
            name = ".".join(path.parent.relative_to(ROOT).parts)
            assert importlib.import_module(name).__file__ == str(path)


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
