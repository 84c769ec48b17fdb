"""The pool's state machine: one engine, several slots, fewer areas, live peers that are not it.

Hypothesis draws the calls and shrinks what fails; what each call does and everything that must hold
after it is `harnesses.models.pool`, which the fuzzer drives with the same `apply`.

The nightly profile has clients of Python's ssl among the others, and goes on for
HYPOTHESIS_SECONDS a shape when that is set. How much was done, and in how many states the pool was,
is said at the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from harnesses.formats.pool import OPERATIONS, RESTING, SHAPES, Operation, Order
from harnesses.models.pool import Model
from harnesses.whitebox import resting as rests
from tests.engine.live_peers import KINDS, PROVES, RESUMES, LiveModel

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EXAMPLES, STEPS = (400, 200) if LONG else (12, 60)
SECONDS = float(os.environ.get("HYPOTHESIS_SECONDS", "0")) if LONG else 0.0
# With a time, so many examples are one round, and another begins while there is time.
ROUND = 10
MODEL, LAST_KIND = (LiveModel, PROVES) if LONG else (Model, KINDS - 1)

slots = st.integers(0, 6)
arguments = st.integers(0, 255)
SIMPLE = [
    name
    for name in OPERATIONS
    if name not in ("serve", "speak", "close", "garbage", "corrupt", "data")
]


class Covered:
    """What a machine did: calls, the states the pool was in, and the moves of its connections."""

    def __init__(self) -> None:
        self.steps = 0
        self.handshakes = 0
        self.states: set[tuple[str, ...]] = set()
        self.moves: set[tuple[str, str, str]] = set()

    @staticmethod
    def views(model: Model) -> list[str]:
        """Each slot in words: who is there, how far, and what of the pool's is his."""
        resting = rests(model.engine)
        return [
            "free"
            if line is None
            else line.state
            + "?" * line.unknown
            + " rests" * (slot in resting)
            + " holds" * model.engine.holds_area(slot)
            + " owed" * bool(line.owed)
            + " closing" * line.closing
            + " verified" * line.verified()
            for slot, line in enumerate(model.lines)
        ]

    def apply(self, model: Model, operation: Operation) -> None:
        """One call on the model, counted."""
        before = self.views(model)[operation.slot]
        model.apply(operation)
        after = self.views(model)
        self.steps += 1
        self.states.add(tuple(sorted(after)))
        self.moves.add((operation.name, before, after[operation.slot]))


class PoolMachine(RuleBasedStateMachine):
    """Each rule is one operation, or an honest exchange made of several."""

    shape: tuple[int, int] = SHAPES[0]
    covered = Covered()

    @initialize(resting=st.sampled_from(RESTING), certificates=st.booleans(), tickets=st.booleans())
    def begin(self, resting: int, certificates: bool, tickets: bool) -> None:
        self.model = MODEL(Order(*self.shape, resting, certificates, tickets, ()))

    def do(self, name: str, slot: int, argument: int = 0) -> None:
        self.covered.apply(self.model, Operation(name, slot % self.shape[0], argument))

    @rule(slot=slots, kind=st.integers(0, LAST_KIND))
    def serve(self, slot: int, kind: int) -> None:
        self.do("serve", slot, kind)

    @rule(slot=slots, kind=st.integers(0, LAST_KIND), piece=arguments)
    def establish(self, slot: int, kind: int, piece: int) -> None:
        """An honest handshake, in pieces of a drawn size, as far as areas let it."""
        self.do("serve", slot, kind)
        for _ in range(3):
            for name, argument in (("speak", 0), ("feed", piece), ("feed", 0), ("take", 0)):
                self.do(name, slot, argument)

    @rule(slot=slots, kind=st.integers(2, 3), stop=st.integers(0, 3))
    def present_a_certificate(self, slot: int, kind: int, stop: int) -> None:
        """To somewhere inside the client's second flight: each message is in its own record."""
        self.do("drop", slot)
        self.do("serve", slot, kind)
        for _ in range(1):
            for name in ("speak", "feed", "take", "speak"):
                self.do(name, slot)
        for _ in range(stop):
            self.do("half", slot)
            self.do("half", slot)

    @rule(slot=slots, size=arguments, piece=arguments)
    def echo(self, slot: int, size: int, piece: int) -> None:
        for name, argument in (
            ("data", size), ("feed", piece), ("recv", 0), ("send", size), ("take", 0), ("speak", 0),
        ):  # fmt: skip
            self.do(name, slot, argument)

    @rule(name=st.sampled_from(SIMPLE), slot=slots, argument=arguments)
    def call(self, name: str, slot: int, argument: int) -> None:
        self.do(name, slot, argument)

    @rule(slot=slots, argument=arguments)
    def speak(self, slot: int, argument: int) -> None:
        self.do("speak", slot, argument)

    @rule(slot=slots, argument=arguments, how=st.sampled_from(["corrupt", "garbage"]))
    def lie(self, slot: int, argument: int, how: str) -> None:
        self.do("data", slot, argument)
        self.do(how, slot, argument)
        self.do("feed", slot)

    @precondition(lambda self: self.model.born > 5)
    @rule()
    def close(self) -> None:
        self.do("close", 0)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.model.finish()
            self.covered.handshakes += getattr(self.model, "handshakes", 0)
            self.model.engine.close()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def test_the_engine_agrees_with_its_model_after_every_call(
    shape: tuple[int, int], record_property: Callable[[str, object], None]
) -> None:
    covered = Covered()
    machine = type("Machine", (PoolMachine,), {"shape": shape, "covered": covered})
    begun = time.monotonic()
    while True:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=ROUND if SECONDS else EXAMPLES, stateful_step_count=STEPS
            ),
        )
        took = time.monotonic() - begun
        if took >= SECONDS:
            break
    record_property(
        "pool machine",
        {
            "steps": covered.steps,
            "seconds": took,
            "states": len(covered.states),
            "moves": sorted(" | ".join(move) for move in covered.moves),
            "handshakes": covered.handshakes,
        },
    )


@pytest.mark.parametrize("kind", range(KINDS, PROVES + 1))
@pytest.mark.parametrize("certificates", [False, True])
def test_a_client_of_pythons_ssl_fits_the_model(kind: int, certificates: bool) -> None:
    """The live peers of the nightly profile, once through what a client does."""
    model = LiveModel(Order(2, 1, 1, certificates, True, ()))
    machine = PoolMachine()
    machine.shape, machine.model, machine.covered = (2, 1), model, Covered()
    for piece in (0, 40):
        machine.establish(0, kind, piece)
        assert model.engine.event(0) == "established"
        assert bool(model.engine.peer_verified(0)) is (certificates and kind == PROVES)
        machine.echo(0, 6, 0)
        assert bytes(model.lines[0].client.received) == bytes(model.lines[0].sent) != b""
        machine.do("key_update", 0, 1)
        machine.do("empty", 0, 3)
        machine.do("close_notify", 0)
        machine.do("drop", 0)
    assert model.handshakes == 2
    machine.do("serve", 1, kind)
    machine.do("garbage", 1)
    for name in ("feed", "take", "speak", "drop"):
        machine.do(name, 1)
    machine.do("serve", 1, RESUMES)
    machine.do("speak", 1)
    machine.do("corrupt", 1, 100)
    model.finish()
