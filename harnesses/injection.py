"""Injection: an exception at every place of every call, and what it leaves behind.

    python -m harnesses.injection SCENARIO ORACLE      whether an injection into it breaks that

A scenario (`injector.scenarios`) is made anew, its call is broken at one place (`injector.places`),
and the same questions are asked. Each is an oracle with a name, and each has a planted fault in
`mutants/catalogue/injection.toml` that trips it:

    escapes      the exception does not come out of the call
    other        another exception comes out
    residue      `residue()` is not 0: after the call, after the drop, when all are dropped
    slot         the connection is neither failed nor as it was
    keys         a failed connection's keys are not zero
    handshakes   `handshakes_in_progress()` is not what the slots say
    settings     a setting is neither what it was nor what it shall be
    lent         a traceback or a cycle keeps what the caller lent
    drop         `drop` raises, or does not free the slot
    bytes        a scan of the maps finds a byte that is nobody's
    neighbour    another connection does not work any more
    next         the slot does not serve the next connection
    areas        an area is lost or has two owners, or the count of free ones is wrong
    close        `close` raises, or leaves a byte, even while the program still has the exception

"As it was" is tried: the call is made again and the connection goes on, and both must come to what
they come to where nothing broke.

What it cannot see: a place inside one call of C; two faults in one call; a place between two parts
of one line that no call of C parts; an abort of the interpreter.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import NamedTuple

from engine import Engine, Event, Refused

from .injector.places import KINDS, Injector, Kind
from .injector.scenarios import SCENARIOS, Nature, Scenario
from .injector.scene import NEIGHBOUR, SLOT, SLOTS, STORY, Call, Peer, Scene, honest
from .oracles import Broken
from .whitebox import HeldMaps, areas_in_use, handshaking, keys_are_zero, settings, stray

ORACLES = (
    "escapes",
    "other",
    "residue",
    "slot",
    "keys",
    "handshakes",
    "settings",
    "lent",
    "drop",
    "bytes",
    "neighbour",
    "next",
    "areas",
    "close",
)


class Injected(Exception):
    """A finding's cause: its traceback is that of the exception that was injected."""


class Violation(NamedTuple):
    """One oracle that failed, and how."""

    oracle: str
    detail: str


class InjectionVerdict(NamedTuple):
    """What came of one injection; `where` is empty when its place was not reached."""

    where: str = ""
    violations: tuple[Violation, ...] = ()


class Honest(NamedTuple):
    """A scenario where nothing breaks: what it comes to, and the settings around its call."""

    story: tuple[object, ...]
    before: tuple[object, ...]
    after: tuple[object, ...]


@lru_cache(maxsize=64)
def places(scenario: Scenario, kind: str) -> int:
    """How many places of this kind the scenario's call has."""
    count = 0
    # What is cached at a first call is cached by it: the second is like all that follow.
    for _ in range(2):
        scene = scenario.begin()
        maps = HeldMaps(scene.engine)  # as in a trial: what is held, `close` cannot let go
        injector = Injector(KINDS[kind])
        injector.make(partial(_answer, scenario.ask(scene)))
        count = injector.count
        maps.release()
    return count


@lru_cache(maxsize=16)
def honest_run(scenario: Scenario) -> Honest:
    """The scenario without an injection; Broken when an oracle has something against that."""
    scene = scenario.begin()
    call = scenario.ask(scene)
    before = settings(scene.engine)
    answer = _answer(call)
    if scenario.nature is Nature.CLOSES:
        return Honest((answer,), before, ())
    after = settings(scene.engine)
    found = Honest(_story(scene, call, answer), before, after)
    trial = _Trial(scenario, scene, call, found)
    trial.leave()
    if trial.violations:
        oracle, detail = trial.violations[0]
        raise Broken(oracle, f"{scenario.name}, where nothing is injected: {detail}")
    return found


def _answer(call: Call) -> object:
    """A call's answer; a refusal, or what it says of a caller's mistake, is one too."""
    try:
        return call.thunk()
    except (Refused, ValueError) as error:
        return error.args


def _story(scene: Scene, call: Call, answer: object) -> tuple[object, ...]:
    """What a call that was not broken comes to."""
    if not isinstance(answer, tuple):
        call.answered(answer)
    return answer, *scene.go_on()


def inject(scenario: Scenario, kind: str, place: int) -> InjectionVerdict:
    """One injection, judged."""
    found = honest_run(scenario)
    scene = scenario.begin()
    trial = _Trial(scenario, scene, scenario.ask(scene), found)
    injector = Injector(KINDS[kind], place)
    collects = gc.isenabled()
    gc.disable()  # a cycle is what `lent` looks for
    try:
        error = _break(trial.call, injector)
        if not injector.where:
            return InjectionVerdict()
        trial.judge(error, KINDS[kind])
    finally:
        if collects:
            gc.enable()
    return InjectionVerdict(injector.where, tuple(trial.violations))


def _break(call: Call, injector: Injector) -> list[BaseException]:
    """Make the call with the injector at work; the exception that comes out, in a list that who is
    done with it can empty."""
    try:
        injector.make(call.thunk)
    except BaseException as error:
        return [error]
    return []


class _Trial:
    """The questions that are asked after one injection."""

    def __init__(self, scenario: Scenario, scene: Scene, call: Call, found: Honest) -> None:
        self.nature = scenario.nature
        self.scene = scene
        self.engine = scene.engine
        self.call = call
        self.honest = found
        self.violations: list[Violation] = []
        self.references = _references(call)
        self.maps = HeldMaps(scene.engine)

    def note(self, oracle: str, detail: str) -> None:
        self.violations.append(Violation(oracle, detail))

    @contextmanager
    def noting(self, oracle: str) -> Iterator[None]:
        """What is raised inside is a violation."""
        try:
            yield
        except Exception as error:
            self.note(oracle, f"{type(error).__name__}: {error}"[:200])

    def judge(self, error: list[BaseException], kind: Kind) -> None:
        """All of them. `error` is emptied: the program is done with the exception."""
        closes = kind.closes or self.nature is Nature.CLOSES
        with self.noting("escapes"):
            self._came_out(error, kind)
        if self.nature is not Nature.CLOSES:
            self.at_once()
        if closes:
            self.close()
        error.clear()
        self.given_back()
        if not closes:
            with self.noting("slot"):
                self.again()
            self.leave()
        self.views_given_back()

    def _came_out(self, error: list[BaseException], kind: Kind) -> None:
        """What was raised comes out. But whatever a parser or a primitive raises may be taken for
        the fault of what it was given: then the connection is failed, or a setting refused."""
        excused = issubclass(kind.error, Exception)
        for one in error:
            refused = isinstance(one, Refused) and self.nature is Nature.SETS
            if not isinstance(one, kind.error) and not (excused and refused):
                self.note("other", f"{type(one).__name__}: {one}"[:200])
        failed = self.nature is Nature.MOVES and self.engine.event(SLOT) == Event.FAILED
        if not error and not (excused and failed):
            self.note("escapes", "the call answers as if nothing had been")

    # -- while the program has the exception --------------------------------------------------

    def at_once(self) -> None:
        """Right after the call."""
        with self.noting("residue"):
            self._books("after the call")
        with self.noting("slot"):
            event = self.engine.event(SLOT)
            if event == Event.FAILED and not keys_are_zero(self.engine, SLOT):
                self.note("keys", "the connection is failed, and its keys are not zero")
            began = self.nature is Nature.STARTS and self.honest.story[0] is None
            if began and event not in (Event.FREE, Event.FAILED):
                self.note("slot", f"serve raised, and the connection is {event}")
        if self.nature is Nature.SETS:
            with self.noting("settings"):
                self._settings()

    def _settings(self) -> None:
        now = settings(self.engine)
        for one, *right in zip(now, self.honest.before, self.honest.after, strict=True):
            if one not in right:
                self.note("settings", "one is neither what it was nor what it shall be")

    def _books(self, when: str) -> None:
        left = self.engine.residue()
        if left:
            self.note("residue", f"{left} bytes {when}")
        said, are = self.engine.handshakes_in_progress(), handshaking(self.engine)
        if said != are:
            self.note("handshakes", f"{said} are said to be in progress, and {are} are, {when}")

    # -- afterwards ---------------------------------------------------------------------------

    def given_back(self) -> None:
        """What was lent is the caller's own again."""
        if _references(self.call) != self.references:
            self.note("lent", "something still refers to what the caller lent")
        for one in self.call.lent:
            if isinstance(one, bytearray):
                self._may_grow(one)

    def views_given_back(self) -> None:
        """Once its view is let go, what a view showed is the caller's own again."""
        for one in self.call.lent:
            if isinstance(one, memoryview):
                shown = one.obj
                assert isinstance(shown, bytearray)
                one.release()
                self._may_grow(shown)

    def _may_grow(self, buffer: bytearray) -> None:
        try:
            buffer.append(0)
            buffer.pop()
        except BufferError:
            self.note("lent", "something still has a view of the caller's bytearray")

    def again(self) -> None:
        """What is not failed is as it was: the call can be made again, and the connection goes on
        as it does where nothing broke."""
        if self.violations or self.nature is Nature.DROPS:
            return
        if self.nature is Nature.SETS:
            # Once all is done, it need not be the same a second time.
            if settings(self.engine) == self.honest.after:
                return
        elif self.nature is not Nature.READS and self.engine.event(SLOT) == Event.FAILED:
            return
        story = _story(self.scene, self.call, _answer(self.call))
        for name, one, other in zip(STORY, story, self.honest.story, strict=False):
            if one != other:
                self.note("slot", f"the call is made again, and its {name} is another")
                break

    def leave(self) -> None:
        """The program drops the connection, and all others work as if it had never been."""
        engine = self.engine
        with self.noting("drop"):
            if engine.event(SLOT) != Event.FREE:
                engine.drop(SLOT)
            if engine.event(SLOT) != Event.FREE:
                self.note("drop", "the slot is not free")
        with self.noting("neighbour"):
            self.scene.neighbour.receive()
            self.scene.neighbour.echo()
        with self.noting("bytes"):
            self._books("after the drop")
            if left := stray(engine, 1):
                self.note("bytes", left)
        with self.noting("next"):
            engine.client_auth_mode(0)
            Peer(engine, SLOT, honest("next")).establish().echo()
            engine.drop(SLOT)
        with self.noting("areas"):
            engine.drop(NEIGHBOUR)
            self._areas()
        with self.noting("bytes"):
            self._books("when all are dropped")
            if left := stray(engine, 0):
                self.note("bytes", left)
        self.close()

    def _areas(self) -> None:
        """As many connections begin as there are areas, each in an area of its own."""
        engine = self.engine
        areas = engine.areas()
        if engine.areas_free() != areas:
            self.note("areas", f"{engine.areas_free()} of {areas} are free when all are dropped")
        slots = range(min(areas, SLOTS))
        for slot in slots:
            Peer(engine, slot, self.scene.peer.client).serve()
        used = areas_in_use(engine)
        if used != areas:
            self.note("areas", f"{areas} connections have {used} areas")
        for slot in slots:
            engine.drop(slot)

    def close(self) -> None:
        """Everything is wiped, whatever was broken before and whoever has a view."""
        with self.noting("close"):
            try:
                self.engine.close()
            except ValueError:
                # Then it is closed, and every call says so.
                if _is_open(self.engine):
                    raise
            self.maps.check_wiped()
            self.maps.release()
            if _is_open(self.engine):
                self.note("close", "the engine is still open")


def _references(call: Call) -> list[int]:
    return [sys.getrefcount(one) for one in call.lent]


def _is_open(engine: Engine) -> bool:
    try:
        engine.areas()
    except ValueError:
        return False
    return True


# -- one injection as an input, as the other harnesses have them --------------------------------


def text_of(scenario: Scenario, kind: str, place: int, where: str) -> bytes:
    """An injection as an input; `where` its place lies is for who reads it."""
    return f"{scenario.name} {kind} {place} # {where}\n".encode()


def read(data: bytes) -> tuple[Scenario, str, int]:
    """What an input says; ValueError for one that says nothing."""
    words = data.decode("ascii", errors="replace").partition("#")[0].split()
    if len(words) != 3 or words[0] not in SCENARIOS or not words[2].isdecimal():
        raise ValueError("an injection is a scenario, a kind and a place")
    name, kind, place = words
    if kind not in KINDS:
        raise ValueError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
    return SCENARIOS[name], kind, int(place)


def run(data: bytes, thorough: bool = False) -> str:
    """One injection; the outcome, or Broken with the first violation."""
    scenario, kind, place = read(data)
    verdict = inject(scenario, kind, place)
    for violation in verdict.violations:
        raise broken(scenario, kind, place, violation)
    return "held" if verdict.where else "not reached"


def broken(scenario: Scenario, kind: str, place: int, violation: Violation) -> Broken:
    """A violation as a finding; its cause has the traceback of the injection, which tells where.

    The injection is made again for it: the exception that was judged had to be let go.
    """
    error = _break(scenario.ask(scenario.begin()), Injector(KINDS[kind], place))
    cause = Injected(f"{kind} {place} of {scenario.name}")
    if error:
        cause = cause.with_traceback(error[0].__traceback__)
    found = Broken(*violation)
    found.__cause__ = cause
    return found


def breaks(name: str, oracle: str) -> bool:
    """Whether an injection somewhere in the scenario trips the oracle."""
    scenario = SCENARIOS[name]
    for kind in KINDS:
        for place in range(1, places(scenario, kind) + 1):
            if any(one.oracle == oracle for one in inject(scenario, kind, place).violations):
                return True
    return False


def main(argv: Sequence[str]) -> int:
    """0 when an injection breaks the oracle, else 1."""
    name, oracle = argv
    return 0 if breaks(name, oracle) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
