"""Choosing from a ClientHello: what is chosen, each refusal, and the order of the refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codepoints import GROUPS as OUR_GROUPS
from engine.codepoints import SUITES_WITH_AES, SUITES_WITHOUT_AES
from engine.hello import Choice, HelloFault, Policy, Retry, choose, parse, require_scheme
from tests.engine.hello_bytes import (
    ALPN,
    EARLY_DATA,
    GOOD,
    GREASE,
    GROUPS,
    HYBRID,
    MODES,
    P256,
    P384,
    PRE_SHARED_KEY,
    RESUMING,
    SCHEMES,
    SHARE,
    SHARES,
    VERSIONS,
    X25519,
    Body,
    protocols,
    real,
    shares,
    v8,
    versions,
    word_list,
    words,
)

POLICY = Policy(SUITES_WITH_AES, OUR_GROUPS)
WITH_ALPN = Policy(SUITES_WITH_AES, OUR_GROUPS, (b"h2", b"http/1.1"))

VERSION = "tls-server-version"
ILLEGAL = "tls-server-illegal-parameter"
MISSING = "tls-server-missing-extension"
RETRY_SHARE = "tls-server-retry-share"

REAL = real()


def chosen(body: Body, policy: Policy = POLICY, retry: Retry | None = None) -> Choice:
    return choose(parse(body.encode()), policy, retry)


def refusal(body: Body, policy: Policy = POLICY, retry: Retry | None = None) -> str:
    hello = parse(body.encode())
    with pytest.raises(HelloFault) as raised:
        choose(hello, policy, retry)
    return raised.value.refusal.tag


def scheme_refusal(body: Body) -> str:
    with pytest.raises(HelloFault) as raised:
        require_scheme(parse(body.encode()))
    return raised.value.refusal.tag


# Version and compression.


@pytest.mark.parametrize(
    "body",
    [
        Body(extensions=None),
        Body(),
        GOOD.without(VERSIONS),
        GOOD.put(VERSIONS, versions(0x0303, 0x0305, 0x7F1C, 0x0403)),
        replace(GOOD, legacy_version=0x0300),
    ],
)
def test_a_hello_that_does_not_offer_tls_1_3_is_refused(body: Body) -> None:
    assert refusal(body) == VERSION


@pytest.mark.parametrize("legacy", [0x0000, 0x0301, 0x0302, 0x0304, 0x7F00, 0xFFFF])
def test_any_other_legacy_version_is_not_read(legacy: int) -> None:
    assert chosen(replace(GOOD, legacy_version=legacy)) == chosen(GOOD)


def test_tls_1_3_is_found_among_other_versions_and_grease() -> None:
    assert chosen(GOOD.put(VERSIONS, versions(GREASE, 0x0303, 0x0304))) == chosen(GOOD)


@pytest.mark.parametrize("methods", [b"\x01", b"\x00\x00", b"\x00\x01", b"\x01\x00"])
def test_compression_other_than_null_alone_is_an_illegal_parameter(methods: bytes) -> None:
    assert refusal(replace(GOOD, compression=methods)) == ILLEGAL


# Missing extensions.


@pytest.mark.parametrize("kind", [GROUPS, SHARES, SCHEMES])
def test_a_hello_without_a_required_extension_is_refused(kind: int) -> None:
    assert refusal(GOOD.without(kind)) == MISSING


@pytest.mark.parametrize("kind", [GROUPS, SHARES, MODES])
def test_a_hello_with_a_ticket_lacks_nothing_but_the_schemes(kind: int) -> None:
    assert refusal(RESUMING.without(kind)) == MISSING


def test_with_a_ticket_the_schemes_are_asked_for_only_when_no_ticket_was_taken() -> None:
    assert chosen(RESUMING.without(SCHEMES)).suite == 0x1301
    assert scheme_refusal(RESUMING.without(SCHEMES)) == MISSING
    none_common = RESUMING.put(SCHEMES, word_list(0x0804))
    assert chosen(none_common).suite == 0x1301
    assert scheme_refusal(none_common) == "tls-server-sigalg"
    require_scheme(parse(RESUMING.encode()))


def test_modes_without_a_ticket_ask_for_nothing() -> None:
    assert chosen(GOOD.put(MODES, v8(b"\x00"))) == chosen(GOOD)


# Shares, suites, schemes, groups.


@pytest.mark.parametrize(("group", "length"), [(X25519, 32), (P256, 65), (P384, 97)])
def test_a_share_of_ours_outside_supported_groups_is_an_illegal_parameter(
    group: int, length: int
) -> None:
    others = [g for g in (X25519, P256, P384) if g != group]
    body = GOOD.put(SHARES, shares((group, bytes(length)))).put(GROUPS, word_list(*others))
    assert refusal(body) == ILLEGAL


def test_a_share_of_another_group_outside_supported_groups_is_skipped() -> None:
    assert chosen(GOOD.put(SHARES, shares((HYBRID, b"\x00"), (X25519, SHARE)))) == chosen(GOOD)


@pytest.mark.parametrize(
    ("order", "offered", "suite"),
    [
        (SUITES_WITH_AES, (0x1303, 0x1302, 0x1301), 0x1301),
        (SUITES_WITH_AES, (0x1302, 0x1303), 0x1303),
        (SUITES_WITH_AES, (GREASE, 0x1302, 0xC02B), 0x1302),
        (SUITES_WITHOUT_AES, (0x1301, 0x1302, 0x1303), 0x1303),
        (SUITES_WITHOUT_AES, (0x1302, 0x1301), 0x1301),
    ],
)
def test_the_servers_order_of_suites_decides(
    order: tuple[int, ...], offered: tuple[int, ...], suite: int
) -> None:
    body = replace(GOOD, suites=words(offered))
    assert chosen(body, Policy(order, OUR_GROUPS)).suite == suite


def test_no_suite_in_common_is_refused() -> None:
    body = replace(GOOD, suites=words([0x1304, 0xC02B, GREASE, 0x0113]))
    assert refusal(body) == "tls-server-suite"


def test_no_scheme_in_common_is_refused() -> None:
    assert refusal(GOOD.put(SCHEMES, word_list(0x0804, 0x0304))) == "tls-server-sigalg"


def test_the_first_of_the_servers_groups_with_a_share_is_chosen() -> None:
    body = GOOD.put(SHARES, shares((P384, b"p" * 97), (P256, b"q" * 65)))
    assert chosen(body) == Choice(0x1301, P256, b"q" * 65, None)
    assert chosen(body, Policy(SUITES_WITH_AES, (P384, P256))).group == P384


def test_without_a_share_of_ours_the_first_common_group_is_asked_for() -> None:
    body = GOOD.put(SHARES, shares((HYBRID, b"\x00"))).put(GROUPS, word_list(HYBRID, P384, P256))
    assert chosen(body) == Choice(0x1301, P256, None, None)
    assert chosen(GOOD.put(SHARES, shares())) == Choice(0x1301, X25519, None, None)


def test_a_share_of_a_group_the_server_does_not_use_leads_to_a_retry() -> None:
    assert chosen(GOOD, Policy(SUITES_WITH_AES, (P256,))) == Choice(0x1301, P256, None, None)


def test_no_group_in_common_is_refused() -> None:
    body = GOOD.put(GROUPS, word_list(HYBRID, GREASE)).put(SHARES, shares())
    assert refusal(body) == "tls-server-group"


# ALPN.


def test_the_servers_order_of_protocols_decides() -> None:
    body = GOOD.put(ALPN, protocols(b"http/1.1", b"x", b"h2"))
    assert chosen(body, WITH_ALPN).alpn == b"h2"


def test_each_protocol_is_chosen_where_the_server_has_it_first() -> None:
    offered = [b"h2", b"http/1.1", b"dot", b"imap", b"acme-tls/1"]
    body = GOOD.put(ALPN, protocols(*offered))
    for at, first in enumerate(offered):
        order = (first, *offered[:at], *offered[at + 1 :])
        assert chosen(body, WITH_ALPN._replace(alpn=order)).alpn == first


@pytest.mark.parametrize("body", [GOOD, GOOD.put(ALPN, protocols(b"h2"))])
def test_without_a_list_of_the_servers_no_protocol_is_answered(body: Body) -> None:
    assert chosen(body).alpn is None


def test_without_an_offer_of_the_clients_no_protocol_is_answered() -> None:
    assert chosen(GOOD, WITH_ALPN).alpn is None


def test_no_protocol_in_common_is_refused() -> None:
    for offered in ([b"h3"], [b"H2"], [b"h", b"2"], [b"h2http/1.1"]):
        assert refusal(GOOD.put(ALPN, protocols(*offered)), WITH_ALPN) == "tls-server-alpn"


# The second ClientHello.

ASKED = Retry(P256, 0x1301, b"\x55" * 32)
SECOND = GOOD.put(SHARES, shares((P256, b"q" * 65)))


def test_a_second_hello_with_what_was_asked_for_is_answered() -> None:
    assert chosen(SECOND, retry=ASKED) == Choice(0x1301, P256, b"q" * 65, None)


def test_the_suite_of_the_retry_stays_whatever_the_second_hello_offers_first() -> None:
    assert chosen(SECOND, retry=ASKED._replace(suite=0x1302)).suite == 0x1302


@pytest.mark.parametrize(
    "body",
    [
        replace(SECOND, session_id=b""),
        replace(SECOND, session_id=b"\x55" * 31 + b"\x54"),
        replace(SECOND, suites=words([0x1302])),
        SECOND.put(SHARES, shares()),
        SECOND.put(SHARES, shares((X25519, SHARE))),
        SECOND.put(SHARES, shares((P256, b"q" * 65), (X25519, SHARE))),
        SECOND.put(SHARES, shares((P256, b"q" * 65), (GREASE, b"\x00"))),
        SECOND.put(SHARES, shares((GREASE, b"\x00"))),
        SECOND.put(EARLY_DATA, b""),
    ],
)
def test_a_second_hello_that_is_not_what_was_asked_for_is_refused(body: Body) -> None:
    chosen(body)
    assert refusal(body, retry=ASKED) == RETRY_SHARE


def test_a_second_hello_without_key_share_lacks_an_extension() -> None:
    assert refusal(SECOND.without(SHARES), retry=ASKED) == MISSING


def test_early_data_in_a_first_hello_is_no_fault() -> None:
    assert chosen(GOOD.put(EARLY_DATA, b"")) == chosen(GOOD)


def test_names_protocols_and_schemes_are_read_from_the_second_hello() -> None:
    body = SECOND.put(ALPN, protocols(b"http/1.1"))
    assert chosen(body, WITH_ALPN, ASKED).alpn == b"http/1.1"
    assert refusal(SECOND.put(SCHEMES, word_list(0x0804)), retry=ASKED) == "tls-server-sigalg"


# The order: each refusal comes before those below it.

STEPS: list[tuple[str, Callable[[Body], Body]]] = [
    (VERSION, lambda b: b.put(VERSIONS, versions(0x0303))),
    (ILLEGAL, lambda b: replace(b, compression=b"\x01")),
    (MISSING, lambda b: b.without(PRE_SHARED_KEY).without(SCHEMES)),
    (ILLEGAL, lambda b: b.put(GROUPS, word_list(GREASE))),
    ("tls-server-suite", lambda b: replace(b, suites=words([GREASE]))),
    ("tls-server-sigalg", lambda b: b.put(SCHEMES, word_list(0x0804))),
    ("tls-server-group", lambda b: b.put(GROUPS, word_list(GREASE)).put(SHARES, shares())),
    ("tls-server-alpn", lambda b: b.put(ALPN, protocols(b"h3"))),
    (RETRY_SHARE, lambda b: b.put(EARLY_DATA, b"")),
]


@pytest.mark.parametrize("first", range(len(STEPS)))
def test_of_two_refusals_the_earlier_of_the_fixed_order_is_told(first: int) -> None:
    tag, spoil = STEPS[first]
    for later, (_, spoil_more) in enumerate(STEPS[first:], first):
        # Both want the groups otherwise, or one leaves out what the other changes.
        if {first, later} in ({3, 6}, {2, 5}):
            continue
        assert refusal(spoil(spoil_more(SECOND)), WITH_ALPN, ASKED) == tag


def test_a_missing_extension_comes_before_a_share_outside_supported_groups() -> None:
    body = GOOD.put(GROUPS, word_list(P256)).without(SCHEMES)
    assert refusal(body) == MISSING


# Real clients, and whatever the bytes.


@pytest.mark.parametrize("name", REAL)
def test_a_real_hello_is_answered_over_x25519_without_a_retry(name: str) -> None:
    hello = parse(REAL[name])
    choice = choose(hello, POLICY)
    assert (choice.suite, choice.group, choice.alpn) == (0x1301, X25519, None)
    assert choice.share is not None and len(choice.share) == 32
    require_scheme(hello)
    if hello.alpn is not None:
        assert choose(hello, WITH_ALPN).alpn in hello.alpn


@given(
    st.sampled_from([GOOD.encode(), RESUMING.encode(), SECOND.encode()]),
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), max_size=4),
    st.sampled_from([None, ASKED]),
)
def test_choosing_raises_nothing_but_a_fault_and_the_same_twice(
    body: bytes, edits: list[tuple[int, int]], retry: Retry | None
) -> None:
    changed = bytearray(body)
    for at, value in edits:
        changed[at % len(changed)] = value
    assert outcome(bytes(changed), retry) == outcome(bytes(changed), retry)


def outcome(body: bytes, retry: Retry | None) -> object:
    try:
        return choose(parse(body), WITH_ALPN, retry)
    except HelloFault as refused:
        return refused.refusal
