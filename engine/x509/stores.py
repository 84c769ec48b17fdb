"""The client store: the roots that may vouch for a client (SPEC 6.4).

A store is a file that an operator wrote for this purpose, so it is read strictly: a block that is
not a certificate, a block cut short, or a certificate whose key this engine never accepts is a
mistake to report, not to skip. The two bounds are tripwires. A system's bundle of public
authorities, any of which could vouch for any client, is over both and fails at the first call; it
is a heuristic, since 32 public roots would fit.

A store is never changed: a replacement is another object. What the bundle says once is computed
once: the roots studied and found by subject, and the CertificateRequest's list of names.
"""

from __future__ import annotations

import binascii

from ..refusals import Refusal, Refused
from . import certificates
from .certificates import Certificate

ROOTS = 32
BYTES = 32_768
# Names longer than this in all are left out of the request: the list is a hint (RFC 8446
# §4.2.4), and the flight has room for no more.
NAMES = 8_192
LAST_GENERATION = 2**32 - 1

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"


class Store:
    """The roots of one bundle."""

    __slots__ = ("authorities", "by_subject", "roots")

    def __init__(self, roots: list[Certificate]) -> None:
        self.roots = tuple(roots)
        self.by_subject: dict[bytes, list[Certificate]] = {}
        for root in roots:
            self.by_subject.setdefault(root.parts.subject, []).append(root)
        names = b"".join(len(name).to_bytes(2) + name for name in self.by_subject)
        self.authorities = names if len(names) <= NAMES else b""

    def __len__(self) -> int:
        return len(self.roots)


def load(pem: bytes) -> Store:
    """The store of a bundle. Raises `Refused` with `tls-server-client-store`."""
    blocks = _blocks(bytes(memoryview(pem)))
    if not blocks or len(blocks) > ROOTS or sum(map(len, blocks)) > BYTES:
        raise Refused(Refusal.SERVER_CLIENT_STORE)
    roots = []
    for block in blocks:
        root = certificates.read(block)
        # A root that is out of its time, or no authority, is judged when a chain needs it. One that
        # cannot be read, or whose key is of no accepted kind, never vouches for anybody.
        if root is None or root.study(anchor=True) in (
            Refusal.X509_DECODE,
            Refusal.X509_UNSUPPORTED_ALGORITHM,
        ):
            raise Refused(Refusal.SERVER_CLIENT_STORE)
        roots.append(root)
    return Store(roots)


def next_generation(generation: int) -> int:
    """The generation after a replacement.

    It stops at 2^32 - 1 instead of wrapping to 0, which says "no identity".
    """
    return min(generation + 1, LAST_GENERATION)


def _blocks(pem: bytes) -> list[bytes] | None:
    """The DER of each PEM block (RFC 7468); text between blocks is read past.

    None when any block is not a whole certificate's.
    """
    blocks = []
    body: list[bytes] | None = None
    for line in pem.splitlines():
        line = line.strip()
        if line == _END and body is not None:
            try:
                blocks.append(binascii.a2b_base64(b"".join(body), strict_mode=True))
            except ValueError:
                return None
            body = None
        elif line == _BEGIN and body is None:
            body = []
        elif b"-----BEGIN" in line or b"-----END" in line:
            return None
        elif body is not None:
            body.append(line)
    return blocks if body is None else None
