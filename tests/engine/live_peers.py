"""Clients that are neither ours nor the lying one: Python's ssl, in the place of the pool's client.

They draw their own randomness, so a run with them is not the same twice: they are for the nightly
profile. What the model needs to know of a client is when it speaks and in which records.
"""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import cast

from harnesses.models.pool import NAME, Model
from harnesses.models.pool_connection import pieces
from peers.liar import Client, ServerFault
from peers.liar.identities import authority, make, pem

KINDS = 6
"""The kinds of client that `Model` has; those after them are here."""
PLAIN, RESUMES, PROVES = KINDS, KINDS + 1, KINDS + 2
NO_CHECK_TIME = 0x200000  # the identities are of the harnesses' time, which is not today


@lru_cache(maxsize=2)
def context(proves: bool) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.load_verify_locations(cadata=pem(authority()).decode())
    made.verify_flags |= NO_CHECK_TIME
    if proves:
        identity = make(("device.example",), usage="client")
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "client.pem"
            file.write_bytes(identity.chain_pem + identity.key_pem)
            made.load_cert_chain(file)
    return made


class SslClient:
    """Python's ssl with what `harnesses.models.pool_connection.PoolConnection` asks of a client."""

    credential = None
    request = None

    def __init__(self, proves: bool, asked: bool, session: ssl.SSLSession | None = None) -> None:
        self.state = "start"
        self.received = bytearray()
        self.tickets: list[object] = []
        # A session belongs to its context: nobody has a context that he has no use for.
        proves = proves and asked
        if proves:
            self.request = True
            self.credential = make(("device.example",), usage="client").credential
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.ssl = context(proves).wrap_bio(
            self.incoming, self.outgoing, server_hostname=NAME, session=session
        )

    def hello(self) -> bytes:
        first, self.state = self.state == "start", "hello"
        try:
            if first:
                self.ssl.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.state = "failed"  # an alert was there before its first word
        return self.outgoing.read()

    def read(self, data: bytes) -> None:
        self.incoming.write(data)
        try:
            if self.state == "hello" and data:
                self.ssl.do_handshake()
                self.state = "flight"
            while self.state == "established":
                # Application data may follow the tickets at once; nothing at all is an end.
                said = self.ssl.read(1 << 16)
                if not said:
                    self.state = "closed"
                self.received += said
        except ssl.SSLWantReadError:
            if self.state == "hello" and self.outgoing.pending:
                self.state = "retry"
        except ssl.SSLZeroReturnError:
            self.state = "closed"
        except ssl.SSLError as error:
            if "ALERT" not in (error.reason or ""):
                raise ServerFault("Python's ssl", str(error)) from None
            self.state = "failed"

    def finish(self, apart: bool) -> bytes:
        flight = self.outgoing.read()
        sealed = sum(piece[0] == 23 for piece in pieces(flight))
        assert not self.request or sealed == 3, "each message is in its own record"
        self.state = "established"
        return flight

    def send(self, data: bytes, padding: int = 0) -> bytes:
        with contextlib.suppress(ssl.SSLError):  # after its own close_notify it sends no more
            self.ssl.write(data)
        return self.outgoing.read()

    def close_notify(self) -> bytes:
        with contextlib.suppress(ssl.SSLError):
            self.ssl.unwrap()
        return self.outgoing.read()


class LiveModel(Model):
    """The model with clients of Python's ssl among the others."""

    handshakes = 0
    session: ssl.SSLSession | None = None

    def _client(self, argument: int) -> Client:
        if argument < KINDS:
            return super()._client(argument)
        self.born += 1
        session = self.session if argument == RESUMES else None
        other = SslClient(argument == PROVES, self.order.certificates, session)
        return cast(Client, other)

    def _do_speak(self, slot: int, argument: int) -> None:
        client = self._of(slot)
        before = client.state if client else ""
        super()._do_speak(slot, argument)
        if client and client.state == "established":
            self.handshakes += before != "established"
            if client.request is None and client.ssl.session and client.ssl.session.has_ticket:
                self.session = client.ssl.session

    def _do_key_update(self, slot: int, argument: int) -> None:
        if not self._of(slot):
            super()._do_key_update(slot, argument)

    def _do_empty(self, slot: int, argument: int) -> None:
        if not self._of(slot):
            super()._do_empty(slot, argument)

    def _of(self, slot: int) -> SslClient | None:
        """The client of a slot if it is ours: it says neither KeyUpdate nor empty records."""
        line = self.lines[slot]
        client: object = line.client if line is not None else None
        return client if isinstance(client, SslClient) else None
