"""The handmade inputs of the ticket harness: each verdict, each rule's edge, each way of damage."""

from __future__ import annotations

from dataclasses import replace

from engine import codepoints as c
from peers.liar.sealed import Contents

from .. import fixtures
from ..formats.ticket import (
    ALPN,
    BINDER,
    BINDER_LONG,
    CUT,
    EARLY,
    FINGERPRINT,
    FLIP,
    LONGER,
    ONLY_KE,
    OPTIONAL,
    OTHER_NAME,
    REQUIRED,
    RETRY,
    SECOND,
    SHA384,
    VERSION,
)
from ..outcomes import AES_256, chosen
from .case import Case

NOW = fixtures.NOW_MS
GOOD = Contents(
    NOW - 60_000,
    NOW + 60_000,
    0xFFFF_0000,
    c.TLS_AES_128_GCM_SHA256,
    bytes(range(32)),
    FINGERPRINT,
    b"server.example",
)
GOOD_384 = replace(GOOD, suite=c.TLS_AES_256_GCM_SHA384, psk=bytes(48))


def make(
    plaintext: bytes, settings: int = 0, damage: int = 0, place: int = 0, skew: int = 0
) -> bytes:
    """An input."""
    return bytes([VERSION, settings, damage, place]) + (skew % 2**32).to_bytes(4) + plaintext


def _rules() -> dict[str, Case]:
    """What a ticket holds, and what it meets."""
    table: tuple[tuple[str, str, str, Contents, int, int], ...] = (
        ("resumed", "resumed", "a right ticket", GOOD, 0, 0),
        ("resumed-early", "resumed", "early data is offered", GOOD, EARLY, 0),
        ("resumed-optional", "resumed", "certificates are optional", GOOD, OPTIONAL, 0),
        ("resumed-alpn", "resumed", "the protocol too", replace(GOOD, alpn=b"h2"), ALPN, 0),
        ("resumed-chacha20", "resumed", "a suite of one hash", replace(GOOD, suite=0x1303), 0, 0),
        ("modes", "no-psk-dhe-ke", "psk_ke alone", GOOD, ONLY_KE, 0),
        ("version", "format", "version 2", replace(GOOD, version=2), 0, 0),
        ("psk-length", "format", "a PSK of another length", replace(GOOD, psk=bytes(31)), 0, 0),
        ("psk-declared", "format", "its length is a lie", replace(GOOD, psk_size=48), 0, 0),
        ("suite-unknown", "format", "no suite of ours", replace(GOOD, suite=0x1304), 0, 0),
        ("more", "format", "a byte behind it", replace(GOOD, more=b"\0"), 0, 0),
        ("auth", "auth", "of a client with a certificate", replace(GOOD, auth=1), 0, 0),
        ("required", "auth", "certificates are required", GOOD, REQUIRED, 0),
        ("expired", "expired", "at its millisecond", replace(GOOD, expiry_ms=NOW), 0, 0),
        ("expiry", "resumed", "one before it", replace(GOOD, expiry_ms=NOW + 1), 0, 0),
        ("age-more", "age", "30,001 ms older than true", GOOD, 0, 30_001),
        ("age-less", "age", "30,001 ms younger", GOOD, 0, -30_001),
        ("age-edge", "resumed", "30,000 ms younger", GOOD, 0, -30_000),
        ("age-future", "age", "issued later than now", replace(GOOD, issue_ms=NOW + 9), 0, 0),
        ("age-wrapped", "age", "50 days ago", replace(GOOD, issue_ms=NOW - 2**32), 0, 0),
        ("name", "name", "another name", GOOD, OTHER_NAME, 0),
        ("name-none", "name", "no name", replace(GOOD, name=b""), 0, 0),
        ("identity", "identity", "another leaf", replace(GOOD, fingerprint=bytes(32)), 0, 0),
        ("alpn", "alpn", "the ticket has none", GOOD, ALPN, 0),
        ("alpn-gone", "alpn", "the hello has none", replace(GOOD, alpn=b"h2"), 0, 0),
        ("two-rules", "expired", "expired, and another leaf", _two(), 0, 0),
    )
    return {
        name: Case(
            make(contents.plaintext(), settings, skew=skew),
            chosen(more=f" verdict={verdict}"),
            what,
        )
        for name, verdict, what, contents, settings, skew in table
    }


def _two() -> Contents:
    return replace(GOOD, expiry_ms=0, fingerprint=bytes(32))


def _damaged() -> dict[str, Case]:
    """How a ticket and its binder arrive."""
    whole = GOOD.plaintext()
    binder = "tls-server-binder"

    def verdict(word: str) -> str:
        return chosen(more=f" verdict={word}")

    table: tuple[tuple[str, str, str, bytes], ...] = (
        ("key", verdict("unknown"), "no key of ours", make(whole, damage=FLIP, place=0)),
        ("salt", verdict("tampered"), "another salt", make(whole, damage=FLIP, place=60)),
        ("body", verdict("tampered"), "another body", make(whole, damage=FLIP, place=140)),
        ("tag", verdict("tampered"), "another tag", make(whole, damage=FLIP, place=255)),
        ("cut", verdict("tampered"), "a byte missing", make(whole, damage=CUT)),
        ("longer", verdict("tampered"), "a byte more", make(whole, damage=LONGER)),
        ("empty", verdict("unknown"), "no plaintext", make(b"")),
        ("smallest", verdict("format"), "91 bytes", make(bytes(91))),
        ("too-small", verdict("unknown"), "90 bytes", make(bytes(90))),
        ("largest", verdict("format"), "617 bytes", make(bytes([1] * 617))),
        ("too-large", verdict("unknown"), "618 bytes", make(bytes(618))),
        ("second", verdict("resumed"), "behind a stranger's", make(whole, damage=SECOND)),
        ("second-bad", verdict("unknown"), "the first's", make(whole[:-1], damage=SECOND)),
        ("binder", binder, "a wrong binder", make(whole, damage=BINDER)),
        ("binder-long", binder, "a longer binder", make(whole, damage=BINDER_LONG)),
        ("binder-unread", verdict("tampered"), "unread", make(whole, 0, CUT | BINDER)),
        ("binder-retry", binder, "after a retry", make(whole, RETRY, BINDER)),
        (
            "retry",
            chosen(retried="yes", more=" verdict=resumed"),
            "after a retry",
            make(whole, RETRY),
        ),
        (
            "sha384",
            chosen(AES_256, more=" verdict=resumed"),
            "SHA-384",
            make(GOOD_384.plaintext(), SHA384),
        ),
        ("suite", chosen(AES_256, more=" verdict=suite"), "another hash", make(whole, SHA384)),
        (
            "suite-retry",
            chosen(AES_256, retried="yes", more=" verdict=suite"),
            "another hash, after a retry",
            make(whole, SHA384 | RETRY),
        ),
    )
    return {name: Case(data, outcome, what) for name, outcome, what, data in table}


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    return {f"handmade-{name}": case for name, case in {**_rules(), **_damaged()}.items()}
