"""What .editorconfig asks of an editor is how the files are."""

import subprocess
import tomllib
from pathlib import Path

from tests.tools import needs_git

ROOT = Path(__file__).parents[2]
# Bytes that are somebody's input, and pictures.
LEFT_ALONE = ("corpus/", "recordings/")
BINARY = {".png"}


def texts() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [
        ROOT / name
        for name in listed
        if name
        and not name.startswith(LEFT_ALONE)
        and Path(name).suffix not in BINARY
        and (ROOT / name).is_file()
    ]


def faults(data: bytes, tabs: bool) -> set[str]:
    lines = data.split(b"\n")
    found = set()
    if data and lines[-1]:
        found.add("does not end in a line feed")
    if b"\r" in data:
        found.add("has a carriage return")
    if any(line[-1:] in (b" ", b"\t") for line in lines):
        found.add("has a blank at the end of a line")
    if not tabs and any(line[:1] == b"\t" for line in lines):
        found.add("is indented by tabs")
    return found


@needs_git
def test_every_text_is_written_as_an_editor_is_asked_to() -> None:
    files = texts()
    assert files
    wrong = {
        f"{path.relative_to(ROOT)} {fault}"
        for path in files
        for fault in faults(path.read_bytes(), path.name == "Makefile" or path.suffix == ".go")
    }
    assert not wrong


def test_a_line_is_as_long_as_ruff_has_it() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        length = tomllib.load(file)["tool"]["ruff"]["line-length"]
    assert f"max_line_length = {length}\n" in (ROOT / ".editorconfig").read_text(encoding="utf-8")


def test_each_fault_is_seen() -> None:
    assert faults(b"a\n    b\n", tabs=False) == set()
    assert faults(b"\tb\n", tabs=True) == set()
    assert len(faults(b"a \r\n\tb", tabs=False)) == 3
    assert faults(b"a \n", tabs=False) == {"has a blank at the end of a line"}
