"""Rounds alternate, medians are of the rounds, a ratio is of pairs."""

import gc

import pytest

from bench import clock


def test_the_order_turns_by_one_place_each_round() -> None:
    """No candidate always runs first, or always behind the same other."""
    seen: list[str] = []

    def named(name: str) -> clock.Candidate:
        return clock.Candidate(name, lambda count: seen.append(name) or count)

    clock.alternate([named("a"), named("b"), named("c")], rounds=3, count=8, label="")
    assert "".join(seen) == "abc" + "abc" + "bca" + "cab"


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    """A round in which the whole machine was slow changes no ratio."""
    mine = clock.Candidate("mine", lambda count: 0, [10.0, 100.0, 12.0])
    theirs = clock.Candidate("theirs", lambda count: 0, [20.0, 200.0, 20.0])
    assert mine.ratio(theirs) == 0.5
    assert mine.median == 12.0


def test_a_time_is_of_one_operation() -> None:
    """What a turn answers is divided by how many it did."""
    lane = clock.Candidate("lane", lambda count: count * 7)
    clock.alternate([lane], rounds=2, count=5, label="")
    assert lane.rounds == [7.0, 7.0]
    assert lane.spread() == 0.0


def test_the_collector_is_off_inside_and_as_it_was_outside() -> None:
    """Also when the measured part raises."""
    assert gc.isenabled()
    with pytest.raises(RuntimeError), clock.quiet():
        assert not gc.isenabled()
        raise RuntimeError
    assert gc.isenabled()


def test_nothing_but_a_terminal_sees_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """A log holds the table alone."""
    clock.progress("label", 1, 2)
    assert capsys.readouterr() == ("", "")
