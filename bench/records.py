"""`residue bench records`: small round trips and large echoes over one connection, against `ssl`.

The client seals its records before the clock starts; what the server answers is kept and opened
after it has stopped, so that only the server's calls are timed and every byte is still compared.
"""

import argparse
import os
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bench import clock, peers, rerun, table
from ci import arguments
from engine import Engine, Event

Turn = Callable[[int], int]

SMALL, LARGE = 64, 16384
_ROOM = 512
"""Bytes that a record and what may go out with it (a KeyUpdate) take beyond the data."""
_CACHED = 131072


class Fixture:
    """What the servers of a run share, and the data that is echoed."""

    def __init__(self) -> None:
        self.identity = peers.identity()
        self.client = peers.client_context()
        self.suites: set[str] = set()


def by_engine(fixture: Fixture, size: int, resting: int | None) -> Turn:
    """This engine: feed, recv, send, take. With `resting` 0 each trip leases and settles."""
    now_ms = time.time_ns() // 1_000_000
    engine = Engine.server(64)
    if resting is not None:
        engine.set_resting(resting)
    engine.seed(os.urandom(32))
    engine.add_identity(fixture.identity.chain, fixture.identity.key, [peers.NAME], now_ms)
    client = peers.Client(fixture.client)
    room = bytearray(peers.WHOLE)
    engine.serve(0, now_ms)
    engine.feed(0, client.hello())
    engine.feed(0, client.answer(bytes(room[: engine.take(0, room)])))
    engine.take(0, room)
    if engine.event(0) is not Event.ESTABLISHED:
        raise peers.Untrusted(f"the engine is {engine.event(0).value}")
    fixture.suites.add(client.suite())
    data = os.urandom(size)
    plain = memoryview(bytearray(LARGE))
    feed, recv, send, take = engine.feed, engine.recv, engine.send, engine.take

    answer = memoryview(bytearray(_batch(size) * (size + 32) + _ROOM))

    def turn(count: int) -> int:
        records = [client.seal(data) for _ in range(count)]
        at = 0
        start = clock.now()
        for record in records:
            feed(0, record)
            send(0, plain[: recv(0, plain)])
            at += take(0, answer[at:])
        spent = clock.now() - start
        _compare(client, bytes(answer[:at]), data, count)
        return spent

    return _in_batches(turn, size)


def by_ssl(fixture: Fixture, size: int) -> Turn:
    """Python's `ssl`: write to the buffer, read, write, read from the buffer."""
    context = peers.server_context(fixture.identity)
    client = peers.Client(fixture.client)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(client.hello())
    try:
        server.do_handshake()
    except ssl.SSLWantReadError:
        flight = outgoing.read()
    incoming.write(client.answer(flight))
    server.do_handshake()
    fixture.suites.add(client.suite())
    data = os.urandom(size)
    put, read, write, get = incoming.write, server.read, server.write, outgoing.read

    def turn(count: int) -> int:
        records = [client.seal(data) for _ in range(count)]
        answers = []
        start = clock.now()
        for record in records:
            put(record)
            write(read(LARGE))
            answers.append(get())
        spent = clock.now() - start
        _compare(client, b"".join(answers), data, count)
        return spent

    return _in_batches(turn, size)


def by_primitives(fixture: Fixture, size: int) -> Turn:
    """Two passes of the AEAD with ready keys: open and seal in place, nothing else."""
    del fixture
    key = AESGCM(bytes(16))
    nonce, header = bytes(12), bytes(5)
    record = key.encrypt(nonce, os.urandom(size) + b"\x17", header)
    plain = bytearray(size + 1)
    sealed = bytearray(len(record))

    def turn(count: int) -> int:
        start = clock.now()
        for _ in range(count):
            key.decrypt_into(nonce, record, header, plain)
            key.encrypt_into(nonce, plain, header, sealed)
        return clock.now() - start

    return turn


def _batch(size: int) -> int:
    """How many records are ready at once: what a processor's own cache holds, as the bytes that a
    server has just read from its socket would be."""
    return max(1, _CACHED // size)


def _in_batches(turn: Turn, size: int) -> Turn:
    """The same turn, a batch at a time."""
    batch = _batch(size)

    def turns(count: int) -> int:
        return sum(turn(min(batch, count - at)) for at in range(0, count, batch))

    return turns


def _compare(client: peers.Client, answer: bytes, data: bytes, count: int) -> None:
    """Every byte came back, in order."""
    if client.opened(answer) != data * count:
        raise peers.Untrusted("the echo is not what was sent")


@dataclass(frozen=True)
class Row:
    """A line of the table. The aim of small trips is a rate, of large ones a ratio to `ssl`."""

    size: int
    server: str
    make: Callable[[Fixture, int], Turn]
    aim: str | None = None


REFERENCE = "ssl"

ROWS: Sequence[Row] = tuple(
    row
    for size, aim in ((SMALL, "200,000 a second"), (LARGE, "1.5 of ssl"))
    for row in (
        Row(size, REFERENCE, by_ssl),
        Row(size, "engine, resting", lambda fixture, size: by_engine(fixture, size, None), aim),
        Row(size, "engine, set_resting(0)", lambda fixture, size: by_engine(fixture, size, 0)),
        Row(size, "primitives", by_primitives),
    )
)

COLUMNS = (
    table.Column("bytes", "bytes", ","),
    table.Column("server", "server"),
    table.Column("us", "µs", ".2f"),
    table.Column("least", "least", ".2f"),
    table.Column("per_second", "trips a second", ",.0f"),
    table.Column("mb_per_second", "MB/s", ",.0f"),
    table.Column("speed", "speed of ssl", ".2f"),
    table.Column("aim", "aim"),
    table.Column("spread", "spread", ".0%"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `residue bench records`."""
    parser.add_argument(
        "--rounds",
        type=arguments.positive,
        default=60,
        metavar="N",
        help="rounds; every server runs once in each (default %(default)s)",
    )
    parser.add_argument(
        "--count",
        type=arguments.positive,
        default=1000,
        metavar="N",
        help="small trips a server a round; a tenth of it large ones (default %(default)s)",
    )
    rerun.add_suite(parser)
    arguments.json(parser)


def measure(rounds: int, count: int) -> table.Result:
    """The two sizes one after the other, the servers of a size alternating."""
    fixture = Fixture()
    rows = []
    for size, trips in ((SMALL, count), (LARGE, max(1, count // 10))):
        lanes = [
            (row, clock.Candidate(row.server, row.make(fixture, size)))
            for row in ROWS
            if row.size == size
        ]
        clock.alternate([lane for _, lane in lanes], rounds, trips, f"records of {size} bytes")
        reference = next(lane for row, lane in lanes if row.server == REFERENCE)
        rows += [
            {
                "bytes": size,
                "server": row.server,
                "us": lane.median / 1000,
                "least": lane.least / 1000,
                "per_second": 1e9 / lane.median,
                "mb_per_second": size * 1000 / lane.median,
                "speed": 1 / lane.ratio(reference),
                "aim": row.aim,
                "spread": lane.spread(),
            }
            for row, lane in lanes
        ]
    conditions: dict[str, table.Value] = {
        "rounds": rounds,
        "trips a round": f"{count} small, {max(1, count // 10)} large",
        "suites": " and ".join(sorted(fixture.suites)),
        "collector": "off while timing",
    }
    return table.Result("records", COLUMNS, rows, conditions, [clock.METHOD])


def run(args: argparse.Namespace) -> int:
    """The command: 0, or 3 when a side failed."""
    if not rerun.is_restricted():
        return rerun.start("records", args)
    try:
        table.show(measure(args.rounds, args.count), args.json)
    except peers.Untrusted as error:
        print(f"residue bench: {error}", file=sys.stderr)
        return 3
    return 0
