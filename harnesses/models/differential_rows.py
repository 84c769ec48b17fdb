"""Where this engine and OpenSSL answer a client's first bytes differently, and why that is right.

A row covers what the engine says (a tag, or its answer's word), what OpenSSL answers, and, where
that tells more, the reason that it gives. The first row that covers a difference argues it; a
difference that none covers is a finding. A row that no committed input uses is stale, and a test
says so.

Rows of two refusals are wide: which of several faults is named is each server's own order. Rows of
one refusal are as narrow as OpenSSL's reasons allow. Written against OpenSSL 3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from engine import codepoints as c

from ..oracles import HEADER

ACCEPTED = frozenset({"flight", "retry", "retry, waiting", "retry, flight"})
MESSAGE = 4
"""The header of a handshake message."""
WAITING = frozenset({"waiting"})
SILENCE = frozenset({"silence"})

RECORDS = frozenset(
    {
        "tls-unexpected-message",
        "tls-record-overflow",
        "tls-decode-error",
        "tls-protocol-version",
        "tls-too-many-messages",
        "tls-alert",
    }
)
"""What the engine says of records and messages before it reads a hello."""

HELLO = frozenset(
    {
        "tls-server-version",
        "tls-server-suite",
        "tls-server-group",
        "tls-server-sigalg",
        "tls-server-alpn",
        "tls-server-client-hello-format",
        "tls-server-client-hello-length",
        "tls-server-extension-repeat",
        "tls-server-missing-extension",
        "tls-server-illegal-parameter",
        "tls-server-retry-share",
        "tls-server-binder",
        "tls-key-share",
    }
)
"""What it says of a hello."""

ALERTS = frozenset(f"alert {number}" for number in (10, 22, 40, 47, 50, 70, 80, 109, 112, 120))


class Row(NamedTuple):
    """A difference that is expected: who says what, and the argument. No reasons is any reason."""

    name: str
    ours: frozenset[str]
    theirs: frozenset[str]
    reasons: frozenset[str]
    why: str
    when: Callable[[bytes], bool]
    """What the client's bytes must have, where the answers alone do not tell the kind."""

    def covers(self, data: bytes, ours: str, theirs: str, reason: str) -> bool:
        """Whether this row expects that difference."""
        return (
            ours in self.ours
            and theirs in self.theirs
            and (not self.reasons or reason in self.reasons)
            and self.when(data)
        )


def always(data: bytes) -> bool:
    """Whatever the client's bytes are."""
    return True


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The content type and the fragment of each record; the last may be cut off."""
    at = 0
    while at + HEADER <= len(data):
        end = at + HEADER + int.from_bytes(data[at + 3 : at + HEADER])
        yield data[at], data[at + HEADER : end]
        at = end


def has_empty(data: bytes) -> bool:
    """A record of handshake messages or of change_cipher_spec has nothing in it."""
    return any(kind in (c.HANDSHAKE, c.CHANGE_CIPHER_SPEC) and not f for kind, f in _records(data))


def interleaves(data: bytes) -> bool:
    """A record of another type comes between the fragments of a handshake message."""
    begun = b""
    for kind, fragment in _records(data):
        if kind != c.HANDSHAKE:
            if begun:
                return True
            continue
        begun += fragment
        while len(begun) >= MESSAGE and len(begun) >= MESSAGE + int.from_bytes(begun[1:MESSAGE]):
            begun = begun[MESSAGE + int.from_bytes(begun[1:MESSAGE]) :]
    return False


def _row(
    name: str,
    ours: frozenset[str] | set[str],
    theirs: frozenset[str] | set[str],
    why: str,
    reasons: frozenset[str] | set[str] = frozenset(),
    when: Callable[[bytes], bool] = always,
) -> Row:
    return Row(name, frozenset(ours), frozenset(theirs), frozenset(reasons), why, when)


EXPECTED = (
    # The engine goes on and OpenSSL refuses.
    _row(
        "extension-not-read",
        ACCEPTED,
        {"alert 47", "alert 50"},
        "RFC 8446 §4.2: an extension that a server does not know or want is skipped, whatever is "
        "in it. OpenSSL parses status_request, use_srtp, certificate_authorities, "
        "max_fragment_length and others although it does not use them, and a server_name of a "
        "type it does not know.",
        {
            "BAD_EXTENSION",
            "LENGTH_MISMATCH",
            "POST_HANDSHAKE_AUTH_ENCODING_ERR",
            "SSL3_EXT_INVALID_MAX_FRAGMENT_LENGTH",
            "BAD_SRTP_PROTECTION_PROFILE_LIST",
            "BAD_SRTP_MKI_VALUE",
            "SSLError",
        },
    ),
    _row(
        "host-name-kept-as-none",
        ACCEPTED,
        {"alert 112"},
        "SPEC 1.3: a host name over 255 bytes is kept as none, and one that no identity has gets "
        "the default identity. OpenSSL refuses one that is too long or has a zero byte.",
        {"BAD_EXTENSION"},
    ),
    _row(
        "share-of-another-group",
        ACCEPTED,
        {"alert 47"},
        "SPEC 1.2: only shares of our groups must be in supported_groups. OpenSSL asks it of all, "
        "which a hybrid or GREASE share fails when its group is left out.",
        {"BAD_KEY_SHARE"},
    ),
    _row(
        "point-of-another-group",
        ACCEPTED | {"tls-server-group"},
        {"alert 47"},
        "OpenSSL has X448 and P-521 and takes the first share it can use, so it reads a point that "
        "the engine skips, or reads later, when the retry it asks for is answered.",
        {"BAD_ECPOINT"},
    ),
    _row(
        "sigalgs-cert",
        ACCEPTED,
        {"alert 40"},
        "SPEC 1.3: signature_algorithms_cert is not read: the one chain there is is sent anyway, "
        "as RFC 8446 §4.4.2.2 allows. OpenSSL reads it.",
        {"NO_SUITABLE_SIGNATURE_ALGORITHM"},
    ),
    _row(
        "legacy-version",
        ACCEPTED,
        {"alert 70"},
        "SPEC: legacy_version is not read, but for 0x0300 (RFC 8446 §4.1.2: the version "
        "preferences are in supported_versions alone). OpenSSL refuses all that is below it.",
        {"BAD_LEGACY_VERSION"},
    ),
    _row(
        "user-canceled",
        ACCEPTED | WAITING | HELLO,
        {"alert 10"},
        "RFC 9846: user_canceled is read past until close_notify, as often as anything that makes "
        "no progress. OpenSSL has an alert for an unexpected message where a ClientHello is due, "
        "and after its retry for the sixth warning.",
        {"UNEXPECTED_MESSAGE", "TOO_MANY_WARN_ALERTS"},
    ),
    _row(
        "schemes-after-the-tickets",
        {"retry"},
        {"alert 40", "alert 109"},
        "SPEC 1.3: with a pre_shared_key the signature schemes are judged after the tickets, which "
        "are read from the second hello. OpenSSL judges the first.",
        {
            "MISSING_SIGALGS_EXTENSION",
            "NO_SHARED_SIGNATURE_ALGORITHMS",
            "NO_SUITABLE_SIGNATURE_ALGORITHM",
        },
    ),
    _row(
        "suite-of-the-retry",
        {"retry, flight"},
        {"alert 47"},
        "The second hello drops a suite that OpenSSL, whose order is another, chose with its retry "
        "and the engine did not (RFC 8446 §4.1.4).",
        {"BAD_CIPHER"},
    ),
    # The engine refuses and OpenSSL goes on.
    _row(
        "other-groups",
        {"tls-server-group", "retry"},
        ACCEPTED,
        "OpenSSL has X448, P-521 and the finite fields; the engine has three groups, and refuses "
        "a client that has none of them or asks for another share.",
    ),
    _row(
        "alpn",
        {"tls-server-alpn"},
        ACCEPTED,
        "RFC 7301 §3.2 asks for no_application_protocol. Python's ssl goes on without a protocol.",
    ),
    _row(
        "ticket-of-ours",
        {"tls-server-binder"},
        ACCEPTED,
        "The ticket is one of the engine's, which OpenSSL has no key for and skips; its wrong "
        "binder is then not looked at (RFC 8446 §4.2.11).",
    ),
    _row(
        "format",
        {"tls-server-client-hello-format"},
        ACCEPTED,
        "SPEC 1.2: an empty host_name and pre_shared_key are judged whole. OpenSSL takes an empty "
        "name as none, and reads binders only when it takes the ticket of one.",
    ),
    _row(
        "repeat",
        {"tls-server-extension-repeat"},
        ACCEPTED,
        "RFC 8446 §4.2: there is no more than one extension of a type. OpenSSL looks for those of "
        "the types it knows.",
    ),
    _row(
        "shares-and-binders",
        {"tls-server-illegal-parameter"},
        ACCEPTED,
        "SPEC 1.2: shares of our groups are judged whether one of them is taken or not, and there "
        "are as many binders as identities whether a ticket is taken or not (RFC 8446 §4.2.11). "
        "OpenSSL reads no further than the share that it takes, and no binder of a ticket that it "
        "does not.",
    ),
    _row(
        "retry-share",
        {"tls-server-retry-share"},
        {"retry, flight"},
        "SPEC 1.2: the second hello keeps its session id and suite, and has just the share asked "
        "for. OpenSSL compares less.",
    ),
    _row(
        "second-hello-whole",
        {"tls-server-missing-extension"},
        {"retry, flight"},
        "RFC 8446 §9.2: a hello with key_share has supported_groups, and the second is a hello "
        "too. OpenSSL asks it of the first.",
    ),
    _row(
        "empty-record",
        {"tls-unexpected-message"},
        ACCEPTED,
        "RFC 8446 §5.1: there are no zero-length fragments of handshake messages, and §5: a "
        "change_cipher_spec is one byte. OpenSSL reads past up to 32 empty records before it has "
        "looked at their type.",
        when=has_empty,
    ),
    _row(
        "interleaved",
        {"tls-unexpected-message"},
        ACCEPTED,
        "RFC 8446 §5.1: no record of another type comes between the fragments of a message. After "
        "its retry OpenSSL reads past those that it reads past between messages.",
        when=interleaves,
    ),
    _row(
        "early-data-size",
        {"tls-server-early-data-size"},
        {"retry, waiting", "retry, flight"} | ALERTS,
        "SPEC 1.2: what is skipped before a second hello is counted as it arrives, 16,384 bytes in "
        "all. OpenSSL grants 104 bytes more for what a client's encryption adds, holds each of "
        "these records to the bound of one in the clear, and reads on to what is wrong behind.",
    ),
    # One of them has not judged yet.
    _row(
        "judged-at-once",
        RECORDS | {"tls-server-client-hello-length"},
        {"waiting", "retry, waiting"},
        "SPEC 1.3: a header is judged when its five bytes are there, a message's length at its "
        "fourth, and what may not follow at once. OpenSSL waits for the rest of the record.",
    ),
    # Both refuse.
    _row(
        "not-tls",
        RECORDS,
        SILENCE,
        "OpenSSL says nothing to what does not look like TLS, HTTP among it, at the first record. "
        "The engine's alert is the refusal's always.",
    ),
    _row(
        "records",
        RECORDS,
        ALERTS,
        "Both refuse. OpenSSL reads an old SSLv2 hello out of the first bytes and names what it "
        "misses in that; it has no name for a peer's alert in this place; and it reads a message's "
        "length and content before it judges the record that it is in.",
    ),
    _row(
        "order-of-faults",
        HELLO,
        ALERTS,
        "Both refuse. RFC 8446 has no order in which a hello's faults are found; SPEC 1.3 fixes "
        "the engine's. OpenSSL parses its own extensions in the order of its own table, and has "
        "illegal_parameter or unrecognized_name where the engine, as RFC 8446 §6.2, has "
        "decode_error.",
    ),
)


def find(data: bytes, ours: str, theirs: str, reason: str) -> Row | None:
    """The row that argues a difference; None for a finding."""
    return next((row for row in EXPECTED if row.covers(data, ours, theirs, reason)), None)
