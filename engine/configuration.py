"""The configuration calls: each is carried out whole, or raises `Refused` and changes nothing."""

import os
from collections.abc import Sequence
from typing import Final

from engine.base import EngineBase
from engine.drbg import Drbg
from engine.refusals import Refusal, Refused
from engine.schedule import Buffer

_MAX_ALPN: Final = 512


class Configuration(EngineBase):
    """What a program sets before and while it serves."""

    def seed(self, entropy: Buffer) -> None:
        """Give the engine its randomness: 32 bytes nobody else knows.

        Every draw but OpenSSL's own signing nonce comes from them.
        """
        self._check_open()
        drbg = Drbg(entropy)
        if self._drbg is not None:
            self._drbg.wipe()
        self._drbg = drbg
        self._seeded_in = os.getpid()

    def add_identity(
        self, chain_pem: bytes, key_pem: bytes, names: Sequence[str], now_ms: int
    ) -> int:
        """Add a chain (PEM, leaf first) and its P-256 key for these names; its number."""
        self._check_open()
        return self._server.identities.add(chain_pem, key_pem, names, now_ms)

    def replace_identity(
        self,
        identity: int,
        chain_pem: bytes,
        key_pem: bytes,
        now_ms: int,
        names: Sequence[str] | None = None,
    ) -> None:
        """Replace an identity, its names too when given.

        Connections already answered keep the old one.
        """
        self._check_open()
        self._server.identities.replace(identity, chain_pem, key_pem, now_ms, names)

    def set_alpn(self, protocols: Sequence[bytes | str]) -> None:
        """The application protocols this server speaks, the one it prefers first (RFC 7301)."""
        self._check_open()
        names = tuple(p.encode("ascii", "replace") if isinstance(p, str) else p for p in protocols)
        if (
            any(not 1 <= len(name) <= 255 for name in names)
            or sum(1 + len(name) for name in names) > _MAX_ALPN
            or len(set(names)) != len(names)
        ):
            raise Refused(Refusal.SERVER_ALPN_LIST)
        self._server.policy = self._server.policy._replace(alpn=names)

    def set_resting(self, count: int) -> None:
        """How many idle connections may keep their area until it is wanted; 0 is none."""
        self._check_open()
        if not 0 <= count <= self._pool.areas:
            raise ValueError("from 0 to the number of areas may rest")
        self._pool.set_resting(count)
