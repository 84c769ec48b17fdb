"""What every part of `Engine` stands on: its memory, its server, and whose mistake a call is."""

import os

from engine.drbg import Drbg
from engine.layout import FREE, STATE
from engine.pool import Pool
from engine.server import Server


class EngineBase:
    """The attributes of an engine and the checks that its calls share."""

    def __init__(self, server: Server, slots: int, areas: int) -> None:
        self._server = server
        self._pool = Pool(slots, areas)
        self._held = self._pool.held
        self._resting = self._pool.resting
        self._slots = slots
        self._drbg: Drbg | None = None
        self._seeded_in = 0
        self._handshakes = 0
        self._open = True

    def _check_open(self) -> None:
        if not self._open:
            raise ValueError("the engine is closed")

    def _check_range(self, slot: int) -> None:
        self._check_open()
        if not 0 <= slot < self._slots:
            raise IndexError("no such slot")

    def _drbg_here(self) -> Drbg | None:
        """The generator, if this process seeded it: a fork would repeat its parent's draws."""
        return self._drbg if self._seeded_in == os.getpid() else None

    def _words_of(self, slot: int) -> memoryview:
        """The current core's words of a slot that has a connection."""
        area = self._held.get(slot)
        if area is not None:
            return area.words
        self._check_range(slot)
        words = self._pool.words(slot)
        if words[STATE] == FREE:
            raise ValueError("the slot is free")
        return words
