"""`residue play`: the lying client against any TLS server that has a port.

Every rule that a conversation breaks, or keeps, is told with what the server did about it. The
server must stand as the suite needs it; `--make-identities` writes all that it has to be given.
"""

import argparse
import ipaddress
import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ci import identities
from ci.exits import Exit, Interrupted, Untrusted, UsageError
from peers.liar import Credential
from peers.liar.conversation import Conversation, Setup
from peers.liar.live import Played, play_batch
from peers.liar.suites import SUITES

WAYS = ("right", "another alert", "another outcome", "hung", "reset", "fault", "not played")
BATCH = 16


@dataclass(frozen=True)
class Target:
    """The server, and how it is met."""

    host: str
    port: int
    setup: Setup
    quiet: float
    jobs: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue play`."""
    parser.add_argument("target", nargs="?", metavar="HOST:PORT", help="the server under test")
    parser.add_argument(
        "--suite",
        choices=sorted(SUITES),
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
        "--seconds", type=float, default=600, metavar="N", help="stop after N s (default 600)"
    )
    parser.add_argument(
        "--quiet",
        type=float,
        default=0.2,
        metavar="S",
        help="a server that says nothing for S s is taken to wait (default 0.2)",
    )
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="at once (default 4)")
    parser.add_argument("--all", action="store_true", help="list what went right, too")
    parser.add_argument("--json", action="store_true", help="print a list of objects")
    parser.add_argument(
        "--remote", action="store_true", help="allow a server that is not on this machine"
    )
    parser.add_argument(
        "--make-identities",
        metavar="DIR",
        help="write the certificates and keys that a server under test needs, and end",
    )


def run(args: argparse.Namespace) -> int:
    """Play, print, and say by the exit code whether the server broke a rule."""
    if args.make_identities is not None:
        for line in identities.write(Path(args.make_identities)):
            print(line)
        return Exit.CLEAN
    target = _target(args)
    chosen = [
        one
        for one in SUITES[args.suite].conversations
        if args.only is None or fnmatchcase(one.name, args.only)
    ]
    if not chosen:
        raise UsageError(f"no conversation of suite {args.suite} is named {args.only}")
    _reach(target)
    played: list[Played] = []
    interrupted = False
    try:
        for one in _play(chosen, target, args):
            played.append(one)
            _progress(len(played), len(chosen))
    except (Interrupted, KeyboardInterrupt):
        interrupted = True
    _progress_end()
    if args.json:
        print(json.dumps([as_data(one) for one in played], indent=1))
    else:
        print(table(played, args.all), end="")
    if interrupted:
        raise Interrupted("SIGINT")
    return verdict(played)


def verdict(played: list[Played]) -> Exit:
    """FOUND when a rule is broken; a run that reached nothing is Untrusted."""
    reached = [one for one in played if one.what not in ("not played", "not reached")]
    if not reached:
        raise Untrusted("no conversation could be played against this server")
    return Exit.FOUND if any(one.fault for one in reached) else Exit.CLEAN


def _target(args: argparse.Namespace) -> Target:
    if args.target is None:
        raise UsageError("which server? residue play HOST:PORT")
    host, _, port = args.target.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or not 1 <= int(port) <= 65_535:
        raise UsageError(f"{args.target} is not HOST:PORT")
    if args.jobs < 1 or args.seconds <= 0 or args.quiet <= 0:
        raise UsageError("--jobs, --seconds and --quiet are more than 0")
    if not args.remote and not _local(host):
        raise UsageError(f"{host} is not this machine; --remote says that you may")
    setup = SUITES[args.suite].setup
    if args.suite == "clients":
        mode = 2 if args.client_auth == "required" else 1
        setup = replace(setup, client_auth=mode, roots=identities.client_roots())
    return Target(host, int(port), setup, args.quiet, args.jobs)


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
    chosen: list[Conversation], target: Target, args: argparse.Namespace
) -> Iterator[Played]:
    """A batch at a time, so that a time limit ends between two."""
    defaults: dict[str, object] = {}
    if args.ca:
        defaults["roots"] = _roots(args.ca)
    if args.client_cert:
        defaults["credential"] = _credential(*args.client_cert)
    until = time.monotonic() + args.seconds
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        if time.monotonic() > until:
            yield from (Played(one, "not played", None, "the time was up") for one in batch)
            continue
        yield from play_batch(
            batch,
            target.host,
            target.port,
            target.setup,
            quiet=target.quiet,
            jobs=target.jobs,
            defaults=defaults,
        )


def _roots(path: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(Path(path).read_bytes()))
    except (OSError, ValueError):
        raise UsageError(f"{path} is no file of PEM certificates") from None


def _credential(chain: str, key: str) -> Credential:
    from cryptography.hazmat.primitives.serialization import Encoding

    certificates = _roots(chain)
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
    words = ", ".join(f"{counts[way]} {way}" for way in (*WAYS, "not reached") if counts[way])
    broken = sum(one.fault for one in played)
    lines.append(f"{len(played)} conversations: {words}; {broken} break a rule of the RFC")
    return "\n".join(lines) + "\n"


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{done} of {of} conversations")
        sys.stderr.flush()
    elif done % 100 == 0:
        sys.stderr.write(f"{done} of {of} conversations\n")


def _progress_end() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
