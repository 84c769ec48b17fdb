"""The client's second flight and what comes in its place (RFC 8446 §4.4, §5.2, §5.4)."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from collections.abc import Callable
from typing import Any

from peers.liar import codes
from peers.liar.client import Client
from peers.liar.conversation import Basis, Connection, Stage
from peers.liar.ends import End, established, refused
from peers.liar.record import Protection, record
from peers.liar.wire import message

from .base import HANDSHAKE, add

BAD_MAC = refused("tls-bad-record-mac", sealed=True)
UNEXPECTED = refused("tls-unexpected-message", sealed=True)
DECODE = refused("tls-decode-error", sealed=True)
FINISHED = refused("tls-server-finished", sealed=True)
OK = established()


def flight(
    name: str, rule: str, where: str, end: End, make: Callable[[Client], bytes],
    basis: Basis = "rfc", finish: bool = False, **options: Any,
) -> None:
    """Bytes in the place of the client's Finished, or before it with ``finish``."""

    @HANDSHAKE.case(name, rule, where, end, basis)
    def _(stage: Stage) -> Connection:
        c = stage.connect(**options).flight()
        c.tell(make(c.client))
        return c.finish().echo() if finish and c.client.state == "flight" else c


def flip(data: bytes, at: int) -> bytes:
    """The same bytes with the last bit of one turned."""
    out = bytearray(data)
    out[at] ^= 1
    return bytes(out)


def whole(client: Client, data: bytes, **how: int) -> bytes:
    """Handshake bytes in one record, and the client acts as if its Finished were sent."""
    out = client.handshake_bytes(data, **how)
    client.establish()
    return out


def saying(data: bytes) -> Callable[[Client], bytes]:
    """These handshake bytes, whoever says them."""
    return lambda client: client.handshake_bytes(data)


def sending(data: bytes) -> Callable[[Client], bytes]:
    """These bytes, as they are."""
    return lambda client: data


def wrong(how: Callable[[bytes], bytes]) -> Callable[[Client], bytes]:
    """A Finished with its MAC edited."""
    return lambda client: client.handshake_bytes(client.finished_message(edit=how))


def flipping(at: int) -> Callable[[bytes], bytes]:
    """A change that turns a bit of one byte."""
    return lambda data: flip(data, at)


def alerting(description: int, sealed: bool) -> Callable[[Client], bytes]:
    """A flight of one alert, in the clear or sealed."""
    return lambda client: client.alert(description, sealed=sealed)


def inner(kind: int) -> Callable[[Client], bytes]:
    """A flight of one protected record with this inner type."""
    return lambda client: client.protect(kind, b"x")


def broken(at: int) -> Callable[[Client], bytes]:
    """An honest Finished with a bit flipped in its record."""
    return lambda client: flip(client.handshake_bytes(finished(client)), at)


def finished(client: Client) -> bytes:
    """A flight of an honest Finished."""
    return client.add(client.finished_message())


# The Finished itself (§4.4.4).
for _name, _at in (("first", 0), ("middle", 15), ("last", -1)):
    flight(f"finished-{_name}-byte-wrong", f"the {_name} byte of a Finished is compared",
           "RFC 8446 §4.4.4", FINISHED, wrong(flipping(_at)))
flight("finished-of-zeros", "a Finished is not zero", "RFC 8446 §4.4.4", FINISHED,
       lambda c: c.handshake_bytes(c.finished_message(edit=lambda b: bytes(len(b)))))
flight("finished-under-the-servers-secret", "the client's Finished is not the server's",
       "RFC 8446 §4.4.4", FINISHED,
       lambda c: c.handshake_bytes(c.finished_message(secret="s hs traffic")))
flight("finished-under-the-application-secret", "a Finished is under the handshake secret",
       "RFC 8446 §4.4.4", FINISHED,
       lambda c: c.handshake_bytes(c.finished_message(secret="c ap traffic")))
flight("finished-over-the-hellos", "a Finished covers the server's flight", "RFC 8446 §4.4.4",
       FINISHED, lambda c: c.handshake_bytes(c.finished_message(
           transcript=bytes(c.transcript[: len(c.transcript) // 4]))))
flight("finished-over-less", "a Finished covers the server's Finished", "RFC 8446 §4.4.4", FINISHED,
       lambda c: c.handshake_bytes(c.finished_message(transcript=bytes(c.transcript[:-36]))))
flight("finished-with-sha384-wrong", "a Finished of SHA-384 is compared to its end",
       "RFC 8446 §4.4.4", FINISHED,
       lambda c: c.handshake_bytes(c.finished_message(edit=lambda b: flip(b, 47))),
       suites=(0x1302,))
flight("the-servers-finished-back", "the server's own Finished is no answer", "RFC 8446 §4.4.4",
       FINISHED, lambda c: c.handshake_bytes(bytes(c.transcript[-36:])))
for _name, _how in (
    ("short", lambda b: b[:-1]), ("long", lambda b: b + b"\0"), ("empty", lambda b: b""),
):
    flight(f"finished-too-{_name}", f"a Finished has its hash's length: {_name}", "RFC 8446 §4.4.4",
           DECODE, wrong(_how))
flight("finished-declares-2^24-1", "a Finished's length is judged by its header", "SPEC §1.3",
       DECODE, lambda c: c.handshake_bytes(message(codes.FINISHED, b"", (1 << 24) - 1)),
       "policy")
flight("finished-and-more", "a Finished ends its record", "RFC 8446 §5.1", UNEXPECTED,
       lambda c: c.handshake_bytes(finished(c) + b"\x18"))
flight("finished-and-a-key-update", "no message follows a Finished in its record", "RFC 8446 §5.1",
       UNEXPECTED, lambda c: c.handshake_bytes(finished(c) + message(24, b"\0")))
flight("finished-cut-and-more", "a Finished ends its last record", "RFC 8446 §5.1", UNEXPECTED,
       lambda c: c.handshake_bytes(finished(c) + b"\x18", cut=[20]))
flight("wrong-finished-and-more", "that a Finished ends its record is judged first", "SPEC §1.2",
       UNEXPECTED,
       lambda c: c.handshake_bytes(c.finished_message(edit=lambda b: flip(b, 0)) + b"\0"),
       "policy")
flight("finished-in-bytes", "a Finished may come in records of one byte", "RFC 8446 §5.1", OK,
       lambda c: whole(c, finished(c), cut=1))
flight("finished-padded", "a Finished may be padded", "RFC 8446 §5.4", OK,
       lambda c: whole(c, finished(c), padding=500))
flight("finished-padded-to-the-limit", "padding fills a record to 2^14 + 1", "RFC 8446 §5.4", OK,
       lambda c: whole(c, finished(c), padding=16384 - 36))


@HANDSHAKE.case("finished-and-data-at-once", "data may come right behind the Finished",
                "RFC 8446 §2", established(received=b"at once"))
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    return c.tell(c.client.finish() + c.client.send(b"at once"))


@HANDSHAKE.case("finished-twice", "there is one Finished", "RFC 8446 §4.4.4", UNEXPECTED)
def _(stage: Stage) -> Connection:
    c = stage.connect().honest()
    return c.tell(c.client.handshake_bytes(c.client.finished_message()))


@HANDSHAKE.case("end-before-the-finished", "an end in the handshake is no close", "RFC 8446 §6.1",
                refused("tls-peer-closed"))
def _(stage: Stage) -> Connection:
    return stage.connect().flight().end()


# Other messages in its place (§A.2).
for _kind, _body in (
    (codes.CLIENT_HELLO, bytes(60)),
    (codes.SERVER_HELLO, bytes(60)),
    (codes.NEW_SESSION_TICKET, bytes(20)),
    (codes.END_OF_EARLY_DATA, b""),
    (codes.CERTIFICATE, b"\0\0\0\0"),
    (codes.CERTIFICATE_VERIFY, bytes(76)),
    (codes.KEY_UPDATE, b"\0"),
    (codes.MESSAGE_HASH, bytes(32)),
    (99, b""),
):
    _label = codes.MESSAGE_NAMES.get(_kind, f"type {_kind}")
    flight(f"{_label.replace('_', '-').replace(' ', '-')}-for-the-finished",
           f"{_label} does not come in the place of the Finished", "RFC 8446 §A.2",
           UNEXPECTED, saying(message(_kind, _body)))
flight("message-by-its-header", "a message in the Finished's place is judged by its header",
       "SPEC §1.3", UNEXPECTED,
       lambda c: c.handshake_bytes(message(codes.CERTIFICATE, b"", 16384)), "policy")
flight("data-for-the-finished", "no data comes before the Finished", "RFC 8446 §2", UNEXPECTED,
       lambda c: c.send(b"early"))
flight("empty-data-for-the-finished", "no empty data comes before the Finished", "RFC 8446 §2",
       UNEXPECTED, lambda c: c.send(b""))
flight("finished-in-the-clear", "a Finished is protected", "RFC 8446 §5.2", UNEXPECTED,
       lambda c: record(codes.HANDSHAKE, c.finished_message()))

# Protection (§5.2, §5.3).
flight("finished-under-the-application-key", "a Finished is sealed under the handshake key",
       "RFC 8446 §7.3", BAD_MAC, lambda c: c.protect(22, finished(c), key=_application(c)))
flight("finished-under-the-servers-key", "each side seals under its own key", "RFC 8446 §7.3",
       BAD_MAC, lambda c: c.protect(22, finished(c), key=_servers(c)))
flight("finished-one-record-late", "sequence numbers have no gap", "RFC 8446 §5.3", BAD_MAC,
       lambda c: _skip(c) + c.handshake_bytes(finished(c)))
for _name, _at in (("first-byte", 5), ("tag", -1)):
    flight(f"sealed-{_name}-flipped", f"a flipped bit in the {_name} of a record is seen",
           "RFC 8446 §5.2", BAD_MAC,
           broken(_at))
for _size in (0, 1, 15):
    flight(f"sealed-record-of-{_size}", f"{_size} bytes are too few for a tag", "RFC 8446 §5.2",
           BAD_MAC, sending(record(codes.APPLICATION_DATA, bytes(_size))))
flight("sealed-record-of-16", "a tag of zeros opens nothing", "RFC 8446 §5.2", BAD_MAC,
       lambda c: record(codes.APPLICATION_DATA, bytes(16)))
flight("sealed-record-over-the-limit", "a protected record has at most 2^14 + 256 bytes",
       "RFC 8446 §5.2", refused("tls-record-overflow", sealed=True),
       lambda c: record(codes.APPLICATION_DATA, b"", length=16641))
flight("sealed-record-at-the-limit", "2^14 + 256 bytes are read, and opened", "RFC 8446 §5.2",
       BAD_MAC, lambda c: record(codes.APPLICATION_DATA, bytes(16640)))
flight("inner-over-the-limit", "an inner plaintext has at most 2^14 + 1 bytes", "RFC 8446 §5.4",
       refused("tls-record-overflow", sealed=True),
       lambda c: c.protect(22, finished(c), padding=16385 - 36))
flight("inner-without-a-type", "an inner plaintext has a byte that is not zero", "RFC 8446 §5.4",
       UNEXPECTED, lambda c: _writing(c).seal_inner(bytes(100)))
flight("inner-of-nothing", "an inner plaintext is not empty", "RFC 8446 §5.4", UNEXPECTED,
       lambda c: _writing(c).seal_inner(b""))
flight("inner-ccs", "a change_cipher_spec is never protected", "RFC 8446 §5", UNEXPECTED,
       lambda c: c.protect(codes.CHANGE_CIPHER_SPEC, b"\x01"))
for _kind in (1, 24, 255):
    flight(f"inner-type-{_kind}", f"there is no inner type {_kind}", "RFC 8446 §5.2", UNEXPECTED,
           inner(_kind))
flight("inner-handshake-empty", "a protected handshake record is not empty", "RFC 8446 §5.1",
       UNEXPECTED, lambda c: c.protect(codes.HANDSHAKE, b""))
flight("inner-handshake-padding-only", "padding does not make a handshake record", "RFC 8446 §5.4",
       UNEXPECTED, lambda c: c.protect(codes.HANDSHAKE, b"", padding=50))
flight("inner-alert-empty", "a protected alert record is not empty", "RFC 8446 §5.1", UNEXPECTED,
       lambda c: c.protect(codes.ALERT, b""))
flight("inner-alert-of-one-byte", "a protected alert is two bytes", "RFC 8446 §6", DECODE,
       lambda c: c.protect(codes.ALERT, b"\x02"))
flight("outer-version-0301", "the version of a protected record is not judged by its minor byte",
       "RFC 8446 §5.1", OK, lambda c: _established(c, _writing(c).seal(22, finished(c),
                                                                      version=0x0301)))
flight("outer-version-0203", "a protected record's major version is 3 too", "SPEC §1.2",
       refused("tls-protocol-version", sealed=True),
       lambda c: _writing(c).seal(22, finished(c), version=0x0203), "policy")
flight("outer-type-handshake", "a protected record says application_data", "RFC 8446 §5.2",
       UNEXPECTED,
       lambda c: _writing(c).seal_inner(finished(c) + b"\x16", outer=codes.HANDSHAKE))
flight("alert-in-the-finished", "no alert comes between two parts of a Finished", "RFC 8446 §5.1",
       UNEXPECTED, lambda c: c.handshake_bytes(c.finished_message()[:20])
       + c.alert(codes.USER_CANCELED))
flight("ccs-in-the-finished", "no change_cipher_spec comes between two parts of a Finished",
       "RFC 8446 §5.1", UNEXPECTED, lambda c: c.handshake_bytes(c.finished_message()[:20])
       + record(codes.CHANGE_CIPHER_SPEC, b"\x01"))
flight("data-in-the-finished", "no data comes between two parts of a Finished", "RFC 8446 §5.1",
       UNEXPECTED, lambda c: c.handshake_bytes(c.finished_message()[:20])
       + c.send(b"x"))

# Alerts in its place (§6): in the clear, and sealed.
for _sealed in (False, True):
    _word = "sealed" if _sealed else "clear"
    flight(f"fatal-alert-{_word}-for-the-finished", f"a {_word} alert refuses the flight",
           "RFC 8446 §6", refused("tls-alert"),
           alerting(codes.BAD_CERTIFICATE, _sealed))
    flight(f"close-notify-{_word}-for-the-finished", f"a {_word} close_notify ends the handshake",
           "RFC 8446 §6.1", refused("tls-alert"),
           alerting(codes.CLOSE_NOTIFY, _sealed))
    flight(f"user-canceled-{_word}-before-the-finished", f"a {_word} user_canceled is read past",
           "RFC 9846 §6.1", OK, alerting(codes.USER_CANCELED, _sealed),
           finish=True)
flight("fatal-alert-clear-once-a-record-opened",
       "an alert of a client that has keys is protected", "RFC 8446 §6", UNEXPECTED,
       lambda c: c.alert(codes.USER_CANCELED) + c.alert(codes.BAD_CERTIFICATE, sealed=False))
flight("close-notify-clear-once-a-record-opened",
       "a close_notify in the clear is not believed of a client that has keys", "RFC 8446 §6",
       UNEXPECTED,
       lambda c: c.alert(codes.USER_CANCELED) + c.alert(codes.CLOSE_NOTIFY, sealed=False))
flight("user-canceled-clear-once-a-record-opened",
       "a user_canceled in the clear is not read past any more either", "RFC 8446 §6", UNEXPECTED,
       lambda c: c.alert(codes.USER_CANCELED) + c.alert(codes.USER_CANCELED, sealed=False))
flight("alert-clear-empty-for-the-finished", "a clear alert after the flight is not empty",
       "RFC 8446 §5.1", UNEXPECTED, lambda c: record(codes.ALERT, b""))
flight("alert-clear-of-one-byte-for-the-finished", "a clear alert after the flight is two bytes",
       "RFC 8446 §6", DECODE, lambda c: record(codes.ALERT, b"\x02"))


# Early data behind the flight (§4.2.10).
def _early(name: str, rule: str, end: End, make: Callable[[Client], bytes], offered: bool = True,
           basis: Basis = "rfc") -> None:
    @HANDSHAKE.case(name, rule, "RFC 8446 §4.2.10", end, basis)
    def _(stage: Stage) -> Connection:
        c = stage.connect()
        return c.hello(add(codes.EARLY_DATA) if offered else None).tell(make(c.client))


_early("early-data-over-16384", "no more than 16,384 bytes are skipped",
       refused("tls-server-early-data-size", sealed=True),
       lambda c: record(23, bytes(8192)) * 2 + record(23, bytes(17)), basis="policy")
_early("early-data-in-a-large-record", "a record over what may be skipped is refused",
       refused("tls-server-early-data-size", sealed=True),
       lambda c: record(23, bytes(16385)), basis="policy")
_early("early-data-empty-33-times", "records of no length are not skipped for ever either",
       refused("tls-too-many-messages", sealed=True), lambda c: record(23, b"") * 33,
       basis="policy")
_early("early-data-not-offered", "without the offer nothing is skipped", BAD_MAC,
       lambda c: record(23, bytes(100)), offered=False)
_early("early-data-behind-a-record-that-opened", "nothing is skipped once a record opened", BAD_MAC,
       lambda c: c.handshake_bytes(c.finished_message()[:20]) + record(23, bytes(100)))
_early("end-of-early-data-unasked", "early data that was refused has no end message", UNEXPECTED,
       lambda c: c.handshake_bytes(message(codes.END_OF_EARLY_DATA, b"")))


@HANDSHAKE.case("early-data-after-the-finished", "after the Finished nothing is skipped",
                "RFC 8446 §4.2.10", BAD_MAC)
def _(stage: Stage) -> Connection:
    c = stage.connect().honest(add(codes.EARLY_DATA))
    return c.tell(record(23, bytes(100)))


def _writing(client: Client) -> Protection:
    assert client.writing is not None
    return client.writing


def _secret(client: Client, label: str) -> Protection:
    assert client.schedule is not None
    return Protection(client.schedule.suite, client.schedule.secrets[label])


def _application(client: Client) -> Protection:
    return _secret(client, "c ap traffic")


def _servers(client: Client) -> Protection:
    return _secret(client, "s hs traffic")


def _skip(client: Client) -> bytes:
    """One sequence number goes unused."""
    _writing(client).sequence += 1
    return b""


def _established(client: Client, data: bytes) -> bytes:
    client.establish()
    return data
