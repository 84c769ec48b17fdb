"""What a night does when: shares of the minutes, weights, slices."""

import ast
from typing import Any

import pytest

from ci.command import COMMANDS
from ci.fuzzing.allocation import WEIGHTS
from ci.night import judge, plan, slices
from ci.night.context import Context
from ci.night.plan import STEPS
from ci.night.state import Night
from ci.night.weights import MOST, longest_ago, weights
from ci.process import ROOT
from harnesses import HARNESSES
from tests.ci.night_steps import step


def test_what_is_left_is_shared_by_parts_and_each_has_its_least():
    steps = [step("a", part=3, fixed=10), step("b", part=1, fixed=10, least=30)]
    assert plan.share(steps, 100) == 60
    assert plan.share(steps[1:], 20) == 30
    assert plan.share([step("c", fixed=5)], 100) == 0


def test_what_a_step_cannot_use_goes_to_the_others():
    steps = [step("a", part=1, fixed=0, most=10), step("b", part=1, fixed=0)]
    assert plan.share(steps, 100) == 10
    assert plan.share(steps[::-1], 100) == 90


@pytest.mark.parametrize("minutes", [4, 6, 60, 600])
def test_a_night_of_usual_steps_takes_its_minutes(minutes):
    left = minutes * 60
    for at, one in enumerate(STEPS):
        left -= plan.share(STEPS[at:], left) + one.fixed
    assert -60 <= left <= 60


def test_the_campaign_has_the_most_of_a_long_night():
    share = plan.share(STEPS[1:], 8 * 3600)
    assert share > 8 * 3600 / 2


def test_without_a_history_the_usual_weights_hold():
    assert weights([], HARNESSES) == {}
    assert weights([{"night": "1", "gained": {}}], HARNESSES) == {}


def test_who_finds_edges_gets_more_and_nobody_starves():
    fuzzed = dict.fromkeys(HARNESSES, 100.0)
    row = {"night": "1", "fuzzed": fuzzed, "gained": {"ticket": 50}, "new": {"hello": 1}}
    found = weights([row], HARNESSES)
    assert found["ticket"] == MOST and found["pool"] == 1 / MOST
    assert found["server"] == WEIGHTS["server"] / MOST
    assert set(found) == set(HARNESSES)


def test_only_the_last_nights_count():
    old = {"night": "1", "fuzzed": {"a": 1.0, "b": 1.0}, "gained": {"a": 1000}, "new": {}}
    new = {"night": "2", "fuzzed": {"a": 1.0, "b": 1.0}, "gained": {"b": 1}, "new": {}}
    found = weights([old, *[new] * 5], ["a", "b"])
    assert found["b"] > found["a"]


def test_the_turn_is_of_who_was_never_there_and_then_of_who_was_there_first():
    assert longest_ago(["a", "b", "c"], []) == "a"
    assert longest_ago(["a", "b", "c"], ["a", "b"]) == "c"
    assert longest_ago(["a", "b", "c"], ["a", "b", "c", "a"]) == "b"


def test_the_slices_have_every_function_that_gets_mutants_once_and_no_name_twice():
    every = slices.slices()
    assert len({one.name for one in every}) == len(every) > 30
    for file in {one.file for one in every}:
        parts = [one.functions for one in every if one.file == file]
        text = (ROOT / file).read_text(encoding="utf-8")
        sizes = slices._functions(ast.parse(text))
        if parts == [()]:
            assert sum(sizes.values()) <= slices.LINES
        else:
            assert [name for part in parts for name in part] == list(sizes)
            assert all(sum(sizes[name] for name in part) < 2 * slices.LINES for part in parts)


def test_a_slice_is_asked_for_by_file_and_functions():
    one = slices.Slice("engine/pool.py", ("Pool.lease", "Pool.give"))
    assert one.name == "engine/pool.py Pool.lease to Pool.give"
    assert one.arguments == [
        "engine/pool.py", "--function", "Pool.lease", "--function", "Pool.give"
    ]  # fmt: skip


def test_a_file_of_tables_alone_has_no_slice(tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "tables.py").write_text("A = 1\n@property\ndef f():\n    pass\n")
    (tmp_path / "engine" / "code.py").write_text("def f():\n    return 1\n")
    assert [one.name for one in slices.slices(tmp_path)] == ["engine/code.py"]


def test_the_steps_have_the_interpreter_of_the_night_and_names_of_their_own():
    assert len({one.name for one in STEPS}) == len(STEPS)
    assert "nightly" in COMMANDS


@pytest.mark.parametrize("share, asked", [(5.0, "60"), (90.0, "90")])
def test_what_was_found_has_a_minute_to_be_made_small_in_the_shortest_night(tmp_path, share, asked):
    night = Night(tmp_path / "nights" / "one", "", 1.0, "", [])
    (triage,) = (one for one in STEPS if one.name == "triage")
    argv = triage.argv(Context(tmp_path, night, 1), tmp_path, share)
    assert argv[argv.index("--minimise") + 1] == asked


def test_the_last_score_of_a_slice_is_that_of_the_last_night_that_judged_it_whole():
    rows: list[dict[str, Any]] = [
        {"slice": {"name": "a", "score": 0.0}},
        {"slice": {"name": "b", "score": 90.0}},
        {"slice": {"name": "a", "score": None}},
        {"slice": None},
    ]
    assert judge.last_score(rows, "a") == 0.0
    assert judge.last_score(rows, "c") is None
