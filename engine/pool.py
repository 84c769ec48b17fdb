"""Cores and areas: lease, settle, rest, clear, and the count of what clearing left.

Every slot has a core; an area is a whole slot's memory and there may be fewer of them. A
connection holds one while it is in its handshake or has bytes in a buffer. Then it gives it back
cleared, or rests in it until another connection wants it. A core has one current copy: while an
area holds it, the slot's own is zero.

`held` alone says whose an area is, and an area changes hands in one step, the entry in `held`. What
comes before the step can be thrown away and what comes after it can be done again, so that an
exception between any two lines loses nothing: `mend` makes the rest from `held`.

The rules, and what each stops:

- An area goes back zeroed to the high-water mark of each of its buffers, so that no connection's
  keys or plaintext can reach the next one through it. A mark rises before its buffer is written:
  what a fault leaves half written is below it.
- Free areas are last in, first out, and a handshake takes a resting connection's area before a
  free one: the pages that handshakes write stay the same few.
- The maps are private: a forked process must not write into its parent's connections. They are
  reserved and not committed, so that a slot nobody uses costs address space alone.
"""

import mmap
from contextlib import suppress
from operator import attrgetter
from typing import Final

from . import copies
from .key_schedule import Aead, Transcript
from .layout import (
    AREA_LEN,
    CORE_LEN,
    CORE_WORDS,
    ESTABLISHED,
    F_CLIENT_CERTIFICATE,
    F_CLOSE_SENT,
    F_LEAF_KEPT,
    F_PEER_CLOSED,
    FAILED,
    FAILURE,
    FLAGS,
    FREE,
    HANDSHAKE,
    IN,
    KEYS,
    KEYS_END,
    LEAF,
    LEAF_LEN,
    OUT,
    PEER_GENERATION,
    PEER_NOT_AFTER,
    RECEIVED,
    ROOM_LEN,
    RUN,
    SCRATCH,
    SCRATCH_END,
    STATE,
    STORE_GENERATION,
)
from .rooms import Rooms
from .x509.certificates import PublicKey

# Linux; the mmap module has no name for the first before 3.12, nor for the second.
_MAP_NORESERVE: Final = 0x4000
_MADV_WIPEONFORK: Final = 18
DEFAULT_RESTING: Final = 32
# A verified client's leaf too large for its slot's room keeps its area for the connection's life.
_CLOSED: Final = F_PEER_CLOSED | F_CLOSE_SENT
_LEAF: Final = F_CLIENT_CERTIFICATE | F_LEAF_KEPT


class Area:
    """One leased block, its cursors, and the Python objects of the connection that has it.

    Cursors and high-water marks are offsets into the block. `transcript`, `opener` and `sealer`
    hold secrets inside `cryptography`; they are dropped when the area goes back.

    A connection that rests has nothing in any buffer, is established, and neither side has closed.
    `quick` says that one record went in or out since it rested and nothing else happened: when that
    record has been received or taken, the connection can rest again without being asked anything.
    `run` is the core's, as it was when the connection began to rest.
    """

    __slots__ = (
        "bytes",
        "handshake_end",
        "handshake_high",
        "in_end",
        "in_high",
        "index",
        "leaf_high",
        "opener",
        "out_end",
        "out_high",
        "out_start",
        "peer_key",
        "quick",
        "read_iv",
        "received_end",
        "received_high",
        "received_start",
        "resting",
        "run",
        "scratch_used",
        "sealer",
        "transcript",
        "words",
        "write_iv",
        "write_limit",
    )

    def __init__(self, index: int, block: memoryview) -> None:
        self.index = index
        self.bytes = block
        self.words = block[: CORE_WORDS * 8].cast("q")
        self.resting = False
        self.forget()
        self.reset()

    def forget(self) -> None:
        """Drop the objects and numbers that came from a connection's secrets."""
        self.quick = False
        self.run = 0
        self.opener: Aead | None = None
        self.sealer: Aead | None = None
        self.transcript: Transcript | None = None
        self.peer_key: tuple[PublicKey, str] | None = None
        self.read_iv = 0
        self.write_iv = 0
        self.write_limit = 0

    def reset(self) -> None:
        """Every cursor and high-water mark to the start of its buffer."""
        self.in_end = self.in_high = IN
        self.handshake_end = self.handshake_high = HANDSHAKE
        self.out_start = self.out_end = self.out_high = OUT
        self.received_start = self.received_end = self.received_high = RECEIVED
        self.leaf_high = LEAF
        self.scratch_used = False

    def clear_buffers(self) -> None:
        """Zero all that lies behind the core and was written, and leave every buffer empty."""
        block = self.bytes
        if self.received_high != RECEIVED:
            copies.clear(block, RECEIVED, self.received_high)
            self.received_high = RECEIVED
        if self.out_high != OUT:
            copies.clear(block, OUT, self.out_high)
            self.out_high = OUT
        if self.in_high != IN:
            copies.clear(block, IN, self.in_high)
            self.in_high = IN
        if self.handshake_high != HANDSHAKE:
            copies.clear(block, HANDSHAKE, self.handshake_high)
            self.handshake_high = HANDSHAKE
        if self.leaf_high != LEAF:
            copies.clear(block, LEAF, self.leaf_high)
            self.leaf_high = LEAF
        if self.scratch_used:
            copies.clear(block, SCRATCH, SCRATCH_END)
            self.scratch_used = False

    def wipe(self) -> None:
        """Zero the whole block, whatever the marks say, and forget whose it was."""
        copies.wipe(self.bytes)
        self.resting = False
        self.reset()
        self.forget()


def _private_map(length: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    memory = mmap.mmap(-1, length, flags=flags)
    # A huge page would make 2 MiB resident for one core, and a core dump would hold every key.
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory.madvise(mmap.MADV_DONTDUMP)
    # A forked child gets zeros. Kernels before 4.14 do not know it; there the engines of a child,
    # which do not answer, give their maps back.
    with suppress(OSError):
        memory.madvise(_MADV_WIPEONFORK)
    return memory


class Pool:
    """The cores of all slots, the areas, and who holds which.

    `held` maps a slot to its area, resting or not; `resting` is its part that rests, the longest
    first. Both are read directly by the byte-moving calls. `_every` has each area that was ever
    made, and `_free` those that nobody holds: an area is put there when it is clean, and taken from
    there before it is written.
    """

    def __init__(self, slots: int, areas: int) -> None:
        self.slots = slots
        self.areas = areas
        self.held: dict[int, Area] = {}
        self.resting: dict[int, Area] = {}
        self.may_rest = min(DEFAULT_RESTING, areas)
        self._every: list[Area] = []
        self._free: list[Area] = []
        self._core_map = _private_map(slots * CORE_LEN)
        self._area_map = _private_map(areas * AREA_LEN)
        self._room_map = _private_map(slots * ROOM_LEN)
        self._cores = memoryview(self._core_map)
        self._core_words = self._cores.cast("q")
        self._area_bytes = memoryview(self._area_map)
        self._rooms = memoryview(self._room_map)
        self.rooms = Rooms(self._rooms, slots)

    # -- the current core -------------------------------------------------------------------

    def core(self, slot: int) -> memoryview:
        """The slot's own copy of its core, as bytes: current while no area holds it."""
        return self._cores[slot * CORE_LEN : (slot + 1) * CORE_LEN]

    def words(self, slot: int) -> memoryview:
        """The current core's words, wherever they are."""
        area = self.held.get(slot)
        if area is not None:
            return area.words
        first = slot * (CORE_LEN // 8)
        return self._core_words[first : first + CORE_WORDS]

    def block(self, slot: int) -> memoryview:
        """The current core's bytes, wherever they are."""
        area = self.held.get(slot)
        return self.core(slot) if area is None else area.bytes

    def state(self, slot: int) -> int:
        """The state of a slot, wherever its core is."""
        return self.words(slot)[STATE]

    # -- rooms ------------------------------------------------------------------------------

    def mind_leaf(self, slot: int, area: Area) -> None:
        """After a call that read: a verified client's leaf goes to its room, a failed one's is
        forgotten.

        A leaf larger than a room stays, and keeps its area. One that moved is cleared in the area
        with the other buffers.
        """
        words = area.words
        length = words[LEAF_LEN]
        if not length:
            return
        if words[STATE] == FAILED:
            self.forget_peer(slot, words)
        elif words[FLAGS] & _LEAF == F_CLIENT_CERTIFICATE and length <= ROOM_LEN:
            self.rooms.keep(slot, area.bytes[LEAF : LEAF + length])
            words[FLAGS] |= F_LEAF_KEPT

    def forget_peer(self, slot: int, words: memoryview) -> None:
        """The connection failed or goes: it has no identity, and its room is zero."""
        length = words[LEAF_LEN]
        if not length:
            return
        if words[FLAGS] & F_LEAF_KEPT:
            self.rooms.clear(slot, length)
        words[FLAGS] &= ~_LEAF
        words[LEAF_LEN] = words[PEER_NOT_AFTER] = 0
        words[PEER_GENERATION] = words[STORE_GENERATION] = 0

    # -- lease ------------------------------------------------------------------------------

    def lease(self, slot: int) -> Area | None:
        """The slot's area for a call that moves bytes; None when there is none to be had."""
        area = self.held.get(slot)
        if area is not None:
            area.quick = False
            if area.resting:
                area.resting = False
                del self.resting[slot]
            return area
        if self._free or self._made < self.areas:
            area = self._take_free()
        elif self.resting:
            area = self._take_resting()
        else:
            return None
        core = self.core(slot)
        copies.copy_core(area.bytes, core)
        self.held[slot] = area
        copies.clear(core, 0, CORE_LEN)
        return area

    def lease_for_handshake(self, slot: int) -> Area:
        """An area for a new connection, when `areas_free` is not 0.

        Its core starts as zeros: nothing is copied in.
        """
        area = self._take_resting() if self.resting else self._take_free()
        area.scratch_used = True
        self.held[slot] = area
        return area

    @property
    def _made(self) -> int:
        """How many areas were ever leased: those behind them were never written."""
        return len(self._every)

    def _take_free(self) -> Area:
        if self._free:
            return self._free.pop()
        start = self._made * AREA_LEN
        area = Area(self._made, self._area_bytes[start : start + AREA_LEN])
        self._every.append(area)
        return area

    def _take_resting(self) -> Area:
        self.end_longest_rest()
        return self._free.pop()

    # -- settle -----------------------------------------------------------------------------

    def settle(self, slot: int, area: Area) -> None:
        """After a call: an idle connection rests in its area, or gives it back."""
        if (
            area.out_end != OUT
            or area.received_end != RECEIVED
            or area.in_end != IN
            or area.handshake_end != HANDSHAKE
        ):
            return
        words = area.words
        state = words[STATE]
        flags = words[FLAGS]
        if state < ESTABLISHED or flags & _LEAF == F_CLIENT_CERTIFICATE:
            return
        if not self.may_rest or state != ESTABLISHED or flags & _CLOSED:
            self.release(slot, area)
            return
        area.clear_buffers()
        area.transcript = None
        area.run = words[RUN]
        area.resting = True
        self.resting[slot] = area
        if len(self.resting) > self.may_rest:
            self.end_longest_rest()

    def end_longest_rest(self) -> None:
        """The connection that rested longest gives its area up."""
        longest = next(iter(self.resting))
        self.release(longest, self.resting[longest])

    def release(self, slot: int, area: Area) -> None:
        """Give an area back: its core copied out, every byte of it cleared."""
        copies.copy_core(self.core(slot), area.bytes)
        self._give_back(slot, area)

    def _give_back(self, slot: int, area: Area) -> None:
        del self.held[slot]
        self.resting.pop(slot, None)
        area.resting = False
        copies.clear(area.bytes, 0, CORE_LEN)
        area.clear_buffers()
        area.reset()
        area.forget()
        self._free.append(area)

    def set_resting(self, count: int) -> None:
        """How many connections may rest; those over it give their areas up, the longest first."""
        while len(self.resting) > count:
            self.end_longest_rest()
        self.may_rest = count

    def drop(self, slot: int) -> None:
        """Free a slot: its area cleared, its core zero."""
        self.forget_peer(slot, self.words(slot))
        area = self.held.get(slot)
        core = self.core(slot)
        if area is not None:
            # Until its area has gone back the slot is failed and not free: it can be dropped again.
            core.cast("q")[STATE] = FAILED
            self._give_back(slot, area)
        copies.clear(core, 0, CORE_LEN)

    def fail_core(self, slot: int, failure: int) -> None:
        """Fail a connection that has no area, for the refusal of this code: its keys cleared."""
        words = self.words(slot)
        words[FAILURE] = failure
        words[STATE] = FAILED
        copies.clear_keys(self.core(slot))
        self.forget_peer(slot, words)

    def forget_room(self, slot: int) -> None:
        """Zero a room whatever it holds: a fault may have come while its leaf was written."""
        if self.rooms.nonzero_past(slot, 0):
            self.rooms.clear(slot, ROOM_LEN)

    def mend(self) -> None:
        """After a fault anywhere: make what follows from `held` again, and lose no area.

        An area is its holder's with the current copy of the core, whatever else was begun; one that
        was leased for a connection that did not begin has no holder. What nobody holds is wiped.
        Nothing here depends on how far the call had come, and all of it can be done again.
        """
        held, resting = self.held, self.resting
        for slot, area in list(held.items()):
            if area.words[STATE] == FREE:
                del held[slot]
            copies.clear(self.core(slot), 0, CORE_LEN)
            if not area.resting or slot not in resting:
                area.resting = False
                resting.pop(slot, None)
        for slot in [slot for slot in resting if slot not in held]:
            del resting[slot]
        known = {*held.values(), *self._free}
        for area in self._every:
            if area not in known:
                area.wipe()
                self._free.append(area)

    def wipe(self) -> None:
        """Zero everything, for nobody to use it again. A view held outside shows zeros."""
        self.held.clear()
        self.resting.clear()
        for area in self._every:
            area.forget()
        # Only what was ever written is wiped: the rest would become resident for nothing.
        copies.wipe(self._area_bytes[: self._made * AREA_LEN])
        copies.wipe(self._cores)
        copies.wipe(self._rooms)

    def close(self) -> None:
        """Let the maps go, and the objects of every connection. It can be done again.

        A view of a map that somebody still holds keeps it mapped.
        """
        self.held.clear()
        self.resting.clear()
        self._free.clear()
        views = [self._core_words, self._cores, self._area_bytes, self._rooms]
        for area in self._every:
            area.forget()
            views += area.words, area.bytes
        for view in views:
            with suppress(BufferError):
                view.release()
        for memory in (self._core_map, self._area_map, self._room_map):
            with suppress(BufferError):
                memory.close()

    # -- what clearing left -----------------------------------------------------------------

    def areas_free(self) -> int:
        """Free areas and resting ones: what a connection could have."""
        return self.areas - len(self.held) + len(self.resting)

    def residue(self) -> int:
        """How many bytes and objects the clearing left behind; 0 after every call.

        Scans the memory itself, every area by who holds it: those that nobody holds, leased once or
        never; resting areas past the core; the cores of free slots, and those that an area holds
        the only copy of; the keys of failed connections; objects that a free area still refers to.
        An area that is neither held nor free, or both, counts as one.
        """
        count = copies.nonzero(self._area_bytes[self._made * AREA_LEN :])
        count += abs(self._made - len(self.held) - len(self._free))
        holding = set(self.held.values())
        for area in self._every:
            if area not in holding:
                count += copies.nonzero(area.bytes) + _objects(area)
            elif area.resting:
                count += copies.nonzero(area.bytes[CORE_LEN:])
            elif area.words[STATE] == FAILED:
                count += copies.nonzero(area.bytes[KEYS:KEYS_END])
        return count + self._core_residue() + self._room_residue()

    def _core_residue(self) -> int:
        """Bytes of free slots' cores, of the cores that areas hold, of failed connections' keys."""
        if not copies.nonzero(self._cores):
            return 0
        count = 0
        for slot, state in enumerate(self._core_words[STATE :: CORE_LEN // 8].tolist()):
            if state == FREE or slot in self.held:
                count += copies.nonzero(self.core(slot))
            elif state == FAILED:
                count += copies.nonzero(self.core(slot)[KEYS:KEYS_END])
        return count

    def _room_residue(self) -> int:
        """Bytes of rooms that are not the leaf of a live verified connection, or lie past it."""
        if not copies.nonzero(self._rooms):
            return 0
        count = 0
        for slot in range(self.slots):
            words = self.words(slot)
            live = words[STATE] == ESTABLISHED and words[FLAGS] & F_LEAF_KEPT
            count += self.rooms.nonzero_past(slot, words[LEAF_LEN] if live else 0)
        return count


_values: Final = attrgetter(*Area.__slots__)
_PLAIN: Final = frozenset({memoryview, int, bool, type(None)})


def _objects(area: Area) -> int:
    """How many attributes of a free area are neither a view nor a number and are not None."""
    values = _values(area)
    if _PLAIN.issuperset(map(type, values)):
        return 0
    return sum(type(value) not in _PLAIN for value in values)
