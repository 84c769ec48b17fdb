"""A client's Certificate and CertificateVerify as bytes, and the request that asks for them."""

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from hypothesis import given
from hypothesis import strategies as st

from engine.client_certificate import (
    CONTEXT,
    MESSAGE,
    SCHEMES,
    Proof,
    certificate_request,
    check_verify,
    read_certificate,
    read_verify,
)
from engine.refusals import Refusal
from engine.x509 import certificates
from tests.engine.x509.chain_maker import key

TRANSCRIPT = bytes(range(32))


def entry(data, extensions=b""):
    return len(data).to_bytes(3, "big") + data + len(extensions).to_bytes(2, "big") + extensions


def body(*entries, context=b"", declared=None):
    inside = b"".join(entries)
    length = len(inside) if declared is None else declared
    return bytes([len(context)]) + context + length.to_bytes(3, "big") + inside


# Certificate.


def test_a_chain_is_read_in_its_order():
    assert read_certificate(body()) == []
    assert read_certificate(body(entry(b"a"))) == [b"a"]
    five = [bytes([65 + i]) * (i + 1) for i in range(5)]
    assert read_certificate(body(*map(entry, five))) == five


def test_every_strict_prefix_fails_to_parse():
    whole = body(entry(b"abc"), entry(b"defg"))
    for end in range(len(whole)):
        assert read_certificate(whole[:end]) == Refusal.DECODE_ERROR


def test_bytes_behind_the_list_fail_to_parse():
    assert read_certificate(body(entry(b"a")) + b"\0") == Refusal.DECODE_ERROR


@pytest.mark.parametrize(
    "bad",
    [
        body(entry(b"")),
        body(entry(b"a"), b"\0\0"),
        body(b"\0\0\x05ab"),
        body(b"\0\0\x01a\0"),
        body(b"\0\0\x01a\0\x01"),
        body(b"\0\0\x01a\0\x04"),
        body(b"\0\x01\x01a\0\0"),
        body(b"\x01\0\x01a\0\0"),
        body(entry(b"a", b"\0\x05\0")),
        body(entry(b"a", b"\0\x05\0\x01")),
        body(entry(b"a", b"\0\x05\0\0\0")),
        body(entry(b"a"), declared=5),
        body(entry(b"a"), declared=7),
        body(entry(b"a"), declared=0x0106),
        body(entry(b"a"), declared=0x010006),
    ],
)
def test_an_entry_that_does_not_parse(bad):
    assert read_certificate(bad) == Refusal.DECODE_ERROR


def test_a_context_is_told_before_what_stands_behind_it():
    assert read_certificate(body(b"\0", context=b"x")) == Refusal.SERVER_ILLEGAL_PARAMETER
    for context in (b"\0", b"\0x", bytes(255)):
        answer = read_certificate(body(context=context))
        assert answer == Refusal.SERVER_ILLEGAL_PARAMETER
    # One that leaves no room for the length of the list does not parse.
    for length in range(1, 256):
        cut = bytes([length]) + bytes(length + 2)
        for short in (cut, cut[:-1], cut[:4]):
            assert read_certificate(short) == Refusal.DECODE_ERROR


def test_extensions_of_an_entry_were_not_asked_for():
    for extensions in (b"\0\x05\0\0", b"\0\x05\0\x01x\0\x12\0\0"):
        for chain in ([entry(b"a", extensions)], [entry(b"a"), entry(b"b", extensions)]):
            answer = read_certificate(body(*chain))
            assert answer == Refusal.UNSUPPORTED_EXTENSION


@pytest.mark.parametrize("size", [252, 256, 257, 1024])
def test_every_byte_of_the_length_of_an_extension_counts(size):
    """RFC 8446 §4.2: both lengths, that of the list and that of one extension, are of two
    bytes."""
    extensions = b"\0\x05" + size.to_bytes(2, "big") + b"\xff" * size
    answer = read_certificate(body(entry(b"a", extensions)))
    assert answer == Refusal.UNSUPPORTED_EXTENSION


def test_a_sixth_certificate_and_a_byte_over_the_bound_are_too_large():
    assert read_certificate(body(*[entry(b"a")] * 6)) == Refusal.X509_CHAIN_TOO_LARGE
    most = body(entry(bytes(MESSAGE - 9)))
    assert len(most) == MESSAGE
    assert read_certificate(most) == [bytes(MESSAGE - 9)]
    over = body(entry(bytes(MESSAGE - 8)))
    assert read_certificate(over) == Refusal.X509_CHAIN_TOO_LARGE


@given(st.binary(max_size=200))
def test_any_bytes_are_a_chain_or_a_refusal(data):
    for read in (read_certificate, read_verify):
        answer = read(data)
        assert isinstance(answer, list | Proof | Refusal)


# CertificateVerify.


def test_a_proof_is_read_and_its_strict_prefixes_are_not():
    whole = b"\x04\x03\x00\x05hello"
    assert read_verify(whole) == Proof(0x0403, b"hello")
    assert read_verify(b"\x04\x03\x00\x00") == Proof(0x0403, b"")
    for end in range(len(whole)):
        assert read_verify(whole[:end]) == Refusal.DECODE_ERROR
    assert read_verify(whole + b"\0") == Refusal.DECODE_ERROR


def sign(kind, scheme, content):
    private = key("leaf", kind)
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return private.sign(content)
    if isinstance(private, rsa.RSAPrivateKey):
        digest = {4: hashes.SHA256(), 5: hashes.SHA384(), 6: hashes.SHA512()}[scheme & 7]
        return private.sign(content, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    digest = {0x0403: hashes.SHA256(), 0x0503: hashes.SHA384()}[scheme]
    return private.sign(content, ec.ECDSA(digest))


KINDS = {
    "P-256": (certificates.P256, [0x0403]),
    "P-384": (certificates.P384, [0x0503]),
    "Ed25519": (certificates.ED25519, [0x0807]),
    "RSA-2048": (certificates.RSA, [0x0804, 0x0805, 0x0806]),
}


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_key_proves_itself_under_the_schemes_that_fit_it_and_no_other(made, scheme):
    kind, fitting = KINDS[made]
    public = key("leaf", made).public_key()
    content = CONTEXT + TRANSCRIPT
    if scheme in fitting:
        signature = sign(made, scheme, content)
        assert check_verify(public, kind, Proof(scheme, signature), TRANSCRIPT) is None
        for proof, transcript in (
            (Proof(scheme, signature), TRANSCRIPT[::-1]),
            (Proof(scheme, signature[:-1]), TRANSCRIPT),
            (Proof(scheme, signature + b"\0"), TRANSCRIPT),
            (Proof(scheme, b""), TRANSCRIPT),
        ):
            answer = check_verify(public, kind, proof, transcript)
            assert answer == Refusal.BAD_CERTIFICATE_VERIFY
    else:
        signature = sign(made, fitting[0], content)
        answer = check_verify(public, kind, Proof(scheme, signature), TRANSCRIPT)
        assert answer == Refusal.SERVER_CLIENT_SIGALG


def test_a_key_that_cannot_be_computed_with_proves_nothing():
    even = RSAPublicNumbers(65537, (1 << 2047) | 2).public_key()
    proof = Proof(0x0804, bytes(256))
    answer = check_verify(even, certificates.RSA, proof, TRANSCRIPT)
    assert answer == Refusal.BAD_CERTIFICATE_VERIFY


def test_a_scheme_binds_the_curve_though_the_signature_is_right():
    content = CONTEXT + TRANSCRIPT
    for made, scheme, digest in (
        ("P-384", 0x0403, hashes.SHA256()),
        ("P-256", 0x0503, hashes.SHA384()),
    ):
        private = key("leaf", made)
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        proof = Proof(scheme, private.sign(content, ec.ECDSA(digest)))
        answer = check_verify(private.public_key(), made, proof, TRANSCRIPT)
        assert answer == Refusal.SERVER_CLIENT_SIGALG


@pytest.mark.parametrize("scheme", [0, 0x0201, 0x0203, 0x0401, 0x0603, 0x0808, 0x0809, 0xFFFF])
def test_a_scheme_that_was_not_listed_is_told_before_the_signature(scheme):
    public = key("leaf").public_key()
    answer = check_verify(public, certificates.P256, Proof(scheme, b""), TRANSCRIPT)
    assert answer == Refusal.SERVER_CLIENT_SIGALG


def test_what_is_signed_is_the_clients_context():
    assert CONTEXT == b" " * 64 + b"TLS 1.3, client CertificateVerify\x00"


# CertificateRequest.


def test_the_request_is_these_bytes():
    without = bytes.fromhex(
        "0d00002d 00 002a"
        " 000d 000e 000c 0403 0503 0807 0804 0805 0806"
        " 0032 0014 0012 0403 0503 0807 0804 0805 0806 0401 0501 0601"
    )
    assert certificate_request(b"") == without
    names = b"\x00\x02\x30\x00"
    with_names = certificate_request(names)
    assert with_names[-10:] == bytes.fromhex("002f 0006 0004 0002 3000")
    assert int.from_bytes(with_names[1:4], "big") == len(with_names) - 4


def test_the_largest_request_is_as_large_as_the_flight_has_room_for():
    assert len(certificate_request(bytes(8192))) == 4 + 1 + 2 + 18 + 24 + 6 + 8192
