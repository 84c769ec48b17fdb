"""After the handshake (RFC 8446 §4.6, §5, §6.1): data, key updates, alerts, the end."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from collections.abc import Callable
from typing import Any

from peers.liar import codes
from peers.liar.client import Client
from peers.liar.conversation import Basis, Connection, Stage
from peers.liar.ends import End, closed, established, refused
from peers.liar.record import record
from peers.liar.wire import message

from .base import HANDSHAKE
from .flights import flip, saying

UNEXPECTED = refused("tls-unexpected-message", sealed=True)
BAD_MAC = refused("tls-bad-record-mac", sealed=True)
DECODE = refused("tls-decode-error", sealed=True)
TOO_MANY = refused("tls-too-many-messages", sealed=True)


def after(
    name: str, rule: str, where: str, end: End, make: Callable[[Client], bytes],
    basis: Basis = "rfc", **options: Any,
) -> None:
    """Bytes on an established connection, and a round trip if it still stands."""

    @HANDSHAKE.case(name, rule, where, end, basis)
    def _(stage: Stage) -> Connection:
        c = stage.connect(**options).honest()
        return c.tell(make(c.client)).echo()


def update(value: bytes) -> bytes:
    """A KeyUpdate message with this body."""
    return message(codes.KEY_UPDATE, value)


# Data (§5.1, §5.4).
after("data-of-16384", "a record holds 16,384 bytes", "RFC 8446 §5.1", established(),
      lambda c: c.send(bytes(16384)))
after("data-padded", "data may be padded", "RFC 8446 §5.4", established(),
      lambda c: c.send(b"x", padding=1000))
after("data-padded-to-the-limit", "data and padding fill 2^14 + 1 bytes", "RFC 8446 §5.4",
      established(), lambda c: c.send(b"x" * 100, padding=16284))
after("data-padded-over-the-limit", "data and padding do not pass 2^14 + 1 bytes", "RFC 8446 §5.4",
      refused("tls-record-overflow", sealed=True),
      lambda c: c.send(b"x" * 100, padding=16285))
after("data-of-16385", "a record does not hold 16,385 bytes", "RFC 8446 §5.1",
      refused("tls-record-overflow", sealed=True),
      lambda c: c.protect(codes.APPLICATION_DATA, bytes(16385)))
after("data-in-the-clear", "data is protected", "RFC 8446 §5.1", BAD_MAC,
      lambda c: record(codes.APPLICATION_DATA, b"plain text is not sealed"))
after("data-flipped", "a flipped bit of data is seen", "RFC 8446 §5.2", BAD_MAC,
      lambda c: flip(c.send(b"hello"), 7))
after("data-twice", "a record does not open twice", "RFC 8446 §5.3", BAD_MAC,
      lambda c: c.send(b"hello") * 2)
after("data-lost", "a lost record is seen", "RFC 8446 §5.3", BAD_MAC,
      lambda c: (c.send(b"lost"), c.send(b"sent"))[1])
after("data-swapped", "records come in order", "RFC 8446 §5.3", BAD_MAC,
      lambda c: b"".join(reversed([c.send(b"a"), c.send(b"b")])))
after("data-without-a-type", "protected zeros alone are refused", "RFC 8446 §5.4", UNEXPECTED,
      lambda c: c.writing.seal_inner(bytes(64)) if c.writing else b"")
after("empty-data-32-times", "32 empty records in a row are read", "SPEC §1.2", established(),
      lambda c: b"".join(c.send(b"") for _ in range(32)), "policy")
after("empty-data-33-times", "33 empty records in a row are too many", "SPEC §1.2", TOO_MANY,
      lambda c: b"".join(c.send(b"") for _ in range(33)), "policy")
after("padding-33-times", "33 records of padding alone are too many", "SPEC §1.2", TOO_MANY,
      lambda c: b"".join(c.send(b"", padding=300) for _ in range(33)), "policy")
after("empty-data-in-runs", "data ends a run of empty records", "SPEC §1.2", established(),
      lambda c: b"".join(b"".join(c.send(b"") for _ in range(32)) + c.send(b"x")
                         for _ in range(4)), "policy")

# KeyUpdate (§4.6.3).
after("key-update-asked", "a KeyUpdate that asks for one is answered", "RFC 8446 §4.6.3",
      established(updates=(0,)), lambda c: c.key_update(1))
after("key-update-not-asked", "a KeyUpdate that asks for none is not answered", "RFC 8446 §4.6.3",
      established(updates=()), lambda c: c.key_update(0))
after("key-update-asked-thrice", "each KeyUpdate that asks is answered", "SPEC §1.3",
      established(updates=(0, 0, 0)), lambda c: b"".join(c.key_update(1) for _ in range(3)),
      "policy")
after("key-update-with-sha384", "keys are updated under SHA-384 too", "RFC 8446 §7.2",
      established(updates=(0,)), lambda c: c.key_update(1), suites=(0x1302,))
after("key-update-with-chacha", "keys are updated under ChaCha20 too", "RFC 8446 §7.2",
      established(updates=(0,)), lambda c: c.key_update(1), suites=(0x1303,))
after("key-update-and-data", "data may follow under the next key", "RFC 8446 §4.6.3",
      established(updates=(0,)), lambda c: c.key_update(1) + c.send(b"under the next key"))
after("key-update-in-bytes", "a KeyUpdate may come in records of one byte", "RFC 8446 §5.1",
      established(updates=(0,)), lambda c: _moved(c, c.handshake_bytes(update(b"\x01"), cut=1)))
after("key-update-then-the-old-key", "after a KeyUpdate the old key is dead", "RFC 8446 §4.6.3",
      BAD_MAC, lambda c: c.handshake_bytes(update(b"\0")) + c.send(b"old key"))
after("key-update-of-two", "a KeyUpdate's value is 0 or 1, not 2", "RFC 8446 §4.6.3",
      refused("tls-server-illegal-parameter", sealed=True), lambda c: c.key_update(2))
after("key-update-of-255", "a KeyUpdate's value is 0 or 1, not 255", "RFC 8446 §4.6.3",
      refused("tls-server-illegal-parameter", sealed=True), lambda c: c.key_update(255))
after("key-update-empty", "a KeyUpdate has a byte", "RFC 8446 §4.6.3", DECODE,
      lambda c: c.key_update(body=b""))
after("key-update-of-two-bytes", "a KeyUpdate has one byte", "RFC 8446 §4.6.3", DECODE,
      lambda c: c.key_update(body=b"\0\0"))
after("key-update-declares-2^24-1", "a KeyUpdate's length is judged by its header", "SPEC §1.3",
      DECODE, lambda c: c.handshake_bytes(message(24, b"", (1 << 24) - 1)), "policy")
after("key-update-and-more", "a KeyUpdate ends its record", "RFC 8446 §5.1", UNEXPECTED,
      lambda c: c.handshake_bytes(update(b"\0") + update(b"\0")))
after("key-update-and-a-byte", "not a byte follows a KeyUpdate in its record", "RFC 8446 §5.1",
      UNEXPECTED, lambda c: c.handshake_bytes(update(b"\0") + b"\x18"))
after("key-update-32-times", "32 KeyUpdates in a row are read", "SPEC §1.2",
      established(updates=()), lambda c: b"".join(c.key_update(0) for _ in range(32)),
      "policy")
after("key-update-33-times", "33 KeyUpdates in a row are too many", "SPEC §1.2", TOO_MANY,
      lambda c: b"".join(c.key_update(0) for _ in range(33)), "policy")
after("key-update-asked-33-times", "33 KeyUpdates that ask are too many", "SPEC §1.2", TOO_MANY,
      lambda c: b"".join(c.key_update(1) for _ in range(33)), "policy")
after("a-mixed-run", "a run of mixed records that get nowhere is one run", "SPEC §1.2", TOO_MANY,
      lambda c: b"".join(
          c.key_update(0) + c.send(b"") + c.alert(codes.USER_CANCELED) for _ in range(11)),
      "policy")
after("key-update-in-the-clear", "a KeyUpdate is protected", "RFC 8446 §5.2", UNEXPECTED,
      lambda c: record(codes.HANDSHAKE, update(b"\0")))
after("data-in-a-key-update", "no data comes between two parts of a KeyUpdate", "RFC 8446 §5.1",
      UNEXPECTED, lambda c: c.handshake_bytes(update(b"\0")[:2]) + c.send(b"x"))


def _moved(client: Client, data: bytes) -> bytes:
    client.next_key()
    return data


# Messages that have no place any more (§4.6).
for _kind, _body in (
    (codes.CLIENT_HELLO, bytes(60)),
    (codes.NEW_SESSION_TICKET, bytes(20)),
    (codes.END_OF_EARLY_DATA, b""),
    (codes.CERTIFICATE, b"\0\0\0\0"),
    (codes.CERTIFICATE_REQUEST, b"\0\0\0"),
    (codes.CERTIFICATE_VERIFY, bytes(76)),
    (codes.MESSAGE_HASH, bytes(32)),
    (99, b""),
):
    _label = codes.MESSAGE_NAMES.get(_kind, f"type {_kind}")
    after(f"{_label.replace('_', '-').replace(' ', '-')}-after-the-handshake",
          f"{_label} does not come after the handshake", "RFC 8446 §4.6", UNEXPECTED,
          saying(message(_kind, _body)))
after("renegotiation-by-its-header", "a ClientHello after the handshake is judged by its header",
      "RFC 8446 §4.1.2", UNEXPECTED,
      lambda c: c.handshake_bytes(message(codes.CLIENT_HELLO, b"", 16384)))
after("ccs-after-the-handshake", "a change_cipher_spec does not come after the Finished",
      "RFC 8446 §5", UNEXPECTED, lambda c: record(codes.CHANGE_CIPHER_SPEC, b"\x01"))
after("ccs-protected-after-the-handshake", "it does not come protected either", "RFC 8446 §5",
      UNEXPECTED, lambda c: c.protect(codes.CHANGE_CIPHER_SPEC, b"\x01"))
after("handshake-empty-after-the-handshake", "an empty handshake record is refused here too",
      "RFC 8446 §5.1", UNEXPECTED, lambda c: c.protect(codes.HANDSHAKE, b""))
after("alert-empty-after-the-handshake", "an empty alert record is refused here too",
      "RFC 8446 §5.1", UNEXPECTED, lambda c: c.protect(codes.ALERT, b""))
after("alert-of-three-bytes-after-the-handshake", "an alert is two bytes here too", "RFC 8446 §6",
      DECODE, lambda c: c.protect(codes.ALERT, b"\x02\x28\0"))
after("alert-clear-after-the-handshake", "an alert after the Finished is protected",
      "RFC 8446 §5.2", UNEXPECTED, lambda c: c.alert(codes.HANDSHAKE_FAILURE, sealed=False))
after("close-clear-after-the-handshake", "a close_notify in the clear closes nothing",
      "RFC 8446 §5.2", UNEXPECTED, lambda c: c.alert(codes.CLOSE_NOTIFY, sealed=False))
after("fatal-alert-after-the-handshake", "a fatal alert ends the connection", "RFC 8446 §6.2",
      refused("tls-alert"), lambda c: c.alert(codes.INTERNAL_ERROR))
after("warning-alert-after-the-handshake", "its level is not read here either", "RFC 8446 §6",
      refused("tls-alert"), lambda c: c.alert(codes.INTERNAL_ERROR, level=1))
after("user-canceled-after-the-handshake", "user_canceled is read past here too", "RFC 9846 §6.1",
      established(), lambda c: c.alert(codes.USER_CANCELED))
after("user-canceled-33-times-after-the-handshake", "33 of them are too many here too",
      "SPEC §1.2", TOO_MANY, lambda c: b"".join(c.alert(90) for _ in range(33)), "policy")


# The end (§6.1).
def end(name: str, rule: str, where: str, how: Callable[[Connection], Connection], end: End,
        ) -> None:
    """Add a conversation in which an established connection is ended so."""
    @HANDSHAKE.case(name, rule, where, end)
    def _(stage: Stage) -> Connection:
        return how(stage.connect().honest())


end("close-notify", "close_notify is answered with close_notify", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.close_notify()), closed())
end("close-notify-fatal", "a close_notify of level fatal closes as well", "RFC 8446 §6",
    lambda c: c.tell(c.client.alert(codes.CLOSE_NOTIFY, level=2)), closed())
end("data-and-close", "what came before close_notify is answered", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.send(b" last words") + c.client.close_notify()),
    closed(received=b"ping last words"))
end("data-after-close", "what comes after close_notify is dropped", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.close_notify() + c.client.send(b"too late")),
    closed(received=b"ping"))
end("rubbish-after-close", "whatever comes after close_notify is dropped", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.close_notify()).tell(record(99, b"x") + bytes(70000)),
    closed())
end("key-update-after-close", "a KeyUpdate after close_notify is not answered", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.close_notify() + c.client.key_update(1)),
    closed(updates=()))
end("end-after-close", "an end after close_notify is clean", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.close_notify()).end(), closed())
end("end-without-close", "an end without close_notify is a truncation", "RFC 8446 §6.1",
    lambda c: c.end(), refused("tls-peer-closed"))
end("end-in-a-record", "an end inside a record is a truncation", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.send(b"hello")[:10]).end(), refused("tls-peer-closed"))
end("user-canceled-and-close", "user_canceled and close_notify close", "RFC 8446 §6.1",
    lambda c: c.tell(c.client.alert(codes.USER_CANCELED) + c.client.close_notify()),
    closed())
