"""The two things whose memory is measured: the engine alone, and the server of this project.

Both are another process, so that the clients' memory is not counted, and both are driven by the
same few calls: connect, send, receive, and how much is resident.
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from bench import memory_process, peers, rerun

PATIENCE = 30.0
"""Seconds after which a server that says nothing has failed."""
_SETTLING = 0.5
"""Seconds that a server gets to finish what it was sent before its memory is read."""
_ADDRESSES = 12
"""connect() slows down past some 14,000 connections to one address, so they are spread."""


class Target(Protocol):
    """Connections by number, in a process that can be weighed."""

    def connect(self, slot: int) -> None:
        """Open a connection; no byte is sent."""

    def send(self, slot: int, data: bytes) -> int:
        """Give it bytes; answers how many were taken."""

    def receive(self, slot: int) -> bytes:
        """What it answered, waiting for it where there is something to wait for."""

    def resident(self) -> int:
        """KiB: RssAnon, RssShmem and VmSwap together."""

    def check(self) -> None:
        """Raise Untrusted when what must hold at the end does not."""

    def __enter__(self) -> Self:
        """Start the process."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the process."""


class EngineProcess:
    """An engine in a process of its own (`bench.memory_process`)."""

    def __init__(
        self, count: int, areas: int | None, resting: int | None, roots: bytes | None = None
    ) -> None:
        """With `roots`, PEM, every client must show a certificate."""
        ours, theirs = socket.socketpair()
        child = [sys.executable, "-m", "bench.memory_process", str(theirs.fileno())]
        child += ["--count", str(count), "--now-ms", str(time.time_ns() // 1_000_000)]
        if areas is not None:
            child += ["--areas", str(areas)]
        if resting is not None:
            child += ["--resting", str(resting)]
        with theirs:
            self._process = subprocess.Popen(
                child, pass_fds=[theirs.fileno()], env=rerun.environment()
            )
        self._pipe = ours
        self._answers: dict[int, bytes] = {}
        identity = peers.identity()
        for part in (identity.chain, identity.key, roots or b""):
            ours.sendall(memory_process.LENGTH.pack(len(part)) + part)

    def _ask(self, operation: bytes, slot: int = 0, data: bytes = b"") -> bytes:
        try:
            self._pipe.sendall(memory_process.FRAME.pack(operation, slot, len(data)) + data)
            length = memory_process.LENGTH.unpack(memory_process.read_exactly(self._pipe, 4))[0]
            return memory_process.read_exactly(self._pipe, length)
        except (EOFError, OSError):
            raise peers.Untrusted("the process that holds the engine ended") from None

    def connect(self, slot: int) -> None:
        """A connection is served; nothing was read for it."""
        self._ask(memory_process.SERVE, slot)

    def send(self, slot: int, data: bytes) -> int:
        """Feed; what goes out for it is kept until `receive`."""
        answer = self._ask(memory_process.FEED, slot, data)
        self._answers[slot] = answer[4:]
        return int(memory_process.LENGTH.unpack(answer[:4])[0])

    def receive(self, slot: int) -> bytes:
        """What went out at the last `send`; asked twice, nothing more will come."""
        answer = self._answers.pop(slot, b"")
        if not answer:
            raise peers.Untrusted("the engine has no more to say")
        return answer

    def resident(self) -> int:
        """As the process itself reads it, garbage collected before."""
        return int(memory_process.LENGTH.unpack(self._ask(memory_process.RESIDENT))[0])

    def check(self) -> None:
        """Nothing may be left of what the connections moved."""
        areas, free, resting, residue = struct.unpack(">4I", self._ask(memory_process.SUMMARY))
        if residue:
            raise peers.Untrusted(f"residue {residue} ({areas} areas, {free} free, {resting} rest)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipe.close()
        self._process.wait(PATIENCE)


class ServerProcess:
    """`residue serve echo` and real sockets to it."""

    def __init__(
        self, count: int, areas: int | None, handshakes: int, roots: bytes | None = None
    ) -> None:
        """With `roots`, PEM, every client must show a certificate."""
        self._folder = tempfile.TemporaryDirectory()
        self._sockets: dict[int, socket.socket] = {}
        identity = peers.identity()
        Path(self._folder.name, "chain.pem").write_bytes(identity.chain)
        Path(self._folder.name, "key.pem").write_bytes(identity.key)
        binds = [f"127.0.0.{number + 1}" for number in range(_ADDRESSES)]
        child = [
            sys.executable,
            "-m",
            "ci",
            "serve",
            "echo",
            "--dir",
            self._folder.name,
            "--port",
            "0",
            "--connections",
            str(count + 64),
            "--handshakes",
            str(handshakes),
            "--rate",
            "1000000",
            "--idle",
            "3600000",
            "--handshake-timeout",
            "3600000",
        ]
        for bind in binds:
            child += ["--bind", bind]
        if areas is not None:
            child += ["--areas", str(areas)]
        if roots is not None:
            Path(self._folder.name, "clients.pem").write_bytes(roots)
            child += ["--client-ca", "clients.pem", "--require-client-cert"]
        self._log = Path(self._folder.name, "log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                child, stdout=log, stderr=subprocess.STDOUT, env=rerun.environment()
            )
        self._listening = self._wait(len(binds))

    def _wait(self, wanted: int) -> list[tuple[str, int]]:
        """The addresses, once the server has printed all of them."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            lines = self._log.read_text(encoding="ascii", errors="replace").splitlines()
            found = [
                line.split()[1].rpartition(":") for line in lines if line.startswith("listening ")
            ]
            if len(found) == wanted:
                return [(address, int(port)) for address, _, port in found]
            time.sleep(0.05)
        raise peers.Untrusted("the server did not start: " + self._log.read_text(errors="replace"))

    def connect(self, slot: int) -> None:
        """A TCP connection."""
        address = self._listening[slot % len(self._listening)]
        try:
            self._sockets[slot] = socket.create_connection(address, PATIENCE)
        except OSError as error:
            raise peers.Untrusted(f"the server takes no connection: {error}") from None

    def send(self, slot: int, data: bytes) -> int:
        """All of it: the kernel keeps what the server does not read yet."""
        try:
            self._sockets[slot].sendall(data)
        except OSError as error:
            raise peers.Untrusted(f"the server reads no more: {error}") from None
        return len(data)

    def receive(self, slot: int) -> bytes:
        """What has come; waits for the first byte."""
        try:
            data = self._sockets[slot].recv(peers.WHOLE)
        except OSError as error:
            raise peers.Untrusted(f"the server does not answer: {error}") from None
        if not data:
            raise peers.Untrusted("the server closed a connection")
        return data

    def resident(self) -> int:
        """Of the server's process, once it has had time to come to rest."""
        time.sleep(_SETTLING)
        return memory_process.resident(self._process.pid)

    def check(self) -> None:
        """The server must still run."""
        if self._process.poll() is not None:
            raise peers.Untrusted(f"the server ended with {self._process.returncode}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        for link in self._sockets.values():
            link.close()
        self._process.wait(PATIENCE)
        self._folder.cleanup()


def descriptors() -> int:
    """How many connections this process may open, some kept for itself."""
    return os.sysconf("SC_OPEN_MAX") - 64
