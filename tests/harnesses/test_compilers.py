"""What stands between an input and the engine: items compiled to records, tickets to hellos,
certificates signed anew; and the second readings that the engine is compared with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from engine import codepoints as c
from harnesses import fixtures
from harnesses.build_identity import CLIENT_ROOT, MIDDLE, client
from harnesses.clientauth import ROOTS
from harnesses.formats.clientauth import resigned
from harnesses.formats.keyed import ESTABLISHED, ITEMS, RECORDS, Kind, build, compile_flight, items
from harnesses.formats.server import Call
from harnesses.formats.ticket import FINGERPRINT, compile_offer
from harnesses.models import ticket as rules
from harnesses.models.clientauth import doubt, holds_key
from harnesses.models.ticket import Offer
from harnesses.seeds.ticket import GOOD
from peers.liar import proofs
from peers.liar.identities import authority, make

NOW_S = fixtures.NOW_MS // 1000

# Flights.


def test_an_item_that_is_cut_off_ends_where_the_input_does() -> None:
    data = build(0, (23, 1, 2, b"hello"), (22, 0, 0, b"world"))
    assert list(items(data)) == [(23, 1, 2, b"hello"), (22, 0, 0, b"world")]
    assert list(items(data[:-2])) == [(23, 1, 2, b"hello"), (22, 0, 0, b"wor")]
    assert list(items(data[:14])) == [(23, 1, 2, b"hello")]


@pytest.mark.parametrize("data", [b"", b"\1", b"\0\0", b"\2\0" + bytes(20)])
def test_an_input_of_no_known_version_is_no_flight_and_no_offer(data: bytes) -> None:
    assert compile_flight(data) is None
    assert compile_offer(data) is None


def test_what_must_be_received_is_what_was_sent_before_a_close_notify() -> None:
    flight = compile_flight(
        build(
            ESTABLISHED,
            (c.APPLICATION_DATA, 2, 5, b"hello"),
            (Kind.INNER, 0, 0, b" inner\x17\0\0"),
            (c.HANDSHAKE, 0, 0, b"\x18\0\0\1\0"),
            (c.ALERT, 0, 0, b"\1\0"),
            (c.APPLICATION_DATA, 0, 0, b"late"),
        )
    )
    assert flight is not None
    assert flight.plaintext == b"hello inner"
    assert flight.finished


def test_a_flight_is_bounded_and_waits_for_nothing_beyond_its_bound() -> None:
    flight = compile_flight(build(ESTABLISHED, *[(23, 1, 0, b"x" * 40)] * (ITEMS + 3)))
    assert flight is not None
    assert len(flight.script.steps) == RECORDS + 1
    # The hello and the Finished are two of the records.
    assert flight.plaintext == b"x" * (RECORDS + 1 - 2)


def test_only_an_honest_item_counts_as_a_proof() -> None:
    flight = compile_flight(build(2, (Kind.CERTIFICATE, 1, 0, b""), (Kind.VERIFY, 0, 0, b"")))
    assert flight is not None
    assert flight.proven == {client("p256").der}
    assert not flight.finished


def test_a_call_of_the_program_is_a_step() -> None:
    flight = compile_flight(build(0, (Kind.CALL, 1, 0, b""), (Kind.CALL, 0, 0, b"")))
    assert flight is not None
    assert [step.call for step in flight.script.steps] == [Call.FEED, Call.FINISH, Call.SEND]


# Tickets.

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


# Certificates.


def test_a_chain_is_believed_when_each_link_holds() -> None:
    below = make([], issuer=MIDDLE, usage="client", label="below")
    assert doubt([client("p256").der], ROOTS, NOW_S) == ""
    assert doubt([below.der, MIDDLE.der], ROOTS, NOW_S) == ""
    assert doubt([below.der], ROOTS, NOW_S) == "no path to a root"
    assert doubt([client("p256").der], ROOTS, NOW_S * 2) == "the leaf is outside its validity"
    assert doubt([client("p256").der[:-1]], ROOTS, NOW_S) == "a certificate does not parse"
    stranger = make([], issuer=authority("nobody"), usage="client", label="stranger")
    assert doubt([stranger.der], ROOTS, NOW_S) == "no path to a root"
    server = make([], issuer=CLIENT_ROOT, usage="server", label="server")
    assert doubt([server.der], ROOTS, NOW_S) == "the leaf is not for clients"


def test_a_leaf_that_issues_is_not_believed() -> None:
    leaf = client("p256")
    below = make([], issuer=leaf, usage="client", label="below a leaf")
    assert doubt([below.der, leaf.der], ROOTS, NOW_S) == "no path to a root"


@pytest.mark.parametrize("kind", ["p256", "p384", "ed25519", "rsa2048"])
def test_a_signature_is_of_the_leafs_key_over_what_it_covers(kind: str) -> None:
    who = client(kind)
    scheme = proofs.natural_scheme(who.key)
    content = proofs.signed_content(proofs.CLIENT_CONTEXT, bytes(32))
    signature = proofs.sign(who.key, scheme, content)
    assert holds_key(who.der, scheme, bytes(32), signature)
    assert not holds_key(who.der, scheme, bytes(31) + b"\1", signature)
    assert not holds_key(client("p256", "another").der, scheme, bytes(32), signature)


def test_a_certificate_is_signed_anew_by_another_authority() -> None:
    leaf = client("p256").der
    again = x509.load_der_x509_certificate(resigned(leaf, authority("another").key))
    was = x509.load_der_x509_certificate(leaf)
    assert again.tbs_certificate_bytes == was.tbs_certificate_bytes
    assert again.signature != was.signature
    same = x509.load_der_x509_certificate(resigned(leaf, CLIENT_ROOT.key))
    same.verify_directly_issued_by(CLIENT_ROOT.certificate)
    assert same.public_bytes(Encoding.DER) == resigned(leaf, CLIENT_ROOT.key)


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x03\1\1\1", b"\x30\x84\xff", b"\x31\0"])
def test_what_is_no_certificate_is_left_as_it_is(data: bytes) -> None:
    assert resigned(data, CLIENT_ROOT.key) == data
