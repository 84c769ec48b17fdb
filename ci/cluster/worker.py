"""What a worker of the cluster does for us. It needs nothing of this project: its text is sent.

A worker has Python, Dask and the packages that the shards use, and no checkout. So this file
imports the standard library and Dask alone; everything else comes in the archives.

The shard is a process of its own, started from the unpacked tree, and not a thread's business:
its main thread starts and watches the fuzzer as the local supervisor does, so the kernel's promise
to kill a child with its parent holds (the promise is about the thread that forked, and a worker's
tasks run in threads). It holds the read end of a pipe whose write end only this worker has. When
the worker is killed the kernel closes it, and the shard ends what it started and itself.
"""

import contextlib
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

TICK = 0.2
# A shard that was asked to end kills what it started after five seconds, and packs what it has.
PATIENCE = 30.0
# Of what a shard that failed has said, as much as a person reads.
SAID = 2000


class Unwanted(Exception):
    """Nobody waits for the result any more."""


def about(packages: Iterable[str]) -> dict[str, str]:
    """The version of Python and of each package, for comparison."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def unpack(data: bytes, folder: Path) -> None:
    """Lay an archive down in a folder that is made for it; nothing of it can lie elsewhere.

    Raises ValueError for an entry that would, and for one that is no plain file: we pack no other,
    and without links a name without `..` stays in the folder. (The filters of `extractall` came
    with 3.11.4, and a worker may have 3.11.0.)
    """
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for entry in archive:
            name = PurePosixPath(entry.name)
            if name.is_absolute() or ".." in name.parts:
                raise ValueError(f"the archive reaches outside of its folder: {entry.name!r}")
            packed = archive.extractfile(entry) if entry.isreg() else None
            if packed is None:
                raise ValueError(f"the archive has what is no plain file: {entry.name!r}")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with packed, (folder / name).open("xb") as file:
                shutil.copyfileobj(packed, file)


def lay(data: bytes, digest: str, base: Path) -> Path:
    """The folder with an archive's files, made once a worker; ValueError when it is another's."""
    folder = base / f"residue-{digest}"
    if folder.is_dir():
        return folder
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("the archive that arrived is not the one that was sent")
    aside = Path(tempfile.mkdtemp(prefix=".residue-", dir=base))
    try:
        unpack(data, aside / "files")
        # Another thread of this worker may have been quicker; then its folder is as good.
        with contextlib.suppress(OSError):
            (aside / "files").rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


@dataclass
class Place:
    """Where a task runs: what it needs of the worker."""

    folder: Path
    address: str
    tell: Callable[[dict[str, Any]], None]
    wanted: Callable[[], bool]


def here(topic: str) -> Place:
    """The place of the task that asks."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    def tell(what: dict[str, Any]) -> None:
        worker.log_event(topic, what)

    return Place(Path(worker.local_directory), worker.address, tell, wanted)


def flag(folder: Path, token: str) -> Path:
    """The file that tells the shards of one run, on one worker, to end early."""
    return folder / f"residue-{token}.stop"


def stop(folder: str, token: str) -> None:
    """In a worker's folder: the shards of this run end now, and hand over what they have."""
    flag(Path(folder), token).touch()


def run(job: dict[str, Any], *archives: bytes) -> dict[str, Any]:
    """One shard, from bytes to bytes, on the worker that calls it."""
    return work(here(job["token"]), job, *archives)


def work(place: Place, job: dict[str, Any], *archives: bytes) -> dict[str, Any]:
    """One shard at a place. Unwanted when nobody waits, RuntimeError when its process failed."""
    versions = about(name for name in job["versions"] if name != "python")
    if versions != job["versions"]:
        return {"worker": place.address, "differs": versions}
    pairs = zip(archives, job["digests"], strict=True)
    trees = [lay(data, digest, place.folder) for data, digest in pairs]
    folder = Path(tempfile.mkdtemp(prefix="residue-shard-", dir=place.folder))
    try:
        unpack(job["given"], folder / "given")
        (folder / "job.json").write_text(json.dumps({**job["work"], "trees": [*map(str, trees)]}))
        _process(place, job, trees[0], folder)
        result = (folder / "result").read_bytes()
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"worker": place.address, "state": state, "files": result}


def _process(place: Place, job: dict[str, Any], tree: Path, folder: Path) -> None:
    """Run the shard's process to its end."""
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "ci.cluster.shard_process", str(folder)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(tree)},
            cwd=tree,
            start_new_session=True,
        )
    assert child.stdin is not None
    try:
        _watch(place, job, folder, child)
    finally:
        # The pipe's end is the order to leave nothing behind; then there is no more asking.
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if child.returncode != 0 or not (folder / "result").is_file():
        text = (folder / "said").read_text(encoding="utf-8", errors="replace")[-SAID:]
        raise RuntimeError(f"the shard's process ended with {child.returncode}: {text.strip()}")


def _watch(
    place: Place, job: dict[str, Any], folder: Path, child: "subprocess.Popen[bytes]"
) -> None:
    assert child.stdin is not None
    begun = time.monotonic()
    said = begun
    asked: float | None = None
    while child.poll() is None:
        time.sleep(TICK)
        now = time.monotonic()
        if not place.wanted():
            raise Unwanted(job["name"])
        if asked is None and (
            flag(place.folder, job["token"]).exists() or now > begun + job["limit"]
        ):
            asked = now
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(b"stop\n")
                child.stdin.flush()
        if asked is not None and now > asked + PATIENCE:
            return
        if now > said + job["every"]:
            said = now
            with contextlib.suppress(OSError, ValueError):
                state = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
                place.tell({"name": job["name"], "worker": place.address, **state})
