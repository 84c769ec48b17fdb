"""A server engine with one identity and a client that comes back, for the tests of tickets.

Every call goes through `Serving`, which counts the residue after each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from engine import Engine, Event
from engine.codepoints import TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384
from peers.liar import Client, Hello, Ticket
from tests.engine import ticket_format

NOW = 1_800_000_000_000
HOUR = 3_600_000
KEY = b"k" * 32
NAME = "server.example"


def identity(common_name: str = NAME, end_s: int = NOW // 1000 + 86_400) -> tuple[bytes, bytes]:
    """A self-signed chain and its key in PEM; the leaf ends at `end_s`, in Unix seconds."""
    return _identity(common_name, end_s)


@lru_cache
def _identity(common_name: str, end_s: int) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    end = datetime.fromtimestamp(end_s, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=400))
        .not_valid_after(end)
        .sign(key, SHA256())
    )
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), key_pem


def fingerprint(common_name: str = NAME, end_s: int = NOW // 1000 + 86_400) -> bytes:
    pem = identity(common_name, end_s)[0]
    return x509.load_pem_x509_certificate(pem).fingerprint(SHA256())


class Serving:
    """An engine with tickets on under a known key, and its clock."""

    def __init__(
        self,
        count: int = 2,
        lifetime_s: int = 3_600,
        *,
        keys: tuple[bytes, ...] = (KEY,),
        end_s: int = NOW // 1000 + 86_400,
        seed: bytes = bytes(range(32)),
        now_ms: int = NOW,
        slots: int = 4,
    ) -> None:
        self.now_ms = now_ms
        self.engine = Engine.server(slots, signing="deterministic", hardware_aes=True)
        self.engine.seed(seed)
        self.engine.add_identity(*identity(end_s=end_s), [NAME], now_ms)
        self.engine.set_tickets(count, lifetime_s)
        if keys:
            self.engine.set_ticket_keys(keys, now_ms)

    def replace(self, common_name: str = NAME, end_s: int = NOW // 1000 + 86_400) -> None:
        self.engine.replace_identity(0, *identity(common_name, end_s), self.now_ms)

    def client(self, *tickets: Ticket, **settings: object) -> Client:
        """A client whose clock is the server's, and whose tickets are offered in order."""
        return Client("client", tickets=tickets, now_ms=self.now_ms, **settings)  # type: ignore[arg-type]

    def exchange(self, slot: int, data: bytes) -> bytes:
        engine = self.engine
        assert engine.feed(slot, data) == len(data)
        assert engine.residue() == 0
        out = bytearray(65_536)
        taken = engine.take(slot, out)
        assert engine.residue() == 0
        return bytes(out[:taken])

    def hello(
        self, client: Client, slot: int = 0, edit: Callable[[Hello], object] | None = None
    ) -> None:
        """`serve`, then the hello and its answer, a retry included."""
        self.engine.serve(slot, self.now_ms)
        assert self.engine.residue() == 0
        client.read(self.exchange(slot, client.hello(edit)))
        if client.state == "retry":
            client.read(self.exchange(slot, client.hello(edit)))

    def finish(self, client: Client, slot: int = 0) -> None:
        client.read(self.exchange(slot, client.finish()))

    def connect(
        self,
        client: Client,
        slot: int = 0,
        *,
        edit: Callable[[Hello], object] | None = None,
        keep: bool = False,
    ) -> str:
        """A whole connection, and its verdict; the slot is free again unless it is to be kept."""
        self.hello(client, slot, edit)
        if client.state == "flight":
            self.finish(client, slot)
        verdict = self.engine.ticket_verdict(slot)
        assert self.engine.resumed(slot) == client.resumed
        if not keep:
            self.engine.drop(slot)
            assert self.engine.residue() == 0
        return verdict

    def ticket(self, **settings: object) -> Ticket:
        """The first ticket of a new full handshake."""
        client = self.client(**settings)
        self.connect(client)
        assert not client.resumed
        return client.tickets[0]

    def come_back(self, ticket: Ticket, **settings: object) -> str:
        """The verdict on a ticket that a new connection offers."""
        return self.connect(self.client(ticket, **settings))


def forged(serving: Serving, key: bytes = KEY, **changes: object) -> Ticket:
    """A ticket that the client sealed itself, right but for `changes`."""
    fields: dict[str, object] = {
        "issue_ms": serving.now_ms,
        "expiry_ms": serving.now_ms + HOUR,
        "age_add": 77,
        "suite": TLS_AES_128_GCM_SHA256,
        "psk": b"p" * 32,
        "fingerprint": fingerprint(),
        "name": b"server.example",
        **changes,
    }
    plaintext = ticket_format.plaintext_of(**fields)  # type: ignore[arg-type]
    sealed = ticket_format.sealed(plaintext, key, b"s" * 32)
    psk = fields["psk"]
    assert isinstance(psk, bytes)
    suite = TLS_AES_256_GCM_SHA384 if len(psk) == 48 else TLS_AES_128_GCM_SHA256
    return Ticket(sealed, psk, suite, 77, 3_600, b"\0", serving.now_ms)


def damaged(ticket: Ticket, at: int = -1) -> Ticket:
    sealed = bytearray(ticket.identity)
    sealed[at] ^= 1
    return replace(ticket, identity=bytes(sealed))


def refused(serving: Serving, tag: str, slot: int = 0) -> None:
    failure = serving.engine.failure(slot)
    assert failure is not None
    assert failure == tag
    assert serving.engine.event(slot) is Event.FAILED
    serving.engine.drop(slot)
    assert serving.engine.residue() == 0
