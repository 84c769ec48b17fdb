"""A program that has `residue_tls` installed and nothing of this tree: an echo to Python's `ssl`.

It prints one line of JSON. `test_package` runs it where only the package is.
"""

import contextlib
import datetime
import importlib.metadata
import importlib.util
import json
import os
import ssl
import time

import residue_tls
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from residue_tls import END, Engine, Event

NAME = "server.example"
OURS = ("engine", "ci", "servers", "harnesses", "mutants", "peers", "bench", "triage", "tests")


def identity() -> tuple[bytes, bytes]:
    """A certificate that signs itself, and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), pem


class Conversation:
    """The engine's one connection and a client of `ssl`, with the bytes between them."""

    def __init__(self) -> None:
        chain, key = identity()
        now_ms = time.time_ns() // 1_000_000
        self.tls = Engine.server(slots=1)
        self.tls.seed(os.urandom(32))
        self.tls.add_identity(chain, key, [NAME], now_ms)
        self.tls.serve(0, now_ms)
        self.out = bytearray(1 << 16)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=chain.decode())
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.incoming, self.outgoing, server_hostname=NAME)

    def carry(self) -> None:
        """Both ways, until neither side has anything to say."""
        while data := self.outgoing.read():
            assert self.tls.feed(0, data) == len(data)
        while count := self.tls.take(0, self.out):
            self.incoming.write(self.out[:count])

    def shake_hands(self) -> None:
        while self.tls.event(0) != Event.ESTABLISHED:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.carry()

    def echo(self, text: bytes) -> bytes:
        self.client.write(text)
        self.carry()
        count = self.tls.recv(0, self.out)
        assert self.tls.send(0, self.out[:count]) == count
        self.carry()
        return self.client.read()

    def end(self) -> bool:
        """close_notify of both; whether each heard the other's."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.client.unwrap()
        self.carry()
        heard = self.tls.recv(0, self.out) == END
        assert self.tls.finish(0)
        self.carry()
        self.client.unwrap()
        self.tls.drop(0)
        return bool(heard and self.tls.residue() == 0)


def main() -> None:
    conversation = Conversation()
    conversation.shake_hands()
    said = {
        "version": residue_tls.__version__,
        "protocol": conversation.client.version(),
        "echo": conversation.echo(b"hello").decode(),
        "ended": conversation.end(),
        "ours": [name for name in OURS if importlib.util.find_spec(name)],
        "installed": sorted(one.name for one in importlib.metadata.distributions()),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
