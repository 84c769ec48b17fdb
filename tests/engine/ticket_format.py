"""A second implementation of the ticket format, for the tests: written from the format's text.

It shares nothing with the engine: HKDF, HMAC and the cipher are the objects of `cryptography`, the
fields are joined by hand, and every field can be given a value that no honest sealer would write.
"""

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

HASHES: dict[str, type[HashAlgorithm]] = {"sha256": SHA256, "sha384": SHA384}


def name_of(key: bytes) -> bytes:
    mac = HMAC(key, SHA256())
    mac.update(b"cancho tls ticket key name v1")
    return mac.finalize()[:16]


def subkey_of(key: bytes, salt: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=salt, info=b"cancho tls ticket v1").derive(key)


def plaintext_of(
    *,
    version: int = 1,
    auth: int = 0,
    issue_ms: int = 0,
    expiry_ms: int = 0,
    age_add: int = 0,
    suite: int = 0x1301,
    psk: bytes = bytes(32),
    psk_length: int | None = None,
    fingerprint: bytes = bytes(32),
    name: bytes = b"",
    name_length: int | None = None,
    alpn: bytes = b"",
    alpn_length: int | None = None,
    trailing: bytes = b"",
) -> bytes:
    return b"".join(
        (
            bytes([version, auth]),
            issue_ms.to_bytes(8, "big"),
            expiry_ms.to_bytes(8, "big"),
            age_add.to_bytes(4, "big"),
            suite.to_bytes(2, "big"),
            bytes([len(psk) if psk_length is None else psk_length]),
            psk,
            fingerprint,
            bytes([len(name) if name_length is None else name_length]),
            name,
            bytes([len(alpn) if alpn_length is None else alpn_length]),
            alpn,
            trailing,
        )
    )


def sealed(plaintext: bytes, key: bytes, salt: bytes) -> bytes:
    name = name_of(key)
    cipher = ChaCha20Poly1305(subkey_of(key, salt))
    return name + salt + cipher.encrypt(bytes(12), plaintext, b"\x01" + name + salt)


def opened(ticket: bytes, key: bytes) -> dict[str, int | bytes]:
    """The fields of an honest ticket; raises for anything else."""
    name, salt, rest = ticket[:16], ticket[16:48], ticket[48:]
    assert name == name_of(key)
    cipher = ChaCha20Poly1305(subkey_of(key, salt))
    plain = cipher.decrypt(bytes(12), rest, b"\x01" + name + salt)
    fields: dict[str, int | bytes] = {}
    at = 0
    for field, length in (
        ("version", 1),
        ("auth", 1),
        ("issue_ms", 8),
        ("expiry_ms", 8),
        ("age_add", 4),
        ("suite", 2),
    ):
        fields[field] = int.from_bytes(plain[at : at + length], "big")
        at += length
    for field, width in (("psk", 1), ("fingerprint", 0), ("name", 1), ("alpn", 1)):
        length = plain[at] if width else 32
        at += width
        fields[field] = plain[at : at + length]
        assert len(plain[at : at + length]) == length
        at += length
    assert at == len(plain)
    return fields


def expand_label(secret: bytes, hash_name: str, label: str, context: bytes) -> bytes:
    algorithm = HASHES[hash_name]()
    full = b"tls13 " + label.encode()
    info = algorithm.digest_size.to_bytes(2, "big")
    info += bytes([len(full)]) + full + bytes([len(context)]) + context
    return HKDFExpand(algorithm, algorithm.digest_size, info).derive(secret)
