"""Asks a fork server (`triage.probe`) what an input does, and says which findings that makes.

An input is first run with no oracle left to a sample, as `residue replay` runs it, so that the
bucket does not depend on who found it. That is several times the work of a plain run, so what an
input costs in time and memory is judged by plain runs alone, as a peer would cause them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harnesses.outcomes import ROOT
from harnesses.signature import telling

from . import signature
from .limits import Limits
from .probe import HEADER, SIZE
from .signature import Signature

# A second run out of memory with so much less tells which frames are there by chance.
LESS_MEMORY = 3 / 4
# How Python calls what an oracle raises; the oracle's own name follows.
BROKEN = "harnesses.oracles.Broken: "


class ProbeError(Exception):
    """The harness cannot be run here at all. The message is one line that says why."""


@dataclass(frozen=True)
class Answer:
    """How one run ended: `done`, `timeout`, `out-of-memory` or `crash`; and what it took."""

    ended: str
    outcome: str | None
    before: list[str]
    signature: Mapping[str, Any] | None
    stack: list[str]
    detail: str
    traceback: list[str]
    seconds: float
    memory_kb: int


@dataclass(frozen=True)
class Found:
    """One thing that is wrong with an input."""

    signature: Signature
    detail: str
    traceback: list[str] = field(default_factory=list)
    seconds: float = 0.0
    memory_kb: int = 0


@dataclass(frozen=True)
class Verdict:
    """What an input came to: an outcome, or findings, or both where it is only slow or hungry."""

    outcome: str | None
    found: list[Found]

    def of(self, wanted: Signature) -> Found | None:
        """The finding with this signature."""
        return next((one for one in self.found if one.signature == wanted), None)


class Prober:
    """The fork server of one harness; a context manager. `root` is the tree whose code is run."""

    def __init__(self, harness: str, root: Path = ROOT, limits: Limits | None = None) -> None:
        self.harness = harness
        self.root = root
        self.limits = limits or Limits()
        self.runs = 0
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prober:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; the next question starts another."""
        if self._server is not None:
            server, self._server = self._server, None
            server.kill()  # the child that it attends to goes with it
            server.communicate()

    def ask(
        self,
        data: bytes,
        thorough: bool = False,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Answer:
        """Run one input. Raises ProbeError when the server does not come up, or is lost."""
        return self._ask([data], thorough, seconds, memory)

    def first(self, inputs: list[bytes], wanted: Signature, thorough: bool) -> tuple[int, bool]:
        """Runs inputs in one process, up to the first that raises or, for kind outcome, shows it.

        Returns how many were run, and whether the last of them shows it; (0, False) when the
        process did not live to tell.
        """
        answer = self._ask(inputs, thorough)
        if answer.ended != "done":
            return 0, False
        outcomes = [*answer.before, answer.outcome]
        if wanted.kind == "outcome" and wanted.found in outcomes:
            return outcomes.index(wanted.found) + 1, True
        shown = answer.signature is not None and self._raised(answer).signature == wanted
        return len(outcomes), shown

    def _ask(
        self,
        inputs: list[bytes],
        thorough: bool = False,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Answer:
        self.runs += len(inputs)
        asked = HEADER.pack(
            len(inputs),
            thorough,
            self.limits.seconds if seconds is None else seconds,
            self.limits.memory if memory is None else memory,
        )
        try:
            server = self._started()
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write(asked)
            for data in inputs:
                server.stdin.write(SIZE.pack(len(data)) + data)
            server.stdin.flush()
            return Answer(**json.loads(server.stdout.readline()))
        except (OSError, ValueError) as error:
            self.stop()
            raise ProbeError(f"the process that runs {self.harness} was lost: {error}") from None
        except BaseException:
            # Interrupted in the middle of an answer: the rest of it would be the next one's.
            self.stop()
            raise

    def judge(self, data: bytes) -> Verdict:
        """Everything that is wrong with an input."""
        first = self.ask(data, thorough=True)
        if first.ended == "out-of-memory":
            return Verdict(None, [self._out_of_memory(data, first)])
        if first.ended == "crash":
            made = signature.ended(self.harness, "crash", telling(first.stack))
            return Verdict(None, [_found(made, first)])
        if first.signature is not None:
            return Verdict(None, [self._raised(first)])
        heavy = (
            first.ended == "timeout"
            or first.seconds > self.limits.slow
            or first.memory_kb > self.limits.hungry >> 10
        )
        return self._weigh(data, first) if heavy else Verdict(first.outcome, [])

    def shows(self, data: bytes, wanted: Signature, thorough: bool, seconds: float) -> bool:
        """Whether an input shows just this, in as few runs as that can be told in."""
        if wanted.kind in ("slow", "hungry"):
            return self._weigh(data, None).of(wanted) is not None
        answer = self.ask(data, thorough, seconds)
        if answer.ended == "timeout":
            return signature.ended(self.harness, "timeout", telling(answer.stack)) == wanted
        if answer.ended == "crash":
            return signature.ended(self.harness, "crash", telling(answer.stack)) == wanted
        if answer.ended == "out-of-memory":
            return (
                wanted.kind == answer.ended
                and self._out_of_memory(data, answer).signature == wanted
            )
        if wanted.kind == "outcome":
            return answer.outcome == wanted.found
        return answer.signature is not None and self._raised(answer).signature == wanted

    def _raised(self, answer: Answer) -> Found:
        assert answer.signature is not None
        made = signature.raised(self.harness, answer.signature, answer.detail)
        return _found(made, answer)

    def _out_of_memory(self, data: bytes, answer: Answer) -> Found:
        """Where memory runs out differs from run to run; how it came there does not."""
        again = self.ask(data, memory=int(self.limits.memory * LESS_MEMORY))
        stack = answer.stack
        if again.ended == "out-of-memory":
            stack = signature.common(stack, again.stack) or stack
        return _found(signature.ended(self.harness, "out-of-memory", telling(stack)), answer)

    def _weigh(self, data: bytes, first: Answer | None) -> Verdict:
        """An input's time and memory by plain runs; of two the lesser counts."""
        one = self.ask(data)
        if one.ended == "timeout":
            made = signature.ended(self.harness, "timeout", telling(one.stack))
            return Verdict(None, [_found(made, one)])
        outcome = first.outcome if first is not None else one.outcome
        if one.ended != "done" or one.signature is not None:
            return Verdict(None, [])
        over = one.seconds > self.limits.slow or one.memory_kb > self.limits.hungry >> 10
        if not over:
            return Verdict(outcome, [])
        two = self.ask(data)
        seconds, memory = min(one.seconds, two.seconds), min(one.memory_kb, two.memory_kb)
        found = []
        if seconds > self.limits.slow:
            made = signature.ended(self.harness, "slow")
            found.append(Found(made, f"{seconds:.1f} s of processor time", [], seconds, memory))
        if memory > self.limits.hungry >> 10:
            made = signature.ended(self.harness, "hungry")
            detail = f"{memory >> 10} MiB over the base"
            found.append(Found(made, detail, [], seconds, memory))
        return Verdict(outcome, found)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-B", "-m", "triage.probe", self.harness],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.root,
                env={**os.environ, "PYTHONPATH": str(self.root)},
                # A Ctrl-C on the terminal is for whoever asks, not for what is asked.
                start_new_session=True,
            )
            assert self._server.stdout is not None
            if self._server.stdout.readline() != b"ready\n":
                _, said = self._server.communicate()
                self._server = None
                last = said.decode(errors="replace").strip().splitlines()[-1:] or ["no word why"]
                raise ProbeError(f"harness {self.harness} does not start: {last[0]}")
        return self._server


def _found(made: Signature, answer: Answer) -> Found:
    detail = (answer.detail or made.kind).removeprefix(BROKEN)
    return Found(made, detail, answer.traceback, answer.seconds, answer.memory_kb)
