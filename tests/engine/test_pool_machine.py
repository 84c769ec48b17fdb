"""The pool's state machine: one engine, several slots, fewer areas, live peers that are not it.

Hypothesis draws the calls and shrinks what fails; what each call does and everything that must hold
after it is `harnesses.pool_model`, which the fuzzer drives with the same `apply`.
"""

from __future__ import annotations

import os
from functools import partial

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

from harnesses.pool_model import Model
from harnesses.pool_ops import OPERATIONS, RESTING, SHAPES, Operation, Order

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EXAMPLES, STEPS = (400, 200) if LONG else (12, 60)

slots = st.integers(0, 6)
arguments = st.integers(0, 255)
SIMPLE = [
    name
    for name in OPERATIONS
    if name not in ("serve", "speak", "close", "garbage", "corrupt", "data")
]


class PoolMachine(RuleBasedStateMachine):
    """Each rule is one operation, or an honest exchange made of several."""

    shape: tuple[int, int] = SHAPES[0]

    @initialize(resting=st.sampled_from(RESTING), certificates=st.booleans(), tickets=st.booleans())
    def begin(self, resting: int, certificates: bool, tickets: bool) -> None:
        self.model = Model(Order(*self.shape, resting, certificates, tickets, ()))

    def do(self, name: str, slot: int, argument: int = 0) -> None:
        self.model.apply(Operation(name, slot % self.shape[0], argument))

    @rule(slot=slots, kind=st.integers(0, 5))
    def serve(self, slot: int, kind: int) -> None:
        self.do("serve", slot, kind)

    @rule(slot=slots, kind=st.integers(0, 5), piece=arguments)
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
            self.model.engine.close()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def test_the_engine_agrees_with_its_model_after_every_call(shape: tuple[int, int]) -> None:
    machine = type("Machine", (PoolMachine,), {"shape": shape})
    run_state_machine_as_test(
        partial(machine), settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    )
