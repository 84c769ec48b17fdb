"""What a handshake costs when nothing but its primitives is done: the floor of the table.

The calls are those that any TLS 1.3 server makes with `cryptography` for X25519, a P-256 identity
and TLS_AES_128_GCM_SHA256 (RFC 8446 §7.1): no parsing, no framing, no state.
"""

import hashlib
import hmac
import os
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding

from bench import clock, peers

_ECDSA = ec.ECDSA(hashes.SHA256())
_LABELS = tuple(
    length.to_bytes(2) + bytes([len(label) + 6]) + b"tls13 " + label + bytes([context])
    for length, label, context in (
        (32, b"c hs traffic", 32),
        (32, b"s hs traffic", 32),
        (32, b"derived", 32),
        (32, b"c ap traffic", 32),
        (32, b"s ap traffic", 32),
        (16, b"key", 0),
        (12, b"iv", 0),
        (16, b"key", 0),
        (12, b"iv", 0),
        (16, b"key", 0),
        (12, b"iv", 0),
        (16, b"key", 0),
        (12, b"iv", 0),
        (32, b"finished", 0),
        (32, b"finished", 0),
    )
)
_FLIGHT = bytes(700)
_FINISHED = bytes(37)


def turn(kind: str, check: bool) -> Callable[[int], int]:
    """A turn of the primitives of handshakes of a kind, with the server's check of its signature.

    A resumed one signs nothing, opens a ticket, checks a binder and seals a ticket; a mutual one
    reads one certificate and checks its signature and its holder's.
    """
    signer = ec.generate_private_key(ec.SECP256R1())
    public = signer.public_key()
    peer = X25519PrivateKey.generate().public_key().public_bytes_raw()
    sealed = AESGCM(bytes(16)).encrypt(bytes(12), _FINISHED, b"")
    client = peers.authority()
    root = x509.load_pem_x509_certificate(client.root).public_key()
    assert isinstance(root, ec.EllipticCurvePublicKey)
    der = x509.load_pem_x509_certificate(client.client.chain).public_bytes(Encoding.DER)
    signature = signer.sign(_FLIGHT[:130], _ECDSA)
    ticket = ChaCha20Poly1305(bytes(32)).encrypt(bytes(12), _FLIGHT[:120], b"")

    def sign() -> None:
        made = signer.sign(_FLIGHT[:130], _ECDSA)
        if check:
            public.verify(made, _FLIGHT[:130], _ECDSA)

    def resume() -> None:
        secret = hmac.digest(_FINISHED, _FINISHED, "sha256")
        ChaCha20Poly1305(secret).encrypt(bytes(12), _FLIGHT[:120], b"")
        ChaCha20Poly1305(bytes(32)).decrypt(bytes(12), ticket, b"")
        for label in _LABELS[:6]:  # both subkeys, the binder's three, the resumption secret
            hmac.digest(secret, label, "sha256")

    def judge() -> None:
        leaf = x509.load_der_x509_certificate(der)
        root.verify(leaf.signature, leaf.tbs_certificate_bytes, _ECDSA)
        leaf.public_key()
        public.verify(signature, _FLIGHT[:130], _ECDSA)

    def turns(count: int) -> int:
        start = clock.now()
        for _ in range(count):
            transcript = hashlib.sha256(_FLIGHT)
            ours = X25519PrivateKey.from_private_bytes(os.urandom(32))
            ours.public_key().public_bytes_raw()
            secret = ours.exchange(X25519PublicKey.from_public_bytes(peer))
            for _ in range(2):
                secret = hmac.digest(secret, _FINISHED, "sha256")
            for label in _LABELS:
                hmac.digest(secret, label, "sha256")
            for _ in range(3):
                transcript.copy().digest()
                transcript.update(_FINISHED)
            if kind == "resumed":
                resume()
            else:
                sign()
            if kind == "mutual":
                judge()
            for _ in range(2):
                hmac.digest(secret, secret, "sha256")
            AESGCM(secret[:16]).encrypt(bytes(12), _FLIGHT, b"")
            AESGCM(bytes(16)).decrypt(bytes(12), sealed, b"")
            AESGCM(secret[:16])
            AESGCM(secret[16:])
        return clock.now() - start

    return turns
