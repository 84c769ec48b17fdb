"""`residue bench memory`: what a connection keeps resident, phase by phase.

The server is another process, the clients stay in this one. Resident is RssAnon + RssShmem + VmSwap
of the server's process over what it was when idle, divided by the connections it then holds.
Handshakes run a few at a time, as they do behind a server's limit, so the first two phases are
figures of connections in a handshake and the others of all.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator

from bench import clock, peers, table
from bench.targets import EngineProcess, ServerProcess, Target, descriptors
from ci import arguments

RECORD = 16384

COLUMNS = (
    table.Column("phase", "phase"),
    table.Column("connections", "connections", ","),
    table.Column("resident", "KiB resident", ",.0f"),
    table.Column("each", "KiB each", ".2f"),
    table.Column("aim", "aim", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `residue bench memory`."""
    parser.add_argument(
        "--count",
        type=arguments.positive,
        default=10_000,
        metavar="N",
        help="connections (default %(default)s)",
    )
    parser.add_argument(
        "--areas",
        type=arguments.positive,
        metavar="N",
        help="areas of the engine (default: one a connection)",
    )
    parser.add_argument(
        "--handshakes",
        type=arguments.positive,
        default=32,
        metavar="N",
        help="handshakes in progress at once (default %(default)s)",
    )
    parser.add_argument(
        "--resting",
        type=int,
        metavar="N",
        help="set_resting of the engine (default: the engine's own)",
    )
    parser.add_argument(
        "--server",
        action="store_true",
        help="the echo server and real sockets instead of the engine alone",
    )
    parser.add_argument(
        "--client-cert",
        action="store_true",
        help="every client shows a certificate, and is verified",
    )
    arguments.json(parser)


class Crowd:
    """Every client of a run, and where each stands."""

    def __init__(self, target: Target, count: int, shown: peers.Identity | None) -> None:
        self.target = target
        self.count = count
        self.clients: list[peers.Client] = []
        self._context = peers.client_context(shown)
        self._data = os.urandom(RECORD)
        self._waiting: list[bytes] = []

    def connect(self, count: int) -> range:
        """The next `count` connections; no byte yet."""
        first = len(self.clients)
        for slot in range(first, first + count):
            self.target.connect(slot)
            self.clients.append(peers.Client(self._context))
        return range(first, first + count)

    def shake(self, slots: range) -> dict[int, bytes]:
        """Their ClientHello, and the server's flight read: what the client would say next."""
        for slot in slots:
            self._send(slot, self.clients[slot].hello())
        return {slot: self._until(slot, self.clients[slot].accept) for slot in slots}

    def establish(self, answers: dict[int, bytes]) -> None:
        """Their Finished."""
        for slot, answer in answers.items():
            self._send(slot, answer)

    def echo(self) -> None:
        """A record each, one connection after the other."""
        for slot in self._each("echoed"):
            self._send(slot, self.clients[slot].seal(self._data))
            self._read_echo(slot)

    def half(self) -> int:
        """Half a record each; answers how many connections could take it. What was not taken is
        kept: the engine has no area for it, and a server would leave it in its socket."""
        held = 0
        for slot in self._each("half a record"):
            record = self.clients[slot].seal(self._data)
            taken = self.target.send(slot, record[: len(record) // 2])
            self._waiting.append(record[taken:])
            held += taken > 0
        return held

    def finish(self) -> None:
        """The other half, and the echo."""
        for slot in self._each("all echoed"):
            self._send(slot, self._waiting[slot])
            self._read_echo(slot)

    def _each(self, phase: str) -> Iterator[int]:
        for slot in range(self.count):
            if slot % 64 == 63 or slot + 1 == self.count:
                clock.progress(phase, slot + 1, self.count)
            yield slot

    def _send(self, slot: int, data: bytes) -> None:
        if self.target.send(slot, data) != len(data):
            raise peers.Untrusted("a connection did not take what it was sent")

    def _until(self, slot: int, accept: Callable[[bytes], bytes | None]) -> bytes:
        while True:
            answer = accept(self.target.receive(slot))
            if answer is not None:
                return answer

    def _read_echo(self, slot: int) -> None:
        client, got = self.clients[slot], b""
        while len(got) < RECORD:
            got += client.opened(self.target.receive(slot))
        if got != self._data:
            raise peers.Untrusted("the echo is not what was sent")


def phases(
    target: Target, count: int, at_once: int, few_areas: bool, shown: peers.Identity | None
) -> list[dict[str, table.Value]]:
    """Every phase in turn, each weighed at its end."""
    crowd = Crowd(target, count, shown)
    idle = target.resident()
    rows: list[dict[str, table.Value]] = []

    def weigh(phase: str, connections: int, aim: float | None = None) -> None:
        over = target.resident() - idle
        rows.append(
            {
                "phase": phase,
                "connections": connections,
                "resident": over,
                "each": over / connections,
                "aim": aim,
            }
        )

    slots = crowd.connect(min(at_once, count))
    weigh("connected", len(slots))
    answers = crowd.shake(slots)
    weigh("handshake", len(slots))
    crowd.establish(answers)
    while len(crowd.clients) < count:
        slots = crowd.connect(min(at_once, count - len(crowd.clients)))
        crowd.establish(crowd.shake(slots))
        clock.progress("established", len(crowd.clients), count)
    # A verified client's leaf may cost so much more.
    leaf = 1.5 if shown is not None else 0.0
    weigh("established", count, 2.0 + leaf)
    crowd.echo()
    weigh("echoed", count, 3.0 + leaf)
    held = crowd.half()
    weigh("half a record", count, 3.0 + leaf if few_areas else None)
    rows[-1]["holding"] = held
    crowd.finish()
    weigh("all echoed", count)
    target.check()
    return rows


def measure(args: argparse.Namespace) -> table.Result:
    """Start the target, run the phases, stop it."""
    areas: int | None = args.areas
    # The server lets no more than half of its areas be in handshakes.
    room: int = args.count if areas is None else areas // 2 if args.server else areas
    at_once: int = min(args.handshakes, max(1, room))
    authority = peers.authority() if args.client_cert else None
    roots = None if authority is None else authority.root
    shown = None if authority is None else authority.client
    target: Target
    if args.server:
        target = ServerProcess(args.count, areas, at_once, roots)
    else:
        target = EngineProcess(args.count, areas, args.resting, roots)
    with target:
        rows = phases(target, args.count, at_once, areas is not None, shown)
    holding = next(row["holding"] for row in rows if "holding" in row)
    conditions: dict[str, table.Value] = {
        "connections": args.count,
        "areas": areas if areas is not None else "one a connection",
        "handshakes at once": at_once,
        "held": "by the echo server" if args.server else "by the engine alone",
        "record": RECORD,
        "clients": "verified" if args.client_cert else "without a certificate",
    }
    notes = ["KiB of the server's process over its idle start: RssAnon + RssShmem + VmSwap."]
    if not args.server:
        notes.append(f"Half a record was taken by {holding} connections.")
    return table.Result("memory", COLUMNS, rows, conditions, notes)


def _usage(args: argparse.Namespace) -> str | None:
    """What is wrong with the options, before anything is started."""
    if args.areas is not None and args.areas > args.count:
        return "--areas is more than --count"
    if args.server and args.resting is not None:
        return "--resting is for the engine alone"
    if args.resting is not None and not 0 <= args.resting <= (args.areas or args.count):
        return "--resting is from 0 to the areas"
    if args.server and args.count > descriptors():
        return f"this process may open no more than {descriptors()} connections (ulimit -n)"
    return None


def run(args: argparse.Namespace) -> int:
    """The command: 0, 2 for a wrong option, 3 when a side failed."""
    fault = _usage(args)
    if fault:
        print(f"residue bench: {fault}", file=sys.stderr)
        return 2
    try:
        table.show(measure(args), args.json)
    except peers.Untrusted as error:
        print(f"residue bench: {error}", file=sys.stderr)
        return 3
    return 0
