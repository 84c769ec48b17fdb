"""The process whose memory is searched: one engine, told over its standard input what to do.

It never holds a secret that its engine did not make or was not given: the clients, and everything
they know, live in the process that asks. What must be handed over (the seed, a ticket key) is read
into a bytearray and wiped.
"""

import ctypes
import gc
import json
import struct
import sys
from typing import IO

from engine import Engine

FRAME = struct.Struct(">cBI")
NOW_MS = 1_800_000_000_000
ROOM = 1 << 16


def read_into(stream: IO[bytes], length: int) -> bytearray:
    """Exactly so many bytes, in memory that can be wiped."""
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = stream.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        view = view[count:]
    return data


class SecretsProcess:
    """The engine and its calls, by letters."""

    def __init__(self) -> None:
        self.engine = Engine.server(4, 2)
        self.room = memoryview(bytearray(ROOM))

    def answer(self, operation: str, slot: int, data: bytearray) -> bytes:
        """Carry one call out; the bytes to answer with."""
        engine = self.engine
        if operation == "K":
            engine.seed(data[:32])
            engine.set_tickets(1, 3_600)
            engine.set_ticket_keys([memoryview(data)[32:64]], NOW_MS)
            data[:] = bytes(len(data))
        elif operation == "I":
            chain, _, key = bytes(data).partition(b"\0")
            engine.add_identity(chain, key, ["server.example"], NOW_MS)
        elif operation == "C":
            engine.trust_clients(bytes(data))
            engine.client_auth_mode(1)
        elif operation == "S":
            engine.serve(slot, NOW_MS)
        elif operation == "F":
            return self._feed(slot, data)
        elif operation == "D":
            engine.drop(slot)
        elif operation == "M":
            gc.collect()
            return json.dumps(self._maps()).encode()
        return b""

    def _feed(self, slot: int, data: bytearray) -> bytes:
        """Feed, give back what was received, and take."""
        engine, room = self.engine, self.room
        engine.feed(slot, data)
        while (count := engine.recv(slot, room)) > 0:
            engine.send(slot, room[:count])
        out = b""
        while count := engine.take(slot, room):
            out += bytes(room[:count])
        return out

    def _maps(self) -> dict[str, list[int]]:
        """Where the engine's own maps are, so that a copy found there can be told from others."""
        pool = self.engine._pool
        found = {}
        for name in ("_core_map", "_area_map", "_room_map"):
            memory = getattr(pool, name)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            found[name.strip("_")] = [address, len(memory)]
        return found


def main() -> None:
    """Answer until the other side goes away."""
    process = SecretsProcess()
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            operation, slot, length = FRAME.unpack(bytes(read_into(stdin, FRAME.size)))
            data = read_into(stdin, length)
        except EOFError:
            return
        said = process.answer(operation.decode(), slot, data)
        stdout.write(struct.pack(">I", len(said)) + said)
        stdout.flush()


if __name__ == "__main__":
    main()
