"""Signatures of CertificateVerify (RFC 8446 §4.4.3), made and checked.

Everything made here is a function of its input: ECDSA by RFC 6979, RSA-PSS with a fixed salt by
an encoding of our own (RFC 8017 §9.1.1), Ed25519 as it is. Recordings depend on it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from . import codes
from .fault import ServerFault, check

PrivateKey = (
    ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
    | rsa.RSAPrivateKey
)

SERVER_CONTEXT = "TLS 1.3, server CertificateVerify"
CLIENT_CONTEXT = "TLS 1.3, client CertificateVerify"

_ECDSA: dict[int, tuple[type[ec.EllipticCurve], hashes.HashAlgorithm]] = {
    codes.ECDSA_SECP256R1_SHA256: (ec.SECP256R1, hashes.SHA256()),
    codes.ECDSA_SECP384R1_SHA384: (ec.SECP384R1, hashes.SHA384()),
    codes.ECDSA_SECP521R1_SHA512: (ec.SECP521R1, hashes.SHA512()),
    codes.ECDSA_SHA1: (ec.SECP256R1, hashes.SHA1()),
}
_PSS: dict[int, hashes.HashAlgorithm] = {
    codes.RSA_PSS_RSAE_SHA256: hashes.SHA256(),
    codes.RSA_PSS_RSAE_SHA384: hashes.SHA384(),
    codes.RSA_PSS_RSAE_SHA512: hashes.SHA512(),
    codes.RSA_PSS_PSS_SHA256: hashes.SHA256(),
}
_PKCS1: dict[int, hashes.HashAlgorithm] = {
    codes.RSA_PKCS1_SHA256: hashes.SHA256(),
    codes.RSA_PKCS1_SHA384: hashes.SHA384(),
    codes.RSA_PKCS1_SHA512: hashes.SHA512(),
}


def signed_content(context: str, transcript_hash: bytes) -> bytes:
    """64 spaces, the context, a zero byte, the transcript hash (§4.4.3)."""
    return b" " * 64 + context.encode() + b"\0" + transcript_hash


def natural_scheme(key: PrivateKey) -> int:
    """The scheme that fits a key."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        for scheme, (curve, _) in _ECDSA.items():
            if isinstance(key.curve, curve):
                return scheme
        raise ValueError("no scheme for this curve")
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return codes.ED25519
    if isinstance(key, ed448.Ed448PrivateKey):
        return codes.ED448
    return codes.RSA_PSS_RSAE_SHA256


def _mgf1(seed: bytes, size: int, name: str) -> bytes:
    out = b""
    count = 0
    while len(out) < size:
        out += hashlib.new(name, seed + count.to_bytes(4, "big")).digest()
        count += 1
    return out[:size]


def pss_encode(content: bytes, bits: int, name: str, salt: bytes) -> bytes:
    """EMSA-PSS-ENCODE (RFC 8017 §9.1.1)."""
    size = (bits + 7) // 8
    hashed = hashlib.new(name, content).digest()
    h = hashlib.new(name, bytes(8) + hashed + salt).digest()
    db = bytes(size - len(salt) - len(h) - 2) + b"\x01" + salt
    mask = _mgf1(h, len(db), name)
    masked = bytearray(a ^ b for a, b in zip(db, mask, strict=True))
    masked[0] &= 0xFF >> (8 * size - bits)
    return bytes(masked) + h + b"\xbc"


def pss_sign(
    key: rsa.RSAPrivateKey, content: bytes, name: str, salt_size: int | None = None
) -> bytes:
    """RSASSA-PSS with a salt that follows from the content; ``salt_size`` is the lie."""
    if salt_size is None:
        salt_size = hashlib.new(name).digest_size
    salt = _mgf1(b"residue salt" + content, salt_size, name)
    numbers = key.private_numbers()
    modulus = numbers.public_numbers.n
    encoded = pss_encode(content, modulus.bit_length() - 1, name, salt)
    return _private_power(numbers, int.from_bytes(encoded, "big")).to_bytes(
        (modulus.bit_length() + 7) // 8, "big"
    )


def _private_power(numbers: rsa.RSAPrivateNumbers, value: int) -> int:
    """m^d mod n by the remainders of p and q (RFC 8017 §5.1.2)."""
    a = pow(value, numbers.dmp1, numbers.p)
    b = pow(value, numbers.dmq1, numbers.q)
    return b + numbers.q * ((a - b) * numbers.iqmp % numbers.p)


def sign(key: PrivateKey, scheme: int, content: bytes) -> bytes:
    """Sign under a scheme. A scheme that does not fit the key signs with the scheme's hash."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = _ECDSA[scheme][1] if scheme in _ECDSA else hashes.SHA256()
        return key.sign(content, ec.ECDSA(algorithm, deterministic_signing=True))
    if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
        return key.sign(content)
    if scheme in _PKCS1:
        return key.sign(content, padding.PKCS1v15(), _PKCS1[scheme])
    return pss_sign(key, content, _PSS[scheme].name if scheme in _PSS else "sha256")


_public = lru_cache(maxsize=64)(load_der_public_key)


@lru_cache(maxsize=256)
def _verify(spki: bytes, scheme: int, content: bytes, signature: bytes) -> str:
    """An empty word when the signature is right, else what is wrong with it."""
    key = _public(spki)
    try:
        if scheme in _ECDSA:
            curve, algorithm = _ECDSA[scheme]
            if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, curve):
                return "the scheme does not fit the key"
            key.verify(signature, content, ec.ECDSA(algorithm))
        elif scheme == codes.ED25519:
            if not isinstance(key, ed25519.Ed25519PublicKey):
                return "the scheme does not fit the key"
            key.verify(signature, content)
        elif scheme in _PSS:
            if not isinstance(key, rsa.RSAPublicKey):
                return "the scheme does not fit the key"
            pss = padding.PSS(padding.MGF1(_PSS[scheme]), padding.PSS.DIGEST_LENGTH)
            key.verify(signature, content, pss, _PSS[scheme])
        else:
            return "a scheme that TLS 1.3 does not sign with"
    except InvalidSignature:
        return "the signature is wrong"
    return ""


def check_server(spki: bytes, scheme: int, transcript_hash: bytes, signature: bytes) -> None:
    """The server's CertificateVerify under its leaf's key; raises `ServerFault`."""
    wrong = _verify(spki, scheme, signed_content(SERVER_CONTEXT, transcript_hash), signature)
    check(not wrong, "RFC 8446 §4.4.3: CertificateVerify is signed by the leaf's key", wrong)


__all__ = [
    "CLIENT_CONTEXT",
    "SERVER_CONTEXT",
    "PrivateKey",
    "ServerFault",
    "check_server",
    "natural_scheme",
    "pss_sign",
    "sign",
    "signed_content",
]
