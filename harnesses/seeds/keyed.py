"""The handmade inputs of the keyed harness: orders, cuts and lies behind the encryption.

The outcome of each is written by hand, as in `seeds.hello`.
"""

from __future__ import annotations

from engine import codepoints as c
from peers.liar.wire import message

from ..formats.keyed import ESTABLISHED, IDENTITIES, PADDING, TRUSTED, UNSETTLED, Kind, encode
from ..formats.keyed import certificate as honest_certificate
from ..outcomes import AES_128, AES_256, CHACHA, chosen
from .case import Case

Item = tuple[int, int, int, bytes]

OPTIONAL, REQUIRED = 1, 2
WORD = chosen().replace("waiting", "established")
CLOSED = chosen().replace("waiting", "closed")
UNEXPECTED = "tls-unexpected-message"
DECODE = "tls-decode-error"
FINISHED: Item = (Kind.FINISHED, 0, 0, b"")
CLOSE: Item = (c.ALERT, 0, 0, b"\1\0")


def item(kind: int, content: bytes = b"", cut: int = 0, pad: int = 0) -> Item:
    """One item."""
    return kind, cut, pad, content


def proof(number: int) -> tuple[Item, Item]:
    """An honest Certificate and CertificateVerify."""
    return item(Kind.CERTIFICATE, cut=number), item(Kind.VERIFY, cut=number)


def padded(cut: int, zeros: int) -> Item:
    """Application data in records of `cut` bytes, each with so many zeros behind: what is sent is
    much longer than the input that says so."""
    return item(c.APPLICATION_DATA, bytes(15 * cut), cut, PADDING.index(zeros))


def flights() -> dict[str, Case]:
    """Second flights."""
    data = item(c.APPLICATION_DATA, b"hello")
    first = honest_certificate(0)
    table: list[tuple[str, int, str, str, tuple[Item, ...]]] = [
        ("nothing", 0, WORD.replace("established", "waiting"), "only the hello", ()),
        ("finished", 0, WORD, "an honest Finished", (FINISHED,)),
        ("finished-cut", 0, WORD, "a Finished in pieces of 5", (item(Kind.FINISHED, cut=5),)),
        ("chacha20", 4, WORD.replace(AES_128, CHACHA), "ChaCha20", (FINISHED,)),
        ("sha384", 8, WORD.replace(AES_128, AES_256), "SHA-384", (FINISHED,)),
        ("data-first", 0, UNEXPECTED, "application data before the Finished", (data, FINISHED)),
        (
            "finished-wrong",
            0,
            "tls-server-finished",
            "a Finished of zeros",
            (item(c.HANDSHAKE, message(c.FINISHED, bytes(32))),),
        ),
        ("finished-twice", 0, UNEXPECTED, "a second Finished", (FINISHED, FINISHED)),
        ("wrong-key", 0, "tls-bad-record-mac", "another key", (item(Kind.SKIP_KEY), FINISHED)),
        ("clear", 0, UNEXPECTED, "in the clear", (item(Kind.CLEAR, b"\x14", c.HANDSHAKE),)),
        ("clear-alert", 0, "tls-alert", "in the clear", (item(Kind.CLEAR, b"\2\x2a", c.ALERT),)),
        (
            "certificate-unasked",
            0,
            UNEXPECTED,
            "nobody asked for one",
            (item(Kind.CERTIFICATE), FINISHED),
        ),
        ("required-none", REQUIRED, UNEXPECTED, "a Finished where it is due", (FINISHED,)),
        (
            "required-empty",
            REQUIRED,
            "tls-server-client-cert-required",
            "an empty list",
            (item(c.HANDSHAKE, message(c.CERTIFICATE, bytes(4))),),
        ),
        (
            "optional-empty",
            OPTIONAL,
            WORD,
            "an empty list",
            (item(c.HANDSHAKE, message(c.CERTIFICATE, bytes(4))), FINISHED),
        ),
        (
            "verify-missing",
            OPTIONAL,
            UNEXPECTED,
            "no CertificateVerify",
            (item(Kind.CERTIFICATE), FINISHED),
        ),
        (
            "verify-other",
            OPTIONAL,
            "tls-bad-certificate-verify",
            "another client's key",
            (item(Kind.CERTIFICATE), item(Kind.VERIFY, cut=TRUSTED - 1), FINISHED),
        ),
        (
            "verify-other-kind",
            OPTIONAL,
            "tls-server-client-sigalg",
            "a scheme that is not its key's",
            (item(Kind.CERTIFICATE), item(Kind.VERIFY, cut=2), FINISHED),
        ),
        (
            "verify-first",
            OPTIONAL,
            UNEXPECTED,
            "before its certificate",
            (item(Kind.VERIFY), item(Kind.CERTIFICATE), FINISHED),
        ),
        (
            "certificate-twice",
            OPTIONAL,
            UNEXPECTED,
            "two Certificates",
            (item(Kind.CERTIFICATE), item(Kind.CERTIFICATE)),
        ),
        (
            "certificate-cut",
            REQUIRED,
            WORD,
            "in pieces of 99 bytes",
            (item(c.HANDSHAKE, first, cut=99), item(Kind.VERIFY), FINISHED),
        ),
        (
            "certificate-context",
            REQUIRED,
            "tls-server-illegal-parameter",
            "a context",
            (item(c.HANDSHAKE, message(c.CERTIFICATE, b"\1x\0\0\0")),),
        ),
        (
            "certificate-empty-entry",
            REQUIRED,
            DECODE,
            "an entry of no bytes",
            (item(c.HANDSHAKE, message(c.CERTIFICATE, b"\0\0\0\5\0\0\0\0\0")),),
        ),
        (
            "certificate-length",
            REQUIRED,
            "x509-chain-too-large",
            "16,385 bytes, refused at its header",
            (item(c.HANDSHAKE, b"\x0b\0\x40\1"),),
        ),
        (
            "verify-short",
            REQUIRED,
            DECODE,
            "a CertificateVerify of one byte",
            (item(Kind.CERTIFICATE), item(c.HANDSHAKE, message(c.CERTIFICATE_VERIFY, b"\4"))),
        ),
    ]
    for number in range(TRUSTED):
        what = f"client {number} of the harness's"
        table.append((f"client-{number}", REQUIRED, WORD, what, (*proof(number), FINISHED)))
    outcomes = ("x509-unknown-issuer", "x509-key-usage")
    for number, outcome in zip(range(TRUSTED, len(IDENTITIES)), outcomes, strict=True):
        what = "a client that is not believed"
        table.append((f"client-{number}", REQUIRED, outcome, what, (*proof(number), FINISHED)))
    return {
        name: Case(encode(settings, *items), outcome, what)
        for name, settings, outcome, what, items in table
    }


def afterwards() -> dict[str, Case]:
    """After the handshake."""
    data = item(c.APPLICATION_DATA, b"hello")
    update, asked = item(Kind.UPDATE, b"\0"), item(Kind.UPDATE, b"\1")
    longest = item(c.APPLICATION_DATA, b"", pad=PADDING.index(16_384))
    over = item(c.APPLICATION_DATA, b"", pad=PADDING.index(16_385))
    table: tuple[tuple[str, int, str, str, tuple[Item, ...]], ...] = (
        ("data", 0, WORD, "application data", (data,)),
        ("data-cut", 0, WORD, "in records of two bytes, padded", (item(23, b"hello", 2, 9),)),
        ("data-client", REQUIRED, WORD, "of a verified client", (data,)),
        ("data-unsettled", UNSETTLED, WORD, "its area given back each time", (data, data)),
        ("padding", 0, WORD, "2^14 + 1 bytes inside", (longest,)),
        ("padding-over", 0, "tls-record-overflow", "2^14 + 2 bytes inside", (over,)),
        ("update", 0, WORD, "a KeyUpdate", (update, data)),
        ("update-asked", 0, WORD, "with an answer", (data, asked, data, update, data)),
        (
            "update-unkept",
            0,
            "tls-bad-record-mac",
            "and the old key",
            (item(22, b"\x18\0\0\1\0"), data),
        ),
        ("update-early", 0, "tls-bad-record-mac", "a key nobody told", (item(Kind.SKIP_KEY), data)),
        ("update-value", 0, "tls-server-illegal-parameter", "2", (item(Kind.UPDATE, b"\2"),)),
        ("update-long", 0, DECODE, "two bytes", (item(Kind.UPDATE, b"\0\0"),)),
        ("update-then", 0, UNEXPECTED, "a byte behind", (item(22, b"\x18\0\0\1\0\0"),)),
        ("certificate", 0, UNEXPECTED, "after the handshake", (item(Kind.CERTIFICATE),)),
        ("verify", 0, UNEXPECTED, "after the handshake", (item(Kind.VERIFY),)),
        ("hello", 0, UNEXPECTED, "after the handshake", (item(22, message(1, bytes(40))),)),
        ("inner-zeros", 0, UNEXPECTED, "no type", (item(Kind.INNER, bytes(30)),)),
        ("inner-empty", 0, UNEXPECTED, "nothing", (item(Kind.INNER),)),
        ("inner-ccs", 0, UNEXPECTED, "change_cipher_spec", (item(20, b"\1"),)),
        ("inner-unknown", 0, UNEXPECTED, "type 99", (item(99, b"x"),)),
        ("interleaved", 0, UNEXPECTED, "data in a message", (item(22, b"\x18\0"), data)),
        ("alert", 0, "tls-alert", "internal_error", (data, item(21, b"\2\x50"))),
        ("alert-short", 0, DECODE, "one byte", (item(21, b"\2"),)),
        ("canceled", 0, WORD, "user_canceled", (item(21, b"\1\x5a"), data)),
        ("close", 0, CLOSED, "close_notify", (data, CLOSE, data)),
        ("close-client", REQUIRED, CLOSED, "of a verified client", (data, CLOSE)),
        ("send", 0, WORD, "the program sends", (data, item(Kind.CALL), data)),
        ("padded", 0, WORD, "two bytes a record, 247 of padding", (padded(2, 247),)),
        ("padded-whole", 0, WORD, "the longest padding that fits", (padded(1, 16_383),)),
        ("finish", 0, CLOSED, "both close", (item(Kind.CALL, cut=1), data, CLOSE)),
        ("eof", 0, "tls-peer-closed", "the transport ends", (data, item(Kind.CALL, cut=2))),
        ("eof-closed", 0, CLOSED, "after close_notify", (CLOSE, item(Kind.CALL, cut=2))),
        ("pressure", UNSETTLED, WORD, "a newcomer", (data, item(Kind.CALL, cut=3), data)),
    )
    return {
        f"after-{name}": Case(encode(ESTABLISHED | settings, *items), outcome, what)
        for name, settings, outcome, what, items in table
    }


def states() -> dict[str, Case]:
    """What each state behind the encryption refuses: one fault and one state an input."""
    canceled = item(c.ALERT, b"\1\x5a" * 33, cut=2)
    over = item(c.APPLICATION_DATA, b"", pad=PADDING.index(16_385))
    faults: dict[str, tuple[str, str, tuple[Item, ...]]] = {
        "inner-zeros": (UNEXPECTED, "no type", (item(Kind.INNER, bytes(30)),)),
        "padding-over": ("tls-record-overflow", "2^14 + 2 bytes inside", (over,)),
        "wrong-key": ("tls-bad-record-mac", "another key", (item(Kind.SKIP_KEY), FINISHED)),
        "clear": (UNEXPECTED, "in the clear", (item(Kind.CLEAR, b"\x14", c.HANDSHAKE),)),
        "ccs-value": (UNEXPECTED, "not 1", (item(Kind.CLEAR, b"\2", c.CHANGE_CIPHER_SPEC),)),
        "alert": ("tls-alert", "bad_certificate", (item(c.ALERT, b"\2\x2a"),)),
        "alert-empty": (UNEXPECTED, "an alert of nothing", (item(c.ALERT),)),
        "alert-short": (DECODE, "an alert of one byte", (item(c.ALERT, b"\2"),)),
        "canceled-33": ("tls-too-many-messages", "33 times user_canceled", (canceled,)),
        "hello": (UNEXPECTED, "a ClientHello", (item(22, message(c.CLIENT_HELLO, bytes(40))),)),
        "update": (UNEXPECTED, "a KeyUpdate", (item(Kind.UPDATE, b"\0"),)),
        "end-of-early": (UNEXPECTED, "EndOfEarlyData", (item(22, message(5, b"")),)),
        "ticket": (UNEXPECTED, "a server's message", (item(22, message(4, bytes(13))),)),
        "verify": (UNEXPECTED, "a CertificateVerify", (item(Kind.VERIFY),)),
        "eof": ("tls-peer-closed", "the transport ends", (item(Kind.CALL, cut=2),)),
    }
    wrong = ["inner-zeros", "padding-over", "wrong-key", "clear", "ccs-value", "alert"]
    wrong += ["alert-empty", "alert-short", "canceled-33", "hello", "update", "end-of-early", "eof"]
    # Of the later states, what no other input shows.
    finished = ["padding-over", "canceled-33", "hello", "verify", "end-of-early"]
    table: tuple[tuple[str, int, tuple[Item, ...], list[str]], ...] = (
        ("due-certificate", REQUIRED, (), wrong),
        ("due-verify", REQUIRED, (item(Kind.CERTIFICATE),), wrong),
        ("due-finished", 0, (), finished),
        ("after", ESTABLISHED, (), ["alert-empty", "canceled-33", "ticket"]),
    )
    return {
        f"{state}-{name}": Case(
            encode(settings, *before, *faults[name][2]), faults[name][0], faults[name][1]
        )
        for state, settings, before, names in table
        for name in names
    }


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    parts = {**flights(), **afterwards(), **states()}
    return {f"handmade-{name}": case for name, case in parts.items()}
