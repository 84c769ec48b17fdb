"""The input of the clientauth harness, version 1: a Certificate and a CertificateVerify.

    byte 0      1, the version of this format
    byte 1      settings, a bit each (SETTINGS), and three bits of the key that signs
    byte 2-3    the length of what follows for the Certificate
    ...         a Certificate's body, or with LEAF one certificate in DER
    the rest    a CertificateVerify's body, not read with HONEST

A fuzzer cannot sign. So LEAF signs the certificate of the input anew, as an authority would that is
believed, whatever it says; and HONEST signs the transcript as the key's owner would.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from peers.liar import proofs
from peers.liar.client import Client
from peers.liar.forge import tlv
from peers.liar.proofs import PrivateKey
from peers.liar.wire import u16, vec16

from ..build_identity import CLIENT_ROOT, MIDDLE, client

VERSION = 1
HEADER = 4

LEAF, UNDER_MIDDLE, HONEST, OPTIONAL = 1, 2, 4, 8
SETTINGS = {
    LEAF: "the input is one certificate, and an authority that is believed signs it",
    UNDER_MIDDLE: "that authority is an intermediate, whose certificate is sent too",
    HONEST: "the CertificateVerify is signed by a key that the harness has",
    OPTIONAL: "a certificate is optional, and not required",
}
KINDS = ("p256", "p384", "ed25519", "rsa2048")
"""Whose key signs, by bits 4 to 6 modulo 4."""

# AlgorithmIdentifier of ecdsa-with-SHA256 (RFC 5758 §3.2).
ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")
SEQUENCE, BIT_STRING = 0x30, 0x03


class Shown(NamedTuple):
    """What a client shows: its Certificate's body, and what its CertificateVerify is made of."""

    certificate: bytes
    given: bytes
    settings: int

    @property
    def optional(self) -> bool:
        """Whether a client may have no certificate."""
        return bool(self.settings & OPTIONAL)

    def verify(self, covered: bytes) -> bytes:
        """The body of the CertificateVerify over this transcript."""
        if not self.settings & HONEST:
            return self.given
        return _signature((self.settings >> 4) % len(KINDS), covered)


def decode(data: bytes) -> Shown | None:
    """What an input says; None for an input of no version that is known."""
    if len(data) < HEADER or data[0] != VERSION:
        return None
    settings = data[1]
    end = HEADER + int.from_bytes(data[2:HEADER])
    return Shown(_certificate(data[HEADER:end], settings), data[end:], settings)


def _certificate(given: bytes, settings: int) -> bytes:
    """The body of the Certificate."""
    if not settings & LEAF:
        return given
    issuer = MIDDLE if settings & UNDER_MIDDLE else CLIENT_ROOT
    chain = [resigned(given, issuer.key)]
    if settings & UNDER_MIDDLE:
        chain.append(MIDDLE.der)
    return Client().certificate_message(chain)[4:]


@lru_cache(maxsize=4_096)
def _signature(kind: int, covered: bytes) -> bytes:
    key = client(KINDS[kind]).key
    scheme = proofs.natural_scheme(key)
    signature = proofs.sign(key, scheme, proofs.signed_content(proofs.CLIENT_CONTEXT, covered))
    return u16(scheme) + vec16(signature)


def resigned(certificate: bytes, key: PrivateKey) -> bytes:
    """The same certificate under another authority's key (P-256).

    Only the outer shape is read: a SEQUENCE of what is signed, an algorithm and a signature. What
    has not that shape is left as it is.
    """
    outer = _content(certificate, 0)
    if outer is None:
        return certificate
    signed = _content(certificate, outer[0])
    if signed is None or not isinstance(key, ec.EllipticCurvePrivateKey):
        return certificate
    to_sign = certificate[outer[0] : signed[1]]
    algorithm = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
    signature = tlv(BIT_STRING, b"\0" + key.sign(to_sign, algorithm))
    return tlv(SEQUENCE, to_sign + ECDSA_SHA256 + signature)


def _content(data: bytes, at: int) -> tuple[int, int] | None:
    """Where the content of the SEQUENCE at `at` begins and ends; None when there is none."""
    if at + 2 > len(data) or data[at] != SEQUENCE:
        return None
    size = data[at + 1]
    at += 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[at : at + count])
        at += count
    return (at, at + size) if at + size <= len(data) else None


def encode(given: bytes, verify: bytes = b"", settings: int = HONEST, kind: str = "p256") -> bytes:
    """An input: what the corpus is made with."""
    head = bytes([VERSION, settings | KINDS.index(kind) << 4]) + len(given).to_bytes(2)
    return head + given + verify
