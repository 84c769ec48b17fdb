"""The rules a ticket is judged by, in their order, and the choice among several."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import tickets
from engine.refusals import Refused
from engine.ticket_keys import TicketKeyRing
from engine.tickets import (
    AGE,
    ALPN,
    AUTH,
    EXPIRED,
    FORMAT,
    IDENTITY,
    NAME,
    NO_PSK_DHE_KE,
    NONE,
    OFF,
    RESUMED,
    SUITE,
    TAMPERED,
    UNKNOWN,
    VERDICT_NAMES,
    Choice,
    Moment,
    Ticket,
    checked_settings,
    choose,
    judge,
)
from tests.engine import ticket_format

KEY = b"k" * 32
LEAF = b"\x11" * 32
ISSUE, EXPIRY, AGE_ADD = 1_000_000, 4_600_000, 0xFFFF_FF00
NOW = ISSUE + 50_000
# The client's age is the server's; added to the ticket_age_add it passes 2^32.
AGE_SENT = (50_000 + AGE_ADD) % 2**32

HONEST: dict[str, object] = {
    "issue_ms": ISSUE,
    "expiry_ms": EXPIRY,
    "age_add": AGE_ADD,
    "suite": 0x1301,
    "psk": b"p" * 32,
    "fingerprint": LEAF,
    "name": b"server.example",
    "alpn": b"h2",
}


def ring() -> TicketKeyRing:
    made = TicketKeyRing(3_600_000)
    made.set_keys([KEY], 0)
    return made


def sealed(key: bytes = KEY, **changes: object) -> bytes:
    plaintext = ticket_format.plaintext_of(**{**HONEST, **changes})  # type: ignore[arg-type]
    return ticket_format.sealed(plaintext, key, b"s" * 32)


def moment(**changes: object) -> Moment:
    return Moment(NOW, b"server.example", LEAF, 0x1301, b"h2", False)._replace(**changes)  # type: ignore[arg-type]


def chosen(
    *offered: bytes,
    enabled: bool = True,
    modes: bytes = b"\x01",
    age: int = AGE_SENT,
    **changes: object,
) -> Choice:
    identities = [(ticket, age) for ticket in offered]
    return choose(ring(), enabled, modes, identities, moment(**changes))


def damaged(ticket: bytes) -> bytes:
    return ticket[:-1] + bytes([ticket[-1] ^ 1])


def test_the_names_of_the_verdicts_are_those_of_the_contract() -> None:
    assert [VERDICT_NAMES[code] for code in range(14)] == [
        *("none", "resumed", "off", "no-psk-dhe-ke", "unknown", "tampered", "format", "auth"),
        *("expired", "age", "name", "identity", "suite", "alpn"),
    ]
    assert VERDICT_NAMES[NONE] == "none"
    assert VERDICT_NAMES[ALPN] == "alpn"
    assert len(VERDICT_NAMES) == 14


def test_an_honest_ticket_resumes_and_gives_its_psk() -> None:
    choice = chosen(sealed())
    assert choice.verdict == RESUMED
    assert choice.place == 0
    assert choice.ticket is not None
    assert choice.ticket.psk == b"p" * 32


# Each rule broken alone, and the verdict that names it. The list is in the order of the rules: the
# test below it breaks every pair.
BROKEN: list[tuple[int, dict[str, object]]] = [
    (OFF, {"enabled": False}),
    (NO_PSK_DHE_KE, {"modes": b"\x00"}),
    (UNKNOWN, {"key": b"K" * 32}),
    (TAMPERED, {"damage": True}),
    (FORMAT, {"version": 2}),
    (AUTH, {"certificates_required": True}),
    (EXPIRED, {"expiry_ms": NOW}),
    (AGE, {"age": AGE_SENT - 30_001}),
    (NAME, {"name": b"other.example"}),
    (IDENTITY, {"fingerprint": bytes(32)}),
    (SUITE, {"suite": 0x1302, "psk": b"p" * 48}),
    (ALPN, {"alpn": b"http/1.1"}),
]
OF_THE_MOMENT = {"enabled", "modes", "age", "certificates_required"}


def outcome(broken: dict[str, object]) -> int:
    of_the_ticket = {name: value for name, value in broken.items() if name not in OF_THE_MOMENT}
    of_the_moment = {name: value for name, value in broken.items() if name in OF_THE_MOMENT}
    damage = of_the_ticket.pop("damage", False)
    ticket = sealed(**of_the_ticket)  # type: ignore[arg-type]
    return chosen(damaged(ticket) if damage else ticket, **of_the_moment).verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(("verdict", "broken"), BROKEN)
def test_each_rule_broken_alone_has_its_verdict(verdict: int, broken: dict[str, object]) -> None:
    assert VERDICT_NAMES[outcome(broken)] == VERDICT_NAMES[verdict]


@pytest.mark.parametrize("first", range(len(BROKEN)))
def test_of_two_broken_rules_the_first_in_order_is_the_verdict(first: int) -> None:
    for second in range(first, len(BROKEN)):
        both = {**BROKEN[second][1], **BROKEN[first][1]}
        assert VERDICT_NAMES[outcome(both)] == VERDICT_NAMES[BROKEN[first][0]]


def test_without_a_ticket_taken_no_place_is_told() -> None:
    assert chosen(sealed(), enabled=False) == Choice(OFF, 0, None)
    assert chosen(sealed(), modes=b"\x00") == Choice(NO_PSK_DHE_KE, 0, None)
    assert chosen(sealed(auth=1)) == Choice(AUTH, 0, None)


def test_no_offer_has_no_verdict() -> None:
    assert chosen() == Choice(NONE, 0, None)


@pytest.mark.parametrize(
    ("modes", "verdict"),
    [
        (b"\x01", RESUMED),
        (b"\x00\x01", RESUMED),
        (b"\x00", NO_PSK_DHE_KE),
        (b"\x02", NO_PSK_DHE_KE),
    ],
)
def test_only_a_client_that_can_do_a_key_exchange_resumes(modes: bytes, verdict: int) -> None:
    assert chosen(sealed(), modes=modes).verdict == verdict


def test_a_ticket_of_an_authenticated_client_is_refused() -> None:
    assert chosen(sealed(auth=1)).verdict == AUTH
    assert chosen(sealed(auth=255)).verdict == AUTH


def test_a_ticket_expires_to_the_millisecond() -> None:
    assert chosen(sealed(expiry_ms=NOW + 1)).verdict == RESUMED
    assert chosen(sealed(expiry_ms=NOW)).verdict == EXPIRED
    assert chosen(sealed(expiry_ms=NOW - 1)).verdict == EXPIRED


@pytest.mark.parametrize(
    ("off_by_ms", "verdict"),
    [
        (0, RESUMED),
        (30_000, RESUMED),
        (-30_000, RESUMED),
        (30_001, AGE),
        (-30_001, AGE),
        (60_000, AGE),
        (2**31, AGE),
    ],
)
def test_the_two_ages_may_differ_by_thirty_seconds_to_the_millisecond(
    off_by_ms: int, verdict: int
) -> None:
    assert chosen(sealed(), age=(AGE_SENT + off_by_ms) % 2**32).verdict == verdict


@pytest.mark.parametrize(
    ("ahead_ms", "age_ms", "verdict"),
    [(30_000, 0, RESUMED), (30_001, 0, AGE), (29_000, 1_001, AGE), (60_000, 0, AGE)],
)
def test_a_ticket_from_a_clock_ahead_is_judged_by_the_difference_alone(
    ahead_ms: int, age_ms: int, verdict: int
) -> None:
    ticket = sealed(issue_ms=NOW + ahead_ms, expiry_ms=NOW + 10**6, age_add=7)
    assert chosen(ticket, age=age_ms + 7).verdict == verdict


def test_a_name_must_be_the_ticket_s_and_none_is_a_name_too() -> None:
    assert chosen(sealed(), server_name=b"").verdict == NAME
    assert chosen(sealed(name=b"")).verdict == NAME
    assert chosen(sealed(name=b""), server_name=b"").verdict == RESUMED


def test_the_leaf_that_would_be_sent_now_must_be_the_ticket_s() -> None:
    assert chosen(sealed(), fingerprint=bytes(32)).verdict == IDENTITY
    assert chosen(sealed(), fingerprint=memoryview(LEAF)).verdict == RESUMED


@pytest.mark.parametrize("now", [0x1301, 0x1302, 0x1303])
@pytest.mark.parametrize(("then", "length"), [(0x1301, 32), (0x1302, 48), (0x1303, 32)])
def test_a_psk_serves_the_suites_of_its_hash(now: int, then: int, length: int) -> None:
    verdict = chosen(sealed(suite=then, psk=bytes(length)), suite=now).verdict
    assert verdict == (RESUMED if (now == 0x1302) == (then == 0x1302) else SUITE)


def test_the_protocol_must_be_the_ticket_s_and_none_is_a_protocol_too() -> None:
    assert chosen(sealed(), alpn=b"").verdict == ALPN
    assert chosen(sealed(alpn=b"")).verdict == ALPN
    assert chosen(sealed(alpn=b""), alpn=b"").verdict == RESUMED


def test_the_first_good_ticket_is_taken_and_its_place_told() -> None:
    choice = chosen(b"x" * 200, sealed(psk=b"1" * 32), sealed(psk=b"2" * 32))
    assert (choice.verdict, choice.place) == (RESUMED, 1)
    assert choice.ticket is not None
    assert choice.ticket.psk == b"1" * 32


def test_of_several_bad_tickets_the_verdict_is_the_first_one_s() -> None:
    assert chosen(damaged(sealed()), b"x" * 200, sealed(version=3)).verdict == TAMPERED
    assert chosen(b"x" * 200, damaged(sealed()), sealed(version=3)).verdict == UNKNOWN


def test_four_tickets_are_tried_and_the_fifth_is_not() -> None:
    junk = b"x" * 200
    fourth = chosen(junk, junk, junk, sealed())
    assert (fourth.verdict, fourth.place) == (RESUMED, 3)
    assert chosen(junk, junk, junk, junk, sealed()) == Choice(UNKNOWN, 0, None)


def test_the_age_belongs_to_its_own_identity() -> None:
    identities = [(sealed(), AGE_SENT + 100_000), (sealed(), AGE_SENT)]
    choice = choose(ring(), True, b"\x01", identities, moment())
    assert (choice.verdict, choice.place) == (RESUMED, 1)


def test_the_psk_of_a_refused_ticket_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    psks: list[bytearray] = []

    def spying(ticket: Ticket, age: int, now: Moment) -> int:
        psks.append(ticket.psk)
        assert ticket.psk == b"p" * 32
        return judge(ticket, age, now)

    monkeypatch.setattr(tickets, "judge", spying)
    chosen(sealed(expiry_ms=0), sealed(alpn=b""), sealed())
    assert psks == [bytes(32), bytes(32), b"p" * 32]


def test_a_previous_key_s_tickets_are_unknown_after_its_time() -> None:
    keys = TicketKeyRing(100_000)
    keys.set_keys([b"n" * 32, KEY], NOW - 99_999)
    keys.advance(NOW)
    offer = [(sealed(), AGE_SENT)]
    assert choose(keys, True, b"\x01", offer, moment()).verdict == RESUMED
    keys.advance(NOW + 1)
    assert choose(keys, True, b"\x01", offer, moment(now_ms=NOW + 1)).verdict == UNKNOWN


# A second reading of the rules, over the fields instead of a sealed ticket.
def reading(fields: dict[str, int], age: int, now: Moment) -> str:
    rules: list[tuple[str, Callable[[], bool]]] = [
        ("auth", lambda: fields["auth"] == 0 and not now.certificates_required),
        ("expired", lambda: fields["expiry_ms"] - now.now_ms > 0),
        (
            "age",
            lambda: (
                -30_000
                <= (now.now_ms - fields["issue_ms"]) - ((age - fields["age_add"]) & 0xFFFFFFFF)
                <= 30_000
            ),
        ),
    ]
    return next((name for name, holds in rules if not holds()), "resumed")


near = st.integers(NOW - 35_000, NOW + 35_000)


@given(
    near, near, st.integers(0, 70_000), st.integers(0, 2**32 - 1), st.integers(0, 1), st.booleans()
)
def test_a_second_reading_of_the_rules_of_time_agrees(
    issue: int, expiry: int, age: int, age_add: int, auth: int, required: bool
) -> None:
    fields = {"issue_ms": issue, "expiry_ms": expiry, "age_add": age_add, "auth": auth}
    now = moment(certificates_required=required)
    sent = (age + age_add) % 2**32
    choice = choose(ring(), True, b"\x01", [(sealed(KEY, **fields), sent)], now)
    assert VERDICT_NAMES[choice.verdict] == reading(fields, sent, now)


@given(
    st.lists(st.tuples(st.binary(max_size=700), st.integers(0, 2**32 - 1)), max_size=8),
    st.binary(max_size=4),
    st.booleans(),
)
def test_no_offer_makes_the_choice_raise_or_resume_without_a_key(
    offer: list[tuple[bytes, int]], modes: bytes, enabled: bool
) -> None:
    choice = choose(ring(), enabled, modes, offer, moment())
    assert choice.ticket is None
    assert VERDICT_NAMES[choice.verdict] in {"off", "no-psk-dhe-ke", "none", "unknown"}


@pytest.mark.parametrize(("count", "lifetime_s"), [(0, 1), (8, 604_800), (2, 3_600)])
def test_settings_in_range_are_taken(count: int, lifetime_s: int) -> None:
    assert checked_settings(count, lifetime_s) == (count, lifetime_s * 1000)


@pytest.mark.parametrize(
    ("count", "lifetime_s"), [(9, 60), (-1, 60), (1, 0), (1, -1), (1, 604_801), (0, 0)]
)
def test_settings_out_of_range_are_refused(count: int, lifetime_s: int) -> None:
    with pytest.raises(Refused) as refused:
        checked_settings(count, lifetime_s)
    assert refused.value.refusal == "tls-server-ticket-config"


@pytest.mark.parametrize(("count", "lifetime_s"), [(1.0, 60), (1, 60.5), ("1", 60)])
def test_settings_that_are_no_integers_are_a_type_error(count: object, lifetime_s: object) -> None:
    with pytest.raises(TypeError):
        checked_settings(count, lifetime_s)  # type: ignore[arg-type]
