"""Key shares (RFC 8446 §4.2.8) with private keys that follow from the randomness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .codes import SECP256R1, SECP384R1, X25519
from .fault import ScriptError, ServerFault

_CURVES: dict[int, ec.EllipticCurve] = {SECP256R1: ec.SECP256R1(), SECP384R1: ec.SECP384R1()}
SHARE_SIZES = {X25519: 32, SECP256R1: 65, SECP384R1: 97}


@dataclass(frozen=True)
class Share:
    """A key share of the client's: group, private key, public key as it is sent."""

    group: int
    private: x25519.X25519PrivateKey | ec.EllipticCurvePrivateKey
    public: bytes

    def exchange(self, peer: bytes) -> bytes:
        """The shared secret; a peer's share that is no point is the server's fault (§4.2.8.2)."""
        rule = "RFC 8446 §4.2.8: a share is a valid point of its group"
        if len(peer) != SHARE_SIZES[self.group]:
            raise ServerFault(rule, f"{len(peer)} bytes for group {self.group}")
        try:
            if isinstance(self.private, x25519.X25519PrivateKey):
                return self.private.exchange(x25519.X25519PublicKey.from_public_bytes(peer))
            key = ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[self.group], peer)
            return self.private.exchange(ec.ECDH(), key)
        except ValueError as error:
            raise ServerFault(rule, str(error)) from None


@lru_cache(maxsize=256)
def make_share(group: int, secret: bytes) -> Share:
    """A share from 32 bytes; kept, so that a fuzzer's second connection costs one exchange."""
    if group == X25519:
        private = x25519.X25519PrivateKey.from_private_bytes(secret)
        return Share(group, private, private.public_key().public_bytes_raw())
    if group not in _CURVES:
        raise ScriptError(f"the client has no group {group}")
    # 32 bytes with the top bit off are below the order of both curves, and not zero.
    scalar = int.from_bytes(secret, "big") >> 1 or 1
    key = ec.derive_private_key(scalar, _CURVES[group])
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return Share(group, key, point)
