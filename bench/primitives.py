"""What a full handshake costs when nothing but its primitives is done: the floor of the table.

The calls are those that any TLS 1.3 server makes with `cryptography` for X25519, a P-256 identity
and TLS_AES_128_GCM_SHA256 (RFC 8446 §7.1): no parsing, no framing, no state.
"""

import hashlib
import hmac
import os
from collections.abc import Callable

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bench import clock

_ECDSA = ec.ECDSA(hashes.SHA256())
_LABELS = tuple(
    length.to_bytes(2) + bytes([len(label) + 6]) + b"tls13 " + label + bytes([context])
    for length, label, context in (
        (32, b"c hs traffic", 32), (32, b"s hs traffic", 32), (32, b"derived", 32),
        (32, b"c ap traffic", 32), (32, b"s ap traffic", 32),
        (16, b"key", 0), (12, b"iv", 0), (16, b"key", 0), (12, b"iv", 0),
        (16, b"key", 0), (12, b"iv", 0), (16, b"key", 0), (12, b"iv", 0),
        (32, b"finished", 0), (32, b"finished", 0),
    )
)
_FLIGHT = bytes(700)
_FINISHED = bytes(37)


def full(check: bool) -> Callable[[int], int]:
    """A turn of the primitives of full handshakes, with the server's check of its signature."""
    signer = ec.generate_private_key(ec.SECP256R1())
    public = signer.public_key()
    peer = X25519PrivateKey.generate().public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    sealed = AESGCM(bytes(16)).encrypt(bytes(12), _FINISHED, b"")

    def turn(count: int) -> int:
        start = clock.now()
        for _ in range(count):
            transcript = hashlib.sha256(_FLIGHT)
            ours = X25519PrivateKey.from_private_bytes(os.urandom(32))
            ours.public_key().public_bytes(
                serialization.Encoding.Raw, serialization.PublicFormat.Raw
            )
            secret = ours.exchange(X25519PublicKey.from_public_bytes(peer))
            for _ in range(2):
                secret = hmac.digest(secret, _FINISHED, "sha256")
            for label in _LABELS:
                hmac.digest(secret, label, "sha256")
            for _ in range(3):
                transcript.copy().digest()
                transcript.update(_FINISHED)
            signature = signer.sign(_FLIGHT[:130], _ECDSA)
            if check:
                public.verify(signature, _FLIGHT[:130], _ECDSA)
            for _ in range(2):
                hmac.digest(secret, secret, "sha256")
            AESGCM(secret[:16]).encrypt(bytes(12), _FLIGHT, b"")
            AESGCM(bytes(16)).decrypt(bytes(12), sealed, b"")
            AESGCM(secret[:16])
            AESGCM(secret[16:])
        return clock.now() - start

    return turn
