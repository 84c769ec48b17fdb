"""The server's half of an (EC)DHE exchange: X25519, P-256, P-384 (RFC 8446 §7.4, §4.2.8.2).

The private value comes from 32 bytes that the connection drew when it began, so that the same
seed gives the same share. For the NIST curves they are stretched by HKDF and reduced to a scalar
with 128 bits to spare, so that the reduction's bias is not visible (FIPS 186-5 §A.2.1).
"""

import hashlib
import hmac
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import codepoints as c

# A NIST curve, and how many bytes its scalar is reduced from.
_CURVES: Final[dict[int, tuple[ec.EllipticCurve, int]]] = {
    c.P256: (ec.SECP256R1(), 48),
    c.P384: (ec.SECP384R1(), 64),
}


def _scalar(secret: memoryview, group: int) -> int:
    curve, length = _CURVES[group]
    info = b"residue share" + bytes([group])
    # Two blocks of HKDF-Expand are enough for any curve here (RFC 5869 §2.3).
    first = hmac.digest(secret, info + b"\x01", hashlib.sha256)
    second = hmac.digest(secret, first + info + b"\x02", hashlib.sha256)
    return int.from_bytes((first + second)[:length]) % (curve.group_order - 1) + 1


def exchange(group: int, secret: memoryview, peer: bytes) -> tuple[bytes, bytes] | None:
    """This side's public share, and the shared secret, from a 32-byte private draw.

    None when the peer's share is no point of the curve, or its X25519 result is all zeros, which
    a peer could otherwise force to make the secret known (RFC 8446 §7.4.2).
    """
    if group == c.X25519:
        private = X25519PrivateKey.from_private_bytes(secret)
        try:
            shared = private.exchange(X25519PublicKey.from_public_bytes(peer))
        except ValueError:
            return None
        return private.public_key().public_bytes_raw(), shared
    curve = _CURVES[group][0]
    try:
        point = ec.EllipticCurvePublicKey.from_encoded_point(curve, peer)
    except ValueError:
        return None
    if peer[0] != 4:
        return None  # only the uncompressed form is a share (§4.2.8.2)
    scalar = ec.derive_private_key(_scalar(secret, group), curve)
    public = scalar.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return public, scalar.exchange(ec.ECDH(), point)
