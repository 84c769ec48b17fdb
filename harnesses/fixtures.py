"""What every harness starts from: an identity, a seed, a clock, a plain hello, an engine.

Nothing here is random and nothing reads a clock, so an input replays the same everywhere. The
production engine's randomness is not touched: the seed is given through `seed`, as any program
gives it, and signatures are the deterministic ones of RFC 6979.
"""

from __future__ import annotations

from pathlib import Path

from engine import Engine
from engine import codepoints as c
from peers.liar import hello as build
from peers.liar.hello import Hello
from peers.liar.shares import make_share

FOLDER = Path(__file__).resolve().parent / "identity"
CHAIN = (FOLDER / "chain.pem").read_bytes()
KEY = (FOLDER / "key.pem").read_bytes()
CLIENTS = (FOLDER / "clients.pem").read_bytes()

SEED = bytes(range(32))
NOW_MS = 1_800_000_000_000
NAMES = ("server.example", "*.server.example")
ALPN = (b"h2", b"http/1.1")
TICKET_KEY = bytes(range(128, 160))
TICKETS, LIFETIME_S = 2, 3_600

RANDOM = bytes(range(32))
SESSION_ID = bytes(range(64, 96))
SUITES = (c.TLS_AES_128_GCM_SHA256, c.TLS_CHACHA20_POLY1305_SHA256, c.TLS_AES_256_GCM_SHA384)
SECRET = bytes([7]) * 32
"""The client's private keys follow from it."""

X25519_KEY = (c.X25519, make_share(c.X25519, SECRET).public)
P256_KEY = (c.P256, make_share(c.P256, SECRET).public)
P384_KEY = (c.P384, make_share(c.P384, SECRET).public)


def server(
    slots: int,
    areas: int,
    *,
    hardware_aes: bool = True,
    check_signature: bool = False,
    tickets: bool = True,
) -> Engine:
    """A server engine with all that is fixed, ready to `serve`: an identity, ALPN, roots of clients
    (which are asked for nothing yet), and tickets under a fixed key.

    The check of the own signature is a third of what an input that signs costs, and no input can
    make it fail: it is off unless an input asks for it.
    """
    engine = Engine.server(
        slots,
        areas,
        signing="deterministic",
        hardware_aes=hardware_aes,
        check_signature=check_signature,
    )
    engine.seed(SEED)
    engine.add_identity(CHAIN, KEY, NAMES, NOW_MS)
    engine.set_alpn(ALPN)
    engine.trust_clients(CLIENTS)
    if tickets:
        engine.set_tickets(TICKETS, LIFETIME_S)
        engine.set_ticket_keys([TICKET_KEY], NOW_MS)
    return engine


def plain(kind: int | None = None, data: bytes = b"") -> Hello:
    """A small hello that every rule accepts, or the same with one extension put in or replaced."""
    hello = Hello(RANDOM, SESSION_ID, list(SUITES))
    hello.extensions = [
        (c.EXT_SERVER_NAME, build.server_name("server.example")),
        (c.EXT_SUPPORTED_GROUPS, build.code_list((c.X25519, c.P256, c.P384))),
        (c.EXT_SIGNATURE_ALGORITHMS, build.code_list((c.ECDSA_SECP256R1_SHA256,))),
        (c.EXT_SUPPORTED_VERSIONS, build.supported_versions(c.VERSION_TLS_1_3)),
        (c.EXT_KEY_SHARE, build.key_shares([X25519_KEY])),
    ]
    if kind is not None:
        hello.put(kind, data)
    return hello
