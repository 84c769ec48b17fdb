"""Decisions about client chains: which of two faults is told."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from engine.x509 import paths, stores
from tests.engine.mutual_pairs import mutual
from tests.engine.x509.chain_maker import NOW, authority, key, leaf

UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")


@pytest.mark.parametrize("ca", [True, False], ids=["it has not signed", "it is no authority"])
def test_of_two_issuers_with_a_fault_the_likeliest_ones_is_told(ca: bool) -> None:
    """The other one's is met when a signature is checked, or before."""
    expired = authority("root", before=NOW - 2, after=NOW - 1)
    other = authority("root", own=key("other"), ca=ca)
    for roots in ((expired, other), (other, expired)):
        store = stores.load(b"".join(root.pem for root in roots))
        assert paths.verify([leaf(expired).der], store, NOW) == "x509-expired"


def test_a_critical_extension_is_told_before_a_key_that_is_not_accepted() -> None:
    root = authority("root")
    own = ec.generate_private_key(ec.SECP521R1())
    store = stores.load(root.pem)
    plain = leaf(root, own=own)
    assert paths.verify([plain.der], store, NOW) == "x509-unsupported-algorithm"
    both = leaf(root, own=own, extra=[(UNKNOWN, True)])
    assert paths.verify([both.der], store, NOW) == "x509-critical-extension"


def test_the_request_lists_the_names_of_the_store_that_is_there() -> None:
    made = mutual()
    other = authority("another root")
    name = other.subject.public_bytes()
    assert name not in made._server.clients.request
    made.trust_clients(other.pem)
    assert name in made._server.clients.request


def test_a_leaf_that_bears_its_issuers_name_is_judged_by_its_names() -> None:
    root = authority("same", excluded=[x509.DNSName("device.example")])
    store = stores.load(root.pem)
    for subject in ("same", "device"):
        made = leaf(root, subject)
        assert paths.verify([made.der], store, NOW) == "x509-name-constraint"


def test_a_leafs_own_fault_is_told_before_its_time() -> None:
    root = authority("root")
    late = leaf(root, before=NOW - 2, after=NOW - 1, extra=[(UNKNOWN, True)])
    assert paths.verify([late.der], stores.load(root.pem), NOW) == "x509-critical-extension"


def test_a_salt_that_is_not_the_one_written_in_the_certificate_is_a_bad_signature() -> None:
    root = authority("rsa root", own=key("rsa root", "RSA-2048"))
    store = stores.load(root.pem)
    assert isinstance(root.key, rsa.RSAPrivateKey)
    digest = hashes.SHA256()
    made = leaf(root, pss=padding.PSS(padding.MGF1(digest), digest.digest_size))
    assert isinstance(paths.verify([made.der], store, NOW), paths.Verified)
    short = padding.PSS(padding.MGF1(digest), digest.digest_size - 1)
    signature = root.key.sign(made.cert.tbs_certificate_bytes, short, digest)
    again = made.der[: -len(signature)] + signature
    assert paths.verify([again], store, NOW) == "x509-bad-signature"
