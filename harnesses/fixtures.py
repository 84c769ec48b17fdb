"""What every harness starts from: one identity, one seed, one clock, one way to make an engine.

Nothing here is random and nothing reads a clock, so an input replays the same everywhere. The
production engine's randomness is not touched: the seed is given through `seed`, as any program
gives it, and signatures are the deterministic ones of RFC 6979.
"""

from __future__ import annotations

from pathlib import Path

from engine import Engine

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
