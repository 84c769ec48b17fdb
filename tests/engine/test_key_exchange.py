"""The server's half of a key exchange: how its private value is made, and what is no share."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from engine.key_exchange import exchange

# A group, its curve, the bytes its scalar is reduced from (128 bits to spare), the curve's order
# (FIPS 186-5 refers to SP 800-186 §3.2.1).
CURVES = [
    (23, ec.SECP256R1(), 48, "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
    (24, ec.SECP384R1(), 64, "f" * 48 + "c7634d81f4372ddf581a0db248b0a77aecec196accc52973"),
]
SECRETS = [bytes(range(32)), b"\xff" * 32, bytes(31) + b"\x01"]


def point(key: ec.EllipticCurvePublicKey, form: PublicFormat) -> bytes:
    return key.public_bytes(Encoding.X962, form)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(("group", "curve", "length", "order"), CURVES)
def test_a_scalar_is_hkdf_s_output_reduced_to_one_up_to_the_order_less_one(
    group: int, curve: ec.EllipticCurve, length: int, order: str, secret: bytes
) -> None:
    info = b"residue share" + bytes([group])
    stretched = HKDFExpand(SHA256(), length, info).derive(secret)
    own = ec.derive_private_key(int.from_bytes(stretched) % (int(order, 16) - 1) + 1, curve)
    peer = ec.generate_private_key(curve)
    made = exchange(
        group, memoryview(secret), point(peer.public_key(), PublicFormat.UncompressedPoint)
    )
    assert made == (
        point(own.public_key(), PublicFormat.UncompressedPoint),
        peer.exchange(ec.ECDH(), own.public_key()),
    )


def test_an_x25519_private_value_is_the_draw_itself() -> None:
    secret, peer = bytes(range(32)), X25519PrivateKey.generate()
    made = exchange(29, memoryview(secret), peer.public_key().public_bytes_raw())
    assert made is not None
    share, shared = made
    assert share == X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    assert shared == peer.exchange(X25519PublicKey.from_public_bytes(share))


@pytest.mark.parametrize(
    ("group", "share"),
    [
        # Points of small order: their result is zeros whatever the private value (RFC 7748 §6.1).
        (29, bytes(32)),
        (29, b"\x01" + bytes(31)),
        (29, bytes(31)),
        (23, b"\x04" + bytes(63) + b"\x01"),
        (23, b"\x00"),
        (24, b"\x04" + b"\xff" * 96),
    ],
)
def test_what_is_no_point_or_gives_zeros_is_no_share(group: int, share: bytes) -> None:
    assert exchange(group, memoryview(bytes(range(32))), share) is None


@pytest.mark.parametrize(("group", "curve"), [(group, curve) for group, curve, _, _ in CURVES])
def test_a_point_in_the_compressed_form_is_no_share(group: int, curve: ec.EllipticCurve) -> None:
    # RFC 8446 §4.2.8.2: the uncompressed form alone.
    key = ec.generate_private_key(curve).public_key()
    compressed = point(key, PublicFormat.CompressedPoint)
    assert exchange(group, memoryview(bytes(range(32))), compressed) is None
