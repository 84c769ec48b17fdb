"""Decisions about client chains: which of two faults is told."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from engine import chains, stores
from tests.engine.chain_maker import NOW, authority, key, leaf

UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")


def test_of_two_issuers_with_a_fault_the_likeliest_ones_is_told() -> None:
    expired = authority("root", before=NOW - 2, after=NOW - 1)
    other = authority("root", own=key("other"))
    for roots in ((expired, other), (other, expired)):
        store = stores.load(b"".join(root.pem for root in roots))
        assert chains.verify([leaf(expired).der], store, NOW) == "x509-expired"


def test_a_critical_extension_is_told_before_a_key_that_is_not_accepted() -> None:
    root = authority("root")
    own = ec.generate_private_key(ec.SECP521R1())
    store = stores.load(root.pem)
    plain = leaf(root, own=own)
    assert chains.verify([plain.der], store, NOW) == "x509-unsupported-algorithm"
    both = leaf(root, own=own, extra=[(UNKNOWN, True)])
    assert chains.verify([both.der], store, NOW) == "x509-critical-extension"
