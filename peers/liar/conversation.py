"""A conversation: a script in which one thing is wrong, the rule it breaks, and how it must end.

A suite is a list of them. Most are a hello with an edit::

    suite.hello("two-host-names", "a server_name holds one name of a type", "RFC 6066 §3",
                refused("tls-server-illegal-parameter"), lambda h: h.put(SERVER_NAME, ...))

and the rest are functions over a `Stage`::

    @suite.case("finished-twice", "there is one Finished", "RFC 8446 §4.4.4",
                refused("tls-unexpected-message", sealed=True))
    def _(stage: Stage) -> Connection:
        c = stage.connect().honest()
        return c.tell(c.client.handshake_bytes(c.client.finished_message()))

``basis`` says whose rule the end is: "rfc" binds every server, "policy" is this project's choice
where the RFC leaves one. A conversation whose ``setup`` or script needs the server's program (its
clock, its keys) cannot be played against a server that only has a port; it says so when it tries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from . import identities
from .client import Client, Edit
from .ends import End
from .fault import ScriptError, ServerFault
from .identities import Identity
from .transport import Transport

Basis = Literal["rfc", "policy"]


#: What servers of others are told: one that speaks HTTP answers and stays, one that echoes echoes.
REQUEST = b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n"


class NotPlayable(Exception):
    """This server cannot be brought into the position the conversation needs."""


@dataclass(frozen=True)
class Setup:
    """How the server's program stands before the first byte."""

    identities: tuple[Identity, ...] = ()
    alpn: tuple[str, ...] = ()
    tickets: int = 0
    lifetime: int = 3600
    ticket_keys: tuple[bytes, ...] = ()
    client_auth: int = 0
    roots: bytes = b""
    aes: bool = True
    seeded: bool = True
    areas: int | None = None


class Verified(NamedTuple):
    """A verified client as the program sees it."""

    certificate: bytes
    subject: bytes
    serial: bytes
    fingerprint: bytes
    not_after: int
    san: tuple[tuple[int, bytes], ...]


class Server(Protocol):
    """The other side. `call` reaches its program: "" when taken, the tag when refused.

    A server with a port only raises `NotPlayable` for a setup or a call it cannot have. ``own``
    says that it is this project's engine: it echoes data, and answers for itself in `said` and
    `verified`.
    """

    own: bool

    def prepare(self, setup: Setup, now_ms: int) -> None:
        """Be a new server with these settings, at this time in Unix milliseconds."""

    def connect(self) -> Transport:
        """A new connection."""

    def call(self, name: str, *arguments: object) -> str:
        """Have the server's program make a call; the tag when it is refused, or nothing."""

    def said(self, transport: Transport) -> tuple[str, str]:
        """The tag the connection failed with and its ticket verdict; "" for what is not known."""
        ...

    def verified(self, transport: Transport) -> Verified | None:
        """The client that the server's program is told of, or None."""
        ...

    def close(self) -> None:
        """End the server and all its connections."""


class Connection:
    """A client, its transport, and the steps that scripts are made of. Each returns itself."""

    def __init__(self, stage: Stage, client: Client, transport: Transport) -> None:
        self.stage = stage
        self.client = client
        self.transport = transport

    def tell(self, data: bytes) -> Connection:
        """Send bytes, and read and check whatever the server says to them."""
        self.stage.log.append(("client", data))
        reply = self.transport.exchange(data)
        while reply:
            self.stage.log.append(("server", reply))
            self.client.read(reply)
            if self.client.state in ("flight", "retry", "failed"):
                break  # it is our turn, and the server knows it
            reply = self.transport.exchange(b"")
        if self.transport.ended and not self.client.ended:
            self.client.eof()
        return self

    def hello(self, edit: Edit | None = None, **how: Any) -> Connection:
        """Our hello, the first or the second."""
        return self.tell(self.client.hello(edit, **how))

    def finish(self, **how: Any) -> Connection:
        """Our honest second flight; it needs the server's."""
        self.need("flight")
        return self.tell(self.client.finish(**how))

    def flight(self, edit: Edit | None = None) -> Connection:
        """Hellos, honest but for the edit of the first, until the server's flight is read."""
        self.hello(edit)
        if self.client.state == "retry":
            self.hello()
        return self.need("flight")

    def honest(self, edit: Edit | None = None) -> Connection:
        """A whole handshake and, where the server echoes, a round trip."""
        return self.flight(edit).finish().echo()

    def echo(self, data: bytes = b"ping") -> Connection:
        """A round trip under the application keys; only our own server is known to echo."""
        if self.client.state != "established" or self.transport.ended:
            return self
        if not self.stage.server.own and data == b"ping":
            data = REQUEST
        before = len(self.client.received)
        self.tell(self.client.send(data))
        if self.stage.server.own and self.client.state == "established":
            back = bytes(self.client.received[before:])
            if back != data:
                raise ServerFault("the echo gives back what it was sent", f"{len(back)} bytes")
        return self

    def listen(self) -> Connection:
        """Read what the server says by itself."""
        return self.tell(b"")

    def end(self) -> Connection:
        """Our transport ends."""
        self.transport.close()
        return self

    def need(self, state: str) -> Connection:
        """The script only makes sense in this state of the client."""
        if self.client.state != state:
            alerts = ", ".join(str(a) for a in self.client.alerts)
            raise ScriptError(f"wanted {state}, is {self.client.state} ({alerts})")
        return self


class Stage:
    """What a script holds: the server, the clock, and the connections it opens."""

    def __init__(self, server: Server, setup: Setup, name: str) -> None:
        self.server = server
        self.setup = setup
        self.name = name
        self.now_ms = identities.NOW_MS
        self.log: list[tuple[str, bytes]] = []
        self.connections: list[Connection] = []
        self.answers: list[str] = []

    def connect(self, twin: str = "", **options: Any) -> Connection:
        """A new connection; ``options`` are `Client`'s. Two of one ``twin`` say the same bytes."""
        count = len(self.connections)
        options.setdefault("now_ms", self.now_ms)
        options.setdefault("exact", self.server.own)
        for name, value in getattr(self.server, "client_defaults", {}).items():
            options.setdefault(name, value)
        if not self.server.own:
            # Some servers serve one connection at a time, and some are made for a test only.
            for earlier in self.connections:
                earlier.transport.close()
        client = Client(twin or f"{self.name} {count}", **options)
        connection = Connection(self, client, self.server.connect())
        self.connections.append(connection)
        return connection

    def at_our_time(self, timed: bool = True) -> None:
        """The conversation is about the server's clock, which must be ours to set."""
        if timed and not self.server.own:
            raise NotPlayable("the server's clock is its own")

    def call(self, name: str, *arguments: object) -> str:
        """A call of the server's program; its answer is kept."""
        self.log.append(("call", name.encode()))
        answer = self.server.call(name, *arguments)
        self.answers.append(answer)
        return answer

    def pass_time(self, ms: int, tell: bool = True) -> None:
        """Move the clock of both sides; ``tell`` False leaves the server to find out at serve."""
        self.now_ms += ms
        self.server.call("time", self.now_ms)
        if tell:
            self.server.call("set_time", self.now_ms)
        for connection in self.connections:
            connection.client.now_ms = self.now_ms


Script = Callable[[Stage], Connection | None]


@dataclass(frozen=True)
class Conversation:
    """A script of the client that breaks one rule, and the end that it must come to."""

    suite: str
    name: str
    rule: str
    where: str
    basis: Basis
    end: End
    script: Script
    setup: Setup = field(default_factory=Setup)

    @property
    def honest(self) -> bool:
        """Nothing is wrong in it: it may be replayed in any pieces with the same end."""
        return self.end.outcome in ("established", "resumed", "closed")


class Suite:
    """A list of conversations with the same first setup."""

    def __init__(self, name: str, setup: Setup) -> None:
        self.name = name
        self.setup = setup
        self.conversations: list[Conversation] = []

    def add(
        self, name: str, rule: str, where: str, end: End, script: Script,
        basis: Basis = "rfc", setup: Setup | None = None,
    ) -> None:  # fmt: skip
        """Add a conversation."""
        self.conversations.append(
            Conversation(self.name, name, rule, where, basis, end, script, setup or self.setup)
        )

    def case(
        self, name: str, rule: str, where: str, end: End,
        basis: Basis = "rfc", setup: Setup | None = None,
    ) -> Callable[[Script], Script]:  # fmt: skip
        """A decorator: `add` with the script that it decorates."""

        def keep(script: Script) -> Script:
            self.add(name, rule, where, end, script, basis, setup)
            return script

        return keep

    def hello(
        self, name: str, rule: str, where: str, end: End, edit: Edit | None = None,
        basis: Basis = "rfc", setup: Setup | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """A first hello with an edit; what the server then allows is gone through with."""

        def script(stage: Stage) -> Connection:
            c = stage.connect(**options).hello(edit)
            if c.client.state == "retry":
                c.hello()
            return c.finish().echo() if c.client.state == "flight" else c

        self.add(name, rule, where, end, script, basis, setup)


@dataclass
class Outcome:
    """The end that was seen, and what is wrong with it (nothing, if right)."""

    seen: End
    detail: str = ""
    wrong: list[str] = field(default_factory=list)
    log: list[tuple[str, bytes]] = field(default_factory=list)


def play(conversation: Conversation, server: Server) -> Outcome:
    """Play it once. Raises `NotPlayable` and nothing else for what a server does."""
    stage = Stage(server, conversation.setup, conversation.name)
    server.prepare(conversation.setup, stage.now_ms)
    detail = ""
    connection: Connection | None = None
    try:
        connection = conversation.script(stage)
        seen = _seen(stage, connection)
    except ServerFault as fault:
        seen, detail = End("fault"), str(fault)
    except AssertionError as error:
        seen, detail = End("script"), str(error) or "a step of the script does not follow"
        if stage.connections:
            seen = _seen(stage, stage.connections[-1])
    outcome = Outcome(seen, detail, log=stage.log)
    outcome.wrong = _differences(conversation.end, outcome, stage, connection)
    return outcome


def _seen(stage: Stage, connection: Connection | None) -> End:
    if connection is None:
        return End("config", tag=stage.answers[-1] if stage.answers else "")
    client = connection.client
    tag, verdict = stage.server.said(connection.transport)
    state = client.state
    fatal = [a for a in client.alerts if a.level == 2]
    if fatal:
        return End("alert", fatal[-1].description, bool(fatal[-1].key), tag, verdict)
    if state == "closed":
        return End("closed", tag=tag, verdict=verdict)
    if connection.transport.ended:
        return End("dropped", tag=tag, verdict=verdict)
    if state == "established":
        return End("resumed" if client.resumed else state, tag=tag, verdict=verdict)
    return End(state if state in ("flight", "retry") else "waiting", tag=tag, verdict=verdict)


def _differences(
    want: End, outcome: Outcome, stage: Stage, connection: Connection | None
) -> list[str]:
    seen = outcome.seen
    wrong = []
    if (want.outcome, want.alert) != (seen.outcome, seen.alert):
        wrong.append(f"wanted {want}, saw {seen}")
    elif want.alert is not None and want.sealed != seen.sealed:
        wrong.append(f"the alert is {'sealed' if seen.sealed else 'in the clear'}")
    if outcome.detail:
        wrong.append(outcome.detail)
    if stage.server.own and not wrong:
        if want.tag != seen.tag:
            wrong.append(f"wanted {want.tag or 'no refusal'}, the engine says {seen.tag or 'none'}")
        if want.verdict and want.verdict != seen.verdict:
            wrong.append(f"wanted the verdict {want.verdict}, saw {seen.verdict}")
    if connection is not None and not wrong:
        for name, value in want.facts:
            if name in _OWN_FACTS and not stage.server.own:
                continue
            found = _fact(name, stage, connection)
            if found != value:
                wrong.append(f"wanted {name} {value!r}, saw {found!r}")
    return wrong


#: Facts that only our own server is known to give: it echoes, at once, and under our names.
_OWN_FACTS = ("received", "updates", "served", "verified", "answers", "name_answered")


def _fact(name: str, stage: Stage, connection: Connection) -> object:
    """A fact by name: the client's attribute, or one of these."""
    client = connection.client
    if name == "served":
        leaf = client.chain[0] if client.chain else b""
        return next((i.names[0] for i in stage.setup.identities if i.der == leaf), None)
    if name == "answers":
        return tuple(stage.answers)
    if name == "tickets":
        return len(client.tickets)
    if name == "verified":
        return stage.server.verified(connection.transport) is not None
    if name == "asked":
        return client.request is not None
    if name == "received":
        return bytes(client.received)
    if name == "updates":
        return tuple(client.key_updates)
    return getattr(client, name)
