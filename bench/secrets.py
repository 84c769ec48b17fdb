"""`residue bench secrets`: what is left of the secrets of connections that ended.

`residue()` scans the engine's own maps. This looks at everything else as well: an engine in a
process of its own serves connections of each kind, the clients are here and know every secret, and
when they are gone the whole of that process's memory is searched for each of them. A copy
is counted by where it lies: in the engine's maps (where there may be none), on the C heap (what
OpenSSL and `cryptography` free without wiping, or keep), or in other memory (Python's own objects).
"""

import argparse
import json
import os
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import secrets_process, table
from ci import arguments
from engine.drbg import Drbg
from engine.layout import ENTROPY, ENTROPY_END
from peers.liar import Client
from peers.liar.identities import Identity, authority, make, pem
from peers.liar.observer import Ticket
from peers.liar.schedule import SUITES, expand_label

PLACES = ("engine", "heap", "other")
COLUMNS = (
    table.Column("connections", "connections"),
    table.Column("secret", "secret"),
    table.Column("looked_for", "looked for"),
    table.Column("engine", "in the engine's maps"),
    table.Column("heap", "on the C heap"),
    table.Column("other", "elsewhere"),
)
LONGEST_MAP = 1 << 28  # what is larger is address space that nobody wrote


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `residue bench secrets`."""
    parser.add_argument(
        "--count",
        type=arguments.positive,
        default=5,
        metavar="N",
        help="connections of each kind (default %(default)s)",
    )
    arguments.json(parser)


class Engine:
    """The engine's process, and the draws it makes, which follow from the seed it was given."""

    def __init__(self, identity: Identity) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.secrets_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        seed, self.ticket_key = os.urandom(32), os.urandom(32)
        self._draws = Drbg(seed)
        self.ask("K", 0, seed + self.ticket_key)
        self.ask("I", 0, identity.chain_pem + b"\0" + identity.key_pem)

    def ask(self, operation: str, slot: int = 0, data: bytes = b"") -> bytes:
        """One call, and its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(secrets_process.FRAME.pack(operation.encode(), slot, len(data)) + data)
        stdin.flush()
        (length,) = struct.unpack(">I", secrets_process.read_into(stdout, 4))
        return bytes(secrets_process.read_into(stdout, length))

    def serve(self, slot: int) -> bytes:
        """Begin a connection; what it drew."""
        self.ask("S", slot)
        return self._draws.draw(ENTROPY_END - ENTROPY)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@dataclass
class Known:
    """Secrets by kind, to be looked for."""

    secrets: dict[str, list[bytes]] = field(default_factory=dict)

    def add(self, kind: str, *values: bytes) -> None:
        """Keep these; a secret is at least 16 bytes, so that a find is no accident."""
        self.secrets.setdefault(kind, []).extend(value for value in values if len(value) >= 16)

    def of(self, client: Client, drawn: bytes) -> None:
        """All that a client knows, and what the server drew for it."""
        self.add("private share", drawn[32:64])
        for ticket in client.tickets:
            self.add("PSK", ticket.secret)
        if client.schedule is None:
            return
        suite = SUITES[client.suite]
        for label, secret in client.schedule.secrets.items():
            if label == "early":
                continue
            traffic = label.endswith("traffic")
            self.add("traffic secret" if traffic else "schedule secret", secret)
            if traffic:
                key = expand_label(suite.hash, secret, "key", b"", suite.key_size)
                self.add("traffic key", key)


def honest(engine: Engine, client: Client, known: Known) -> Client:
    """A whole connection with a round trip, new keys both ways, and another."""
    drawn = engine.serve(0)
    client.read(engine.ask("F", 0, client.hello()))
    if client.state == "retry":
        client.read(engine.ask("F", 0, client.hello()))
    client.read(engine.ask("F", 0, client.finish()))
    for _ in range(2):
        client.read(engine.ask("F", 0, client.send(b"a round trip")))
        known.of(client, drawn)
        client.read(engine.ask("F", 0, client.key_update(1)))
    known.add("traffic secret", *_updated(client))
    return client


def _updated(client: Client) -> list[bytes]:
    """The traffic secrets after a key update, of both directions."""
    assert client.reading is not None and client.writing is not None
    return [client.reading.secret, client.writing.secret]


def full(engine: Engine, known: Known, name: str) -> None:
    """A full handshake."""
    honest(engine, Client(name), known)


def other_suite(engine: Engine, known: Known, name: str) -> None:
    """SHA-384, AES-256, P-256."""
    honest(engine, Client(name, suites=[0x1302], groups=[23]), known)


def retried(engine: Engine, known: Known, name: str) -> None:
    """Over a HelloRetryRequest."""
    honest(engine, Client(name, shares=[]), known)


def resumed(engine: Engine, known: Known, name: str) -> None:
    """One that gets a ticket, and one that comes back with it."""
    first = honest(engine, Client(name, now_ms=secrets_process.NOW_MS), known)
    engine.ask("D", 0)
    tickets: list[Ticket] = first.tickets
    again = Client(name + " again", now_ms=secrets_process.NOW_MS, tickets=tickets)
    if not honest(engine, again, known).resumed:
        raise AssertionError("the ticket was not taken")


def verified(engine: Engine, known: Known, name: str) -> None:
    """A client with a certificate."""
    honest(engine, Client(name, credential=make(("a.client",), usage="client").credential), known)


def abandoned(engine: Engine, known: Known, name: str) -> None:
    """The client never says Finished."""
    client = Client(name)
    drawn = engine.serve(0)
    client.read(engine.ask("F", 0, client.hello()))
    known.of(client, drawn)


def failed(engine: Engine, known: Known, name: str) -> None:
    """A record that does not open."""
    client = honest(engine, Client(name), known)
    engine.ask("F", 0, client.send(b"x")[:-1] + b"?")


KINDS: dict[str, Callable[[Engine, Known, str], None]] = {
    "full": full,
    "AES-256, P-256": other_suite,
    "retried": retried,
    "resumed": resumed,
    "verified client": verified,
    "abandoned": abandoned,
    "failed": failed,
}


def regions(pid: int) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of the writable private memory of a process."""
    for line in Path(f"/proc/{pid}/maps").read_text("utf-8", "surrogateescape").splitlines():
        span, access, _, _, _, *name = line.split(maxsplit=5)
        start, end = (int(part, 16) for part in span.split("-"))
        if "w" in access and end - start < LONGEST_MAP:
            yield start, end, name[0] if name else ""


def search(engine: Engine, known: Known) -> dict[str, Counter[str]]:
    """Where copies of each kind of secret lie now: kind to place to count."""
    own = [(at, at + size) for at, size in json.loads(engine.ask("M")).values()]
    pid = engine.process.pid
    found: dict[str, Counter[str]] = {kind: Counter() for kind in known.secrets}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end, name in regions(pid):
            try:
                memory.seek(start)
                content = memory.read(end - start)
            except OSError:
                continue  # a guard page
            for kind, secrets in known.secrets.items():
                for secret in set(secrets):
                    for at in _places(content, secret):
                        found[kind][_place(start + at, name, own)] += 1
    return found


def _places(content: bytes, secret: bytes) -> Iterator[int]:
    at = content.find(secret)
    while at >= 0:
        yield at
        at = content.find(secret, at + 1)


def _place(address: int, name: str, own: list[tuple[int, int]]) -> str:
    if any(start <= address < end for start, end in own):
        return "engine"
    return "heap" if name == "[heap]" else "other"


def look(kind: str, count: int, identity: Identity) -> list[dict[str, table.Value]]:
    """Rows for connections of one kind, first while the last still lives, then gone."""
    engine = Engine(identity)
    try:
        if kind == "verified client":
            engine.ask("C", 0, pem(authority()))
        known = Known()
        for number in range(count):
            KINDS[kind](engine, known, f"{kind} {number}")
            if number == 0:
                # The search must be able to find: what lives has its keys in the engine's maps.
                live = search(engine, known)
                if kind != "failed" and not live["traffic secret"]["engine"]:
                    raise AssertionError("the search does not see the keys of a live connection")
            engine.ask("D", 0)
        found = search(engine, known)
    finally:
        engine.close()
    return [
        {
            "connections": f"{count} {kind}",
            "secret": name,
            "looked_for": len(set(known.secrets[name])),
            **{place: found[name][place] for place in PLACES},
        }
        for name in sorted(known.secrets)
    ]


def run(args: argparse.Namespace) -> int:
    """Search after each kind; a copy in the engine's maps is a finding (1)."""
    identity = make(("server.example",))
    rows: list[dict[str, table.Value]] = []
    for kind in KINDS:
        rows += look(kind, args.count, identity)
    result = table.Result(
        "secrets",
        COLUMNS,
        rows,
        {"count": args.count},
        ["Copies left when every connection of the kind was dropped; docs/memory.md says whose."],
    )
    table.show(result, args.json)
    return 1 if any(row["engine"] for row in rows) else 0
