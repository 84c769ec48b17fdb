"""The loop: wait, move what is ready, end what is due, admit what waits; then wait again.

One thread and one epoll. A turn does the same things in the same order: connections that are ready,
then new ones, then deadlines, then what a signal asked for, then those that wait for an area (the
earlier steps free some), then the queue. A step that fails for one connection fails for that one.

A turn reads the clock once, and all that is decided in it is decided by that reading. The next wait
is measured from a reading of its own, by asking each part from when on it has something to do; a
moment that has come meanwhile is one to begin at once, and never one that was missed. So a turn
that comes before the wait is over, with nothing ready, finds nothing to do.
"""

import select
import socket
from collections.abc import Callable

from engine import Engine
from servers.clock import Clock
from servers.connections import DRAINING, HANDSHAKE, OPEN, QUEUED, SILENT, Connections
from servers.front import Front
from servers.log import Log
from servers.sessions import Sessions
from servers.settings import Settings
from servers.signals import Signals
from servers.transfer import Application, Transfer

EVENTS = 256
LOG_MS = 100
"""How often a log that had no room is tried again."""
SPEAK_MS = 900
STOP_MS = 1200
STOP_LINGER_MS = 300
"""A stop ends within two seconds: so long for saying close_notify, so long for peers to take it,
and the rest for closing what is left and wiping the engine, on a busy machine."""


class Loop:
    """A running server. The caller has made the engine, seeded it and given it its identities."""

    def __init__(
        self,
        engine: Engine,
        application: Application,
        listeners: list[socket.socket],
        settings: Settings,
        log: Log,
        signals: Signals,
        clock: Clock,
        reload: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._log = log
        self._signals = signals
        self._clock = clock
        self._reload = reload
        self._poll = select.epoll()
        self._poll.register(signals.wake_fd, select.EPOLLIN)
        self.table = Connections(settings.connections)
        transfer = Transfer(engine, application, self.table.received, sparing=settings.sparing)
        self.sessions = Sessions(engine, self.table, transfer, self._poll, log, clock, settings)
        self.front = Front(listeners, self.table, self.sessions, self._poll, log, settings)
        self._stop_by: int | None = None
        self._steps: dict[str, Callable[[int], None]] = {
            "deadlines": self.sessions.expire,
            "listening": self.front.expire,
            "signals": self._obey,
            "areas": self.sessions.retry,
            "queue": self.front.admit,
        }

    def run(self) -> None:
        """Serve until told to stop."""
        try:
            while not self.over():
                self.turn()
            self._end_all(self._clock.monotonic_ms())
        finally:
            self._poll.close()

    def over(self) -> bool:
        """Whether a stop is complete: nothing left, or no time left."""
        if self._stop_by is None:
            return False
        return not self.table.held() or self._clock.monotonic_ms() >= self._stop_by

    def turn(self, longest_ms: int | None = None) -> None:
        """Wait until something happens or is due (`longest_ms` at most), and do all that is."""
        events = self._poll.poll(self._timeout(longest_ms), EVENTS)
        now = self._clock.monotonic_ms()
        # Tickets and the certificates of clients are judged at their Finished, long after `serve`.
        self._try("time", self._engine.set_time, self._clock.unix_ms())
        if self._log.behind:
            self._log.flush()
        arrivals = []
        for fd, what in events:
            if fd == self._signals.wake_fd:
                self._signals.drain()
            elif self.front.owns(fd):
                arrivals.append(fd)
            elif (slot := self.table.slot_of(fd)) >= 0:
                if self.table.stage[slot] == SILENT:
                    self._try("queue", self.front.hear, slot, now)
                else:
                    self._try("connection", self.sessions.ready, slot, what, now)
        # New connections come last: a descriptor that was closed above may be one of theirs, and
        # an event of the old one must not be taken for one of the new.
        for fd in arrivals:
            self._try("accept", self.front.accept, fd, now)
        for name, step in self._steps.items():
            self._try(name, step, now)

    def _timeout(self, longest_ms: int | None) -> float:
        """Seconds to wait; negative is until something happens."""
        if self._signals.stop and self._stop_by is None:
            return 0
        now = self._clock.monotonic_ms()
        times = [self.sessions.next_deadline(now), self.front.next_deadline(now), self._stop_by]
        waits = [max(0, time - now) for time in times if time is not None]
        if self._log.behind:
            waits.append(LOG_MS)
        if longest_ms is not None:
            waits.append(longest_ms)
        return min(waits) / 1000 if waits else -1

    def _obey(self, now: int) -> None:
        """Do what a signal asked for."""
        if self._signals.stop:
            if self._stop_by is None:
                self._stop(now)
        elif self._signals.reload:
            self._signals.reload = False
            self._try("reload", self._reload)
            self._try("revoke", self.sessions.revoke, now)

    def _try(self, what: str, step: Callable[..., object], *arguments: int) -> None:
        """Do a step of the server's own: a defect in it is told, and the server goes on."""
        try:
            step(*arguments)
        except Exception as error:
            self._log.fault(what, error)

    def _stop(self, now: int) -> None:
        """Take no more; close what has no session; say close_notify to the rest."""
        self._stop_by = now + STOP_MS
        self.front.close()
        self.sessions.linger = STOP_LINGER_MS
        with self._log.together():
            self._say_goodbye(now)

    def _say_goodbye(self, now: int) -> None:
        for stage in (SILENT, QUEUED, HANDSHAKE):
            while (slot := self.table.first(stage)) >= 0:
                self.sessions.end(slot, "shutdown", now)
        # Those that hold an area first: the others need one to say close_notify with.
        for slot in list(self.sessions.holding):
            self.sessions.conclude(slot, "shutdown", now)
        while (slot := self.table.first(OPEN)) >= 0:
            # A hundred thousand take longer to tell than there is time: the rest is closed untold.
            if self._clock.monotonic_ms() > now + SPEAK_MS:
                return
            self.sessions.conclude(slot, "shutdown", now)

    def _end_all(self, now: int) -> None:
        """Close what is left when the time of a stop is up."""
        with self._log.together():
            for stage in range(SILENT, DRAINING + 1):
                while (slot := self.table.first(stage)) >= 0:
                    self.sessions.end(slot, "shutdown", now)
