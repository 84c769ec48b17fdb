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


class Fixture:
    """What the two servers of a run share: the identity, the client, the suite they agreed."""

    def __init__(self) -> None:
        self.identity = peers.identity()
        self.client = peers.client_context()
        self.suites: set[str] = set()


def by_engine(fixture: Fixture, check: bool) -> Turn:
    """This engine, with or without the check of its own signature."""
    now_ms = time.time_ns() // 1_000_000
    engine = Engine.server(64, check_signature=check)
    engine.seed(os.urandom(32))
    engine.add_identity(fixture.identity.chain, fixture.identity.key, [peers.NAME], now_ms)
    out = bytearray(peers.WHOLE)
    filled = memoryview(out)

    def turn(count: int) -> int:
        spent = 0
        for _ in range(count):
            client = peers.Client(fixture.client)
            hello = client.hello()
            start = clock.now()
            engine.serve(0, now_ms)
            engine.feed(0, hello)
            length = engine.take(0, out)
            spent += clock.now() - start
            answer = client.answer(filled[:length])
            start = clock.now()
            engine.feed(0, answer)
            engine.take(0, out)
            spent += clock.now() - start
            if engine.event(0) is not Event.ESTABLISHED:
                raise peers.Untrusted(f"the engine is {engine.event(0).value}")
            start = clock.now()
            engine.drop(0)
            spent += clock.now() - start
        fixture.suites.add(client.suite())
        return spent

    return turn


def by_ssl(fixture: Fixture, tickets: int) -> Turn:
    """Python's `ssl` over MemoryBIO."""
    context = peers.server_context(fixture.identity, tickets)

    def turn(count: int) -> int:
        spent = 0
        for _ in range(count):
            client = peers.Client(fixture.client)
            hello = client.hello()
            start = clock.now()
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            server = context.wrap_bio(incoming, outgoing, server_side=True)
            incoming.write(hello)
            try:
                server.do_handshake()
            except ssl.SSLWantReadError:
                flight = outgoing.read()
            spent += clock.now() - start
            answer = client.answer(flight)
            start = clock.now()
            incoming.write(answer)
            server.do_handshake()
            outgoing.read()
            del server, incoming, outgoing
            spent += clock.now() - start
        fixture.suites.add(client.suite())
        return spent

    return turn


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
    parser.add_argument("--rounds", type=table.positive, default=60, metavar="N",
                        help="rounds; every server runs once in each (default %(default)s)")
    parser.add_argument("--count", type=table.positive, default=25, metavar="N",
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
