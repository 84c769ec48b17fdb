"""The rules of tickets, read a second time: each of them, alone."""

from __future__ import annotations

from dataclasses import replace

from engine import codepoints as c
from harnesses import fixtures
from harnesses.formats.ticket import FINGERPRINT
from harnesses.models import ticket as rules
from harnesses.models.ticket import Offer
from harnesses.seeds.ticket import GOOD

OFFER = Offer(
    fixtures.NOW_MS,
    b"server.example",
    b"",
    c.TLS_AES_128_GCM_SHA256,
    FINGERPRINT,
    (60_000 + GOOD.age_add) % 2**32,
    False,
    True,
)


def verdict(offer: Offer = OFFER, size: int = 300, ours: bool = True, whole: bool = True) -> str:
    return rules.verdict(size, ours, whole, rules.read(GOOD.plaintext()), offer)


def test_the_second_reading_takes_a_right_ticket_and_knows_each_rule() -> None:
    assert verdict() == "resumed"
    assert verdict(OFFER._replace(key_exchange=False)) == "no-psk-dhe-ke"
    assert verdict(size=154) == verdict(size=682) == verdict(ours=False) == "unknown"
    assert verdict(whole=False) == "tampered"
    assert rules.verdict(300, True, True, None, OFFER) == "format"
    assert verdict(OFFER._replace(certificates_required=True)) == "auth"
    assert verdict(OFFER._replace(now_ms=GOOD.expiry_ms)) == "expired"
    assert verdict(OFFER._replace(age=OFFER.age + 30_001)) == "age"
    assert verdict(OFFER._replace(name=b"")) == "name"
    assert verdict(OFFER._replace(fingerprint=bytes(32))) == "identity"
    assert verdict(OFFER._replace(suite=c.TLS_AES_256_GCM_SHA384)) == "suite"
    assert verdict(OFFER._replace(alpn=b"h2")) == "alpn"


def test_no_strict_prefix_of_a_tickets_plaintext_is_one() -> None:
    plaintext = replace(GOOD, alpn=b"h2").plaintext()
    assert rules.read(plaintext) is not None
    assert [n for n in range(len(plaintext)) if rules.read(plaintext[:n])] == []
