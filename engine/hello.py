"""The ClientHello: read whole in one pass, then every choice made from it.

This is the input that every peer controls, so the rules are few and their order is fixed:

- `parse` reads the body once, from front to back, and stops at the first fault, so that faults are
  found in wire order. Every read is preceded by its bound, a list must fill its extension to the
  byte, and an unknown extension is skipped whole.
- `choose` looks at what was offered, in the order of its lines. A ClientHello with two faults
  always has the same refusal.

Parsing says what the bytes are and needs no settings; choosing says whether this server can go on.
So an extension that is missing or a version that is absent is never a fault while reading.

`HelloFault` is the only exception that either raises. What a ClientHello costs is bounded by its
length: no more is allocated than was sent, whatever lengths are declared, and each list is walked a
fixed number of times.

Not here: whether a ticket is good (`tickets`), and what depends on that, `require_scheme`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from typing import NamedTuple, TypeVar

from .codepoints import (
    ECDSA_SECP256R1_SHA256,
    EXT_ALPN,
    EXT_EARLY_DATA,
    EXT_KEY_SHARE,
    EXT_PRE_SHARED_KEY,
    EXT_PSK_KEY_EXCHANGE_MODES,
    EXT_SERVER_NAME,
    EXT_SIGNATURE_ALGORITHMS,
    EXT_SUPPORTED_GROUPS,
    EXT_SUPPORTED_VERSIONS,
    HOST_NAME,
    SHARE_LENGTHS,
    VERSION_SSL_3_0,
    VERSION_TLS_1_3,
)
from .refusals import Refusal

MAX_BODY = 16384
"""The longest body that is read. It bounds the reassembly buffer, which a peer could otherwise fill
with 16 MiB before it says anything of use."""

MIN_BODY = 41
"""Version, random, an empty session id, one suite, one compression method, no extensions."""

MAX_SESSION_ID = 32
MAX_NAME = 255
MAX_IDENTITIES = 4
"""The tickets that are kept, because no more are tried: a list of two thousand costs no memory and
no work beyond its reading."""

MIN_BINDER = 32
MIN_BINDERS = 35
"""A list of one binder of 32 bytes."""

MIN_PRE_SHARED_KEY = 44
"""A list of one ticket of one byte with its age, and a list of one binder."""

NULL_COMPRESSION = b"\x00"

_T = TypeVar("_T")
_Share = tuple[int, bytes | None]

_FORMAT = Refusal.SERVER_CLIENT_HELLO_FORMAT
_ILLEGAL = Refusal.SERVER_ILLEGAL_PARAMETER
_MISSING = Refusal.SERVER_MISSING_EXTENSION

# Lists of 16-bit values up to this many have their reader made ready: struct's own cache is small.
_READY = 128
_WORDS = tuple(struct.Struct(f">{n}H").unpack_from for n in range(_READY))
_HEADER = _WORDS[2]


class HelloFault(Exception):
    """The ClientHello is refused; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class ClientHello:
    """What a ClientHello offers. None stands for an extension that is not there.

    `shares` holds the key shares of the engine's own groups; `share_groups` the groups of all, in
    order. `identities` and `binders` hold the first few of the tickets and of their binders.
    `binders_at` is where in the body the list of binders begins, its length included: what a binder
    signs ends there (RFC 8446 §4.2.11.2).
    """

    __slots__ = (
        "alpn",
        "binders",
        "binders_at",
        "compression",
        "early_data",
        "groups",
        "identities",
        "legacy_version",
        "psk_modes",
        "schemes",
        "server_name",
        "session_id",
        "share_groups",
        "shares",
        "suites",
        "versions",
    )

    legacy_version: int
    session_id: bytes
    suites: tuple[int, ...]
    compression: bytes

    def __init__(self) -> None:
        self.versions: tuple[int, ...] | None = None
        self.groups: tuple[int, ...] | None = None
        self.schemes: tuple[int, ...] | None = None
        self.share_groups: list[int] | None = None
        self.shares: dict[int, bytes] = {}
        self.server_name: bytes | None = None
        self.alpn: list[bytes] | None = None
        self.early_data = False
        self.psk_modes: bytes | None = None
        self.identities: list[tuple[bytes, int]] | None = None
        self.binders: list[bytes] | None = None
        self.binders_at = 0


class Policy(NamedTuple):
    """What the server accepts, best first. An empty `alpn` means that ALPN is not used."""

    suites: tuple[int, ...]
    groups: tuple[int, ...]
    alpn: tuple[bytes, ...] = ()


class Retry(NamedTuple):
    """What a HelloRetryRequest that was sent asked for, and what it answered."""

    group: int
    suite: int
    session_id: bytes


class Choice(NamedTuple):
    """What the server answers. No share means: send a HelloRetryRequest for `group`."""

    suite: int
    group: int
    share: bytes | None
    alpn: bytes | None


# Reading. Faults come in wire order.


def parse(body: bytes) -> ClientHello:
    """Read a ClientHello's body, which is the message without its four-byte header.

    Raises HelloFault: tls-server-client-hello-length, -client-hello-format, -extension-repeat or
    -illegal-parameter, whichever the bytes earn first.
    """
    size = len(body)
    if size > MAX_BODY:
        raise HelloFault(Refusal.SERVER_CLIENT_HELLO_LENGTH)
    if size < MIN_BODY:
        raise HelloFault(_FORMAT)
    hello = ClientHello()
    hello.legacy_version = body[0] << 8 | body[1]
    n = body[34]
    at = 35 + n
    # Behind the session id come six bytes at least: one suite and one compression method.
    if n > MAX_SESSION_ID or at + 6 > size:
        raise HelloFault(_FORMAT)
    hello.session_id = body[35:at]
    n = body[at] << 8 | body[at + 1]
    at += 2
    if n < 2 or n & 1 or at + n + 2 > size:
        raise HelloFault(_FORMAT)
    hello.suites = _words(body, at, n)
    at += n
    n = body[at]
    at += 1
    if n < 1 or at + n > size:
        raise HelloFault(_FORMAT)
    hello.compression = body[at : at + n]
    at += n
    # A TLS 1.2 ClientHello may end here (RFC 8446 §4.1.2): well-formed, and refused later.
    if at == size:
        return hello
    if at + 2 > size or at + 2 + (body[at] << 8 | body[at + 1]) != size:
        raise HelloFault(_FORMAT)
    at += 2
    seen: set[int] = set()
    while at < size:
        if at + 4 > size:
            raise HelloFault(_FORMAT)
        kind, n = _HEADER(body, at)
        at += 4
        end = at + n
        if end > size:
            raise HelloFault(_FORMAT)
        # RFC 8446 §4.2. A second one could be read by one side and the first by the other.
        if kind in seen:
            raise HelloFault(Refusal.SERVER_EXTENSION_REPEAT)
        seen.add(kind)
        if kind in _READERS:
            _READERS[kind](hello, body, at, end)
        at = end
    return hello


def _words(body: bytes, at: int, n: int) -> tuple[int, ...]:
    """The `n` bytes at `at` as 16-bit numbers; the caller has judged that they are there."""
    n >>= 1
    if n < _READY:
        return _WORDS[n](body, at)
    return struct.unpack_from(f">{n}H", body, at)


def _list_of_words(body: bytes, at: int, end: int) -> tuple[int, ...]:
    """An extension that is one list of 16-bit numbers under a 16-bit length, and not empty."""
    n = end - at - 2
    if n < 2 or n & 1 or body[at] << 8 | body[at + 1] != n:
        raise HelloFault(_FORMAT)
    return _words(body, at + 2, n)


def _supported_groups(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.7."""
    hello.groups = _list_of_words(body, at, end)


def _signature_algorithms(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.3."""
    hello.schemes = _list_of_words(body, at, end)


def _supported_versions(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.1. Its list is under an 8-bit length."""
    n = end - at - 1
    if n < 2 or n & 1 or body[at] != n:
        raise HelloFault(_FORMAT)
    hello.versions = _words(body, at + 1, n)


def _psk_key_exchange_modes(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.9."""
    n = end - at - 1
    if n < 1 or body[at] != n:
        raise HelloFault(_FORMAT)
    hello.psk_modes = body[at + 1 : end]


def _early_data(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.10: empty in a ClientHello."""
    if at != end:
        raise HelloFault(_FORMAT)
    hello.early_data = True


def _server_name(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 6066 §3: at most one host name; an entry of another type is skipped.

    A name of more than 255 bytes is no DNS name and is kept as none: no core has room for it.
    """
    n = end - at - 2
    if n < 3 or body[at] << 8 | body[at + 1] != n:
        raise HelloFault(_FORMAT)
    at += 2
    host: bytes | None = None
    while at < end:
        if at + 3 > end:
            raise HelloFault(_FORMAT)
        kind = body[at]
        n = body[at + 1] << 8 | body[at + 2]
        at += 3
        if at + n > end:
            raise HelloFault(_FORMAT)
        if kind == HOST_NAME:
            if n == 0:
                raise HelloFault(_FORMAT)
            if host is not None:
                raise HelloFault(_ILLEGAL)
            host = body[at : at + n]
        at += n
    if host is not None and len(host) <= MAX_NAME:
        hello.server_name = host.lower()


def _alpn(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 7301 §3.1: a list of names, none of them empty."""
    n = end - at - 2
    if n < 2 or body[at] << 8 | body[at + 1] != n:
        raise HelloFault(_FORMAT)
    at += 2
    names = []
    while at < end:
        n = body[at]
        at += 1
        if n == 0 or at + n > end:
            raise HelloFault(_FORMAT)
        names.append(body[at : at + n])
        at += n
    hello.alpn = names


def _key_share(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.8. The list may be empty: the client then asks for a retry.

    Two shares of one of our groups, or one of a length that its group does not have, are refused
    here; whether a share is a valid point is the key exchange's to say. A share of another group
    (a hybrid, GREASE) is skipped.
    """
    n = end - at - 2
    if n < 0 or body[at] << 8 | body[at + 1] != n:
        raise HelloFault(_FORMAT)
    at += 2
    groups = []
    shares = hello.shares
    while at < end:
        # A share is five bytes at least: its group, its length, and a byte.
        if at + 5 > end:
            raise HelloFault(_FORMAT)
        group, n = _HEADER(body, at)
        at += 4
        if n == 0 or at + n > end:
            raise HelloFault(_FORMAT)
        groups.append(group)
        if group in SHARE_LENGTHS:
            if group in shares or n != SHARE_LENGTHS[group]:
                raise HelloFault(_ILLEGAL)
            shares[group] = body[at : at + n]
        at += n
    hello.share_groups = groups


def _pre_shared_key(hello: ClientHello, body: bytes, at: int, end: int) -> None:
    """RFC 8446 §4.2.11: tickets, then as many binders; the last extension of all.

    It must be last because the binders sign everything before them. Two well-formed lists that do
    not go together are an illegal parameter (§6.2).
    """
    if end - at < MIN_PRE_SHARED_KEY:
        raise HelloFault(_FORMAT)
    stop = at + 2 + (body[at] << 8 | body[at + 1])
    at += 2
    # Behind the tickets there is at least the list of one binder, so that a ticket's length,
    # wherever it begins, is inside the extension.
    if stop + MIN_BINDERS > end:
        raise HelloFault(_FORMAT)
    identities: list[tuple[bytes, int]] = []
    offered = 0
    while at < stop:
        n = body[at] << 8 | body[at + 1]
        at += 2
        if n == 0 or at + n + 4 > stop:
            raise HelloFault(_FORMAT)
        if offered < MAX_IDENTITIES:
            age = int.from_bytes(body[at + n : at + n + 4])
            identities.append((body[at : at + n], age))
        offered += 1
        at += n + 4
    hello.binders_at = at
    if not offered or at + 2 + (body[at] << 8 | body[at + 1]) != end:
        raise HelloFault(_FORMAT)
    at += 2
    binders: list[bytes] = []
    while at < end:
        n = body[at]
        at += 1
        if n < MIN_BINDER or at + n > end:
            raise HelloFault(_FORMAT)
        if len(binders) < MAX_IDENTITIES:
            binders.append(body[at : at + n])
        offered -= 1
        at += n
    if offered != 0 or end != len(body):
        raise HelloFault(_ILLEGAL)
    hello.identities = identities
    hello.binders = binders


_READERS: dict[int, Callable[[ClientHello, bytes, int, int], None]] = {
    EXT_SERVER_NAME: _server_name,
    EXT_SUPPORTED_GROUPS: _supported_groups,
    EXT_SIGNATURE_ALGORITHMS: _signature_algorithms,
    EXT_ALPN: _alpn,
    EXT_PRE_SHARED_KEY: _pre_shared_key,
    EXT_EARLY_DATA: _early_data,
    EXT_SUPPORTED_VERSIONS: _supported_versions,
    EXT_PSK_KEY_EXCHANGE_MODES: _psk_key_exchange_modes,
    EXT_KEY_SHARE: _key_share,
}


# Choosing.


def choose(hello: ClientHello, policy: Policy, retry: Retry | None = None) -> Choice:
    """What the server answers to `hello`; `retry` is the HelloRetryRequest that went before it.

    Raises HelloFault with the first that holds of tls-server-version, -illegal-parameter for the
    compression, -missing-extension, -illegal-parameter for a share of a group that is not listed,
    tls-server-suite, -sigalg, -group, -alpn and -retry-share. The order is the contract's (SPEC
    1.3). Where a ticket is offered, `require_scheme` is asked later, when none was taken.
    """
    versions = hello.versions
    # RFC 8446 §D.5: a legacy_version of SSL 3.0 is refused; any other is not read.
    if (
        versions is None
        or VERSION_TLS_1_3 not in versions
        or hello.legacy_version == VERSION_SSL_3_0
    ):
        raise HelloFault(Refusal.SERVER_VERSION)
    # Exactly one method, and it is null (§4.1.2): compression leaks what it hides (CRIME).
    if hello.compression != NULL_COMPRESSION:
        raise HelloFault(_ILLEGAL)
    groups = hello.groups
    with_ticket = hello.identities is not None
    # §9.2, and §4.2.9 for the modes of a ticket.
    if groups is None or hello.share_groups is None:
        raise HelloFault(_MISSING)
    if (hello.psk_modes if with_ticket else hello.schemes) is None:
        raise HelloFault(_MISSING)
    for group in hello.shares:
        if group not in groups:
            raise HelloFault(_ILLEGAL)
    suite = _first(policy.suites, hello.suites, Refusal.SERVER_SUITE)
    if not with_ticket:
        require_scheme(hello)
    group, share = _group(hello, policy.groups, groups)
    alpn = None
    if policy.alpn and hello.alpn is not None:
        # A set, because both lists are long when a client wants the search to be.
        alpn = _first(policy.alpn, set(hello.alpn), Refusal.SERVER_ALPN)
    if retry is None:
        return Choice(suite, group, share, alpn)
    return _retried(hello, retry, alpn)


def require_scheme(hello: ClientHello) -> None:
    """The client must take the server's signature. Where a ticket is offered, that is asked only
    when none was taken: a resumed handshake signs nothing (RFC 8446 §9.2).

    Raises HelloFault: tls-server-missing-extension or -sigalg.
    """
    if hello.schemes is None:
        raise HelloFault(_MISSING)
    if ECDSA_SECP256R1_SHA256 not in hello.schemes:
        raise HelloFault(Refusal.SERVER_SIGALG)


def _first(ours: tuple[_T, ...], theirs: Container[_T], refusal: Refusal) -> _T:
    """The first of the server's values that the client has too: the server's order decides."""
    for value in ours:
        if value in theirs:
            return value
    raise HelloFault(refusal)


def _group(hello: ClientHello, ours: tuple[int, ...], theirs: tuple[int, ...]) -> _Share:
    """The first group with a share; with none of ours, the first common one and a retry."""
    shares = hello.shares
    for group in ours:
        if group in shares:
            return group, shares[group]
    return _first(ours, theirs, Refusal.SERVER_GROUP), None


def _retried(hello: ClientHello, retry: Retry, alpn: bytes | None) -> Choice:
    """A second ClientHello must be what was asked for (RFC 8446 §4.1.2).

    Exactly one share, of the group asked for, so that there is never a third ClientHello; the
    suite still there, because the transcript's hash is already chosen; the session id the same,
    because it is echoed again; no early data, because the retry refused it.
    """
    if (
        hello.session_id != retry.session_id
        or retry.suite not in hello.suites
        or hello.share_groups != [retry.group]
        or hello.early_data
    ):
        raise HelloFault(Refusal.SERVER_RETRY_SHARE)
    return Choice(retry.suite, retry.group, hello.shares[retry.group], alpn)
