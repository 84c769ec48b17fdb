"""Session tickets: sealed, opened, and judged.

A ticket is the server's own state, handed to the client and read back (RFC 8446 §2.2, §4.6.1). The
server keeps nothing for it, so another process with the same ticket key and the same identity
resumes it too. All integers are big-endian:

    ticket    = key name (16) | salt (32) | sealed plaintext | tag (16)
    subkey    = HKDF-Expand(HKDF-Extract(salt, ticket key), "cancho tls ticket v1", 32)
    sealing   = ChaCha20-Poly1305, a nonce of zeros, over version | key name | salt
    plaintext = version (1) | auth (1) | issue ms (8) | expiry ms (8) | age_add (4) | suite (2)
              | PSK length (1) | PSK | SHA-256 of the leaf (32)
              | name length (1) | name | protocol length (1) | protocol

No (key, nonce) pair seals two messages, because the key is new for each ticket: a counter would
collide between the processes that share a ticket key, and random nonces of 96 bits under one key
would repeat on a busy fleet within days.

A ticket is a stored verdict that a full handshake happened, and every way in which the verdict can
be stale is a rule. A ticket that breaks a rule is no error: the connection goes on as a full
handshake and says why. What ends the connection instead is a wrong binder on a ticket that every
rule accepted (§4.2.11.2), because its holder does not know the key in it.

A ticket resumes as often as its client offers it, until it expires. There is no early data, so a
replayed ClientHello makes no progress: its sender cannot derive the handshake keys. The new ticket
of a resumed connection starts a new lifetime, so a chain of them has no total age; only the leaf's
own end bounds it.

What cannot be wiped: the pseudo-random key and the subkey that HMAC returns, and the PSK that is
derived to be sealed, are bytes objects that live as long as the call that made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest
from operator import index as as_int
from struct import Struct
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from . import codepoints as c
from .key_schedule import SHA256, SUITES, HashSuite, Pads, mac
from .refusals import Refusal, Refused
from .ticket_keys import Buffer, TicketKeyRing

# What became of the tickets that a client offered: a small number for a slot's word, and its name.
# A slot of zeros says that no ticket was offered.
VERDICT_NAMES = (
    "none",
    "resumed",
    "off",
    "no-psk-dhe-ke",
    "unknown",
    "tampered",
    "format",
    "auth",
    "expired",
    "age",
    "name",
    "identity",
    "suite",
    "alpn",
)
NONE, RESUMED, OFF, NO_PSK_DHE_KE, UNKNOWN, TAMPERED, FORMAT = range(7)
AUTH, EXPIRED, AGE, NAME, IDENTITY, SUITE, ALPN = range(7, 14)

# §4.6.1: a lifetime of at most seven days.
MAX_COUNT = 8
MAX_LIFETIME_S = 604_800
DEFAULT_LIFETIME_S = 3_600

# A hello of 16 KiB has room for hundreds of identities, and each would cost us a subkey and an
# opening; so would one large ticket. The sizes are those that a ticket of ours can have.
MAX_TRIED = 4
MIN_TICKET = 155
MAX_TICKET = 681

# How far the age that the client claims may be from the age that the server sees. A captured
# ClientHello repeats its age, so it can be replayed for this long and not for the lifetime.
AGE_WINDOW_MS = 30_000

SALT_LENGTH = 32
AGE_ADD_LENGTH = 4
ENTROPY_LENGTH = SALT_LENGTH + AGE_ADD_LENGTH

_VERSION = 1
_AUTH_NONE = 0
_NAME_END = 16
_SALT_END = _NAME_END + SALT_LENGTH
_TAG_LENGTH = 16
_MAX_PLAINTEXT = MAX_TICKET - _SALT_END - _TAG_LENGTH
_FINGERPRINT_LENGTH = 32
_NONCE = bytes(12)
_ZEROS = bytes(_MAX_PLAINTEXT)
_AAD_VERSION = bytes([_VERSION])
# HKDF-Expand of one block is one HMAC over the label and the block's number (RFC 5869 §2.3).
_SUBKEY_INFO = b"cancho tls ticket v1\x01"
# version, auth, issue, expiry, age_add, suite, length of the PSK
_HEAD = Struct(">BBQQIHB")
_AGE_ADD_AT = 18
_PSK_AT = _HEAD.size
# header, lifetime, age_add, length of the nonce, nonce, length of the ticket; behind it the ticket
# and two bytes of no extensions
_NEW_SESSION_TICKET = Struct(">II4sBBH")
_AGE_MODULUS = 1 << 32


class Ticket:
    """What a ticket holds. The PSK is a buffer of its own, to be wiped."""

    __slots__ = (
        "age_add",
        "alpn",
        "auth",
        "expiry_ms",
        "fingerprint",
        "issue_ms",
        "psk",
        "server_name",
        "suite",
    )

    def __init__(
        self,
        issue_ms: int,
        expiry_ms: int,
        age_add: int,
        suite: int,
        psk: bytearray,
        fingerprint: bytes,
        server_name: bytes,
        alpn: bytes,
        auth: int = _AUTH_NONE,
    ) -> None:
        self.auth = auth
        self.issue_ms = issue_ms
        self.expiry_ms = expiry_ms
        self.age_add = age_add
        self.suite = suite
        self.psk = psk
        self.fingerprint = fingerprint
        self.server_name = server_name
        self.alpn = alpn

    def wipe(self) -> None:
        """Overwrite the PSK."""
        self.psk[:] = _ZEROS[: len(self.psk)]


class Session(NamedTuple):
    """The connection that a ticket is issued on: what the ticket binds, and how long its identity
    lasts. The secret is none of it."""

    suite: int
    fingerprint: bytes  # SHA-256 of the leaf that the client was shown
    not_after_ms: int  # of that leaf
    server_name: bytes  # lower-cased, empty for none
    alpn: bytes  # empty for none


class Moment(NamedTuple):
    """The connection that offers a ticket, as the rules see it: what would hold without one."""

    now_ms: int
    server_name: bytes  # lower-cased, empty for none
    fingerprint: Buffer  # SHA-256 of the leaf that a full handshake would send now
    suite: int
    alpn: bytes  # empty for none
    certificates_required: bool


class Choice(NamedTuple):
    """What became of the offer; with `RESUMED`, which identity it was and what it held."""

    verdict: int
    place: int
    ticket: Ticket | None


def checked_settings(count: int, lifetime_s: int) -> tuple[int, int]:
    """A connection's number of tickets and their lifetime in milliseconds.

    Raises `Refused` with `tls-server-ticket-config` unless the number is 0, for off, to 8, and the
    lifetime one second to seven days.
    """
    count, lifetime_s = as_int(count), as_int(lifetime_s)
    if not (0 <= count <= MAX_COUNT and 1 <= lifetime_s <= MAX_LIFETIME_S):
        raise Refused(Refusal.SERVER_TICKET_CONFIG)
    return count, lifetime_s * 1000


def seal(ticket: Ticket, key_name: bytes, key: Buffer, salt: Buffer) -> bytes:
    """The sealed form of `ticket`. `salt` is 32 bytes that are never used again."""
    plaintext = _plaintext(ticket)
    sealed = _seal(plaintext, key_name, key, salt)
    plaintext[:] = _ZEROS[: len(plaintext)]
    return sealed


def open_ticket(ring: TicketKeyRing, sealed: Buffer) -> Ticket | int:
    """What `sealed` holds, or the verdict `UNKNOWN`, `TAMPERED` or `FORMAT`. Never raises."""
    if not MIN_TICKET <= len(sealed) <= MAX_TICKET:
        return UNKNOWN
    key = ring.find(sealed[:_NAME_END])
    if key is None:
        return UNKNOWN
    plaintext = bytearray(len(sealed) - _SALT_END - _TAG_LENGTH)
    view = memoryview(sealed)
    cipher = _cipher(key.secret, view[_NAME_END:_SALT_END])
    aad = _AAD_VERSION + bytes(view[:_SALT_END])
    try:
        cipher.decrypt_into(_NONCE, view[_SALT_END:], aad, plaintext)
    except InvalidTag:
        opened: Ticket | None = None
        verdict = TAMPERED
    else:
        opened = _parse(plaintext)
        verdict = FORMAT
    # A failed opening leaves what it deciphered in the buffer, so both ways end here.
    plaintext[:] = _ZEROS[: len(plaintext)]
    return verdict if opened is None else opened


def judge(ticket: Ticket, obfuscated_age: int, moment: Moment) -> int:
    """The verdict on an opened ticket: the first rule that it breaks, or `RESUMED`."""
    if ticket.auth != _AUTH_NONE or moment.certificates_required:
        return AUTH
    if moment.now_ms >= ticket.expiry_ms:
        return EXPIRED
    # §4.2.11.1: the client adds ticket_age_add to its age, modulo 2^32.
    claimed_ms = (obfuscated_age - ticket.age_add) % _AGE_MODULUS
    if abs(moment.now_ms - ticket.issue_ms - claimed_ms) > AGE_WINDOW_MS:
        return AGE
    if ticket.server_name != moment.server_name:
        return NAME
    if ticket.fingerprint != moment.fingerprint:
        return IDENTITY
    # §4.2.11: the PSK belongs to a hash; the suites of one hash share it.
    if SUITES[ticket.suite].hash is not SUITES[moment.suite].hash:
        return SUITE
    if ticket.alpn != moment.alpn:
        return ALPN
    return RESUMED


def choose(
    ring: TicketKeyRing,
    enabled: bool,
    psk_modes: Sequence[int],
    identities: Sequence[tuple[Buffer, int]],
    moment: Moment,
) -> Choice:
    """Take the first of at most four offered tickets that every rule accepts.

    When there is none, the verdict is the first ticket's.
    """
    if not enabled:
        return Choice(OFF, 0, None)
    # Only with a key exchange of its own is a resumed connection safe from a stolen ticket key.
    if c.PSK_DHE_KE not in psk_modes:
        return Choice(NO_PSK_DHE_KE, 0, None)
    first = NONE
    for index, (identity, obfuscated_age) in enumerate(identities[:MAX_TRIED]):
        opened = open_ticket(ring, identity)
        if isinstance(opened, Ticket):
            verdict = judge(opened, obfuscated_age, moment)
            if verdict == RESUMED:
                return Choice(RESUMED, index, opened)
            opened.wipe()
        else:
            verdict = opened
        if index == 0:
            first = verdict
    return Choice(first, 0, None)


def binder(hash_suite: HashSuite, early: Pads, transcript_hash: bytes) -> bytes:
    """The binder of a resumption PSK, whose early secret is given, over a truncated ClientHello
    (§4.2.11.2).

    `transcript_hash` covers what came before a second ClientHello, as the synthetic message_hash
    and the HelloRetryRequest, and the ClientHello up to but without its list of binders.
    """
    key = mac(hash_suite.keyed(mac(early, hash_suite.res_binder)), hash_suite.finished)
    return hash_suite.finished_mac(key, transcript_hash)


def binder_holds(
    hash_suite: HashSuite, early: Pads, transcript_hash: bytes, offered: Buffer
) -> bool:
    """Whether `offered` is the binder, compared in constant time; a wrong length never is."""
    return compare_digest(binder(hash_suite, early, transcript_hash), offered)


def new_session_ticket(lifetime_s: int, age_add: bytes, index: int, sealed: bytes) -> bytes:
    """The NewSessionTicket message (§4.6.1), without extensions: no early data is offered."""
    size = len(sealed)
    head = c.NEW_SESSION_TICKET << 24 | 14 + size
    return _NEW_SESSION_TICKET.pack(head, lifetime_s, age_add, 1, index, size) + sealed + b"\0\0"


def expiry(issue_ms: int, lifetime_ms: int, not_after_ms: int) -> int:
    """When a ticket made now expires: after its lifetime, and never later than the leaf."""
    return min(issue_ms + lifetime_ms, not_after_ms)


def issue(
    ring: TicketKeyRing, count: int, entropy: Buffer, secret: Buffer, session: Session
) -> list[bytes]:
    """The NewSessionTicket messages of a connection whose handshake is complete.

    `entropy` has a salt and a ticket_age_add for each; `secret` is the resumption_master_secret,
    from which each ticket gets a PSK of its own (§4.6.1). None are made when there is no key, or
    when the leaf that the client was shown has less than a second to live: a lifetime of 0 in the
    message would tell the client to discard the ticket at once.
    """
    key = ring.current()
    suite, fingerprint, not_after_ms, server_name, alpn = session
    issue_ms = ring.now_ms
    expiry_ms = expiry(issue_ms, ring.lifetime_ms, not_after_ms)
    lifetime_s = (expiry_ms - issue_ms) // 1000
    if key is None or lifetime_s < 1:
        return []
    hash_suite = SUITES[suite].hash
    master = hash_suite.keyed(secret)
    # The tickets of a connection differ in their age_add and their PSK alone.
    blank = bytearray(hash_suite.size)
    plaintext = _plaintext(
        Ticket(issue_ms, expiry_ms, 0, suite, blank, fingerprint, server_name, alpn)
    )
    psk_end = _PSK_AT + hash_suite.size
    messages = []
    for index in range(count):
        salt_end = index * ENTROPY_LENGTH + SALT_LENGTH
        salt = entropy[salt_end - SALT_LENGTH : salt_end]
        age_add = bytes(entropy[salt_end : salt_end + AGE_ADD_LENGTH])
        plaintext[_AGE_ADD_AT : _AGE_ADD_AT + AGE_ADD_LENGTH] = age_add
        plaintext[_PSK_AT:psk_end] = hash_suite.resumption_psk(master, index)
        sealed = _seal(plaintext, key.name, key.secret, salt)
        messages.append(new_session_ticket(lifetime_s, age_add, index, sealed))
    plaintext[:] = _ZEROS[: len(plaintext)]
    return messages


def _plaintext(ticket: Ticket) -> bytearray:
    """What is sealed of `ticket`: made to its full length before the PSK is put in, because a
    bytearray that grows leaves a copy behind."""
    size = len(ticket.psk)
    tail = b"%b%b%c%b%c%b" % (
        _ZEROS[:size],
        ticket.fingerprint,
        len(ticket.server_name),
        ticket.server_name,
        len(ticket.alpn),
        ticket.alpn,
    )
    plaintext = bytearray(
        _HEAD.pack(
            _VERSION,
            ticket.auth,
            ticket.issue_ms,
            ticket.expiry_ms,
            ticket.age_add,
            ticket.suite,
            size,
        )
        + tail
    )
    plaintext[_PSK_AT : _PSK_AT + size] = ticket.psk
    return plaintext


def _seal(plaintext: bytearray, key_name: bytes, key: Buffer, salt: Buffer) -> bytes:
    """Key name, salt, and `plaintext` sealed under the subkey of that salt."""
    prefix = key_name + salt
    return prefix + _cipher(key, salt).encrypt(_NONCE, plaintext, _AAD_VERSION + prefix)


def _parse(plaintext: bytearray) -> Ticket | None:
    """The fields of a plaintext of at least 91 bytes, or None when it is not exactly a ticket."""
    version, auth, issue_ms, expiry_ms, age_add, suite, psk_length = _HEAD.unpack_from(plaintext)
    if version != _VERSION or suite not in SUITES or psk_length != SUITES[suite].hash.size:
        return None
    fingerprint_at = _PSK_AT + psk_length
    name_at = fingerprint_at + _FINGERPRINT_LENGTH + 1
    # A PSK of 48 bytes in the smallest plaintext: a length may be where no byte is.
    if name_at > len(plaintext):
        return None
    alpn_at = name_at + plaintext[name_at - 1] + 1
    if alpn_at > len(plaintext) or alpn_at + plaintext[alpn_at - 1] != len(plaintext):
        return None
    return Ticket(
        issue_ms,
        expiry_ms,
        age_add,
        suite,
        plaintext[_PSK_AT:fingerprint_at],
        bytes(plaintext[fingerprint_at : name_at - 1]),
        bytes(plaintext[name_at : alpn_at - 1]),
        bytes(plaintext[alpn_at:]),
        auth,
    )


def _cipher(key: Buffer, salt: Buffer) -> ChaCha20Poly1305:
    """The cipher of one ticket, under a subkey that no other ticket has."""
    extracted = mac(SHA256.keyed(salt), key)
    return ChaCha20Poly1305(mac(SHA256.keyed(extracted), _SUBKEY_INFO))
