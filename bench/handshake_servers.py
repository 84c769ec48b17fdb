"""The two servers of `bench.handshake`, and what a round of handshakes with each costs."""

import os
import ssl
import time
from collections.abc import Callable, Sequence

from bench import clock, peers
from engine import Engine, Event

Turn = Callable[[int], int]

AT_ONCE = 32
"""Connections in their handshake together, as behind the server's own limit."""

FULL, RESUMED, MUTUAL = "full", "resumed", "mutual"


class Fixture:
    """What the servers of a run share: the identities, the clients, the suites they agreed."""

    def __init__(self) -> None:
        self.identity = peers.identity()
        self.authority = peers.authority()
        self.suites: set[str] = set()
        plain = peers.client_context()
        self._contexts = {
            FULL: plain,
            RESUMED: plain,
            MUTUAL: peers.client_context(self.authority.client),
        }

    def clients(
        self, kind: str, count: int, session: ssl.SSLSession | None
    ) -> Sequence[peers.Client]:
        """So many clients for a handshake of this kind."""
        return [peers.Client(self._contexts[kind], session) for _ in range(count)]

    def check(self, kind: str, clients: Sequence[peers.Client]) -> None:
        """The handshakes were what they are counted as."""
        self.suites.update(client.suite() for client in clients)
        if any(client.tls.session_reused != (kind == RESUMED) for client in clients):
            raise peers.Untrusted(f"a {kind} handshake was another")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def by_engine(fixture: Fixture, kind: str, check: bool) -> Turn:
    """This engine, with or without the check of its own signature. Where sessions are resumed it
    sends one ticket, as `ssl` does."""
    engine = Engine.server(AT_ONCE, check_signature=check)
    engine.seed(os.urandom(32))
    engine.add_identity(fixture.identity.chain, fixture.identity.key, [peers.NAME], _now_ms())
    if kind == RESUMED:
        engine.set_tickets(1)
    if kind == MUTUAL:
        engine.trust_clients(fixture.authority.root)
        engine.client_auth_mode(2)
    out = memoryview(bytearray(peers.WHOLE))

    def first_session() -> ssl.SSLSession:
        client = fixture.clients(kind, 1, None)[0]
        engine.serve(0, _now_ms())
        engine.feed(0, client.hello())
        engine.feed(0, client.answer(bytes(out[: engine.take(0, out)])))
        session = client.session(bytes(out[: engine.take(0, out)]))
        engine.drop(0)
        return session

    session = first_session() if kind == RESUMED else None

    def turn(count: int) -> int:
        clients = fixture.clients(kind, count, session)
        hellos = [client.hello() for client in clients]
        flights = []
        now_ms = _now_ms()
        start = clock.now()
        for slot, hello in enumerate(hellos):
            engine.serve(slot, now_ms)
            engine.feed(slot, hello)
            flights.append(bytes(out[: engine.take(slot, out)]))
        spent = clock.now() - start
        answers = [client.answer(flight) for client, flight in zip(clients, flights, strict=True)]
        start = clock.now()
        for slot, answer in enumerate(answers):
            engine.feed(slot, answer)
            engine.take(slot, out)
        spent += clock.now() - start
        for slot in range(count):
            if engine.event(slot) is not Event.ESTABLISHED:
                raise peers.Untrusted(f"the engine is {engine.event(slot).value}")
            if kind == MUTUAL and not engine.peer_verified(slot):
                raise peers.Untrusted("the engine verified no client")
        start = clock.now()
        for slot in range(count):
            engine.drop(slot)
        spent += clock.now() - start
        fixture.check(kind, clients)
        return spent

    return _in_batches(turn)


def by_ssl(fixture: Fixture, kind: str, tickets: int) -> Turn:
    """Python's `ssl` over MemoryBIO. OpenSSL sends one ticket only when it resumed."""
    context = peers.server_context(
        fixture.identity, 2, fixture.authority.root if kind == MUTUAL else None
    )

    def begin(hello: bytes) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(hello)
        try:
            server.do_handshake()
        except ssl.SSLWantReadError:
            return server, incoming, outgoing
        raise peers.Untrusted("the server finished before it was answered")

    def first_session() -> ssl.SSLSession:
        client = fixture.clients(kind, 1, None)[0]
        server, incoming, outgoing = begin(client.hello())
        incoming.write(client.answer(outgoing.read()))
        server.do_handshake()
        return client.session(outgoing.read())

    session = first_session() if kind == RESUMED else None
    context.num_tickets = tickets

    def turn(count: int) -> int:
        clients = fixture.clients(kind, count, session)
        hellos = [client.hello() for client in clients]
        servers = []
        flights = []
        start = clock.now()
        for hello in hellos:
            server = begin(hello)
            servers.append(server)
            flights.append(server[2].read())
        spent = clock.now() - start
        answers = [client.answer(flight) for client, flight in zip(clients, flights, strict=True)]
        start = clock.now()
        for (tls, incoming, outgoing), answer in zip(servers, answers, strict=True):
            incoming.write(answer)
            tls.do_handshake()
            outgoing.read()
        spent += clock.now() - start
        if kind == MUTUAL and any(not tls.getpeercert() for tls, _, _ in servers):
            raise peers.Untrusted("ssl verified no client")
        start = clock.now()
        del server, tls, incoming, outgoing
        servers.clear()
        spent += clock.now() - start
        fixture.check(kind, clients)
        return spent

    return _in_batches(turn)


def _in_batches(turn: Turn) -> Turn:
    """The same turn, no more than AT_ONCE connections in their handshake together.

    The calls of a batch follow one another as in a server, whose clients are elsewhere: between
    two calls of one connection a client in this process would empty the caches, and leave them
    filled with what only one of the two servers shares with it.
    """

    def turns(count: int) -> int:
        return sum(turn(min(AT_ONCE, count - at)) for at in range(0, count, AT_ONCE))

    return turns
