"""A file for results: refused before the run, written whole, and never put in a pipe's place."""

import os
import subprocess
import sys
import threading

import pytest

from ci import results
from ci.exits import Untrusted, UsageError
from ci.process import ROOT
from tests.tools import PATIENCE


def test_a_plain_file_is_whole_or_what_it_was(tmp_path, monkeypatch):
    place = tmp_path / "results.json"
    results.check(str(place))
    assert not place.exists()
    results.write(str(place), "one")
    place.chmod(0o600)
    results.write(str(place), b"two")
    assert place.read_text() == "two" and list(tmp_path.iterdir()) == [place]

    def full(number, body):
        os.close(number)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, "_pour", full)
    with pytest.raises(Untrusted, match=r"results\.json cannot be written: No space left"):
        results.write(str(place), "three")
    assert place.read_text() == "two" and list(tmp_path.iterdir()) == [place]


def test_a_name_as_long_as_can_be_is_written(tmp_path):
    place = tmp_path / ("x" * 255)
    results.check(str(place))
    results.write(str(place), "all")
    assert place.read_text() == "all"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "to").mkdir()
    (tmp_path / "link").symlink_to("to/file")
    results.check(str(tmp_path / "link"))
    results.write(str(tmp_path / "link"), "all")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "to" / "file").read_text() == "all"


@pytest.mark.parametrize("name", ["", "none/file", "file/below", "loop", "x" * 256, "/dev/fd/999"])
def test_what_cannot_be_written_is_refused_first(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError):
        results.check(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


def test_a_pipe_gets_them_all_and_stays_one(tmp_path):
    pipe, body, got = tmp_path / "pipe", os.urandom(1_000_000), []
    os.mkfifo(pipe)
    # Somebody reads it from the beginning on, and the thread until there is nobody to write.
    first = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    results.check(str(pipe))
    results.write(str(pipe), body)
    reader.join()
    os.close(first)
    assert got == [body] and pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_a_pipe_without_a_reader_is_an_error_and_no_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Untrusted, match="No such device"):
        results.write(str(tmp_path / "pipe"), "all")


def test_a_device_is_written_to():
    for device in ("/dev/null", "/dev/full"):
        results.check(device)
    results.write("/dev/null", "all")
    with pytest.raises(Untrusted, match="No space left"):
        results.write("/dev/full", "all")
    assert not os.path.isfile("/dev/null") and not os.path.isfile("/dev/full")


WRITES = "from ci import results; print('before'); results.write({!r}, 'all\\n'); print('after')"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_name_is_where_the_rest_goes(tmp_path, name):
    """Also where it leads to a file, which is neither cut short nor replaced."""
    with (tmp_path / "said").open("w") as said:
        subprocess.run(
            [sys.executable, "-c", WRITES.format(name)], stdout=said, cwd=ROOT, check=True
        )
    assert (tmp_path / "said").read_text() == "before\nall\nafter\n"


@pytest.mark.parametrize("command", ["triage", "bench handshake --rounds 1 --count 1 --kind full"])
def test_a_command_writes_into_what_a_shell_calls_a_file(command):
    """`--json >(...)`: the name of a descriptor, which a process that is begun anew has too."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "ci", *command.split(), "--json", f"/dev/fd/{write}"],
            pass_fds=[write], cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        os.close(write)
        assert done.returncode == 0 and file.read(1) in (b"[", b"{")
