"""`residue bench handshake`: what a handshake costs the server, against `ssl` and the primitives.

Counted: the server's calls from the start of a connection to its end, the making and freeing of its
object included. Not counted: the client, and carrying bytes between the two.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import clock, peers, primitives, rerun, table
from bench.handshake_servers import AT_ONCE, FULL, MUTUAL, RESUMED, Fixture, Turn, by_engine, by_ssl
from ci import arguments


@dataclass(frozen=True)
class Row:
    """A line of the table; the aim is the part of `ssl`'s time to stay under."""

    kind: str
    server: str
    make: Callable[[Fixture], Turn]
    aim: float | None = None


AS_IT_COMES, BARE = "ssl", "ssl, no tickets"
"""The two lines that the others of their kind are divided by."""


def _rows(kind: str, aim: float, checked_aim: float | None = None) -> list[Row]:
    """The lines of one kind of handshake. One that is resumed signs nothing."""
    rows = [
        Row(kind, AS_IT_COMES, lambda fixture: by_ssl(fixture, kind, 2)),
        Row(kind, BARE, lambda fixture: by_ssl(fixture, kind, 0)),
    ]
    if kind == RESUMED:
        return [
            *rows,
            Row(kind, "engine", lambda fixture: by_engine(fixture, kind, False), aim),
            Row(kind, "primitives", lambda _: primitives.turn(kind, False)),
        ]
    return [
        *rows,
        Row(kind, "engine, unchecked", lambda fixture: by_engine(fixture, kind, False), aim),
        Row(kind, "engine, checked", lambda fixture: by_engine(fixture, kind, True), checked_aim),
        Row(kind, "primitives, unchecked", lambda _: primitives.turn(kind, False)),
        Row(kind, "primitives, checked", lambda _: primitives.turn(kind, True)),
    ]


KINDS = (FULL, RESUMED, MUTUAL)
ROWS: Sequence[Row] = (*_rows(FULL, 0.85, 1.2), *_rows(RESUMED, 0.9), *_rows(MUTUAL, 0.5))


_UNLIKE = (
    "Each server chose its own suite, and `ssl` sends two tickets unless told not to; "
    "like for like: --suite TLS_AES_128_GCM_SHA256 and the second ratio."
)

COLUMNS = (
    table.Column("handshake", "handshake"),
    table.Column("server", "server"),
    table.Column("us", "µs", ".1f"),
    table.Column("least", "least", ".1f"),
    table.Column("ratio", "of ssl", ".2f"),
    table.Column("aim", "aim", ".2f"),
    table.Column("bare_ratio", "of ssl, no tickets", ".2f"),
    table.Column("spread", "spread", ".0%"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `residue bench handshake`."""
    parser.add_argument(
        "--rounds",
        type=arguments.positive,
        default=40,
        metavar="N",
        help="rounds; every server runs once in each (default %(default)s)",
    )
    parser.add_argument(
        "--count",
        type=arguments.positive,
        default=AT_ONCE,
        metavar="N",
        help="handshakes a server a round (default %(default)s)",
    )
    parser.add_argument("--kind", choices=KINDS, help="only these (default: all three)")
    rerun.add_suite(parser)
    arguments.json(parser)


def measure(rounds: int, count: int, kinds: Sequence[str]) -> table.Result:
    """Run the rows of each kind, alternating, and divide."""
    fixture = Fixture()
    lanes = [
        (row, clock.Candidate(row.server, row.make(fixture))) for row in ROWS if row.kind in kinds
    ]
    for kind in kinds:
        together = [lane for row, lane in lanes if row.kind == kind]
        clock.alternate(together, rounds, count, f"{kind} handshakes")
    by_name = {(row.kind, row.server): lane for row, lane in lanes}
    rows = [
        {
            "handshake": row.kind,
            "server": row.server,
            "us": lane.median / 1000,
            "least": lane.least / 1000,
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
    """The command: 0, or 3 when a side failed."""
    if not rerun.is_restricted():
        return rerun.start("handshake", args)
    try:
        table.show(measure(args.rounds, args.count, [args.kind] if args.kind else KINDS), args.json)
    except peers.Untrusted as error:
        print(f"residue bench: {error}", file=sys.stderr)
        return 3
    return 0
