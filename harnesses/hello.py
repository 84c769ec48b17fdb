"""Harness hello: a ClientHello's body through its parser and every choice made from it.

The input is the body, without the record's and the message's headers. It is the one input that
every peer controls, so nothing but a refusal that a ClientHello can earn, or a choice, may come of
it; the same comes of it twice; no strict prefix of one that is answered is answered; and the engine
that gets the same body in records says the same.
"""

from __future__ import annotations

import os
from operator import attrgetter

from engine import Engine
from engine import codepoints as c
from engine.hello import Choice, ClientHello, HelloFault, Policy, choose, parse, require_scheme
from engine.refusals import AT_HELLO, START, Refusal

from . import fixtures
from .connection import Connection
from .oracles import Broken, check_memory, check_work, looked, one_in
from .whitebox import seed_again

MAX_LEN = 4_096

POLICY = Policy(c.SUITES_WITH_AES, c.GROUPS, fixtures.ALPN)

# The refusals that a first ClientHello's body can earn (SPEC 1.2) from its parser and the choices.
# What stands behind it in its record is the record layer's to refuse, a key share that is no point
# the key exchange's, a binder the tickets'.
REFUSALS = frozenset(refusal for refusal in Refusal if START in refusal.where.get(AT_HELLO, ())) - {
    Refusal.UNEXPECTED_MESSAGE,
    Refusal.KEY_SHARE,
    Refusal.SERVER_BINDER,
}

# Measured over the committed corpus at most 0.6 lines a byte and 260 besides, and 40 bytes of
# memory a byte of input (a list of 16-bit numbers as Python's) and 3,000 besides; doubled.
LINES, LINES_PER_BYTE = 600, 4
MEMORY, MEMORY_PER_BYTE = 16_384, 96

_offers = attrgetter(*ClientHello.__slots__)
_engines: list[Engine] = []
os.register_at_fork(after_in_child=_engines.clear)


def answer(body: bytes) -> tuple[Refusal | Choice, ClientHello | None]:
    """What the parser and the choices make of a body, with tickets off; Broken if it raised."""
    hello = None
    try:
        hello = parse(body)
        choice = choose(hello, POLICY)
        # Asked once there is an answer to sign: a retry signs nothing, and its second hello may
        # offer a ticket that is taken (SPEC 1.3).
        if hello.identities is not None and choice.share is not None:
            require_scheme(hello)
    except HelloFault as fault:
        return fault.refusal, hello
    except Exception as error:
        raise Broken("raised", f"{type(error).__name__} from a ClientHello") from error
    return choice, hello


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the outcome, or Broken. `thorough` leaves no oracle to a sample."""
    found, hello = answer(data)
    again, hello_again = answer(data)
    looked("raised", "repeat")
    if found != again or (hello and _offers(hello)) != (hello_again and _offers(hello_again)):
        raise Broken("repeat", "a second call answers otherwise")
    if isinstance(found, Refusal):
        looked("refusal")
        if found not in REFUSALS:
            raise Broken("refusal", f"{found.tag} is no refusal of a ClientHello")
    else:
        check_prefixes(data, thorough)
    if thorough or one_in(64, data):
        check_engine(data, found)
    if thorough or one_in(256, data):
        check_work(lambda: answer(data), LINES + LINES_PER_BYTE * len(data))
    if thorough or one_in(1024, data):
        check_memory(lambda: answer(data), MEMORY + MEMORY_PER_BYTE * len(data))
    if isinstance(found, Refusal):
        return found.tag
    suite, group = c.SUITE_NAMES[found.suite], c.GROUP_NAMES[found.group]
    return f"waiting suite={suite} group={group} retried={'no' if found.share else 'yes'}"


def check_prefixes(data: bytes, every: bool) -> None:
    """`prefix`: of an accepted body no strict prefix is accepted. While fuzzing three are tried."""
    looked("prefix")
    size = len(data)
    cuts = range(size) if every else (size - 1, size // 2, size * data[1] // 256)
    for cut in cuts:
        if not isinstance(answer(data[:cut])[0], Refusal):
            raise Broken("prefix", "a strict prefix of an accepted ClientHello is accepted")


def check_engine(data: bytes, found: Refusal | Choice) -> None:
    """`engine`: fed the body in records, the engine refuses with the same tag or answers alike."""
    looked("engine")
    # Taken out, so that an engine that an oracle reported is never used again.
    engine = _engines.pop() if _engines else fixtures.server(1, 1, tickets=False)
    seed_again(engine, fixtures.SEED)
    connection = Connection(engine, 0)
    connection.serve()
    connection.feed_all(hello_records(data))
    failure = connection.failure
    if isinstance(found, Refusal):
        agrees = failure is found
    elif failure is not None:
        # Only the key exchange sees that a share of the right length is no point.
        agrees = failure is Refusal.KEY_SHARE and found.share is not None
    elif found.share is None:
        agrees = connection.answered() == (0, 0, True)
    else:
        agrees = connection.answered() == (found.suite, found.group, False)
    if not agrees:
        raise Broken("engine", f"the engine says {failure and failure.tag}, its parser otherwise")
    connection.drop()
    _engines.append(engine)


def hello_records(body: bytes) -> bytes:
    """A ClientHello's body as the records that carry it, each as full as it may be."""
    whole = bytes([c.CLIENT_HELLO]) + len(body).to_bytes(3) + body
    pieces = [whole[at : at + 16_384] for at in range(0, len(whole), 16_384)]
    header = bytes([c.HANDSHAKE]) + c.VERSION_TLS_1_2.to_bytes(2)
    return b"".join(header + len(piece).to_bytes(2) + piece for piece in pieces)
