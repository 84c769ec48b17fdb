"""A connection from its admission to its end: its stages, its log lines, what it waits for.

HANDSHAKE, until the engine says established; OPEN, while bytes are echoed; CLOSING, while what is
left to say (an alert, close_notify) is written; DRAINING, when it was. A connection is logged
closed when it has nothing left to say, and drained for a moment after: a descriptor that is closed
with bytes unread resets the connection (RFC 1122 §4.2.2.13), and a reset can overtake the
alert, so that the peer would learn nothing of why.

A defect of ours ends the connection that met it and no other.
"""

import select
from collections import OrderedDict

from engine import Engine, Event, Refused
from engine.layout import ROOM_LEN
from servers import sockets
from servers.addresses import peer_text
from servers.clock import Clock
from servers.connections import CLOSING, DRAINING, HANDSHAKE, OPEN, QUEUED, SILENT, Connections
from servers.log import Established, Log
from servers.names import name_text
from servers.settings import Settings
from servers.transfer import Transfer, Wants

LINGER_MS = 1000
"""How long a connection may take to say its last, and then to be drained."""

_WATCHES = {
    Wants.READ: select.EPOLLIN,
    # Half a record stays unread, so its descriptor stays readable: told of what is new only, and of
    # the end, after which nothing is.
    Wants.REST: select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET,
    Wants.WRITE: select.EPOLLOUT,
    Wants.AREA: 0,
}
_ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
_STAGES = (SILENT, QUEUED, HANDSHAKE, OPEN, CLOSING, DRAINING)


class Sessions:
    """What every connection is doing, apart from those that wait to be admitted."""

    def __init__(
        self,
        engine: Engine,
        table: Connections,
        transfer: Transfer,
        poll: select.epoll,
        log: Log,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._engine = engine
        self._table = table
        self._transfer = transfer
        self._poll = poll
        self._log = log
        self._clock = clock
        self._settings = settings
        self.linger = LINGER_MS
        # Connections that have something to do and no area, oldest first.
        self.waiting: OrderedDict[int, None] = OrderedDict()
        # Established connections that hold an area between two turns, and until when they may.
        self.holding: OrderedDict[int, int] = OrderedDict()
        # Clients whose certificate is too large for the engine to keep without an area.
        self._large: set[int] = set()
        self._generation = engine.client_generation()
        self._reasons: dict[int, str] = {}
        self._broken: set[int] = set()

    # Beginnings.

    def begin(self, slot: int, now: int) -> bool:
        """Start the handshake of a queued connection. False when no area is free: it stays."""
        try:
            self._engine.serve(slot, self._clock.unix_ms())
            self._table.served[slot] = now
            self._table.move(slot, HANDSHAKE, now + self._settings.handshake_timeout)
            self.watch(slot, select.EPOLLIN)
        except Refused as refused:
            if refused.refusal == "tls-pool":
                return False
            self.end(slot, refused.refusal.tag, now)
        except Exception as error:
            self.fault(slot, error, now)
        return True

    def area_free(self) -> bool:
        """Whether a connection that has no area could have one."""
        return self._engine.areas_free() > 0

    # Work.

    def ready(self, slot: int, events: int, now: int) -> None:
        """The descriptor is ready for what the connection waits for, or is in error."""
        table = self._table
        stage, fd = table.stage[slot], table.fd[slot]
        try:
            if stage in (OPEN, HANDSHAKE):
                before = table.received[slot]
                if table.watch[slot] == select.EPOLLOUT:
                    wants = self._transfer.resume(slot, fd)
                else:
                    wants = self._transfer.read(slot, fd, ended=bool(events & _ENDED))
                self._settle(slot, wants, before, now)
            elif stage == CLOSING:
                self._say(slot, now)
            elif stage == DRAINING and not self._transfer.discard(fd):
                self._close(slot)
        except Exception as error:
            self.fault(slot, error, now)

    def retry(self, now: int) -> None:
        """Areas may have come free: go on with those that wait for one, oldest first.

        As many are asked as get on, and the others not at all: with thousands of them, a look at
        each for every area that comes free would be all that the server does.
        """
        for _ in range(len(self.waiting)):
            if not self.may_retry():
                return
            slot, _ = self.waiting.popitem(last=False)
            try:
                self._retry(slot, now)
            except Exception as error:
                self.fault(slot, error, now)

    def may_retry(self) -> bool:
        """Whether a connection waits for an area, and there is one."""
        return bool(self.waiting) and self.area_free()

    def _retry(self, slot: int, now: int) -> None:
        fd, received = self._table.fd[slot], self._table.received[slot]
        if self._table.stage[slot] == CLOSING:
            self._say(slot, now)
            return
        wants = self._transfer.resume(slot, fd)
        if wants is Wants.READ:
            # Now, and not when it is next found readable: by then a handshake has the area.
            wants = self._transfer.read(slot, fd)
        self._settle(slot, wants, received, now)

    def expire(self, now: int) -> None:
        """End the connections whose deadline has passed."""
        table = self._table
        for stage in (SILENT, QUEUED, HANDSHAKE):
            while (slot := table.due(stage, now)) >= 0:
                self.end(slot, "handshake-timeout", now)
        while self.holding and next(iter(self.holding.values())) <= now:
            self.conclude(next(iter(self.holding)), "record-timeout", now)
        while (slot := table.due(OPEN, now)) >= 0:
            self.conclude(slot, "idle", now)
        while (slot := table.due(CLOSING, now)) >= 0:
            self.end(slot, self._reasons[slot], now)
        while (slot := table.due(DRAINING, now)) >= 0:
            self._close(slot)

    def next_deadline(self, now: int) -> int | None:
        """When `expire` or `retry` has something to do."""
        if self.may_retry():
            return now
        table = self._table
        times = [table.deadline[slot] for stage in _STAGES if (slot := table.first(stage)) >= 0]
        if self.holding:
            times.append(next(iter(self.holding.values())))
        return min(times, default=None)

    def _settle(self, slot: int, wants: Wants, before: int, now: int) -> None:
        """After bytes moved: what the connection is now, and what it waits for."""
        table = self._table
        progress = table.received[slot] > before
        if table.stage[slot] == HANDSHAKE:
            if self._is_established(slot, wants):
                self._log_established(slot, now)
                table.move(slot, OPEN, now + self._settings.idle)
        elif progress or wants is not Wants.REST:
            table.move(slot, OPEN, now + self._settings.idle)
        if wants not in _WATCHES:
            self._ended(slot, wants, now)
            return
        self._wait(slot, wants)
        if table.stage[slot] == OPEN:
            self._time_area(slot, progress, now)

    def _wait(self, slot: int, wants: Wants) -> None:
        self.watch(slot, _WATCHES[wants])
        if wants is Wants.AREA:
            self.waiting[slot] = None

    def _is_established(self, slot: int, wants: Wants) -> bool:
        # Plaintext and close_notify come after the handshake only. A connection that finished its
        # handshake and failed in one read, with no data between, has its end in the log only.
        if wants is Wants.FINISHED or self._table.received[slot] > 0:
            return True
        return self._engine.event(slot) in (Event.ESTABLISHED, Event.CLOSED)

    def _time_area(self, slot: int, progress: bool, now: int) -> None:
        """Bound how long an area is held in one go, and how long an answer waits to be read.

        Bytes that complete no record put nothing back, so a byte now and then keeps no area. A
        record that became whole begins a new time, or a long upload would be cut off; but not where
        others may have to wait for the area. There only whole records are read, so that who still
        holds one after each of them holds it on purpose (half a message behind every record), and
        would for ever. A verified client with a large certificate has its area for as long as it is
        connected, records or none.
        """
        area = slot not in self._large and self._engine.holds_area(slot)
        holds = area or slot in self._transfer.held
        if not holds or (progress and not (area and self._settings.sparing)):
            self.holding.pop(slot, None)
        if holds and slot not in self.holding:
            self.holding[slot] = now + self._settings.handshake_timeout

    def _ended(self, slot: int, wants: Wants, now: int) -> None:
        failure = self._engine.failure(slot)
        reason = "ok" if failure is None else failure.tag
        if wants is Wants.LOST:
            self.end(slot, reason, now)
        else:
            self.conclude(slot, reason, now)

    # Ends.

    def revoke(self, now: int) -> None:
        """After a reload: end the connections whose client an older store vouched for.

        An operator who replaces the store to revoke means those too. One that is still in its
        handshake is judged by the new store, or refused by the engine at its Finished.
        """
        engine, table = self._engine, self._table
        generation = engine.client_generation()
        if generation == self._generation:
            return
        self._generation = generation
        older = [
            slot for slot in table.slots(OPEN) if engine.peer_verified(slot) not in (0, generation)
        ]
        with self._log.together():
            for slot in older:
                self.conclude(slot, "revoked", now)

    def conclude(self, slot: int, reason: str, now: int) -> None:
        """End an established or failed connection: what is left to say is said first."""
        self._reasons[slot] = reason
        self.waiting.pop(slot, None)
        self.holding.pop(slot, None)
        self._table.move(slot, CLOSING, now + self.linger)
        try:
            self._say(slot, now)
        except Exception as error:
            self.fault(slot, error, now)

    def _say(self, slot: int, now: int) -> None:
        table = self._table
        wants = self._transfer.close(slot, table.fd[slot])
        if wants in _WATCHES:
            self._wait(slot, wants)
        elif wants is Wants.LOST:
            self.end(slot, self._reasons[slot], now)
        else:
            self._log_closed(slot, self._reasons[slot], now)
            self._release(slot)
            table.move(slot, DRAINING, now + self.linger)
            sockets.shut_write(table.fd[slot])
            if self._transfer.discard(table.fd[slot]):
                self.watch(slot, select.EPOLLIN)
            else:
                self._close(slot)

    def end(self, slot: int, reason: str, now: int) -> None:
        """End a connection at once, with nothing said. A reason that it already has stays."""
        if self._table.stage[slot] != DRAINING:
            self._log_closed(slot, self._reasons.get(slot, reason), now)
            self._release(slot)
        self._close(slot)

    def _release(self, slot: int) -> None:
        """Give the engine's slot back. One that it cannot free is never used again."""
        self._transfer.forget(slot)
        self.waiting.pop(slot, None)
        self.holding.pop(slot, None)
        self._large.discard(slot)
        self._reasons.pop(slot, None)
        try:
            if self._engine.event(slot) != Event.FREE:
                self._engine.drop(slot)
        except Exception as error:
            self._log.fault(f"drop of conn {self._table.number[slot]}", error)
            self._broken.add(slot)

    def _close(self, slot: int) -> None:
        # Nothing else holds the socket, so closing it takes it out of the epoll too (epoll(7)).
        sockets.close(self._table.fd[slot])
        self._table.remove(slot, reusable=slot not in self._broken)

    def fault(self, slot: int, error: Exception, now: int) -> None:
        """A defect broke a connection's step: log it and end this connection."""
        self._log.fault(f"conn {self._table.number[slot]}", error)
        self._reasons[slot] = "error"
        self.end(slot, "error", now)

    # Odds and ends.

    def watch(self, slot: int, mask: int) -> None:
        """What to be told of a connection's descriptor. Raises OSError: memory for it is bounded
        (epoll_ctl(2))."""
        table = self._table
        before, fd = table.watch[slot], table.fd[slot]
        if mask == before:
            return
        if not before:
            self._poll.register(fd, mask)
        elif mask:
            self._poll.modify(fd, mask)
        else:
            # Not a mask of 0: that would still report an error of the socket, at every turn.
            self._poll.unregister(fd)
        table.watch[slot] = mask

    def _log_established(self, slot: int, now: int) -> None:
        engine, table = self._engine, self._table
        served = table.served[slot]
        leaf = engine.peer_certificate(slot)
        subject = engine.peer_subject(slot)
        if leaf is not None and len(leaf) > ROOM_LEN:
            self._large.add(slot)
        its = Established(
            suite=engine.suite(slot),
            group=engine.group(slot),
            sni=engine.server_name(slot),
            alpn=engine.alpn(slot),
            retried=engine.retried(slot),
            resumed=engine.resumed(slot),
            ticket=engine.ticket_verdict(slot),
            client=None if subject is None else name_text(subject),
            fingerprint=engine.peer_fingerprint(slot),
            waited=served - table.arrived[slot],
            handshake=now - served,
        )
        self._log.established(table.number[slot], peer_text(table.peer(slot)), its)

    def _log_closed(self, slot: int, reason: str, now: int) -> None:
        table = self._table
        self._log.closed(
            table.number[slot],
            peer_text(table.peer(slot)),
            reason,
            table.received[slot],
            now - table.arrived[slot],
        )
