"""The table of connections: numbers in one private map, and no Python object a connection.

A socket object in a dict costs 165 bytes and an entry in three dicts as much again; a connection
here is a descriptor and 80 bytes of a map, and a place that was never used is not even resident.
Fields are columns, so that a place is one index into each. A place is an engine slot: connection
`slot` of the table is connection `slot` of the engine.

A connection is in one stage at a time, and each stage is a list in the order in which its
connections' deadlines pass. All deadlines of a stage are equally long, so a connection goes to the
end of its list when its deadline is set, and only the first of each list can be due: no heap, no
timer object, no sweep over the idle. The lists are links in the same map.
"""

import mmap
from array import array
from collections.abc import Iterator

from servers.addresses import Peer

FREE, SILENT, QUEUED, HANDSHAKE, OPEN, CLOSING, DRAINING = range(7)
STAGES = 7
"""Free; accepted, and no byte came; waiting for a handshake place; in its handshake; established;
saying its last; being drained."""

NONE = -1
"""No connection, where a slot is answered."""

_MAP_NORESERVE = 0x4000
_WORDS = 7
_HALVES = 6


class Connections:
    """Columns of numbers, and the lists. Slots are taken lowest first, so that few pages are used.

    Who writes which column: `watch` is the loop's, `received` the transfer's, the rest this class's
    and whoever moves a connection to its next stage.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._map = mmap.mmap(-1, capacity * (8 * _WORDS + 4 * _HALVES), flags=flags)
        self._map.madvise(mmap.MADV_NOHUGEPAGE)
        self._view = memoryview(self._map)
        self.number = self._words(0)
        self.arrived = self._words(1)
        self.served = self._words(2)
        self.received = self._words(3)
        self.deadline = self._words(4)
        self._peer_high = self._words(5)
        self._peer_low = self._words(6)
        self.fd = self._halves(0)
        self.stage = self._halves(1)
        # A mask of epoll uses all 32 bits.
        self.watch = self._halves(2).cast("B").cast("I")
        self._peer_port = self._halves(3)
        # Links hold a slot plus one, so that a map that was never written is a table of no links.
        # Free places are linked by the first of them.
        self._next = self._halves(4)
        self._previous = self._halves(5)
        self._first = [0] * STAGES
        self._last = [0] * STAGES
        self.count = [0] * STAGES
        self._free = 0
        self._unused = 0
        self.numbers = 0  # given out so far
        self._slots = array("i")

    def _words(self, column: int) -> memoryview:
        start = column * 8 * self.capacity
        return self._view[start : start + 8 * self.capacity].cast("q")

    def _halves(self, column: int) -> memoryview:
        start = (8 * _WORDS + column * 4) * self.capacity
        return self._view[start : start + 4 * self.capacity].cast("i")

    def next_number(self) -> int:
        """The number of the next connection: one for each that was accepted, refused ones too."""
        self.numbers += 1
        return self.numbers

    def full(self) -> bool:
        """Whether no place is left."""
        return not self._free and self._unused == self.capacity

    def held(self) -> int:
        """How many connections the table holds."""
        return sum(self.count)

    def add(self, fd: int, peer: Peer, now: int, deadline: int) -> int:
        """A new connection, silent so far. The caller has asked `full`."""
        # First what may fail: without memory there is no connection, and not half of one.
        if fd >= len(self._slots):
            self._slots.extend([NONE] * (fd + 1 - len(self._slots)))
        if self._free:
            slot = self._free - 1
            self._free = self._next[slot]
        else:
            slot = self._unused
            self._unused += 1
        self.number[slot] = self.next_number()
        self.arrived[slot] = now
        self.served[slot] = now
        self.received[slot] = 0
        self._peer_high[slot], self._peer_low[slot], self._peer_port[slot] = peer
        self.fd[slot] = fd
        self.watch[slot] = 0
        self._slots[fd] = slot
        self.deadline[slot] = deadline
        self._append(slot, SILENT)
        return slot

    def remove(self, slot: int, *, reusable: bool = True) -> None:
        """The connection is over. A slot that the engine could not free is never used again."""
        self._unlink(slot)
        self._slots[self.fd[slot]] = NONE
        self.fd[slot] = NONE
        self.stage[slot] = FREE
        if reusable:
            self._next[slot] = self._free
            self._free = slot + 1

    def slot_of(self, fd: int) -> int:
        """Whose descriptor this is, or NONE."""
        return self._slots[fd] if fd < len(self._slots) else NONE

    def peer(self, slot: int) -> Peer:
        """The address of a connection's client."""
        return Peer(self._peer_high[slot], self._peer_low[slot], self._peer_port[slot])

    def first(self, stage: int) -> int:
        """The connection of a stage whose deadline is the earliest, or NONE."""
        return self._first[stage] - 1

    def slots(self, stage: int) -> Iterator[int]:
        """The connections of a stage, in the order of their deadlines. None may move meanwhile."""
        link = self._first[stage]
        while link:
            yield link - 1
            link = self._next[link - 1]

    def due(self, stage: int, now: int) -> int:
        """A connection of a stage whose deadline has passed, or NONE."""
        slot = self._first[stage] - 1
        return slot if slot >= 0 and self.deadline[slot] <= now else NONE

    def move(self, slot: int, stage: int, deadline: int) -> None:
        """Put a connection at the end of a stage's list: a new stage, or a deadline set again."""
        self._unlink(slot)
        self.deadline[slot] = deadline
        self._append(slot, stage)

    def _append(self, slot: int, stage: int) -> None:
        last = self._last[stage]
        self._previous[slot] = last
        self._next[slot] = 0
        if last:
            self._next[last - 1] = slot + 1
        else:
            self._first[stage] = slot + 1
        self._last[stage] = slot + 1
        self.stage[slot] = stage
        self.count[stage] += 1

    def _unlink(self, slot: int) -> None:
        stage = self.stage[slot]
        after, before = self._next[slot], self._previous[slot]
        if before:
            self._next[before - 1] = after
        else:
            self._first[stage] = after
        if after:
            self._previous[after - 1] = before
        else:
            self._last[stage] = before
        self.count[stage] -= 1
