"""The ring of ticket keys: rotation, supplied lists, the clock, and what stays in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.refusals import Refused
from engine.ticket_keys import TicketKeyRing, key_name

HOUR = 3_600_000
Move = Callable[[TicketKeyRing, int], None]
A, B, C, D, E = (bytes([n]) * 32 for n in range(1, 6))


def drawer() -> Callable[[bytearray], None]:
    """A source that draws 0x81, 0x82 and so on, and each only once."""
    count = 0

    def draw(place: bytearray) -> None:
        nonlocal count
        count += 1
        place[:] = bytes([0x80 + count]) * len(place)

    return draw


def drawn(n: int) -> bytes:
    return bytes([0x80 + n]) * 32


def no_draw(place: bytearray) -> None:
    raise AssertionError("nothing is drawn here")


def opens(ring: TicketKeyRing, key: bytes) -> bool:
    return ring.find(key_name(key)) is not None


def current(ring: TicketKeyRing) -> bytes:
    key = ring.current()
    assert key is not None
    return bytes(key.secret)


def test_a_new_ring_has_no_key_and_nothing_opens() -> None:
    ring = TicketKeyRing(HOUR)
    assert ring.current() is None
    assert ring.open_keys() == 0
    assert ring.now_ms == 0
    assert ring.residue() == 0


def test_the_engine_draws_its_own_key_once_and_again_after_exactly_a_lifetime() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(1_000, draw)
    assert current(ring) == drawn(1)
    ring.renew(1_000 + HOUR - 1, no_draw)
    assert current(ring) == drawn(1)
    ring.renew(1_000 + HOUR, draw)
    assert current(ring) == drawn(2)
    assert ring.open_keys() == 2


def test_a_previous_key_opens_for_one_lifetime_to_the_millisecond() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(1_000, draw)
    ring.rotate(5_000, draw)
    ring.advance(5_000 + HOUR - 1)
    assert opens(ring, drawn(1))
    assert ring.open_keys() == 2
    ring.advance(5_000 + HOUR)
    assert not opens(ring, drawn(1))
    assert ring.open_keys() == 1
    assert opens(ring, drawn(2))


def test_a_supplied_previous_key_opens_for_one_lifetime_to_the_millisecond() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 7_000)
    ring.advance(7_000 + HOUR - 1)
    assert opens(ring, B)
    ring.advance(7_000 + HOUR)
    assert not opens(ring, B)
    assert ring.open_keys() == 1


def test_the_current_key_opens_however_long_it_is_current() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A], 0)
    ring.advance(1_000 * HOUR)
    assert opens(ring, A)


def test_supplied_keys_turn_the_engine_s_own_rotation_off() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A], 0)
    ring.renew(10 * HOUR, no_draw)
    assert current(ring) == A
    assert ring.now_ms == 10 * HOUR


def test_supplied_keys_replace_the_engine_s_own_at_once() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(0, draw)
    ring.set_keys([A, B], 0)
    assert not opens(ring, drawn(1))
    assert current(ring) == A
    assert ring.open_keys() == 2
    assert ring.residue() == 0


def test_rotating_supplied_keys_keeps_them_and_leaves_the_next_rotation_to_the_program() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.set_keys([A, B], 0)
    ring.rotate(10, draw)
    assert current(ring) == drawn(1)
    assert opens(ring, A)
    assert opens(ring, B)
    ring.renew(10 * HOUR, no_draw)
    assert current(ring) == drawn(1)


def test_the_same_list_changes_nothing_however_often() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    for now_ms in (1, HOUR // 2, HOUR - 1, HOUR, 2 * HOUR, 9 * HOUR):
        ring.set_keys([A, B], now_ms)
        assert opens(ring, B) == (now_ms < HOUR)
        assert current(ring) == A


@pytest.mark.parametrize(
    "move", [TicketKeyRing.advance, lambda ring, now: ring.rotate(now, drawer())]
)
def test_a_supplied_key_past_its_time_is_no_new_one_when_it_is_supplied_again(move: Move) -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    move(ring, 2 * HOUR)
    ring.set_keys([A, B], 2 * HOUR)
    assert current(ring) == A
    assert not opens(ring, B)


@pytest.mark.parametrize("late", [0, 1, HOUR])
def test_a_key_of_the_engine_s_own_is_overwritten_at_the_rotation_that_finds_it_over(
    late: int,
) -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.rotate(0, draw)
    ring.rotate(10, draw)
    ring.rotate(10 + HOUR + late, draw)
    assert drawn(1) not in ring._places
    assert current(ring) == drawn(3)


def test_a_clock_that_ends_no_key_leaves_the_list_as_it_is() -> None:
    # Every connection moves it: what nothing asks for is not overwritten each time.
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.rotate(0, draw)
    keys = ring._keys
    ring.advance(10)
    assert ring._keys is keys


def test_a_new_key_on_top_keeps_the_old_for_a_lifetime_and_the_older_for_what_it_had() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    ring.set_keys([C, A, B], 1_000)
    assert current(ring) == C
    ring.advance(HOUR - 1)
    assert opens(ring, B)
    ring.advance(HOUR)
    assert not opens(ring, B)
    ring.advance(HOUR + 999)
    assert opens(ring, A)
    ring.advance(HOUR + 1_000)
    assert not opens(ring, A)


def test_a_key_not_listed_opens_no_more_and_is_overwritten() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    key = ring.find(key_name(B))
    assert key is not None
    place = key.secret
    ring.set_keys([A], 1)
    assert not opens(ring, B)
    assert place == bytes(32)
    assert ring.residue() == 0


def test_the_current_key_is_overwritten_when_it_is_not_listed() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    key = ring.current()
    assert key is not None
    ring.set_keys([B], 1)
    assert not opens(ring, A)
    assert key.secret == bytes(32)


def test_there_are_two_places_for_each_key_and_none_is_ever_lost() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    assert len(ring._unused()) == 8
    for keys in ([A, B, C, D], [E], [A, E], [B]):
        ring.set_keys(keys, 0)
        assert len(ring._unused()) == 8 - len(keys)
    for drawn_keys in (1, 2, 3, 3):
        ring.rotate(1, draw)
        assert len(ring._unused()) == 8 - 1 - drawn_keys
    ring.wipe()
    assert len(ring._unused()) == 8


def test_a_key_that_comes_back_after_it_was_dropped_is_a_new_one() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    ring.set_keys([A], 1)
    ring.set_keys([A, B], HOUR)
    assert opens(ring, B)
    ring.advance(2 * HOUR)
    assert not opens(ring, B)


def test_a_previous_key_can_become_current_again() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    ring.set_keys([B, A], 2 * HOUR)
    assert current(ring) == B
    assert opens(ring, A)
    ring.advance(3 * HOUR)
    assert opens(ring, B)
    assert not opens(ring, A)


def test_a_replaced_list_of_four_has_a_place_for_each() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B, C, D], 0)
    ring.set_keys([E, D, C, B], 1)
    assert current(ring) == E
    assert [opens(ring, key) for key in (A, B, C, D, E)] == [False, True, True, True, True]
    assert [ring.find(key_name(key)).secret for key in (B, C, D, E)] == [B, C, D, E]


def test_three_rotations_keep_the_first_key_and_the_fourth_evicts_it() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.set_keys([A], 0)
    for now_ms in (1, 2, 3):
        ring.rotate(now_ms, draw)
    assert opens(ring, A)
    assert ring.open_keys() == 4
    ring.rotate(4, draw)
    assert not opens(ring, A)
    assert ring.open_keys() == 4
    assert ring.residue() == 0


@pytest.mark.parametrize(
    "keys",
    [[], [b""], [A[:31]], [A + b"\0"], [A, B[:31]], [A, B, C, D, E], [A, A], [A, B, A], [A * 2]],
)
def test_a_list_that_is_not_one_to_four_different_keys_is_refused_and_changes_nothing(
    keys: list[bytes],
) -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([C, D], 5)
    with pytest.raises(Refused) as refused:
        ring.set_keys(keys, 2 * HOUR)
    assert refused.value.refusal == "tls-server-ticket-key"
    assert ring.now_ms == 5
    assert current(ring) == C
    assert opens(ring, D)
    assert ring.open_keys() == 2


@pytest.mark.parametrize(
    "keys", [["a" * 32], [1], None, A, A[:4], bytearray(A), memoryview(A), "a" * 32]
)
def test_what_is_no_list_of_buffers_is_a_type_error(keys: object) -> None:
    with pytest.raises(TypeError):
        TicketKeyRing(HOUR).set_keys(keys, 0)  # type: ignore[arg-type]


def test_a_refused_draw_changes_nothing() -> None:
    def refuse(place: bytearray) -> None:
        raise LookupError

    ring, draw = TicketKeyRing(HOUR), drawer()
    with pytest.raises(LookupError):
        ring.renew(5, refuse)
    assert ring.now_ms == 0
    ring.renew(5, draw)
    with pytest.raises(LookupError):
        ring.rotate(6, refuse)
    with pytest.raises(LookupError):
        ring.renew(5 + HOUR, refuse)
    assert ring.now_ms == 5
    assert current(ring) == drawn(1)


def test_a_refused_draw_evicts_no_key_of_a_full_ring() -> None:
    def refuse(place: bytearray) -> None:
        raise LookupError

    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.set_keys([A, B, C, D], 0)
    with pytest.raises(LookupError):
        ring.rotate(1, refuse)
    assert ring.open_keys() == 4
    for now_ms in range(1, 10):
        ring.rotate(now_ms, draw)
        assert ring.open_keys() == 4
        assert ring.residue() == 0


def test_the_clock_only_moves_forward_and_takes_any_value_forward() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.advance(1_000_000)
    ring.advance(1)
    ring.advance(-1)
    assert ring.now_ms == 1_000_000
    ring.renew(5, draw)
    ring.set_keys([A], 6)
    ring.rotate(7, draw)
    assert ring.now_ms == 1_000_000
    ring.advance(10**15)
    assert ring.now_ms == 10**15


def test_a_key_taken_at_an_earlier_time_than_the_clock_s_counts_from_the_clock() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.advance(10 * HOUR)
    ring.renew(0, draw)
    ring.renew(11 * HOUR - 1, no_draw)
    ring.rotate(0, draw)
    ring.advance(12 * HOUR - 2)
    assert opens(ring, drawn(1))


@pytest.mark.parametrize("now_ms", [1 << 62, 1 << 64, 1 << 100])
def test_a_time_that_no_ticket_can_carry_is_a_value_error_and_changes_nothing(
    now_ms: int,
) -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(1, draw)
    calls: list[Callable[[], None]] = [
        lambda: ring.advance(now_ms),
        lambda: ring.renew(now_ms, no_draw),
        lambda: ring.rotate(now_ms, no_draw),
        lambda: ring.set_keys([A], now_ms),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="out of range"):
            call()
    assert ring.now_ms == 1
    assert current(ring) == drawn(1)
    ring.advance((1 << 62) - 1)


@pytest.mark.parametrize("now_ms", [1.5, "1", None])
def test_a_time_that_is_no_integer_is_a_type_error(now_ms: object) -> None:
    with pytest.raises(TypeError):
        TicketKeyRing(HOUR).advance(now_ms)  # type: ignore[arg-type]


def test_a_drawn_key_past_its_time_is_overwritten_and_a_supplied_one_is_remembered() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(0, draw)
    first = ring.current()
    assert first is not None
    ring.rotate(1, draw)
    ring.advance(HOUR)
    assert first.secret == drawn(1)
    ring.advance(HOUR + 1)
    assert first.secret == bytes(32)
    assert ring.residue() == 0
    assert ring.open_keys() == 1


def test_a_night_without_a_connection_draws_one_key_and_no_more() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(0, draw)
    ring.renew(10 * HOUR, draw)
    assert current(ring) == drawn(2)


def test_the_engine_s_own_key_ends_two_lifetimes_after_it_was_drawn_whoever_comes() -> None:
    for seen in (HOUR, 2 * HOUR - 1, 2 * HOUR, 10 * HOUR):
        ring, draw = TicketKeyRing(HOUR), drawer()
        ring.renew(0, draw)
        ring.renew(seen, draw)
        assert current(ring) == drawn(2)
        assert opens(ring, drawn(1)) == (seen < 2 * HOUR)
        ring.advance(2 * HOUR)
        assert not opens(ring, drawn(1))
        assert ring.residue() == 0


def test_a_key_that_nobody_replaces_is_overwritten_with_all_before_it() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(0, draw)
    ring.lifetime_ms = 5 * HOUR
    ring.rotate(1, draw)
    ring.lifetime_ms = HOUR
    ring.advance(2 * HOUR)
    assert ring.open_keys() == 2
    ring.advance(2 * HOUR + 1)
    assert ring.current() is None and ring.open_keys() == 0
    assert ring.residue() == 0 and not any(map(any, ring._places))


def test_a_key_that_was_late_opens_for_what_it_may_have_sealed() -> None:
    """The lifetime was made shorter: the key sealed until the clock was last moved."""
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(0, draw)
    ring.advance(HOUR // 2)
    ring.lifetime_ms = 60_000
    ring.rotate(HOUR // 2 + 10, draw)
    ring.advance(HOUR // 2 + 60_000 - 1)
    assert opens(ring, drawn(1))
    ring.advance(HOUR // 2 + 60_000)
    assert not opens(ring, drawn(1))


def test_supplied_keys_that_were_wiped_are_replaced_by_the_engine_s_own() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.set_keys([A, B], 0)
    ring.wipe()
    assert ring.open_keys() == 0 and not any(map(any, ring._places))
    ring.renew(1, draw)
    ring.renew(1 + HOUR, draw)
    assert current(ring) == drawn(2)


def test_a_longer_or_shorter_lifetime_moves_the_next_rotation_and_no_previous_key() -> None:
    ring, draw = TicketKeyRing(HOUR), drawer()
    ring.renew(0, draw)
    ring.rotate(0, draw)
    ring.lifetime_ms = 10
    assert ring.lifetime_ms == 10
    ring.advance(9)
    assert opens(ring, drawn(1))
    ring.renew(10, draw)
    assert current(ring) == drawn(3)
    ring.advance(20)
    assert not opens(ring, drawn(2))
    assert opens(ring, drawn(1))


def test_wiping_leaves_no_key_and_no_byte() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B, C, D], 0)
    places = [ring.find(key_name(key)).secret for key in (A, B, C, D)]
    ring.wipe()
    assert places == [bytes(32)] * 4
    assert ring.current() is None
    assert ring.open_keys() == 0
    assert ring.residue() == 0


def test_residue_sees_every_byte_left_in_an_unused_place() -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys([A, B], 0)
    key = ring.find(key_name(B))
    assert key is not None
    ring.set_keys([A], 0)
    key.secret[0] = 1
    key.secret[31] = 255
    assert ring.residue() == 2


@given(st.permutations([A, B, C, D]), st.permutations([A, B, C, D, E]))
def test_any_two_lists_leave_the_second_s_keys_in_its_order(
    first: list[bytes], second: list[bytes]
) -> None:
    ring = TicketKeyRing(HOUR)
    ring.set_keys(first[:3], 0)
    ring.set_keys(second[:4], 1)
    assert current(ring) == second[0]
    assert ring.open_keys() == 4
    ring.set_keys(second[:1], 2)
    assert ring.open_keys() == 1
    assert ring.residue() == 0


class RingAgainstAModel(RuleBasedStateMachine):
    """The ring against a model that remembers every key's last moment instead of a list of four."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = TicketKeyRing(100)
        self.draw = drawer()
        self.count = 0
        self.now_ms = 0
        self.order: list[bytes] = []
        self.since = 0
        self.until: dict[bytes, int] = {}
        self.own = True

    def step(self, by_ms: int) -> int:
        self.before_ms = self.now_ms
        self.now_ms += by_ms
        return self.now_ms

    def rotated(self) -> None:
        self.count += 1
        if self.order:
            stopped = max(self.before_ms, self.since + 100) if self.own else self.now_ms
            self.until[self.order[0]] = min(self.now_ms, stopped) + 100
        self.since = self.now_ms
        self.order = [drawn(self.count), *self.order]
        # A drawn key past its time frees its place; a supplied one keeps it.
        kept = [key for key in self.order[1:] if key[0] < 0x80 or self.until[key] > self.now_ms]
        self.order = [self.order[0], *kept][:4]

    @rule(by_ms=st.integers(0, 120))
    def rotate(self, by_ms: int) -> None:
        if self.count < 100:
            self.ring.rotate(self.step(by_ms), self.draw)
            self.rotated()

    @rule(by_ms=st.integers(0, 120))
    def renew(self, by_ms: int) -> None:
        if self.count < 100:
            self.ring.renew(self.step(by_ms), self.draw)
            if not self.order or (self.own and self.now_ms - self.since >= 100):
                self.rotated()

    @rule(by_ms=st.integers(0, 120))
    def advance(self, by_ms: int) -> None:
        self.ring.advance(self.step(by_ms))
        if self.own and self.now_ms - self.since >= 200:
            self.order = []

    @rule(
        by_ms=st.integers(0, 120),
        keys=st.lists(st.sampled_from([A, B, C, D, E]), min_size=1, max_size=4, unique=True),
    )
    def supply(self, by_ms: int, keys: list[bytes]) -> None:
        self.ring.set_keys(keys, self.step(by_ms))
        if self.order and self.order[0] != keys[0]:
            self.until[self.order[0]] = self.now_ms + 100
        for key in keys[1:]:
            if key not in self.order:
                self.until[key] = self.now_ms + 100
        self.order = list(keys)
        self.own = False

    @invariant()
    def agrees(self) -> None:
        alive = [key for key in self.order[1:] if self.now_ms < self.until[key]]
        alive += self.order[:1]
        everything = [A, B, C, D, E, *(drawn(n) for n in range(1, self.count + 1))]
        assert {key for key in everything if opens(self.ring, key)} == set(alive)
        assert self.ring.open_keys() == len(alive)
        assert self.ring.residue() == 0
        if self.order:
            assert current(self.ring) == self.order[0]


TestRingAgainstAModel = RingAgainstAModel.TestCase
