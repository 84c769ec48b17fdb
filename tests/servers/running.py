"""A server as an operator runs it, in a process of its own, and the clients that talk to it."""

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

WAIT = 20.0
"""Seconds that anything may take on a busy machine before a test says it did not happen."""

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


class Server:
    """`residue serve echo` with some options; a context manager that ends it."""

    def __init__(self, directory: Path, *options: str, port: int = 0) -> None:
        self._lines: list[str] = []
        self._arrived = threading.Condition()
        command = [sys.executable, "-m", "ci", "serve", "echo", "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, "--dir", str(directory), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        ]
        self._readers[0].start()
        self.address = self.line(r"listening (\S+)")[1]
        self.port = int(self.address.rpartition(":")[2])

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT)
        for reader in self._readers:
            reader.join(WAIT)
        self.errors = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()

    def _read(self, stream) -> None:
        for line in stream:
            with self._arrived:
                self._lines.append(line.rstrip("\n"))
                self._arrived.notify_all()
        with self._arrived:
            self._lines.append("")
            self._arrived.notify_all()

    def lines(self, pattern: str = "") -> list[re.Match[str]]:
        """The lines so far that the pattern matches whole."""
        with self._arrived:
            found = [re.fullmatch(pattern or ".+", line) for line in self._lines]
        return [match for match in found if match]

    def line(self, pattern: str, count: int = 1) -> re.Match[str]:
        """The `count`th line that the pattern matches whole, waited for."""
        end = time.monotonic() + WAIT
        with self._arrived:
            while True:
                found = [m for line in self._lines if (m := re.fullmatch(pattern, line))]
                if len(found) >= count:
                    return found[count - 1]
                left = end - time.monotonic()
                if left <= 0 or "" in self._lines:
                    raise AssertionError(f"no line {pattern!r} in {self._lines}")
                self._arrived.wait(left)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> tuple[int, float]:
        """SIGTERM; the exit code, and the seconds it took."""
        start = time.monotonic()
        self.signal(signal.SIGTERM)
        return self.process.wait(WAIT), time.monotonic() - start

    def cpu_seconds(self) -> float:
        """User and system time that the process used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def context(chain: Path, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
    """A client's: TLS 1.3, the server's certificate trusted, its name checked."""
    made = ssl.create_default_context(cafile=str(chain))
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    if alpn:
        made.set_alpn_protocols(list(alpn))
    return made


def dial(port: int, source: str = "127.0.0.1") -> socket.socket:
    """A TCP connection on which nothing was said."""
    return socket.create_connection(("127.0.0.1", port), WAIT, source_address=(source, 0))


def connect(
    port: int,
    made: ssl.SSLContext,
    name: str = "localhost",
    raw: socket.socket | None = None,
    session: ssl.SSLSession | None = None,
) -> ssl.SSLSocket:
    """A TLS connection, maybe with a session to resume."""
    plain = raw or dial(port)
    plain.settimeout(WAIT)
    return made.wrap_socket(
        plain, server_hostname=name, suppress_ragged_eofs=False, session=session
    )


def sealed(
    port: int, made: ssl.SSLContext
) -> tuple[socket.socket, Callable[[bytes], bytes], Callable[[], bytes]]:
    """A connection whose records the test sends as it likes: the socket, what makes the bytes of a
    record from plaintext, and what says close_notify and reads all answers."""
    plain = dial(port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = made.wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            tls.do_handshake()
            plain.sendall(outgoing.read())
            break
        except ssl.SSLWantReadError:
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(1 << 16))

    def record(data: bytes) -> bytes:
        tls.write(data)
        return outgoing.read()

    def answers() -> bytes:
        """Say close_notify, then read until the server's."""
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.unwrap()
        plain.sendall(outgoing.read())
        got = bytearray()
        while True:
            try:
                piece = tls.read(1 << 16)
                got += piece
            except ssl.SSLWantReadError:
                incoming.write(plain.recv(1 << 16))
            except ssl.SSLZeroReturnError:
                return bytes(got)

    return plain, record, answers


def read(client: ssl.SSLSocket, count: int) -> bytes:
    """Exactly so many bytes, or fewer when the stream ends."""
    got = bytearray()
    while len(got) < count:
        piece = client.recv(count - len(got))
        if not piece:
            break
        got += piece
    return bytes(got)


def echo(client: ssl.SSLSocket, data: bytes) -> bytes:
    """What comes back of some bytes."""
    client.sendall(data)
    return read(client, len(data))


def close(client: ssl.SSLSocket) -> None:
    """close_notify both ways; raises when the server's does not come."""
    client.unwrap().close()


def s_client(server: Server, chain: Path, *options: str) -> str:
    """Echo a line with OpenSSL: its standard error."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}"]
    command += ["-CAfile", str(chain), "-verify_return_error", "-quiet", "-no_ign_eof", *options]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            process.stdin.write(b"over here\n")
            process.stdin.flush()
            # Standard input stays open until the answer is there, or s_client leaves before it.
            answer = process.stdout.readline()
            process.stdin.close()
            errors = process.stderr.read().decode()
            assert answer == b"over here\n", errors
            assert process.wait(WAIT) == 0
        finally:
            process.kill()
    return errors
