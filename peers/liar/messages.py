"""The server's messages, parsed strictly: what does not parse is a `ServerFault`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import codes
from .fault import ServerFault, check
from .proofs import check_server
from .schedule import Schedule, finished_mac
from .wire import Reader, read_extensions, read_u16s

__all__ = ["check_server"]


class ServerHello(NamedTuple):
    """A ServerHello or a HelloRetryRequest (§4.1.3, §4.1.4)."""

    retry: bool
    random: bytes
    session_id: bytes
    suite: int
    extensions: dict[int, bytes]


def read_server_hello(body: bytes) -> ServerHello:
    """A ServerHello's body, every rule of §4.1.3 checked; ServerFault when one is broken."""
    reader = Reader(body, "ServerHello")
    rule = "RFC 8446 §4.1.3: legacy_version 0x0303, compression 0"
    check(reader.number(2) == 0x0303, rule)
    random = reader.take(32)
    session_id = reader.vector(1, 0, 32)
    suite = reader.number(2)
    check(reader.number(1) == 0, rule)
    extensions = read_extensions(reader.vector(2), "ServerHello")
    reader.end()
    return ServerHello(random == codes.RETRY_RANDOM, random, session_id, suite, extensions)


def read_share(body: bytes) -> tuple[int, bytes]:
    """The server's key_share: group and public key (§4.2.8)."""
    reader = Reader(body, "key_share")
    group, public = reader.number(2), reader.vector(2, 1)
    reader.end()
    return group, public


def read_code_list(body: bytes, what: str) -> list[int]:
    """A list of 16-bit values under a length of two bytes."""
    reader = Reader(body, what)
    values = read_u16s(reader.vector(2, 2), what)
    reader.end()
    return values


def read_block(body: bytes, what: str) -> dict[int, bytes]:
    """A block of extensions, none twice."""
    reader = Reader(body, what)
    found = read_extensions(reader.vector(2), what)
    reader.end()
    return found


def read_protocols(body: bytes) -> list[bytes]:
    """The names of an ALPN extension (RFC 7301 §3.1)."""
    reader = Reader(body, "ALPN")
    inner = Reader(reader.vector(2, 2), "ALPN")
    reader.end()
    names = []
    while inner.more():
        names.append(inner.vector(1, 1))
    return names


def read_name(body: bytes) -> bytes | None:
    """The first host name of our own server_name, or None when it is not a plain one."""
    if len(body) < 5 or body[2] != 0:
        return None
    return body[5 : 5 + int.from_bytes(body[3:5], "big")]


class Request(NamedTuple):
    """A CertificateRequest (§4.3.2)."""

    context: bytes
    schemes: list[int]
    schemes_cert: list[int]
    authorities: list[bytes]
    extensions: dict[int, bytes]


def read_request(body: bytes) -> Request:
    """A CertificateRequest's body (§4.3.2)."""
    reader = Reader(body, "CertificateRequest")
    context = reader.vector(1)
    check(not context, "RFC 8446 §4.3.2: the context is empty in the handshake")
    found = read_extensions(reader.vector(2, 2), "CertificateRequest")
    reader.end()
    rule = "RFC 8446 §4.3.2: a CertificateRequest has signature_algorithms"
    check(codes.SIGNATURE_ALGORITHMS in found, rule)
    allowed = {
        codes.STATUS_REQUEST, codes.SIGNATURE_ALGORITHMS, codes.SIGNED_CERTIFICATE_TIMESTAMP,
        codes.CERTIFICATE_AUTHORITIES, codes.OID_FILTERS, codes.SIGNATURE_ALGORITHMS_CERT,
    }  # fmt: skip
    for kind in found:
        check(kind in allowed, "RFC 8446 §4.2: an extension is where it belongs", str(kind))
    schemes = read_code_list(found[codes.SIGNATURE_ALGORITHMS], "signature_algorithms")
    cert: list[int] = []
    if codes.SIGNATURE_ALGORITHMS_CERT in found:
        cert = read_code_list(found[codes.SIGNATURE_ALGORITHMS_CERT], "signature_algorithms_cert")
    authorities: list[bytes] = []
    if codes.CERTIFICATE_AUTHORITIES in found:
        outer = Reader(found[codes.CERTIFICATE_AUTHORITIES], "certificate_authorities")
        inner = Reader(outer.vector(2, 3), "certificate_authorities")
        outer.end()
        while inner.more():
            authorities.append(inner.vector(2, 1))
    return Request(context, schemes, cert, authorities, found)


def read_certificate(body: bytes) -> list[tuple[bytes, dict[int, bytes]]]:
    """A Certificate's body: DER and extensions of each entry (§4.4.2)."""
    reader = Reader(body, "Certificate")
    context = reader.vector(1)
    check(not context, "RFC 8446 §4.4.2: a server's certificate context is empty")
    inner = Reader(reader.vector(3), "Certificate")
    reader.end()
    entries = []
    while inner.more():
        der = inner.vector(3, 1)
        entries.append((der, read_extensions(inner.vector(2), "CertificateEntry")))
    check(entries, "RFC 8446 §4.4.2.4: a server's certificate list is not empty")
    return entries


@lru_cache(maxsize=64)
def leaf_key(der: bytes) -> bytes:
    """The leaf's SubjectPublicKeyInfo."""
    try:
        key = x509.load_der_x509_certificate(der).public_key()
    except ValueError as error:
        raise ServerFault("RFC 8446 §4.4.2: the leaf is a certificate", str(error)) from None
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@lru_cache(maxsize=64)
def _chain_wrong(chain: tuple[bytes, ...], roots: tuple[bytes, ...]) -> str:
    """An empty word when each certificate is signed by the next, and the last by a root."""
    try:
        certificates = [x509.load_der_x509_certificate(der) for der in chain]
    except ValueError as error:
        return str(error)
    for lower, upper in pairwise(certificates):
        try:
            lower.verify_directly_issued_by(upper)
        except (ValueError, TypeError, InvalidSignature):
            return "a certificate is not issued by the next"
    for der in roots:
        root = x509.load_der_x509_certificate(der)
        if certificates[-1] == root:
            return ""
        try:
            certificates[-1].verify_directly_issued_by(root)
            return ""
        except (ValueError, TypeError, InvalidSignature):
            continue
    return "no root issued the last certificate"


def check_chain(chain: tuple[bytes, ...], roots: Sequence[x509.Certificate]) -> None:
    """Signatures only: validity and names are the test's business, not this client's."""
    wrong = _chain_wrong(chain, tuple(r.public_bytes(Encoding.DER) for r in roots))
    check(not wrong, "RFC 8446 §4.4.2: each certificate certifies the one before it", wrong)


def read_certificate_verify(body: bytes) -> tuple[int, bytes]:
    """A CertificateVerify's body: scheme and signature (§4.4.3)."""
    reader = Reader(body, "CertificateVerify")
    scheme, signature = reader.number(2), reader.vector(2)
    reader.end()
    return scheme, signature


def verify_data(schedule: Schedule, secret: str, transcript_hash: bytes) -> bytes:
    """What a Finished under this secret must hold (§4.4.4)."""
    return finished_mac(schedule.hash, schedule.secrets[secret], transcript_hash)


@dataclass(frozen=True)
class TicketMessage:
    """A NewSessionTicket as it came (§4.6.1)."""

    lifetime: int
    age_add: int
    nonce: bytes
    identity: bytes
    extensions: dict[int, bytes]


def read_ticket(body: bytes) -> TicketMessage:
    """A NewSessionTicket's body, every rule of §4.6.1 checked."""
    reader = Reader(body, "NewSessionTicket")
    lifetime, age_add = reader.number(4), reader.number(4)
    check(lifetime <= 604800, "RFC 8446 §4.6.1: a ticket lives seven days at most", str(lifetime))
    nonce = reader.vector(1)
    identity = reader.vector(2, 1)
    extensions = read_extensions(reader.vector(2), "NewSessionTicket")
    reader.end()
    return TicketMessage(lifetime, age_add, nonce, identity, extensions)
