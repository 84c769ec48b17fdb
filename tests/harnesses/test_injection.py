"""Injection: a part of it here, all of it in the night; and each of its oracles can fail.

An exception is raised at one place of every scenario's call. Which one and where follows from a
seed, so that a failure is the same the next time.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from harnesses import injection
from harnesses.injection import ORACLES, Injected, Violation
from harnesses.injector.places import KINDS, Injector
from harnesses.injector.scenarios import SCENARIOS
from harnesses.injector.scene import Call
from harnesses.oracles import Broken
from harnesses.signature import signature
from mutants import plants
from mutants.plants import Plant
from tests.tools import PATIENCE

SEED = 1
PARTS = 6
NAMES = sorted(SCENARIOS)


@pytest.mark.parametrize("part", range(PARTS))
def test_an_injection_into_each_scenario_breaks_nothing(part: int) -> None:
    found = []
    for name in NAMES[part::PARTS]:
        chance = random.Random(f"{SEED} {name}")
        scenario, kind = SCENARIOS[name], chance.choice(list(KINDS))
        count = injection.places(scenario, kind)
        place = chance.randint(1, count) if count else 0
        found += [
            f"residue inject {name} --kind {kind} --at {place}: {one.oracle}: {one.detail}"
            for one in injection.inject(scenario, kind, place).violations
        ]
    assert found == []


# -- places -----------------------------------------------------------------------------------


def wheres(name: str, kind: str) -> list[str]:
    """Every place of a kind, in their order."""
    scenario = SCENARIOS[name]
    found = []
    for place in range(1, injection.places(scenario, kind) + 1):
        injector = Injector(KINDS[kind], place)
        with contextlib.suppress(KINDS[kind].error):
            injector.make(scenario.ask(scenario.begin()).thunk)
        found.append(injector.where)
    return found


def test_an_exception_comes_at_each_line_of_the_engine_that_a_call_runs() -> None:
    lines = wheres("take/output-waits", "memory")
    assert len(lines) > 10
    assert all(line.startswith("engine/") for line in lines)
    assert wheres("take/output-waits", "interrupt") == lines


class Recorder(Injector):
    """Raises nowhere, and keeps what each place is."""

    def __init__(self, kind: str) -> None:
        super().__init__(KINDS[kind])
        self.seen: list[str] = []

    def _reached(self, frame: FrameType, what: str = "") -> None:
        self.seen.append(what.strip())


def test_an_exception_comes_before_and_after_each_primitive_that_a_call_uses() -> None:
    primitives = {
        "send/rests": ["encrypt_into()"],
        "feed-record/rests": ["decrypt_into()"],
        "feed-finish/flight-taken": ["compare_digest()", "decrypt_into()"],
        "feed-hello/served-asking": ["sign()", "exchange()", "verify()", "encrypt_into()"],
        "feed-hello/served-otherwise": ["derive_private_key()", "digest()", "exchange()"],
        "feed-hello-with-ticket/tickets-had": ["decrypt_into()", "compare_digest()"],
        "rotate-ticket-key/own-tickets": ["hmac_digest()"],
        "feed-flight/certificate-due": ["verify()", "load_der_x509_certificate()"],
        "trust-clients/free": ["a2b_base64()", "load_der_x509_certificate()"],
        "add-identity/free": ["load_pem_private_key()"],
        "serve/free": ["encrypt_into()"],
    }
    for name, wanted in primitives.items():
        for kind in ("before", "after"):
            recorder = Recorder(kind)
            scenario = SCENARIOS[name]
            recorder.make(scenario.ask(scenario.begin()).thunk)
            assert set(wanted) <= set(recorder.seen), (name, kind)


def test_what_comes_after_a_primitive_comes_when_it_has_written() -> None:
    scenario = SCENARIOS["send/rests"]
    held = {}
    for kind in ("before", "after"):
        at = next(n for n, w in enumerate(wheres(scenario.name, kind), 1) if "encrypt_into" in w)
        scene = scenario.begin()
        seen: list[bytes] = []

        def look(view: memoryview = scene.engine._pool._area_bytes) -> bytes:
            return bytes(view)

        injector = Injector(KINDS[kind], at)
        call = scenario.ask(scene)
        real = injector._reached

        def reached(frame: object, what: str = "", real=real, seen=seen, look=look) -> None:
            seen.append(look())
            real(frame, what)

        injector._reached = reached
        with pytest.raises(KINDS[kind].error):
            injector.make(call.thunk)
        data = call.lent[0]
        held[kind] = bytes(data) in seen[-1]
    assert held == {"before": True, "after": False}


def test_a_stack_has_room_for_one_frame_more_each_time() -> None:
    scenario = SCENARIOS["send/has-no-area"]
    depths = []
    for place in range(1, injection.places(scenario, "stack") + 1):
        injector = Injector(KINDS["stack"], place)
        try:
            injector.make(scenario.ask(scenario.begin()).thunk)
        except RecursionError:
            depths.append(injector.where)
    assert len(set(depths)) > 2
    assert sys.getrecursionlimit() >= 1000


def test_a_tracer_that_was_there_is_put_back() -> None:
    def mine(*arguments: object) -> None:
        return None

    before = sys.gettrace(), sys.getprofile()
    scenario = SCENARIOS["event/free"]
    try:
        sys.settrace(mine)
        sys.setprofile(mine)
        for kind in KINDS:
            injection.inject(scenario, kind, 1)
            assert (sys.gettrace(), sys.getprofile()) == (mine, mine), kind
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def test_a_place_that_is_not_reached_is_said() -> None:
    scenario = SCENARIOS["event/free"]
    beyond = injection.places(scenario, "memory") + 1
    assert injection.inject(scenario, "memory", beyond).where == ""
    assert injection.run(f"event/free memory {beyond}".encode()) == "not reached"
    assert injection.run(b"event/free memory 1 # anything\n") == "held"


@pytest.mark.parametrize(
    "text", [b"", b"event/free memory", b"event/nowhere memory 1", b"event/free x 1", b"\xff 1 2"]
)
def test_what_is_no_injection_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"injection|kind"):
        injection.read(text)


# -- findings ---------------------------------------------------------------------------------


def test_a_scenario_that_breaks_by_itself_is_no_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "stray", lambda engine, idle: "a byte")
    injection.honest_run.cache_clear()
    with pytest.raises(Broken, match="event/free, where nothing is injected: a byte"):
        injection.honest_run(SCENARIOS["event/free"])


def test_a_finding_tells_where_the_exception_came(monkeypatch: pytest.MonkeyPatch) -> None:
    found = injection.broken(SCENARIOS["send/rests"], "memory", 12, Violation("lent", "7 views"))
    told = signature(found)
    assert told["oracle"] == "lent" and told["says"] == "N views"
    assert isinstance(found.__cause__, Injected)
    frames = told["frames"]
    assert isinstance(frames, list) and frames[-1].startswith("engine.py:send")


def test_an_answer_that_lends_nothing_has_nothing_to_give_back() -> None:
    assert injection._references(Call(lambda: None)) == []


# -- every oracle can fail ----------------------------------------------------------------------


def witnesses() -> list[tuple[Plant, str, str]]:
    return [
        (plant, scenario, oracle)
        for plant in plants.load_all()
        for scenario, oracle in plants.injection_witnesses(plant)
    ]


def test_every_oracle_has_a_planted_fault() -> None:
    assert {oracle for _, _, oracle in witnesses()} == set(ORACLES)
    assert {scenario for _, scenario, _ in witnesses()} <= set(SCENARIOS)


@pytest.mark.parametrize(
    ("plant", "scenario", "oracle"),
    [pytest.param(*found, id=f"{found[0].name}-{found[2]}") for found in witnesses()],
)
def test_a_planted_fault_trips_its_oracle(
    plant: Plant, scenario: str, oracle: str, tmp_path: Path
) -> None:
    tree = plants.apply(plant, tmp_path)
    argv = [sys.executable, "-B", "-m", "harnesses.injection", scenario, oracle]
    done = subprocess.run(
        argv,
        cwd=tree,
        env={"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
