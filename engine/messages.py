"""The handshake messages that the server writes (RFC 8446 §4), each as its bytes.

What does not depend on the connection is a constant here or is encoded once elsewhere (an
identity's Certificate).
"""

import hashlib
import struct
from typing import Final

from . import codepoints as c

_RETRY_RANDOM: Final = hashlib.sha256(b"HelloRetryRequest").digest()  # §4.1.3
_SUPPORTED_VERSIONS: Final = struct.pack(">HHH", c.EXT_SUPPORTED_VERSIONS, 2, c.VERSION_TLS_1_3)
_VERIFY_CONTEXT: Final = b" " * 64 + b"TLS 1.3, server CertificateVerify\x00"  # §4.4.3
_EMPTY_SERVER_NAME: Final = struct.pack(">HH", c.EXT_SERVER_NAME, 0)


def _hello(random: bytes | memoryview, session_id: bytes, suite: int, extensions: bytes) -> bytes:
    extensions = _SUPPORTED_VERSIONS + extensions
    body_length = 2 + 32 + 1 + len(session_id) + 2 + 1 + 2 + len(extensions)
    return b"".join(
        (
            struct.pack(">I", c.SERVER_HELLO << 24 | body_length),
            b"\x03\x03",
            random,
            bytes([len(session_id)]),
            session_id,
            struct.pack(">HBH", suite, 0, len(extensions)),
            extensions,
        )
    )


def server_hello(
    random: bytes | memoryview,
    session_id: bytes,
    suite: int,
    group: int,
    share: bytes,
    ticket_index: int | None = None,
) -> bytes:
    """A ServerHello, with the chosen ticket's index when the session is resumed (§4.2.11)."""
    extensions = struct.pack(">HHHH", c.EXT_KEY_SHARE, 4 + len(share), group, len(share)) + share
    if ticket_index is not None:
        extensions += struct.pack(">HHH", c.EXT_PRE_SHARED_KEY, 2, ticket_index)
    return _hello(random, session_id, suite, extensions)


def hello_retry_request(session_id: bytes, suite: int, group: int) -> bytes:
    """A HelloRetryRequest that asks for one share; stateful, so without a cookie (§4.1.4)."""
    return _hello(_RETRY_RANDOM, session_id, suite, struct.pack(">HHH", c.EXT_KEY_SHARE, 2, group))


def encrypted_extensions(alpn: bytes | None, name_matched: bool) -> bytes:
    """EncryptedExtensions: the protocol chosen, and that the name was used (RFC 6066 §3)."""
    extensions = b""
    if alpn is not None:
        length = len(alpn)
        extensions = struct.pack(">HHHB", c.EXT_ALPN, length + 3, length + 1, length) + alpn
    if name_matched:
        extensions += _EMPTY_SERVER_NAME
    return (
        struct.pack(">IH", c.ENCRYPTED_EXTENSIONS << 24 | len(extensions) + 2, len(extensions))
        + extensions
    )


def signed_content(transcript: bytes) -> bytes:
    """What the server's CertificateVerify signs (§4.4.3)."""
    return _VERIFY_CONTEXT + transcript


def certificate_verify(signature: bytes) -> bytes:
    """The CertificateVerify message, header included (§4.4.3); the signature is ECDSA P-256's."""
    length = len(signature)
    return (
        struct.pack(
            ">IHH", c.CERTIFICATE_VERIFY << 24 | length + 4, c.ECDSA_SECP256R1_SHA256, length
        )
        + signature
    )


def finished(verify_data: bytes) -> bytes:
    """The Finished message, header included (§4.4.4)."""
    return struct.pack(">I", c.FINISHED << 24 | len(verify_data)) + verify_data
