"""Every verdict on a ticket, on the wire, and the choice among several tickets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import Event
from engine.codepoints import TLS_AES_128_GCM_SHA256 as AES_128
from engine.codepoints import TLS_AES_256_GCM_SHA384 as AES_256
from engine.tickets import VERDICT_NAMES
from peers.liar import Hello
from tests.engine.pairs import Pair, engine
from tests.engine.ticket_serving import (
    KEY,
    NOW,
    Serving,
    damaged,
    forged,
)

# Every verdict.


def test_verdict_none() -> None:
    serving = Serving()
    assert serving.connect(serving.client()) == "none"


def test_verdict_off() -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.engine.set_tickets(0)
    client = serving.client(ticket)
    assert serving.connect(client) == "off"
    assert client.tickets == []


def test_verdict_off_where_nobody_said_anything_of_tickets() -> None:
    serving = Serving()
    pair = Pair(engine(), client=serving.client(serving.ticket())).establish()
    assert pair.engine.ticket_verdict(0) == "off"


def test_verdict_no_psk_dhe_ke() -> None:
    serving = Serving()
    ticket = serving.ticket()
    client = serving.client(ticket, psk_modes=(0,))
    assert serving.connect(client) == "no-psk-dhe-ke"
    assert client.tickets == []


@pytest.mark.parametrize("identity", [b"x", b"x" * 154, b"x" * 200, b"x" * 682, b"x" * 15_000])
def test_verdict_unknown_for_a_made_up_ticket(identity: bytes) -> None:
    serving = Serving()
    made_up = replace(serving.ticket(), identity=identity)
    assert serving.come_back(made_up) == "unknown"


def test_verdict_unknown_for_another_s_key() -> None:
    serving = Serving()
    assert serving.come_back(forged(serving, b"K" * 32)) == "unknown"
    assert serving.come_back(damaged(serving.ticket(), 0)) == "unknown"


@pytest.mark.parametrize("at", [16, 47, 48, 100, -17, -16, -1])
def test_verdict_tampered(at: int) -> None:
    serving = Serving()
    assert serving.come_back(damaged(serving.ticket(), at)) == "tampered"


def test_verdict_tampered_or_unknown_for_a_cut_or_longer_ticket() -> None:
    serving = Serving()
    ticket = serving.ticket()
    whole = ticket.identity
    assert serving.come_back(replace(ticket, identity=whole[:-10])) == "tampered"
    assert serving.come_back(replace(ticket, identity=whole[:40])) == "unknown"
    assert serving.come_back(replace(ticket, identity=whole + b"\0")) == "tampered"


@pytest.mark.parametrize(
    "changes", [{"version": 2}, {"trailing": b"\0"}, {"psk": b"p" * 20}, {"psk": b"p" * 48}]
)
def test_verdict_format(changes: dict[str, object]) -> None:
    serving = Serving()
    assert serving.come_back(forged(serving, KEY, **changes)) == "format"


def test_verdict_auth() -> None:
    serving = Serving()
    assert serving.come_back(forged(serving, auth=1)) == "auth"


def test_verdict_expired_to_the_millisecond() -> None:
    serving = Serving(lifetime_s=60)
    ticket = serving.ticket()
    serving.now_ms = NOW + 59_999
    assert serving.come_back(ticket) == "resumed"
    serving.now_ms = NOW + 60_000
    assert serving.come_back(ticket) == "expired"


@pytest.mark.parametrize(
    ("skew_ms", "verdict"),
    [
        (29_000, "resumed"),
        (30_000, "resumed"),
        (30_001, "age"),
        (60_000, "age"),
        (-29_000, "resumed"),
        (-30_000, "resumed"),
        (-30_001, "age"),
    ],
)
def test_verdict_age(skew_ms: int, verdict: str) -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.now_ms += 100_000
    assert serving.come_back(ticket, age_skew_ms=skew_ms) == verdict


def test_a_captured_hello_resumes_inside_the_window_and_not_later() -> None:
    serving = Serving()
    client = serving.client(serving.ticket())
    captured = client.hello()
    for later_ms, verdict in ((0, "resumed"), (30_000, "resumed"), (30_001, "age")):
        serving.now_ms = NOW + later_ms
        serving.engine.serve(0, serving.now_ms)
        assert serving.exchange(0, captured)
        assert serving.engine.ticket_verdict(0) == verdict
        assert serving.engine.event(0) is Event.WANT_READ
        serving.engine.drop(0)
        assert serving.engine.residue() == 0


def test_verdict_name() -> None:
    serving = Serving()
    ticket = serving.ticket()
    assert serving.come_back(ticket, server_name="other.example") == "name"
    assert serving.come_back(ticket, server_name=None) == "name"
    assert serving.come_back(ticket, server_name="SERVER.Example") == "resumed"
    nameless = serving.ticket(server_name=None)
    assert serving.come_back(nameless, server_name=None) == "resumed"
    assert serving.come_back(nameless) == "name"


def test_verdict_identity_after_a_renewal_and_none_after_the_same_one_again() -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.replace()
    assert serving.come_back(ticket) == "resumed"
    serving.replace("renewed.example")
    client = serving.client(ticket)
    assert serving.connect(client) == "identity"
    assert client.chain != ()
    assert serving.come_back(forged(serving, fingerprint=bytes(32))) == "identity"


def test_verdict_suite() -> None:
    serving = Serving()
    ticket = serving.ticket(suites=[AES_128])

    def only_384(hello: Hello) -> None:
        hello.suites = [AES_256]

    assert serving.connect(serving.client(ticket), edit=only_384) == "suite"
    longer = serving.ticket(suites=[AES_256])
    assert serving.come_back(longer, suites=[AES_128, AES_256]) == "suite"


def test_verdict_alpn() -> None:
    serving = Serving()
    serving.engine.set_alpn(["h2", "http/1.1"])
    ticket = serving.ticket(alpn=[b"h2"])
    assert serving.come_back(ticket, alpn=[b"http/1.1"]) == "alpn"
    assert serving.come_back(ticket) == "alpn"
    assert serving.come_back(ticket, alpn=[b"h2"]) == "resumed"


def test_every_verdict_has_a_test_here_that_reaches_it() -> None:
    source = Path(__file__).read_text("ascii")
    assert [name for name in VERDICT_NAMES if f'"{name}"' not in source] == []


# Several tickets.


def test_the_good_ticket_is_taken_wherever_it_stands_among_four() -> None:
    serving = Serving()
    good = serving.ticket()
    bad = [damaged(good, at) for at in (20, 21, 22, 23)]
    for place in range(4):
        offer = [*bad[:place], good, *bad[place:3]]
        client = serving.client(*offer)
        assert serving.connect(client) == "resumed"
        assert client.selected == place
    assert serving.connect(serving.client(*bad, good)) == "tampered"


def test_of_several_bad_tickets_the_first_one_s_verdict_is_told() -> None:
    serving = Serving()
    good = serving.ticket()
    unknown = replace(good, identity=b"x" * 200)
    assert serving.connect(serving.client(unknown, damaged(good))) == "unknown"
    assert serving.connect(serving.client(damaged(good), unknown)) == "tampered"
