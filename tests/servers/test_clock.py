"""The two clocks of a server, when somebody sets the machine's."""

import pytest

from servers import clock as clocks
from servers.clock import BELIEVED_MS, JUMP_MS, SystemClock

YEAR = 365 * 86_400 * 1000


@pytest.fixture
def machine(monkeypatch):
    """The machine's clocks, to be set."""

    class Machine:
        monotonic, unix = 5_000, 1_700_000_000_000

        def time_ns(self) -> int:
            return self.unix * 1_000_000

        def monotonic_ns(self) -> int:
            return self.monotonic * 1_000_000

        def passes(self, passed: int) -> None:
            self.monotonic += passed
            self.unix += passed

    made = Machine()
    monkeypatch.setattr(clocks, "time", made)
    return made


def test_time_passes_on_both(machine):
    clock = SystemClock()
    machine.passes(1234)
    assert (clock.monotonic_ms(), clock.unix_ms()) == (6_234, 1_700_000_001_234)


@pytest.mark.parametrize("jump", [20 * YEAR, -20 * YEAR, JUMP_MS, -JUMP_MS])
def test_a_wrong_reading_that_is_put_right_is_never_given(machine, jump):
    clock = SystemClock()
    for _ in range(5):
        machine.passes(1_000)
        right = machine.unix
        machine.unix += jump
        assert clock.unix_ms() == right
        machine.passes(BELIEVED_MS - 1)
        assert clock.unix_ms() == right + BELIEVED_MS - 1
        machine.unix -= jump
        assert clock.unix_ms() == machine.unix


@pytest.mark.parametrize("jump", [20 * YEAR, -20 * YEAR])
def test_a_jump_that_stands_is_followed(machine, jump):
    clock = SystemClock()
    machine.unix += jump
    clock.unix_ms()
    machine.passes(BELIEVED_MS - 1)
    assert clock.unix_ms() == machine.unix - jump
    machine.passes(1)
    assert clock.unix_ms() == machine.unix


def test_one_jump_after_another_begins_to_stand_anew(machine):
    clock = SystemClock()
    machine.unix += YEAR
    clock.unix_ms()
    machine.passes(BELIEVED_MS - 1)
    machine.unix += YEAR
    assert clock.unix_ms() == machine.unix - 2 * YEAR
    machine.passes(BELIEVED_MS - 1)
    assert clock.unix_ms() == machine.unix - 2 * YEAR


def test_a_clock_that_is_adjusted_bit_by_bit_is_followed(machine):
    clock = SystemClock()
    for _ in range(50):
        machine.passes(1_000)
        machine.unix += JUMP_MS - 1
        assert clock.unix_ms() == machine.unix
