"""Harness clientauth: the handlers of Certificate and CertificateVerify, with the input as message.

No record layer: the slot is as `serve` leaves it, but for the state that a flight would have led
to, so what is run is the reading of the messages, the chain and the signature. Whatever is accepted
must be believable to `cryptography` too (`harnesses.models.clientauth`). The input's format is in
`harnesses.formats.clientauth`.
"""

from __future__ import annotations

import hashlib
import os

from cryptography import x509

from engine import Engine, Refusal
from engine import codepoints as c
from engine.layout import (
    AUTH_MODE,
    ESTABLISHED,
    STATE,
    WAIT_CERTIFICATE,
    WAIT_CERTIFICATE_VERIFY,
    WAIT_FINISHED,
)
from engine.pool import Area
from peers.liar.wire import message

from . import fixtures
from .formats.clientauth import Shown, decode
from .models.clientauth import doubt, holds_key
from .oracles import Broken, check_memory, check_work, looked, one_in
from .server import UNKNOWN
from .whitebox import check_zero

MAX_LEN = 4_096
ROOTS = (x509.load_pem_x509_certificate(fixtures.CLIENTS),)
BEFORE = b"what was said before the client's Certificate"

# Measured over the committed corpus: at most 1,900 lines and 12 kB; then room for a chain that
# climbs in vain eight times and for certificates of many names.
LINES, LINES_PER_BYTE = 16_000, 16
MEMORY, MEMORY_PER_BYTE = 131_072, 32

_engines: list[Engine] = []
os.register_at_fork(after_in_child=_engines.clear)


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the outcome, or Broken. `thorough` leaves no oracle to a sample."""
    shown = decode(data)
    if shown is None:
        return UNKNOWN
    # Taken out, so that an engine that an oracle reported is never used again.
    engine = _engines.pop() if _engines else fixtures.server(1, 1)
    outcome = _run(engine, shown)
    if thorough or one_in(256, data):
        check_work(lambda: _run(engine, shown), LINES + LINES_PER_BYTE * len(data))
    if thorough or one_in(1024, data):
        check_memory(lambda: _run(engine, shown) and None, MEMORY + MEMORY_PER_BYTE * len(data))
    _engines.append(engine)
    return outcome


def _run(engine: Engine, shown: Shown) -> str:
    engine.client_auth_mode(1 if shown.optional else 2)
    engine.serve(0, fixtures.NOW_MS)
    area = engine._pool.held[0]
    area.words[STATE] = WAIT_CERTIFICATE
    area.transcript = hashlib.sha256(BEFORE)
    try:
        outcome = _handle(engine, area, shown)
    except Broken:
        raise
    except Exception as error:
        raise Broken("raised", f"{type(error).__name__} from a client's message") from error
    engine.drop(0)
    if engine.residue():
        raise Broken("residue", "after drop")
    check_zero(engine)
    return outcome


def _handle(engine: Engine, area: Area, shown: Shown) -> str:
    clients = engine._server.clients
    words = area.words
    body = shown.certificate
    whole = message(c.CERTIFICATE, body)
    looked("raised", "residue")
    refusal = clients.on_certificate(area, memoryview(whole))
    if refusal is not None:
        return _refused(refusal)
    looked("proof")
    if words[STATE] == WAIT_FINISHED:
        if words[AUTH_MODE] == 2 or body != bytes(4):
            raise Broken("proof", "a client with no certificate is accepted")
        return "waiting"
    chain = _chain(body)
    reason = doubt(chain, ROOTS, fixtures.NOW_MS // 1000)
    if reason:
        raise Broken("proof", f"a chain is accepted, and {reason}")
    if words[STATE] != WAIT_CERTIFICATE_VERIFY:
        raise Broken("proof", "a client with a certificate need not prove it")
    covered = hashlib.sha256(BEFORE + whole).digest()
    verify = shown.verify(covered)
    refusal = clients.on_certificate_verify(area, memoryview(message(c.CERTIFICATE_VERIFY, verify)))
    if refusal is not None:
        return _refused(refusal)
    scheme = int.from_bytes(verify[:2])
    if not holds_key(chain[0], scheme, covered, verify[4:]):
        raise Broken("proof", "a signature is accepted that does not verify")
    if clients.on_finished(area) is not None:
        raise Broken("proof", "the store did not change, and the client is refused for it")
    words[STATE] = ESTABLISHED
    _check_identity(engine, chain[0])
    return "established"


def _refused(refusal: Refusal) -> str:
    looked("refusal")
    if refusal.alert is None:
        raise Broken("refusal", f"{refusal.tag} has no alert")
    return refusal.tag


def _check_identity(engine: Engine, leaf: bytes) -> None:
    """What the program is told of the client is what stands in the leaf that was verified."""
    looked("delivered")
    found = x509.load_der_x509_certificate(leaf)
    number = int.from_bytes(engine.peer_serial(0) or b"", signed=True)
    told = (engine.peer_certificate(0), engine.peer_subject(0), number)
    if told != (leaf, found.subject.public_bytes(), found.serial_number):
        raise Broken("delivered", "the program is told of another client")
    if engine.peer_not_after(0) != int(found.not_valid_after_utc.timestamp()):
        raise Broken("delivered", "the program is told of another end of validity")
    if engine.peer_fingerprint(0) != hashlib.sha256(leaf).digest():
        raise Broken("delivered", "the program is told of another fingerprint")
    engine.peer_san(0)


def _chain(body: bytes) -> list[bytes]:
    """The certificates of a body that the engine accepted, read without it."""
    chain = []
    at = 4
    while at + 3 <= len(body):
        size = int.from_bytes(body[at : at + 3])
        chain.append(body[at + 3 : at + 3 + size])
        at += 3 + size + 2
    return chain
