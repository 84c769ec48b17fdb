"""Certificates for the tests of path validation: authorities, leaves, and damage done to them.

`authority` and `leaf` make certificates that are right in every way, so that a test changes one
thing. Keys are made once a run: they differ only where a test says so.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose
from cryptography.x509.oid import NameOID

from engine.x509 import der

DAY = 86_400
NOW = 1_780_272_000
AUTO = b"auto"

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
Digest = hashes.SHA256 | hashes.SHA384 | hashes.SHA512
PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


@cache
def key(name: str = "leaf", kind: str = "P-256") -> PrivateKey:
    """The key of this name and kind: always the same within a run."""
    if kind == "Ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind.startswith("RSA-"):
        return rsa.generate_private_key(65537, int(kind[4:]))
    curves = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
    return ec.generate_private_key(curves[kind])


@dataclass(frozen=True)
class Made:
    """A certificate and the key that it certifies (none where nobody has the private part)."""

    cert: x509.Certificate
    key: PrivateKey | None

    @property
    def der(self) -> bytes:
        return self.cert.public_bytes(Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.cert.public_bytes(Encoding.PEM)

    @property
    def subject(self) -> x509.Name:
        return self.cert.subject


def name(common: str = "", **more: str) -> x509.Name:
    """A subject: a common name, an organisation, a mail address; empty without any."""
    oids = {
        "o": NameOID.ORGANIZATION_NAME,
        "c": NameOID.COUNTRY_NAME,
        "mail": NameOID.EMAIL_ADDRESS,
    }
    attributes = [x509.NameAttribute(oids[kind], text) for kind, text in more.items()]
    if common:
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common))
    return x509.Name(attributes)


def usage(*names: str) -> x509.KeyUsage:
    every = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{one: one in names for one in every})


def issue(
    subject: x509.Name | str,
    own: PrivateKey | PublicKey,
    by: Made | None,
    *,
    ca: bool | None,
    path_length: int | None = None,
    uses: Sequence[str] | None,
    purposes: Sequence[x509.ObjectIdentifier] | None,
    san: Sequence[x509.GeneralName] | None,
    permitted: Sequence[x509.GeneralName] | None = None,
    excluded: Sequence[x509.GeneralName] | None = None,
    before: int = NOW - DAY,
    after: int = NOW + DAY,
    serial: int = 0x1234,
    key_id: bytes | None = AUTO,
    issuer_key_id: bytes | None = AUTO,
    issuer: x509.Name | None = None,
    extra: Sequence[tuple[x509.ExtensionType, bool]] = (),
    digest: Digest | None = None,
    pss: padding.PSS | None = None,
) -> Made:
    """A certificate for `own`, signed by `by`, or by itself when that is None."""
    public = own if isinstance(own, PublicKey) else own.public_key()
    private = None if isinstance(own, PublicKey) else own
    signer = by.key if by is not None else private
    assert signer is not None
    if isinstance(subject, str):
        subject = name(subject)
    if issuer is None:
        issuer = by.subject if by is not None else subject
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(serial)
        .not_valid_before(datetime.datetime.fromtimestamp(before, datetime.UTC))
        .not_valid_after(datetime.datetime.fromtimestamp(after, datetime.UTC))
    )
    extensions: list[tuple[x509.ExtensionType, bool]] = []
    if ca is not None:
        extensions.append((x509.BasicConstraints(ca, path_length), True))
    if uses is not None:
        extensions.append((usage(*uses), True))
    if purposes is not None:
        extensions.append((x509.ExtendedKeyUsage(purposes), False))
    if san is not None:
        extensions.append((x509.SubjectAlternativeName(san), not list(subject)))
    if permitted is not None or excluded is not None:
        extensions.append((x509.NameConstraints(permitted, excluded), True))
    if key_id is not None:
        known = x509.SubjectKeyIdentifier.from_public_key(public)
        extensions.append((known if key_id is AUTO else x509.SubjectKeyIdentifier(key_id), False))
    if issuer_key_id is not None:
        theirs = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        if issuer_key_id is not AUTO:
            theirs = x509.AuthorityKeyIdentifier(issuer_key_id, None, None)
        extensions.append((theirs, False))
    for extension, critical in [*extensions, *extra]:
        builder = builder.add_extension(extension, critical)
    if isinstance(signer, ed25519.Ed25519PrivateKey):
        return Made(builder.sign(signer, None), private)
    algorithm: Digest = digest or hashes.SHA256()
    if pss is not None:
        return Made(builder.sign(signer, algorithm, rsa_padding=pss), private)
    return Made(builder.sign(signer, algorithm), private)


def authority(
    subject: x509.Name | str,
    by: Made | None = None,
    own: PrivateKey | None = None,
    **changes: object,
) -> Made:
    """An authority that is right, but for `changes`; a root when `by` is None."""
    label = subject if isinstance(subject, str) else subject.rfc4514_string()
    options: dict[str, object] = {
        "ca": True,
        "uses": ("key_cert_sign", "crl_sign"),
        "purposes": None,
        "san": None,
    }
    options.update(changes)
    return issue(subject, own or key(label), by, **options)  # type: ignore[arg-type]


def leaf(
    by: Made | None,
    subject: x509.Name | str = "device",
    own: PrivateKey | PublicKey | None = None,
    **changes: object,
) -> Made:
    """A client's certificate that is right, but for `changes`."""
    options: dict[str, object] = {
        "ca": None,
        "uses": ("digital_signature",),
        "purposes": (Purpose.CLIENT_AUTH,),
        "san": (x509.DNSName("device.example"),),
    }
    options.update(changes)
    return issue(subject, own or key(), by, **options)  # type: ignore[arg-type]


def tlv(tag: int, contents: bytes) -> bytes:
    length = len(contents)
    if length < 0x80:
        return bytes((tag, length)) + contents
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size, "big") + contents


def edited(
    made: Made, by: Made, change: Callable[[bytes], bytes], algorithm: bytes | None = None
) -> bytes:
    """The DER of a certificate whose signed part was edited and signed again with SHA-256.

    `algorithm` is what stands outside the signed part, when that is to be another one.
    """
    parts = der.outline(made.der)
    start, stop = der.expect(parts.tbs, 0, len(parts.tbs), der.SEQUENCE)
    tbs = tlv(der.SEQUENCE, change(parts.tbs[start:stop]))
    if isinstance(by.key, rsa.RSAPrivateKey):
        signature = by.key.sign(tbs, padding.PKCS1v15(), hashes.SHA256())
    else:
        assert isinstance(by.key, ec.EllipticCurvePrivateKey)
        signature = by.key.sign(tbs, ec.ECDSA(hashes.SHA256()))
    algorithm = algorithm or parts.algorithm
    return tlv(der.SEQUENCE, tbs + algorithm + tlv(der.BIT_STRING, b"\0" + signature))


def with_key_algorithm(made: Made, algorithm: bytes) -> Callable[[bytes], bytes]:
    """An edit that puts another AlgorithmIdentifier before the key."""
    parts = der.outline(made.der)
    start, stop = der.expect(parts.key_info, 0, len(parts.key_info), der.SEQUENCE)
    key_bits = parts.key_info[start + len(parts.key_algorithm) : stop]
    new = tlv(der.SEQUENCE, algorithm + key_bits)
    return lambda tbs: tbs.replace(parts.key_info, new)


def with_serial(contents: bytes) -> Callable[[bytes], bytes]:
    """An edit that puts another INTEGER in the serial's place."""

    def change(tbs: bytes) -> bytes:
        _, _, version = der.element(tbs, 0, len(tbs))
        _, _, serial = der.element(tbs, version, len(tbs))
        return tbs[:version] + tlv(der.INTEGER, contents) + tbs[serial:]

    return change


def replacing(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """An edit that changes one place to bytes of the same length."""

    def change(tbs: bytes) -> bytes:
        assert tbs.count(old) == 1 and len(old) == len(new)
        return tbs.replace(old, new)

    return change
