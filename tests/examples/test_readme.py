"""The program of the two READMEs is one, is typed, and runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.running import ROOT, command
from tests.servers.running import close, connect, context, dial, echo

READMES = ROOT / "README.md", ROOT / "engine" / "README.md"


def block(kind: str, page: Path = READMES[0]) -> str:
    """The first block of code of a kind."""
    found = re.search(rf"```{kind}\n(.*?)```", page.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_both_show_the_same_program() -> None:
    assert block("python") == block("python", READMES[1])


def test_it_is_typed(tmp_path: Path) -> None:
    copy = tmp_path / "readme_example.py"
    copy.write_text(block("python").replace("from residue_tls ", "from engine "))
    mypy = [sys.executable, "-m", "mypy", "--config-file", "setup.cfg", "--strict", str(copy)]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_it_runs_with_the_files_that_its_commands_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["sh", "-ec", block("sh")], check=True, capture_output=True)
    program = tmp_path / "server.py"
    listening = "listener = socket.create_server(("
    changed = re.sub(r'("127.0.0.1"), 4433\)\)\n', r"\1, 0))\nprint(listener.getsockname()[1])\n",
                     block("python"))  # fmt: skip
    assert listening in changed and "getsockname" in changed
    program.write_text(changed)
    with command(tmp_path, program) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            for size in (10, 100_000):
                client = connect(port, context(tmp_path / "chain.pem"))
                for start in range(0, size, 5_000):
                    assert echo(client, bytes(min(5_000, size - start)))
                close(client)
            with dial(port) as raw:
                raw.sendall(b"hello")
                assert raw.recv(100) == bytes([21, 3, 3, 0, 2, 2, 10])
            client = connect(port, context(tmp_path / "chain.pem"))
            assert echo(client, b"still here") == b"still here"
            close(client)
        finally:
            server.kill()
