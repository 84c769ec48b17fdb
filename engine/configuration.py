"""The configuration calls: each is carried out whole, or raises `Refused` and changes nothing."""

from collections.abc import Sequence
from operator import index as as_int
from typing import Final

from .base import EngineBase, Whole
from .drbg import Drbg
from .key_schedule import Buffer
from .refusals import Refusal, Refused
from .tickets import DEFAULT_LIFETIME_S

_MAX_ALPN: Final = 512


class Configuration(EngineBase):
    """What a program sets before and while it serves."""

    def seed(self, entropy: Buffer) -> None:
        """Give the engine its randomness: 32 bytes nobody else knows.

        Every draw but OpenSSL's own signing nonce comes from them. Given again, they are mixed with
        what is there. ValueError for another number of bytes.
        """
        with Whole(self):
            if self._drbg is None:
                self._drbg = Drbg(entropy)
            else:
                self._drbg.mix(entropy)

    def add_identity(
        self, chain_pem: bytes, key_pem: bytes, names: Sequence[str], now_ms: int
    ) -> int:
        """Add a chain (PEM, leaf first) and its P-256 key for these names; its number, from 0.

        `now_ms`, in Unix milliseconds, is when the leaf must not have expired. Refused:
        `tls-server-identities-full`, `-chain`, `-names`, `-key-type`, `-key-format`,
        `-key-mismatch`, `-cert-expired`. TypeError for one name instead of a list.
        """
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

        Connections already answered keep the old one. Refused, and then the old one stays:
        `tls-server-chain`, `-names`, `-key-type`, `-key-format`, `-key-mismatch`, `-cert-expired`.
        IndexError for a number that no identity has, TypeError for one name instead of a list.
        """
        self._check_open()
        self._server.identities.replace(identity, chain_pem, key_pem, now_ms, names)

    def set_alpn(self, protocols: Sequence[bytes | str]) -> None:
        """The application protocols this server speaks, the one it prefers first (RFC 7301).

        Refused, `tls-server-alpn-list`: a name twice, empty or over 255 bytes, or more than 512
        bytes in all. TypeError for one name instead of a list, and for a name that is neither bytes
        nor str; UnicodeEncodeError for a str that has no UTF-8.
        """
        self._check_open()
        if isinstance(protocols, str | bytes | bytearray | memoryview):
            raise TypeError("protocols is a list of names, not one name")
        names = tuple(map(_protocol, protocols))
        if (
            any(not 1 <= len(name) <= 255 for name in names)
            or sum(1 + len(name) for name in names) > _MAX_ALPN
            or len(set(names)) != len(names)
        ):
            raise Refused(Refusal.SERVER_ALPN_LIST)
        self._server.policy = self._server.policy._replace(alpn=names)

    def set_tickets(self, count: int, lifetime_s: int = DEFAULT_LIFETIME_S) -> None:
        """How many tickets a connection is sent, 0 for none and none taken, and their lifetime.

        Read when a connection's handshake ends. 0 overwrites every ticket key, a supplied one too.
        Refused, `tls-server-ticket-config`: more than 8, or outside 1 s to 7 days.
        """
        with Whole(self):
            drbg = self._drbg
            fill = None if drbg is None else drbg.fill
            self._server.resumption.configure(count, lifetime_s, fill)

    def set_ticket_keys(self, keys: Sequence[Buffer], now_ms: int) -> None:
        """Seal tickets with the first of 1 to 4 keys of 32 bytes, and open those of any.

        The engine then rotates no more. A key already held keeps its history and one not listed is
        overwritten, so the same list changes nothing; a new one that is not the first opens for one
        lifetime. Refused, `tls-server-ticket-key`: not 1 to 4 different keys of 32 bytes. TypeError
        for one key instead of a list, ValueError for a time of 2^62 milliseconds or more.
        """
        with Whole(self):
            self._server.resumption.ring.set_keys(keys, now_ms)

    def rotate_ticket_key(self, now_ms: int) -> None:
        """Draw a ticket key and seal with it; the one before opens for one lifetime more.

        Refused, `tls-no-entropy`, before `seed`; ValueError for a time of 2^62 milliseconds or
        more.
        """
        with Whole(self):
            if self._drbg is None:
                raise Refused(Refusal.NO_ENTROPY)
            self._server.resumption.ring.rotate(now_ms, self._drbg.fill)

    def set_time(self, now_ms: int) -> None:
        """The time for tickets, which otherwise is that of the last `serve`, and for the chains of
        clients, where it is later than their own `serve`.

        It only moves forward. The engine's own ticket key is replaced when its lifetime is over.
        ValueError for a time of 2^62 milliseconds or more.
        """
        with Whole(self):
            ring = self._server.resumption.ring
            if self._drbg is None or ring.current() is None:
                ring.advance(now_ms)
            else:
                self._server.resumption.at_serve(now_ms, self._drbg.fill)
            self._server.clients.advance(now_ms)

    def trust_clients(self, pem: bytes) -> int:
        """Replace the client store with the roots of a PEM bundle; how many they are.

        Refused whole, `tls-server-client-store`, and the store as it was, for a block that is not a
        certificate, for none, for more than 32 or more than 32,768 bytes of DER. A chain is judged
        by the store that is there when it arrives; a program that replaces a store to revoke closes
        those connections whose `peer_verified` is older than `client_generation`.
        """
        self._check_open()
        return self._server.clients.trust(pem)

    def client_auth_mode(self, mode: int) -> None:
        """Whether clients are asked for a certificate: 0 no, 1 they may have one, 2 they must.

        For the connections served from now on. ValueError for another number; Refused,
        `tls-server-client-store`, for 1 and 2 before there is a store.
        """
        self._check_open()
        self._server.clients.set_mode(mode)

    def client_generation(self) -> int:
        """How often the client store was replaced; 0 while there is none."""
        self._check_open()
        return self._server.clients.generation

    def set_resting(self, count: int) -> None:
        """How many idle connections may keep their area until it is wanted; 0 is none.

        ValueError for fewer, and for more than there are areas.
        """
        with Whole(self):
            count = as_int(count)
            if not 0 <= count <= self._pool.areas:
                raise ValueError("from 0 to the number of areas may rest")
            self._pool.set_resting(count)


def _protocol(name: bytes | str) -> bytes:
    """A protocol's name as bytes; a number would be so many zeros."""
    if isinstance(name, str):
        return name.encode()
    if not isinstance(name, bytes | bytearray | memoryview):
        raise TypeError("the name of a protocol is bytes or str")
    return bytes(name)
