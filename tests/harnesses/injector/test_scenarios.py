"""The table of scenarios: whole, and each row does what it says where nothing is injected."""

from __future__ import annotations

import inspect

import pytest

from engine import Engine
from harnesses.injector.scenarios import SCENARIOS, Nature
from harnesses.injector.scene import FEW, SLOT

# What makes an engine is not called on one.
MAKES = {"server"}


def public_calls() -> set[str]:
    names = {name for name, _ in inspect.getmembers(Engine, callable) if not name.startswith("_")}
    return names - MAKES


def test_every_public_call_has_a_scenario() -> None:
    assert {row.method for row in SCENARIOS.values()} == public_calls()


def test_a_call_without_a_row_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "a_new_call", lambda self: None, raising=False)
    with pytest.raises(AssertionError):
        test_every_public_call_has_a_scenario()


def test_every_nature_and_few_areas_as_well_as_many_have_a_row() -> None:
    assert {row.nature for row in SCENARIOS.values()} == set(Nature)
    few = {row.method for row in SCENARIOS.values() if row.state.setting.areas == FEW}
    moves = {row.method for row in SCENARIOS.values() if row.nature is Nature.MOVES}
    assert moves | {"serve", "drop"} <= few


@pytest.mark.parametrize(
    ("name", "answer", "ending"),
    [
        ("feed-hello/served", None, "established"),
        ("feed-hello/served-asking", None, "established"),
        ("feed-hello-with-ticket/tickets-had", None, "established"),
        ("feed-hello-wrong-binder/tickets-had", None, "failed"),
        ("feed-finish-wrong/flight-taken", None, "failed"),
        ("feed-flight/large-certificate-due", None, "established"),
        ("feed-flight/stranger", None, "failed"),
        ("feed-bad-record/robbed/few", None, "failed"),
        ("feed-close-notify/rests", None, "closed"),
        ("send/queue-is-full", 0, "established"),
        ("take/free", ("the slot is free",), "free"),
        ("finish/rests", True, "established"),
        ("eof/rests", None, "failed"),
    ],
)
def test_a_row_comes_to_what_its_name_says(name: str, answer: object, ending: str) -> None:
    scenario = SCENARIOS[name]
    scene = scenario.begin()
    call = scenario.ask(scene)
    try:
        answered = call.thunk()
        call.answered(answered)
    except ValueError as error:
        answered = error.args
    if answer is not None:
        assert answered == answer
    assert scene.go_on()[0] == ending


def test_a_revived_connection_is_an_established_one() -> None:
    scene = SCENARIOS["event/rests"].begin()
    assert scene.engine.event(SLOT) == "established"
    assert not scene.engine.holds_area(SLOT) and scene.engine.areas_resting() == 2
    scene.peer.echo()
    scene.neighbour.echo()
    assert scene.engine.residue() == 0
