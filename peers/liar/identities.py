"""Test certificates of every kind, the same bytes on every machine.

Keys follow from their label, serials from the label too, dates are fixed, and every signature is
deterministic (RFC 6979, Ed25519, RSA PKCS#1 v1.5). None of it is worth anything outside a test.

    root = authority("a root")
    server = make(["server.example"], issuer=root)
    device = make([], "ed25519", issuer=root, usage="client", label="device 17")
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .client import Credential
from .primes import PRIMES
from .proofs import PrivateKey

#: The moment tests and recordings live at: 2026-06-01 00:00:00 UTC.
NOW_MS = 1_780_272_000_000
NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
NOT_BEFORE = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
NOT_AFTER = datetime.datetime(2045, 1, 1, tzinfo=datetime.UTC)

_CURVES: dict[str, ec.EllipticCurve] = {
    "p256": ec.SECP256R1(),
    "p384": ec.SECP384R1(),
    "p521": ec.SECP521R1(),
}
KINDS = (*_CURVES, "ed25519", "ed448", *(f"rsa{bits}" for bits in PRIMES))
_USAGES = {
    "server": [ExtendedKeyUsageOID.SERVER_AUTH],
    "client": [ExtendedKeyUsageOID.CLIENT_AUTH],
    "both": [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
    "any": [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE],
}


@dataclass(frozen=True)
class Identity:
    """A certificate, those above it but for the root, and its key."""

    chain: tuple[x509.Certificate, ...]
    key: PrivateKey
    names: tuple[str, ...] = ()
    is_root: bool = False

    @property
    def certificate(self) -> x509.Certificate:
        """The leaf."""
        return self.chain[0]

    @property
    def der(self) -> bytes:
        """The leaf in DER."""
        return self.chain[0].public_bytes(Encoding.DER)

    @property
    def chain_der(self) -> tuple[bytes, ...]:
        """The chain in DER, leaf first."""
        return tuple(c.public_bytes(Encoding.DER) for c in self.chain)

    @property
    def chain_pem(self) -> bytes:
        """The chain in PEM, leaf first."""
        return b"".join(c.public_bytes(Encoding.PEM) for c in self.chain)

    @property
    def key_pem(self) -> bytes:
        """The key in PEM: PKCS#8, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def credential(self) -> Credential:
        """What a client shows."""
        return Credential(self.chain_der, self.key)

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the leaf."""
        return hashlib.sha256(self.der).digest()


@lru_cache(maxsize=256)
def make_key(kind: str, label: str) -> PrivateKey:
    """A key of a kind, from its label. There is one RSA key a size."""
    seed = hashlib.sha512(f"residue test key {kind} {label}".encode()).digest()
    if kind in _CURVES:
        # 248 bits are below every curve's order; these keys guard nothing.
        return ec.derive_private_key(int.from_bytes(seed[:31], "big"), _CURVES[kind])
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.from_private_bytes(seed[:32])
    if kind == "ed448":
        return ed448.Ed448PrivateKey.from_private_bytes(seed[:57])
    p, q = PRIMES[int(kind.removeprefix("rsa"))]
    d = pow(65537, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(65537, p * q)
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), rsa.rsa_crt_iqmp(p, q), public
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def make_name(common: str | None, organization: str | None = None) -> x509.Name:
    """A Name of a common name and an organization."""
    parts = []
    if organization is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    if common is not None:
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common))
    return x509.Name(parts)


def _key_usage(digital: bool, cert_sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital, False, False, False, not digital and not cert_sign, cert_sign, cert_sign,
        False, False,
    )  # fmt: skip


def issue(
    label: str,
    kind: str = "p256",
    *,
    issuer: Identity | None = None,
    subject: x509.Name | None = None,
    names: Sequence[str] = (),
    sans: Iterable[x509.GeneralName] = (),
    ca: bool | None = False,
    path_length: int | None = None,
    key_usage: str | None = "default",
    usage: str | None = None,
    not_before: datetime.datetime = NOT_BEFORE,
    not_after: datetime.datetime = NOT_AFTER,
    serial: int | None = None,
    more: Sequence[tuple[x509.ExtensionType, bool]] = (),
    key: PrivateKey | None = None,
    signer: PrivateKey | None = None,
    hash_name: str | None = None,
    key_ids: bool = True,
) -> Identity:
    """One certificate with anything in it; without an issuer it signs itself.

    ``ca`` None leaves basicConstraints out; ``key_usage`` is "default", "digital", "sign", "none"
    (present, with neither) or None (absent); ``usage`` names an extended key usage; ``signer``
    signs in the issuer's place.
    """
    own = make_key(kind, label) if key is None else key
    above = own if issuer is None else issuer.key
    subject = make_name(label) if subject is None else subject
    if serial is None:
        serial = int.from_bytes(
            hashlib.sha256(f"serial {label} {kind}".encode()).digest()[:8], "big"
        )
    b = x509.CertificateBuilder(
        issuer.certificate.subject if issuer is not None else subject,
        subject, own.public_key(), max(serial, 1), not_before, not_after,
    )  # fmt: skip
    if ca is not None:
        b = b.add_extension(x509.BasicConstraints(ca, path_length if ca else None), critical=True)
    if key_usage is not None:
        digital = key_usage == "digital" or (key_usage == "default" and not ca)
        sign = key_usage == "sign" or (key_usage == "default" and bool(ca))
        b = b.add_extension(_key_usage(digital, sign), critical=True)
    if usage is not None:
        b = b.add_extension(x509.ExtendedKeyUsage(_USAGES[usage]), critical=False)
    all_names = [*(x509.DNSName(n) for n in names), *sans]
    if all_names:
        b = b.add_extension(x509.SubjectAlternativeName(all_names), critical=False)
    if key_ids:
        ski = x509.SubjectKeyIdentifier.from_public_key(own.public_key())
        b = b.add_extension(ski, critical=False)
        aki = x509.AuthorityKeyIdentifier.from_issuer_public_key(above.public_key())
        b = b.add_extension(aki, critical=False)
    for extension, critical in more:
        b = b.add_extension(extension, critical=critical)
    signing = above if signer is None else signer
    certificate = b.sign(signing, _hash(signing, hash_name), ecdsa_deterministic=_ecdsa(signing))
    upper = () if issuer is None or issuer.is_root else issuer.chain
    return Identity((certificate, *upper), own, tuple(names), issuer is None)


_HASHES: dict[str | None, hashes.SHA256 | hashes.SHA384 | hashes.SHA512] = {
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}


def _hash(
    key: PrivateKey, name: str | None
) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
        return None
    return _HASHES.get(name, hashes.SHA256())


def _ecdsa(key: PrivateKey) -> bool | None:
    return True if isinstance(key, ec.EllipticCurvePrivateKey) else None


@lru_cache(maxsize=256)
def authority(
    label: str = "residue test root",
    kind: str = "p256",
    *,
    issuer: Identity | None = None,
    path_length: int | None = None,
    not_before: datetime.datetime = NOT_BEFORE,
    not_after: datetime.datetime = NOT_AFTER,
) -> Identity:
    """A certificate authority: a root, or an intermediate under ``issuer``."""
    return issue(
        label, kind, issuer=issuer, ca=True, path_length=path_length,
        not_before=not_before, not_after=not_after,
    )  # fmt: skip


def make(
    names: Sequence[str],
    kind: str = "p256",
    *,
    issuer: Identity | None = None,
    usage: str | None = "server",
    days: int | None = None,
    not_before: datetime.datetime = NOT_BEFORE,
    not_after: datetime.datetime | None = None,
    label: str | None = None,
) -> Identity:
    """A leaf with DNS names under ``issuer`` (default: the test root), for a server by default."""
    if not_after is None:
        not_after = NOT_AFTER if days is None else not_before + datetime.timedelta(days=days)
    return _make(
        tuple(names), kind, issuer or authority(), usage, not_before, not_after,
        label or (names[0] if names else f"leaf {kind}"),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _make(
    names: tuple[str, ...],
    kind: str,
    issuer: Identity,
    usage: str | None,
    not_before: datetime.datetime,
    not_after: datetime.datetime,
    label: str,
) -> Identity:
    return issue(
        label, kind, issuer=issuer, names=names, usage=usage,
        not_before=not_before, not_after=not_after,
    )  # fmt: skip


def pem(*identities: Identity) -> bytes:
    """The certificates alone, one behind the other: a store of roots."""
    return b"".join(i.certificate.public_bytes(Encoding.PEM) for i in identities)
