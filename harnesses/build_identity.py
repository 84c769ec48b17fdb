"""Makes the identity that every harness's server shows, the same bytes each time.

    python -m harnesses.build_identity

The key is a constant and the signatures are deterministic (RFC 6979), so the committed files can be
made again and compared: a test does. The corpus needs them to stay as they are, because a recorded
client's Finished covers the server's certificate. The key is public and protects nothing.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

FOLDER = Path(__file__).resolve().parent / "identity"
SCALAR = int.from_bytes(b"the harnesses' key, known to all", "big")
ISSUER_SCALAR = int.from_bytes(b"the harnesses' issuer, the same.", "big")
BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
HOSTS = ("server.example", "*.server.example")


def build() -> dict[str, bytes]:
    """The files of the identity by name: a chain of leaf and issuer, and the leaf's key."""
    key = ec.derive_private_key(SCALAR, ec.SECP256R1())
    issuer_key = ec.derive_private_key(ISSUER_SCALAR, ec.SECP256R1())
    issuer = _name("residue harness issuer")
    leaf_names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
    leaf = _sign(
        _certificate(_name(HOSTS[0]), issuer, key.public_key(), 2)
        .add_extension(x509.BasicConstraints(False, None), True)
        .add_extension(leaf_names, False),
        issuer_key,
    )
    root = _sign(
        _certificate(issuer, issuer, issuer_key.public_key(), 1).add_extension(
            x509.BasicConstraints(True, 0), True
        ),
        issuer_key,
    )
    return {
        "chain.pem": leaf + root,
        "key.pem": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    }


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, serial: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(BEGIN)
        .not_valid_after(END)
    )


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    signed = builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True)
    return signed.public_bytes(Encoding.PEM)


def main() -> None:
    """Writes the files into the tree."""
    FOLDER.mkdir(exist_ok=True)
    for name, data in build().items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
