"""Certificates that no honest maker writes, through every call that reads one.

Each is served or refused, never anything else: no exception of the parser and no warning of it,
also where a program has made errors of warnings, and after a refusal everything is as it was. A
client that shows one is told an `x509-` tag.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from engine import Engine, Refused
from engine.refusals import Refusal
from engine.x509 import der, paths, stores
from tests.engine.test_identities import pem
from tests.engine.x509.chain_maker import (
    NOW,
    authority,
    edited,
    key,
    leaf,
    name,
    replacing,
    tlv,
    with_key_algorithm,
    with_serial,
)

ROOT = authority("root")
MADE = leaf(ROOT)
PARTS = der.outline(MADE.der)
Edit = Callable[[bytes], bytes]


SAN, NC, USAGE, BASIC, PURPOSE = (f"2.5.29.{n}" for n in (17, 30, 15, 19, 37))
KEY_ID, ISSUER_KEY_ID = "2.5.29.14", "2.5.29.35"
# The extensions of a plain leaf, by what `leaf` calls them.
TAKEN = {
    USAGE: "uses", SAN: "san", PURPOSE: "purposes",
    KEY_ID: "key_id", ISSUER_KEY_ID: "issuer_key_id",
}  # fmt: skip


def extra(oid: str, value: bytes) -> bytes:
    """A leaf with this extension, whatever it means."""
    extension = x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), value)
    absent: dict[str, None] = {TAKEN[oid]: None} if oid in TAKEN else {}
    return leaf(ROOT, extra=[(extension, False)], **absent).der  # type: ignore[arg-type]


def field(number: int, value: bytes) -> bytes:
    """The leaf with another value of one field of what is signed, and a right signature."""

    def change(tbs: bytes) -> bytes:
        _, start, stop = der.elements(tbs, 0, len(tbs))[number]
        return tbs[: start - 2] + value + tbs[stop:]

    return edited(MADE, ROOT, change)


def validity(before: tuple[int, bytes], after: tuple[int, bytes]) -> bytes:
    return field(4, tlv(der.SEQUENCE, tlv(*before) + tlv(*after)))


UTC, GENERAL = 0x17, 0x18
GOOD_BEFORE, GOOD_AFTER = (UTC, b"200101000000Z"), (UTC, b"400101000000Z")
VERSION = b"\xa0\x03\x02\x01"
CURVE = bytes.fromhex("06082a8648ce3d030107")
EC = bytes.fromhex("06072a8648ce3d0201")


def key_info(contents: bytes) -> bytes:
    return edited(MADE, ROOT, lambda tbs: tbs.replace(PARTS.key_info, contents))


def extension(value: bytes) -> bytes:
    """The leaf with these bytes in the place of all its extensions."""
    old = tlv(der.EXTENSIONS, tlv(der.SEQUENCE, PARTS.extensions))
    return edited(MADE, ROOT, lambda tbs: tbs.replace(old, value))


P256 = tlv(der.SEQUENCE, EC + CURVE)
BITS = b"\x03\x42\x00"
HOSTILE: dict[str, bytes] = {
    # Serials and versions.
    "a negative serial": edited(MADE, ROOT, with_serial(b"\x80")),
    "a serial of nothing but zero": edited(MADE, ROOT, with_serial(b"\x00")),
    "an empty serial": edited(MADE, ROOT, with_serial(b"")),
    "a serial of 5,000 bytes": edited(MADE, ROOT, with_serial(b"\x01" * 5000)),
    **{f"version {n + 1} with extensions": field(0, VERSION + bytes([n])) for n in (0, 1, 3, 255)},
    "no version": edited(MADE, ROOT, lambda tbs: tbs.replace(VERSION + b"\x02", b"", 1)),
    # Times.
    **{
        f"a time {kind:02x} of {text!r}": validity(GOOD_BEFORE, (kind, text))
        for kind, text in (
            (UTC, b""), (UTC, b"Z"), (UTC, b"4001010000Z"), (UTC, b"400101000000"),
            (UTC, b"400101000000+0000"), (UTC, b"400230000000Z"), (UTC, b"401301000000Z"),
            (UTC, b"400101240000Z"), (UTC, b"400101000060Z"), (UTC, b"4001010000\xff\xffZ"),
            (GENERAL, b"20400101000000Z"), (GENERAL, b"20400101000000.5Z"), (GENERAL, b""),
            (GENERAL, b"20400101000000,5Z"), (GENERAL, b"99991231235959Z"), (0x0C, b"20400101"),
            (GENERAL, b"00000101000000Z"), (GENERAL, b"00010101000000Z"), (GENERAL, b"204001010Z"),
            (GENERAL, b"-0400101000000Z"), (GENERAL, b"120400101000000Z"),
        )
    },
    "a validity of one time": field(4, tlv(der.SEQUENCE, tlv(*GOOD_BEFORE))),
    "a validity of three times": field(4, tlv(der.SEQUENCE, tlv(*GOOD_BEFORE) * 3)),
    "times in the wrong order": validity(GOOD_AFTER, GOOD_BEFORE),
    # Names.
    "a subject in broken UTF-8": edited(
        leaf(ROOT, name("o\u00f8")), ROOT, replacing("o\u00f8".encode(), b"o\xff\xfe")
    ),
    "a subject of an unknown text": edited(
        MADE, ROOT, replacing(b"\x0c\x06device", b"\x1d\x06device")
    ),
    "a country of one letter": edited(
        MADE, ROOT, replacing(b"\x55\x04\x03\x0c\x06device", b"\x55\x04\x06\x0c\x06device")
    ),
    # Extensions.
    "no extensions in their field": extension(tlv(der.EXTENSIONS, tlv(der.SEQUENCE, b""))),
    "an empty field of extensions": extension(tlv(der.EXTENSIONS, b"")),
    "each extension twice": extension(tlv(der.EXTENSIONS, tlv(der.SEQUENCE, PARTS.extensions * 2))),
    "an extension that is cut": extension(
        tlv(der.EXTENSIONS, tlv(der.SEQUENCE, PARTS.extensions[:-1]))
    ),
    **{
        f"extension {oid} of {value.hex()}": extra(oid, value)
        for oid, values in {
            SAN: ("", "3000", "3003a30100", "3003a50100", "3003820180", "3003880180", "3002a400",
                  "300387015a", "30060304", "0500", "3080820161000000"),
            NC: ("", "3000", "3002a000", "3007a0053003a30100", "3009a00730058201618001"),
            USAGE: ("", "0300", "030100", "03020000", "030207ff", "0303070080", "030300ffff",
                    "0101ff"),
            PURPOSE: ("", "3000", "30020500", "3003060180", "30030601"),
            BASIC: ("", "30060101ff0201ff", "30030201ff", "300a0101ff02050100000000", "3003020100",
                    "3006010101020100", "30090101ff020101020101", "30070101ff02020080"),
            KEY_ID: ("", "0400", "040180", "0c0161"),
            ISSUER_KEY_ID: ("", "3000", "30028000", "3003820180"),
            "2.5.29.32": ("", "3000", "30020500"),
            "2.5.29.31": ("", "3000", "30023000"),
            "1.3.6.1.5.5.7.1.1": ("", "3000", "30023000"),
            "1.3.6.1.4.1.11129.2.4.2": ("", "0400", "04020000", "0403000100"),
        }.items()
        for value in map(bytes.fromhex, values)
    },
    # Keys.
    "a key of no algorithm": key_info(tlv(der.SEQUENCE, tlv(der.SEQUENCE, b"") + BITS + bytes(65))),
    "a key of no bits": key_info(tlv(der.SEQUENCE, P256 + b"\x03\x01\0")),
    "a point at infinity": key_info(tlv(der.SEQUENCE, P256 + b"\x03\x02\0\0")),
    "a point off the curve": key_info(tlv(der.SEQUENCE, P256 + BITS + b"\x04" + b"\x01" * 64)),
    "a curve without a name": key_info(
        tlv(der.SEQUENCE, tlv(der.SEQUENCE, EC + b"\x30\x00") + BITS + b"\x04" + b"\x01" * 64)
    ),
    "a curve nobody knows": edited(MADE, ROOT, with_key_algorithm(
        MADE, tlv(der.SEQUENCE, EC + tlv(6, b"\x2a\x03\x04"))
    )),
    "a curve of characteristic two": edited(MADE, ROOT, with_key_algorithm(
        MADE, tlv(der.SEQUENCE, EC + bytes.fromhex("06052b81040001"))
    )),
    "an RSA modulus of 0": key_info(bytes.fromhex(
        "301a 300d06092a864886f70d0101010500 0309003006 020100 020103".replace(" ", "")
    )),
    "an RSA modulus of 8,000 bytes": key_info(tlv(
        der.SEQUENCE,
        bytes.fromhex("300d06092a864886f70d0101010500")
        + tlv(der.BIT_STRING, b"\0" + tlv(der.SEQUENCE, tlv(2, b"\x7f" * 8000) + tlv(2, b"\x03"))),
    )),
    "another curve": leaf(ROOT, own=key("other", "P-384")).der,
    "Ed25519": leaf(ROOT, own=key("other", "Ed25519")).der,
    "an algorithm of two minds": edited(
        MADE, ROOT, lambda tbs: tbs, bytes.fromhex("300a06082a8648ce3d040303")
    ),
    "an ECDSA signature with parameters": edited(
        MADE, ROOT, lambda tbs: tbs, bytes.fromhex("300c06082a8648ce3d0403020500")
    ),
    # Shapes.
    "nothing": b"",
    "an empty sequence": b"\x30\x00",
    "zeros": bytes(300),
    "an endless length": b"\x30\x80" + MADE.der[4:],
    "a length of 2^32": b"\x30\x85\x01\x00\x00\x00\x00" + MADE.der[4:],
    "a byte less": MADE.der[:-1],
    "a byte more": MADE.der + b"\0",
    "two in one": MADE.der * 2,
    "sequences in sequences": b"\x30\x82\x3f\xfc" * 4000,
    "a private key": key().private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
}  # fmt: skip
KEY = key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture(params=["default", "error"])
def silent(request: pytest.FixtureRequest) -> Iterator[None]:
    """No warning is seen, and none becomes an error."""
    with warnings.catch_warnings(record=request.param == "default") as seen:
        warnings.simplefilter("always" if request.param == "default" else "error")
        yield
        assert not seen


def state(engine: Engine) -> tuple[object, ...]:
    identities = engine._server.identities
    found = [identities.find(one) for one in (None, b"one.test", b"odd.test")]
    counts = len(identities), identities.stray_keys(), engine.client_generation(), engine.residue()
    return *counts, found


def engine_with_one() -> Engine:
    engine = Engine.server(1)
    engine.seed(bytes(32))
    engine.add_identity(pem("CERTIFICATE", MADE.der), KEY, ["one.test"], NOW * 1000)
    engine.trust_clients(ROOT.pem)
    return engine


CALLS: dict[str, Callable[[Engine, bytes], object]] = {
    "add_identity": lambda engine, text: engine.add_identity(text, KEY, ["odd.test"], NOW * 1000),
    "replace_identity": lambda engine, text: engine.replace_identity(0, text, KEY, NOW * 1000),
    "trust_clients": lambda engine, text: engine.trust_clients(text),
    "a chain behind a right leaf": lambda engine, text: engine.add_identity(
        pem("CERTIFICATE", MADE.der) + text, KEY, ["odd.test"], NOW * 1000
    ),
    "a store with a right root": lambda engine, text: engine.trust_clients(ROOT.pem + text),
}


@pytest.mark.parametrize("call", CALLS)
def test_it_is_served_or_refused_and_nothing_else(silent: None, call: str) -> None:
    refused = 0
    for what, hostile in HOSTILE.items():
        engine = engine_with_one()
        before = state(engine)
        try:
            CALLS[call](engine, pem("CERTIFICATE", hostile))
        except Refused as refusal:
            refused += 1
            assert state(engine) == before, what
            told = "".join(traceback.format_exception(refusal))
            assert refusal.__cause__ is None and refusal.__context__ is None, what
            assert KEY.decode().splitlines()[1] not in told
    assert len(HOSTILE) > refused > len(HOSTILE) // 4


@pytest.mark.parametrize("what", HOSTILE)
def test_a_client_that_shows_it_is_told_a_tag(silent: None, what: str) -> None:
    store = stores.load(ROOT.pem)
    for chain in ([HOSTILE[what]], [MADE.der, HOSTILE[what]], [leaf(MADE).der, HOSTILE[what]]):
        answer = paths.verify(chain, store, NOW)
        assert isinstance(answer, paths.Verified) or answer.tag.startswith("x509-")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 100,
        b"-----BEGIN CERTIFICATE-----\n" * 1000,
        b"-----BEGIN CERTIFICATE-----" + b"-----     " * 10_000,
        pem("CERTIFICATE", MADE.der) + KEY,
        KEY + pem("CERTIFICATE", MADE.der),
        pem("PRIVATE KEY", MADE.der),
        pem("CERTIFICATE", b"A" * 70_000),
        pem("CERTIFICATE", MADE.der).replace(b"M", b"\xff", 1),
        pem("CERTIFICATE", MADE.der).replace(b"-----END", b"\n-----BEGIN CERTIFICATE-----\n--END"),
    ],
)
@pytest.mark.parametrize("call", list(CALLS)[:3])
def test_a_text_of_no_certificates_is_refused(silent: None, call: str, text: bytes) -> None:
    engine = engine_with_one()
    before = state(engine)
    with pytest.raises(Refused) as raised:
        CALLS[call](engine, text)
    assert state(engine) == before
    assert KEY.decode().splitlines()[1] not in "".join(traceback.format_exception(raised.value))


def test_a_key_that_no_parser_takes_is_refused(silent: None) -> None:
    """The key's own block too: an exception that knew a piece of it would be logged somewhere."""
    engine = engine_with_one()
    before = state(engine)
    good = ec.derive_private_key(7, ec.SECP256R1())
    whole = good.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    for at in range(0, len(whole), 3):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            text = pem("PRIVATE KEY", damaged)
            with pytest.raises(Refused) as raised:
                engine.add_identity(pem("CERTIFICATE", MADE.der), text, [], NOW * 1000)
            assert raised.value.__context__ is None
            assert raised.value.refusal in (
                Refusal.SERVER_KEY_FORMAT, Refusal.SERVER_KEY_TYPE, Refusal.SERVER_KEY_MISMATCH,
            )  # fmt: skip
    assert state(engine) == before
