"""Tickets beside client certificates, and with a client that is not ours: Python's ssl."""

from __future__ import annotations

import ssl
import time

import pytest

from engine import Event
from peers.liar import identities
from tests.engine.ticket_serving import HOUR, NOW, Serving

ROOT = identities.authority("a root for clients")
ROOTS = identities.pem(ROOT)
DEVICE = identities.make([], issuer=ROOT, usage="client", label="a device")
OPTIONAL, REQUIRED = 1, 2


def asking(mode: int) -> Serving:
    serving = Serving()
    serving.engine.trust_clients(ROOTS)
    serving.engine.client_auth_mode(mode)
    return serving


# Client certificates.


@pytest.mark.parametrize("mode", [OPTIONAL, REQUIRED])
def test_a_client_that_presented_a_certificate_is_sent_no_ticket(mode: int) -> None:
    serving = asking(mode)
    client = serving.client(credential=DEVICE.credential)
    assert serving.connect(client, keep=True) == "none"
    assert serving.engine.peer_verified(0) == 1
    assert client.tickets == []


def test_a_client_with_no_certificate_where_it_is_optional_is_sent_tickets_and_resumes() -> None:
    serving = asking(OPTIONAL)
    client = serving.client()
    serving.connect(client)
    assert client.request is not None
    again = serving.client(client.tickets[0], credential=DEVICE.credential)
    assert serving.connect(again, keep=True) == "resumed"
    # RFC 8446 §4.3.2: a server that took a PSK must not ask.
    assert again.request is None
    assert serving.engine.peer_verified(0) == 0
    assert serving.engine.peer_certificate(0) is None
    assert len(again.tickets) == 2


def test_where_certificates_are_required_no_ticket_is_taken_and_the_client_is_asked() -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.engine.trust_clients(ROOTS)
    serving.engine.client_auth_mode(REQUIRED)
    client = serving.client(ticket, credential=DEVICE.credential)
    assert serving.connect(client, keep=True) == "auth"
    assert client.request is not None
    assert serving.engine.peer_verified(0) == 1
    serving.engine.drop(0)
    empty_handed = serving.client(ticket)
    serving.connect(empty_handed, keep=True)
    assert serving.engine.ticket_verdict(0) == "auth"
    assert serving.engine.failure(0) == "tls-server-client-cert-required"


def test_a_mode_set_after_serve_does_not_judge_that_connection_s_ticket() -> None:
    serving = Serving()
    ticket = serving.ticket()
    client = serving.client(ticket)
    serving.engine.serve(0, NOW)
    serving.engine.trust_clients(ROOTS)
    serving.engine.client_auth_mode(REQUIRED)
    client.read(serving.exchange(0, client.hello()))
    serving.finish(client)
    assert serving.engine.ticket_verdict(0) == "resumed"


def test_a_replaced_store_does_not_touch_a_resumed_connection() -> None:
    serving = asking(OPTIONAL)
    client = serving.client(serving.ticket())
    serving.hello(client)
    serving.engine.trust_clients(ROOTS)
    serving.finish(client)
    assert serving.engine.event(0) is Event.ESTABLISHED


# Python's ssl.


class SslClient:
    """Python's ssl over memory, against a slot of the engine."""

    def __init__(
        self,
        serving: Serving,
        slot: int,
        context: ssl.SSLContext,
        session: ssl.SSLSession | None = None,
    ) -> None:
        self.serving = serving
        self.slot = slot
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(
            self.incoming, self.outgoing, server_hostname="server.example", session=session
        )
        serving.engine.serve(slot, serving.now_ms)
        for _ in range(5):
            try:
                self.object.do_handshake()
            except ssl.SSLWantReadError:
                self.pump()
            else:
                break
        self.pump()
        with pytest.raises(ssl.SSLWantReadError):
            self.object.read(1)

    def pump(self) -> None:
        self.incoming.write(self.serving.exchange(self.slot, self.outgoing.read()))

    def echo(self, data: bytes) -> bytes:
        self.object.write(data)
        self.pump()
        out = bytearray(len(data))
        assert self.serving.engine.recv(self.slot, out) == len(data)
        assert self.serving.engine.send(self.slot, out) == len(data)
        self.pump()
        return self.object.read(len(data))


def context(*, alpn: str = "", curve: str = "") -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if alpn:
        made.set_alpn_protocols([alpn])
    if curve:
        made.set_ecdh_curve(curve)
    return made


def present() -> Serving:
    """A server whose clock is this machine's: OpenSSL's client dates its sessions by its own."""
    now_ms = int(time.time() * 1000)
    return Serving(now_ms=now_ms, end_s=now_ms // 1000 + 86_400)


@pytest.mark.parametrize("curve", ["", "prime256v1", "secp384r1"])
def test_python_s_ssl_resumes_three_times_from_one_session(curve: str) -> None:
    serving = present()
    made = context(curve=curve)
    first = SslClient(serving, 0, made)
    assert first.echo(b"one") == b"one"
    assert not first.object.session_reused
    session = first.object.session
    for slot in (1, 2, 3):
        again = SslClient(serving, slot, made, session)
        assert again.object.session_reused
        assert serving.engine.ticket_verdict(slot) == "resumed"
        assert again.echo(b"two") == b"two"


def test_python_s_ssl_falls_back_when_its_ticket_is_refused() -> None:
    serving = present()
    made = context()
    session = SslClient(serving, 0, made).object.session
    serving.engine.set_ticket_keys([b"n" * 32], serving.now_ms)
    again = SslClient(serving, 1, made, session)
    assert not again.object.session_reused
    assert serving.engine.ticket_verdict(1) == "unknown"
    assert again.echo(b"three") == b"three"


def test_python_s_ssl_reads_eight_tickets_and_goes_on() -> None:
    serving = present()
    serving.engine.set_tickets(8, HOUR // 1000)
    client = SslClient(serving, 0, context())
    assert client.echo(b"x" * 1_000) == b"x" * 1_000
