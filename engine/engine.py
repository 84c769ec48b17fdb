"""Engine: the calls of a program, each one a lease, work, a settle.

Two kinds of answer, never mixed. A configuration or start call that is refused raises `Refused`
and changes nothing. A call that moves bytes never raises for what a peer sent: the connection
fails, `event` and `failure` say so, and its alert waits to be taken. ValueError, IndexError and
TypeError are the caller's own mistakes.
"""

import os
import traceback
from typing import Final, NoReturn

from engine import copies
from engine.configuration import Configuration
from engine.events import END, FAILED, WOULD_BLOCK
from engine.hardware import has_aes
from engine.layout import (
    ENTROPY,
    ENTROPY_END,
    ESTABLISHED,
    F_CLOSE_SENT,
    F_PEER_CLOSED,
    FAILURE,
    FLAGS,
    FREE,
    HEADER,
    MAX_PLAINTEXT,
    OUT,
    OUT_RESERVE,
    RECEIVED,
    RUN,
    SERVED_MS,
    STATE,
    TAG,
    WAIT_CLIENT_HELLO,
)
from engine.layout import FAILED as STATE_FAILED
from engine.pool import Area
from engine.readings import Readings
from engine.receive import feed as feed_records
from engine.records import (
    fail,
    make_out_room,
    must_update_key,
    out_room,
    queue_close_notify,
    seal_in_place,
    send_key_update,
)
from engine.refusals import Refusal, Refused
from engine.schedule import Buffer
from engine.server import Server

_OVERHEAD: Final = HEADER + 1 + TAG
_SIGNING: Final = ("hedged", "deterministic")


class Engine(Configuration, Readings):
    """All connections of one server: `slots` of them, sharing `areas` of working memory.

    An engine belongs to one thread and to the process that seeded it. Times are Unix milliseconds.
    """

    @classmethod
    def server(
        cls,
        slots: int,
        areas: int | None = None,
        *,
        signing: str = "hedged",
        check_signature: bool = True,
        hardware_aes: bool | None = None,
    ) -> "Engine":
        """An engine whose connections are all servers.

        `areas` is from 1 to `slots`; None is one a slot, with which no call is ever refused for
        want of an area. `signing="deterministic"` signs as RFC 6979, so that the same seed and
        input give the same bytes. `hardware_aes` sets the order of the suites; None detects it.
        """
        areas = slots if areas is None else areas
        if slots < 1 or not 1 <= areas <= slots:
            raise ValueError("slots must be at least 1, areas from 1 to slots")
        if signing not in _SIGNING:
            raise ValueError('signing is "hedged" or "deterministic"')
        if hardware_aes is None:
            hardware_aes = has_aes()
        server = Server(
            hardware_aes=hardware_aes,
            deterministic=signing == "deterministic",
            check_signature=check_signature,
        )
        return cls(server, slots, areas)

    # -- a connection's life ----------------------------------------------------------------

    def serve(self, slot: int, now_ms: int) -> None:
        """Begin a connection in a free slot. Refused, nothing started and the slot stays free."""
        self._check_range(slot)
        pool = self._pool
        if pool.state(slot) != FREE:
            raise ValueError("the slot has a connection")
        drbg = self._drbg
        # A forked process shares its parent's state: it would repeat the parent's draws.
        if drbg is None or self._seeded_in != os.getpid():
            raise Refused(Refusal.NO_ENTROPY)
        if not len(self._server.identities):
            raise Refused(Refusal.SERVER_CHAIN)
        area = pool.lease_for_handshake(slot)
        if area is None:
            raise Refused(Refusal.POOL)
        # All draws of a connection are made here, always as many: what other connections do in
        # the meantime cannot change its bytes.
        drbg.fill(area.bytes[ENTROPY:ENTROPY_END])
        words = area.words
        words[STATE] = WAIT_CLIENT_HELLO
        words[SERVED_MS] = now_ms
        self._handshakes += 1

    def feed(self, slot: int, data: Buffer) -> int:
        """Bytes from the peer; how many were taken.

        0 only for want of an area or of room: then there is something to take or to receive, or no
        area is free, and the bytes are to be offered again.
        """
        view = _readable(data)
        area = self._held.get(slot)
        words = self._words_of(slot) if area is None else area.words
        if words[STATE] == STATE_FAILED or words[FLAGS] & F_PEER_CLOSED:
            return len(view)
        if not view:
            return 0
        area = self._pool.lease(slot)
        if area is None:
            return 0
        words = area.words
        handshaking = words[STATE] < ESTABLISHED
        try:
            taken = feed_records(self._server, area, view)
        except BaseException as bug:
            self._broke(slot, area, handshaking, bug)
        if handshaking and words[STATE] >= ESTABLISHED:
            self._handshakes -= 1
        self._pool.settle(slot, area)
        return taken

    def take(self, slot: int, out: bytearray | memoryview) -> int:
        """Move bytes for the peer into `out`; how many. Any split gives the same bytes."""
        target = _writable(out)
        area = self._held.get(slot)
        if area is None:
            self._words_of(slot)
            return 0
        start = area.out_start
        count = min(area.out_end - start, len(target))
        if not count:
            return 0
        target[:count] = area.bytes[start : start + count]
        if start + count == area.out_end:
            area.out_start = area.out_end = OUT
            self._pool.settle(slot, area)
        else:
            area.out_start = start + count
        return count

    def send(self, slot: int, data: Buffer) -> int:
        """Application data for the peer; how many bytes were taken.

        0 before the handshake is complete, after `finish`, once failed, or under back-pressure.
        """
        view = _readable(data)
        words = self._words_of(slot)
        if not view or words[STATE] != ESTABLISHED or words[FLAGS] & F_CLOSE_SENT:
            return 0
        area = self._pool.lease(slot)
        if area is None:
            return 0
        taken = 0
        try:
            while taken < len(view):
                room = out_room(area) - OUT_RESERVE
                if must_update_key(area) and room > OUT_RESERVE:
                    send_key_update(area)
                    continue
                count = min(len(view) - taken, MAX_PLAINTEXT, room - _OVERHEAD)
                if count <= 0:
                    break
                make_out_room(area, count + _OVERHEAD)
                place = area.out_end + HEADER
                area.bytes[place : place + count] = view[taken : taken + count]
                seal_in_place(area, 23, count)
                taken += count
        except BaseException as bug:
            self._broke(slot, area, False, bug)
        if taken:
            area.words[RUN] = 0
        self._pool.settle(slot, area)
        return taken

    def recv(self, slot: int, out: bytearray | memoryview) -> int:
        """Move received plaintext into `out`.

        n > 0; END after the peer's close_notify and all data; WOULD_BLOCK; FAILED, which comes
        after the data that was authenticated before the failure, and never looks like END.
        """
        target = _writable(out)
        area = self._held.get(slot)
        words = self._words_of(slot) if area is None else area.words
        if area is not None:
            start = area.received_start
            count = min(area.received_end - start, len(target))
            if count:
                target[:count] = area.bytes[start : start + count]
                if start + count == area.received_end:
                    area.received_start = area.received_end = RECEIVED
                    self._pool.settle(slot, area)
                else:
                    area.received_start = start + count
                return count
        if words[STATE] == STATE_FAILED:
            return FAILED
        return END if words[FLAGS] & F_PEER_CLOSED else WOULD_BLOCK

    def finish(self, slot: int) -> bool:
        """Say close_notify; True when it is queued or already was. Receiving goes on."""
        words = self._words_of(slot)
        if words[STATE] != ESTABLISHED:
            return False
        if words[FLAGS] & F_CLOSE_SENT:
            return True
        area = self._pool.lease(slot)
        if area is None:
            return False
        try:
            queue_close_notify(area)
        except BaseException as bug:
            self._broke(slot, area, False, bug)
        return True

    def eof(self, slot: int) -> None:
        """The transport ended. Without the peer's close_notify that is a failure: a truncated
        stream must not look like a whole one (RFC 8446 §6.1)."""
        words = self._words_of(slot)
        if words[STATE] == STATE_FAILED or words[FLAGS] & F_PEER_CLOSED:
            return
        area = self._held.get(slot)
        if area is None:
            copies.clear_keys(self._pool.core(slot))
            words[STATE] = STATE_FAILED
            words[FAILURE] = Refusal.PEER_CLOSED.code
            return
        if words[STATE] < ESTABLISHED:
            self._handshakes -= 1
        self._pool.lease(slot)
        fail(area, Refusal.PEER_CLOSED)
        self._pool.settle(slot, area)

    def drop(self, slot: int) -> None:
        """Free the slot: area and core cleared, whatever state it is in."""
        if self._words_of(slot)[STATE] < ESTABLISHED:
            self._handshakes -= 1
        self._pool.drop(slot)

    def close(self) -> None:
        """Wipe everything. Every call after it raises ValueError."""
        self._check_open()
        self._open = False
        self._server.identities.wipe()
        if self._drbg is not None:
            self._drbg.wipe()
        self._pool.close()

    def _broke(self, slot: int, area: Area, handshaking: bool, bug: BaseException) -> NoReturn:
        """A fault of ours in a call that moves bytes: the connection ends, the fault is raised.

        The frames it passed through are emptied first: they hold bytes of the connection.
        """
        fail(area, Refusal.INTERNAL_ERROR)
        if handshaking:
            self._handshakes -= 1
        self._pool.settle(slot, area)
        traceback.clear_frames(bug.__traceback__)
        raise bug


def _readable(data: Buffer) -> memoryview:
    """Contiguous bytes to read; TypeError for anything else."""
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 and view.contiguous else _flat(view)


def _flat(view: memoryview) -> memoryview:
    if not view.c_contiguous:
        raise TypeError("a contiguous buffer of bytes is needed")
    return view.cast("B")


def _writable(out: bytearray | memoryview) -> memoryview:
    """Contiguous bytes to write; TypeError for anything else, ValueError for none."""
    view = _readable(out)
    if view.readonly:
        raise TypeError("a writable buffer is needed")
    if not view:
        raise ValueError("a buffer of at least one byte is needed")
    return view
