"""OpenSSL as the other reading: what it answers to a client's first bytes, through Python's `ssl`.

It has the engine's identity and protocols, TLS 1.3 alone, and its own defaults in everything else.
"""

from __future__ import annotations

import hashlib
import ssl
from functools import lru_cache
from typing import NamedTuple

from engine import codepoints as c

from .. import fixtures
from ..oracles import HEADER

# RFC 8446 §4.1.3: the random that makes a ServerHello a HelloRetryRequest.
RETRY = hashlib.sha256(b"HelloRetryRequest").digest()
_RANDOM = HEADER + 4 + 2
_OUT = 65_536


class Answer(NamedTuple):
    """What a server answered a client's first bytes, up to its flight: later is another matter."""

    retried: bool
    flight: bool
    refused: bool
    alert: int | None = None
    reason: str = ""

    def word(self, other: Answer) -> str:
        """The answer as the table of expected differences writes it, beside what the other said.

        One that asked for a retry and the other did not have parted there: what it says later is
        to a hello that the other was never asked for.
        """
        if self.retried and not other.retried:
            return "retry"
        if self.refused:
            return "silence" if self.alert is None else f"alert {self.alert}"
        end = "flight" if self.flight else "waiting"
        return f"retry, {end}" if self.retried else end


def read(output: bytes, failed: bool, reason: str = "") -> Answer:
    """The answer that a server's bytes are; `failed` is what it says itself."""
    retried = False
    at = 0
    while at + HEADER <= len(output):
        end = at + HEADER + int.from_bytes(output[at + 3 : at + HEADER])
        kind, first = output[at], output[at + HEADER]
        if kind == c.HANDSHAKE and first == c.SERVER_HELLO:
            random = at + _RANDOM
            if output[random : random + len(RETRY)] != RETRY:
                return Answer(retried, True, False)
            retried = True
        elif kind == c.ALERT:
            return Answer(retried, False, True, output[end - 1], reason)
        at = end
    return Answer(retried, False, failed, None, reason)


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(fixtures.FOLDER / "chain.pem", fixtures.FOLDER / "key.pem")
    context.set_alpn_protocols([name.decode() for name in fixtures.ALPN])
    return context


def answer(data: bytes) -> Answer:
    """What OpenSSL answers."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = _context().wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(data)
    failed, reason = False, ""
    try:
        server.do_handshake()
    except ssl.SSLWantReadError:
        pass
    except ssl.SSLError as error:
        failed, reason = True, error.reason or type(error).__name__
    return read(outgoing.read(), failed, reason)
