"""What a client says about itself: Certificate and CertificateVerify, and the verified identity.

Functions over bytes; the states that call them are the server's. Certificate (RFC 8446
§4.4.2) is read here and its chain judged by `x509.paths`; CertificateVerify (§4.4.3)
proves that the client holds the leaf's key.

The identity is read from the leaf's own bytes each time that it is asked for, so that nothing but
those bytes, which are exactly the verified ones, is kept for a connection. The engine
authenticates; what an identity may do is the program's decision.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS

from . import codepoints as c
from .refusals import Refusal
from .x509 import certificates, der
from .x509.certificates import PublicKey

OFF = 0
OPTIONAL = 1
REQUIRED = 2

# The bounds of a client's Certificate: the leaf, three intermediates and the root; and a body that
# the reassembly buffer holds. Past them a chain would buy parsing and memory with a handshake that
# nobody has authenticated yet.
MESSAGE = 16_384
CERTIFICATES = 5

SCHEMES = (
    c.ECDSA_SECP256R1_SHA256,
    c.ECDSA_SECP384R1_SHA384,
    c.ED25519,
    c.RSA_PSS_RSAE_SHA256,
    c.RSA_PSS_RSAE_SHA384,
    c.RSA_PSS_RSAE_SHA512,
)
CERTIFICATE_SCHEMES = (
    *SCHEMES,
    c.RSA_PKCS1_SHA256,
    c.RSA_PKCS1_SHA384,
    c.RSA_PKCS1_SHA512,
)

# What the client signs stands behind this (§4.4.3), so that no signature made for another
# purpose or by a server passes for a client's.
CONTEXT = b" " * 64 + b"TLS 1.3, client CertificateVerify" + b"\x00"

# The schemes that fit each kind of key, an ECDSA scheme the one of its curve, with what the key's
# `verify` is given behind the signature and the content. A salt is as long as the digest.
_FITTING: dict[tuple[str, int], tuple[Any, ...]] = {
    (certificates.P256, c.ECDSA_SECP256R1_SHA256): (ECDSA(hashes.SHA256()),),
    (certificates.P384, c.ECDSA_SECP384R1_SHA384): (ECDSA(hashes.SHA384()),),
    (certificates.ED25519, c.ED25519): (),
} | {
    (certificates.RSA, scheme): (PSS(MGF1(algorithm), algorithm.digest_size), algorithm)
    for scheme, algorithm in (
        (c.RSA_PSS_RSAE_SHA256, hashes.SHA256()),
        (c.RSA_PSS_RSAE_SHA384, hashes.SHA384()),
        (c.RSA_PSS_RSAE_SHA512, hashes.SHA512()),
    )
}


class Proof(NamedTuple):
    """A CertificateVerify: the scheme that the client says it used, and the signature."""

    scheme: int
    signature: bytes


def certificate_request(authorities: bytes) -> bytes:
    """The CertificateRequest message, header included (§4.3.2).

    `authorities` is the store's list of names, each behind its length; when it is empty the
    extension is left out.
    """
    extensions = _extension(c.EXT_SIGNATURE_ALGORITHMS, _scheme_list(SCHEMES))
    extensions += _extension(c.EXT_SIGNATURE_ALGORITHMS_CERT, _scheme_list(CERTIFICATE_SCHEMES))
    if authorities:
        extensions += _extension(c.EXT_CERTIFICATE_AUTHORITIES, authorities)
    # An empty request context: only a request after the handshake has one.
    body = b"\x00" + len(extensions).to_bytes(2) + extensions
    return bytes((c.CERTIFICATE_REQUEST,)) + len(body).to_bytes(3) + body


def read_certificate(body: bytes) -> list[bytes] | Refusal:
    """The chain of a client's Certificate, leaf first; empty when the client has none.

    Faults are told in wire order; the sixth certificate ends the reading.
    """
    end = len(body)
    if end > MESSAGE:
        return Refusal.X509_CHAIN_TOO_LARGE
    if not body:
        return Refusal.DECODE_ERROR
    context = body[0]
    if 4 + context > end:
        return Refusal.DECODE_ERROR
    if context:
        return Refusal.SERVER_ILLEGAL_PARAMETER
    at = 4
    if at + int.from_bytes(body[1:at]) != end:
        return Refusal.DECODE_ERROR
    chain: list[bytes] = []
    while at < end:
        if len(chain) == CERTIFICATES:
            return Refusal.X509_CHAIN_TOO_LARGE
        start = at + 3
        at = start + int.from_bytes(body[at:start])
        # An entry is a certificate of at least one byte and a list of extensions, maybe empty.
        if at <= start or at + 2 > end:
            return Refusal.DECODE_ERROR
        chain.append(body[start:at])
        length = int.from_bytes(body[at : at + 2])
        at += 2
        if length:
            return _entry_extensions(body, at, at + length)
    return chain


def _entry_extensions(body: bytes, at: int, end: int) -> Refusal:
    """The request asked for no extension of an entry, so one that parses is refused as such."""
    if end > len(body):
        return Refusal.DECODE_ERROR
    while at < end:
        at += 4 + int.from_bytes(body[at + 2 : at + 4])
    return Refusal.UNSUPPORTED_EXTENSION if at == end else Refusal.DECODE_ERROR


def read_verify(body: bytes) -> Proof | Refusal:
    """A client's CertificateVerify."""
    if len(body) < 4 or 4 + int.from_bytes(body[2:4]) != len(body):
        return Refusal.DECODE_ERROR
    return Proof(int.from_bytes(body[:2]), body[4:])


def check_verify(key: PublicKey, kind: str, proof: Proof, transcript: bytes) -> Refusal | None:
    """Whether the client holds `key`: its signature over the transcript hash through Certificate.

    The scheme must be one of the request's that fits the kind of key (an ECDSA scheme binds the
    curve; another is an illegal parameter, whatever the signature), then the signature must verify.
    """
    scheme, signature = proof
    how = _FITTING.get((kind, scheme))
    if how is None:
        return Refusal.SERVER_CLIENT_SIGALG
    signed = CONTEXT + transcript
    try:
        key.verify(signature, signed, *how)
    except Exception:
        # It is not the key's; or the library cannot compute with the key, which proves nothing.
        return Refusal.BAD_CERTIFICATE_VERIFY
    return None


# The identity, from a verified leaf's DER: nothing here judges, and none of it is called before
# `x509.paths` has accepted the same bytes.


def subject(leaf: bytes) -> bytes:
    """The subject Name as it stands in the leaf, `30 00` when it is empty."""
    return der.outline(leaf).subject


def serial(leaf: bytes) -> bytes:
    """The contents of the serial's INTEGER: two's complement, as it stands in the leaf."""
    return der.outline(leaf).serial


def fingerprint(leaf: bytes) -> bytes:
    """SHA-256 of the leaf: the one identity that no authority's choice of names can change."""
    return hashlib.sha256(leaf).digest()


def alternative_names(leaf: bytes) -> list[tuple[int, bytes]]:
    """The leaf's subjectAltName, one (form, contents) a name, as `x509.der` reads it."""
    return der.alternative_names(der.outline(leaf).extensions)


def _scheme_list(schemes: tuple[int, ...]) -> bytes:
    return b"".join(scheme.to_bytes(2) for scheme in schemes)


def _extension(number: int, vector: bytes) -> bytes:
    """An extension whose body is one vector with a length of two bytes."""
    return b"".join(
        (
            number.to_bytes(2),
            (len(vector) + 2).to_bytes(2),
            len(vector).to_bytes(2),
            vector,
        )
    )
