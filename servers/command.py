"""`residue serve`: the options of the example servers, and their start.

Everything an operator can get wrong is found before the first connection is taken, and is one line
on standard error and exit code 2 (docs/servers.md).
"""

import argparse
import ipaddress
import os
import resource
import socket
import sys
from collections.abc import Callable

from engine import Engine, Refused
from engine.client_certificate import OPTIONAL, REQUIRED
from engine.tickets import DEFAULT_LIFETIME_S, MAX_COUNT, MAX_LIFETIME_S
from servers import sockets
from servers.addresses import address_text
from servers.clock import SystemClock
from servers.echo import Echo
from servers.files import ServerFiles, Unusable
from servers.lines import Lines
from servers.log import Log
from servers.loop import Loop
from servers.settings import Settings
from servers.signals import Signals
from servers.transfer import Application

STDOUT, STDERR = 1, 2
CLEAN, USAGE = 0, 2
"""The exit codes of this command (docs/exit-codes.md)."""

APPLICATIONS: dict[str, Callable[[], Application]] = {"echo": Echo}
DEFAULTS = Settings()
MAX_CONNECTIONS = 1_048_576
MAX_RATE = 1_000_000
MAX_MS = 2**31 - 1
SPARE_DESCRIPTORS = 32
"""What a server has open besides its connections, and the connection that it is refusing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of SPEC 7 that are built."""
    parser.usage = "residue serve echo --port N --dir D [--identity NAME]... [options]"
    parser.add_argument("server", choices=sorted(APPLICATIONS), help="which server to run")
    parser.add_argument(
        "--port", required=True, type=_between(0, 65535), help="TCP port; 0 picks a free one"
    )
    parser.add_argument(
        "--dir",
        required=True,
        help="directory of everything the server reads: chain.pem and key.pem",
    )
    parser.add_argument(
        "--identity",
        action="append",
        default=[],
        metavar="NAME",
        help="subdirectory with a chain.pem and key.pem of its own; repeatable, the first is the"
        " one for clients that name no other",
    )
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        type=_address,
        metavar="ADDRESS",
        help="address to listen on; repeatable (default 127.0.0.1)",
    )
    parser.add_argument(
        "--alpn", default="", metavar="P1,P2", help="application protocols, preferred first"
    )
    parser.add_argument(
        "--connections",
        type=_between(1, MAX_CONNECTIONS),
        default=DEFAULTS.connections,
        metavar="N",
        help="held at once; one more is closed at once (default %(default)s)",
    )
    parser.add_argument(
        "--handshakes",
        type=_between(1, MAX_CONNECTIONS),
        default=DEFAULTS.handshakes,
        metavar="N",
        help="in progress at once; one more waits (default %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=_between(1, MAX_RATE),
        default=DEFAULTS.rate,
        metavar="N",
        help="handshakes begun in a second; one more waits (default %(default)s)",
    )
    parser.add_argument(
        "--handshake-timeout",
        type=_between(1, MAX_MS),
        default=DEFAULTS.handshake_timeout,
        metavar="MS",
        help="for the wait, for the handshake, and for one record (default %(default)s)",
    )
    parser.add_argument(
        "--idle",
        type=_between(1, MAX_MS),
        default=DEFAULTS.idle,
        metavar="MS",
        help="until a silent connection is closed (default %(default)s)",
    )
    parser.add_argument(
        "--areas",
        type=_between(2, MAX_CONNECTIONS),
        metavar="N",
        help="work areas, for the handshakes and records under way at one instant; at most half"
        " are in handshakes (default: one a connection)",
    )
    parser.add_argument(
        "--tickets",
        type=_between(0, MAX_COUNT),
        default=0,
        metavar="N",
        help="tickets for each connection, to resume it with; 0 gives and takes none"
        " (default %(default)s)",
    )
    parser.add_argument(
        "--ticket-lifetime",
        type=_between(1, MAX_LIFETIME_S),
        default=DEFAULT_LIFETIME_S,
        metavar="S",
        help="how long a ticket resumes, and a key that is no longer the first opens"
        " (default %(default)s)",
    )
    parser.add_argument(
        "--ticket-keys",
        metavar="FILE",
        help="file in --dir of 1 to 4 ticket keys, one a line in 64 hex digits, the current one"
        " first, for servers that resume each other's sessions (default: keys of its own)",
    )
    parser.add_argument(
        "--client-ca",
        metavar="FILE",
        help="file in --dir of the PEM roots that vouch for clients; clients are asked for a"
        " certificate and may have none",
    )
    parser.add_argument(
        "--require-client-cert",
        action="store_true",
        help="a client with no certificate is refused; needs --client-ca",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code."""
    try:
        _serve(args)
    except Unusable as unusable:
        print(f"residue serve: {unusable}", file=sys.stderr)
        return USAGE
    return CLEAN


def _serve(args: argparse.Namespace) -> None:
    settings = _settings(args)
    _allow_descriptors(settings.connections)
    clock = SystemClock()
    log = Log(Lines(STDOUT), Lines(STDERR))
    files = _files(args)
    engine = _engine(settings)
    try:
        engine.seed(os.urandom(32))
        _set_alpn(engine, args.alpn)
        # The lifetime first: that of a file's second key begins when the engine is given it.
        engine.set_tickets(args.tickets, args.ticket_lifetime)
        files.load(engine, log, clock.unix_ms())
        if args.client_ca is not None:
            engine.client_auth_mode(REQUIRED if args.require_client_cert else OPTIONAL)
        with Signals() as signals:
            listeners = _listen(args.bind or ["127.0.0.1"], args.port)
            loop = Loop(
                engine,
                APPLICATIONS[args.server](),
                listeners,
                settings,
                log,
                signals,
                clock,
                lambda: files.reload(engine, log, clock.unix_ms()),
            )
            for listener in listeners:
                log.listening(address_text(listener.getsockname()))
            loop.run()
            log.finish(clock)
    finally:
        engine.close()


def _files(args: argparse.Namespace) -> ServerFiles:
    if args.require_client_cert and args.client_ca is None:
        raise Unusable("--require-client-cert: needs --client-ca")
    if args.ticket_keys is not None and not args.tickets:
        raise Unusable(f"--ticket-keys {args.ticket_keys}: needs --tickets")
    return ServerFiles(args.dir, args.identity, args.ticket_keys, args.client_ca)


def _settings(args: argparse.Namespace) -> Settings:
    # The engine needs one area for traffic while another is in a handshake.
    most = max(2, args.connections)
    if args.areas is not None and args.areas > most:
        raise Unusable(f"--areas {args.areas}: at most one a connection, and there are {most}")
    return Settings(
        connections=args.connections,
        handshakes=args.handshakes,
        rate=args.rate,
        handshake_timeout=args.handshake_timeout,
        idle=args.idle,
        areas=args.areas or most,
    )


def _allow_descriptors(connections: int) -> None:
    """Raise the limit of descriptors as far as it may be, if it must be. Raises Unusable."""
    needed = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Unusable(
            f"--connections {connections}: needs {needed} descriptors and the limit is {hard}"
            " (ulimit -n)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _engine(settings: Settings) -> Engine:
    try:
        return Engine.server(max(2, settings.connections), settings.areas)
    except (OSError, MemoryError, OverflowError):
        raise Unusable(
            f"no memory for {settings.connections} connections and {settings.areas} areas;"
            " try fewer --areas"
        ) from None


def _set_alpn(engine: Engine, protocols: str) -> None:
    try:
        if protocols:
            engine.set_alpn([os.fsencode(protocol) for protocol in protocols.split(",")])
    except Refused as refused:
        raise Unusable(f"--alpn {protocols}: {refused}") from None


def _listen(addresses: list[str], port: int) -> list[socket.socket]:
    try:
        return sockets.listen(addresses, port)
    except OSError as error:
        where = ", ".join(addresses)
        raise Unusable(f"cannot listen on {where} port {port}: {error.strerror}") from None


def _between(low: int, high: int) -> Callable[[str], int]:
    """The type of an option that is a whole number."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high}")
        return int(text)

    return number


def _address(text: str) -> str:
    """The type of an option that is an IPv4 or IPv6 address."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IPv4 or IPv6 address") from None
