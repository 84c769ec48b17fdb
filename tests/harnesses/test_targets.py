"""The fuzz targets as files of their own, and the build of them for a fuzzing service."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from harnesses import HARNESSES, dictionary, outcomes
from harnesses.run import PLAIN, POOL, instrumented
from harnesses.targets import __main__ as targets
from tests.tools import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
# What the image's command does that matters to the build: an executable in $OUT, called as the file
# is. Freezing takes a minute; this one runs the file. Its further arguments are written down.
COMPILE = """#!/bin/sh
set -eu
target=$(realpath "$1")
name=$(basename -s .py "$1")
shift
echo "$name $*" >> "$OUT/../compiled"
printf '#!/bin/sh\\nexec "%s" "%s" "$@"\\n' "$PYTHON" "$target" > "$OUT/$name"
chmod +x "$OUT/$name"
"""
# This interpreter under the name that the build calls. No link: an interpreter that is called by
# one outside of its virtual environment has the packages of the machine and not of this.
INTERPRETER = """#!/bin/sh
exec "$PYTHON" "$@"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What build.sh leaves in $OUT."""
    base = tmp_path_factory.mktemp("service")
    for name in ("src", "out", "bin"):
        (base / name).mkdir()
    (base / "src" / "residue").symlink_to(ROOT)
    for name, text in (("compile_python_fuzzer", COMPILE), ("python3", INTERPRETER)):
        (base / "bin" / name).write_text(text)
        (base / "bin" / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / ".clusterfuzzlite" / "build.sh"],
        env=environment(base / "bin", SRC=str(base / "src"), OUT=str(base / "out")),
        cwd=base,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return base / "out"


def environment(first: Path, **more: str) -> Mapping[str, str]:
    """An environment with a folder first on the path, and nothing for the fuzzer in it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RESIDUE_")}
    path = f"{first}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **more}


def test_the_targets_are_what_is_made_of_the_harnesses_names(tmp_path: Path) -> None:
    """Each instruments the engine before it imports its own harness, and there are no others."""
    targets.write_targets(tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    folder = ROOT / "harnesses" / "targets"
    assert made == {path.name: path.read_text() for path in folder.glob("*_fuzzer.py")}
    for name in HARNESSES:
        text = made[f"{targets.target(name)}.py"]
        assert 0 < text.index(f'run.instrument("{name}")') < text.index(f"import {name}\n")


def test_the_build_leaves_every_target_with_its_seeds_dictionary_and_options(built: Path) -> None:
    endings = ("", "_seed_corpus.zip", ".dict", ".options")
    wanted = {f"{targets.target(name)}{ending}" for name in HARNESSES for ending in endings}
    assert {path.name for path in built.iterdir()} == wanted
    assert all(os.access(built / targets.target(name), os.X_OK) for name in HARNESSES)


def test_a_frozen_target_gets_the_identity_that_it_reads(built: Path) -> None:
    lines = (built.parent / "compiled").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(HARNESSES)
    for line in lines:
        source, place = line.split("--add-data ")[1].split(":")
        assert (Path(source) / "chain.pem").is_file() and place == "harnesses/identity"


@pytest.mark.parametrize("name", HARNESSES)
def test_the_seeds_are_the_committed_inputs_whenever_they_are_packed(
    name: str, built: Path, tmp_path: Path
) -> None:
    packed = built / f"{targets.target(name)}_seed_corpus.zip"
    with zipfile.ZipFile(packed) as archive:
        stored = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    assert stored == {path.name: path.read_bytes() for path in outcomes.inputs(name)}
    targets.seeds(name, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


@pytest.mark.parametrize("name", HARNESSES)
def test_the_options_are_a_campaigns(name: str, built: Path) -> None:
    options = read_options(built, name)
    longest = max(path.stat().st_size for path in outcomes.inputs(name))
    assert int(options["max_len"]) >= longest
    assert options["timeout"] == "10" and options["rss_limit_mb"] == "1024"
    assert (built / options["dict"]).read_text(encoding="ascii") == dictionary.render()


def read_options(built: Path, name: str) -> dict[str, str]:
    config = configparser.ConfigParser()
    config.read(built / f"{targets.target(name)}.options", encoding="ascii")
    assert config.sections() == ["libfuzzer"]
    return dict(config["libfuzzer"])


def test_a_built_target_runs_and_merges_its_seeds_under_instrumentation(
    built: Path, tmp_path: Path
) -> None:
    """As a service does it: the options as arguments, the zip unpacked, in another folder."""
    pytest.importorskip("atheris", reason="the fuzzer is an extra")
    with zipfile.ZipFile(built / "hello_fuzzer_seed_corpus.zip") as archive:
        archive.extractall(tmp_path / "seeds")
    options = read_options(built, "hello")
    given = [f"-{key}={value}" for key, value in options.items() if key != "dict"]
    # From here: libFuzzer runs itself again through a shell, which cuts a path at a space.
    shutil.copy(built / options["dict"], tmp_path / "dict")
    given.append("-dict=dict")

    ran = fuzz(built, [*given, "-runs=200", "seeds"], tmp_path)
    assert ran.returncode == 0, ran.stderr
    inited = re.search(r"INITED cov: (\d+)", ran.stderr)
    assert inited is not None and int(inited[1]) > 100
    found = set(re.findall(r"Instrumenting (\S+)", ran.stderr))
    assert found == set(instrumented()) - {*PLAIN, POOL}

    (tmp_path / "merged").mkdir()
    merged = fuzz(built, [*given, "-merge=1", "merged", "seeds"], tmp_path)
    assert merged.returncode == 0, merged.stderr
    assert len(list((tmp_path / "merged").iterdir())) > 20


def fuzz(built: Path, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [built / "hello_fuzzer", *arguments],
        env=environment(built, TMPDIR="."),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def test_the_image_installs_what_the_lock_has_and_nothing_else(tmp_path: Path) -> None:
    """The one line of the Dockerfile that can be run without an image."""
    text = (ROOT / ".clusterfuzzlite" / "Dockerfile").read_text(encoding="utf-8")
    command = re.search(r"^RUN (awk .* > \$SRC/engine\.lock)", text, re.MULTILINE)
    assert command is not None
    subprocess.run(
        ["sh", "-c", command[1]], cwd=ROOT, env={**os.environ, "SRC": str(tmp_path)}, check=True
    )
    lines = (tmp_path / "engine.lock").read_text(encoding="utf-8").splitlines()
    named = [line.split("==")[0] for line in lines if "==" in line]
    assert named == ["cffi", "cryptography", "pycparser"]
    assert all("==" in line or "--hash=sha256:" in line for line in lines)


def test_a_build_that_fails_is_no_build(tmp_path: Path) -> None:
    """A target that cannot be frozen ends the build: half of the targets are not all of them."""
    (tmp_path / "out").mkdir()
    (tmp_path / "residue").symlink_to(ROOT)
    shutil.copy("/bin/false", tmp_path / "compile_python_fuzzer")
    done = subprocess.run(
        [ROOT / ".clusterfuzzlite" / "build.sh"],
        env=environment(tmp_path, SRC=str(tmp_path), OUT=str(tmp_path / "out")),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode != 0 and not list((tmp_path / "out").iterdir())
