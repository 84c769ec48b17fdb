"""What goes to a cluster and comes back, without one: archives, versions, a shard's process."""

import io
import os
import subprocess
import sys
import tarfile
import time
from typing import Any

import pytest

from ci.cluster import archive, client, versions, worker
from ci.process import ROOT
from tests.tools import alive, wait_until

FAKE = ROOT / "tests" / "ci" / "fake_runner.py"


@pytest.fixture(scope="module")
def code():
    return archive.pack(archive.code())


def place(folder, **changes):
    return worker.Place(
        folder,
        "tcp://here",
        changes.get("tell", lambda what: None),
        changes.get("wanted", lambda: True),
    )


def job(code, behaviour, seconds, **changes):
    """A shard of a harness that is called as it behaves."""
    return {
        "name": f"{behaviour}-1",
        "token": "token",
        "versions": worker.about(["cryptography"]),
        "digests": [archive.digest(code)],
        "given": archive.pack([]),
        "limit": 60.0,
        "every": 0.2,
        "work": {
            "kind": "fuzz",
            "name": f"{behaviour}-1",
            "harness": behaviour,
            "seconds": seconds,
            "seed": 1,
            "value_profile": False,
            "command": [str(FAKE), behaviour],
            "seeds": False,
        },
        **changes,
    }


def test_the_same_files_are_the_same_bytes_whatever_their_times(tmp_path):
    archives = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        (folder / "a" / "__pycache__").mkdir(parents=True)
        names = ["a/one", "two", "a/.hidden", "a/__pycache__/x", "a/x.pyc"]
        for name in names if number == 1 else reversed(names):
            (folder / name).write_bytes(name.encode())
            os.utime(folder / name, (number, number))
        (folder / "link").symlink_to("two")
        archives.append(archive.pack(archive.entries(folder, "it")))
    assert archives[0] == archives[1]
    worker.unpack(archives[0], tmp_path / "out")
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in kept} == {
        "it/a/one": b"a/one",
        "it/two": b"two",
    }


def test_an_archive_is_laid_down_once_and_not_when_it_is_another(tmp_path):
    data = archive.pack([("file", FAKE)])
    folder = worker.lay(data, archive.digest(data), tmp_path)
    assert (folder / "file").read_bytes() == FAKE.read_bytes()
    assert worker.lay(b"not even looked at", archive.digest(data), tmp_path) == folder
    with pytest.raises(ValueError, match="not the one that was sent"):
        worker.lay(data, "0" * 64, tmp_path)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("name", ["../out", "a/../../out", "{}/out"])
def test_an_archive_cannot_reach_out_of_its_folder(tmp_path, name):
    with pytest.raises(ValueError, match="outside"):
        worker.unpack(archive.pack([(name.format(tmp_path), FAKE)]), tmp_path / "in")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_an_archive_has_plain_files_alone(tmp_path, kind):
    """A link would take the next entry out of the folder by its own, harmless name."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as packed:
        link = tarfile.TarInfo("a")
        link.type, link.linkname = kind, ".."
        packed.addfile(link)
        packed.addfile(tarfile.TarInfo("a/out"))
    with pytest.raises(ValueError, match="no plain file"):
        worker.unpack(body.getvalue(), tmp_path / "in")
    assert not (tmp_path / "out").exists()


def test_an_archive_has_each_name_once(tmp_path):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as packed:
        for _ in range(2):
            packed.addfile(tarfile.TarInfo("a"))
    with pytest.raises(FileExistsError):
        worker.unpack(body.getvalue(), tmp_path / "in")


def test_a_worker_needs_the_standard_library_and_dask_alone():
    """What is sent runs without this checkout, by an interpreter without its packages."""
    script = "import sys; space = {}; exec(sys.stdin.read(), space); print(space['about'](['x']))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        input=client.SOURCE,
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert "'x': 'missing'" in done.stdout


def test_who_differs_is_named_with_what_it_has():
    mine = {"python": "3.11.7", "atheris": "3.0.0"}
    others = {f"tcp://{n}": {"python": "3.11.7", "atheris": "3.1.0"} for n in "edcba"}
    others["tcp://f"] = {"python": "3.12.1", "atheris": "3.0.0"}
    line = versions.differences(mine, others)
    assert "tcp://a, tcp://b, tcp://c and 2 more: atheris 3.1.0 and not 3.0.0" in line
    assert "tcp://f: python 3.12.1 and not 3.11.7" in line
    assert not versions.differences(mine, {"tcp://g": {**mine, "numpy": "1"}})


def test_a_shard_from_bytes_to_bytes(tmp_path, code):
    told: list[dict[str, Any]] = []
    answer = worker.work(place(tmp_path, tell=told.append), job(code, "good", 2.0), code)
    state = answer["state"]
    assert state["executions"] >= 5000 and state["edges"] >= 205 and state["starts"] == 1
    worker.unpack(answer["files"], tmp_path / "back")
    inputs = list((tmp_path / "back" / "out" / "corpus").iterdir())
    assert len(inputs) * 1000 == state["executions"]
    assert told and told[-1]["name"] == "good-1" and told[-1]["executions"] > 0
    left = [path.name for path in tmp_path.iterdir() if path.name != "back"]
    assert left == [f"residue-{archive.digest(code)}"], "the shard's own folder is gone"


def test_a_worker_that_joined_with_other_versions_runs_nothing(tmp_path, code):
    wrong = job(code, "good", 2.0, versions={"python": "3.0", "cryptography": "1"})
    answer = worker.work(place(tmp_path), wrong, code)
    assert answer["differs"]["python"] == worker.about([])["python"] and "state" not in answer
    assert not list(tmp_path.iterdir())


def test_a_shard_that_is_asked_to_end_hands_over_what_it_has(tmp_path, code):
    def tell(what):
        if what["executions"]:
            worker.flag(tmp_path, "token").touch()

    begun = time.monotonic()
    answer = worker.work(place(tmp_path, tell=tell), job(code, "good", 60.0), code)
    assert time.monotonic() - begun < 30 and answer["state"]["executions"] > 0


def test_a_shard_that_nobody_waits_for_leaves_nothing_running(tmp_path, code):
    children = []

    def tell(what):
        children.extend(_said_child(tmp_path))

    with pytest.raises(worker.Unwanted):
        worker.work(
            place(tmp_path, tell=tell, wanted=lambda: not children), job(code, "parent", 60.0), code
        )
    wait_until(lambda: not any(alive(pid) for pid in children))
    assert children and [path.name for path in tmp_path.iterdir()] == [
        f"residue-{archive.digest(code)}"
    ]


def test_a_shard_whose_process_fails_says_why(tmp_path, code):
    wrong = job(code, "good", 2.0)
    wrong["work"]["kind"] = "dance"
    with pytest.raises(RuntimeError, match="KeyError: 'dance'"):
        worker.work(place(tmp_path), wrong, code)


# A worker of which nothing is real but its death.
WORKER = """
import sys
from pathlib import Path
from ci.cluster import archive, worker
from tests.ci.cluster.test_cluster import job, place
code = archive.pack(archive.code())
worker.work(place(Path(sys.argv[1])), job(code, "parent", 60.0), code)
"""


def test_a_worker_that_is_killed_leaves_nothing_running(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as killed:
        wait_until(lambda: _said_child(tmp_path))
        (child,) = _said_child(tmp_path)
        assert alive(child)
        killed.kill()
    wait_until(lambda: not alive(child))
    wait_until(lambda: not list(tmp_path.glob("residue-shard-*")))


def _said_child(folder):
    """The process ids that fake runners of kind `parent` have written in their logs."""
    logs = [path.read_text() for path in folder.glob("residue-shard-*/out/log")]
    lines = [line for text in logs for line in text.splitlines()]
    return [int(line.split()[1]) for line in lines if line.startswith("child ")]
