"""The server's messages as RFC 8446 §4 lays them out, read by hand.

Every length and number is tried at the top of its width, which no connection of today's suites and
groups reaches: a field that were signed, or short by a byte, would show there alone.
"""

from __future__ import annotations

import hashlib

import pytest

from engine import messages
from tests.engine.hello_bytes import u16, v8, v16

RANDOM = bytes(range(32))
# §4.1.3 prints it, and says that it is the SHA-256 of "HelloRetryRequest".
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
VERSIONS = u16(43) + v16(b"\x03\x04")


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3) + body


def hello(random: bytes, session_id: bytes, suite: int, extensions: bytes) -> bytes:
    body = b"\x03\x03" + random + v8(session_id) + u16(suite) + b"\x00" + v16(extensions)
    return message(2, body)


@pytest.mark.parametrize("session_id", [b"", b"\x55" * 32])
@pytest.mark.parametrize(
    ("suite", "group", "share"), [(0x1301, 29, b"s" * 32), (0xFEFE, 0xFEFE, b"s" * 65_000)]
)
@pytest.mark.parametrize("ticket", [None, 0, 1, 0xFFFF])
def test_a_server_hello(
    session_id: bytes, suite: int, group: int, share: bytes, ticket: int | None
) -> None:
    extensions = VERSIONS + u16(51) + v16(u16(group) + v16(share))
    if ticket is not None:
        extensions += u16(41) + v16(u16(ticket))
    made = messages.server_hello(RANDOM, session_id, suite, group, share, ticket)
    assert made == hello(RANDOM, session_id, suite, extensions)


@pytest.mark.parametrize(("suite", "group"), [(0x1302, 24), (0xFEFE, 0xFEFE)])
def test_a_hello_retry_request(suite: int, group: int) -> None:
    assert hashlib.sha256(b"HelloRetryRequest").digest() == RETRY_RANDOM
    extensions = VERSIONS + u16(51) + v16(u16(group))
    expected = hello(RETRY_RANDOM, b"id", suite, extensions)
    assert messages.hello_retry_request(b"id", suite, group) == expected


@pytest.mark.parametrize("alpn", [None, b"h2", b"p" * 255])
@pytest.mark.parametrize("name_matched", [True, False])
def test_encrypted_extensions(alpn: bytes | None, name_matched: bool) -> None:
    extensions = b"" if alpn is None else u16(16) + v16(v16(v8(alpn)))
    # RFC 6066 §3: the name that was used is acknowledged by an empty extension.
    extensions += u16(0) + v16(b"") if name_matched else b""
    expected = message(8, v16(extensions))
    assert messages.encrypted_extensions(alpn, name_matched) == expected


def test_what_a_server_signs_is_64_spaces_its_label_a_zero_and_the_transcript() -> None:
    expected = b"\x20" * 64 + b"TLS 1.3, server CertificateVerify" + b"\x00" + RANDOM
    assert messages.signed_content(RANDOM) == expected


@pytest.mark.parametrize("length", [70, 65_535])
def test_a_certificate_verify(length: int) -> None:
    signature = b"s" * length
    assert messages.certificate_verify(signature) == message(15, u16(0x0403) + v16(signature))


@pytest.mark.parametrize("length", [32, 48])
def test_a_finished(length: int) -> None:
    assert messages.finished(b"f" * length) == message(20, b"f" * length)
