"""Signs a certificate anew, whatever it says, so that a fuzzer's changes come before the rules.

Only the outer shape is read: a SEQUENCE of what is signed, an algorithm and a signature. What has
not that shape is left as it is.
"""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from peers.liar.forge import tlv
from peers.liar.proofs import PrivateKey

# AlgorithmIdentifier of ecdsa-with-SHA256 (RFC 5758 section 3.2).
ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")
SEQUENCE, BIT_STRING = 0x30, 0x03


def resigned(certificate: bytes, key: PrivateKey) -> bytes:
    """The same certificate under another authority's key (P-256)."""
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
