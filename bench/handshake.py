"""`residue bench handshake`: what a handshake costs the server, against `ssl` and the primitives.

Counted: the server's calls from the start of a connection to its end, the making and freeing of its
object included. Not counted: the client, and carrying bytes between the two.
"""

import argparse
import os
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import again, clock, peers, primitives, table
from engine import Engine, Event

Turn = Callable[[int], int]

AT_ONCE = 32
"""Connections in their handshake together, as behind the server's own limit."""


class Fixture:
    """What the two servers of a run share: the identity, the client, the suite they agreed."""

    def __init__(self) -> None:
        self.identity = peers.identity()
        self.client = peers.client_context()
        self.suites: set[str] = set()


def by_engine(fixture: Fixture, check: bool) -> Turn:
    """This engine, with or without the check of its own signature."""
    now_ms = time.time_ns() // 1_000_000
    engine = Engine.server(AT_ONCE, check_signature=check)
    engine.seed(os.urandom(32))
    engine.add_identity(fixture.identity.chain, fixture.identity.key, [peers.NAME], now_ms)
    out = memoryview(bytearray(peers.WHOLE))

    def turn(count: int) -> int:
        clients = [peers.Client(fixture.client) for _ in range(count)]
        hellos = [client.hello() for client in clients]
        flights = []
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
        start = clock.now()
        for slot in range(count):
            engine.drop(slot)
        spent += clock.now() - start
        fixture.suites.update(client.suite() for client in clients)
        return spent

    return _in_batches(turn)


def by_ssl(fixture: Fixture, tickets: int) -> Turn:
    """Python's `ssl` over MemoryBIO."""
    context = peers.server_context(fixture.identity, tickets)

    def turn(count: int) -> int:
        clients = [peers.Client(fixture.client) for _ in range(count)]
        hellos = [client.hello() for client in clients]
        servers = []
        flights = []
        start = clock.now()
        for hello in hellos:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            server = context.wrap_bio(incoming, outgoing, server_side=True)
            servers.append((server, incoming, outgoing))
            incoming.write(hello)
            try:
                server.do_handshake()
            except ssl.SSLWantReadError:
                flights.append(outgoing.read())
        spent = clock.now() - start
        answers = [client.answer(flight) for client, flight in zip(clients, flights, strict=True)]
        start = clock.now()
        for (server, incoming, outgoing), answer in zip(servers, answers, strict=True):
            incoming.write(answer)
            server.do_handshake()
            outgoing.read()
        del server, incoming, outgoing
        servers.clear()
        spent += clock.now() - start
        fixture.suites.update(client.suite() for client in clients)
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


@dataclass(frozen=True)
class Row:
    """A line of the table; the aim is the part of `ssl`'s time to stay under."""

    kind: str
    server: str
    make: Callable[[Fixture], Turn]
    aim: float | None = None


AS_IT_COMES, BARE = "ssl", "ssl, no tickets"
"""The two lines that the others of their kind are divided by."""

ROWS: Sequence[Row] = (
    Row("full", AS_IT_COMES, lambda fixture: by_ssl(fixture, 2)),
    Row("full", BARE, lambda fixture: by_ssl(fixture, 0)),
    Row("full", "engine, unchecked", lambda fixture: by_engine(fixture, False), 0.85),
    Row("full", "engine, checked", lambda fixture: by_engine(fixture, True), 1.2),
    Row("full", "primitives, unchecked", lambda fixture: primitives.full(False)),
    Row("full", "primitives, checked", lambda fixture: primitives.full(True)),
)

_UNLIKE = ("Each server chose its own suite, and `ssl` sends two tickets unless told not to; "
           "like for like: --suite TLS_AES_128_GCM_SHA256 and the second ratio.")

COLUMNS = (
    table.Column("handshake", "handshake"),
    table.Column("server", "server"),
    table.Column("us", "µs", ".1f"),
    table.Column("ratio", "of ssl", ".2f"),
    table.Column("aim", "aim", ".2f"),
    table.Column("bare_ratio", "of ssl, no tickets", ".2f"),
    table.Column("spread", "spread", ".0%"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `residue bench handshake`."""
    parser.add_argument("--rounds", type=table.positive, default=40, metavar="N",
                        help="rounds; every server runs once in each (default %(default)s)")
    parser.add_argument("--count", type=table.positive, default=AT_ONCE, metavar="N",
                        help="handshakes a server a round (default %(default)s)")
    again.add_suite(parser)
    table.add_json(parser)


def measure(rounds: int, count: int) -> table.Result:
    """Run every row, alternating, and divide."""
    fixture = Fixture()
    lanes = [(row, clock.Candidate(row.server, row.make(fixture))) for row in ROWS]
    clock.alternate([lane for _, lane in lanes], rounds, count, "handshake")
    by_name = {(row.kind, row.server): lane for row, lane in lanes}
    rows = [
        {
            "handshake": row.kind,
            "server": row.server,
            "us": lane.median / 1000,
            "ratio": lane.ratio(by_name[row.kind, AS_IT_COMES]),
            "aim": row.aim,
            "bare_ratio": lane.ratio(by_name[row.kind, BARE]),
            "spread": lane.spread(),
        }
        for row, lane in lanes
    ]
    conditions: dict[str, table.Value] = {
        "rounds": rounds,
        "handshakes a round": count,
        "suites": " and ".join(sorted(fixture.suites)),
        "identity": "P-256",
        "collector": "off while timing",
    }
    notes = [clock.METHOD]
    if len(fixture.suites) > 1:
        notes.append(_UNLIKE)
    return table.Result("handshake", COLUMNS, rows, conditions, notes)


def run(args: argparse.Namespace) -> int:
    """The command: 0, 2 when the file cannot be written, 3 when a side failed."""
    if not again.is_restricted():
        fault = table.check_json(args.json)
        if fault:
            print(f"residue bench: {fault}", file=sys.stderr)
            return 2
        return again.start("handshake", args)
    try:
        table.show(measure(args.rounds, args.count), args.json)
    except peers.Untrusted as error:
        print(f"residue bench: {error}", file=sys.stderr)
        return 3
    return 0
