"""Handmade inputs of the server harness that resume a session or show a client's certificate.

Tickets are those that the harness's own server gives, or sealed under its known key with one field
wrong; certificates come from the lying client's authorities. Outcomes are written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine import codepoints as c
from peers.liar import sealed
from peers.liar.hello import Hello, psk_modes
from peers.liar.identities import Identity, authority, make
from peers.liar.observer import Ticket
from peers.liar.wire import message

from .. import fixtures
from ..build_identity import CLIENT_ROOT, MIDDLE, client
from ..formats.server import CLIENT_OPTIONAL, CLIENT_REQUIRED
from ..honest_client import Talk
from ..outcomes import AES_128, AES_256, chosen
from .case import Case

SALT = bytes(range(32))
WORD = chosen().replace("waiting", "established")
HOUR_MS = 3_600_000

Edit = Callable[[Hello], object]


def earned(**options: Any) -> Ticket:
    """The first ticket of an honest connection."""
    return Talk(**options).establish().client.tickets[0]


def forged(ticket: Ticket, **lies: Any) -> Ticket:
    """The same ticket sealed anew by a holder of the key, with some of its contents changed."""
    contents = replace(sealed.unseal(fixtures.TICKET_KEY, ticket.identity), **lies)
    identity = sealed.seal(fixtures.TICKET_KEY, SALT, contents.plaintext())
    return replace(ticket, identity=identity)


def flipped(ticket: Ticket, at: int) -> Ticket:
    """One bit of the ticket's bytes."""
    raw = bytearray(ticket.identity)
    raw[at] ^= 1
    return replace(ticket, identity=bytes(raw))


def resumptions() -> dict[str, Case]:
    """ClientHellos that resume, or nearly do: each verdict, and each way to be refused."""
    ticket = earned()
    found: dict[str, Case] = {}

    def back(
        name: str, verdict: str, what: str, *tickets: Ticket, word: str = WORD, **options: Any
    ) -> None:
        talk = Talk(tickets=tickets, **options).establish()
        found[f"ticket-{name}"] = Case(talk.input(), f"{word} verdict={verdict}", what)

    def refused(name: str, outcome: str, what: str, edit: Edit) -> None:
        talk = Talk(tickets=(ticket,))
        talk.parts.append(talk.client.hello(edit))
        found[f"ticket-{name}"] = Case(talk.input(), outcome, what)

    retried = WORD.replace("=no", "=yes")
    sha384 = WORD.replace(AES_128, AES_256)
    tls256 = (c.TLS_AES_256_GCM_SHA384,)
    back("resumed", "resumed", "a right ticket", ticket)
    back("resumed-retry", "resumed", "after a retry", ticket, word=retried, shares=())
    back("resumed-early", "resumed", "early data is refused", ticket, early_data=True)
    back("resumed-sha384", "resumed", "SHA-384", earned(suites=tls256), word=sha384, suites=tls256)
    back("resumed-second", "resumed", "the second is right", flipped(ticket, 0), ticket)
    back("unknown", "unknown", "a key nobody has", flipped(ticket, 0))
    back("tampered-salt", "tampered", "a bit of the salt", flipped(ticket, 20))
    back("tampered-end", "tampered", "a bit of the tag", flipped(ticket, -1))
    back("format", "format", "version 2", forged(ticket, version=2))
    back("format-more", "format", "a byte behind it", forged(ticket, more=b"\0"))
    back("auth", "auth", "a client's certificate", forged(ticket, auth=1))
    expired = forged(ticket, expiry_ms=fixtures.NOW_MS)
    back("expired", "expired", "at the millisecond of its end", expired)
    back("age", "age", "30,001 ms older than it says", ticket, age_skew_ms=30_001)
    back("age-edge", "resumed", "30,000 ms are right", ticket, age_skew_ms=30_000)
    back("name", "name", "another name", ticket, server_name="www.server.example")
    back("identity", "identity", "another leaf", forged(ticket, fingerprint=bytes(32)))
    back("suite", "suite", "another hash", ticket, word=sha384, suites=tls256)
    back("alpn", "alpn", "another protocol", ticket, alpn=(b"h2",))
    back("modes-ke", "no-psk-dhe-ke", "psk_ke alone", ticket, psk_modes=(0,))
    refused("binder", "tls-server-binder", "one bit of the binder", _binder(_flip))
    refused("binder-long", "tls-server-binder", "a byte too long", _binder(lambda b: b + b"\0"))
    refused(
        "binder-short",
        "tls-server-client-hello-format",
        "31 bytes",
        _binder(lambda b: b[:31]),
    )
    refused(
        "modes-none",
        "tls-server-missing-extension",
        "no modes",
        lambda h: h.drop(c.EXT_PSK_KEY_EXCHANGE_MODES),
    )
    refused(
        "modes-empty",
        "tls-server-client-hello-format",
        "an empty list of modes",
        lambda h: h.put(c.EXT_PSK_KEY_EXCHANGE_MODES, psk_modes()),
    )
    return found


def _flip(binder: bytes) -> bytes:
    return bytes([binder[0] ^ 1]) + binder[1:]


def _binder(change: Callable[[bytes], bytes]) -> Edit:
    return lambda h: setattr(h, "edit_binders", lambda all_: [change(all_[0]), *all_[1:]])


def clients() -> dict[str, Case]:
    """Clients with certificates: a good flight for each kind of key, and flights that are not."""
    found: dict[str, Case] = {}

    def honest(name: str, identity: Identity | None, mode: int, what: str) -> None:
        credential = identity and identity.credential
        talk = Talk(settings=mode, credential=credential).establish()
        found[f"client-{name}"] = Case(talk.input(), WORD, what)

    def wrong(
        name: str,
        outcome: str,
        what: str,
        identity: Identity | None = None,
        flight: Callable[[Talk], bytes] | None = None,
        mode: int = CLIENT_REQUIRED,
    ) -> None:
        talk = Talk(settings=mode, credential=identity and identity.credential).shake()
        talk.parts.append(flight(talk) if flight else talk.client.finish(apart=True))
        found[f"client-{name}"] = Case(talk.input(), outcome, what)

    for kind in ("p256", "p384", "ed25519", "rsa2048"):
        honest(kind, client(kind), CLIENT_REQUIRED, f"a key of kind {kind}")
    honest("optional", client("p256"), CLIENT_OPTIONAL, "a certificate that was optional")
    honest("none", None, CLIENT_OPTIONAL, "none where one is optional")
    below = make([], issuer=MIDDLE, usage="client", label="below the middle")
    honest("chain", below, CLIENT_REQUIRED, "an intermediate")

    good = client("p256")
    wrong("required", "tls-server-client-cert-required", "none where one is required")
    stranger = make([], issuer=authority("harness stranger"), usage="client", label="stranger")
    wrong("stranger", "x509-unknown-issuer", "an unknown root", stranger)
    wrong("stranger-optional", "x509-unknown-issuer", "optional", stranger, mode=CLIENT_OPTIONAL)
    server = make([], issuer=CLIENT_ROOT, usage="server", label="a server")
    wrong("usage", "x509-key-usage", "a server's certificate", server)
    p521 = client("p521")
    wrong(
        "p521",
        "x509-unsupported-algorithm",
        "a key of P-521",
        p521,
        lambda t: _records(t, t.client.certificate_message()),
    )
    wrong(
        "garbage",
        "x509-decode",
        "no certificate",
        good,
        lambda t: _records(t, t.client.certificate_message([b"\x30\x03\1\1\1"])),
    )
    wrong(
        "context",
        "tls-server-illegal-parameter",
        "a context",
        good,
        lambda t: _records(t, t.client.certificate_message(context=b"x")),
    )
    wrong(
        "extension",
        "tls-unsupported-extension",
        "an extension nobody asked for",
        good,
        lambda t: _records(t, t.client.certificate_message(extensions=[b"\0\5\0\0"])),
    )
    wrong(
        "six",
        "x509-chain-too-large",
        "six certificates",
        good,
        lambda t: _records(t, t.client.certificate_message([good.der] * 6)),
    )
    wrong(
        "cut",
        "tls-decode-error",
        "a list that ends too soon",
        good,
        lambda t: _records(t, message(c.CERTIFICATE, b"\0\0\0\5abc")),
    )
    wrong("skipped", "tls-unexpected-message", "a Finished where it is due", good, _finished)
    wrong(
        "verify-skipped",
        "tls-unexpected-message",
        "no CertificateVerify",
        good,
        lambda t: _records(t, t.client.add(t.client.certificate_message())) + _finished(t),
    )
    wrong(
        "verify-wrong",
        "tls-bad-certificate-verify",
        "a signature of something else",
        good,
        lambda t: _verify(t, transcript=b"something else"),
    )
    wrong(
        "verify-scheme",
        "tls-server-client-sigalg",
        "a scheme that was not listed",
        good,
        lambda t: _verify(t, scheme=0x0203),
    )
    wrong(
        "verify-other-key",
        "tls-server-client-sigalg",
        "a scheme of another key",
        good,
        lambda t: _verify(t, scheme=c.ED25519),
    )
    return found


def _records(talk: Talk, whole: bytes) -> bytes:
    return talk.client.handshake_bytes(whole)


def _finished(talk: Talk) -> bytes:
    return _records(talk, talk.client.finished_message())


def _verify(talk: Talk, **lies: Any) -> bytes:
    """A good Certificate and a CertificateVerify with something wrong."""
    first = _records(talk, talk.client.add(talk.client.certificate_message()))
    return first + _records(talk, talk.client.certificate_verify_message(**lies))


def cases() -> dict[str, Case]:
    """Every input of this page."""
    return {**resumptions(), **clients()}
