"""Servers on a port of this machine that are honest, or nothing like one, for tests of a client."""

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable

from peers.liar.identities import NOW_MS
from peers.liar.suites import SUITES
from peers.memory import EngineServer

Behaviour = Callable[[socket.socket], None]


class Tiny:
    """Each connection is given to a behaviour, in a thread of its own."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.count = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Tiny":
        return self

    def __exit__(self, *_: object) -> None:
        # Only a shutdown wakes the thread that accepts; a close would leave it, and the port.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        # Whatever fails: the client left.
        with plain, contextlib.suppress(OSError):
            self.behaviour(plain)


def honest(plain: socket.socket, damage: Callable[[bytes], bytes] = bytes) -> None:
    """The engine itself, as suite handshake needs it; ``damage`` is done to what it says."""
    server = EngineServer()
    server.prepare(SUITES["handshake"].setup, NOW_MS)
    connection = server.connect()
    while not connection.ended:
        data = plain.recv(65536)
        if not data:
            return connection.close()
        said = connection.exchange(data)
        if said:
            plain.sendall(damage(said))


def hangs(plain: socket.socket) -> None:
    while plain.recv(65536):
        pass


def closes(plain: socket.socket) -> None:
    plain.recv(65536)


def resets(plain: socket.socket) -> None:
    plain.recv(65536)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def alerts(plain: socket.socket) -> None:
    """handshake_failure to whatever it is told."""
    plain.recv(65536)
    plain.sendall(bytes.fromhex("15030300020228"))
    plain.shutdown(socket.SHUT_WR)
    hangs(plain)


def babbles(plain: socket.socket) -> None:
    """Empty application data for ever, which no client needs to listen to."""
    while True:
        plain.sendall(bytes.fromhex("1703030000") * 64)


def mumbles(plain: socket.socket) -> None:
    """Bytes that mean nothing."""
    plain.recv(65536)
    plain.sendall(random.Random(7).randbytes(3000))
    hangs(plain)


def stutters(seed: int) -> Behaviour:
    """Honest, but for a few bytes of each answer."""
    choice = random.Random(seed)

    def damage(said: bytes) -> bytes:
        raw = bytearray(said)
        for _ in range(choice.randint(1, 3)):
            raw[choice.randrange(len(raw))] ^= 1 << choice.randrange(8)
        cut = choice.randrange(len(raw)) if choice.random() < 0.2 else len(raw)
        return bytes(raw[:cut]) or b"\0"

    return lambda plain: honest(plain, damage)
