"""Addresses: how a peer's is kept in numbers, and how one is written in a log line.

A peer costs two words and a port, because a table of a hundred thousand idle connections has no
room for a tuple and a string each. IPv4 is kept as an IPv4-mapped IPv6 address (RFC 4291
§2.5.5.2), so that a peer is the same peer whichever socket accepted it.
"""

import socket
from typing import Any, NamedTuple

MAPPED = bytes(10) + b"\xff\xff"


class Peer(NamedTuple):
    """An address and port as signed 64-bit words and a number."""

    high: int
    low: int
    port: int


def pack_peer(address: tuple[Any, ...]) -> Peer:
    """The peer that `socket.accept` names."""
    host = str(address[0]).partition("%")[0]
    if ":" in host:
        raw = socket.inet_pton(socket.AF_INET6, host)
    else:
        raw = MAPPED + socket.inet_pton(socket.AF_INET, host)
    high = int.from_bytes(raw[:8], "big", signed=True)
    low = int.from_bytes(raw[8:], "big", signed=True)
    return Peer(high, low, int(address[1]))


def peer_text(peer: Peer) -> str:
    """ADDRESS:PORT, IPv6 in brackets, a mapped IPv4 address as IPv4."""
    raw = peer.high.to_bytes(8, "big", signed=True) + peer.low.to_bytes(8, "big", signed=True)
    if raw.startswith(MAPPED):
        return f"{socket.inet_ntop(socket.AF_INET, raw[12:])}:{peer.port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw)}]:{peer.port}"


def address_text(address: tuple[Any, ...]) -> str:
    """ADDRESS:PORT of a listening socket."""
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
