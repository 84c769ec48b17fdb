"""Any TLS server at a host and port, as the other side of the conversations.

What cannot be known over a socket is waited for: a server that says nothing for ``quiet`` seconds
is taken to wait. Nothing a server does raises here: a reset is an end without a word.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .conversation import Conversation, NotPlayable, Outcome, Setup, Verified, play
from .ends import End
from .transport import Transport

#: A server may decline every ticket and go on with a full handshake (RFC 8446 §4.2.11).
DECLINED = ("resumed", "established")


class SocketTransport:
    """One connection. ``exchange`` gives what comes first; ask again with nothing for more."""

    def __init__(self, address: tuple[str, int], quiet: float, limit: float) -> None:
        self.ended = False
        self.reset = False
        self.quiet = quiet
        self._until = time.monotonic() + limit
        self._socket = socket.create_connection(address, timeout=limit)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, data: bytes) -> bytes:
        """Send, then read until the server is quiet, or the conversation's time is over."""
        if self.ended:
            return b""
        if time.monotonic() > self._until:
            self.ended = True  # a server that never stops talking would keep us for ever
            return b""
        try:
            if data:
                self._socket.settimeout(max(0.01, self._until - time.monotonic()))
                self._socket.sendall(data)
        except OSError:
            pass  # what it said before it closed is still to be read
        try:
            self._socket.settimeout(max(0.01, min(self.quiet, self._until - time.monotonic())))
            said = self._socket.recv(1 << 16)
        except TimeoutError:
            return b""
        except OSError:
            self.reset = self.ended = True
            return b""
        self.ended = not said
        return said

    def close(self) -> None:
        """Close the socket."""
        self.ended = True
        self._socket.close()


class LiveServer:
    """A server that was set up as ``setup`` says, by somebody else."""

    own = False

    def __init__(
        self, host: str, port: int, setup: Setup, *, quiet: float = 0.2, limit: float = 0.0
    ) -> None:
        self.address = (host, port)
        self.setup = setup
        self.quiet = quiet
        self.limit = limit or max(10.0, 50 * quiet)
        self.transports: list[SocketTransport] = []
        self.client_defaults: dict[str, object] = {}

    def prepare(self, setup: Setup, now_ms: int) -> None:
        """Refuse what this server cannot be; nothing can be changed."""
        has = self.setup
        for name, wanted, found in (
            ("this list of protocols", setup.alpn, has.alpn),
            ("this mode of client authentication", setup.client_auth, has.client_auth),
            ("this number of tickets", setup.tickets, has.tickets),
            ("this lifetime of tickets", setup.lifetime, has.lifetime),
            ("these ticket keys", setup.ticket_keys, has.ticket_keys),
            ("these roots", setup.roots, has.roots if setup.roots else b""),
            ("a program that turns AES instructions off", setup.aes, True),
            ("this number of areas", setup.areas, None),
            ("a program that leaves entropy out", setup.seeded, True),
        ):
            if wanted != found and not (name == "these ticket keys" and has.tickets):
                raise NotPlayable(f"the server has not {name}")
        if setup.identities and setup.identities[0] != has.identities[0]:
            raise NotPlayable("the server has another identity")

    def connect(self) -> SocketTransport:
        """A new connection to the address."""
        transport = SocketTransport(self.address, self.quiet, self.limit)
        self.transports.append(transport)
        return transport

    def call(self, name: str, *arguments: object) -> str:
        """Raises NotPlayable: the program of a server on a socket is out of reach."""
        raise NotPlayable(f"the server's program is out of reach ({name})")

    def said(self, transport: Transport) -> tuple[str, str]:
        """Nothing: refusal and verdict of a server on a socket are not known."""
        return "", ""

    def verified(self, transport: Transport) -> Verified | None:
        """None: the identity that a server on a socket has verified is not known."""
        return None

    def close(self) -> None:
        """Close every connection."""
        for transport in self.transports:
            transport.close()
        self.transports.clear()


@dataclass(frozen=True)
class Played:
    """One conversation against one server. ``what`` is one of these words:

    right, another alert, another outcome, hung, reset, fault, not played, not reached
    """

    conversation: Conversation
    what: str
    seen: End | None = None
    detail: str = ""

    @property
    def fault(self) -> bool:
        """What the server did is against the RFC, and not only against this project's choice."""
        wrong = self.what not in ("right", "not played", "not reached")
        if self.what == "fault":
            return True
        if self.seen and (self.conversation.end.outcome, self.seen.outcome) == DECLINED:
            return False
        # Which alert it is the RFC often leaves open (§6.2), and no client acts on it.
        return wrong and self.what != "another alert" and self.conversation.basis == "rfc"


def _word(conversation: Conversation, outcome: Outcome, server: LiveServer) -> str:
    want, seen = conversation.end, outcome.seen
    if seen.outcome == "fault":
        # What only this project's specification asks for binds nobody else.
        return "another outcome" if outcome.detail.startswith("SPEC") else "fault"
    if not outcome.wrong:
        return "right"
    # The same alert under another key is another alert too: its protection is the server's to
    # choose while both sides have keys for either.
    if want.outcome == seen.outcome == "alert":
        return "another alert"
    if any(t.reset for t in server.transports):
        return "reset"
    waits = ("waiting", "flight", "retry")
    if seen.outcome in waits and want.outcome not in waits:
        return "hung"
    return "another outcome"


def play_one(
    conversation: Conversation, host: str, port: int, setup: Setup, quiet: float = 0.2,
    defaults: Mapping[str, object] | None = None,
) -> Played:  # fmt: skip
    """Play one. ``defaults`` are options of `Client` where the conversation does not say."""
    server = LiveServer(host, port, setup, quiet=quiet)
    server.client_defaults = dict(defaults or {})
    try:
        outcome = play(conversation, server)
        what = _word(conversation, outcome, server)
        return Played(conversation, what, outcome.seen, "; ".join(outcome.wrong))
    except NotPlayable as reason:
        return Played(conversation, "not played", None, str(reason))
    except OSError as error:
        return Played(conversation, "not reached", None, str(error))
    except Exception as error:
        # The server's answer led the script where it has nothing to say. Whatever this is, a
        # server's author is told of it as of any other outcome, and the next one is played.
        return Played(conversation, "another outcome", None, repr(error))
    finally:
        server.close()


def play_batch(
    conversations: Iterable[Conversation], host: str, port: int, setup: Setup, *,
    quiet: float = 0.2, jobs: int = 4, defaults: Mapping[str, object] | None = None,
) -> list[Played]:  # fmt: skip
    """Play them, a few at a time; results come in the order of the conversations."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(
            pool.map(lambda c: play_one(c, host, port, setup, quiet, defaults), conversations)
        )
