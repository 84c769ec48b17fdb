"""What every part of `Engine` stands on: its memory, its server, and whose mistake a call is.

A fault of ours, or an exception from outside, may come between any two lines of a call. The call
then marks its engine torn, which is one step, mends it and raises what came; if the mending cannot
be done there (the stack is as deep as it may be, a second Ctrl-C), the next call that looks further
than its own slot does it first.

An engine belongs to the process that made it. A fork's child would repeat its parent's draws and,
on a connection that both go on with, its nonces: so what the child inherits has ended.
"""

import os
import sys
import traceback
from types import TracebackType
from typing import Final
from weakref import WeakSet

from .drbg import Drbg
from .layout import FAILURE, FREE, STATE
from .pool import Pool
from .records import end, fail, forget_keys
from .refusals import Refusal
from .server import Server

NOBODY: Final = -1
"""In the place of a slot: what broke is no connection's."""

_inherited: Final[WeakSet["EngineBase"]] = WeakSet()


class EngineBase:
    """The attributes of an engine and the checks that its calls share."""

    def __init__(self, server: Server, slots: int, areas: int) -> None:
        self._server = server
        self._pool = Pool(slots, areas)
        self._held = self._pool.held
        self._resting = self._pool.resting
        self._slots = slots
        self._drbg: Drbg | None = None
        # The slots whose call broke and is not mended yet.
        self._torn: tuple[int, ...] = ()
        # Why no call is answered any more.
        self._ended = ""
        _inherited.add(self)

    def _check_open(self) -> None:
        if self._ended:
            raise ValueError(self._ended)
        if self._torn:
            self._mend()

    def _check_range(self, slot: int) -> None:
        self._check_open()
        if not 0 <= slot < self._slots:
            raise IndexError("no such slot")

    def _words_of(self, slot: int) -> memoryview:
        """The current core's words of a slot that has a connection."""
        if self._torn:
            self._mend()
        area = self._held.get(slot)
        if area is not None:
            return area.words
        self._check_range(slot)
        words = self._pool.words(slot)
        if words[STATE] == FREE:
            raise ValueError("the slot is free")
        return words

    def _broke(self) -> None:
        """A call broke, and has marked the engine torn: called as its exception is handled.

        The frames that the exception passed through are emptied first: they hold bytes of the
        connection. It stays the caller's: nothing here refers to it afterwards.
        """
        fault = sys.exception()
        if fault is not None:
            traceback.clear_frames(fault.__traceback__)
        self._mend()

    def _mend(self) -> None:
        """Put right what a call left that broke; every part of it can be done again."""
        self._pool.mend()
        for slot in self._torn:
            if slot != NOBODY:
                self._fail(slot)
        self._server.resumption.ring.clear_unused()
        if self._drbg is not None:
            self._drbg.clear_stream()
        self._torn = ()

    def _fail(self, slot: int) -> None:
        """End the connection of a call that broke; a slot that is free stays free."""
        pool = self._pool
        words = pool.words(slot)
        if words[STATE] == FREE:
            return
        area = self._held.get(slot)
        if area is None:
            pool.fail_core(slot, words[FAILURE] or Refusal.INTERNAL_ERROR.code)
        else:
            pool.lease(slot)
            try:
                fail(area, Refusal.INTERNAL_ERROR)
            except Exception:  # what broke may be the sealing: then no alert is sent
                end(area, Refusal.INTERNAL_ERROR)
            # Again where it had failed before, and its keys are not all cleared.
            forget_keys(area)
            pool.mind_leaf(slot, area)
            pool.settle(slot, area)
        pool.forget_room(slot)

    def _wipe(self) -> None:
        """Overwrite every secret, then let the memory go; it can be done again."""
        if not self._ended:
            self._server.identities.wipe()
            self._server.resumption.ring.wipe()
            if self._drbg is not None:
                self._drbg.wipe()
            self._pool.wipe()
            self._ended = "the engine is closed"
        self._pool.close()


class Whole:
    """A context: a setting that breaks in it is mended, so that it is made whole or not at all."""

    __slots__ = ("_engine",)

    def __init__(self, engine: EngineBase) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine._check_open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if fault is not None:
            self._engine._torn += (NOBODY,)
            self._engine._broke()


def _end_inherited() -> None:
    """In the child of a fork: no engine answers, and none of their secrets is here.

    The kernel gave the maps as zeros, or gives them back now.
    """
    for engine in list(_inherited):
        engine._ended = "the engine was made in another process"
        engine._pool.close()
        engine._server.identities.wipe()
        engine._server.resumption.ring.wipe()
        if engine._drbg is not None:
            engine._drbg.wipe()


os.register_at_fork(after_in_child=_end_inherited)
