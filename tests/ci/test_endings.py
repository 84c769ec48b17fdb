"""Whatever breaks is one line and a code, in every command: never a traceback, never 1."""

import errno
import importlib
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest

from ci import endings
from ci.command import COMMANDS, main
from ci.exits import Exit, Interrupted, Untrusted, UsageError
from ci.process import ROOT
from tests.tools import PATIENCE, needs_git

SECRET = "5ec7e7"
LONG = "x" * 300


def no_such_module(name):
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


def on_a_path(number, path="somewhere/else"):
    return OSError(number, os.strerror(number), path)


# What may break inside of a command, the code it is to end with, and what its line says.
BROKEN = {
    "a mistake of ours": (ValueError(SECRET), 3, "ValueError (in tests/ci/test_endings.py:"),
    "a key that is not there": (KeyError(SECRET), 3, "KeyError (in "),
    "an assertion": (AssertionError(SECRET), 3, "AssertionError (in "),
    "no memory": (MemoryError(), 3, "MemoryError (in "),
    "too deep": (RecursionError(), 3, "RecursionError (in "),
    "a full disk": (on_a_path(errno.ENOSPC), 3, "somewhere/else: No space left on device (in "),
    "a failing disk": (on_a_path(errno.EIO), 3, "somewhere/else: Input/output error (in "),
    "a file of ours that is gone": (on_a_path(errno.ENOENT), 3, "No such file or directory (in "),
    "a file that is named and gone": (on_a_path(errno.ENOENT, "named"), 2, "named: No such file"),
    "a named path that is too long": (on_a_path(errno.ENAMETOOLONG, "named"), 2, "too long"),
    "a named file on a full disk": (
        on_a_path(errno.ENOSPC, "named"),
        3,
        "No space left on device (in ",
    ),
    "no descriptors": (OSError(errno.EMFILE, "Too many open files"), 3, "Too many open files (in "),
    "a child that is gone": (BrokenPipeError(errno.EPIPE, "Broken pipe"), 3, "Broken pipe (in "),
    "an extra": (
        no_such_module("mutmut"),
        3,
        "mutmut is not installed: pip install -e '.[mutation]'",
    ),
    "a part of an extra": (no_such_module("libcst.matchers"), 3, "mutmut is not installed"),
    "the package": (no_such_module("cryptography"), 3, "cryptography is not installed"),
    "a module of ours": (no_such_module("ci.nothing"), 3, "ModuleNotFoundError (in "),
    "the wrong words": (UsageError("no\nway"), 2, "no\\nway"),
    "a run for nothing": (Untrusted("no way"), 3, "no way"),
    "a signal": (Interrupted("SIGTERM"), 130, "interrupted"),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_breaks_is_one_line_and_its_code(name, what, capsys, monkeypatch):
    error, code, says = BROKEN[what]

    def breaks(args):
        raise error

    module = importlib.import_module(COMMANDS[name].module)
    monkeypatch.setattr(module, "run", breaks)
    monkeypatch.setattr(module, "add_arguments", lambda parser: parser.add_argument("--file"))
    monkeypatch.delenv(endings.TRACEBACK, raising=False)
    assert main([*name.split(" "), "--file=named"]) == code
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("residue: ")
    assert says in said.err and SECRET not in said.err
    assert (endings.TRACEBACK in said.err) == (" (in " in says)


def test_the_traceback_is_there_for_who_asks(capsys, monkeypatch):
    monkeypatch.setenv(endings.TRACEBACK, "1")
    assert endings.guard(lambda: 1 // 0) == Exit.UNTRUSTED
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and "integer division" in said
    assert re.search(r"^residue: ZeroDivisionError \(in tests/ci/test_endings.py:\d+;", said, re.M)


def test_a_tree_that_cannot_be_copied_says_why(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "gone").symlink_to("nowhere")
    assert endings.guard(lambda: shutil.copytree(tmp_path / "a", tmp_path / "b")) == 3
    assert "No such file or directory: " in capsys.readouterr().err


# Each path that a command line may name, as {}.
NAMED = (
    "fuzz hello --seconds 1 --out {}",
    "fuzz recordings --count 1 --out {}",
    "campaign --seconds 1 --out {}",
    "campaign --seconds 1 --seeds {}",
    "nightly --minutes 1 --out {}",
    "replay hello {}",
    "replay recordings {}",
    "triage {}",
    "triage {} --replay",
    "triage --from {}",
    "triage --known {}",
    "triage --json {}",
    "minimise {}",
    "minimise {} --harness hello",
    "minimise abc --dir {}",
    "minimise corpus/hello/handmade-alpn --harness hello --out {}",
    pytest.param(
        "minimise corpus/hello/handmade-alpn --harness hello --against {}", marks=needs_git
    ),
    "promote {}",
    "promote {} --harness hello",
    "promote abc --dir {}",
    "play --make-identities {}",
    "play 127.0.0.1:1 --ca {}",
    "play 127.0.0.1:1 --client-cert {} {}",
    "mutate {}",
    "mutate --json {}",
    "mutate --merge {}",
    "mutate --catalogue --json {}",
    pytest.param("gate --since {}", marks=needs_git),
    "report {}",
    "serve echo --port 0 --dir {}",
    "bench handshake --json {}",
    "bench records --json {}",
    "bench memory --json {}",
    "bench secrets --json {}",
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    base = tmp_path_factory.mktemp("paths")
    (base / "loop").symlink_to("loop")
    (base / "file").write_text("no folder")
    return {
        "a name that is too long": LONG,
        "a path that is too long": "y/" * 3000 + "z",
        "a link to itself": str(base / "loop"),
        "below a link to itself": str(base / "loop" / "below"),
        "below a file": str(base / "file" / "below"),
    }


@pytest.mark.parametrize("line", NAMED)
def test_a_path_that_cannot_be_is_the_operators(line, paths, capsys, monkeypatch):
    """Told before anything is run: none of these takes a second."""
    monkeypatch.chdir(ROOT)
    for what, path in paths.items():
        assert main([word.replace("{}", path) for word in line.split()]) == Exit.USAGE, what
        assert capsys.readouterr().err.count("\n") == 1, what
    assert not (ROOT / "y").exists()


def residue(*words, prepare=None, **streams):
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "ci", *words],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
        stderr=streams.pop("stderr", subprocess.PIPE),
        stdout=streams.pop("stdout", subprocess.PIPE),
        preexec_fn=prepare,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


SAYS_SOMETHING = ("--help", "fuzz --help", "bench --help", "doctor", "doctor --json -", "triage")


@pytest.mark.parametrize("line", [*SAYS_SOMETHING, "replay hello corpus/hello/handmade-alpn"])
def test_an_output_without_room_is_one_line_and_exit_3(line):
    with open("/dev/full", "w") as full:
        done = residue(*line.split(), stdout=full)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("line", ["--help", "fuzz --help", "doctor", "doctor --json -"])
def test_a_reader_that_goes_away_is_told_nothing(line):
    """Not even by the interpreter, which writes what is left once more when it ends."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = residue(*line.split(), stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_a_stream_that_is_closed_is_noticed_at_once(closed, tmp_path):
    def prepare():
        for number in closed:
            os.close(number)

    folder = tmp_path / "out"
    done = residue("fuzz", "hello", "--seconds", "1", "--out", str(folder), prepare=prepare)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "residue: standard output is closed: what goes there would be lost\n"
        if closed == (1,)
        else ""
    )
    assert not folder.exists()


def test_a_closed_input_is_nothing_to_anybody():
    assert residue("doctor", prepare=lambda: os.close(0)).returncode == 0


def test_errors_that_nobody_can_read_leave_the_code():
    with open("/dev/full", "w") as full:
        assert residue("frobnicate", stderr=full).returncode == Exit.USAGE
        assert residue("doctor", stderr=full).returncode == 0


def test_a_folder_without_room_is_one_line_and_exit_3(tmp_path):
    """No file may be longer than so many bytes, as on a disk that is full."""
    most = 3000
    done = residue(
        *("fuzz", "hello", "--seconds", "1", "--jobs", "1", "--out", str(tmp_path / "out")),
        prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert done.returncode == Exit.UNTRUSTED
    assert "File too large" in done.stderr and "Traceback" not in done.stderr


def test_output_in_an_old_locale_is_escaped_and_not_refused(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = residue("replay", "hello", os.fsdecode("corpus/hello/naïve".encode()))
    assert done.returncode == Exit.USAGE and re.search(r"na\\\w+ve", done.stderr)


@pytest.mark.parametrize("name", ["atheris", "coverage", "git"])
def test_what_a_command_needs_is_looked_for_before_it_begins(name, monkeypatch, capsys, tmp_path):
    fuzz = ["fuzz", "hello", "--seconds", "1", "--out", str(tmp_path / "fuzz")]
    gate = ["gate", "--since", "HEAD", "--out", str(tmp_path / "gate")]
    find, which = importlib.util.find_spec, shutil.which
    monkeypatch.setattr(importlib.util, "find_spec", lambda one: None if one == name else find(one))
    monkeypatch.setattr(shutil, "which", lambda one: None if one == name else which(one))
    assert main(gate if name == "git" else fuzz) == Exit.UNTRUSTED
    said = capsys.readouterr().err
    assert said.startswith(f"residue: {name} is not installed") and said.count("\n") == 1
    assert not list(tmp_path.iterdir())
