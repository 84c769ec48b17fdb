"""Tickets that a server sends right behind its Finished, as GnuTLS and Go do (RFC 8446 §4.6.1)."""

import pytest

from peers.liar import Client, codes
from peers.liar.fault import ServerFault
from peers.liar.identities import NOW_MS
from peers.liar.messages import Request
from peers.liar.suites import HANDSHAKE
from peers.liar.wire import message, u8, vec16
from peers.memory import EngineServer

TICKET = message(
    codes.NEW_SESSION_TICKET, bytes(8) + u8(1) + b"n" + vec16(b"an identity") + vec16(b"")
)


def in_flight(exact: bool) -> Client:
    """A client that has read the server's Finished and not sent its own."""
    server = EngineServer()
    server.prepare(HANDSHAKE.setup, NOW_MS)
    client = Client("tickets ahead", exact=exact, now_ms=NOW_MS)
    client.read(server.connect().exchange(client.hello()))
    assert client.state == "flight"
    return client


def test_a_ticket_ahead_is_a_ticket_once_our_finished_is_sent() -> None:
    client = in_flight(exact=False)
    client._fragment(TICKET)
    assert client.tickets == []
    client.finish()
    (ticket,) = client.tickets
    assert ticket.identity == b"an identity"
    assert client.schedule is not None
    assert ticket.secret == client.schedule.ticket_psk(b"n")


def test_this_projects_server_promises_none() -> None:
    with pytest.raises(ServerFault, match="no ticket before our Finished"):
        in_flight(exact=True)._fragment(TICKET)


def test_who_is_asked_for_a_certificate_gets_none_ahead() -> None:
    client = in_flight(exact=False)
    client.request = Request(b"", [], [], [], {})
    with pytest.raises(ServerFault, match=r"§4\.6\.1"):
        client._fragment(TICKET)
