"""Handmade inputs of the server harness for what each state of a connection refuses.

One fault and one state an input, so that a rule which is there in one state and not in another is
seen (`harnesses/refusal_matrix.py` lists which go together). What must be sealed is in
`seeds.keyed`, where it is smaller; here is what arrives in the clear, as a bare header, or instead
of a second ClientHello. Outcomes are written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine import codepoints as c
from peers.liar import hello as build
from peers.liar.hello import Hello
from peers.liar.record import record
from peers.liar.wire import message

from ..build_identity import client
from ..formats.server import CLIENT_REQUIRED, EOF
from ..honest_client import Talk
from .case import Case
from .hello import FORMAT, P521

UNEXPECTED = "tls-unexpected-message"
DECODE = "tls-decode-error"
OVERFLOW = "tls-record-overflow"
BAD_MAC = "tls-bad-record-mac"
VERSION = "tls-protocol-version"
TOO_MANY = "tls-too-many-messages"
EARLY_SIZE = "tls-server-early-data-size"
CCS = record(c.CHANGE_CIPHER_SPEC, b"\1")
CANCELED = record(c.ALERT, b"\1\x5a")
ALERT = record(c.ALERT, b"\2\x28")
EARLY = record(c.APPLICATION_DATA, bytes(16_384)) + record(c.APPLICATION_DATA, b"\0")
"""Early data, and a byte more than is skipped."""
EMPTY = record(c.APPLICATION_DATA, b"") * 33
"""Early data of no length, once more than a run has."""
OLD = b"\2\0\0\x20"
"""A header behind its type: version 0x0200, 32 bytes."""

ORDER = "offers are judged before the rules of a retry"


def start() -> Talk:
    """Before the ClientHello."""
    return Talk()


def retried(early_data: bool = False) -> Talk:
    """A second ClientHello is asked for, with a share of X25519."""
    talk = Talk(shares=(), early_data=early_data)
    return talk.say(talk.client.hello())


def certificate(early_data: bool = False) -> Talk:
    """The client's Certificate is due."""
    credential = client("p256").credential
    return Talk(settings=CLIENT_REQUIRED, credential=credential, early_data=early_data).shake()


def verify() -> Talk:
    """Its CertificateVerify is due."""
    talk = certificate()
    whole = talk.client.add(talk.client.certificate_message())
    return talk.say(talk.client.handshake_bytes(whole))


def finished(early_data: bool = False) -> Talk:
    """Its Finished is due."""
    return Talk(early_data=early_data).shake()


def keyed() -> Talk:
    """The same, and a record opened already."""
    talk = finished()
    return talk.say(talk.client.alert(c.ALERT_USER_CANCELED))


def established() -> Talk:
    """The handshake is over."""
    return Talk().establish()


def _clear(kind: int, size: int = 4) -> bytes:
    """A handshake message of zeros in the clear."""
    return record(c.HANDSHAKE, message(kind, bytes(size)))


def _cases(table: Iterable[tuple[str, Talk, bytes, str, str]]) -> dict[str, Case]:
    """A conversation and its last bytes each."""
    found = {}
    for name, talk, final, outcome, what in table:
        talk.parts.append(final)
        found[name] = Case(talk.input(), outcome, what)
    return found


def before_keys() -> dict[str, Case]:
    """What is no ClientHello where the first or the second is due."""
    hello = "before any hello"
    second = "instead of a second ClientHello"
    plain = bytes([c.HANDSHAKE])
    return _cases(
        (
            ("first-certificate", start(), _clear(c.CERTIFICATE), UNEXPECTED, hello),
            ("first-verify", start(), _clear(c.CERTIFICATE_VERIFY), UNEXPECTED, hello),
            ("first-finished", start(), _clear(c.FINISHED, 32), UNEXPECTED, hello),
            ("first-update", start(), _clear(c.KEY_UPDATE, 1), UNEXPECTED, hello),
            ("retry-version", retried(), plain + OLD, VERSION, second),
            ("retry-overflow", retried(), plain + b"\3\3\x40\1", OVERFLOW, second),
            ("retry-ccs-value", retried(), record(20, b"\2"), UNEXPECTED, second),
            ("retry-alert", retried(), record(c.ALERT, b"\2\x28"), "tls-alert", second),
            ("retry-alert-short", retried(), record(c.ALERT, b"\2"), DECODE, second),
            ("retry-canceled-33", retried(), CANCELED * 33, TOO_MANY, second),
            ("retry-certificate", retried(), _clear(c.CERTIFICATE), UNEXPECTED, second),
            ("retry-verify", retried(), _clear(c.CERTIFICATE_VERIFY), UNEXPECTED, second),
            ("retry-update", retried(), _clear(c.KEY_UPDATE, 1), UNEXPECTED, second),
            ("retry-server-hello", retried(), _clear(c.SERVER_HELLO), UNEXPECTED, second),
            ("retry-early-data-empty-33", retried(True), EMPTY, TOO_MANY, "adds up to nothing"),
            ("retry-early-data-16385", retried(True), EARLY, EARLY_SIZE, "a byte too many"),
        )
    )


def behind_keys() -> dict[str, Case]:
    """Records after the server's flight that are refused by their header, or unopened."""
    sealed = bytes([c.APPLICATION_DATA])
    old, long, short = sealed + OLD, sealed + b"\3\3\x41\1", record(23, bytes(15))
    due, proof, after = "for the Certificate", "for the CertificateVerify", "after the handshake"
    return _cases(
        (
            ("due-certificate-version", certificate(), old, VERSION, due),
            ("due-certificate-overflow", certificate(), long, OVERFLOW, due),
            ("due-certificate-record-short", certificate(), short, BAD_MAC, due),
            ("due-certificate-ccs-33", certificate(), CCS * 33, TOO_MANY, due),
            ("due-certificate-early-data-16385", certificate(True), EARLY, EARLY_SIZE, due),
            ("due-certificate-early-data-empty-33", certificate(True), EMPTY, TOO_MANY, due),
            ("due-verify-alert-clear", verify(), ALERT, UNEXPECTED, "of a client that has keys"),
            ("due-verify-canceled-clear", verify(), CANCELED, UNEXPECTED, "nobody's"),
            ("due-verify-version", verify(), old, VERSION, proof),
            ("due-verify-overflow", verify(), long, OVERFLOW, proof),
            ("due-verify-record-short", verify(), short, BAD_MAC, proof),
            ("due-verify-ccs-33", verify(), CCS * 33, TOO_MANY, proof),
            ("due-finished-early-data-empty-33", finished(True), EMPTY, TOO_MANY, "for it"),
            ("due-finished-alert-clear", keyed(), ALERT, UNEXPECTED, "of a client that has keys"),
            ("due-finished-version", finished(), old, VERSION, "for the Finished"),
            ("version-after", established(), old, VERSION, after),
            ("overflow-after", established(), long, OVERFLOW, after),
            ("record-short-after", established(), short, BAD_MAC, after),
        )
    )


def second_hellos() -> dict[str, Case]:
    """Second ClientHellos with a fault that a first one could have."""

    def suites(hello: Hello) -> None:
        hello.suites = [0xC02B]

    def compressions(hello: Hello) -> None:
        hello.compressions = b"\1"

    def groups(hello: Hello) -> None:
        hello.put(c.EXT_SUPPORTED_GROUPS, build.code_list((P521,)))
        hello.put(c.EXT_KEY_SHARE, build.key_shares([(P521, bytes(133))]))

    zeros = build.key_shares([(c.X25519, bytes(32))])
    rsa = build.code_list((c.RSA_PSS_RSAE_SHA256,))
    spdy = build.protocol_names(b"spdy/3")
    table: tuple[tuple[str, str, str, Callable[[Hello], object], str], ...] = (
        ("share-zero", "tls-key-share", "zeros", lambda h: h.put(c.EXT_KEY_SHARE, zeros), ""),
        (
            "hello-version",
            "tls-server-version",
            "no supported_versions",
            lambda h: h.drop(c.EXT_SUPPORTED_VERSIONS),
            ORDER,
        ),
        ("hello-suites", "tls-server-suite", "no common suite", suites, ORDER),
        ("hello-groups", "tls-server-group", "no common group", groups, ORDER),
        (
            "hello-schemes",
            "tls-server-sigalg",
            "no common scheme",
            lambda h: h.put(c.EXT_SIGNATURE_ALGORITHMS, rsa),
            "",
        ),
        (
            "hello-alpn",
            "tls-server-alpn",
            "no common protocol",
            lambda h: h.put(c.EXT_ALPN, spdy),
            "",
        ),
        (
            "hello-modes-empty",
            FORMAT,
            "an empty list of modes",
            lambda h: h.put(c.EXT_PSK_KEY_EXCHANGE_MODES, b"\0"),
            "",
        ),
        (
            "hello-repeat",
            "tls-server-extension-repeat",
            "an extension twice",
            lambda h: h.again(c.EXT_SIGNATURE_ALGORITHMS),
            "",
        ),
        (
            "hello-compression",
            "tls-server-illegal-parameter",
            "a compression method not null",
            compressions,
            "",
        ),
    )
    found = {}
    for name, outcome, what, edit, reason in table:
        talk = retried()
        talk.parts.append(talk.client.hello(edit))
        found[f"retry-{name}"] = Case(talk.input(), outcome, f"a second hello: {what}", reason)
    talk = retried()
    talk.parts.append(record(c.HANDSHAKE, talk.client.hello_message() + b"\0"))
    found["retry-hello-not-last"] = Case(talk.input(), UNEXPECTED, "a byte behind a second hello")
    talk = retried()
    talk.parts.append(record(c.HANDSHAKE, b"\1\0\x40\1"))
    found["retry-hello-length"] = Case(
        talk.input(), "tls-server-client-hello-length", "a second hello of 16,385 bytes"
    )
    return found


def cases() -> dict[str, Case]:
    """Every input of this page."""
    end = Case(retried().input(EOF), "tls-peer-closed", "instead of a second ClientHello")
    return {**before_keys(), **behind_keys(), **second_hellos(), "retry-eof": end}
