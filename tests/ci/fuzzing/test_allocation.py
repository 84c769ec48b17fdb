"""Who fuzzes next."""

import pytest

from ci.fuzzing.allocation import (
    LONG,
    RECENT,
    SHORT,
    SHORTEST,
    WEIGHTS,
    Share,
    Turn,
    following,
    shares,
    turn_seconds,
)

USUAL = 10.0


def play(shares, found, count):
    """So many turns of the usual length, in each of which a share finds what `found` says."""
    turns: list[Turn] = []
    for number in range(count):
        share = following(shares, turns, USUAL)
        turns.append(Turn(share, USUAL, found(share.harness, number)))
    return [turn.share.harness for turn in turns]


def test_every_share_has_a_turn_before_any_has_a_second():
    names = [f"h{number}" for number in range(7)]
    assert play(shares(names), lambda name, number: 100, 7) == names


def test_shares_that_find_nothing_have_turns_by_their_weights():
    had = play(shares(["hello", "server", "keyed"]), lambda name, number: 0, 600)
    counts = {name: had.count(name) / 100 for name in ("hello", "server", "keyed")}
    assert counts == pytest.approx({"hello": 1, "server": 4, "keyed": 1}, abs=0.6)
    assert set(WEIGHTS) <= set(counts)


def test_time_goes_where_edges_are_still_found():
    """One finds nothing any more after its first turn, the other one in every second."""
    found = {"server": 0, "keyed": 9}
    had = play(shares(["server", "keyed"]), lambda name, number: found[name], 60)
    assert had.count("keyed") > 1.5 * had.count("server"), "and its weight is a quarter"
    had = play(shares(["a", "b"]), lambda name, number: 9 if name == "b" else 0, 60)
    assert had.count("b") > 4 * had.count("a")


def test_what_was_found_long_ago_is_forgotten():
    had = play(shares(["a", "b"]), lambda name, number: 50 if name == "a" and number < 8 else 0, 80)
    assert had[:8].count("a") > 5
    assert had[20:].count("a") == pytest.approx(30, abs=3)


@pytest.mark.parametrize("count", [2, 7, 8])
def test_who_finds_nothing_is_tried_again_all_the_same(count):
    names = [f"h{number}" for number in range(count)]
    had = play(shares(names), lambda name, number: 1000 if name == "h0" else 0, 300)
    window = RECENT * count + count
    for begin in range(len(had) - window):
        assert set(had[begin : begin + window]) == set(names)


def test_the_same_turns_are_followed_by_the_same_share():
    names = shares(["a", "b", "c"])
    assert play(names, lambda name, n: n % 3, 50) == play(names, lambda name, n: n % 3, 50)


def test_a_short_turn_counts_for_what_it_was():
    a, b = shares(["a", "b"])
    assert following([a, b], [Turn(a, 2.0), Turn(b, 10.0)], USUAL) == a
    assert following([a, b], [Turn(a, 10.0), Turn(b, 2.0)], USUAL) == b


def test_a_turn_that_has_only_begun_counts_as_given():
    """Two processes: the second is not given to the harness that the first has just begun with."""
    a, b = shares(["a", "b"])
    assert following([a, b], [Turn(a, 10.0), Turn(b, 10.0), Turn(a, 10.0)], USUAL) == b


def test_weights_go_before_the_usual_ones():
    assert shares(["hello", "keyed"], {"hello": 7, "keyed": 3}) == [
        Share("hello", 7),
        Share("keyed", 3),
    ]


def test_a_value_profile_is_one_more_share_of_its_own():
    assert shares(["a", "b"], {"b": 4}, value_profile="b") == [
        Share("a"),
        Share("b", 4),
        Share("b", 1.0, True),
    ]


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("jobs", [1, 2, 8])
@pytest.mark.parametrize("seconds", [1, 5, 20, 60, 1800, 10**6])
def test_a_turn_is_no_longer_than_the_phase_and_long_enough_to_start(count, jobs, seconds):
    usual = turn_seconds(count, seconds, jobs)
    assert min(SHORTEST, seconds) <= usual <= min(LONG, seconds)
    if usual > max(SHORT, SHORTEST):
        assert usual * count <= seconds * jobs, "all have several turns"


def test_in_a_run_too_short_for_a_whole_turn_each_every_share_has_its_part():
    assert turn_seconds(7, 20, 2) == pytest.approx(40 / 7)
