"""A script through the engine, from `serve` to slots that are free again, and its judgement.

The engine has more slots than areas, a fixed identity, seed and clock. Up to three connections
use it; the second's bytes must not depend on what the first sends. The engine is made once; each
run seeds it again, so that its draws are its own, and leaves every slot free.

A run that fails before the server signs costs little, so each is run again in other pieces. Of the
others one in eight is, in whole records, so that the key under which an alert will go out can be
read beforehand and the alert opened.
"""

from __future__ import annotations

import os
from functools import lru_cache
from zlib import crc32

from engine import Engine, Event, Refusal, Refused
from engine import codepoints as c
from peers.liar.record import record

from . import fixtures
from .connection import STORY, Connection
from .fixtures import plain
from .formats.server import (
    CHECK_SIGNATURE,
    CLIENT_AUTH,
    CLIENT_MODES,
    EOF,
    NEIGHBOUR,
    NO_AES,
    NO_RESTING,
    Call,
    Script,
    Step,
)
from .oracles import HEADER, Broken, check_memory, check_work, looked, one_in, records
from .whitebox import check_sealed_alert, check_zero, seed_again, write_key

SLOTS = 3
NEIGHBOUR_SLOT, MAIN_SLOT, NEWCOMER_SLOT = range(SLOTS)
AGAIN_LIMIT = 3

# Ceilings. Measured over the committed corpus: a run with a handshake is at most 3,000 lines, a
# call at most 340 more (a KeyUpdate that asks for one), a record of a byte sixty (six bytes of
# input); Python allocates 8,500 bytes at most, and 2 more for each byte of a record. Then some
# room.
LINES, LINES_PER_CALL, LINES_PER_BYTE = 4_000, 400, 16
MEMORY, MEMORY_PER_BYTE = 65_536, 8

_HELLO = record(c.HANDSHAKE, plain().message())
_HALF = len(_HELLO) // 2


class Run:
    """One script through an engine, from `serve` to slots that are free again."""

    def __init__(self, engine: Engine, script: Script, judged: bool = True) -> None:
        """Not `judged`, the run is made for what it ends as: no memory is scanned till the end, and
        a connection that failed is not asked again whether it did."""
        self.engine = engine
        self.script = script
        self.judged = judged
        self.connection = Connection(engine, MAIN_SLOT, judged)
        self.neighbour: Connection | None = None
        self.newcomer: Connection | None = None
        self.again = 0
        self.begun = b""
        self.every = False
        self.signed = False
        # What each connection in turn wrote and read, and ended as.
        self.stories: list[tuple[object, ...]] = []
        self.trails: list[list[Event]] = []
        self.outcome = ""
        self.plaintext = b""
        self.peer: bytes | None = None
        self.neighbour_output = b""

    def play(self, by_record: bool = False, every: bool = False) -> Run:
        """Each step, and the end: of the connection in `every` way, and of the neighbour."""
        self.every = every
        feed = self._feed_by_record if by_record else self._feed
        engine, settings = self.engine, self.script.settings
        seed_again(engine, fixtures.SEED)
        engine.client_auth_mode(CLIENT_MODES[settings >> 5])
        engine.set_resting(0 if settings & NO_RESTING else engine.areas())
        self.connection.serve()
        if settings & NEIGHBOUR:
            self.neighbour = self._start(NEIGHBOUR_SLOT)
            self.neighbour.feed_all(_HELLO[:_HALF])
        for step in self.script.steps:
            if step.call is Call.FEED:
                feed(step.data)
            else:
                self._call(step.call)
        if settings & EOF:
            self.connection.eof()
        self.connection.drain()
        self.outcome = self.connection.outcome()
        self.peer = engine.peer_certificate(MAIN_SLOT)
        self._leave()
        self._drop_newcomer()
        if self.neighbour is not None:
            if every:
                self.neighbour.feed_all(_HELLO[_HALF:])
                self.neighbour_output = bytes(self.neighbour.output)
            self.neighbour.drop()
        check_zero(engine)
        return self

    def _start(self, slot: int) -> Connection:
        connection = Connection(self.engine, slot, self.judged)
        connection.serve()
        return connection

    def _call(self, call: Call) -> None:
        connection = self.connection
        if call is Call.SEND:
            connection.send(b"hello")
        elif call is Call.FINISH:
            connection.finish()
        elif call is Call.EOF:
            connection.eof()
        elif call is Call.FEED_NOTHING:
            connection.feed(b"")
        elif call is Call.TAKE_SEVEN:
            connection.take_some(7)
            return
        elif call is Call.NEWCOMER:
            self._newcomer()
        elif self.again < AGAIN_LIMIT:
            self.again += 1
            self._leave()
            # A connection that had no area leaves none behind, and others may have them all.
            self._drop_newcomer()
            self.begun = b""
            self.connection = self._start(MAIN_SLOT)
        self.connection.drain()

    def _feed(self, data: bytes) -> None:
        at = self.connection.feed_all(data)
        if at < len(data):
            if self.newcomer is None:
                raise Broken("stuck", "no area is to be had, and no other connection has it")
            self._drop_newcomer()
            self.connection.feed_all(data[at:])

    def _feed_by_record(self, data: bytes) -> None:
        """Feeds to the end of one record after the other while the connection lives, and opens the
        alert that ends it.

        Nothing but the alert is sealed by the call that fails, so it goes out under the key, and
        with the number, that are in force before the call. A call may come in the middle of a
        record: `begun` is what was fed of that.
        """
        connection = self.connection
        at = 0
        while at < len(data) and not connection.failure:
            key = write_key(self.engine, MAIN_SLOT)
            record = self.begun + data[at:]
            whole = HEADER + int.from_bytes(record[3:HEADER])
            end = at + whole - len(self.begun)
            self._feed(data[at:end])
            self.begun = record if len(record) < whole else b""
            at = end
            failure = connection.failure
            if key and failure and failure.alert is not None and not connection.closing:
                check_sealed_alert(key, records(bytes(connection.output))[-1], failure)
        if at < len(data):
            self._feed(data[at:])

    def _newcomer(self) -> None:
        """A connection that starts when it may, and holds its area with half a header."""
        if self.newcomer is not None:
            return
        room = self.engine.areas_free()
        try:
            self.newcomer = self._start(NEWCOMER_SLOT)
        except Refused as refused:
            if room or refused.refusal is not Refusal.POOL:
                raise Broken("raised", f"serve was refused {refused.refusal.tag}") from None
            return
        self.newcomer.feed_all(_HELLO[:3])

    def _drop_newcomer(self) -> None:
        if self.newcomer is not None:
            self.newcomer.drop()
            self.newcomer = None

    def _leave(self) -> None:
        connection = self.connection
        self.signed = self.signed or bool(self.engine.suite(MAIN_SLOT))
        if self.judged or connection.failure is None:
            connection.check_end(every=self.every)
        self.stories.append(connection.story())
        self.trails.append(connection.trail)
        self.plaintext = bytes(connection.plaintext)
        connection.drop()


_engines: dict[int, Engine] = {}
os.register_at_fork(after_in_child=_engines.clear)


def engine_for(script: Script) -> Engine:
    """The engine for a script's settings; made once, and anew after a finding.

    It has an area for the neighbour when there is one: with no more areas than connections that
    hold one, the newcomer always meets a pool that is full or an area in which another rests.
    """
    key = script.settings & (NO_AES | NEIGHBOUR | CHECK_SIGNATURE)
    if key not in _engines:
        _engines[key] = fixtures.server(
            SLOTS,
            2 if key & NEIGHBOUR else 1,
            hardware_aes=not key & NO_AES,
            check_signature=bool(key & CHECK_SIGNATURE),
        )
    return _engines[key]


def judge(script: Script, data: bytes, thorough: bool) -> Run:
    """Plays a script under every oracle; the run, or Broken. `data` chooses what a sample sees."""
    try:
        return _judge(engine_for(script), script, data, thorough)
    except Broken:
        # The next input must not meet what this one left.
        _engines.clear()
        raise


def _judge(engine: Engine, script: Script, data: bytes, thorough: bool) -> Run:
    eighth = thorough or one_in(8, data)
    first = Run(engine, script).play(every=eighth)
    if first.neighbour_output:
        looked("neighbour")
        if first.neighbour_output != _alone(script.settings & (NO_AES | CLIENT_AUTH)):
            raise Broken("neighbour", "another connection's bytes depend on this one's")
    if eighth or not first.signed:
        looked("chunks")
        for again in recuts(script, data, thorough):
            second = Run(engine, again, judged=eighth).play()
            if second.stories != first.stories:
                raise Broken("chunks", _difference(first, second))
            if not _same_path(first.trails, second.trails):
                raise Broken("chunks", "the events came in another order")
    if eighth and first.signed:
        whole = Run(engine, recut(script, 0)).play(by_record=True)
        if whole.stories != first.stories:
            raise Broken("chunks", "in whole records: " + _difference(first, whole))
    if thorough or one_in(256, data):
        ceiling = LINES + LINES_PER_CALL * len(script.steps) + LINES_PER_BYTE * script.sent
        check_work(Run(engine, script, judged=False).play, ceiling)
    if thorough or one_in(1024, data):
        ceiling = MEMORY + MEMORY_PER_BYTE * script.sent
        check_memory(lambda: Run(engine, script, judged=False).play() and None, ceiling)
    return first


def recut(script: Script, size: int) -> Script:
    """The same calls at the same places of the stream, with the bytes between them in other pieces.

    A size of 0 joins them: whatever is fed between two other calls is fed at once.
    """
    steps: list[Step] = []
    run = b""
    for step in [*script.steps, None]:
        if step is not None and step.call is Call.FEED:
            run += step.data
            continue
        whole = size or len(run) or 1
        steps += [Step(Call.FEED, run[at : at + whole]) for at in range(0, len(run), whole)]
        run = b""
        if step is not None and step.call is not Call.FEED_NOTHING:
            steps.append(step)
    return Script(script.settings, steps)


def recuts(script: Script, data: bytes, thorough: bool) -> list[Script]:
    """The same bytes in other pieces: joined when the input cuts them, else cut by its own hash."""
    # At most some twenty pieces: what is long would otherwise be slow for what is seen in it.
    sent = script.sent
    cut = recut(script, 1 + sent // 20 + crc32(data) % max(1, sent // 2))
    joined = recut(script, 0)
    if not thorough:
        return [joined if joined != script else cut]
    # A byte at a time is the strictest, and too slow for what is long.
    return [joined, cut, recut(script, 1 if sent <= 4_096 else 61 + sent // 1_000)]


def _same_path(first: list[list[Event]], second: list[list[Event]]) -> bool:
    """Whether one trail of events is the other with some left out: pieces only hide events."""
    return all(_within(a, b) or _within(b, a) for a, b in zip(first, second, strict=True))


def _within(few: list[Event], many: list[Event]) -> bool:
    left = iter(many)
    return all(event in left for event in few)


def _difference(first: Run, second: Run) -> str:
    """Which of the things that must be the same is not."""
    for one, other in zip(first.stories, second.stories, strict=True):
        for name, a, b in zip(STORY, one, other, strict=True):
            if a != b:
                return f"{name} differs in other pieces"
    return "the connections differ in number"


@lru_cache(maxsize=32)
def _alone(settings: int) -> bytes:
    """What the neighbour is answered while nothing else happens."""
    quiet = Script(NEIGHBOUR | settings, [])
    return Run(engine_for(quiet), quiet).play(every=True).neighbour_output
