"""An engine that asks clients for certificates, and lying clients that have some."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress

from cryptography import x509

from engine import Engine
from engine.layout import ROOM_LEN
from peers.liar import Client, Credential
from peers.liar.identities import NOW_MS
from tests.engine.pairs import Pair, engine
from tests.engine.x509.chain_maker import Made, authority, leaf
from tests.engine.x509.chain_maker import key as chain_key

OPTIONAL, REQUIRED = 1, 2
# The server's alerts go under its application key once its Finished is sent.
KEY = "application"
KINDS = ("P-256", "P-384", "Ed25519", "RSA-2048")


def root() -> Made:
    return authority("client root", own=chain_key("client root", "Ed25519"))


def mutual(mode: int = REQUIRED, *roots: Made, slots: int = 5, areas: int | None = 2) -> Engine:
    made = engine(slots, areas)
    assert made.trust_clients(b"".join(one.pem for one in roots or (root(),))) >= 1
    made.client_auth_mode(mode)
    return made


def credential(*chain: Made) -> Credential:
    assert chain[0].key is not None
    return Credential(tuple(one.der for one in chain), chain[0].key)


def client(*chain: Made, **options: object) -> Client:
    """A client that presents this chain; none without one."""
    own = credential(*chain) if chain else None
    return Client(b"mutual", now_ms=NOW_MS, credential=own, **options)  # type: ignore[arg-type]


def device(**changes: object) -> Made:
    return leaf(root(), **changes)  # type: ignore[arg-type]


def big_leaf() -> Made:
    """A leaf that is larger than a room."""
    names = [x509.DNSName(f"device-{i}.example.with.a.long.name") for i in range(80)]
    made = device(san=names)
    assert len(made.der) > ROOM_LEN
    return made


def no_identity(made: Engine, slot: int = 0) -> None:
    assert made.peer_verified(slot) == 0
    for call in (
        made.peer_certificate,
        made.peer_subject,
        made.peer_serial,
        made.peer_fingerprint,
        made.peer_not_after,
        made.peer_san,
    ):
        assert call(slot) is None


def has_identity(made: Engine, own: Made, slot: int = 0, generation: int = 1) -> None:
    assert made.peer_verified(slot) == generation
    assert made.peer_certificate(slot) == own.der
    assert made.peer_fingerprint(slot) == hashlib.sha256(own.der).digest()
    assert made.peer_subject(slot) == own.subject.public_bytes()
    assert made.peer_not_after(slot) == own.cert.not_valid_after_utc.timestamp()
    serial = made.peer_serial(slot)
    assert serial is not None and int.from_bytes(serial, "big") == own.cert.serial_number
    names: Iterable[x509.GeneralName] = ()
    with suppress(x509.ExtensionNotFound):
        names = own.cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    san = made.peer_san(slot)
    assert san is not None and len(san) == len(list(names))


def other_root() -> Made:
    return authority("other root")


def device_of(c: Client) -> Made:
    assert c.credential is not None
    return Made(x509.load_der_x509_certificate(c.credential.chain[0]), None)


def flight(pair: Pair, *parts: bytes) -> bytes:
    return pair.client.handshake_bytes(b"".join(parts))


def wrong(*chain: Made, mode: int = REQUIRED) -> tuple[Pair, Client]:
    pair = Pair(mutual(mode), client=client(*chain or (device(),))).greet()
    return pair, pair.client
