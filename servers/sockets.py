"""Sockets as the servers use them: objects only to listen, plain descriptors for connections."""

import contextlib
import os
import socket
from collections.abc import Iterator

BACKLOG = 4096
PORT_TRIES = 16


def listen(addresses: list[str], port: int) -> list[socket.socket]:
    """A listening socket for each address, all on one port; port 0 picks one. Raises OSError.

    Without SO_REUSEPORT: with it, the kernel would share a port that another server of the same
    user already holds, and each would silently get some of the other's connections.
    """
    tries = PORT_TRIES if port == 0 and len(addresses) > 1 else 1
    for attempt in range(tries):
        opened: list[socket.socket] = []
        try:
            chosen = port
            for address in addresses:
                opened.append(_listen(address, chosen, only_v6=_has_ipv4(addresses)))
                chosen = opened[0].getsockname()[1]
            return opened
        except OSError:
            # A port that the first address picked may be held on the next: pick again.
            for listener in opened:
                listener.close()
            if attempt == tries - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _has_ipv4(addresses: list[str]) -> bool:
    return any(":" not in address for address in addresses)


def _listen(address: str, port: int, *, only_v6: bool) -> socket.socket:
    family, kind, protocol, _, where = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it. A flight is written at once; nothing gains by waiting.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            # `::` takes IPv4 too, unless IPv4 has an address of its own to listen on.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(only_v6))
        listener.bind(where)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _socket(fd: int) -> Iterator[socket.SocketType]:
    """A socket object for a call that has no form for a descriptor; it lets go afterwards."""
    # The bare type, because the usual one asks the kernel what kind of socket it was given.
    handle = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, 0, fd)
    try:
        yield handle
    finally:
        handle.detach()


def peek(fd: int, into: memoryview) -> int:
    """How many bytes a read would give, and a copy of them; 0 is the end. Raises OSError."""
    with _socket(fd) as handle:
        return handle.recv_into(into, 0, socket.MSG_PEEK | socket.MSG_DONTWAIT)


def shut_write(fd: int) -> None:
    """Send the peer our end of the stream (FIN), and go on reading."""
    with contextlib.suppress(OSError), _socket(fd) as handle:
        handle.shutdown(socket.SHUT_WR)


def close(fd: int) -> None:
    """Close a connection's descriptor; an error of its last moments is nobody's business."""
    with contextlib.suppress(OSError):
        os.close(fd)
