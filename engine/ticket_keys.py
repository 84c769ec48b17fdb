"""The ring of ticket keys: one that seals, up to three that only open, and the clock they live by.

The rules:

- A key is 32 bytes. Its name, which every ticket carries in the clear, is a function of the key,
  so hosts that were given the same key agree on its name with nothing else to agree on.
- The current key seals and opens. A key that stops being current opens for one ticket lifetime
  more, to the millisecond: no ticket that it sealed lives longer. So a stolen key is worth two
  lifetimes at most.
- A key that the engine drew is replaced after one lifetime, counted from when it was due and not
  from when somebody came: unused, it ends two lifetimes after it was drawn. A program that supplies
  keys turns that off: then several processes hold the same ring, and only their operator can rotate
  it.
- Turning tickets off overwrites every key. What it had sealed is not opened when they are on again.
- The clock only moves forward, and any value forward is taken. A jump cannot be told from a night
  without a connection, and one that is wrong fails safe: it ages tickets, and revives none.

Keys lie in places, bytearrays made once and overwritten when their key goes; there are twice as
many as keys, so that a whole new list is there before the old one gives way. The list of keys alone
says which places are in use: it changes in one step, and what it does not name is overwritten,
after a fault too. Deriving a name or a subkey hands a place to `hmac` as a buffer: no copy of a key
is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import digest as hmac_digest
from operator import index as as_int

from .refusals import Refusal, Refused

KEY_LENGTH = 32
NAME_LENGTH = 16
RING_SIZE = 4

# A caller's mistake stops here, so that no sum of a time and a lifetime can pass the 64 bits that a
# ticket and a slot's word have for it.
LATEST_MS = 1 << 62

_NAME_LABEL = b"cancho tls ticket key name v1"
_ZEROS = bytes(KEY_LENGTH)

Buffer = bytes | bytearray | memoryview
Fill = Callable[[bytearray], None]


def key_name(key: Buffer) -> bytes:
    """The name that tickets sealed under `key` carry."""
    return hmac_digest(key, _NAME_LABEL, sha256)[:NAME_LENGTH]


class TicketKey:
    """One key in use: its name, the place that holds its bytes, and its times."""

    __slots__ = ("current_since", "drawn", "name", "open_until", "secret")

    open_until: int
    """Meaningless, and not read, while the key is the current one."""

    def __init__(
        self, name: bytes, secret: bytearray, since_ms: int, until_ms: int, drawn: bool
    ) -> None:
        self.name = name
        self.secret = secret
        self.drawn = drawn
        self.current_since = since_ms
        self.open_until = until_ms


class TicketKeyRing:
    """Up to four ticket keys, the first of them current, and the clock of all tickets."""

    __slots__ = ("_keys", "_now_ms", "_places", "_supplied", "lifetime_ms")

    lifetime_ms: int
    """The lifetime of the tickets made now. A previous key keeps its date when it changes."""

    def __init__(self, lifetime_ms: int) -> None:
        self._places = [bytearray(KEY_LENGTH) for _ in range(2 * RING_SIZE)]
        self._keys: list[TicketKey] = []
        self.lifetime_ms = lifetime_ms
        self._now_ms = 0
        self._supplied = False

    @property
    def now_ms(self) -> int:
        """The latest time that the program gave."""
        return self._now_ms

    def advance(self, now_ms: int) -> None:
        """Move the clock forward; a time before the latest changes nothing."""
        now_ms = checked_time(now_ms)
        if now_ms <= self._now_ms:
            return
        self._now_ms = now_ms
        keys = self._still_held(now_ms)
        if len(keys) != len(self._keys):
            self._hold(keys)

    def renew(self, now_ms: int, fill: Fill) -> None:
        """Move the clock, and draw a key if the engine's own is missing or has had its lifetime.

        `fill` is the source of randomness. It may raise; then nothing has changed.
        """
        later = max(self._now_ms, checked_time(now_ms))
        if self._own_key_due(later):
            self.rotate(later, fill)
        else:
            self.advance(later)

    def rotate(self, now_ms: int, fill: Fill) -> None:
        """Draw a key and make it current; the one before it opens for one lifetime more.

        `fill` is the source of randomness. It may raise; then nothing has changed.
        """
        now_ms = max(self._now_ms, checked_time(now_ms))
        place = self._unused().pop()
        fill(place)
        key = TicketKey(key_name(place), place, now_ms, 0, drawn=True)
        self._retire_current(now_ms)
        older = [old for old in self._keys if not old.drawn or now_ms < old.open_until]
        self._now_ms = now_ms
        self._hold([key, *older[: RING_SIZE - 1]])

    def set_keys(self, keys: Sequence[Buffer], now_ms: int) -> None:
        """Hold exactly `keys`, the first current, and leave their rotation to the program.

        A key already held keeps its history, one not listed is overwritten, and a new one that is
        not the first opens for one lifetime from now. The same list changes nothing. Raises
        `Refused` with `tls-server-ticket-key`, and changes nothing, unless there are 1 to 4
        different keys of 32 bytes; TypeError for one key that is no list, ValueError for a time of
        2^62 milliseconds or more.
        """
        if isinstance(keys, str | bytes | bytearray | memoryview):
            raise TypeError("keys is a list of keys, not one key")
        if not 1 <= len(keys) <= RING_SIZE:
            raise Refused(Refusal.SERVER_TICKET_KEY)
        views = [memoryview(key).cast("B") for key in keys]
        if any(len(view) != KEY_LENGTH for view in views):
            raise Refused(Refusal.SERVER_TICKET_KEY)
        named = {key_name(view): view for view in views}
        # A key twice would have two histories, and the one found first could be the stale one.
        if len(named) != len(keys):
            raise Refused(Refusal.SERVER_TICKET_KEY)

        now_ms = max(self._now_ms, checked_time(now_ms))
        self._retire_current(now_ms)
        held = {key.name: key for key in self._keys}
        unused = self._unused()
        listed = []
        for name, view in named.items():
            old = held.get(name)
            if old is None:
                place = unused.pop()
                place[:] = view
                since, until = now_ms, now_ms + self.lifetime_ms
            else:
                place, since, until = old.secret, old.current_since, old.open_until
            listed.append(TicketKey(name, place, since, until, drawn=False))
        self._now_ms, self._supplied = now_ms, True
        self._hold(listed)

    def current(self) -> TicketKey | None:
        """The key that seals, or None before there is one."""
        return self._keys[0] if self._keys else None

    def find(self, name: Buffer) -> TicketKey | None:
        """The key of that name, if it opens tickets now."""
        for place, key in enumerate(self._keys):
            if key.name == name:
                return key if place == 0 or self._now_ms < key.open_until else None
        return None

    def open_keys(self) -> int:
        """How many keys open tickets now."""
        return sum(
            place == 0 or self._now_ms < key.open_until for place, key in enumerate(self._keys)
        )

    def residue(self) -> int:
        """The bytes that are not zero in places that hold no key in use."""
        return sum(KEY_LENGTH - place.count(0) for place in self._unused())

    def wipe(self) -> None:
        """Overwrite every key and forget it, and that the program supplied any."""
        self._supplied = False
        self._hold([])

    def clear_unused(self) -> None:
        """Overwrite every place that holds no key in use."""
        for place in self._unused():
            place[:] = _ZEROS

    def _own_key_due(self, now_ms: int) -> bool:
        """Whether the engine has to draw a key: it has none, or its own has had its lifetime."""
        if not self._keys:
            return True
        return not self._supplied and now_ms - self._keys[0].current_since >= self.lifetime_ms

    def _retire_current(self, now_ms: int) -> None:
        """Let the current key, if there is one, open for one lifetime after it stopped sealing.

        The engine's own stopped when it was due, if nobody came to have it replaced: it has sealed
        nothing since the clock was last moved.
        """
        if not self._keys:
            return
        key = self._keys[0]
        stopped = now_ms
        if not self._supplied:
            stopped = min(now_ms, max(self._now_ms, key.current_since + self.lifetime_ms))
        key.open_until = stopped + self.lifetime_ms

    def _still_held(self, now_ms: int) -> list[TicketKey]:
        """The keys without those whose time is over.

        A supplied key past its time is kept: it is how a list that is supplied again, as at every
        reload, is known not to be a new one, which would open for another lifetime. Nobody can
        supply a key that the engine drew, so that one is overwritten as soon as it opens nothing.
        """
        if not self._keys:
            return []
        current, *older = self._keys
        if not self._supplied and now_ms - current.current_since >= 2 * self.lifetime_ms:
            return []
        return [current, *(key for key in older if not key.drawn or now_ms < key.open_until)]

    def _unused(self) -> list[bytearray]:
        """The places that hold no key in use."""
        used = {id(key.secret) for key in self._keys}
        return [place for place in self._places if id(place) not in used]

    def _hold(self, keys: list[TicketKey]) -> None:
        """These keys and no others, in one step; then those that went are overwritten."""
        self._keys = keys
        self.clear_unused()


def checked_time(now_ms: int) -> int:
    """A time as an int; ValueError when it is no time that a ticket or a slot can carry."""
    now_ms = as_int(now_ms)
    if not -LATEST_MS < now_ms < LATEST_MS:
        raise ValueError("the time is out of range")
    return now_ms
