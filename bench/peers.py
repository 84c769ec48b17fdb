"""The two ends that the engine is measured against: Python's `ssl` as a server and as the client.

Both servers show the same P-256 identity to the same client, so the bytes have the same shape. The
client is always `ssl` over MemoryBIO; it is never timed.
"""

import datetime
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = "bench.test"
WHOLE = 65536
"""More than any one call here gives: a read of this many bytes is a read of everything."""


class Untrusted(Exception):
    """The run is not to be trusted: a side failed or did less than was counted."""


@dataclass(frozen=True)
class Identity:
    """A chain of one leaf and its key, as PEM."""

    chain: bytes
    key: bytes


def identity() -> Identity:
    """A fresh self-signed P-256 leaf for NAME."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName(NAME)])
    return _pem(_builder(NAME, NAME, key).add_extension(names, critical=False), key, key)


@dataclass(frozen=True)
class Authority:
    """A root that signs clients, and one client that it signed."""

    root: bytes
    client: Identity


def authority() -> Authority:
    """A P-256 root and a P-256 leaf under it, as a fleet of devices has."""
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    root = _builder("bench root", "bench root", root_key).add_extension(constraints, critical=True)
    leaf = _builder("bench client", "bench root", key).add_extension(purpose, critical=False)
    return Authority(_pem(root, root_key, root_key).chain, _pem(leaf, key, root_key))


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    subject_name, issuer_name = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, issuer)
    )
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject_name)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
    )


def _pem(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> Identity:
    return Identity(
        builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _load(context: ssl.SSLContext, shown: Identity) -> None:
    """`ssl` reads chains and keys from files alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "identity.pem")
        path.write_bytes(shown.chain + shown.key)
        context.load_cert_chain(path)


def server_context(
    shown: Identity, tickets: int = 0, clients: bytes | None = None
) -> ssl.SSLContext:
    """`ssl` as the server. It sends two tickets when it is not told otherwise; the engine none.

    With `clients`, the root of theirs, each must show a certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = tickets
    _load(context, shown)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.decode("ascii"))
    return context


def client_context(shown: Identity | None = None) -> ssl.SSLContext:
    """The client of every bench. It judges no chain: its work is not what is measured."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if shown is not None:
        _load(context, shown)
    return context


class Client:
    """A client in memory, one `ssl` object and its two buffers."""

    __slots__ = ("incoming", "outgoing", "tls")

    def __init__(self, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(
            self.incoming, self.outgoing, server_hostname=NAME, session=session
        )

    def hello(self) -> bytes:
        """The first flight."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return self.outgoing.read()
        raise Untrusted("the client finished before it was answered")

    def answer(self, flight: bytes | memoryview) -> bytes:
        """The second flight to a first that is whole: the client is then established."""
        answer = self.accept(flight)
        if answer is None:
            raise Untrusted("the server's flight was not whole")
        return answer

    def accept(self, flight: bytes | memoryview) -> bytes | None:
        """The second flight, or None while the first is not there as a whole."""
        self.incoming.write(flight)
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLError as error:
            raise Untrusted(f"the client did not accept the flight: {error}") from None
        return self.outgoing.read()

    def opened(self, records: bytes) -> bytes:
        """What the records that are there as a whole hold, perhaps nothing."""
        self.incoming.write(records)
        got = bytearray()
        try:
            while part := self.tls.read(WHOLE):
                got += part
        except ssl.SSLWantReadError:
            return bytes(got)
        except ssl.SSLError as error:
            raise Untrusted(f"the echo could not be read: {error}") from None
        raise Untrusted("the echo ended early")

    def seal(self, data: bytes) -> bytes:
        """The record that carries `data`."""
        self.tls.write(data)
        return self.outgoing.read()

    def session(self, tickets: bytes) -> ssl.SSLSession:
        """The session that the tickets open again."""
        self.opened(tickets)
        session = self.tls.session
        if session is None or not session.has_ticket:
            raise Untrusted("no ticket came")
        return session

    def suite(self) -> str:
        """The name of the suite in use."""
        cipher = self.tls.cipher()
        if cipher is None:
            raise Untrusted("no suite was agreed")
        return cipher[0]
