"""How a client and a server meet: anything with `exchange`."""

from __future__ import annotations

from typing import Protocol

from .client import Client


class Transport(Protocol):
    """Give the server bytes, get what it says next; nothing when it has no more to say.

    ``ended`` is true once the server has closed; ``exchange(b"")`` only listens.
    """

    ended: bool

    def exchange(self, data: bytes) -> bytes:
        """Send bytes; all that the other side says to them."""

    def close(self) -> None:
        """End it without a word."""


def connect(client: Client, transport: Transport) -> Client:
    """An honest handshake, a retry included; stops when the server refuses it."""
    client.read(transport.exchange(client.hello()))
    if client.state == "retry":
        client.read(transport.exchange(client.hello()))
    if client.state == "flight":
        client.read(transport.exchange(client.finish()))
    return client
