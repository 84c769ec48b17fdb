"""Bytes of one connection: descriptor to engine, engine to application, and back.

Back-pressure is the rule that everything here serves: a descriptor is read only when everything
read from it before has been answered and written. So a peer that does not read its answers stops
being read, and the most it can make the server keep is one read, one piece of plaintext and one
piece of output (RFC 8446 has no flow control: TCP's is all there is, and it works only on a reader
that stops).

And a descriptor is read only when the engine could have an area for what comes. With fewer areas
than connections, what cannot be worked on stays in the kernel's buffer, which is bounded, instead
of in ours, one piece for each of a hundred thousand connections. There a record is read when all of
it has come, and never in part: half a record would hold an area for as long as its sender likes
(slowloris), and an honest upload, which stops in the middle of a record at nearly every read, would
hold one from its first byte to its last.

Bytes that had to stop half-way are kept in `held`, an object for a stalled connection and for none
that idles.
"""

import os
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from engine import END, FAILED, WOULD_BLOCK, Engine, Event
from engine.codepoints import ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE
from servers import sockets

READ_SIZE = 32768
HEADER = 5
MAX_FRAGMENT = 2**14 + 256
"""A record's header and its largest fragment (RFC 8446 §5.2)."""

PLAIN_SIZE = 16384
OUT_SIZE = 32768
DISCARD_READS = 8

# As much plaintext as the engine has room for, so that nothing of it waits there for the peer.
_PEEK = HEADER + MAX_FRAGMENT
_TYPES = frozenset((CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA))
_NOTHING = memoryview(b"")
_ZEROS = bytes(PLAIN_SIZE)


class Application(Protocol):
    """What is served: plaintext in, plaintext out."""

    def receive(self, slot: int, data: memoryview) -> memoryview | bytes:
        """The answer to some bytes of a connection. It may be the same memory."""
        ...

    def forget(self, slot: int) -> None:
        """The connection ended."""
        ...


class Wants(Enum):
    """What a connection waits for, or how it ended."""

    READ = "bytes from the peer"
    REST = "the rest of a record, of which nothing was read"
    WRITE = "room to write to the peer"
    AREA = "an area of the engine"
    FINISHED = "nothing: the peer said close_notify and has all its answers"
    FAILED = "nothing: the engine refused"
    LOST = "nothing: the transport is gone"


def whole_records(data: memoryview) -> int:
    """How many bytes at the start of a stream are records that are all there.

    What no record can begin with counts as whole, since there is nothing to wait for: the engine is
    to refuse it.
    """
    end, have = 0, len(data)
    while have - end >= HEADER:
        kind, major, _, high, low = data[end : end + HEADER]
        length = high << 8 | low
        if kind not in _TYPES or major != 3 or length > MAX_FRAGMENT:
            return have
        if end + HEADER + length > have:
            break
        end += HEADER + length
    return end


@dataclass(slots=True)
class Held:
    """What a stalled connection still has under way."""

    output: bytes
    plain: bytes
    input: bytes


class Transfer:
    """Moves bytes for all connections, with one set of buffers."""

    def __init__(
        self, engine: Engine, application: Application, received: memoryview, *, sparing: bool
    ) -> None:
        self._engine = engine
        self._sparing = sparing
        self._application = application
        self._received = received
        self._input = memoryview(bytearray(READ_SIZE))
        self._plain = memoryview(bytearray(PLAIN_SIZE))
        self._plain_used = 0
        self._out = memoryview(bytearray(OUT_SIZE))
        self._unwritten = b""
        self.held: dict[int, Held] = {}

    def read(self, slot: int, fd: int, *, ended: bool = False) -> Wants:
        """The descriptor has something: read once and move it. Only for one that waits to READ.

        `ended` says that nothing follows what is there, so that there is no rest to wait for.
        """
        engine, size = self._engine, READ_SIZE
        try:
            if self._sparing and not ended:
                seen = sockets.peek(fd, self._input[:_PEEK])
                size = whole_records(self._input[:seen])
                if seen and not size:
                    return Wants.REST
            if not engine.holds_area(slot) and not engine.areas_free():
                return Wants.AREA
            count = os.readv(fd, (self._input[:size],))
        except BlockingIOError:
            return Wants.READ
        except OSError:
            count = 0
        if count == 0:
            return self._lost(slot)
        taken = engine.feed(slot, self._input[:count])
        return self._move(slot, fd, self._input[taken:count], _NOTHING)

    def resume(self, slot: int, fd: int) -> Wants:
        """Go on with a connection that found no area, or no room to write."""
        held = self.held.pop(slot, None)
        if held is None:
            return self._move(slot, fd, _NOTHING, _NOTHING)
        data, plain = memoryview(held.input), memoryview(held.plain)
        wants = self._write(slot, fd, memoryview(held.output))
        if wants is not None:
            return self._stall(slot, wants, data, plain)
        return self._move(slot, fd, data, plain)

    def close(self, slot: int, fd: int) -> Wants:
        """Write what is left to say, close_notify with it. FINISHED when all is written; AREA when
        only close_notify is left and there is no area to say it with.

        Answers that were not sent yet are given up: the connection ends.
        """
        held = self.held.pop(slot, None)
        wants = None if held is None else self._write(slot, fd, memoryview(held.output))
        while wants is None:
            said = self._engine.failure(slot) is not None or self._engine.finish(slot)
            written, wants = self._flush(slot, fd)
            if wants is None and said:
                return Wants.FINISHED
            if wants is None and not written:
                # Not said, and nothing of ours is in its way.
                return Wants.AREA
        return self._stall(slot, wants, _NOTHING, _NOTHING)

    def discard(self, fd: int) -> bool:
        """Read and throw away what a peer still sends. False when its side has ended."""
        for _ in range(DISCARD_READS):
            try:
                if os.readv(fd, (self._input,)) == 0:
                    return False
            except BlockingIOError:
                return True
            except OSError:
                return False
        return True

    def forget(self, slot: int) -> None:
        """The connection ended: nothing of it is kept."""
        self.held.pop(slot, None)
        self._application.forget(slot)

    def _move(self, slot: int, fd: int, data: memoryview, plain: memoryview) -> Wants:
        """Plaintext to the application, output to the peer, input to the engine, until none moves.

        Output is written before input is fed, and each turn moves something or is the last.
        """
        engine = self._engine
        while True:
            count, moved = WOULD_BLOCK, 0
            if not plain:
                count = self._receive(slot)
                if count > 0:
                    plain = self._answer(slot, count)
            if plain:
                moved = engine.send(slot, plain)
                plain = plain[moved:]
                if moved and not plain:
                    continue
            written, wants = self._flush(slot, fd)
            if wants is not None:
                return self._stall(slot, wants, data, plain)
            if plain:
                if moved or written:
                    continue
                if engine.event(slot) == Event.FAILED:
                    plain = _NOTHING
                    continue
                return self._stall(slot, Wants.AREA, data, plain)
            if count == FAILED:
                return Wants.FAILED
            if count == END:
                return Wants.FINISHED if engine.finish(slot) else Wants.AREA
            if not data:
                return Wants.READ
            taken = engine.feed(slot, data)
            if not taken:
                return self._stall(slot, Wants.AREA, data, plain)
            data = data[taken:]

    def _receive(self, slot: int) -> int:
        # One buffer serves all: what it held of the last connection is overwritten first, so that
        # no defect here can answer one peer with another's plaintext.
        if self._plain_used:
            self._plain[: self._plain_used] = _ZEROS[: self._plain_used]
            self._plain_used = 0
        return self._engine.recv(slot, self._plain)

    def _answer(self, slot: int, count: int) -> memoryview:
        self._plain_used = count
        self._received[slot] += count
        return memoryview(self._application.receive(slot, self._plain[:count]))

    def _flush(self, slot: int, fd: int) -> tuple[int, Wants | None]:
        """Write what the engine has for the peer: how much was, and what stopped it if not all."""
        total = 0
        while count := self._engine.take(slot, self._out):
            wants = self._write(slot, fd, self._out[:count])
            if wants is not None:
                return total, wants
            total += count
        return total, None

    def _write(self, slot: int, fd: int, data: memoryview) -> Wants | None:
        """Write all of it, or keep what is left in `_unwritten` and say what stopped it."""
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                self._unwritten = bytes(data)
                return Wants.WRITE
            except OSError:
                return self._lost(slot)
        return None

    def _lost(self, slot: int) -> Wants:
        self._engine.eof(slot)
        return Wants.LOST

    def _stall(self, slot: int, wants: Wants, data: memoryview, plain: memoryview) -> Wants:
        """Keep what is under way, in memory of its own, and let go of the shared buffers."""
        unwritten, self._unwritten = self._unwritten, b""
        if wants is not Wants.LOST and (unwritten or plain or data):
            self.held[slot] = Held(unwritten, bytes(plain), bytes(data))
        return wants
