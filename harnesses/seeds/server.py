"""The handmade inputs of the server harness: a conversation for each rule, honest or breaking one.

The lying client plays each against an engine set up as the harness sets it up, so that what it
sends can be sent again: with the seed fixed the server's flight, and so the client's Finished, are
the same bytes each time. As in `seeds.hello` the outcome is written here by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import codepoints as c
from peers.liar import Client
from peers.liar import hello as build
from peers.liar.hello import Hello
from peers.liar.record import record
from peers.liar.wire import message

from ..fixtures import P256_KEY, X25519_KEY, plain
from ..formats.server import (
    CHECK_SIGNATURE,
    EOF,
    NEIGHBOUR,
    NO_AES,
    NO_RESTING,
    STEPS,
    Call,
    encode,
)
from ..hello import hello_records
from ..honest_client import Part, Talk, compose
from ..oracles import one_in
from ..outcomes import AES_128, AES_256, CHACHA, chosen
from . import server_flights, server_states
from .case import Case
from .hello import cases as hello_cases

ESTABLISHED = "established"
CLOSED = "closed"
UNEXPECTED = "tls-unexpected-message"
DECODE = "tls-decode-error"
OVERFLOW = "tls-record-overflow"
BAD_MAC = "tls-bad-record-mac"
RETRY_SHARE = "tls-server-retry-share"
TOO_MANY = "tls-too-many-messages"
CCS = record(c.CHANGE_CIPHER_SPEC, b"\1")


def clear() -> dict[str, Case]:
    """Records before there is a key."""
    hello = plain().message()
    first = record(c.HANDSHAKE, hello)
    half, rest = record(c.HANDSHAKE, hello[:80]), record(c.HANDSHAKE, hello[80:])
    waiting = chosen()
    zero = plain(c.EXT_KEY_SHARE, build.key_shares([(c.X25519, bytes(32))])).message()
    off = plain(c.EXT_KEY_SHARE, build.key_shares([(c.P256, b"\4" + bytes([7]) * 64)])).message()
    off_384 = plain(c.EXT_KEY_SHARE, build.key_shares([(c.P384, b"\4" + bytes([7]) * 96)]))
    table = (
        ("nothing", b"", "waiting", "not a byte"),
        ("application-data-first", b"\x17\3\3\0\5hello", UNEXPECTED, "a record of the wrong type"),
        ("unknown-type", b"\x63\3\3\0\5", UNEXPECTED, "a record of no type"),
        ("http", b"GET / HTTP/1.1\r\n\r\n", UNEXPECTED, "another protocol"),
        ("ccs-first", CCS + first, UNEXPECTED, "a change_cipher_spec before any ClientHello"),
        ("handshake-empty", b"\x16\3\3\0\0", UNEXPECTED, "an empty handshake record"),
        ("alert-empty", b"\x15\3\3\0\0", UNEXPECTED, "an empty alert record"),
        ("alert-short", record(c.ALERT, b"\2"), DECODE, "an alert of one byte"),
        ("alert-long", record(c.ALERT, b"\2\x28\0"), DECODE, "an alert of three bytes"),
        ("alert-first", record(c.ALERT, b"\2\x28"), "tls-alert", "handshake_failure"),
        ("close-first", record(c.ALERT, b"\1\0"), "tls-alert", "close_notify before the end"),
        ("canceled", record(c.ALERT, b"\1\x5a") + first, waiting, "user_canceled is read past"),
        ("canceled-33", record(c.ALERT, b"\1\x5a") * 33, TOO_MANY, "33 times user_canceled"),
        ("major-version", b"\x16\2\0\0\5", "tls-protocol-version", "a record of version 0x0200"),
        ("type-before-version", b"\x17\2\0\0\5", UNEXPECTED, "the type is judged first"),
        ("overflow", b"\x16\3\3\x40\1", OVERFLOW, "a plaintext record of 2^14 + 1 bytes"),
        ("server-hello", record(c.HANDSHAKE, message(2, b"")), UNEXPECTED, "a ServerHello"),
        (
            "hello-length",
            record(c.HANDSHAKE, b"\1\0\x40\1"),
            "tls-server-client-hello-length",
            "a ClientHello of 16,385 bytes, refused at its header",
        ),
        ("hello-not-last", record(c.HANDSHAKE, hello + b"\0"), UNEXPECTED, "a byte behind it"),
        ("hello-twice", record(c.HANDSHAKE, hello * 2), UNEXPECTED, "two in one record"),
        ("hello-in-two", half + rest, waiting, "a ClientHello in two records"),
        ("alert-in-hello", half + record(c.ALERT, b"\1\x5a") + rest, UNEXPECTED, "interleaved"),
        ("ccs-in-hello", half + CCS + rest, UNEXPECTED, "a change_cipher_spec in a message"),
        ("hello-half", half, "waiting", "half a ClientHello"),
        ("share-zero", record(c.HANDSHAKE, zero), "tls-key-share", "an all-zero X25519 share"),
        ("share-off-curve", record(c.HANDSHAKE, off), "tls-key-share", "no point of P-256"),
        (
            "share-off-curve-384",
            record(c.HANDSHAKE, off_384.message()),
            "tls-key-share",
            "no point of P-384",
        ),
    )
    found = {name: Case(compose([data]), outcome, what) for name, data, outcome, what in table}
    bytewise = bytes([1]) * STEPS
    found["hello-bytewise"] = Case(encode(first, bytewise), waiting, "one byte a call")
    found["eof-first"] = Case(compose([], EOF), "tls-peer-closed", "the transport ends at once")
    found["eof-in-hello"] = Case(compose([half], EOF), "tls-peer-closed", "and in a hello")
    found["again"] = Case(compose([half, Call.AGAIN, first]), waiting, "dropped in a hello")
    found["take-seven"] = Case(
        compose([first, Call.TAKE_SEVEN, CCS]), waiting, "the flight is taken in two parts"
    )
    return found


def hellos() -> dict[str, Case]:
    """One ClientHello for each refusal that it can earn, through the whole engine."""
    found: dict[str, Case] = {}
    for name, case in hello_cases().items():
        if case.outcome not in {kept.outcome for kept in found.values()}:
            short = name.removeprefix("handmade-")
            data = encode(hello_records(case.data))
            # Until the second hello is answered, the engine says that it asked, and no more.
            outcome = "waiting retried=yes" if "retried=yes" in case.outcome else case.outcome
            found[f"hello-{short}"] = Case(data, outcome, case.what)
    return found


def handshakes() -> dict[str, Case]:
    """Whole handshakes: every suite and group, a retry, early data, cuts."""
    group = {c.X25519: "X25519", c.P256: "P-256", c.P384: "P-384"}
    found = {}

    def done(name: str, talk: Talk, what: str, outcome: str = ESTABLISHED, flags: int = 0) -> None:
        found[name] = Case(talk.input(flags), outcome, what)

    def word(suite: str = AES_128, name: str = "X25519", retried: str = "no") -> str:
        return chosen(suite, name, retried).replace("waiting", ESTABLISHED)

    done("established", Talk().establish(), "an honest handshake", word())
    for code, name in group.items():
        talk = Talk(groups=(code,)).establish()
        done(f"group-{name.lower()}", talk, f"only {name}", word(name=name))
    for code, name in ((c.TLS_AES_256_GCM_SHA384, AES_256), (0x1303, CHACHA)):
        talk = Talk(suites=(code,)).establish()
        done(f"suite-{name[4:11].lower().strip('_')}", talk, f"only {name}", word(name))
    done("check", Talk().establish(), "the own signature is checked", word(), CHECK_SIGNATURE)
    talk = Talk(False).establish()
    done("no-aes", talk, "ChaCha20 comes first without AES", word(CHACHA), NO_AES)
    for code, name in group.items():
        talk = Talk(groups=(code,), shares=()).establish()
        done(f"retry-{name.lower()}", talk, "after a retry", word(name=name, retried="yes"))
    retry_384 = Talk(suites=(c.TLS_AES_256_GCM_SHA384,), shares=()).establish()
    done("retry-sha384", retry_384, "a retry under SHA-384", word(AES_256, retried="yes"))
    quiet = Talk(session_id=b"").establish()
    done("no-session-id", quiet, "no change_cipher_spec on either side", word())
    alpn = Talk(alpn=(b"spdy/3", b"http/1.1")).establish()
    done("alpn", alpn, "a protocol in common", word())
    early = Talk(early_data=True).shake()
    junk = [record(c.APPLICATION_DATA, bytes(40)), record(c.APPLICATION_DATA, bytes(8))]
    done("early-data", early.say(*junk, early.client.finish()), "early data is skipped", word())
    full = Talk(early_data=True).shake()
    full.say(record(c.APPLICATION_DATA, bytes(16_384)), full.client.finish())
    done("early-data-16384", full, "as much as is skipped", word())
    over = Talk(early_data=True).shake().say(record(c.APPLICATION_DATA, bytes(16_384)))
    over.parts.append(record(c.APPLICATION_DATA, bytes(1)))
    done("early-data-16385", over, "a byte more", "tls-server-early-data-size")
    early_retry = Talk(early_data=True, shares=())
    early_retry.say(early_retry.client.hello(), *junk)
    early_retry.say(early_retry.client.hello()).say(early_retry.client.finish())
    done("early-data-retry", early_retry, "skipped before a second hello", word(retried="yes"))
    for name, size in (("one", 1), ("seven", 7)):
        cut = Talk().shake()
        cut.say(cut.client.finish(cut=size))
        done(f"finished-cut-{name}", cut, f"a Finished in records of {size}", word())
    padded = Talk().shake()
    padded.say(padded.client.finish(padding=1_000))
    done("finished-padded", padded, "1,000 bytes of padding", word())
    return found


def broken_handshakes() -> dict[str, Case]:
    """Between the server's flight and the client's Finished, each breaking one rule."""
    found = {}

    def last(name: str, talk: Talk, final: bytes, outcome: str, what: str, flags: int = 0) -> None:
        talk.parts.append(final)
        found[name] = Case(talk.input(flags), outcome, what)

    def flight() -> Talk:
        return Talk().shake()

    t = flight()
    wrong = t.client.finished_message(edit=lambda mac: bytes([mac[0] ^ 1]) + mac[1:])
    last("finished-wrong", t, t.client.handshake_bytes(wrong), "tls-server-finished", "one bit")
    t = flight()
    short = t.client.finished_message(edit=lambda mac: mac[:-1])
    last("finished-short", t, t.client.handshake_bytes(short), DECODE, "31 bytes")
    t = flight()
    more = t.client.finished_message() + b"\0"
    last("finished-not-last", t, t.client.handshake_bytes(more), UNEXPECTED, "a byte behind it")
    t = flight()
    update = t.client.handshake_bytes(message(c.KEY_UPDATE, b"\0"))
    last("key-update-early", t, update, UNEXPECTED, "a KeyUpdate before the Finished")
    t = flight()
    data = t.client.protect(c.APPLICATION_DATA, b"hello")
    last("data-early", t, data, UNEXPECTED, "application data before the Finished")
    t = flight()
    certificate = t.client.handshake_bytes(message(c.CERTIFICATE, b"\0\0\0\0"))
    last("certificate-unasked", t, certificate, UNEXPECTED, "a Certificate nobody asked for")
    for name, kind, content, outcome in (
        ("inner-nothing", 0, b"", UNEXPECTED),
        ("inner-zeros", 0, bytes(20), UNEXPECTED),
        ("inner-ccs", c.CHANGE_CIPHER_SPEC, b"\1", UNEXPECTED),
        ("inner-handshake-empty", c.HANDSHAKE, b"", UNEXPECTED),
        ("inner-alert-empty", c.ALERT, b"", UNEXPECTED),
        ("inner-alert-short", c.ALERT, b"\2", DECODE),
        ("inner-alert", c.ALERT, b"\2\x2a", "tls-alert"),
    ):
        t = flight()
        last(name, t, t.client.protect(kind, content), outcome, "inside protection")
    mac = record(c.APPLICATION_DATA, bytes(32))
    for name, final, outcome, what in (
        ("bad-mac", mac, BAD_MAC, "a record under no key"),
        ("bad-mac-short", record(c.APPLICATION_DATA, bytes(15)), BAD_MAC, "under 16 bytes"),
        ("sealed-overflow", b"\x17\3\3\x41\1", OVERFLOW, "a protected record of 2^14 + 257"),
        ("ccs-value", record(c.CHANGE_CIPHER_SPEC, b"\2"), UNEXPECTED, "another value than 1"),
        ("ccs-33", CCS * 33, TOO_MANY, "33 times change_cipher_spec"),
        ("hello-again", hello_records(plain().message()[4:]), UNEXPECTED, "a hello nobody asked"),
        ("alert-in-clear", record(c.ALERT, b"\2\x2a"), "tls-alert", "a client without a key"),
    ):
        last(name, flight(), final, outcome, what)
    last("eof-after-flight", flight(), b"", "tls-peer-closed", "the transport ends", EOF)
    t = flight()
    half = t.client.handshake_bytes(t.client.finished_message()[:9])
    last("ccs-in-finished", t, half + CCS, UNEXPECTED, "a change_cipher_spec in a Finished")
    return found


def retries() -> dict[str, Case]:
    """Second ClientHellos that are not what was asked for."""
    found = {}

    def second(name: str, outcome: str, what: str, edit: Callable[[Hello], object]) -> None:
        talk = Talk(shares=())
        talk.say(talk.client.hello())
        talk.parts.append(talk.client.hello(edit))
        found[f"retry-{name}"] = Case(talk.input(), outcome, what)

    def suites(hello: Hello) -> None:
        hello.suites = [c.TLS_AES_256_GCM_SHA384]

    def session(hello: Hello) -> None:
        hello.session_id = bytes(32)

    share = X25519_KEY
    p256 = P256_KEY
    second("none", RETRY_SHARE, "no share again", lambda h: h.put(51, build.key_shares([])))
    second("other", RETRY_SHARE, "another group", lambda h: h.put(51, build.key_shares([p256])))
    second("two", RETRY_SHARE, "two", lambda h: h.put(51, build.key_shares([share, p256])))
    second("session-id", RETRY_SHARE, "another session id", session)
    second("suite", RETRY_SHARE, "the suite dropped", suites)
    second("early-data", RETRY_SHARE, "early data again", lambda h: h.put(c.EXT_EARLY_DATA, b""))
    second(
        "no-key-share",
        "tls-server-missing-extension",
        "no key_share",
        lambda h: h.drop(c.EXT_KEY_SHARE),
    )
    for name, final, outcome in (
        ("bad-type", b"\x17\3\3\0\5hello", UNEXPECTED),
        ("finished", record(c.HANDSHAKE, message(c.FINISHED, bytes(32))), UNEXPECTED),
        ("ccs-33", CCS * 33, TOO_MANY),
    ):
        talk = Talk(shares=())
        talk.say(talk.client.hello())
        talk.parts.append(final)
        found[f"retry-{name}"] = Case(talk.input(), outcome, "instead of a second ClientHello")
    return found


def established() -> dict[str, Case]:
    """After the handshake."""
    found = {}
    word = chosen().replace("waiting", ESTABLISHED)
    closed = word.replace(ESTABLISHED, CLOSED)

    def after(
        name: str,
        outcome: str,
        what: str,
        tail: Callable[[Client], list[Part]],
        settings: int = 0,
        client: dict[str, Any] | None = None,
    ) -> None:
        talk = Talk(**(client or {})).establish()
        talk.parts += tail(talk.client)
        found[name] = Case(talk.input(settings), outcome, what)

    def inner(kind: int, content: bytes) -> Callable[[Client], list[Part]]:
        return lambda client: [client.protect(kind, content)]

    def handshake(kind: int, body: bytes) -> Callable[[Client], list[Part]]:
        return lambda client: [client.handshake_bytes(message(kind, body))]

    after("data", word, "both ways", lambda k: [k.send(b"hello"), Call.SEND, k.send(b"x")])
    after("data-16384", word, "the largest record", lambda k: [k.send(bytes(16_384))])
    after("data-padded", word, "padding", lambda k: [k.send(b"x", padding=999)])
    # Without a session id the client sends no change_cipher_spec, which would count too.
    plainly: dict[str, Any] = {"session_id": b""}
    after("data-empty-32", word, "32 empty records", lambda k: _many(k, 32), client=plainly)
    after("data-empty-33", TOO_MANY, "33 empty records", lambda k: _many(k, 33), client=plainly)
    after(
        "data-empty-run-ends",
        word,
        "data ends a run",
        lambda k: [*_many(k, 32), k.send(b"x"), *_many(k, 32)],
        client=plainly,
    )
    after(
        "data-sent-run-ends",
        word,
        "data sent ends a run too",
        lambda k: [*_many(k, 32), Call.SEND, *_many(k, 32)],
        client=plainly,
    )
    after("update", word, "a KeyUpdate", lambda k: [k.key_update(0), k.send(b"x")])
    after("update-asked", word, "an answer is asked for", lambda k: [k.key_update(1), k.send(b"x")])
    after(
        "update-33", TOO_MANY, "33 KeyUpdates", lambda k: [k.key_update(n & 1) for n in range(33)]
    )
    after("update-value", "tls-server-illegal-parameter", "value 2", handshake(c.KEY_UPDATE, b"\2"))
    after("update-long", DECODE, "a KeyUpdate of two bytes", handshake(c.KEY_UPDATE, b"\0\0"))
    after(
        "update-not-last",
        UNEXPECTED,
        "a byte behind it",
        lambda k: [k.handshake_bytes(message(c.KEY_UPDATE, b"\0") + b"\0")],
    )
    after(
        "update-cut",
        word,
        "in two records",
        lambda k: [k.handshake_bytes(message(c.KEY_UPDATE, b"\0"), cut=2)],
    )
    after(
        "data-in-update",
        UNEXPECTED,
        "data inside a message",
        lambda k: [k.handshake_bytes(b"\x18\0"), k.send(b"x")],
    )
    after("hello-after", UNEXPECTED, "renegotiation", handshake(c.CLIENT_HELLO, bytes(40)))
    after("certificate-after", UNEXPECTED, "unasked", handshake(c.CERTIFICATE, bytes(4)))
    after("finished-after", UNEXPECTED, "again", handshake(c.FINISHED, bytes(32)))
    after("inner-type-after", UNEXPECTED, "an unknown inner type", inner(99, b"x"))
    after("inner-zeros-after", UNEXPECTED, "no inner type", inner(0, bytes(9)))
    after("ccs-after", UNEXPECTED, "change_cipher_spec", lambda k: [CCS])
    after("alert-clear-after", UNEXPECTED, "in the clear", lambda k: [record(c.ALERT, b"\2\x2a")])
    after("bad-mac-after", BAD_MAC, "a flipped bit", lambda k: [_flipped(k.send(b"hello"))])
    after("inner-overflow", OVERFLOW, "2^14 + 1 and a type", lambda k: [k.send(b"x", 16_384)])
    after("alert-after", "tls-alert", "internal_error", lambda k: [k.alert(80)])
    after("canceled-after", word, "user_canceled", lambda k: [k.alert(90), k.send(b"x")])
    after("close", closed, "close_notify", lambda k: [k.send(b"bye"), k.close_notify()])
    after("close-then-data", closed, "what follows is dropped", lambda k: [k.close_notify() * 2])
    after("close-then-eof", closed, "eof changes nothing", lambda k: [k.close_notify()], EOF)
    after("close-half", closed, "sending goes on", lambda k: [k.close_notify(), Call.SEND])
    after(
        "close-both",
        closed,
        "closed both ways",
        lambda k: [Call.FINISH, k.send(b"x"), k.close_notify()],
    )
    after("finish-then-fault", UNEXPECTED, "no alert follows", lambda k: [Call.FINISH, CCS])
    after(
        "cut-by-a-call",
        BAD_MAC,
        "the alert goes under the key that the KeyUpdate's answer took",
        lambda k: _called_inside(k.key_update(1), record(c.APPLICATION_DATA, bytes(20))),
    )
    after("finish-then-update", word, "no answer", lambda k: [Call.FINISH, k.key_update(1)])
    after("eof-after", "tls-peer-closed", "truncated", lambda k: [k.send(b"x")], EOF)
    after("eof-in-record", "tls-peer-closed", "in a record", lambda k: [k.send(b"x")[:9]], EOF)
    pressed = NEIGHBOUR | NO_RESTING

    def pressure(client: Client) -> list[Part]:
        return [Call.NEWCOMER, client.send(b"x"), Call.SEND]

    after("pressure", word, "no area is free, then one is", pressure, pressed)
    after("pressure-resting", word, "the resting area is taken", pressure, NEIGHBOUR)
    after(
        "pressure-eof",
        "tls-peer-closed",
        "the transport ends without an area",
        lambda k: [Call.NEWCOMER],
        pressed | EOF,
    )
    after("no-resting", word, "settled after each", lambda k: [k.send(b"x")], NO_RESTING)
    return found


def _many(client: Client, count: int) -> list[Part]:
    return [client.send(b"") for _ in range(count)]


def beside() -> dict[str, Case]:
    """A handshake beside a neighbour's, among the eighth of inputs whose neighbour is looked at."""
    hello = record(c.HANDSHAKE, plain().message())
    inputs = (encode(hello, bytes(calls), NEIGHBOUR) for calls in range(STEPS))
    seen = next(data for data in inputs if one_in(8, data))
    return {"beside": Case(seen, chosen(), "a neighbour goes on as it would alone")}


def _called_inside(first: bytes, *rest: bytes) -> list[Part]:
    """A call of the program's in the middle of a record, and more records behind it."""
    return [first[:9], Call.SEND, first[9:] + b"".join(rest)]


def _flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    groups = (
        clear(),
        hellos(),
        handshakes(),
        broken_handshakes(),
        retries(),
        established(),
        beside(),
        server_flights.cases(),
        server_states.cases(),
    )
    found: dict[str, Case] = {}
    for group in groups:
        twice = set(found) & {f"handmade-{name}" for name in group}
        if twice:
            raise ValueError(f"two inputs are called {sorted(twice)}")
        found.update({f"handmade-{name}": case for name, case in group.items()})
    told = {case.outcome for name, case in found.items() if name.startswith("handmade-retry-")}
    return {**found, **_seconds(told)}


def _seconds(told: set[str]) -> dict[str, Case]:
    """First hellos of harness hello as second ones, where none of the conversations ends so: a
    second ClientHello is refused for whatever a first one is."""
    found = {}
    for name, case in hello_cases().items():
        if case.outcome.startswith("tls-") and case.outcome not in told:
            told.add(case.outcome)
            talk = Talk(shares=())
            talk.say(talk.client.hello())
            talk.parts.append(hello_records(case.data))
            file = name.replace("handmade-", "handmade-retry-")
            found[file] = Case(talk.input(), case.outcome, f"a second hello: {case.what}")
    return found
