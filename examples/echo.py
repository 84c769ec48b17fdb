"""A TLS 1.3 echo server, one thread for all connections: python echo.py PORT chain.pem key.pem"""

import math
import selectors
import socket
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes

from residue_tls import END, FAILED, Engine, Event, Refused

SLOTS, AREAS = 500, 64  # connections, fewer than descriptors; how many of them have bytes under way
PATIENCE_S = 30.0  # for a handshake, and from one echo to the next
AREA, READ, WRITE = 0, selectors.EVENT_READ, selectors.EVENT_WRITE  # what a step can wait for
BUFFER = bytearray(32_768)  # for all: nothing stays in it while one waits

Steps = Generator[tuple[int, float], None, None]  # what the next step waits for, and until when
Tasks = list[tuple[socket.socket, Steps]]


def echo(engine: Engine, free: list[int], peer: socket.socket) -> Steps:
    slot, unsent, said, until = free.pop(), b"", False, time.monotonic() + PATIENCE_S
    try:
        yield READ, until  # who says nothing gets no area
        unfed = peer.recv(len(BUFFER))
        while engine.event(slot) == Event.FREE:
            try:
                engine.serve(slot, time.time_ns() // 1_000_000)
            except Refused:  # tls-pool: no area is free
                yield AREA, until
        while True:
            if count := engine.take(slot, BUFFER):
                unwritten = bytes(BUFFER[:count])
                while unwritten:
                    yield WRITE, until
                    unwritten = unwritten[peer.send(unwritten) :]
            elif unsent and not engine.failure(slot):
                unsent = unsent[(taken := engine.send(slot, unsent)) :]
                if not taken:  # and nothing is left to take: no area is free
                    yield AREA, until
            elif (count := engine.recv(slot, BUFFER)) > 0:
                unsent, until = bytes(BUFFER[:count]), time.monotonic() + PATIENCE_S
            elif count == FAILED or said:
                return
            elif count == END:
                said = engine.finish(slot)
                if not said:
                    yield AREA, until
            elif unfed:
                unfed = unfed[(taken := engine.feed(slot, unfed)) :]
                if not taken:  # and nothing is left to take or to receive: no area is free
                    yield AREA, until
            else:
                yield READ, until
                unfed = peer.recv(len(BUFFER))
                if not unfed:
                    engine.eof(slot)  # a failure, unless the peer has said close_notify
    except Exception as fault:  # OSError: a reset; any other is a defect, and ends this one alone
        print(f"slot {slot}: {fault!r}", file=sys.stderr)
    finally:
        if engine.event(slot) != Event.FREE:
            engine.drop(slot)
        free.append(slot)
        peer.close()


def accept(engine: Engine, listener: socket.socket, tasks: Tasks) -> Steps:
    free = list(range(SLOTS))
    while True:
        yield READ, math.inf
        with suppress(OSError):  # a client that is gone again
            peer, _ = listener.accept()
            peer.setblocking(False)
            if free:
                tasks.append((peer, echo(engine, free, peer)))
            else:
                peer.close()


def serve(engine: Engine, listener: socket.socket) -> None:
    selector, tasks = selectors.DefaultSelector(), Tasks()
    tasks.append((listener, accept(engine, listener, tasks)))
    while True:
        ready, tasks[:] = tasks[:], []
        for sock, steps in ready:
            waits, until = next(steps, (None, 0.0))
            if waits:
                selector.register(sock, waits, (sock, steps, until))
            elif waits == AREA:
                tasks.append((sock, steps))
        # An area comes free in another connection's step, and no socket tells of it.
        for key, _ in selector.select(0 if tasks and engine.areas_free() else 1):
            selector.unregister(key.fileobj)
            tasks.append(key.data[:2])
        for sock, steps, until in [key.data for key in selector.get_map().values()]:
            if until < time.monotonic():
                selector.unregister(sock)
                steps.close()


if __name__ == "__main__":
    port, chain, key = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    tls = Engine.server(SLOTS, AREAS)
    tls.seed(token_bytes(32))
    now_ms = time.time_ns() // 1_000_000
    tls.add_identity(chain.read_bytes(), key.read_bytes(), ["localhost"], now_ms)
    with socket.create_server(("127.0.0.1", port)) as server:
        print(f"listening on port {server.getsockname()[1]}", flush=True)
        serve(tls, server)
