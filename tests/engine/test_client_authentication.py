"""Client certificates in the handshake: the lying client presents them, rightly and wrongly.

Residue is asked after every call (`Pair`).
"""

from __future__ import annotations

import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from peers.liar import Client, codes
from peers.liar.identities import NOW_MS
from peers.liar.proofs import CLIENT_CONTEXT, signed_content
from peers.liar.schedule import digest
from peers.liar.wire import message, vec8, vec24
from tests.engine.mutual_pairs import (
    KEY,
    KINDS,
    OPTIONAL,
    REQUIRED,
    client,
    device,
    flight,
    has_identity,
    mutual,
    no_identity,
    root,
    wrong,
)
from tests.engine.pairs import Pair
from tests.engine.x509 import constraint_cases  # noqa: F401  (adds its cases)
from tests.engine.x509.chain_cases import CASES, OK
from tests.engine.x509.chain_maker import Made, authority, key, leaf

# Honest clients.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [OPTIONAL, REQUIRED])
def test_a_client_of_each_kind_is_verified_and_its_identity_told(kind: str, mode: int) -> None:
    own = device(own=key("leaf", kind))
    pair = Pair(mutual(mode), client=client(own)).greet()
    no_identity(pair.engine)
    pair.answer(pair.client.finish())
    has_identity(pair.engine, own)
    assert pair.answer(pair.client.send(b"data")) == b""
    assert pair.recv() == b"data"
    has_identity(pair.engine, own)


@pytest.mark.parametrize(
    "scheme", [codes.RSA_PSS_RSAE_SHA256, codes.RSA_PSS_RSAE_SHA384, codes.RSA_PSS_RSAE_SHA512]
)
def test_an_rsa_client_may_use_each_digest(scheme: int) -> None:
    own = device(own=key("leaf", "RSA-2048"))
    pair = Pair(mutual(), client=client(own)).greet()
    c = pair.client
    flight = c.add(c.certificate_message()) + c.add(c.certificate_verify_message(scheme=scheme))
    pair.answer(c.handshake_bytes(flight + c.add(c.finished_message())))
    has_identity(pair.engine, own)


def test_the_identity_is_the_leafs_own_bytes() -> None:
    own = device(
        san=[
            x509.DNSName("a.example"),
            x509.RFC822Name("a@b.example"),
            x509.UniformResourceIdentifier("urn:x"),
        ],
        serial=0xFF01,
    )
    pair = Pair(mutual(), client=client(own)).establish()
    assert pair.engine.peer_san(0) == [(2, b"a.example"), (1, b"a@b.example"), (6, b"urn:x")]
    assert pair.engine.peer_serial(0) == b"\x00\xff\x01"


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("cut", [16_384, 1, 7])
def test_the_flight_may_come_in_any_pieces(apart: bool, cut: int) -> None:
    own = device()
    pair = Pair(mutual(), client=client(own)).greet()
    pair.feed(pair.client.finish(apart=apart, cut=cut), 5 if cut == 7 else None)
    has_identity(pair.engine, own)


def test_a_chain_of_three_intermediates_and_its_root_is_verified() -> None:
    made = [root()]
    for i in range(3):
        made.append(authority(f"middle {i}", made[-1]))
    own = leaf(made[-1])
    pair = Pair(mutual(), client=client(own, *made[::-1])).establish()
    has_identity(pair.engine, own)


def test_a_client_is_verified_after_a_retry_and_with_each_suite() -> None:
    own = device()
    for suite in (codes.AES_256_GCM_SHA384, codes.CHACHA20_POLY1305_SHA256):
        c = client(own, suites=[suite], shares=[])
        pair = Pair(mutual(), client=c).establish()
        assert pair.engine.retried(0)
        has_identity(pair.engine, own)


def test_a_client_without_a_certificate_is_let_in_when_it_is_optional() -> None:
    pair = Pair(mutual(OPTIONAL), client=client()).establish()
    no_identity(pair.engine)
    assert pair.client.request is not None


def test_a_client_without_a_certificate_is_refused_when_one_is_required() -> None:
    pair = Pair(mutual(REQUIRED), client=client()).greet()
    pair.fails(pair.client.finish(), "tls-server-client-cert-required", 116, KEY)
    no_identity(pair.engine)


def test_nothing_is_asked_of_clients_when_the_mode_is_off() -> None:
    made = mutual(0)
    pair = Pair(made, client=client()).establish()
    assert pair.client.request is None
    no_identity(made)


def test_the_mode_is_that_of_the_serve() -> None:
    made = mutual(REQUIRED)
    asked = Pair(made, 0, client())
    made.client_auth_mode(0)
    unasked = Pair(made, 1, client()).greet()
    asked.greet()
    assert asked.client.request is not None
    assert unasked.client.request is None


def test_a_mode_changed_behind_the_serve_changes_no_verdict() -> None:
    made = mutual(REQUIRED)
    strict = Pair(made, 0, client())
    made.client_auth_mode(OPTIONAL)
    lax = Pair(made, 1, client())
    made.client_auth_mode(REQUIRED)
    lax.establish()
    made.client_auth_mode(OPTIONAL)
    strict.greet()
    strict.fails(strict.client.finish(), "tls-server-client-cert-required", 116, KEY)


# The request.


def test_the_request_lists_what_the_contract_says() -> None:
    pair = Pair(mutual(), client=client()).greet()
    request = pair.client.request
    assert request is not None
    assert request.context == b""
    kinds = [0x0403, 0x0503, 0x0807, 0x0804, 0x0805, 0x0806]
    assert list(request.schemes) == kinds
    assert list(request.schemes_cert) == [*kinds, 0x0401, 0x0501, 0x0601]
    assert list(request.authorities) == [root().subject.public_bytes()]


# Wrong clients: the chain.

ON_THE_WIRE = {
    "x509-unknown-issuer": 48,
    "x509-expired": 45,
    "x509-not-yet-valid": 45,
    "x509-unsupported-algorithm": 43,
    "x509-key-usage": 43,
    "x509-key-size": 43,
    "x509-critical-extension": 43,
    "x509-bad-signature": 42,
    "x509-not-ca": 42,
    "x509-name-constraint": 42,
    "x509-path-too-long": 42,
    "x509-decode": 42,
}


@pytest.mark.parametrize("mode", [OPTIONAL, REQUIRED])
def test_every_wrong_chain_ends_the_connection_with_its_tag_and_alert(mode: int) -> None:
    reached = set()
    for expected, make in CASES.values():
        case = make()
        if expected == OK or not all(case.chain):
            continue
        made = mutual(mode, *case.roots)
        pair = Pair(made, client=client()).greet()
        data = pair.client.handshake_bytes(pair.client.certificate_message(case.chain))
        pair.fails(data, expected, ON_THE_WIRE[expected], KEY)
        no_identity(made)
        reached.add(expected)
    assert reached == ON_THE_WIRE.keys()


def test_too_many_certificates_are_too_large() -> None:
    own = device()
    pair = Pair(mutual(), client=client()).greet()
    data = pair.client.handshake_bytes(pair.client.certificate_message([own.der] * 6))
    pair.fails(data, "x509-chain-too-large", 42, KEY)


def test_a_certificate_message_is_judged_by_its_header() -> None:
    pair = Pair(mutual(), client=client()).greet()
    data = pair.client.handshake_bytes(b"\x0b" + (16_385).to_bytes(3, "big"))
    pair.fails(data, "x509-chain-too-large", 42, KEY)


def test_a_chain_that_takes_nine_checks_is_too_large() -> None:
    roots = [authority("many", own=key(f"many {i}"), key_id=None) for i in range(9)]
    own = leaf(roots[-1], issuer_key_id=None)
    pair = Pair(mutual(REQUIRED, *roots), client=client(own)).greet()
    pair.fails(pair.client.finish(), "x509-chain-too-large", 42, KEY)


# Wrong clients: the messages.


def test_a_request_context_is_an_illegal_parameter() -> None:
    pair, c = wrong()
    data = flight(pair, c.certificate_message(context=b"x"))
    pair.fails(data, "tls-server-illegal-parameter", 47, KEY)


def test_an_extension_of_an_entry_was_not_asked_for() -> None:
    pair, c = wrong()
    data = flight(pair, c.certificate_message(extensions=[b"\x00\x05\x00\x00"]))
    pair.fails(data, "tls-unsupported-extension", 110, KEY)


@pytest.mark.parametrize(
    "body", [b"", b"\x00", b"\x00\x00\x00", b"\x00\x00\x00\x01", vec8(b"") + vec24(b"\0\0\0\0\0")]
)
def test_a_certificate_message_that_does_not_parse(body: bytes) -> None:
    pair, _ = wrong()
    pair.fails(flight(pair, message(codes.CERTIFICATE, body)), "tls-decode-error", 50, KEY)


@pytest.mark.parametrize("body", [b"", b"\x04\x03\x00", b"\x04\x03\x00\x01", b"\x04\x03\x00\x00x"])
def test_a_certificate_verify_that_does_not_parse(body: bytes) -> None:
    pair, c = wrong()
    data = flight(pair, c.add(c.certificate_message()), message(codes.CERTIFICATE_VERIFY, body))
    pair.fails(data, "tls-decode-error", 50, KEY)


def verify_fails(tag: str, alert: int, own: Made | None = None, **lie: object) -> None:
    pair, c = wrong(own or device())
    data = flight(
        pair,
        c.add(c.certificate_message()),
        c.certificate_verify_message(**lie),  # type: ignore[arg-type]
    )
    pair.fails(data, tag, alert, KEY)
    no_identity(pair.engine)


BAD = "tls-bad-certificate-verify"


def test_a_flipped_bit_of_the_signature() -> None:
    verify_fails(BAD, 51, edit=lambda s: s[:-1] + bytes([s[-1] ^ 1]))


def test_an_empty_signature() -> None:
    verify_fails(BAD, 51, edit=lambda s: b"")


def test_the_servers_context_string() -> None:
    verify_fails(BAD, 51, context="TLS 1.3, server CertificateVerify")


def test_another_transcript() -> None:
    verify_fails(BAD, 51, transcript=b"another")


def test_another_key_than_the_leafs() -> None:
    verify_fails(BAD, 51, key=key("somebody else's"))


FITTING = {"P-256": 0x0403, "P-384": 0x0503, "Ed25519": 0x0807, "RSA-2048": 0x0804}


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [(kind, FITTING[other]) for kind in KINDS for other in KINDS if kind != other],
)
def test_a_scheme_that_does_not_fit_the_key(kind: str, scheme: int) -> None:
    own = device(own=key("leaf", kind))
    signer = next(key("leaf", k) for k in KINDS if FITTING[k] == scheme)
    verify_fails("tls-server-client-sigalg", 47, own, key=signer, scheme=scheme)


@pytest.mark.parametrize("scheme", [0x0401, 0x0203, 0x0201, 0x0603, 0x0809])
def test_a_scheme_that_the_request_did_not_list(scheme: int) -> None:
    pair, c = wrong()
    body = scheme.to_bytes(2, "big") + b"\x00\x01x"
    data = flight(pair, c.add(c.certificate_message()), message(codes.CERTIFICATE_VERIFY, body))
    pair.fails(data, "tls-server-client-sigalg", 47, KEY)


def test_rsa_with_a_salt_that_is_not_as_long_as_the_digest() -> None:
    own = device(own=key("leaf", "RSA-2048"))
    pair, c = wrong(own)
    first = c.add(c.certificate_message())
    # A signature of another salt length is one of the right scheme that does not verify.
    assert c.schedule is not None
    content = signed_content(CLIENT_CONTEXT, digest(c.schedule.hash, c.transcript))
    signer = key("leaf", "RSA-2048")
    assert isinstance(signer, rsa.RSAPrivateKey)
    signature = signer.sign(
        content, padding.PSS(padding.MGF1(hashes.SHA256()), 20), hashes.SHA256()
    )
    body = b"\x08\x04" + len(signature).to_bytes(2, "big") + signature
    pair.fails(flight(pair, first, message(codes.CERTIFICATE_VERIFY, body)), BAD, 51, KEY)


# Wrong clients: the order.

UNEXPECTED = "tls-unexpected-message"


def test_a_finished_where_a_certificate_is_due() -> None:
    for mode in (OPTIONAL, REQUIRED):
        pair, c = wrong(mode=mode)
        pair.fails(flight(pair, c.finished_message()), UNEXPECTED, 10, KEY)


def test_a_certificate_verify_where_a_certificate_is_due() -> None:
    pair, c = wrong()
    pair.fails(flight(pair, c.certificate_verify_message()), UNEXPECTED, 10, KEY)


def test_a_finished_where_a_certificate_verify_is_due() -> None:
    pair, c = wrong()
    data = flight(pair, c.add(c.certificate_message()), c.finished_message())
    pair.fails(data, UNEXPECTED, 10, KEY)
    no_identity(pair.engine)


def test_a_second_certificate() -> None:
    pair, c = wrong()
    one = c.certificate_message()
    pair.fails(flight(pair, one, one), UNEXPECTED, 10, KEY)


def test_a_certificate_verify_after_an_empty_certificate() -> None:
    pair, c = wrong(mode=OPTIONAL)
    data = flight(pair, c.add(c.certificate_message(())), c.certificate_verify_message())
    pair.fails(data, UNEXPECTED, 10, KEY)


def test_a_second_certificate_verify() -> None:
    pair, c = wrong()
    data = flight(
        pair,
        c.add(c.certificate_message()),
        c.add(c.certificate_verify_message()),
        c.certificate_verify_message(),
    )
    pair.fails(data, UNEXPECTED, 10, KEY)


def test_a_certificate_that_nobody_asked_for() -> None:
    pair = Pair(mutual(0), client=client(device())).greet()
    pair.fails(flight(pair, pair.client.certificate_message()), UNEXPECTED, 10, KEY)


@pytest.mark.parametrize("kind", [codes.CERTIFICATE, codes.CERTIFICATE_VERIFY, codes.FINISHED])
def test_authentication_after_the_handshake(kind: int) -> None:
    own = device()
    pair = Pair(mutual(), client=client(own)).establish()
    has_identity(pair.engine, own)
    pair.fails(flight(pair, message(kind, bytes(32))), UNEXPECTED, 10, KEY)
    no_identity(pair.engine)


def test_a_finished_over_a_transcript_without_the_certificate() -> None:
    pair, c = wrong()
    before = bytes(c.transcript)
    parts = [c.add(c.certificate_message()), c.add(c.certificate_verify_message())]
    data = flight(pair, *parts, c.finished_message(transcript=before))
    pair.fails(data, "tls-server-finished", 51, KEY)
    no_identity(pair.engine)


def test_the_flight_of_another_connection() -> None:
    made = mutual()
    first = Pair(made, 0, client(device())).greet()
    c = first.client
    old = c.certificate_message() + c.certificate_verify_message(
        transcript=bytes(c.transcript) + c.certificate_message()
    )
    second = Pair(made, 1, Client(b"other", now_ms=NOW_MS, credential=c.credential)).greet()
    second.fails(flight(second, old), BAD, 51, KEY)


# Python's ssl.


def pem_of(made: Made) -> bytes:
    assert made.key is not None
    private = made.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.pem + private


@pytest.mark.parametrize("kind", KINDS)
def test_pythons_ssl_presents_each_kind(kind: str, tmp_path) -> None:
    own = device(own=key("leaf", kind))
    path = tmp_path / "client.pem"
    path.write_bytes(pem_of(own))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(path)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = context.wrap_bio(incoming, outgoing, server_hostname="server.example")
    made = mutual()
    made.serve(0, NOW_MS)
    out = bytearray(1 << 16)
    for _ in range(3):
        try:
            peer.do_handshake()
            break
        except ssl.SSLWantReadError:
            data = outgoing.read()
            assert made.feed(0, data) == len(data)
            incoming.write(out[: made.take(0, out)])
    data = outgoing.read()
    assert made.feed(0, data) == len(data)
    has_identity(made, own)
    assert made.residue() == 0
