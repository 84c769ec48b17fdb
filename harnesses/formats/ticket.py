"""The input of the ticket harness, version 1: a ticket's plaintext, how it is damaged, the hello.

    byte 0      1, the version of this format
    byte 1      settings of the hello and the server, a bit each (SETTINGS)
    byte 2      damage, a bit each (DAMAGE)
    byte 3      where: the bit that is flipped lies this many 256ths into the ticket
    byte 4-7    what the client adds to its true age in milliseconds, modulo 2^32
    the rest    the plaintext, which is sealed under the server's key

The binder is right for the PSK that the plaintext holds, when it can be read and nothing is to be
wrong with it: what is judged is the ticket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from engine import codepoints as c
from peers.liar import Client, sealed
from peers.liar.hello import Hello
from peers.liar.observer import Ticket

from .. import fixtures
from ..honest_client import Talk
from ..models import ticket as rules
from ..models.ticket import Fields, Offer
from ..outcomes import AES_128, AES_256, chosen
from .server import CLIENT_OPTIONAL, CLIENT_REQUIRED, Call, Script, Step

VERSION = 1
HEADER = 8

ONLY_KE, OTHER_NAME, ALPN, SHA384, RETRY, OPTIONAL, REQUIRED, EARLY = (1 << n for n in range(8))
SETTINGS = {
    ONLY_KE: "the hello lists psk_ke alone",
    OTHER_NAME: "the hello names another host",
    ALPN: "the hello offers a protocol",
    SHA384: "the hello offers the suite of SHA-384 alone",
    RETRY: "the hello has no share, so that a second one is asked for",
    OPTIONAL: "clients may have a certificate",
    REQUIRED: "clients must have a certificate",
    EARLY: "the hello offers early data",
}
FLIP, CUT, LONGER, SECOND, BINDER, BINDER_LONG = (1 << n for n in range(6))
DAMAGE = {
    FLIP: "a bit of the ticket is flipped",
    CUT: "its last byte is missing",
    LONGER: "it has a byte more",
    SECOND: "a ticket of nobody's goes before it",
    BINDER: "a bit of its binder is flipped",
    BINDER_LONG: "its binder has a byte more",
}
SALT = bytes(range(32))
STRANGER = Ticket(bytes(200), bytes(32), c.TLS_AES_128_GCM_SHA256, 0, 0, b"", 0)
FINGERPRINT = hashlib.sha256(
    x509.load_pem_x509_certificate(fixtures.CHAIN).public_bytes(Encoding.DER)
).digest()


class Offered(NamedTuple):
    """A compiled input: the script that plays it, and what it must come to."""

    script: Script
    outcome: str


def decode(data: bytes) -> Offered | None:
    """The script of an input; None for an input of no version that is known."""
    if len(data) < HEADER or data[0] != VERSION:
        return None
    settings, damage, place = data[1:4]
    skew = int.from_bytes(data[4:HEADER])
    plaintext = data[HEADER:]
    fields = rules.read(plaintext)
    identity, ours, whole = _damaged(plaintext, damage, place)
    client = _client(settings, identity, fields, skew, bool(damage & SECOND))
    edit = _edit(client, damage)
    mode = CLIENT_REQUIRED if settings & REQUIRED else CLIENT_OPTIONAL if settings & OPTIONAL else 0
    steps = [Step(Call.FEED, client.hello(edit))]
    if settings & RETRY:
        client.read(_request(client.suites[0]))
        steps.append(Step(Call.FEED, client.hello(edit)))
    true_age = fixtures.NOW_MS - fields.issue_ms if fields else 0
    offer = Offer(
        fixtures.NOW_MS,
        client.server_name.encode() if isinstance(client.server_name, str) else b"",
        client.protocols[0] if client.protocols else b"",
        client.suites[0],
        FINGERPRINT,
        (true_age + skew + (fields.age_add if fields else 0)) % 2**32,
        bool(settings & REQUIRED),
        not settings & ONLY_KE,
    )
    verdict = rules.verdict(len(identity), ours, whole, fields, offer)
    return Offered(Script(mode, steps), _outcome(verdict, settings, damage))


def _damaged(plaintext: bytes, damage: int, place: int) -> tuple[bytes, bool, bool]:
    """The sealed ticket, whether it names the server's key, and whether it is as it was sealed."""
    good = sealed.seal(fixtures.TICKET_KEY, SALT, plaintext)
    raw = bytearray(good)
    if damage & FLIP:
        raw[place * len(raw) // 256] ^= 1 << (place & 7)
    if damage & CUT:
        del raw[-1]
    if damage & LONGER:
        raw.append(0)
    return bytes(raw), raw[:16] == good[:16], raw == good


def _client(
    settings: int, identity: bytes, fields: Fields | None, skew: int, second: bool
) -> Client:
    known = fields or Fields(0, fixtures.NOW_MS, 0, 0, c.TLS_AES_128_GCM_SHA256, b"", b"", b"", b"")
    ticket = Ticket(
        identity, known.psk or bytes(32), known.suite, known.age_add, 0, b"", known.issue_ms
    )
    suites = (c.TLS_AES_256_GCM_SHA384,) if settings & SHA384 else (c.TLS_AES_128_GCM_SHA256,)
    return Client(
        "harness",
        now_ms=fixtures.NOW_MS,
        server_name="www.server.example" if settings & OTHER_NAME else "server.example",
        suites=suites,
        shares=() if settings & RETRY else None,
        alpn=(b"h2",) if settings & ALPN else (),
        psk_modes=(c.PSK_KE,) if settings & ONLY_KE else (c.PSK_DHE_KE,),
        tickets=(STRANGER, ticket) if second else (ticket,),
        age_skew_ms=skew,
        early_data=bool(settings & EARLY),
    )


def _edit(client: Client, damage: int) -> Callable[[Hello], None]:
    """What the honest client would not do: keep a ticket of another hash, and spoil a binder."""

    def edit(hello: Hello) -> None:
        hello.offers = [client.offer(ticket) for ticket in client.resume]
        hello.drop(c.EXT_PRE_SHARED_KEY)
        hello.put(c.EXT_PRE_SHARED_KEY, b"")
        hello.edit_binders = lambda binders: [*binders[:-1], _spoilt(binders[-1], damage)]

    return edit


def _spoilt(binder: bytes, damage: int) -> bytes:
    if damage & BINDER:
        binder = bytes([binder[0] ^ 1]) + binder[1:]
    return binder + b"\0" if damage & BINDER_LONG else binder


@lru_cache(maxsize=2)
def _request(suite: int) -> bytes:
    """The HelloRetryRequest that the server answers a hello without shares with: always the same,
    because it holds nothing of the hello but its session id."""
    talk = Talk(suites=(suite,), shares=())
    return talk.exchange(talk.client.hello())


def _outcome(verdict: str, settings: int, damage: int) -> str:
    if damage & SECOND and verdict not in ("resumed", "no-psk-dhe-ke"):
        verdict = "unknown"
    if verdict == "resumed" and damage & (BINDER | BINDER_LONG):
        return "tls-server-binder"
    suite = AES_256 if settings & SHA384 else AES_128
    return chosen(suite, retried="yes" if settings & RETRY else "no") + f" verdict={verdict}"
