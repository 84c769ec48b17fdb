"""Random authorities, cross-signed and confused, judged by the search and by trying every path.

`right` knows who signed what, since it made the certificates, and tries every order of every
choice of intermediates: it has no order, no budget and no cryptography that could be wrong. The
search must accept what it accepts and refuse what it refuses, but where it says that its work was
spent. OpenSSL accepts nothing that is not right, and nothing for which the work was spent; it comes
back from fewer wrong turns, so it may refuse.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
from cryptography import x509

from engine.refusals import Refusal
from engine.x509 import certificates, paths, stores
from engine.x509.certificates import Certificate
from tests.engine.x509.chain_cases import Case
from tests.engine.x509.chain_maker import AUTO, DAY, NOW, Made, authority, issue, key
from tests.engine.x509.test_paths_against_others import openssl_accepts

NAMES = ("one", "two", "three")
BAD = x509.DNSName("bad.test")
# A certificate of each name, for the name alone.
NAMED = {name: authority(name).cert for name in NAMES}


@dataclass(frozen=True)
class Node:
    """A certificate and what is known of it."""

    made: Made
    subject: str
    issuer: str
    own: str
    signer: str
    ca: bool
    path_length: int | None
    in_time: bool
    excludes: bool


def node(draw: random.Random, subject: str, issuer: str, own: str, signer: str, top: bool) -> Node:
    """A certificate of these names and keys. One in some has a fault."""
    ca = draw.random() < 0.93
    path_length = draw.choice((None, None, None, None, 0, 1)) if ca else None
    in_time = draw.random() < 0.93
    excludes = draw.random() < 0.1
    by = None if top else Made(NAMED[issuer], key(signer, "Ed25519"))
    made = issue(
        subject,
        key(own, "Ed25519"),
        by,
        ca=ca,
        path_length=path_length,
        uses=("key_cert_sign",),
        purposes=None,
        san=None,
        excluded=[BAD] if excludes else None,
        after=NOW + DAY if in_time else NOW - 1,
        serial=draw.getrandbits(62) + 1,
        key_id=draw.choice((AUTO, AUTO, None)),
        issuer_key_id=draw.choice((AUTO, AUTO, None)),
    )
    return Node(made, subject, issuer, own, signer, ca, path_length, in_time, excludes)


@dataclass(frozen=True)
class Network:
    leaf: Made
    issuer: str
    signer: str
    bad: bool
    sent: list[Node]
    roots: list[Node]


def network(seed: int) -> Network:
    """One or two roots, up to four sent certificates, a leaf under one of them all."""
    draw = random.Random(seed)
    keys = [f"random {i}" for i in range(draw.choice((2, 3, 5)))]
    names = NAMES[: draw.choice((1, 2, 3, 3))]

    def pick(top: bool) -> Node:
        subject, own = draw.choice(names), draw.choice(keys)
        if top:
            return node(draw, subject, subject, own, own, True)
        return node(draw, subject, draw.choice(names), own, draw.choice(keys), False)

    roots = [pick(True) for _ in range(draw.choice((1, 1, 2)))]
    sent = []
    above = roots[0]
    # A path that may be right, and strangers, in any order.
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        subject, own = draw.choice(names), draw.choice(keys)
        above = node(draw, subject, above.subject, own, above.own, False)
        sent.append(above)
    sent += [pick(False) for _ in range(draw.randrange(5 - len(sent)))]
    draw.shuffle(sent)
    bad = draw.random() < 0.3
    signer = above.own if draw.random() < 0.9 else draw.choice(keys)
    leaf = issue(
        "leaf",
        key("leaf", "Ed25519"),
        Made(NAMED[above.subject], key(signer, "Ed25519")),
        ca=None,
        uses=("digital_signature",),
        purposes=None,
        san=[BAD] if bad else [x509.DNSName("good.test")],
        issuer_key_id=draw.choice((AUTO, AUTO, None)),
    )
    return Network(leaf, above.subject, signer, bad, sent, roots)


def right(made: Network) -> bool:
    """Whether some path is right."""
    for count in range(paths.INTERMEDIATES + 1):
        for middle in itertools.permutations(made.sent, count):
            if any(_path_is_right(made, (*middle, root)) for root in made.roots):
                return True
    return False


def _path_is_right(made: Network, path: tuple[Node, ...]) -> bool:
    issuer, signer = made.issuer, made.signer
    for place, one in enumerate(path):
        below = sum(step.subject != step.issuer for step in path[:place])
        if (one.subject, one.own) != (issuer, signer) or not (one.ca and one.in_time):
            return False
        if one.path_length is not None and below > one.path_length:
            return False
        if one.excludes and made.bad:
            return False
        issuer, signer = one.issuer, one.signer
    return True


def judged(made: Network) -> paths.Verified | Refusal:
    chain = [made.leaf.der, *(one.made.der for one in made.sent)]
    store = stores.load(b"".join(root.made.pem for root in made.roots))
    return paths.verify(chain, store, NOW)


def openssl(made: Network) -> bool:
    sent = tuple(one.made.der for one in made.sent)
    case = Case((made.leaf.der, *sent), tuple(root.made for root in made.roots))
    return bool(openssl_accepts(case))


@pytest.mark.parametrize("block", range(4))
def test_the_search_accepts_just_what_has_a_right_path(block: int) -> None:
    accepted = refused = spent = 0
    for seed in range(100 * block, 100 * block + 100):
        made = network(seed)
        answer, expected = judged(made), right(made)
        if answer == Refusal.X509_CHAIN_TOO_LARGE:
            spent += 1
        else:
            assert isinstance(answer, paths.Verified) is expected, seed
        if openssl(made):
            assert isinstance(answer, paths.Verified), seed
        accepted += expected
        refused += not expected
    assert min(accepted, refused) >= 15
    assert spent <= 3


def test_no_key_is_used_before_it_is_vouched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check is under the key of a root or of a certificate that was found to be right."""
    real = Certificate.signed_by
    vouched: set[bytes] = set()

    def watched(self: Certificate, issuer: Certificate) -> bool:
        assert issuer.parts.key_info in vouched
        assert (issuer.parts.key_info, self.der) not in pairs
        pairs.add((issuer.parts.key_info, self.der))
        good = real(self, issuer)
        if good:
            vouched.add(self.parts.key_info)
        return good

    monkeypatch.setattr(certificates.Certificate, "signed_by", watched)
    checks = 0
    for seed in range(200):
        made = network(seed)
        pairs: set[tuple[bytes, bytes]] = set()
        vouched = set()
        for root in made.roots:
            read = certificates.read(root.made.der)
            assert read is not None
            vouched.add(read.parts.key_info)
        judged(made)
        assert len(pairs) <= paths.CHECKS
        checks += len(pairs)
    assert checks > 200
