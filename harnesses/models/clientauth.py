"""Whether a client's certificates may be believed, by `cryptography` and nothing of the engine.

These are necessary conditions, each asked of the library: a path of issuers whose signatures
verify, from the leaf to a trusted root, in their validity, by certificates that are authorities.
A chain that the engine accepts must meet them. One that it refuses may meet them too: it has more
rules (name constraints, sizes of keys, critical extensions), and the tests of `engine.x509.paths`
hold those against other verifiers.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from peers.liar import proofs

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


def doubt(chain: Sequence[bytes], roots: Sequence[x509.Certificate], now: int) -> str:
    """Why no path leads from the first certificate to a root at this time (Unix seconds), or "" """
    try:
        leaf, *others = (x509.load_der_x509_certificate(der) for der in chain)
    except ValueError:
        return "a certificate does not parse"
    try:
        # The library reads names when they are asked for, and refuses some only then.
        leaf.subject, leaf.issuer  # noqa: B018
    except ValueError:
        return "a name of the leaf does not parse"
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    if not _in_time(leaf, moment):
        return "the leaf is outside its validity"
    try:
        if not (_for_clients(leaf) and _signs(leaf)):
            return "the leaf is not for clients"
    except ValueError:
        return "an extension of the leaf does not parse"
    return "" if _climbs(leaf, tuple(others), tuple(roots), moment) else "no path to a root"


def holds_key(leaf: bytes, scheme: int, covered: bytes, signature: bytes) -> bool:
    """Whether the signature is one of a CertificateVerify by the leaf's key."""
    try:
        key = x509.load_der_x509_certificate(leaf).public_key()
        spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except ValueError:
        return False
    signed = proofs.signed_content(proofs.CLIENT_CONTEXT, covered)
    # The lying client's own check of a server's signature, under the client's context.
    return not proofs._verify(spki, scheme, signed, signature)


def _climbs(
    child: x509.Certificate,
    others: tuple[x509.Certificate, ...],
    roots: tuple[x509.Certificate, ...],
    moment: datetime.datetime,
) -> bool:
    for issuer in (*roots, *others):
        if not (_issued(child, issuer) and _in_time(issuer, moment) and _authority(issuer)):
            continue
        left = tuple(other for other in others if other != issuer)
        if issuer in roots or (len(left) < len(others) and _climbs(issuer, left, roots, moment)):
            return True
    return False


def _issued(child: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        child.verify_directly_issued_by(issuer)
    except Exception:
        # A key or an algorithm that the library does not know, a wrong name, a wrong signature.
        return False
    return True


def _in_time(certificate: x509.Certificate, moment: datetime.datetime) -> bool:
    return certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc


def _authority(certificate: x509.Certificate) -> bool:
    usage = _extension(certificate, x509.KeyUsage)
    basic = _extension(certificate, x509.BasicConstraints)
    return basic is not None and basic.ca and (usage is None or usage.key_cert_sign)


def _signs(certificate: x509.Certificate) -> bool:
    usage = _extension(certificate, x509.KeyUsage)
    return usage is None or usage.digital_signature


def _for_clients(certificate: x509.Certificate) -> bool:
    usage = _extension(certificate, x509.ExtendedKeyUsage)
    return usage is None or ExtendedKeyUsageOID.CLIENT_AUTH in usage


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
