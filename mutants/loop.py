"""Each mutant in a process of its own: forked from one that has imported and run everything once.

A fork costs milliseconds where a start of pytest costs half a second, so a mutant takes about as
long as the test that kills it. In the child one switch is turned, the tests that run the mutated
function are run until one fails, and the verdict comes back through a pipe.

Before the first mutant: a clean run of every test, which also records which test runs which
function; the same once more in a fork, since a test that cannot run twice would look like a kill;
and a planted mutant, which must die. If any of these goes wrong the run is not to be trusted.

For each test a child is given processor time by what that test took in the clean run, because an
endless loop burns it whatever else the machine does; and for all of them wall time, generously,
for one that only waits. A mutant that runs out is run again alone, with more of both, before it is
believed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

from mutants import orphans
from mutants.verdicts import Verdict, function_of

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
PLANTED = "__mutmut_planted"
CLEAN = ""


class Suite(Protocol):
    """Named checks: the tests of pytest, or the inputs of a corpus."""

    names: list[str]

    def run(self, name: str, following: str | None) -> str:
        """Run one; what is wrong, or nothing. `following` is what comes next in this process."""


class NotClean(Exception):
    """The tests fail with no mutant, in a fork, or do not fail with a planted one."""


class TestFails(NotClean):
    """The first of these: it is the tree that is wrong, and not the run."""


class NothingRuns(NotClean):
    """No check runs anything that has mutants."""


@dataclass(frozen=True)
class Limits:
    """How much longer than in the clean run a mutant may take, in seconds of each kind."""

    factor: float = 3.0
    cpu: float = 0.5
    wall: float = 20.0
    again: float = 4.0
    """How many times all of that the second, lone run gets."""


@dataclass(frozen=True)
class Judged:
    """What one child said, or what its silence means."""

    name: str
    verdict: Verdict
    killers: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass
class Clean:
    """The clean run: what each check took and which mutated functions it runs."""

    cpu: dict[str, float] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)
    """For each function, the checks that run it, the quickest first; then those that start a
    process, in which it may run unseen."""
    functions: frozenset[str] = frozenset()
    """Those that some check was seen to run."""


@dataclass
class _Child:
    pid: int
    pipe: int
    name: str
    started: float
    deadline: float
    said: bytes = b""


class Loop:
    """Judges mutants over one suite, `jobs` at a time."""

    def __init__(
        self,
        suite: Suite,
        jobs: int,
        limits: Limits,
        beyond: float = 0.0,
        last: frozenset[str] = frozenset(),
    ) -> None:
        """`beyond`: seconds a child goes on after its first kill, through checks that have killed
        nothing yet. It is how the inputs that kill nothing are told from those not asked. `last`:
        checks that come first here, and the others only for what they kill: whether any other
        does is the question."""
        self.suite = suite
        self.jobs = jobs
        self.limits = limits
        self.beyond = beyond
        self.last: frozenset[str] = frozenset()
        self._last = last
        self.clean = Clean()
        self.kills: Counter[str] = Counter()
        # Children that are no orphans: what the clean run started and keeps, and the mutants.
        self._spared: set[int] = set()
        self._of_function: dict[str, Counter[str]] = {}

    # -- before the mutants -----------------------------------------------------------------

    def prepare(self, functions: Iterable[str]) -> None:
        """The clean run and its second in a fork; NotClean when either fails. `functions` are those
        that have mutants to be judged."""
        if not self.suite.names:
            raise NotClean("there is no test to run")
        users: dict[str, list[str]] = {}
        elsewhere: list[str] = []
        watch = _Starts()
        set_mutant_under_test("stats")
        state()._stats.clear()
        for name, following in _pairs(self.suite.names):
            before, watch.seen = time.process_time(), False
            wrong = self.suite.run(name, following)
            self.clean.cpu[name] = time.process_time() - before
            if wrong:
                raise TestFails(f"{name} fails with no mutant: {wrong}")
            for function in state()._stats:
                users.setdefault(function, []).append(name)
            state()._stats.clear()
            if watch.seen:
                elsewhere.append(name)
        watch.over()
        set_mutant_under_test(CLEAN)
        for function in functions:
            # The switch is in the environment too, so a process that a test starts has the mutant.
            names = sorted(users.get(function, ()), key=self.clean.cpu.__getitem__)
            others = [name for name in elsewhere if name not in names]
            if names or others:
                self.clean.users[function] = names + others
        self.clean.functions = frozenset(users)
        orphans.adopt()
        self._spared = orphans.children()
        gc.collect()
        gc.freeze()
        again = self._alone(CLEAN, self.suite.names)
        if again.verdict is not Verdict.SURVIVED:
            raise NotClean(
                f"with no mutant, the second time: {again.verdict} {' '.join(again.killers)}"
            )

    def plant(self, functions: Iterable[str]) -> str:
        """Run the planted mutant of the function that most checks run; NotClean if it lives."""
        run = [function for function in functions if function in self.clean.functions]
        if not run:
            raise NothingRuns("no test runs any function that has mutants")
        function = max(run, key=lambda f: len(self.clean.users[f]))
        judged = self._alone(function + PLANTED, self.clean.users[function])
        if judged.verdict is not Verdict.KILLED:
            raise NotClean(f"the mutant planted in {function} was not killed: {judged.verdict}")
        return function

    def check_unchanged(self, names: Iterable[str]) -> None:
        """Run the mutants that change nothing; TestFails where a check kills one. It looks whether
        a mutant is chosen and not what it does, and would have killed every other as well. After
        the others, so that a check that counts its runs is noticed too."""
        self.last, self.beyond = frozenset(), 0.0
        for name in names:
            judged = self._alone(name, self.clean.users.get(function_of(name), ()))
            if judged.verdict is Verdict.KILLED:
                raise TestFails(f"{judged.killers[0]} fails with a mutant that changes nothing")
            if judged.verdict is not Verdict.SURVIVED:
                raise NotClean(f"{name}, which changes nothing, {judged.verdict}")

    # -- the mutants ------------------------------------------------------------------------

    def judge(self, names: Sequence[str], tell: Callable[[Judged], None]) -> None:
        """Every mutant in turn; `tell` is given each verdict as it comes."""
        # Not before: the clean run and the planted mutant are for every check.
        self.last = self._last
        waiting = list(names)
        running: dict[int, _Child] = {}
        late: list[str] = []
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    name = waiting.pop(0)
                    checks = self._checks(name)
                    if not checks:
                        tell(Judged(name, Verdict.NOT_RUN))
                        continue
                    child = self._start(name, checks, 1.0)
                    running[child.pipe] = child
                for child in self._wait(running):
                    judged = self._end(child)
                    if judged.verdict is Verdict.TIMED_OUT:
                        late.append(judged.name)
                    else:
                        tell(judged)
            for name in late:
                judged = self._alone(name, self._checks(name), self.limits.again)
                self._count(judged)
                tell(judged)
        finally:
            for child in running.values():
                _kill(child.pid)
                os.waitpid(child.pid, 0)
                self._spared.discard(child.pid)
            orphans.kill(self._spared)

    def _checks(self, name: str) -> list[str]:
        """The checks for a mutant: those that killed others of its function first, then the quick.

        With `beyond`, those that have killed nothing at all come first.
        """
        function = function_of(name)
        users = self.clean.users.get(function, [])
        if self.beyond:
            return sorted(users, key=lambda check: (self.kills[check], self.clean.cpu[check]))
        before = self._of_function.get(function, Counter())
        return sorted(users, key=lambda check: (check not in self.last, -before[check]))

    def concerns_last(self, name: str) -> bool:
        """Whether one of the checks that come last runs a mutant's function."""
        return not self._last.isdisjoint(self.clean.users.get(function_of(name), ()))

    def _alone(self, name: str, checks: Sequence[str], times: float = 4.0) -> Judged:
        child = self._start(name, checks, times)
        running = {child.pipe: child}
        while True:
            for ended in self._wait(running):
                return self._end(ended)

    def _start(self, name: str, checks: Sequence[str], times: float) -> _Child:
        usual = sum(self.clean.cpu[check] for check in checks) + self.beyond
        wall = (usual * self.limits.factor * 4 + self.limits.wall) * times
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reading)
            self._child(name, checks, times, writing)
        os.close(writing)
        self._spared.add(pid)
        now = time.monotonic()
        return _Child(pid, reading, name, now, now + wall)

    def _child(self, name: str, checks: Sequence[str], times: float, pipe: int) -> None:
        code = 70
        try:
            os.setpgid(0, 0)
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            orphans.adopt()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF):
                signal.signal(number, signal.SIG_DFL)
            quiet = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(quiet, descriptor)
            set_mutant_under_test(name)
            killers = self._run(checks, times)
            os.write(pipe, json.dumps(killers).encode() + b"\n")
            code = 0
        finally:
            os._exit(code)

    def _run(self, checks: Sequence[str], times: float) -> list[str]:
        killers: list[str] = []
        until = 0.0
        for check, following in _pairs(checks):
            if self.last and check not in self.last and not killers:
                break
            if self.beyond and killers and (self.kills[check] or time.process_time() > until):
                continue
            if self.last and killers and check in self.last:
                continue
            allowed = (self.clean.cpu[check] * self.limits.factor + self.limits.cpu) * times
            signal.setitimer(signal.ITIMER_PROF, allowed)
            # Where checks are left out, nobody knows which comes next, and what one leaves set up
            # for a neighbour that never comes would fail the next.
            if self.suite.run(check, None if self.last else following):
                killers.append(check)
                if not self.beyond and not (self.last and check in self.last):
                    break
                until = until or time.process_time() + self.beyond
        return killers

    def _wait(self, running: dict[int, _Child]) -> list[_Child]:
        """Children that have ended or must; they are taken out of `running`."""
        if not running:  # the last that were due are run by nothing
            return []
        nearest = min(child.deadline for child in running.values()) - time.monotonic()
        ready, _, _ = select.select(list(running), [], [], max(0.0, nearest))
        ended = []
        for pipe in ready:
            said = os.read(pipe, 65536)
            running[pipe].said += said
            if not said or said.endswith(b"\n"):
                ended.append(running.pop(pipe))
        now = time.monotonic()
        for pipe, child in list(running.items()):
            if child.deadline < now:
                ended.append(running.pop(pipe))
        return ended

    def _end(self, child: _Child) -> Judged:
        late = child.deadline < time.monotonic() and not child.said.endswith(b"\n")
        if child.said.endswith(b"\n") or late:
            _kill(child.pid)
        _, status = os.waitpid(child.pid, 0)
        _kill(child.pid)  # its group: what a test started and left
        self._spared.discard(child.pid)
        orphans.kill(self._spared)
        os.close(child.pipe)
        seconds = time.monotonic() - child.started
        if child.said.endswith(b"\n"):
            killers = tuple(json.loads(child.said))
            verdict = Verdict.KILLED if killers else Verdict.SURVIVED
            judged = Judged(child.name, verdict, killers, seconds)
            self._count(judged)
            return judged
        out_of_time = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
        verdict = Verdict.TIMED_OUT if late or out_of_time else Verdict.CRASHED
        return Judged(child.name, verdict, (), seconds)

    def _count(self, judged: Judged) -> None:
        self.kills.update(judged.killers)
        if judged.killers:
            function = function_of(judged.name)
            self._of_function.setdefault(function, Counter())[judged.killers[0]] += 1


class _Starts:
    """Notices, from one check to the next, that this process started another."""

    EVENTS = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"})

    def __init__(self) -> None:
        self.seen = False
        self._wanted = True
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._wanted and event in self.EVENTS:
            self.seen = True

    def over(self) -> None:
        """A hook cannot be taken away; it can be quiet."""
        self._wanted = False


def _pairs(names: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    return zip(names, [*names[1:], None], strict=True)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
