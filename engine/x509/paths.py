"""Path validation for client certificates (RFC 5280 §6, SPEC 6).

`verify` looks for a path from the client's leaf, through at most three of the certificates that it
sent, to a root of the store. It answers the verified leaf or one refusal, and raises nothing.

How a path is found. The leaf is judged first: a fault in it is final. Then the search climbs: the
issuers of a certificate are the roots and the sent certificates that bear the name it gives, in
three ranks (key identifiers agree; one of them is absent; they differ), roots before the others
within a rank. A name and a key that the path already has are not taken again, so cross-signed
authorities cannot send it round in circles, and a certificate from whose issuer no names lead to a
root is not climbed from. Each issuer is judged as it is met, cheapest first, in this order: the
number of intermediates, decoding, critical extensions, algorithms, key size, basicConstraints,
keyUsage, extendedKeyUsage, validity, pathLen, and whether its key can have made such a signature.

Only when a root is reached are signatures checked, from the root down, and then the name
constraints. So no key is used before the authority that it belongs to is vouched for: whoever has
no certificate of an authority chooses neither the kind of the keys nor how dear they are, and a
chain that leads nowhere costs no check at all.

Which refusal is told, when several paths fail. `x509-chain-too-large` when the work was spent,
since a path may then have been missed; otherwise the first fault that was met, which is that of the
issuer most likely meant; `x509-unknown-issuer` when there was none but dead ends.

The work is bounded whatever the chain: a hundred authorities of one name and key, each able to
have signed the other, would be a factorial of paths. `CHECKS` bounds the signatures (no
pair of a key and a certificate is checked twice), `STEPS` the issuers that are looked at (2 µs). A
check costs 73 µs, and 600 under P-384: there `WRONG` bounds those that are wrong under one key,
which is all that a stranger can send under the name of a root.
"""

from __future__ import annotations

from typing import NamedTuple

from ..refusals import Refusal
from . import certificates, name_constraints
from .certificates import P384, Certificate, PublicKey
from .stores import Store

INTERMEDIATES = 3
CHECKS = 8
WRONG = 3
STEPS = 512


class Verified(NamedTuple):
    """A leaf that a root of the store vouches for, and how."""

    leaf: bytes
    key: PublicKey
    kind: str
    not_after: int
    path: tuple[Certificate, ...]


def verify(chain: list[bytes], store: Store, now: int) -> Verified | Refusal:
    """Judge a chain, leaf first, at the time `now` in Unix seconds."""
    sent = []
    for data in chain:
        certificate = certificates.read(data)
        if certificate is None:
            return Refusal.X509_DECODE
        sent.append(certificate)
    if not sent:
        return Refusal.X509_DECODE
    leaf = sent[0]
    fault = _judge_leaf(leaf, now)
    if fault is not None:
        return fault
    search = _Search(sent, store, now)
    path = [leaf]
    found = search.climb(path)
    if not found:
        return search.refusal()
    assert leaf.key is not None
    return Verified(leaf.der, leaf.key, leaf.kind, leaf.not_after, tuple(path))


def _judge_leaf(leaf: Certificate, now: int) -> Refusal | None:
    fault = leaf.study() or leaf.judge_time(now)
    says = leaf.extensions
    if fault is None and not (says.signs_data and says.client_purpose):
        return Refusal.X509_KEY_USAGE
    return fault


class _Search:
    """One climb from a leaf: what it may use, what it has spent, the first fault it met."""

    __slots__ = (
        "comparisons",
        "fault",
        "leading",
        "now",
        "sent",
        "signed",
        "spent",
        "steps",
        "store",
    )

    def __init__(self, sent: list[Certificate], store: Store, now: int) -> None:
        self.sent = sent
        self.store = store
        self.now = now
        self.leading = _leading(sent, store)
        self.steps = STEPS
        self.comparisons = name_constraints.LIMIT
        # What became of each check, by the issuer's key and the certificate.
        self.signed: dict[tuple[bytes, bytes], bool] = {}
        self.fault: Refusal | None = None
        self.spent = False

    def refusal(self) -> Refusal:
        if self.spent:
            return Refusal.X509_CHAIN_TOO_LARGE
        return self.fault or Refusal.X509_UNKNOWN_ISSUER

    def climb(self, path: list[Certificate]) -> bool:
        """Extend the path to a root. On False the path is as it was, and `refusal` says why."""
        for issuer, anchor in self._issuers(path):
            if self.steps == 0:
                self.spent = True
                return False
            self.steps -= 1
            fault = self._judge(issuer, anchor, path)
            if fault is not None:
                self.fault = self.fault or fault
                continue
            path.append(issuer)
            if anchor:
                found = self._ends(path)
            else:
                found = issuer.parts.issuer in self.leading and self.climb(path)
            if found:
                return True
            path.pop()
            if self.spent:
                return False
        return False

    def _ends(self, path: list[Certificate]) -> bool:
        """Whether a path that has reached a root is right."""
        fault = self._judge_signatures(path) or self._judge_names(path)
        self.fault = self.fault or fault
        return fault is None

    def _issuers(self, path: list[Certificate]) -> list[tuple[Certificate, bool]]:
        """Who may have issued the last of the path, likeliest first; True with the roots."""
        child = path[-1]
        name = child.parts.issuer
        roots = self.store.by_subject.get(name, [])
        found = [(root, True) for root in roots]
        anchors = {root.der for root in roots}
        taken = {(step.parts.subject, step.parts.key_info) for step in path}
        for other in self.sent:
            if (
                other.parts.subject == name
                and (name, other.parts.key_info) not in taken
                and other.der not in anchors
            ):
                other.study()
                found.append((other, False))
        wanted = child.extensions.authority_key_id
        found.sort(key=lambda pair: _rank(wanted, pair[0].extensions.key_id))
        return found

    def _judge(self, issuer: Certificate, anchor: bool, path: list[Certificate]) -> Refusal | None:
        """What forbids the issuer to have issued the last of the path, its signature apart."""
        if not anchor and len(path) > INTERMEDIATES:
            return Refusal.X509_PATH_TOO_LONG
        fault = issuer.study(anchor)
        if fault is not None:
            return fault
        says = issuer.extensions
        if not says.authority:
            return Refusal.X509_NOT_CA
        if not (says.signs_certificates and says.client_purpose):
            return Refusal.X509_KEY_USAGE
        fault = issuer.judge_time(self.now)
        if fault is not None:
            return fault
        # Self-issued intermediates do not count, and neither does the leaf (RFC 5280
        # §4.2.1.9).
        limit = says.path_length
        if limit is not None and sum(not step.self_issued for step in path[1:]) > limit:
            return Refusal.X509_PATH_TOO_LONG
        return None if path[-1].fits(issuer) else Refusal.X509_BAD_SIGNATURE

    def _judge_signatures(self, path: list[Certificate]) -> Refusal | None:
        """Every signature of the path, the root's first, unless one is known to be wrong."""
        signed = self.signed
        pairs = [(path[i].parts.key_info, path[i - 1].der) for i in range(len(path) - 1, 0, -1)]
        if any(signed.get(pair) is False for pair in pairs):
            return Refusal.X509_BAD_SIGNATURE
        for i, pair in enumerate(pairs, 1):
            if pair in signed:
                continue
            issuer = path[-i]
            wrong = sum(key == pair[0] and not good for (key, _), good in signed.items())
            if len(signed) == CHECKS or (issuer.kind == P384 and wrong == WRONG):
                self.spent = True
                return Refusal.X509_CHAIN_TOO_LARGE
            signed[pair] = path[-i - 1].signed_by(issuer)
            if not signed[pair]:
                return Refusal.X509_BAD_SIGNATURE
        return None

    def _judge_names(self, path: list[Certificate]) -> Refusal | None:
        """Every authority's constraints over every certificate under it.

        A self-issued certificate is not judged unless it is the leaf (RFC 5280 §6.1.3 b).
        """
        for i, issuer in enumerate(path):
            limits = issuer.constraints
            if limits is None:
                continue
            for step in path[:i]:
                if step is not path[0] and step.self_issued:
                    continue
                try:
                    names = step.names()
                except ValueError:
                    return Refusal.X509_NAME_CONSTRAINT
                self.comparisons -= name_constraints.cost(limits, names)
                if self.comparisons < 0:
                    self.spent = True
                    return Refusal.X509_CHAIN_TOO_LARGE
                if not name_constraints.allows(limits, names):
                    return Refusal.X509_NAME_CONSTRAINT
        return None


def _leading(sent: list[Certificate], store: Store) -> set[bytes]:
    """The names from which names lead to a root."""
    found = set(store.by_subject)
    while more := {one.parts.subject for one in sent if one.parts.issuer in found} - found:
        found |= more
    return found


def _rank(wanted: bytes | None, key_id: bytes | None) -> int:
    """How likely a key identifier is the issuer's: 0 agrees, 1 nothing to compare, 2 differs."""
    if wanted is None or key_id is None:
        return 1
    return 0 if wanted == key_id else 2
