"""Engine: the calls of a program, each one a lease, work, a settle.

Two kinds of answer, never mixed. A configuration or start call that is refused raises `Refused`
and changes nothing. A call that moves bytes never raises for what a peer sent: the connection
fails, `event` and `failure` say so, and its alert waits to be taken. ValueError, IndexError and
TypeError are the caller's own mistakes.

What else is raised is a fault of ours, or came from outside: no memory, too deep a stack, Ctrl-C.
From the first line that has an effect a call stands in a `try`, which is free until then. A call
that breaks there has ended its connection, a start has begun none, and `base` says how.
"""

from typing import Final

from cryptography.exceptions import InvalidTag

from . import copies
from .base import NOBODY
from .client_identity import ClientIdentity
from .codepoints import APPLICATION_DATA
from .configuration import Configuration
from .events import END, FAILED, WOULD_BLOCK
from .hardware import has_aes
from .key_schedule import LAST_SEQUENCE, Buffer
from .layout import (
    AUTH_MODE,
    ENTROPY,
    ENTROPY_END,
    ESTABLISHED,
    F_CLOSE_SENT,
    F_PEER_CLOSED,
    FLAGS,
    FREE,
    HEADER,
    MAX_PLAINTEXT,
    OUT,
    READ_SEQ,
    RECEIVED,
    RUN,
    SERVED_MS,
    STATE,
    TAG,
    WAIT_CLIENT_HELLO,
    WRITE_SEQ,
)
from .layout import FAILED as STATE_FAILED
from .queries import Queries
from .receive import feed as feed_records
from .receive import on_opened
from .records import (
    HEADERS,
    OVERHEAD,
    SHORT,
    fail,
    protected_header,
    queue_application_data,
    queue_close_notify,
    seal_first,
)
from .refusals import Refusal, Refused
from .server import Server
from .ticket_keys import checked_time

_CONTENT: Final = OUT + HEADER
_SEALED: Final = OUT + OVERHEAD
# What assigning bytes to a slice of a view of something else raises, before it writes any.
_NOT_BYTES: Final = (ValueError, NotImplementedError)
_LEAST: Final = HEADER + 1 + 1 + TAG  # a record with one byte of content
_MOST: Final = HEADER + MAX_PLAINTEXT + 1 + TAG
_RECEIVED_LESS: Final = RECEIVED - HEADER - TAG
_SIGNING: Final = ("hedged", "deterministic")


class Engine(Configuration, Queries, ClientIdentity):
    """All connections of one server: `slots` of them, sharing `areas` of working memory.

    An engine belongs to the process that made it, and is called by one thread at a time. Times are
    Unix milliseconds.

    Every call raises ValueError once the engine is closed, and in the child of a fork. Every call
    with a slot raises IndexError for one that is not from 0 to `slots` - 1 and, but for `serve` and
    `event`, ValueError for one that is free. TypeError is for an argument of another type.
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

        `areas` is from 1 to `slots`; None is one a slot, with which every call that needs an area
        has it. `signing="deterministic"` signs as RFC 6979, so that the same seed and input give
        the same bytes; `check_signature` is whether each signature is checked before it is sent.
        `hardware_aes` sets the order of the suites; None detects it. ValueError for numbers or a
        way of signing that cannot be; OSError, or OverflowError where no machine could have it, for
        more memory than there is address space.
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
        """Begin a connection in a free slot, at a time in Unix milliseconds.

        ValueError when the slot has a connection, or for a time of 2^62 or more. Refused, and the
        slot stays free: `tls-no-entropy`, `tls-server-chain` (no identity), `tls-pool` (no area).
        """
        self._check_range(slot)
        pool = self._pool
        if pool.state(slot) != FREE:
            raise ValueError("the slot has a connection")
        drbg = self._drbg
        if drbg is None:
            raise Refused(Refusal.NO_ENTROPY)
        if not len(self._server.identities):
            raise Refused(Refusal.SERVER_CHAIN)
        now_ms = checked_time(now_ms)
        if not pool.areas_free():
            raise Refused(Refusal.POOL)
        try:
            area = pool.lease_for_handshake(slot)
            self._server.resumption.at_serve(now_ms, drbg.fill)
            # All draws of a connection are made here, always as many: what other connections do in
            # the meantime cannot change its bytes.
            drbg.fill(area.bytes[ENTROPY:ENTROPY_END])
            words = area.words
            words[SERVED_MS] = now_ms
            words[AUTH_MODE] = self._server.clients.mode
            # The last step, with which it has begun: until here the slot is free.
            words[STATE] = WAIT_CLIENT_HELLO
        except BaseException:
            self._torn += (NOBODY,)
            self._broke()
            raise

    def feed(self, slot: int, data: Buffer) -> int:
        """Bytes from the peer; how many were taken, and the rest is to be offered again.

        0 only when there is no area or no room: then no area is free, or there is something to take
        or to receive. After a failure or the peer's close_notify all are taken, and dropped.
        TypeError for what is not contiguous bytes.
        """
        # A short piece is as cheap to copy as to name.
        piece = data if type(data) is bytes and len(data) < SHORT else _readable(data)
        area = self._held.get(slot)
        length = len(piece)
        if area is None or not area.resting or not _LEAST <= length <= _MOST:
            return self._feed_any(slot, memoryview(piece))
        # The common case without a loop: one whole record of application data for a connection
        # that rests, so that it is established and every buffer is empty. What it turns out to be
        # is judged where every other record is.
        content = length - OVERHEAD
        header = HEADERS[content] if content < SHORT else protected_header(content)
        words = area.words
        sequence = words[READ_SEQ]
        if piece[:HEADER] != header or sequence >= LAST_SEQUENCE or area.opener is None:
            return self._feed_any(slot, memoryview(piece))
        try:
            area.resting = False
            del self._resting[slot]
            end = _RECEIVED_LESS + length
            area.received_high = end
            block = area.bytes
            try:
                area.opener.decrypt_into(
                    (area.read_iv ^ sequence).to_bytes(12),
                    piece[HEADER:],
                    header,
                    block[RECEIVED:end],
                )
            except InvalidTag:
                copies.clear(block, RECEIVED, end)
                fail(area, Refusal.BAD_RECORD_MAC)
            else:
                words[READ_SEQ] = sequence + 1
                last = end - 1
                if block[last] == APPLICATION_DATA:
                    if area.run:
                        words[RUN] = area.run = 0
                    area.received_end = last
                    area.quick = True
                    return length
                area.quick = False
                refusal = on_opened(self._server, area, RECEIVED, end)
                if refusal is not None:
                    fail(area, refusal)
            self._pool.mind_leaf(slot, area)
            self._pool.settle(slot, area)
            return length
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def _feed_any(self, slot: int, view: memoryview) -> int:
        words = self._words_of(slot)
        if words[STATE] == STATE_FAILED or words[FLAGS] & F_PEER_CLOSED:
            return len(view)
        if not view:
            return 0
        try:
            area = self._pool.lease(slot)
            if area is None:
                return 0
            taken = feed_records(self._server, area, view)
            self._pool.mind_leaf(slot, area)
            self._pool.settle(slot, area)
            return taken
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def take(self, slot: int, out: bytearray | memoryview) -> int:
        """Move bytes for the peer into `out`; how many. Any split gives the same bytes.

        ValueError when `out` is empty, TypeError when it is read-only.
        """
        area = self._held.get(slot)
        if area is not None and area.quick:
            target = out if type(out) is memoryview else _writable(out)
            end = area.out_end
            count = end - OUT
            if count and count <= len(target) and target.c_contiguous:
                block = area.bytes
                try:
                    target[:count] = block[OUT:end]
                except _NOT_BYTES:
                    return self._take_any(slot, _writable(out))
                try:
                    area.out_end = OUT
                    copies.clear(block, OUT, end)
                    area.out_high = OUT
                    area.resting = True
                    resting = self._resting
                    resting[slot] = area
                    if len(resting) > self._pool.may_rest:
                        self._pool.end_longest_rest()
                    return count
                except BaseException:
                    self._torn += (slot,)
                    self._broke()
                    raise
        return self._take_any(slot, _writable(out))

    def _take_any(self, slot: int, target: memoryview) -> int:
        self._words_of(slot)
        area = self._held.get(slot)
        if area is None:
            return 0
        area.quick = False
        start = area.out_start
        count = min(area.out_end - start, len(target))
        if not count:
            return 0
        try:
            target[:count] = area.bytes[start : start + count]
            area.out_start = start + count
            if area.out_start == area.out_end:
                area.out_start = area.out_end = OUT
                self._pool.settle(slot, area)
            return count
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def send(self, slot: int, data: Buffer) -> int:
        """Application data for the peer; how many bytes were taken.

        0 before the handshake is complete, after `finish`, once failed, or under back-pressure.
        TypeError for what is not contiguous bytes.
        """
        area = self._held.get(slot)
        if (
            area is not None
            and area.resting
            and (type(data) is bytes or (type(data) is memoryview and data.c_contiguous))
        ):
            # The common case: one record of a connection that rests.
            length = len(data)
            sequence = area.words[WRITE_SEQ]
            if 0 < length <= MAX_PLAINTEXT and sequence < area.write_limit:
                try:
                    area.out_high = _SEALED + length
                    try:
                        area.bytes[_CONTENT : _CONTENT + length] = data
                    except _NOT_BYTES:
                        pass  # nothing was written
                    else:
                        area.resting = False
                        del self._resting[slot]
                        seal_first(area, length, sequence)
                        area.quick = True
                        return length
                except BaseException:
                    self._torn += (slot,)
                    self._broke()
                    raise
        return self._send_any(slot, _readable(data))

    def _send_any(self, slot: int, view: memoryview) -> int:
        words = self._words_of(slot)
        if not view or words[STATE] != ESTABLISHED or words[FLAGS] & F_CLOSE_SENT:
            return 0
        try:
            area = self._pool.lease(slot)
            if area is None:
                return 0
            taken = queue_application_data(area, view)
            if area.words[STATE] == STATE_FAILED:
                self._pool.mind_leaf(slot, area)
                self._pool.settle(slot, area)
            return taken
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def recv(self, slot: int, out: bytearray | memoryview) -> int:
        """Move received plaintext into `out`.

        n > 0; END after the peer's close_notify and all data; WOULD_BLOCK; FAILED, which comes
        after the data that was authenticated before the failure, and never looks like END.
        ValueError when `out` is empty, TypeError when it is read-only.
        """
        area = self._held.get(slot)
        if area is not None and area.quick:
            target = out if type(out) is memoryview else _writable(out)
            end = area.received_end
            count = end - RECEIVED
            if count and count <= len(target) and target.c_contiguous:
                block = area.bytes
                try:
                    target[:count] = block[RECEIVED:end]
                except _NOT_BYTES:
                    return self._recv_any(slot, _writable(out))
                try:
                    area.received_end = RECEIVED
                    copies.clear(block, RECEIVED, area.received_high)
                    area.received_high = RECEIVED
                    area.resting = True
                    resting = self._resting
                    resting[slot] = area
                    if len(resting) > self._pool.may_rest:
                        self._pool.end_longest_rest()
                    return count
                except BaseException:
                    self._torn += (slot,)
                    self._broke()
                    raise
        return self._recv_any(slot, _writable(out))

    def _recv_any(self, slot: int, target: memoryview) -> int:
        words = self._words_of(slot)
        area = self._held.get(slot)
        if area is not None:
            area.quick = False
            start = area.received_start
            count = min(area.received_end - start, len(target))
            if count:
                try:
                    target[:count] = area.bytes[start : start + count]
                    area.received_start = start + count
                    if area.received_start == area.received_end:
                        area.received_start = area.received_end = RECEIVED
                        self._pool.settle(slot, area)
                    return count
                except BaseException:
                    self._torn += (slot,)
                    self._broke()
                    raise
        if words[STATE] == STATE_FAILED:
            return FAILED
        return END if words[FLAGS] & F_PEER_CLOSED else WOULD_BLOCK

    def finish(self, slot: int) -> bool:
        """Say close_notify; True when it is queued or already was. Receiving goes on.

        False before the handshake is complete, when the connection failed, and when no area is
        free.
        """
        words = self._words_of(slot)
        if words[STATE] != ESTABLISHED:
            return False
        if words[FLAGS] & F_CLOSE_SENT:
            return True
        try:
            area = self._pool.lease(slot)
            if area is None:
                return False
            queue_close_notify(area)
            self._pool.mind_leaf(slot, area)
            self._pool.settle(slot, area)
            return self._pool.state(slot) == ESTABLISHED
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def eof(self, slot: int) -> None:
        """The transport ended. Without the peer's close_notify that is a failure: a truncated
        stream must not look like a whole one (RFC 8446 §6.1)."""
        words = self._words_of(slot)
        if words[STATE] == STATE_FAILED or words[FLAGS] & F_PEER_CLOSED:
            return
        pool = self._pool
        area = self._held.get(slot)
        try:
            if area is None:
                pool.fail_core(slot, Refusal.PEER_CLOSED.code)
            else:
                pool.lease(slot)
                fail(area, Refusal.PEER_CLOSED)
                pool.mind_leaf(slot, area)
                pool.settle(slot, area)
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def drop(self, slot: int) -> None:
        """Free the slot: area and core cleared, whatever state it is in. The peer hears nothing."""
        self._words_of(slot)
        try:
            self._pool.drop(slot)
        except BaseException:
            self._torn += (slot,)
            self._broke()
            raise

    def close(self) -> None:
        """Wipe everything. Every call after it raises ValueError."""
        if self._ended:
            raise ValueError(self._ended)
        try:
            self._wipe()
        except BaseException:
            self._wipe()
            raise


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
