"""Records before there is a key (RFC 8446 §5, §6): headers, empty ones, alerts, what is first."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from collections.abc import Callable

from peers.liar import codes
from peers.liar.client import Client
from peers.liar.conversation import Basis, Connection, Stage
from peers.liar.ends import End, closed, refused, waits
from peers.liar.record import record
from peers.liar.wire import message, u16

from .base import HANDSHAKE

UNEXPECTED = refused("tls-unexpected-message")
OVERFLOW = refused("tls-record-overflow")
CCS = record(codes.CHANGE_CIPHER_SPEC, b"\x01")


def first(
    name: str, rule: str, where: str, end: End, data: bytes | Callable[[Client], bytes],
    basis: Basis = "rfc", setup: None = None,
) -> None:
    """The first bytes of a connection, given or made from an honest client."""

    @HANDSHAKE.case(name, rule, where, end, basis)
    def _(stage: Stage) -> Connection:
        c = stage.connect()
        c.client.state = "hello"  # it awaits an answer to whatever it says
        return c.tell(data if isinstance(data, bytes) else data(c.client))


def half_hello(client: Client, size: int = 100) -> bytes:
    """The first part of an honest hello, in its own record."""
    return record(codes.HANDSHAKE, client.hello_message()[:size], 0x0301)


# Headers, judged when their five bytes are there: type, version, length (§5.1).
for _type in (0, 19, 24, 25, 255):
    first(f"record-type-{_type}", f"there is no record of type {_type}", "RFC 8446 §5", UNEXPECTED,
          record(_type, b"x"))
first("data-first", "application data does not come first", "RFC 8446 §5", UNEXPECTED,
      record(codes.APPLICATION_DATA, bytes(40)))
first("ccs-first", "a change_cipher_spec does not come before the hello", "RFC 8446 §5", UNEXPECTED,
      CCS)
first("http-first", "a request in the clear is no record", "RFC 8446 §5", UNEXPECTED,
      b"GET / HTTP/1.1\r\n\r\n", "policy")
first("sslv2-first", "an SSL 2 hello is no record", "RFC 8446 §D.5", UNEXPECTED,
      b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10", "policy")
VERSION = refused("tls-protocol-version")
for _version in (0x0000, 0x0200, 0x0400, 0xFEFF):
    first(f"record-of-version-{_version:04x}", f"a record's major version is 3, not {_version:#x}",
          "SPEC §1.2", VERSION, record(codes.HANDSHAKE, b"\x01", _version), "policy")
first("type-before-version", "the type of a record is judged before its version", "SPEC §1.3",
      UNEXPECTED, record(99, b"x", 0x0200), "policy")
first("version-before-length", "the version of a record is judged before its length", "SPEC §1.3",
      VERSION, record(codes.HANDSHAKE, b"", 0x0200, 0xFFFF), "policy")
for _size in (16385, 0xFFFF):
    first(f"record-of-{_size}", f"a plaintext record of {_size} bytes is refused by its header",
          "SPEC §1.3; RFC 8446 §5.1", OVERFLOW,
          record(codes.HANDSHAKE, b"", length=_size), "policy")
first("header-alone", "a record's header alone is waited on", "RFC 8446 §5.1", waits("waiting"),
      b"\x16\x03\x01\x02\x00")
first("half-a-header", "half a header is waited on", "RFC 8446 §5.1", waits("waiting"), b"\x16\x03")
first("half-a-hello", "half a hello is waited on", "RFC 8446 §5.1", waits("waiting"), half_hello)

# Empty and interleaved (§5.1).
first("empty-handshake-record", "a handshake record is not empty", "RFC 8446 §5.1", UNEXPECTED,
      record(codes.HANDSHAKE, b""), "policy")
first("empty-alert-record", "an alert record is not empty", "RFC 8446 §5.1", UNEXPECTED,
      record(codes.ALERT, b""))
first("empty-record-in-a-hello", "no empty record comes between two parts of a hello",
      "RFC 8446 §5.1", UNEXPECTED,
      lambda c: half_hello(c) + record(codes.HANDSHAKE, b""), "policy")
first("alert-in-a-hello", "no alert comes between two parts of a hello", "RFC 8446 §5.1",
      UNEXPECTED, lambda c: half_hello(c) + c.alert(codes.USER_CANCELED))
first("ccs-in-a-hello", "no change_cipher_spec comes between two parts of a hello",
      "RFC 8446 §5.1", UNEXPECTED, lambda c: half_hello(c) + CCS)
first("data-in-a-hello", "no data comes between two parts of a hello", "RFC 8446 §5.1",
      UNEXPECTED, lambda c: half_hello(c) + record(23, bytes(40)))

# Alerts in the clear (§6).
first("alert-of-one-byte", "an alert is two bytes, not one", "RFC 8446 §6",
      refused("tls-decode-error"), record(codes.ALERT, b"\x02"))
first("alert-of-three-bytes", "an alert is two bytes, not three", "RFC 8446 §6",
      refused("tls-decode-error"), record(codes.ALERT, b"\x02\x28\0"))
first("two-alerts-in-a-record", "an alert record holds one alert", "RFC 8446 §5.1",
      refused("tls-decode-error"), record(codes.ALERT, b"\x01\x5a\x02\x28"))
for _name, _alert, _rule in (
    ("fatal-alert-first", b"\x02\x28", "a fatal alert ends the connection without an answer"),
    ("warning-alert-first", b"\x01\x28", "an error alert is fatal whatever its level says"),
    ("close-notify-first", b"\x01\x00", "close_notify before the handshake ends it"),
    ("unknown-alert-first", b"\x02\xc8", "an unknown alert is an error alert"),
    ("alert-of-level-0", b"\x00\x28", "a level that does not exist is not read"),
):
    first(_name, _rule, "RFC 8446 §6", refused("tls-alert"), record(codes.ALERT, _alert))


@HANDSHAKE.case("user-canceled-first", "user_canceled alone is read past", "RFC 9846 §6.1",
                closed(), "policy")
def _(stage: Stage) -> Connection:
    c = stage.connect()
    c.tell(c.client.alert(codes.USER_CANCELED)).honest()
    return c.tell(c.client.close_notify())


@HANDSHAKE.case("user-canceled-then-close", "user_canceled is followed by close_notify",
                "RFC 8446 §6.1", refused("tls-alert"))
def _(stage: Stage) -> Connection:
    c = stage.connect()
    c.client.state = "hello"
    return c.tell(c.client.alert(codes.USER_CANCELED) + c.client.alert(codes.CLOSE_NOTIFY))


first("user-canceled-33-times", "33 records that get nowhere are too many", "SPEC §1.2",
      refused("tls-too-many-messages"), record(codes.ALERT, b"\x01\x5a") * 33, "policy")

# Messages that do not come first (§A.2).
for _kind, _body in (
    (0, b""),
    (codes.SERVER_HELLO, b"\x03\x03" + bytes(70)),
    (codes.NEW_SESSION_TICKET, bytes(20)),
    (codes.END_OF_EARLY_DATA, b""),
    (codes.ENCRYPTED_EXTENSIONS, b"\0\0"),
    (codes.CERTIFICATE, b"\0\0\0\0"),
    (codes.CERTIFICATE_VERIFY, bytes(76)),
    (codes.FINISHED, bytes(32)),
    (codes.KEY_UPDATE, b"\0"),
    (codes.MESSAGE_HASH, bytes(32)),
    (255, b""),
):
    _label = codes.MESSAGE_NAMES.get(_kind, f"type {_kind}")
    first(f"first-message-{_label.replace('_', '-').replace(' ', '-')}",
          f"{_label} does not come before a ClientHello", "RFC 8446 §A.2", UNEXPECTED,
          record(codes.HANDSHAKE, message(_kind, _body)))
first("first-message-by-its-header", "a message out of place is judged by its header alone",
      "SPEC §1.3", UNEXPECTED,
      record(codes.HANDSHAKE, message(codes.CERTIFICATE, b"", (1 << 24) - 1)), "policy")
first("message-behind-the-hello", "a hello ends its record", "RFC 8446 §5.1", UNEXPECTED,
      lambda c: record(codes.HANDSHAKE, c.hello_message() + message(codes.FINISHED, bytes(32)),
                       0x0301))
first("byte-behind-the-hello", "not a byte follows the hello in its record", "RFC 8446 §5.1",
      UNEXPECTED, lambda c: record(codes.HANDSHAKE, c.hello_message() + b"\x01", 0x0301))


def _rest_behind(client: Client) -> bytes:
    whole = client.hello_message()
    return record(codes.HANDSHAKE, whole[:50], 0x0301) + record(22, whole[50:] + b"\x14")


first("byte-behind-a-cut-hello", "not a byte follows the hello in its last record",
      "RFC 8446 §5.1", UNEXPECTED, _rest_behind)

# change_cipher_spec of the wrong kind, behind the hello (§5).
for _name, _body in (
    ("of-zero", b"\0"), ("of-two", b"\x02"), ("of-two-bytes", b"\x01\x01"), ("empty", b""),
):

    @HANDSHAKE.case(f"ccs-{_name}",
                    f"a change_cipher_spec is one byte 01, not {_body.hex() or 'none'}",
                    "RFC 8446 §5", refused("tls-unexpected-message", sealed=True))
    def _(stage: Stage, body: bytes = _body) -> Connection:
        return stage.connect().flight().tell(record(codes.CHANGE_CIPHER_SPEC, body))


@HANDSHAKE.case("ccs-33-times", "33 change_cipher_specs in a row are too many", "SPEC §1.2",
                refused("tls-too-many-messages", sealed=True), "policy")
def _(stage: Stage) -> Connection:
    return stage.connect().flight().tell(CCS * 33)


@HANDSHAKE.case("ccs-before-a-retried-hello-of-two",
                "its value is judged before a second hello too",
                "RFC 8446 §5", UNEXPECTED)
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=()).hello().need("retry")
    return c.tell(record(codes.CHANGE_CIPHER_SPEC, b"\x02"))


# The transport's end.
@HANDSHAKE.case("end-before-a-byte", "an end before the first byte is no close", "RFC 8446 §6.1",
                refused("tls-peer-closed"))
def _(stage: Stage) -> Connection:
    return stage.connect().end()


@HANDSHAKE.case("end-in-a-hello", "an end inside a hello is no close", "RFC 8446 §6.1",
                refused("tls-peer-closed"))
def _(stage: Stage) -> Connection:
    c = stage.connect()
    return c.tell(half_hello(c.client)).end()


@HANDSHAKE.case("silent-after-a-failure", "after its alert the server says nothing to anything",
                "RFC 8446 §6.2", UNEXPECTED)
def _(stage: Stage) -> Connection:
    c = stage.connect()
    c.client.state = "hello"
    c.tell(record(99, b"x"))
    return c.tell(Client("another").hello()).tell(record(99, b"x")).tell(u16(0) * 500)
