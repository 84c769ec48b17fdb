"""Handshake messages in words, whatever is wrong with them: for a reader, not for a check.

A message that does not parse is said to be so and left at that; the bytes stand below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from peers.liar import codes
from peers.liar.codes import ALERT_NAMES, MESSAGE_NAMES, SUITE_NAMES

EXTENSIONS = {code: extension.name for code, extension in codes.EXTENSIONS.items()}
GROUPS = {
    **codes.GROUP_NAMES, codes.SECP521R1: "P-521", codes.X448: "X448",
    codes.X25519MLKEM768: "X25519MLKEM768",
}  # fmt: skip
SCHEMES = {
    value: name.lower()
    for name, value in vars(codes).items()
    if name.startswith(("RSA_P", "ECDSA_", "ED25519", "ED448"))
}
#: What is shown of a list, and of a text.
MOST = 8
TEXT = 48


class _Short(Exception):
    """There are fewer bytes than a length says, or more."""


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise _Short
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))

    @property
    def more(self) -> bool:
        return self.at < len(self.data)

    def end(self) -> None:
        if self.more:
            raise _Short


def named(table: dict[int, str], value: int) -> str:
    """A code point's name, or its number."""
    return table.get(value, f"{value:#06x}")


def text(data: bytes) -> str:
    """Bytes as text when they are, and cut when they are many."""
    if data and all(0x20 <= b < 0x7F for b in data):
        shown = data[:TEXT].decode()
        return f'"{shown}"' + ("..." if len(data) > TEXT else "")
    return f"{data[:8].hex()}{'...' if len(data) > 8 else ''}" if data else "nothing"


def _listed(words: list[str]) -> str:
    more = len(words) - MOST
    return " ".join(words[:MOST]) + (f" and {more} more" if more > 0 else "")


def _codes(data: bytes, table: dict[int, str]) -> str:
    if len(data) % 2:
        raise _Short
    values = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return _listed([named(table, v) for v in values]) or "none"


def _code_list(table: dict[int, str]) -> Callable[[bytes], str]:
    def read(body: bytes) -> str:
        cursor = _Cursor(body)
        found = _codes(cursor.vector(2), table)
        cursor.end()
        return found

    return read


def _server_name(body: bytes) -> str:
    if not body:
        return "answered"
    cursor = _Cursor(_Cursor(body).vector(2))
    names = []
    while cursor.more:
        kind, name = cursor.number(1), cursor.vector(2)
        names.append(text(name) if kind == 0 else f"type {kind} {text(name)}")
    return _listed(names)


def _versions(body: bytes) -> str:
    if len(body) == 2:
        return body.hex()
    cursor = _Cursor(body)
    found = _codes(cursor.vector(1), {})
    cursor.end()
    return found


def _alpn(body: bytes) -> str:
    cursor = _Cursor(_Cursor(body).vector(2))
    names = []
    while cursor.more:
        names.append(text(cursor.vector(1)))
    return _listed(names)


def _shares(body: bytes) -> str:
    if len(body) == 2:
        return f"asks for {named(GROUPS, int.from_bytes(body, 'big'))}"
    cursor = _Cursor(body)
    first = cursor.number(2)
    if first in GROUPS and first != len(body) - 2:
        size = len(cursor.vector(2))
        cursor.end()
        return f"{named(GROUPS, first)} of {size} bytes"
    cursor = _Cursor(_Cursor(body).vector(2))
    shares = []
    while cursor.more:
        group = cursor.number(2)
        shares.append(f"{named(GROUPS, group)} of {len(cursor.vector(2))} bytes")
    return _listed(shares) or "none"


def _psk(body: bytes) -> str:
    if len(body) == 2:
        return f"takes identity {int.from_bytes(body, 'big')}"
    cursor = _Cursor(body)
    inner = _Cursor(cursor.vector(2))
    identities = []
    while inner.more:
        size = len(inner.vector(2))
        identities.append(f"{size} bytes age {inner.number(4)}")
    inner = _Cursor(cursor.vector(2))
    binders = []
    while inner.more:
        binders.append(str(len(inner.vector(1))))
    cursor.end()
    return f"{_listed(identities)}; binders of {_listed(binders)} bytes"


def _authorities(body: bytes) -> str:
    cursor = _Cursor(_Cursor(body).vector(2))
    count = 0
    while cursor.more:
        cursor.vector(2)
        count += 1
    return f"{count} names"


_READERS: dict[int, Callable[[bytes], str]] = {
    codes.SERVER_NAME: _server_name,
    codes.SUPPORTED_GROUPS: _code_list(GROUPS),
    codes.SIGNATURE_ALGORITHMS: _code_list(SCHEMES),
    codes.SIGNATURE_ALGORITHMS_CERT: _code_list(SCHEMES),
    codes.ALPN: _alpn,
    codes.SUPPORTED_VERSIONS: _versions,
    codes.KEY_SHARE: _shares,
    codes.PRE_SHARED_KEY: _psk,
    codes.CERTIFICATE_AUTHORITIES: _authorities,
}


def _extensions(block: bytes, indent: str) -> Iterator[str]:
    cursor = _Cursor(block)
    count = 0
    while cursor.more:
        kind, body = cursor.number(2), cursor.vector(2)
        count += 1
        if count > 4 * MOST:
            continue
        try:
            said = _READERS[kind](body) if kind in _READERS else f"{len(body)} bytes"
        except _Short:
            said = f"{len(body)} bytes that do not parse"
        yield f"{indent}{named(EXTENSIONS, kind)}: {said}"
    if count > 4 * MOST:
        yield f"{indent}and {count - 4 * MOST} more"


def _client_hello(body: bytes) -> Iterator[str]:
    cursor = _Cursor(body)
    version, random, session = cursor.take(2), cursor.take(32), cursor.vector(1)
    session_id = f"session id {len(session)} bytes"
    yield f"  version {version.hex()}, random {random[:4].hex()}..., {session_id}"
    yield f"  suites: {_codes(cursor.vector(2), SUITE_NAMES)}"
    compression = cursor.vector(1)
    if compression != b"\0":
        yield f"  compression: {compression.hex() or 'none'}"
    if cursor.more:
        yield from _extensions(cursor.vector(2), "  ")
    cursor.end()


def _server_hello(body: bytes) -> Iterator[str]:
    cursor = _Cursor(body)
    cursor.take(2)
    random, session = cursor.take(32), cursor.vector(1)
    retry = "asks for another hello, " if random == codes.RETRY_RANDOM else ""
    suite = named(SUITE_NAMES, cursor.number(2))
    yield f"  {retry}session id {len(session)} bytes, {suite}"
    cursor.take(1)
    yield from _extensions(cursor.vector(2), "  ")


def _encrypted_extensions(body: bytes) -> Iterator[str]:
    yield from _extensions(_Cursor(body).vector(2), "  ")


def _certificate_request(body: bytes) -> Iterator[str]:
    cursor = _Cursor(body)
    cursor.vector(1)
    yield from _extensions(cursor.vector(2), "  ")


def _certificate(body: bytes) -> Iterator[str]:
    cursor = _Cursor(body)
    context = cursor.vector(1)
    if context:
        yield f"  context {context[:8].hex()}"
    inner = _Cursor(cursor.vector(3))
    cursor.end()
    if not inner.more:
        yield "  no certificate"
    while inner.more:
        yield f"  a certificate of {len(inner.vector(3))} bytes"
        yield from _extensions(inner.vector(2), "    ")


def _certificate_verify(body: bytes) -> Iterator[str]:
    cursor = _Cursor(body)
    scheme = cursor.number(2)
    yield f"  {named(SCHEMES, scheme)}, {len(cursor.vector(2))} bytes"
    cursor.end()


def _ticket(body: bytes) -> Iterator[str]:
    cursor = _Cursor(body)
    lifetime, _ = cursor.number(4), cursor.number(4)
    nonce = cursor.vector(1)
    yield f"  lifetime {lifetime} s, nonce {nonce.hex()}, a ticket of {len(cursor.vector(2))} bytes"
    yield from _extensions(cursor.vector(2), "  ")


def _key_update(body: bytes) -> Iterator[str]:
    asks = {b"\0": "asks for none", b"\x01": "asks for one"}
    yield f"  {asks.get(body, body[:8].hex() or 'nothing')}"


_MESSAGES: dict[int, Callable[[bytes], Iterator[str]]] = {
    codes.CLIENT_HELLO: _client_hello,
    codes.SERVER_HELLO: _server_hello,
    codes.ENCRYPTED_EXTENSIONS: _encrypted_extensions,
    codes.CERTIFICATE_REQUEST: _certificate_request,
    codes.CERTIFICATE: _certificate,
    codes.CERTIFICATE_VERIFY: _certificate_verify,
    codes.NEW_SESSION_TICKET: _ticket,
    codes.KEY_UPDATE: _key_update,
}


def describe(kind: int, body: bytes) -> list[str]:
    """A whole message, a line for it and more for what it holds."""
    lines = [f"{MESSAGE_NAMES.get(kind, f'message {kind}')}, {len(body)} bytes"]
    reader = _MESSAGES.get(kind)
    if reader is None:
        return lines
    try:
        for line in reader(body):
            lines.append(line)
    except _Short:
        lines.append("  which does not parse from here")
    return lines


def describe_alert(content: bytes) -> str:
    """An alert in words."""
    if len(content) != 2:
        return f"which is no alert: {text(content)}"
    level = {1: "warning", 2: "fatal"}.get(content[0], f"level {content[0]}")
    return f"{level} {ALERT_NAMES.get(content[1], str(content[1]))}"
