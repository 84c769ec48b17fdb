"""`residue play`: the lying client against any TLS server that has a port.

Every rule that a conversation breaks, or keeps, is told with what the server did about it. The
server must stand as the suite needs it; `--make-identities` writes all that it has to be given.
"""

import argparse
import ipaddress
import math
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from ci import arguments
from ci.commands import play_identities
from ci.exits import Exit, Interrupted, Untrusted, UsageError
from ci.progress import Line
from ci.wording import many, meant
from peers.liar import Credential
from peers.liar.conversation import Conversation, Setup
from peers.liar.live import Played, play_one
from peers.liar.suites import SUITES

WAYS = (
    "right",
    "another alert",
    "another outcome",
    "hung",
    "reset",
    "fault",
    "not played",
    "not reached",
)
PATIENCE = 4
JOBS = 4
TIME_IS_UP = "the time was up"
MODES = {"optional": 1, "required": 2}


@dataclass(frozen=True)
class Target:
    """The server, how it was set up, and how it is met."""

    host: str
    port: int
    setup: Setup
    silence: float
    """A server that says nothing for so many seconds is taken to wait."""
    #: Options of every client, where the conversation does not say.
    defaults: Mapping[str, object] = field(default_factory=dict)

    def play(self, conversation: Conversation, until: float) -> Played:
        """One conversation, unless the time is up."""
        if time.monotonic() > until:
            return Played(conversation, "not played", None, TIME_IS_UP)
        played = self._once(conversation, self.silence)
        if played.what not in ("right", "not played") and _silent(played):
            # It may only be slow: it is asked again, and given more time.
            played = self._once(conversation, PATIENCE * self.silence)
        return played

    def _once(self, conversation: Conversation, silence: float) -> Played:
        return play_one(conversation, self.host, self.port, self.setup, silence, self.defaults)


def _silent(played: Played) -> bool:
    """The server said nothing where something was expected."""
    seen = None if played.seen is None else played.seen.outcome
    return seen in ("waiting", "flight", "retry", "established", "resumed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue play`."""
    parser.add_argument("target", nargs="?", metavar="HOST:PORT", help="the server under test")
    parser.add_argument(
        "--suite",
        choices=sorted(SUITES),
        metavar="SUITE",
        default="handshake",
        help="handshake, tickets (the server sends two) or clients (it asks for a certificate);"
        " default handshake",
    )
    parser.add_argument("--only", metavar="GLOB", help="only conversations of such names")
    parser.add_argument("--ca", metavar="FILE", help="verify the server's chain by these PEM roots")
    parser.add_argument(
        "--client-cert",
        nargs=2,
        metavar=("CHAIN", "KEY"),
        help="what a client presents where the conversation does not say",
    )
    parser.add_argument(
        "--client-auth",
        choices=("optional", "required"),
        default="optional",
        help="how the server asks for certificates in suite clients (default optional)",
    )
    parser.add_argument(
        "--tickets",
        type=int,
        metavar="N",
        help="how many tickets the server gives (default 2 in suite tickets, else none)",
    )
    parser.add_argument(
        "--alpn",
        default="",
        metavar="P1,P2",
        help="the server's application protocols, preferred first (default none)",
    )
    parser.add_argument(
        "--seconds", type=positive, default=600, metavar="N", help="stop after N s (default 600)"
    )
    parser.add_argument(
        "--silence",
        type=positive,
        default=0.2,
        metavar="S",
        help="a server that says nothing for S s is taken to wait (default 0.2)",
    )
    arguments.jobs(parser, "conversations at once", JOBS)
    parser.add_argument("--all", action="store_true", help="list what went right, too")
    arguments.json(parser, "the conversations, a list,")
    parser.add_argument(
        "--remote", action="store_true", help="allow a server that is not on this machine"
    )
    parser.add_argument(
        "--make-identities",
        metavar="DIR",
        help="write the certificates and keys that a server under test needs, and end",
    )


def positive(text: str) -> float:
    """A number of seconds: finite, and more than none."""
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError
    return number


def run(args: argparse.Namespace) -> int:
    """Play, print, and say by the exit code whether the server broke a rule."""
    if args.make_identities is not None:
        folder = Path(args.make_identities)
        made = play_identities.write(folder)
        print("\n".join(f"{folder / name}: {what}" for name, what in made.items()))
        print(f"\n{play_identities.usage(folder)}")
        args.json.write(made)
        return Exit.CLEAN
    target = _target(args)
    chosen = [
        one
        for one in SUITES[args.suite].conversations
        if args.only is None or fnmatchcase(one.name, args.only)
    ]
    if not chosen:
        names = [one.name for one in SUITES[args.suite].conversations]
        raise UsageError(
            f"no conversation of suite {args.suite} is named {args.only}{meant(args.only, names)}"
        )
    _reach(target)
    played: list[Played] = []
    interrupted = False
    line = Line("play")
    try:
        for one in _play(chosen, target, args.jobs, args.seconds):
            played.append(one)
            line(f"{len(played)} of {many(len(chosen), 'conversation')}")
    except (Interrupted, KeyboardInterrupt):
        interrupted = True
    line.end()
    print(table(played, args.all), end="")
    args.json.write([as_data(one) for one in played])
    if interrupted:
        raise Interrupted("SIGINT")
    return verdict(played)


def verdict(played: list[Played]) -> Exit:
    """FOUND when a rule is broken. A run that was cut short, or lost its server, is Untrusted."""
    if any(one.fault for one in played):
        return Exit.FOUND
    lost = sum(one.what == "not reached" for one in played)
    if lost:
        raise Untrusted(f"the server could not be reached for {many(lost, 'conversation')}")
    if any(one.detail == TIME_IS_UP for one in played):
        raise Untrusted("the time was up before every conversation was played")
    if all(one.what == "not played" for one in played):
        raise Untrusted("no conversation could be played against this server")
    return Exit.CLEAN


def _target(args: argparse.Namespace) -> Target:
    if args.target is None:
        raise UsageError("which server? residue play HOST:PORT")
    host, _, port = args.target.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise UsageError(f"{args.target} is not HOST:PORT")
    if not args.remote and not _local(host):
        raise UsageError(f"{host} is not this machine; --remote says that you may")
    return Target(host, int(port), _setup(args), args.silence, _defaults(args))


def _setup(args: argparse.Namespace) -> Setup:
    """What the caller says of the server. Conversations that need another are not played."""
    setup = SUITES[args.suite].setup
    if args.suite == "clients":
        roots = play_identities.client_roots()
        setup = replace(setup, client_auth=MODES[args.client_auth], roots=roots)
    if args.tickets is not None:
        if args.tickets < 0:
            raise UsageError("--tickets is 0 or more")
        setup = replace(setup, tickets=args.tickets)
    return replace(setup, alpn=tuple(filter(None, args.alpn.split(","))))


def _defaults(args: argparse.Namespace) -> dict[str, object]:
    defaults: dict[str, object] = {}
    if args.ca:
        defaults["roots"] = _certificates(args.ca)
    if args.client_cert:
        if args.suite == "clients":
            # A client that must have none would present this one.
            raise UsageError("suite clients says of each client what it presents")
        defaults["credential"] = _credential(*args.client_cert)
    return defaults


def _local(host: str) -> bool:
    """A loopback address, or the name of one: a lying client is aimed at nobody by accident."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        raise UsageError(f"{host} is no host that this machine knows") from None
    return all(ipaddress.ip_address(str(one).split("%")[0]).is_loopback for one in found)


def _reach(target: Target) -> None:
    try:
        socket.create_connection((target.host, target.port), timeout=5).close()
    except OSError as error:
        raise Untrusted(
            f"{target.host}:{target.port} is not reached: {error.strerror or error}"
        ) from None


def _play(
    chosen: list[Conversation], target: Target, jobs: int, seconds: float
) -> Iterator[Played]:
    """A few at a time, in order. What is interrupted is not begun; what is begun ends by itself."""
    until = time.monotonic() + seconds
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(lambda one: target.play(one, until), chosen)
    finally:
        pool.shutdown(cancel_futures=True)


def _certificates(path: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(Path(path).read_bytes()))
    except (OSError, ValueError):
        raise UsageError(f"{path} is no file of PEM certificates") from None


def _credential(chain: str, key: str) -> Credential:
    certificates = _certificates(chain)
    try:
        private = load_pem_private_key(Path(key).read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise UsageError(f"{key} is no file of an unencrypted PEM key") from None
    ders = tuple(one.public_bytes(Encoding.DER) for one in certificates)
    return Credential(ders, private)  # type: ignore[arg-type]


def as_data(one: Played) -> dict[str, object]:
    """One conversation as JSON has it."""
    return {
        "suite": one.conversation.suite,
        "name": one.conversation.name,
        "rule": one.conversation.rule,
        "where": one.conversation.where,
        "basis": one.conversation.basis,
        "expected": str(one.conversation.end),
        "what": one.what,
        "seen": None if one.seen is None else str(one.seen),
        "detail": one.detail,
        "broken": one.fault,
    }


def table(played: list[Played], everything: bool) -> str:
    """What differs, the broken rules first; then the counts."""
    lines = []
    shown = [one for one in played if everything or one.what not in ("right", "not played")]
    for title, some in (
        ("rules broken", [one for one in shown if one.fault]),
        ("other differences", [one for one in shown if not one.fault]),
    ):
        if some:
            lines.append(f"{title}:")
        for one in some:
            talk = one.conversation
            lines.append(f"  {one.what:<16} {talk.name}: {talk.rule} ({talk.where})")
            if one.detail:
                lines.append(f"  {'':<16} {one.detail}")
    counts = Counter(one.what for one in played)
    words = ", ".join(f"{counts[way]} {way}" for way in WAYS if counts[way])
    broken = sum(one.fault for one in played)
    breaks = "breaks" if broken == 1 else "break"
    lines.append(
        f"{many(len(played), 'conversation')}: {words}; {broken} {breaks} a rule of the RFC"
    )
    return "\n".join(lines) + "\n"
