"""examples/echo.py, against Python's own TLS and against whoever means it no good."""

import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.examples.running import ECHO, ROOT, Echo, command
from tests.servers.running import WAIT, close, connect, context, dial, echo, sealed

LARGE = bytes(range(251)) * 4_000
MANUAL = ROOT / "docs" / "engine.md"
RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing resets the connection."""


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that comes."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def both_ways(client: ssl.SSLSocket, data: bytes) -> bytes:
    """What comes back of more than the sockets' buffers hold. By one thread: before Python 3.13 two
    that read and write one TLS connection do not keep out of each other's way."""
    got, left = b"", memoryview(data)
    client.setblocking(False)
    while len(got) < len(data):
        try:
            piece = client.recv(1 << 16)
            assert piece
            got += piece
        except ssl.SSLWantReadError:
            with suppress(ssl.SSLWantWriteError):
                left = left[client.send(left) :] if left else left
            assert any(select.select([client], [client] if left else [], [], WAIT))
    client.settimeout(WAIT)
    return got


def closed(raw: socket.socket) -> bytes:
    """All that is left to read of a connection that the server ends."""
    raw.settimeout(WAIT)
    got = b""
    while piece := raw.recv(1 << 16):
        got += piece
    return got


def test_the_manual_shows_it_as_it_is() -> None:
    shown = re.findall(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    assert ECHO.read_text() in shown


def test_it_is_typed(tmp_path: Path) -> None:
    copy = tmp_path / "echo_example.py"
    copy.write_text(ECHO.read_text().replace("from residue_tls ", "from engine "))
    mypy = [sys.executable, "-m", "mypy", "--config-file", "setup.cfg", "--strict", str(copy)]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_runs_by_its_name(tmp_path: Path, identity: Path) -> None:
    chain, key = identity / "chain.pem", identity / "key.pem"
    with command(tmp_path, ECHO, "0", str(chain), str(key)) as server:
        assert server.stdout is not None
        try:
            found = re.fullmatch(r"listening on port (\d+)\n", server.stdout.readline())
            assert found
            client = connect(int(found[1]), context(chain))
            assert echo(client, b"hello") == b"hello"
            close(client)
        finally:
            server.kill()


def test_large_transfers_come_back_whole(identity: Path) -> None:
    with Echo(identity) as server:
        client = connect(server.port, context(identity / "chain.pem"))
        assert both_ways(client, LARGE) == LARGE
        close(client)


def test_many_clients_share_few_areas(identity: Path) -> None:
    made = context(identity / "chain.pem")
    answers: list[bytes] = []

    def talk() -> None:
        client = connect(server.port, made)
        answers.append(both_ways(client, LARGE[:200_000]))
        close(client)

    with Echo(identity, SLOTS=12, AREAS=1) as server:
        clients = [threading.Thread(target=talk) for _ in range(12)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(WAIT)
    assert answers == [LARGE[:200_000]] * 12


def test_who_is_idle_or_silent_needs_no_area(identity: Path) -> None:
    made = context(identity / "chain.pem")
    with Echo(identity, SLOTS=22, AREAS=2) as server:
        silent = [dial(server.port) for _ in range(2)]
        clients = [connect(server.port, made) for _ in range(20)]
        for number, client in enumerate(clients):
            assert echo(client, bytes([number])) == bytes([number])
        for client in clients:
            close(client)
        for raw in silent:
            raw.close()


def test_who_says_close_notify_first_hears_all_answers(identity: Path) -> None:
    with Echo(identity) as server:
        raw, record, answers = sealed(server.port, context(identity / "chain.pem"))
        raw.sendall(b"".join(record(bytes([number]) * 16_000) for number in range(5)))
        assert answers() == b"".join(bytes([number]) * 16_000 for number in range(5))
        assert closed(raw) == b""
        raw.close()


def test_a_connection_cut_off_ends_alone(identity: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = context(identity / "chain.pem")
    with Echo(identity, SLOTS=4, AREAS=2) as server:
        honest = connect(server.port, made)
        cut = connect(server.port, made)
        cut.sendall(LARGE[:100_000])  # of which nothing is read: its reset meets answers
        cut.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        cut.close()
        half = dial(server.port)
        half.sendall(b"\x16\x03\x01\x01")
        half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        half.close()
        ended = dial(server.port)
        ended.sendall(b"\x16\x03\x01\x01")
        ended.close()
        until(lambda: server.tls.areas_free() == 2)
        assert echo(honest, b"still here") == b"still here"
        close(honest)
    assert "Error" not in capfd.readouterr().err.replace("ConnectionResetError", "")


def test_what_is_no_tls_gets_an_alert_and_is_closed(identity: Path) -> None:
    with Echo(identity) as server:
        raw = dial(server.port)
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n"[:5])
        assert closed(raw) == bytes([21, 3, 3, 0, 2, 2, 10])
        raw.close()


def test_one_connection_over_the_slots_is_closed_at_once(identity: Path) -> None:
    with Echo(identity, SLOTS=2, AREAS=2) as server:
        silent = [dial(server.port) for _ in range(2)]
        with dial(server.port) as third:
            assert closed(third) == b""
        silent.pop().close()
        until(lambda: server.asked > 0 and _served(server, identity))
        silent.pop().close()


def _served(server: Echo, identity: Path) -> bool:
    """Whether there is a slot for one more; it goes again."""
    try:
        client = connect(server.port, context(identity / "chain.pem"))
    except OSError:
        return False
    close(client)
    return True


def test_who_holds_the_areas_is_ended_for_those_who_wait(identity: Path) -> None:
    made = context(identity / "chain.pem")
    with Echo(identity, SLOTS=8, AREAS=2, PATIENCE_S=1.5) as server:
        holding = [dial(server.port) for _ in range(2)]
        for raw in holding:
            raw.sendall(b"\x16\x03\x01\x01")
        until(lambda: server.tls.areas_free() == 0)
        client = connect(server.port, made)
        assert echo(client, b"at last") == b"at last"
        for raw in holding:
            assert closed(raw) == b""
            raw.close()
        close(client)


def test_who_does_not_read_is_ended(identity: Path) -> None:
    with Echo(identity, PATIENCE_S=1.5) as server:
        raw, record, _ = sealed(server.port, context(identity / "chain.pem"))
        raw.settimeout(WAIT)
        with pytest.raises(OSError):
            while True:
                raw.sendall(record(bytes(16_000)))
        raw.close()


def test_nobody_makes_it_spin(identity: Path) -> None:
    """One holds the only area, one waits for it, one is established and silent, one has closed and
    reads nothing, one is connected and has said nothing."""
    with Echo(identity, SLOTS=8, AREAS=1) as server:
        idle = connect(server.port, context(identity / "chain.pem"))
        assert echo(idle, b"here") == b"here"
        gone, record, _ = sealed(server.port, context(identity / "chain.pem"))
        gone.sendall(record(b"here"))
        gone.shutdown(socket.SHUT_WR)
        closed(gone)
        holding, waiting, silent = (dial(server.port) for _ in range(3))
        holding.sendall(b"\x16\x03\x01\x01")
        until(lambda: server.tls.areas_free() == 0)
        waiting.sendall(b"\x16\x03\x01\x01")
        time.sleep(0.2)
        asked = server.asked
        time.sleep(1)
        # Once a second by itself.
        assert server.asked - asked <= 3
        for raw in (idle, gone, holding, waiting, silent):
            raw.close()
