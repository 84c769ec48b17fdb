"""Client authentication in the handshake: asked in the flight, judged message by message.

What the messages are is `client_certificate`'s and what a chain is worth is `x509.paths`'; here is
when each is asked, under which store, and what a connection remembers of it.

A chain is judged by the store that is there when it arrives, and the Finished that completes the
handshake must find the same one: otherwise a client could hold its Finished past a replacement and
be established under the store that was withdrawn.
"""

from __future__ import annotations

from operator import index as as_int
from typing import Final

from . import client_certificate
from .client_certificate import OFF, OPTIONAL, REQUIRED
from .key_schedule import Transcript
from .layout import (
    AUTH_MODE,
    F_CLIENT_CERTIFICATE,
    FLAGS,
    LEAF,
    LEAF_LEN,
    PEER_GENERATION,
    PEER_NOT_AFTER,
    SERVED_MS,
    STATE,
    STORE_GENERATION,
    WAIT_CERTIFICATE_VERIFY,
    WAIT_FINISHED,
)
from .pool import Area
from .refusals import Refusal, Refused
from .x509 import paths, stores
from .x509.stores import Store

_MODES: Final = (OFF, OPTIONAL, REQUIRED)


class ClientAuthentication:
    """What all connections of a server share: the mode, the store, its generation, a clock."""

    __slots__ = ("clock_ms", "generation", "mode", "request", "store")

    request: bytes
    """The CertificateRequest, which comes with the store: without one nobody is asked."""

    def __init__(self) -> None:
        self.mode = OFF
        self.store: Store | None = None
        self.generation = 0
        self.clock_ms = 0

    def trust(self, pem: bytes) -> int:
        """Replace the store; the number of its roots.

        Raises `Refused` with `tls-server-client-store`, and the store is as it was.
        """
        store = stores.load(pem)
        request = client_certificate.certificate_request(store.authorities)
        generation = stores.next_generation(self.generation)
        # In one step: a call that breaks has changed nothing.
        self.store, self.request, self.generation = store, request, generation
        return len(store)

    def set_mode(self, mode: int) -> None:
        """For the connections served from now on. Without a store nobody could be believed.

        Raises ValueError for a number that is no mode, `Refused` with `tls-server-client-store` for
        one that needs a store before there is one.
        """
        mode = as_int(mode)
        if mode not in _MODES:
            raise ValueError("the mode is 0 (off), 1 (optional) or 2 (required)")
        if mode != OFF and self.store is None:
            raise Refused(Refusal.SERVER_CLIENT_STORE)
        self.mode = mode

    def advance(self, now_ms: int) -> None:
        """The time, which only moves forward."""
        self.clock_ms = max(self.clock_ms, now_ms)

    def on_certificate(self, area: Area, message: memoryview) -> Refusal | None:
        """The client's Certificate (RFC 8446 §4.4.2): none, or a chain that verifies.

        One that is presented and wrong ends the connection in either mode: "optional" says that a
        client may have none, not that a bad one counts as none.
        """
        words = area.words
        chain = client_certificate.read_certificate(bytes(message[4:]))
        if isinstance(chain, Refusal):
            return chain
        if not chain:
            if words[AUTH_MODE] == REQUIRED:
                return Refusal.SERVER_CLIENT_CERT_REQUIRED
            words[STATE] = WAIT_FINISHED
        else:
            store = self.store
            assert store is not None
            now = max(words[SERVED_MS], self.clock_ms) // 1000
            verified = paths.verify(chain, store, now)
            if isinstance(verified, Refusal):
                return verified
            leaf = verified.leaf
            end = LEAF + len(leaf)
            area.leaf_high = max(area.leaf_high, end)
            area.bytes[LEAF:end] = leaf
            words[LEAF_LEN] = len(leaf)
            words[PEER_NOT_AFTER] = verified.not_after
            words[STORE_GENERATION] = self.generation
            area.peer_key = verified.key, verified.kind
            words[STATE] = WAIT_CERTIFICATE_VERIFY
        _transcript(area).update(message)
        return None

    def on_certificate_verify(self, area: Area, message: memoryview) -> Refusal | None:
        """The client's CertificateVerify (§4.4.3): it holds the key of its leaf."""
        proof = client_certificate.read_verify(bytes(message[4:]))
        if isinstance(proof, Refusal):
            return proof
        transcript = _transcript(area)
        assert area.peer_key is not None
        key, kind = area.peer_key
        refusal = client_certificate.check_verify(key, kind, proof, transcript.digest())
        if refusal is not None:
            return refusal
        area.peer_key = None
        transcript.update(message)
        area.words[STATE] = WAIT_FINISHED
        return None

    def on_finished(self, area: Area) -> Refusal | None:
        """The client's Finished has verified: from here on the identity is answered for."""
        words = area.words
        if not words[LEAF_LEN]:
            return None
        # The same file loaded again counts as another store: they are not compared.
        if words[STORE_GENERATION] != self.generation:
            return Refusal.SERVER_CLIENT_STORE_REPLACED
        words[PEER_GENERATION] = self.generation
        words[FLAGS] |= F_CLIENT_CERTIFICATE
        return None


def _transcript(area: Area) -> Transcript:
    transcript = area.transcript
    assert transcript is not None
    return transcript
