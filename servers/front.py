"""The front door: accept, refuse, hear, queue, admit.

Every connection is accepted into a place of the table and has nothing else until its first bytes
are there: who says nothing (a port scan, a slowloris) delays nobody. Then it is queued, unwatched,
so that its ClientHello waits in the kernel and costs nothing. The oldest is admitted when fewer
handshakes than allowed run and fewer than allowed began in the last second. A burst of honest
clients (a thousand that reconnect at once) is delayed, not refused; an attacker's is bounded by the
same two numbers.

A connection over the table is accepted and closed at once: left in the kernel's backlog it would
wait for an answer that nobody plans. Unless somebody in the table has never said a word: the one
that has been silent the longest makes room, or a table full of them would be a closed door.
"""

import contextlib
import errno
import os
import select
import socket

from engine import Refusal
from servers import sockets
from servers.addresses import Peer, pack_peer, peer_text
from servers.connections import HANDSHAKE, QUEUED, SILENT, Connections
from servers.log import Log
from servers.rate import Rate
from servers.sessions import Sessions
from servers.settings import Settings

ACCEPT_BATCH = 64
"""Accepted in one turn at most, so that a flood of connections does not stop the established."""

PAUSE_MS = 100
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Front:
    """Listening sockets, the queue's two ends, and the rate."""

    def __init__(
        self,
        listeners: list[socket.socket],
        table: Connections,
        sessions: Sessions,
        poll: select.epoll,
        log: Log,
        settings: Settings,
    ) -> None:
        self._listeners = {listener.fileno(): listener for listener in listeners}
        self._table = table
        self._sessions = sessions
        self._poll = poll
        self._log = log
        self._settings = settings
        self._rate = Rate(settings.rate)
        self._paused_until: int | None = None
        self._byte = memoryview(bytearray(1))
        self._watch()

    def owns(self, fd: int) -> bool:
        """Whether a descriptor is a listening socket's."""
        return fd in self._listeners

    def accept(self, fd: int, now: int) -> None:
        """Take what waits at a listening socket, a batch of it."""
        for _ in range(ACCEPT_BATCH):
            listener = self._listeners.get(fd)
            if listener is None or self._paused_until is not None:
                return
            try:
                accepted, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Linux passes on errors of the connection itself, gone before it was accepted
                # (accept(2)); only a lack of descriptors or memory is ours.
                if error.errno in EXHAUSTED:
                    self._pause(error, now)
                continue
            self._take(accepted.detach(), pack_peer(address), now)

    def _take(self, fd: int, peer: Peer, now: int) -> None:
        table, sessions = self._table, self._sessions
        if table.full() and (silent := table.first(SILENT)) >= 0:
            sessions.end(silent, "full", now)
        if table.full():
            sockets.close(fd)
            self._log.refused(table.next_number(), peer_text(peer), "full")
            return
        os.set_blocking(fd, False)
        slot = table.add(fd, peer, now, now + self._settings.handshake_timeout)
        try:
            sessions.watch(slot, select.EPOLLIN)
        except OSError as error:
            sessions.fault(slot, error, now)

    def hear(self, slot: int, now: int) -> None:
        """A silent connection has said something, and waits for a handshake; or it has ended."""
        table, sessions = self._table, self._sessions
        try:
            if not sockets.peek(table.fd[slot], self._byte):
                raise ConnectionError
        except BlockingIOError:
            return
        except OSError:
            sessions.end(slot, Refusal.PEER_CLOSED.tag, now)
            return
        sessions.watch(slot, 0)
        table.move(slot, QUEUED, now + self._settings.handshake_timeout)

    def admit(self, now: int) -> None:
        """Start handshakes of the queue, oldest first, as far as the bounds allow."""
        table = self._table
        bound = self._settings.handshakes_at_once
        while table.count[QUEUED] and table.count[HANDSHAKE] < bound:
            if self._rate.wait_ms(now):
                return
            if not self._sessions.begin(table.first(QUEUED), now):
                return
            self._rate.start(now)

    def next_deadline(self, now: int) -> int | None:
        """When there is something to do that no descriptor will tell of."""
        times = [] if self._paused_until is None else [self._paused_until]
        table = self._table
        if (
            table.count[QUEUED]
            and table.count[HANDSHAKE] < self._settings.handshakes_at_once
            and self._sessions.area_free()
        ):
            # Now, if the rate allows one by now: `admit` may have asked a millisecond too early.
            times.append(now + self._rate.wait_ms(now))
        return min(times, default=None)

    def expire(self, now: int) -> None:
        """Listen again when a pause is over."""
        if self._paused_until is not None and self._paused_until <= now:
            self._paused_until = None
            try:
                self._watch()
            except OSError as error:
                self._pause(error, now)

    def close(self) -> None:
        """Take no more connections."""
        self._unwatch()
        self._paused_until = None
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()

    def _pause(self, error: OSError, now: int) -> None:
        # A listening socket stays ready while it cannot be accepted from, and the loop would spin.
        self._log.warn(f"cannot accept for {PAUSE_MS} ms: {error.strerror}")
        self._unwatch()
        self._paused_until = now + PAUSE_MS

    def _watch(self) -> None:
        for fd in self._listeners:
            self._poll.register(fd, select.EPOLLIN)

    def _unwatch(self) -> None:
        for fd in self._listeners:
            with contextlib.suppress(OSError):
                self._poll.unregister(fd)
