"""Whom `cryptography` believes: each link of a chain, and what a signature covers."""

from __future__ import annotations

import pytest

from harnesses import fixtures
from harnesses.build_identity import CLIENT_ROOT, MIDDLE, client
from harnesses.clientauth import ROOTS
from harnesses.models.clientauth import doubt, holds_key
from peers.liar import proofs
from peers.liar.identities import authority, make

NOW_S = fixtures.NOW_MS // 1000


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
