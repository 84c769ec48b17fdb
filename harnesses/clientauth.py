"""Harness clientauth: the handlers of Certificate and CertificateVerify, with the input as message.

No record layer: the slot is as `serve` leaves it, but for the state that a flight would have led
to, so what is run is the reading of the messages, the chain and the signature. Whatever is accepted
must be believable to `cryptography` too (`harnesses.models.clientauth`).

The input, version 1:

    byte 0      1, the version of this format
    byte 1      settings, a bit each (SETTINGS), and three bits of the key that signs
    byte 2-3    the length of what follows for the Certificate
    ...         a Certificate's body, or with LEAF one certificate in DER
    the rest    a CertificateVerify's body, not read with HONEST

A fuzzer cannot sign. So LEAF signs the certificate of the input anew, as an authority would that is
believed, whatever it says; and HONEST signs the transcript as the key's owner would.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache

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
from peers.liar import proofs
from peers.liar.client import Client
from peers.liar.wire import message, u16, vec16

from . import fixtures
from .build_identity import CLIENT_ROOT, MIDDLE, client
from .models.clientauth import doubt, holds_key
from .oracles import Broken, check_memory, check_work, looked, one_in
from .resign import resigned
from .server import UNKNOWN
from .whitebox import check_zero

MAX_LEN = 4_096
VERSION = 1
HEADER = 4

LEAF, UNDER_MIDDLE, HONEST, OPTIONAL = 1, 2, 4, 8
SETTINGS = {
    LEAF: "the input is one certificate, and an authority that is believed signs it",
    UNDER_MIDDLE: "that authority is an intermediate, whose certificate is sent too",
    HONEST: "the CertificateVerify is signed by a key that the harness has",
    OPTIONAL: "a certificate is optional, and not required",
}
KINDS = ("p256", "p384", "ed25519", "rsa2048")
"""Whose key signs, by bits 4 to 6 modulo 4."""

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
    if len(data) < HEADER or data[0] != VERSION:
        return UNKNOWN
    # Taken out, so that an engine that an oracle reported is never used again.
    engine = _engines.pop() if _engines else fixtures.server(1, 1)
    outcome = _run(engine, data)
    if thorough or one_in(256, data):
        check_work(lambda: _run(engine, data), LINES + LINES_PER_BYTE * len(data))
    if thorough or one_in(1024, data):
        check_memory(lambda: _run(engine, data) and None, MEMORY + MEMORY_PER_BYTE * len(data))
    _engines.append(engine)
    return outcome


def _run(engine: Engine, data: bytes) -> str:
    settings = data[1]
    body = _certificate(data, settings)
    engine.client_auth_mode(1 if settings & OPTIONAL else 2)
    engine.serve(0, fixtures.NOW_MS)
    area = engine._pool.held[0]
    area.words[STATE] = WAIT_CERTIFICATE
    area.transcript = hashlib.sha256(BEFORE)
    try:
        outcome = _handle(engine, area, body, data, settings)
    except Broken:
        raise
    except Exception as error:
        raise Broken("raised", f"{type(error).__name__} from a client's message") from error
    engine.drop(0)
    if engine.residue():
        raise Broken("residue", "after drop")
    check_zero(engine)
    return outcome


def _handle(engine: Engine, area: Area, body: bytes, data: bytes, settings: int) -> str:
    clients = engine._server.clients
    words = area.words
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
    verify = _verify(data, settings, covered)
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


def _certificate(data: bytes, settings: int) -> bytes:
    """The body of the Certificate."""
    end = HEADER + int.from_bytes(data[2:HEADER])
    given = data[HEADER:end]
    if not settings & LEAF:
        return given
    issuer = MIDDLE if settings & UNDER_MIDDLE else CLIENT_ROOT
    chain = [resigned(given, issuer.key)]
    if settings & UNDER_MIDDLE:
        chain.append(MIDDLE.der)
    return Client().certificate_message(chain)[4:]


def _verify(data: bytes, settings: int, covered: bytes) -> bytes:
    """The body of the CertificateVerify."""
    if not settings & HONEST:
        return data[HEADER + int.from_bytes(data[2:HEADER]) :]
    return _signature((settings >> 4) % len(KINDS), covered)


@lru_cache(maxsize=4_096)
def _signature(kind: int, covered: bytes) -> bytes:
    key = client(KINDS[kind]).key
    scheme = proofs.natural_scheme(key)
    signature = proofs.sign(key, scheme, proofs.signed_content(proofs.CLIENT_CONTEXT, covered))
    return u16(scheme) + vec16(signature)


def _chain(body: bytes) -> list[bytes]:
    """The certificates of a body that the engine accepted, read without it."""
    chain = []
    at = 4
    while at + 3 <= len(body):
        size = int.from_bytes(body[at : at + 3])
        chain.append(body[at + 3 : at + 3 + size])
        at += 3 + size + 2
    return chain


def build(given: bytes, verify: bytes = b"", settings: int = HONEST, kind: str = "p256") -> bytes:
    """An input: what the corpus is made with."""
    head = bytes([VERSION, settings | KINDS.index(kind) << 4]) + len(given).to_bytes(2)
    return head + given + verify
