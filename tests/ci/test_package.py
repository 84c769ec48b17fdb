"""What is built from engine/ and from the root, and that it works where nothing of this tree is."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest

import engine
from ci.process import ROOT
from tests.tools import PATIENCE

PACKAGE = ROOT / "engine"
VERSION = engine.__version__
PROGRAM = Path(__file__).with_name("installed_program.py")
NEEDED = ("cryptography", "cffi", "pycparser")
"""What the package needs, and what that needs."""
SDIST = "from hatchling.build import build_sdist; import sys; print(build_sdist(sys.argv[1]))"
WITHOUT_NETWORK = ("--no-index", "--disable-pip-version-check", "--quiet")


def run(command: Sequence[str | Path], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel(source: Path, folder: Path) -> Path:
    """The wheel of a source tree, by pip and with the build backend that is installed here."""
    pip = [sys.executable, "-m", "pip", "wheel", *WITHOUT_NETWORK, "--no-deps"]
    run([*pip, "--no-build-isolation", "--wheel-dir", folder, source], folder.parent)
    (made,) = folder.glob("*.whl")
    return made


@dataclass(frozen=True)
class Built:
    sdist: Path
    wheels: dict[str, Path]
    left: set[Path]
    """What a build left in the checkout."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist, the wheel that the checkout gives, and the one that the sdist gives."""
    folder = tmp_path_factory.mktemp("built")
    before = set(PACKAGE.rglob("*"))
    name = run([sys.executable, "-B", "-c", SDIST, folder], PACKAGE).split()[-1]
    with tarfile.open(folder / name) as archive:
        archive.extractall(folder / "unpacked")
    (source,) = (folder / "unpacked").iterdir()
    wheels = {"checkout": wheel(PACKAGE, folder / "1"), "sdist": wheel(source, folder / "2")}
    left = {path for path in set(PACKAGE.rglob("*")) - before if "__pycache__" not in path.parts}
    return Built(folder / name, wheels, left)


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `NEEDED` alone, as they are installed here: there may be no network."""
    folder = tmp_path_factory.mktemp("needed")
    for name in NEEDED:
        files = importlib.metadata.distribution(name).files
        assert files is not None
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            (folder / top).symlink_to(
                Path(str(importlib.metadata.distribution(name).locate_file(top)))
            )
    return folder


@pytest.fixture(scope="module", params=["checkout", "sdist"])
def python(
    request: pytest.FixtureRequest,
    built: Built,
    needed: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The interpreter of an empty environment into which pip installed one of the wheels."""
    place = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", place], place)
    made = place / "bin" / "python"
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "needed.pth").write_text(f"{needed}\n")
    pip = [sys.executable, "-m", "pip", "--python", str(made), "install", *WITHOUT_NETWORK]
    run([*pip, built.wheels[request.param]], place)
    return made


def modules() -> set[str]:
    return {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}


def test_a_wheel_has_one_package_and_that_is_the_engine(built: Built) -> None:
    info = f"residue_tls-{VERSION}.dist-info"
    about = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")}
    for path in built.wheels.values():
        assert path.name == f"residue_tls-{VERSION}-py3-none-any.whl"
        with zipfile.ZipFile(path) as archive:
            code = {f"residue_tls/{name}" for name in modules() | {"py.typed"}}
            assert set(archive.namelist()) == code | about


def test_the_sdist_has_what_the_wheel_is_made_of(built: Built) -> None:
    assert built.sdist.name == f"residue_tls-{VERSION}.tar.gz"
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    about = {"LICENSE", "PKG-INFO", "README.md", "py.typed", "pyproject.toml"}
    # hatchling adds the .gitignore of the tree that it finds itself in.
    assert names - {".gitignore"} == modules() | about


def test_the_same_tree_gives_the_same_wheel(built: Built) -> None:
    one, other = built.wheels.values()
    assert one.read_bytes() == other.read_bytes()


def test_a_build_leaves_nothing_in_the_checkout(built: Built) -> None:
    """What it left under engine/ would be taken for code of the engine, by mutants and coverage."""
    assert built.left == set()


def test_the_package_says_its_version_once_and_needs_cryptography_alone(built: Built) -> None:
    with zipfile.ZipFile(built.wheels["checkout"]) as archive:
        text = archive.read(f"residue_tls-{VERSION}.dist-info/METADATA").decode()
    said = Parser().parsestr(text)
    assert (said["Name"], said["Version"]) == ("residue-tls", VERSION)
    assert said.get_all("Requires-Dist") == ["cryptography>=47"]
    assert said["Requires-Python"] == ">=3.11" and said["License-Expression"] == "Apache-2.0"
    assert said.get_payload() == (PACKAGE / "README.md").read_text(encoding="utf-8")
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    settings = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["dynamic"] == ["version"]


def test_a_program_that_installed_it_talks_to_pythons_ssl(python: Path, tmp_path: Path) -> None:
    program = shutil.copy(PROGRAM, tmp_path)
    said = json.loads(run([python, "-I", program], tmp_path))
    assert said == {
        "version": VERSION,
        "protocol": "TLSv1.3",
        "echo": "hello",
        "ended": True,
        "ours": [],
        "installed": sorted(("residue-tls", *NEEDED)),
    }


@pytest.mark.parametrize("python", ["sdist"], indirect=True)
def test_a_type_checker_sees_its_types(python: Path, tmp_path: Path) -> None:
    program = shutil.copy(PROGRAM, tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from residue_tls import Engine, Nothing\n"
        "tls = Engine.server(slots='1')\n"
        "tls.feed(0, 'text')\n"
        "count: str = tls.recv(0, bytearray(1))\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python)]
    mypy += ["--no-incremental", "--config-file=", "--no-error-summary"]
    done = subprocess.run(
        [*mypy, program, wrong], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    found = [
        (line.split(":")[:2], line.rpartition("[")[2].rstrip("]"))
        for line in done.stdout.splitlines()
        if ": error: " in line
    ]
    assert found == [
        (["wrong.py", "1"], "attr-defined"),
        (["wrong.py", "2"], "arg-type"),
        (["wrong.py", "3"], "arg-type"),
        (["wrong.py", "4"], "assignment"),
    ], done.stdout + done.stderr


def test_what_a_program_imports_is_named() -> None:
    """A submodule is an attribute of its package, and no part of what it promises."""
    public = {
        name
        for name, value in vars(engine).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(engine.__all__) == public | {"__version__"}


def test_a_wheel_of_the_suite_has_its_command_alone_and_that_says_what_it_needs(
    tmp_path: Path,
) -> None:
    """No folder of this tree is ever a package at the top of somebody's environment."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "residue_suite.py"):
        shutil.copy(ROOT / name, tree)
    for name in ("engine", "ci", "servers"):
        (tree / name).mkdir()
        shutil.copy(ROOT / name / "__init__.py", tree / name)
    made = wheel(tree, tmp_path / "wheel")
    info = f"residue_suite-{VERSION}.dist-info"
    with zipfile.ZipFile(made) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"residue_suite.py", info}
        said = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        archive.extract("residue_suite.py", tmp_path / "alone")
    assert (said["Name"], said["Version"]) == ("residue-suite", VERSION)
    assert "Private :: Do Not Upload" in said.get_all("Classifier", [])
    alone = subprocess.run(
        [sys.executable, "-I", "-S", tmp_path / "alone" / "residue_suite.py", "doctor"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (alone.returncode, alone.stdout) == (2, "")
    assert alone.stderr == (
        "residue: needs a checkout: make environment there, or pip install -e '.[suite]'\n"
    )
