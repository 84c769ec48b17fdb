"""The format of harness clientauth: certificates that are signed anew, whatever they say."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from harnesses.build_identity import CLIENT_ROOT, client
from harnesses.formats.clientauth import resigned
from peers.liar.identities import authority


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
