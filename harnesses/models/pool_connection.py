"""One connection of harness pool as a plain model sees it: who said what, and what must follow.

The client at the other end is the lying client, which is not the engine and shares nothing with it.
What it says is put on a wire; each effect is a mark at the byte that completes it. When the engine
has taken that byte the effect must have happened, and not before. So the model predicts the engine
without knowing how it works: a mark is a place in a stream, nothing more.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from engine.records import MAX_RUN
from peers.liar import Client, ServerFault
from peers.liar.observer import Ticket

from ..oracles import Broken

HEADER = 5
ROOM = 2_048
"""The longest leaf that a slot's room has place for."""


class Mark(NamedTuple):
    """`effect` has happened once byte `end` of the wire is taken."""

    end: int
    effect: str
    data: bytes = b""


class PoolConnection:
    """A client, its wire, and what the model expects of the server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.wire = bytearray()  # said, not yet taken
        self.said = 0  # bytes ever said
        self.taken = 0  # bytes the engine took
        self.inbox = b""  # the server's bytes, not yet read
        self.bounds: deque[int] = deque()  # where the records of the wire end
        self.marks: deque[Mark] = deque()
        self.state = "handshake"
        self.tag: str | None = None  # of a failure, when the model knows it
        self.unknown = False  # what the client said is beyond the model
        self.owed = bytearray()  # plaintext that the program has not received
        self.sent = bytearray()  # what the program sent
        self.closing = False  # the server's close_notify is queued
        self.leaf: bytes | None = None  # the client's certificate
        self.judged_by = 0  # the generation of the store that judged it
        self.run = 0  # messages in a row that carry nothing

    # -- the client speaks ------------------------------------------------------------------

    def say(self, data: bytes, *effects: tuple[str, bytes]) -> None:
        """Put records on the wire; the effects happen at their end."""
        at = 0
        while at < len(data):
            at += HEADER + int.from_bytes(data[at + 3 : at + HEADER], "big")
            self.bounds.append(self.said + at)
        self.wire += data
        self.said += len(data)
        if not self.unknown:
            self.marks.extend(Mark(self.said, effect, content) for effect, content in effects)

    def speak(self) -> None:
        """Read what the server said and go on with the handshake."""
        client = self.client
        inbox, self.inbox = self.inbox, b""
        try:
            client.read(inbox)
        except ServerFault as fault:
            if self.unknown:
                return
            raise Broken("delivered", f"the client refuses what the server said: {fault}") from None
        if client.state in ("start", "retry"):
            hello = client.hello()
            for piece in pieces(hello):
                self.say(piece, *([("none", b"")] if piece[0] == 20 else []))
        elif client.state == "flight":
            self._finish()
        if not self.sent.startswith(client.received):
            raise Broken("delivered", "the client received what the server did not send")

    def _finish(self) -> None:
        """The second flight, each message in its own record: each effect has its place."""
        client = self.client
        proves = client.request is not None and client.credential is not None
        records = pieces(client.finish(apart=True))
        for place, piece in enumerate(records):
            if piece[0] == 20:
                self.say(piece, ("none", b""))
            elif place == len(records) - 1:
                self.say(piece, ("established", b""))
            elif proves and place == len(records) - 3:
                self.say(piece, ("certificate", b""))
            else:
                self.say(piece)
        if proves and client.credential is not None:
            self.leaf = client.credential.chain[0]

    def corrupt(self, argument: int) -> None:
        """Flip a bit of what is said and not taken, in a record that is not spoilt already: the
        same bit flipped again would make it whole."""
        if not self.wire:
            return
        at = self.taken + argument * len(self.wire) // 256
        end = next(bound for bound in self.bounds if bound > at)
        if any(mark.end == end and mark.effect == "failed" for mark in self.marks):
            return
        self.wire[at - self.taken] ^= 0x10
        starts = [self.taken, *(bound for bound in self.bounds if bound <= at)]
        start = starts[-1]
        whole = start > self.taken or self._at_boundary
        if self.unknown or not whole or at - start < HEADER or self.wire[start - self.taken] != 23:
            self.lose(at)
            return
        kept = [mark for mark in self.marks if mark.end < end]
        self.marks = deque([*kept, Mark(end, "failed", b"tls-bad-record-mac")])

    def lose(self, at: int) -> None:
        """From byte `at` on, the model does not know what the server makes of what is said."""
        self.unknown = True
        self.marks = deque(mark for mark in self.marks if mark.end <= at)

    @property
    def _at_boundary(self) -> bool:
        """The engine has taken whole records alone, so the wire starts with a header."""
        return self.taken in (0, self.boundary)

    boundary = 0

    # -- the engine took bytes --------------------------------------------------------------

    def advance(self, count: int, generation: int, trusted: bool) -> None:
        """The engine took so many bytes: the marks they complete take effect, in order."""
        self.taken += count
        del self.wire[:count]
        while self.bounds and self.bounds[0] <= self.taken:
            self.boundary = self.bounds.popleft()
        while self.marks and self.marks[0].end <= self.taken:
            mark = self.marks.popleft()
            if self.state in ("failed", "closed"):
                continue
            self._apply(mark, generation, trusted)

    def _apply(self, mark: Mark, generation: int, trusted: bool) -> None:
        if mark.effect == "failed":
            self.fail(mark.data.decode())
        elif mark.effect == "certificate":
            self.judged_by = generation
            if not trusted:
                self.fail("x509-unknown-issuer")
        elif mark.effect == "established":
            self.run = 0
            if self.leaf is not None and self.judged_by != generation:
                self.fail("tls-server-client-store-replaced")
            else:
                self.state = "established"
        elif mark.effect == "data":
            self.run = 0
            self.owed += mark.data
        elif mark.effect == "closed":
            self.state = "closed"
        else:
            self.run += 1
            if self.run > MAX_RUN:
                self.fail("tls-too-many-messages")

    def fail(self, tag: str) -> None:
        """The connection has failed, with this tag."""
        self.state = "failed"
        self.tag = tag

    # -- what the engine must say -------------------------------------------------------------

    def verified(self) -> bool:
        """Whether the engine must answer for the client's identity."""
        return self.leaf is not None and self.state in ("established", "closed")

    def idle(self) -> bool:
        """Nothing received waits, no record is begun, and no leaf is too large for its room."""
        large = self.leaf is not None and len(self.leaf) > ROOM
        return not self.owed and self._at_boundary and not large

    def tickets(self) -> list[Ticket]:
        """The tickets that the client was sent."""
        return self.client.tickets


def pieces(data: bytes) -> list[bytes]:
    """The records of what a client says."""
    found = []
    while data:
        end = HEADER + int.from_bytes(data[3:HEADER], "big")
        found.append(data[:end])
        data = data[end:]
    return found
