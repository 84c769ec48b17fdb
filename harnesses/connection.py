"""One connection of an engine, and every cheap oracle after every call.

Harnesses never call the engine's byte-moving calls themselves: they go through here, so that no
call is left unjudged.
"""

from __future__ import annotations

from typing import Any

from engine import FAILED, Engine, Event
from engine import codepoints as c
from engine.refusals import Refusal

from . import fixtures
from .oracles import Broken, check_alert, looked

# What no connection of a harness may end with: what a configuration or start call raises, and a
# fault of the engine's own.
NEVER_ON_A_CONNECTION = frozenset(
    {Refusal.INTERNAL_ERROR, *(refusal for refusal in Refusal if refusal.of_a_call)}
)

_out = bytearray(65_536)
_out_view = memoryview(_out)

Bytes = bytes | memoryview

STORY = (
    "output",
    "plaintext",
    "event",
    "failure",
    "alert received",
    "answer",
    "name",
    "protocol",
    "verdict",
    "client",
)
"""What `Connection.story` tells, in its order."""

# What comes after a failure: a record that would have been read before it.
_MORE = b"\x16\x03\x03\x00\x04\x01\x00\x00\x00"


class Connection:
    """A slot, what it wrote and read so far, and what it must hold to once it failed."""

    def __init__(self, engine: Engine, slot: int, judged: bool = True) -> None:
        self.engine = engine
        self.slot = slot
        # What the work of a run is measured without: residue() is a scan of all memory.
        self.judged = judged
        self.output = bytearray()
        self.plaintext = bytearray()
        self.event: Event = Event.FREE
        self.failure: Refusal | None = None
        self.closing = False
        self.ended = False
        self.spent = False
        self.trail: list[Event] = []

    # -- the engine's calls -----------------------------------------------------------------

    def serve(self) -> None:
        """Starts the connection; Refused passes through, for a pool that is full."""
        self.engine.serve(self.slot, fixtures.NOW_MS)
        self.check()

    def feed(self, data: Bytes) -> int:
        """`Engine.feed`; an ended connection must take all."""
        taken: int = self.call(self.engine.feed, data)
        if not 0 <= taken <= len(data):
            raise Broken("stuck", f"feed took {taken} of {len(data)} bytes")
        if self.ended and taken != len(data):
            raise Broken("silent", "an ended connection left input")
        return taken

    def take(self) -> None:
        """Everything there is to take; more may not be left behind."""
        while count := self.call(self.engine.take, _out):
            self.output += _out_view[:count]
            if count < len(_out) and self.event is not Event.WANT_WRITE:
                return
        if self.event is Event.WANT_WRITE:
            raise Broken("stuck", "has output that cannot be taken")

    def take_some(self, most: int) -> None:
        """A part of what there is to take: any split must give the same bytes."""
        count = self.call(self.engine.take, _out_view[:most])
        self.output += _out_view[:count]

    def recv(self) -> int:
        """Everything there is to receive; the engine's last answer, which is no count."""
        count: int = self.call(self.engine.recv, _out)
        while count > 0:
            self.plaintext += _out_view[:count]
            count = self.call(self.engine.recv, _out)
        return count

    def send(self, data: bytes) -> int:
        """`Engine.send`; a connection that may not send must take nothing."""
        taken: int = self.call(self.engine.send, data)
        if taken and (self.failure is not None or self.closing):
            raise Broken("silent", "a connection that may not send took bytes to send")
        return taken

    def finish(self) -> bool:
        """`Engine.finish`."""
        done: bool = self.call(self.engine.finish)
        self.closing = self.closing or done
        return done

    def eof(self) -> None:
        """`Engine.eof`."""
        self.call(self.engine.eof)

    def drop(self) -> None:
        """Frees the slot; its core must be zero, which is read here and not asked of the engine."""
        engine = self.engine
        looked("raised", "stuck")
        if self.judged:
            looked("residue")
        engine.drop(self.slot)
        if engine.event(self.slot) is not Event.FREE:
            raise Broken("drop", "a dropped slot is not free")
        if self.judged and engine.residue():
            raise Broken("residue", "after drop")

    # -- calls in a row ---------------------------------------------------------------------

    def drain(self) -> bool:
        """Takes and receives all there is; whether that made room for input."""
        if self.spent:
            return False
        before = len(self.output) + len(self.plaintext)
        if self.event is Event.WANT_WRITE or self.event is Event.FAILED:
            self.take()
        # In a handshake there is nothing to receive; `check_end` asks all the same, and asks a
        # connection that failed for what it received before.
        if self.event is not Event.WANT_READ and self.event is not Event.FAILED:
            self.recv()
        event = self.event
        # What a failed connection has to give is given once; `check_end` sees that no more comes.
        self.spent = event is Event.FAILED
        if not self.trail or self.trail[-1] is not event:
            self.trail.append(event)
        return len(self.output) + len(self.plaintext) > before

    def feed_all(self, data: Bytes) -> int:
        """Feed, take and receive whatever comes; how much was fed: not all only when no area is
        free."""
        at = 0
        while at < len(data):
            taken = self.feed(data[at:] if at else data)
            at += taken
            if not self.drain() and not taken:
                if self.engine.areas_free() or self.engine.holds_area(self.slot):
                    raise Broken("stuck", "takes no input, has no output and has not ended")
                break
        return at

    # -- the oracles ------------------------------------------------------------------------

    def call(self, function: Any, *arguments: Any) -> Any:
        """One call of the engine and what must hold after it."""
        try:
            answer = function(self.slot, *arguments)
        except Exception as error:
            name = getattr(function, "__name__", "a call")
            raise Broken("raised", f"{name} raised {type(error).__name__}") from error
        self.check()
        return answer

    def check(self) -> None:
        """Nothing left behind; and a connection that failed stays as it failed."""
        engine, slot = self.engine, self.slot
        if self.judged and engine.residue():
            raise Broken("residue", f"in state {engine.event(slot)}")
        if self.failure is not None:
            if engine.failure(slot) is not self.failure:
                raise Broken("silent", f"{self.failure.tag} became {engine.event(slot)}")
            return
        event = self.event = engine.event(slot)
        if event is Event.FAILED:
            failure = engine.failure(slot)
            if failure is None or failure in NEVER_ON_A_CONNECTION:
                raise Broken("alert", f"failed with {failure}")
            self.failure = failure
            self.ended = True
        elif event is Event.FREE:
            raise Broken("stuck", "a served slot is free")
        elif event is Event.CLOSED:
            self.ended = True

    def check_end(self, every: bool) -> None:
        """What a failed connection wrote, and that it says nothing more, whatever is called.

        `every` call is tried, or only those that a program makes before it drops the slot.
        """
        failure = self.failure
        if failure is None:
            self.recv()
            return
        check_alert(bytes(self.output), failure, self.closing)
        looked("silent")
        length = len(self.output)
        self.feed(_MORE)
        if every:
            self.send(b"x")
            if self.finish() and not self.closing:
                raise Broken("silent", "a failed connection promises a close_notify")
            self.eof()
        self.take()
        if len(self.output) != length:
            raise Broken("silent", "a failed connection wrote more after its alert")
        if self.recv() != FAILED or self.engine.event(self.slot) is not Event.FAILED:
            raise Broken("silent", "a failed connection no longer says so")

    # -- what it ended as -------------------------------------------------------------------

    def answered(self) -> tuple[int, int, bool]:
        """Suite, group and whether a retry was asked for."""
        return _answered(self.engine, self.slot)

    def outcome(self) -> str:
        """The word of the outcomes file."""
        if self.failure is not None:
            return self.failure.tag
        words = {Event.CLOSED: "closed", Event.ESTABLISHED: "established"}
        return ended_as(self.engine, self.slot, words.get(self.event, "waiting"))

    def story(self) -> tuple[object, ...]:
        """All that must be the same when the same bytes come in other pieces."""
        engine, slot = self.engine, self.slot
        return (
            bytes(self.output),
            bytes(self.plaintext),
            self.event,
            self.failure,
            engine.alert_received(slot),
            self.answered(),
            engine.server_name(slot),
            engine.alpn(slot),
            engine.ticket_verdict(slot),
            engine.peer_verified(slot),
        )


def _answered(engine: Engine, slot: int) -> tuple[int, int, bool]:
    return engine.suite(slot), engine.group(slot), engine.retried(slot)


def ended_as(engine: Engine, slot: int, word: str) -> str:
    """The outcome of a connection that did not fail: a word, and what was chosen."""
    parts = [word]
    suite, group, retried = _answered(engine, slot)
    if suite:
        parts += [f"suite={c.SUITE_NAMES[suite]}", f"group={c.GROUP_NAMES[group]}"]
    if suite or retried:
        parts.append(f"retried={'yes' if retried else 'no'}")
    verdict = engine.ticket_verdict(slot)
    if verdict != "none":
        parts.append(f"verdict={verdict}")
    return " ".join(parts)
