"""The input of the keyed harness, version 1: what a client says once it has keys.

    byte 0      1, the version of this format
    byte 1      settings: two bits of client authentication, two of the suite, then SETTINGS
    the rest    items, each `kind cut pad length(2) content`

A kind below 0xF0 is an inner content type: the content goes out in protected records of it, in
pieces of `cut` bytes (0 is whole), each with padding (PADDING). The others (Kind) are what only an
honest client can compute, and what only a dishonest one sends. An item that is cut off ends where
the input does.

The harness knows the keys without playing the handshake: the server's seed is fixed and so are the
hellos, so the secrets of each hello are computed once, by the lying client.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from engine import codepoints as c
from peers.liar import messages, proofs
from peers.liar.client import Client
from peers.liar.identities import Identity, authority, make
from peers.liar.record import Protection, record
from peers.liar.schedule import Schedule, digest
from peers.liar.wire import message, u16, vec16

from ..build_identity import CLIENT_ROOT, MIDDLE, client
from ..honest_client import Talk
from .server import CLIENT_OPTIONAL, CLIENT_REQUIRED, NO_RESTING, Call, Script, Step

VERSION = 1
HEADER = 2
ITEM = 5
ITEMS = 24
RECORDS = 48
"""Bounds of one input, so that no input is slow: its items, and the records they are cut into."""

MODES = (0, CLIENT_OPTIONAL, CLIENT_REQUIRED, 0)
SUITES = (
    c.TLS_AES_128_GCM_SHA256,
    c.TLS_CHACHA20_POLY1305_SHA256,
    c.TLS_AES_256_GCM_SHA384,
    c.TLS_AES_128_GCM_SHA256,
)
ESTABLISHED = 0x10
UNSETTLED = 0x20
SETTINGS = {
    ESTABLISHED: "the honest second flight goes first",
    UNSETTLED: "no connection rests in its area",
}
LONG = (1_024, 4_096, 16_383, 16_384, 16_385)
PADDING = (*range(256 - len(LONG)), *LONG)
"""The zeros behind an inner content type, by the item's byte."""

CALLS = (Call.SEND, Call.FINISH, Call.EOF, Call.NEWCOMER, Call.FEED_NOTHING)


class Kind(IntEnum):
    """Items that are no inner content type."""

    CERTIFICATE = 0xF0  # an honest Certificate, of identity `cut`
    VERIFY = 0xF1  # an honest CertificateVerify, of identity `cut`
    FINISHED = 0xF2  # an honest Finished
    UPDATE = 0xF3  # a KeyUpdate with the content as its body, and the next key
    CLEAR = 0xF4  # the content in a record of outer type `cut`, unprotected
    CALL = 0xF5  # the server's program calls CALLS[cut]
    SKIP_KEY = 0xF6  # the next key, without a word
    INNER = 0xF7  # the content as a whole inner plaintext


def identities() -> tuple[Identity, ...]:
    """The clients of the honest items; TRUSTED of them are believed."""
    return (
        *(client(kind) for kind in ("p256", "p384", "ed25519", "rsa2048")),
        make([], issuer=MIDDLE, usage="client", label="below the middle"),
        make([], issuer=authority("harness stranger"), usage="client", label="stranger"),
        make([], issuer=CLIENT_ROOT, usage="server", label="a server"),
    )


IDENTITIES = identities()
TRUSTED = 5


class Session(NamedTuple):
    """What a client knows after the server's flight."""

    hello: bytes
    schedule: Schedule
    transcript: bytes


@lru_cache(maxsize=16)
def session(mode: int, suite: int) -> Session:
    """The secrets of the honest hello that offers this suite, of a server in this mode."""
    talk = Talk(settings=mode, suites=(suite,)).shake()
    assert talk.client.schedule is not None
    (hello,) = talk.parts
    assert isinstance(hello, bytes)
    return Session(hello, talk.client.schedule, bytes(talk.client.transcript))


class Flight(NamedTuple):
    """A compiled input: the script that plays it, and what may come of it."""

    script: Script
    plaintext: bytes
    """All application data, up to a close_notify: what is received must be the beginning of it."""
    finished: bool
    """Whether there is an honest Finished: without it nothing may be established."""
    proven: frozenset[bytes]
    """The leaves whose honest CertificateVerify is there: no other client may be verified."""


class _Writer:
    """Compiles items; a client's half of the record layer and of the transcript."""

    def __init__(self, settings: int) -> None:
        mode, suite = MODES[settings & 3], SUITES[settings >> 2 & 3]
        found = session(mode, suite)
        self.schedule = found.schedule
        self.transcript = found.transcript
        self.key = Protection(self.schedule.suite, self.schedule.secrets["c hs traffic"])
        self.steps = [Step(Call.FEED, found.hello)]
        self.settings = mode | (NO_RESTING if settings & UNSETTLED else 0)
        self.plaintext = b""
        self.closed = False
        self.finished = False
        self.proven: set[bytes] = set()

    def full(self) -> bool:
        """Whether the input is at its bound: what is not sent must not be waited for either."""
        return len(self.steps) > RECORDS

    def feed(self, data: bytes) -> None:
        if not self.full():
            self.steps.append(Step(Call.FEED, data))

    def call(self, call: Call) -> None:
        if not self.full():
            self.steps.append(Step(call, b""))

    def inner(self, whole: bytes) -> None:
        """One protected record; the receiver finds the type behind the content and its zeros."""
        found = whole.rstrip(b"\0")
        if found and not self.full() and not self.closed:
            if found[-1] == c.APPLICATION_DATA:
                self.plaintext += found[:-1]
            self.closed = found[-1] == c.ALERT and found[1:-1] == b"\0"
        self.feed(self.key.seal_inner(whole))

    def say(self, kind: int, content: bytes, cut: int = 0, pad: int = 0) -> None:
        size = cut or len(content) or 1
        if kind == c.HANDSHAKE and not self.finished:
            self.transcript += content
        for at in range(0, max(len(content), 1), size):
            self.inner(content[at : at + size] + bytes([kind]) + bytes(pad))

    def item(self, kind: int, cut: int, pad: int, content: bytes) -> None:
        if kind < Kind.CERTIFICATE:
            self.say(kind, content, cut, PADDING[pad])
        elif kind == Kind.CERTIFICATE:
            self.say(c.HANDSHAKE, certificate(cut % len(IDENTITIES)), 0, PADDING[pad])
        elif kind == Kind.VERIFY:
            self.verify(cut % len(IDENTITIES))
        elif kind == Kind.FINISHED:
            self.finish(cut)
        elif kind == Kind.UPDATE:
            self.say(c.HANDSHAKE, message(c.KEY_UPDATE, content), cut, PADDING[pad])
            self.key = self.key.updated()
        elif kind == Kind.CLEAR:
            self.feed(record(cut, content))
        elif kind == Kind.CALL:
            self.call(CALLS[cut % len(CALLS)])
        elif kind == Kind.SKIP_KEY:
            self.key = self.key.updated()
        else:
            self.inner(content)

    def verify(self, number: int) -> None:
        identity = IDENTITIES[number]
        covered = digest(self.schedule.hash, self.transcript)
        self.say(c.HANDSHAKE, certificate_verify(number, covered))
        self.proven.add(identity.der)

    def finish(self, cut: int = 0) -> None:
        covered = digest(self.schedule.hash, self.transcript)
        mac = messages.verify_data(self.schedule, "c hs traffic", covered)
        self.say(c.HANDSHAKE, message(c.FINISHED, mac), cut)
        self.finished = self.finished or not self.full()
        self.key = Protection(self.schedule.suite, self.schedule.secrets["c ap traffic"])


@lru_cache(maxsize=16)
def certificate(number: int) -> bytes:
    """An honest Certificate."""
    return Client(credential=IDENTITIES[number].credential).certificate_message()


@lru_cache(maxsize=4_096)
def certificate_verify(number: int, covered: bytes) -> bytes:
    """An honest CertificateVerify; kept, because a fuzzer comes back to the same transcripts."""
    key = IDENTITIES[number].key
    scheme = proofs.natural_scheme(key)
    signature = proofs.sign(key, scheme, proofs.signed_content(proofs.CLIENT_CONTEXT, covered))
    return message(c.CERTIFICATE_VERIFY, u16(scheme) + vec16(signature))


def items(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """The items of an input: kind, cut, pad, content."""
    at = HEADER
    for _ in range(ITEMS):
        if at + ITEM > len(data):
            return
        size = int.from_bytes(data[at + 3 : at + ITEM])
        yield data[at], data[at + 1], data[at + 2], data[at + ITEM : at + ITEM + size]
        at += ITEM + size


def decode(data: bytes) -> Flight | None:
    """The script of an input; None for an input of no version that is known."""
    if len(data) < HEADER or data[0] != VERSION:
        return None
    writer = _Writer(data[1])
    if data[1] & ESTABLISHED:
        if MODES[data[1] & 3]:
            writer.say(c.HANDSHAKE, certificate(0))
            writer.verify(0)
        writer.finish()
    for item in items(data):
        writer.item(*item)
    script = Script(writer.settings, writer.steps)
    return Flight(script, writer.plaintext, writer.finished, frozenset(writer.proven))


def encode(settings: int, *parts: tuple[int, int, int, bytes]) -> bytes:
    """The input of a list of items: what the corpus is made with."""
    listed = (
        bytes([kind, cut, pad]) + len(content).to_bytes(2) + content
        for kind, cut, pad, content in parts
    )
    return bytes([VERSION, settings]) + b"".join(listed)
