"""The ClientHello (RFC 8446 §4.1.2) as an ordered list that can lie.

`Hello.extensions` is a list of (type, body): change, drop, repeat or move what you like. What is
counted (lengths, binders) is counted when `Hello.message` is called, unless a field says otherwise:
``edit_body`` changes the finished body, ``declared`` the length in the header, ``edit_psk`` the
finished pre_shared_key body, and ``edit_binders`` the binders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from . import codes
from .schedule import binder_key, digest, finished_mac
from .wire import message, u16, u16s, u32, vec8, vec16


class Offer(NamedTuple):
    """One PSK of a pre_shared_key extension, and the secret its binder is made with."""

    identity: bytes
    age: int
    secret: bytes
    hash: str
    label: str = "res binder"


def server_name(*names: str | bytes, kind: int = 0) -> bytes:
    """The body of server_name (RFC 6066 §3)."""
    raw = (n.encode() if isinstance(n, str) else n for n in names)
    return vec16(b"".join(bytes((kind,)) + vec16(n) for n in raw))


def supported_versions(*versions: int) -> bytes:
    """The body of supported_versions (§4.2.1)."""
    return vec8(u16s(versions))


def code_list(values: Iterable[int]) -> bytes:
    """supported_groups, signature_algorithms: a two-byte vector of 16-bit values."""
    return vec16(u16s(values))


def key_shares(shares: Iterable[tuple[int, bytes]]) -> bytes:
    """The body of key_share (§4.2.8)."""
    return vec16(b"".join(u16(group) + vec16(public) for group, public in shares))


def protocol_names(*names: bytes) -> bytes:
    """The body of ALPN (RFC 7301 §3.1)."""
    return vec16(b"".join(vec8(name) for name in names))


def psk_modes(*modes: int) -> bytes:
    """The body of psk_key_exchange_modes (§4.2.9)."""
    return vec8(bytes(modes))


def identities(offers: Sequence[Offer]) -> bytes:
    """The tickets of pre_shared_key (§4.2.11)."""
    return vec16(b"".join(vec16(o.identity) + u32(o.age & 0xFFFFFFFF) for o in offers))


def binder_list(binders: Iterable[bytes]) -> bytes:
    """The binders of pre_shared_key (§4.2.11)."""
    return vec16(b"".join(vec8(b) for b in binders))


@dataclass
class Hello:
    """A ClientHello as fields that a script can change before it is encoded."""

    random: bytes
    session_id: bytes = b""
    suites: list[int] = field(default_factory=list)
    extensions: list[tuple[int, bytes]] = field(default_factory=list)
    version: int = 0x0303
    compressions: bytes = b"\0"
    offers: list[Offer] = field(default_factory=list)
    declared: int | None = None
    edit_body: Callable[[bytes], bytes] | None = None
    edit_psk: Callable[[bytes], bytes] | None = None
    edit_binders: Callable[[list[bytes]], list[bytes]] | None = None
    #: Bytes in the place of the whole extension block, its length included.
    raw_extensions: bytes | None = None

    def copy(self) -> Hello:
        """Another with the same fields."""
        return Hello(
            self.random, self.session_id, list(self.suites), list(self.extensions), self.version,
            self.compressions, list(self.offers), self.declared, self.edit_body, self.edit_psk,
            self.edit_binders, self.raw_extensions,
        )  # fmt: skip

    # Extensions by type.

    def has(self, kind: int) -> bool:
        """Whether it has an extension of this type."""
        return any(k == kind for k, _ in self.extensions)

    def get(self, kind: int) -> bytes:
        """The body of an extension that it has."""
        return next(body for k, body in self.extensions if k == kind)

    def put(self, kind: int, body: bytes) -> None:
        """Replace the first of its type where it stands, or put it before pre_shared_key."""
        for i, (k, _) in enumerate(self.extensions):
            if k == kind:
                self.extensions[i] = (kind, body)
                return
        last = bool(self.extensions) and self.extensions[-1][0] == codes.PRE_SHARED_KEY
        self.extensions.insert(len(self.extensions) - last, (kind, body))

    def drop(self, kind: int) -> None:
        """Leave out the extensions of a type."""
        self.extensions = [e for e in self.extensions if e[0] != kind]

    def again(self, kind: int) -> None:
        """The same extension once more, right behind itself."""
        at = next(i for i, (k, _) in enumerate(self.extensions) if k == kind)
        self.extensions.insert(at + 1, self.extensions[at])

    def last(self, kind: int) -> None:
        """Move an extension to the end."""
        self.extensions.sort(key=lambda e: e[0] == kind)

    def first(self, kind: int) -> None:
        """Move the extensions of a type to the front."""
        self.extensions.sort(key=lambda e: e[0] != kind)

    def types(self) -> set[int]:
        """The types of its extensions."""
        return {k for k, _ in self.extensions}

    # Bytes.

    def _fields(self, extensions: Sequence[tuple[int, bytes]]) -> bytes:
        head = u16(self.version) + self.random + vec8(self.session_id)
        head += vec16(u16s(self.suites)) + vec8(self.compressions)
        if self.raw_extensions is not None:
            return head + self.raw_extensions
        return head + vec16(b"".join(u16(k) + vec16(b) for k, b in extensions))

    def message(self, before: bytes = b"") -> bytes:
        """The message; ``before`` is the transcript in front of it, for the binders (§4.2.11.2)."""
        extensions = self.extensions
        if self.offers and self.has(codes.PRE_SHARED_KEY):
            body = self._psk(before)
            extensions = [(k, body if k == codes.PRE_SHARED_KEY else b) for k, b in extensions]
        body = self._fields(extensions)
        if self.edit_body is not None:
            body = self.edit_body(body)
        return message(codes.CLIENT_HELLO, body, self.declared)

    def _psk(self, before: bytes) -> bytes:
        """identities and binders: the binders cover the hello up to their own list."""
        sizes = [hashlib.new(o.hash).digest_size for o in self.offers]
        binders = [bytes(size) for size in sizes]
        shape = binders if self.edit_binders is None else self.edit_binders(list(binders))
        names = identities(self.offers)
        blank = names + binder_list(shape)
        extensions = [(k, blank if k == codes.PRE_SHARED_KEY else b) for k, b in self.extensions]
        whole = message(codes.CLIENT_HELLO, self._fields(extensions))
        # What follows the binders is cut too: they are last unless the script says otherwise.
        at = whole.rindex(blank) + len(names)
        truncated = before + whole[:at]
        covered = {name: digest(name, truncated) for name in {o.hash for o in self.offers}}
        made = dict.fromkeys(self.offers, b"")  # hundreds of offers of one ticket are one
        for o in made:
            key = binder_key(o.hash, o.secret, o.label)
            made[o] = finished_mac(o.hash, key, covered[o.hash])
        binders = [made[o] for o in self.offers]
        if self.edit_binders is not None:
            binders = self.edit_binders(binders)
        body = names + binder_list(binders)
        return body if self.edit_psk is None else self.edit_psk(body)
