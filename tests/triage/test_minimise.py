"""Minimising: smaller, the same bucket at every step, the same result each time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from triage import minimise
from triage.limits import MINIMISE_SECONDS, Limits
from triage.minimise import Minimiser, NotReproduced
from triage.signature import Signature

WANTED = Signature("server", "oracle", "residue")
OTHER = Signature("server", "oracle", "drop")


class Fake:
    """A prober for which a function says what an input shows."""

    def __init__(self, shown: Callable[[bytes], Signature | None], hang: float = 99.0) -> None:
        self.shown = shown
        self.limits = Limits()
        self.hang = hang
        self.asked: list[bytes] = []

    def shows(self, data: bytes, wanted: Signature, thorough: bool, seconds: float) -> bool:
        self.asked.append(data)
        return self.shown(data) == wanted and (wanted.kind != "timeout" or seconds < self.hang)

    def first(self, inputs: list[bytes], wanted: Signature, thorough: bool) -> tuple[int, bool]:
        for number, data in enumerate(inputs, 1):
            self.asked.append(data)
            if self.shown(data) is not None:
                return number, self.shown(data) == wanted
        return len(inputs), False


def shrink(fake: Fake, data: bytes, wanted: Signature = WANTED, **fields: object) -> Minimiser:
    work = Minimiser(fake, wanted, data, **{"seconds": 60.0, **fields})  # type: ignore[arg-type]
    work.run()
    return work


def test_what_does_not_matter_goes_and_what_is_left_is_zero_where_it_can_be() -> None:
    fake = Fake(lambda data: WANTED if b"x" in data and len(data) >= 5 else None)
    work = shrink(fake, bytes(range(200)))
    assert sorted(work.checked) == [0, 0, 0, 0, ord("x")]
    assert work.finished


def test_nothing_is_left_of_an_input_that_does_not_matter() -> None:
    assert shrink(Fake(lambda data: WANTED), b"anything").checked == b""


def test_what_shows_another_bucket_is_not_taken() -> None:
    fake = Fake(lambda data: WANTED if len(data) >= 10 else OTHER)
    assert len(shrink(fake, bytes(100)).checked) == 10


def test_the_same_input_gives_the_same_tries() -> None:
    fakes = [Fake(lambda data: WANTED if b"ab" in data else None) for _ in range(2)]
    results = [shrink(fake, b"123ab456" * 3).checked for fake in fakes]
    assert results == [b"ab", b"ab"] and fakes[0].asked == fakes[1].asked


def test_a_hang_of_one_process_is_told_from_a_try_that_a_process_did_not_survive() -> None:
    class Dying(Fake):
        def first(self, inputs: list[bytes], *rest: object) -> tuple[int, bool]:
            return 0, False

    fake = Dying(lambda data: WANTED if b"a" in data else None)
    assert shrink(fake, b"xxxaxxx").checked == b"a"


def test_an_input_that_does_not_show_it_or_not_each_time_is_said() -> None:
    with pytest.raises(NotReproduced, match="in 0 of 3 runs"):
        shrink(Fake(lambda data: OTHER), b"data")
    turns = iter([WANTED, None, WANTED])
    with pytest.raises(NotReproduced, match="in 2 of 3 runs"):
        shrink(Fake(lambda data: next(turns)), b"data")


def test_a_number_of_runs_and_the_time_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimise, "MOST_RUNS", 4)
    fake = Fake(lambda data: WANTED if len(data) > 9 else None)
    work = shrink(fake, bytes(1000))
    assert not work.finished and len(work.checked) < 1000
    work = shrink(fake, bytes(1000), seconds=0.0)
    assert not work.finished and work.checked == bytes(1000)


def test_what_was_reached_when_it_was_interrupted_is_kept() -> None:
    def shown(data: bytes) -> Signature:
        if len(data) < 300:
            raise KeyboardInterrupt
        return WANTED

    work = Minimiser(Fake(shown), WANTED, bytes(1000), 60.0)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        work.run()
    assert work.checked == bytes(1000) or 300 <= len(work.checked) < 1000


def test_a_smaller_hang_is_checked_under_the_full_limit() -> None:
    hang = Signature("server", "timeout")
    fake = Fake(lambda data: hang if len(data) > 9 else None)
    assert len(shrink(fake, bytes(64), hang).checked) == 10
    ends = Fake(lambda data: hang, hang=MINIMISE_SECONDS + 1)
    with pytest.raises(NotReproduced, match="do come to an end"):
        shrink(ends, bytes(64), hang)


def test_a_wrong_outcome_is_only_smaller_where_the_right_tree_says_what_was_expected() -> None:
    wrong = Signature("hello", "outcome", expected="right", found="wrong")

    class Right:
        def ask(self, data: bytes) -> object:
            class Answer:
                outcome = "right" if b"a" in data else "wrong"

            return Answer

    fake = Fake(lambda data: wrong)
    assert shrink(fake, b"xxaxx", wrong, right=Right()).checked == b"a"
    with pytest.raises(NotReproduced):
        shrink(fake, b"xxaxx", wrong)
