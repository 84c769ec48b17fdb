"""The rules of tickets, read a second time: what a ticket's plaintext must come to.

Written from the contract (SPEC 5, and the format of its seed) and not from the engine, which it is
compared with. It is slow, plain, and does one thing.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

SMALLEST, LARGEST = 155, 681
WINDOW_MS = 30_000
HASHES = {0x1301: "sha256", 0x1303: "sha256", 0x1302: "sha384"}


class Fields(NamedTuple):
    """A plaintext that is a ticket's."""

    auth: int
    issue_ms: int
    expiry_ms: int
    age_add: int
    suite: int
    psk: bytes
    fingerprint: bytes
    name: bytes
    alpn: bytes


class Offer(NamedTuple):
    """The hello and the server that a ticket meets."""

    now_ms: int
    name: bytes
    alpn: bytes
    suite: int
    fingerprint: bytes
    age: int
    certificates_required: bool
    key_exchange: bool
    """Whether the hello lists psk_dhe_ke."""


def read(plaintext: bytes) -> Fields | None:
    """The fields, or None when it is not exactly a ticket of version 1."""
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return plaintext[at - count : at]

    version, auth = take(1), take(1)
    numbers = [int.from_bytes(take(count)) for count in (8, 8, 4, 2)]
    psk = take(int.from_bytes(take(1)))
    fingerprint = take(32)
    name = take(int.from_bytes(take(1)))
    alpn = take(int.from_bytes(take(1)))
    suite = numbers[3]
    if at != len(plaintext) or version != b"\1" or suite not in HASHES:
        return None
    if len(psk) != hashlib.new(HASHES[suite]).digest_size:
        return None
    issue_ms, expiry_ms, age_add, _ = numbers
    return Fields(auth[0], issue_ms, expiry_ms, age_add, suite, psk, fingerprint, name, alpn)


def verdict(size: int, ours: bool, whole: bool, fields: Fields | None, offer: Offer) -> str:
    """The first rule that a ticket of `size` bytes fails, or `resumed`.

    `ours` says that it names a key of the server's, `whole` that it is as it was sealed.
    """
    if not offer.key_exchange:
        return "no-psk-dhe-ke"
    if not SMALLEST <= size <= LARGEST or not ours:
        return "unknown"
    if not whole:
        return "tampered"
    if fields is None:
        return "format"
    if fields.auth or offer.certificates_required:
        return "auth"
    if offer.now_ms >= fields.expiry_ms:
        return "expired"
    claimed = (offer.age - fields.age_add) % 2**32
    if not -WINDOW_MS <= (offer.now_ms - fields.issue_ms) - claimed <= WINDOW_MS:
        return "age"
    if fields.name != offer.name:
        return "name"
    if fields.fingerprint != offer.fingerprint:
        return "identity"
    if HASHES[fields.suite] != HASHES[offer.suite]:
        return "suite"
    return "alpn" if fields.alpn != offer.alpn else "resumed"
