"""Foreign servers: they are started on the loopback interface, and end with the block."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci.commands import play_identities
from ci.commands.play import Target
from ci.process import ROOT
from peers.liar.suites import HANDSHAKE
from peers.servers import KINDS, MODES, Absent, foreign, start
from tests.tools import PATIENCE


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identities")
    play_identities.write(folder)
    return folder


@pytest.mark.parametrize("kind", ["openssl", "nginx", "node"])
def test_a_server_answers_on_loopback_and_ends(kind: str, files: Path) -> None:
    program = KINDS[kind].program
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (one,) = (c for c in HANDSHAKE.conversations if c.name == "hello-cut-at-1")
    with start(kind, files) as server:
        host, _, port = server.address.partition(":")
        assert (host, int(port)) == ("127.0.0.1", server.port)
        played = Target(host, server.port, HANDSHAKE.setup, 0.5).play(one, float("inf"))
        assert (played.what, played.detail) == ("right", "")
    assert server.process.returncode is not None
    with pytest.raises(OSError):
        socket.create_connection((host, server.port), timeout=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"go"}))
def test_every_file_and_port_of_a_command_is_what_it_was_given(
    kind: str, mode: str, files: Path, tmp_path: Path
) -> None:
    place = foreign.Place(files, tmp_path, 4433, mode)
    command = KINDS[kind].command(place)
    config = tmp_path / "nginx.conf"
    said = " ".join(command) + (config.read_text() if config.exists() else "")
    assert "4433" in said
    own = kind in ("node", "java", "rustls")
    assert (f" {mode}" in said) if own else ("client-ca.pem" in said) == place.asks
    for word in command:
        if word.startswith("/"):
            assert Path(word).exists() or word.endswith(".log"), word


def test_a_server_that_is_not_installed_is_absent(files: Path, monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "none", replace(KINDS["openssl"], program="no-such-program"))
    with pytest.raises(Absent, match="is not installed"), start("none", files):
        pass


def test_a_server_that_ends_at_once_is_absent_with_what_it_said(files: Path, monkeypatch) -> None:
    script = [sys.executable, "-c", "print('not today')"]
    kind = foreign.Kind(sys.executable, (sys.executable, "--version"), lambda place: script)
    monkeypatch.setitem(KINDS, "brief", kind)
    with pytest.raises(Absent, match="not today"), start("brief", files):
        pass


def test_a_server_that_listens_everywhere_is_not_started_here(files: Path, monkeypatch) -> None:
    kind = replace(KINDS["openssl"], program=sys.executable, version=(sys.executable, "--version"))
    monkeypatch.setitem(KINDS, "open", replace(kind, anywhere=True))
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    with pytest.raises(Absent, match="every interface"), start("open", files):
        pass


def test_a_mode_is_one_of_four(files: Path) -> None:
    with pytest.raises(ValueError, match="a mode is one of"), start("openssl", files, "loud"):
        pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_command_ends_as_what_it_ran(files: Path) -> None:
    says = "import sys; print(sys.argv[1]); sys.exit(7)"
    command = [sys.executable, "-m", "peers.servers", "openssl", str(files)]
    ran = subprocess.run(
        [*command, "--", sys.executable, "-c", says, "{}"], cwd=ROOT, capture_output=True,
        text=True, timeout=PATIENCE, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert ran.returncode == 7 and ran.stdout.startswith("127.0.0.1:")
