"""Archives: what a shard needs and what comes of it, as one piece of bytes named by its content.

The same files give the same bytes, whatever their times and owners, so that a worker which has
unpacked an archive once knows it again.
"""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from ci.process import ROOT
from mutants.settings import SUITE

# What runs a shard of the fuzzer, and what may be mutated or run as a test besides.
CODE = (*SUITE.planted, "mutants", "ci")
TESTED = SUITE.read
FILES = ("setup.cfg", "pyproject.toml")

Entry = tuple[str, Path]


def entries(folder: Path, name: str) -> list[Entry]:
    """The files under a folder and their names there; no bytecode, no link, nothing hidden."""
    found = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        left_out = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if path.is_file() and not path.is_symlink() and not left_out and path.suffix != ".pyc":
            found.append((f"{name}/{inside.as_posix()}", path))
    return found


def code(folders: Iterable[str] = CODE, root: Path = ROOT) -> list[Entry]:
    """The checkout's entries: these folders, and the files beside them."""
    found = [entry for folder in folders for entry in entries(root / folder, folder)]
    return found + [(name, root / name) for name in FILES if (root / name).is_file()]


def pack(files: Iterable[Entry]) -> bytes:
    """An archive of the files, each name once, in the order of their names."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted(dict(files).items()):
            data = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(body.getvalue(), compresslevel=6, mtime=0)


def digest(archive: bytes) -> str:
    """The name of an archive."""
    return hashlib.sha256(archive).hexdigest()
