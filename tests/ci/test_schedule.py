"""Who fuzzes when."""

import pytest

from ci.schedule import SHORTEST, Slice, lanes


def test_two_harnesses_on_two_processes_have_one_each():
    assert lanes(["a", "b"], 60, 2) == [[Slice("a", 60)], [Slice("b", 60)]]


def test_one_harness_has_every_process():
    assert lanes(["a"], 60, 2) == [[Slice("a", 60)], [Slice("a", 60)]]


def test_three_harnesses_on_two_processes_have_forty_seconds_of_sixty_each():
    first, second = lanes(["a", "b", "c"], 60, 2)
    assert first == [Slice("a", 40), Slice("b", 20)]
    assert second == [Slice("b", 20), Slice("c", 40)]


def test_what_a_stranger_reaches_is_fuzzed_longest():
    plan = lanes(["hello", "server", "keyed", "ticket"], 73, 2)
    total = {"hello": 0.0, "server": 0.0, "keyed": 0.0, "ticket": 0.0}
    for lane in plan:
        for turn in lane:
            total[turn.harness] += turn.seconds
    assert total == pytest.approx({"hello": 41, "server": 77, "keyed": 14, "ticket": 14})


def test_every_harness_of_a_short_run_has_time_to_start():
    names = ["hello", "server", "keyed", "ticket", "clientauth", "pool", "differential"]
    total = dict.fromkeys(names, 0.0)
    for lane in lanes(names, 20, 2):
        for turn in lane:
            total[turn.harness] += turn.seconds
    assert min(total.values()) >= SHORTEST


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("jobs", range(1, 5))
@pytest.mark.parametrize("seconds", [1, 5, 20, 60])
def test_no_lane_is_longer_than_the_time_and_no_harness_is_left_out(count, jobs, seconds):
    names = [f"h{number}" for number in range(count)]
    plan = lanes(names, seconds, jobs)
    assert len(plan) == jobs
    for lane in plan:
        assert sum(turn.seconds for turn in lane) <= seconds + 1e-3
    assert {turn.harness for lane in plan for turn in lane} == set(names)


def test_a_turn_too_short_to_start_goes_to_its_neighbour():
    plan = lanes(["a", "b", "c"], 20, 2)
    for lane in plan:
        assert sum(turn.seconds for turn in lane) == pytest.approx(20)
    plan = lanes([f"h{n}" for n in range(9)], 20, 2)
    turns = [turn for lane in plan for turn in lane]
    assert len(turns) == 9 and sum(turn.seconds < SHORTEST for turn in turns) <= 1


def test_weights_go_before_the_usual_ones_and_nobody_starves():
    plan = lanes(["hello", "server", "keyed"], 115, 1, {"hello": 1, "server": 1, "keyed": 8})
    assert [round(turn.seconds) for turn in plan[0]] == [15, 15, 85]


def test_a_value_profile_is_one_more_share_of_its_own():
    (turns,) = lanes(["a", "b"], 60, 1, value_profile="b")
    assert turns == [Slice("a", 20), Slice("b", 20), Slice("b", 20, True)]
    first, second = lanes(["a"], 60, 2, value_profile="a")
    assert (first, second) == ([Slice("a", 60)], [Slice("a", 60, True)])
