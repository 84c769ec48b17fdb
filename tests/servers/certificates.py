"""Certificates for the server tests, as an operator has them: PEM files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Private = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
KEYS: dict[str, Callable[[], Private]] = {
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "RSA-2048": lambda: rsa.generate_private_key(65537, 2048),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}
"""The kinds of key that a client may have."""


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def write_identity(directory: Path, *names: str, days: int = 30) -> int:
    """A new key and its self-signed certificate for DNS names; the certificate's serial number.

    The key is written after the chain, as a deployment does that signals when both are there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = common_name(names[0])
    start = datetime.now(UTC) - timedelta(days=60)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(datetime.now(UTC) + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, SHA256())
    )
    (directory / "chain.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(private_pem(key))
    return certificate.serial_number


def private_pem(key: Private) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@dataclass(frozen=True)
class Credential:
    """A client's two files. The chain is leaf first, without its root."""

    chain: Path
    key: Path


class Authority:
    """Vouches for clients: a root of its own, or an intermediate of another authority."""

    def __init__(self, name: str, above: "Authority | None" = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = common_name(name)
        self._above = above
        self.certificate = self._sign(
            self.name,
            self.key.public_key(),
            [(x509.BasicConstraints(True, None), True)],
            timedelta(days=30),
            above or self,
        )

    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def client(
        self,
        directory: Path,
        subject: x509.Name | str,
        kind: str = "P-256",
        *,
        names: Sequence[str] = ("device.test",),
        lasts: timedelta = timedelta(days=30),
    ) -> Credential:
        """A key of a kind and a certificate that this authority signed, as files."""
        key = KEYS[kind]()
        leaf = self._sign(
            common_name(subject) if isinstance(subject, str) else subject,
            key.public_key(),
            [
                (x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False),
                (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False),
            ],
            lasts,
            self,
        )
        directory.mkdir(parents=True, exist_ok=True)
        made = Credential(directory / "client.pem", directory / "client.key")
        chain = leaf.public_bytes(Encoding.PEM) + (self.pem() if self._above else b"")
        made.chain.write_bytes(chain)
        made.key.write_bytes(private_pem(key))
        return made

    @staticmethod
    def _sign(
        subject: x509.Name,
        public,
        extensions: Sequence[tuple[x509.ExtensionType, bool]],
        lasts: timedelta,
        by: "Authority",
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by.name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - timedelta(days=1))
            .not_valid_after(datetime.now(UTC) + lasts)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(by.key, SHA256())
