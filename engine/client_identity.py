"""The calls that say who a verified client is.

`peer_verified` is the gate: the others answer None unless it is not 0. They read the leaf's own
bytes, which are those whose chain was verified, so the subject and the alternative names are its
authority's words and the engine adds none. What an identity may do is the program's decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from . import client_certificate
from .base import EngineBase
from .layout import (
    ESTABLISHED,
    F_LEAF_KEPT,
    FLAGS,
    LEAF,
    LEAF_LEN,
    PEER_GENERATION,
    PEER_NOT_AFTER,
    STATE,
)

_Answer = TypeVar("_Answer")


class ClientIdentity(EngineBase):
    """The verified identity of a connection's client."""

    def peer_verified(self, slot: int) -> int:
        """The generation of the store that vouched for the client; 0 for no identity.

        Not 0 only once the connection is established, and after it was closed; never when failed.
        """
        words = self._words_of(slot)
        generation: int = words[PEER_GENERATION]
        return generation if words[STATE] == ESTABLISHED else 0

    def peer_certificate(self, slot: int) -> bytes | None:
        """The client's certificate, in DER, exactly as it was verified."""
        if not self.peer_verified(slot):
            return None
        words = self._words_of(slot)
        length = words[LEAF_LEN]
        if words[FLAGS] & F_LEAF_KEPT:
            return self._pool.rooms.leaf(slot, length)
        # A leaf larger than a room keeps its area for the connection's life.
        return bytes(self._held[slot].bytes[LEAF : LEAF + length])

    def peer_subject(self, slot: int) -> bytes | None:
        """The subject Name of the certificate, in DER; `30 00` for an empty one."""
        return self._of_leaf(slot, client_certificate.subject)

    def peer_serial(self, slot: int) -> bytes | None:
        """The contents of the certificate's serial INTEGER, as they stand in it."""
        return self._of_leaf(slot, client_certificate.serial)

    def peer_fingerprint(self, slot: int) -> bytes | None:
        """SHA-256 of the certificate."""
        return self._of_leaf(slot, client_certificate.fingerprint)

    def peer_not_after(self, slot: int) -> int | None:
        """The last second of the certificate's validity, in Unix time."""
        return self._words_of(slot)[PEER_NOT_AFTER] if self.peer_verified(slot) else None

    def peer_san(self, slot: int) -> list[tuple[int, bytes]] | None:
        """The subjectAltName, one (tag, contents) a name, in the certificate's order.

        The tag is GeneralName's: 1 rfc822Name, 2 dNSName, 4 directoryName, 6 URI, 7 iPAddress.
        """
        return self._of_leaf(slot, client_certificate.alternative_names)

    def _of_leaf(self, slot: int, reading: Callable[[bytes], _Answer]) -> _Answer | None:
        leaf = self.peer_certificate(slot)
        return None if leaf is None else reading(leaf)
