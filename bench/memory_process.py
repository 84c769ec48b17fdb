"""The process whose memory is measured: one engine with its connections and nothing else.

It is started afresh by `bench.memory` and told over a socket pair what to do, one frame at a time:
an operation, a slot, the bytes that came for it. The clients live in the process that asks.
"""

import argparse
import gc
import os
import socket
import struct
import sys
from pathlib import Path

from bench import peers
from ci.exits import Exit
from engine import Engine, Event

FRAME = struct.Struct(">cII")
LENGTH = struct.Struct(">I")

SERVE, FEED, DROP, RESIDENT, SUMMARY = b"S", b"F", b"D", b"R", b"A"


def read_exactly(pipe: socket.socket, length: int) -> bytes:
    """`length` bytes; fewer are the end of the other side."""
    parts = bytearray()
    while len(parts) < length:
        part = pipe.recv(length - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def resident(pid: int | str = "self") -> int:
    """Anonymous and shared memory and what was swapped out, in KiB. Files' pages do not count."""
    wanted = {"RssAnon", "RssShmem", "VmSwap"}
    total = 0
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key in wanted:
            total += int(value.split()[0])
    return total


class MemoryProcess:
    """The engine and the room that its output passes through."""

    def __init__(self, args: argparse.Namespace, identity: peers.Identity, roots: bytes) -> None:
        self.engine = Engine.server(args.count, args.areas)
        if args.resting is not None:
            self.engine.set_resting(args.resting)
        self.engine.seed(os.urandom(32))
        self.engine.add_identity(identity.chain, identity.key, [peers.NAME], args.now_ms)
        if roots:
            self.engine.trust_clients(roots)
            self.engine.client_auth_mode(2)
        self.now_ms: int = args.now_ms
        self.out = memoryview(bytearray(peers.WHOLE))
        self.plain = memoryview(bytearray(peers.WHOLE))

    def answer(self, operation: bytes, slot: int, data: bytes) -> bytes | memoryview:
        """One operation. An engine that refuses ends the process: the run is then not trusted."""
        if operation == SERVE:
            self.engine.serve(slot, self.now_ms)
        elif operation == FEED:
            return self.feed(slot, data)
        elif operation == DROP:
            self.engine.drop(slot)
        elif operation == RESIDENT:
            gc.collect()
            return LENGTH.pack(resident())
        elif operation == SUMMARY:
            engine = self.engine
            counts = engine.areas(), engine.areas_free(), engine.areas_resting(), engine.residue()
            return struct.pack(">4I", *counts)
        return b""

    def feed(self, slot: int, data: bytes) -> memoryview:
        """Give the engine what came, echo what it makes of it, answer what goes out.

        The first four bytes say how much was taken: without an area to be had it is not all.
        """
        engine, at, filled = self.engine, 0, LENGTH.size
        while True:
            taken = engine.feed(slot, data[at:]) if at < len(data) else 0
            at += taken
            moved = taken
            while (length := engine.recv(slot, self.plain)) > 0:
                if engine.send(slot, self.plain[:length]) != length:
                    raise peers.Untrusted("an echo was not taken whole")
                filled += engine.take(slot, self.out[filled:])
                moved += length
            filled += engine.take(slot, self.out[filled:])
            if not moved:
                break
        if engine.event(slot) is Event.FAILED:
            raise peers.Untrusted(f"a connection failed: {engine.failure(slot)}")
        LENGTH.pack_into(self.out, 0, at)
        return self.out[:filled]


def main() -> int:
    """Serve frames until the other side closes."""
    parser = argparse.ArgumentParser(prog="bench.memory_process")
    parser.add_argument("descriptor", type=int)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--areas", type=int)
    parser.add_argument("--resting", type=int)
    parser.add_argument("--now-ms", type=int, required=True)
    args = parser.parse_args()
    with socket.socket(fileno=args.descriptor) as pipe:
        chain, key, roots = (
            read_exactly(pipe, LENGTH.unpack(read_exactly(pipe, 4))[0]) for _ in range(3)
        )
        process = MemoryProcess(args, peers.Identity(chain, key), roots)
        while True:
            try:
                operation, slot, length = FRAME.unpack(read_exactly(pipe, FRAME.size))
            except EOFError:
                return 0
            answer = process.answer(operation, slot, read_exactly(pipe, length))
            pipe.sendall(LENGTH.pack(len(answer)))
            pipe.sendall(answer)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except peers.Untrusted as error:
        print(f"residue bench: {error}", file=sys.stderr)
        sys.exit(Exit.UNTRUSTED)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
