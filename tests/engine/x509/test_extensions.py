"""The quick reading of a certificate's extensions, shape by shape, at the edge of each.

`common` may leave anything to the parser by answering None, and what it must never do is read what
the parser would read otherwise, or refuse. So each shape that it takes has a neighbour here that is
one byte off and is left to the parser (RFC 5280 §4.2; X.690 for the DER).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.x509 import extensions
from engine.x509.extensions import Extensions
from tests.engine.x509.chain_maker import tlv

KEY_ID, USAGE, NAMES, BASIC, AUTHORITY_KEY_ID, PURPOSES = 14, 15, 17, 19, 35, 37
SEQUENCE, OCTETS = 0x30, 0x04
CLIENT = tlv(0x06, bytes.fromhex("2b06010505070302"))
SERVER = tlv(0x06, bytes.fromhex("2b06010505070301"))
OTHER = tlv(0x06, bytes.fromhex("2b06010505070303"))


def extension(number: int, value: bytes, critical: bytes = b"") -> bytes:
    """One of id-ce, 2.5.29.`number`."""
    oid = tlv(0x06, bytes([0x55, 0x1D, number]))
    return tlv(SEQUENCE, oid + critical + tlv(OCTETS, value))


CRITICAL = tlv(0x01, b"\xff")


def names(*general: bytes) -> bytes:
    return tlv(SEQUENCE, b"".join(general))


def authority_key_id(key_id: bytes) -> bytes:
    return tlv(SEQUENCE, tlv(0x80, key_id))


# A general name of each kind: three texts and the two lengths of an address.
TEXTS = [tlv(0x81, b"a@b"), tlv(0x82, b"a.example"), tlv(0x86, b"urn:a")]
ADDRESSES = [tlv(0x87, bytes(4)), tlv(0x87, bytes(16))]


@dataclass(frozen=True)
class Read:
    number: int
    value: bytes
    expected: Extensions


READ = [
    Read(BASIC, b"\x30\x00", Extensions()),
    Read(BASIC, b"\x30\x03\x01\x01\xff", Extensions(authority=True)),
    Read(BASIC, b"\x30\x06\x01\x01\xff\x02\x01\x7f", Extensions(authority=True, path_length=127)),
    Read(USAGE, b"\x03\x02\x07\x80", Extensions(signs_certificates=False)),
    Read(USAGE, b"\x03\x02\x02\x04", Extensions(signs_data=False)),
    Read(USAGE, b"\x03\x02\x02\x84", Extensions()),
    Read(PURPOSES, tlv(SEQUENCE, CLIENT), Extensions()),
    Read(PURPOSES, tlv(SEQUENCE, SERVER + CLIENT), Extensions()),
    Read(PURPOSES, tlv(SEQUENCE, SERVER), Extensions(client_purpose=False)),
    Read(KEY_ID, tlv(OCTETS, b""), Extensions(key_id=b"")),
    Read(KEY_ID, tlv(OCTETS, b"k"), Extensions(key_id=b"k")),
    Read(KEY_ID, tlv(OCTETS, b"k" * 118), Extensions(key_id=b"k" * 118)),
    Read(AUTHORITY_KEY_ID, authority_key_id(b""), Extensions(authority_key_id=b"")),
    Read(AUTHORITY_KEY_ID, authority_key_id(b"k"), Extensions(authority_key_id=b"k")),
    *(Read(NAMES, names(one), Extensions()) for one in (*TEXTS, *ADDRESSES)),
    Read(NAMES, names(*TEXTS, *ADDRESSES), Extensions()),
    Read(NAMES, names(*TEXTS, tlv(0x82, b"")), Extensions()),
    Read(NAMES, names(tlv(0x82, b"")), Extensions()),
]


@pytest.mark.parametrize("shape", READ)
def test_a_common_shape_is_read(shape: Read) -> None:
    assert extensions.common(extension(shape.number, shape.value)) == shape.expected


LEFT = [
    # A value of an unknown number, or one that the parser alone reads.
    extension(30, b"\x30\x00"),
    extension(0, b"\x30\x00"),
    extension(18, authority_key_id(b"k")),
    # Values that are not DER, or not of the shape: each beside one that is read.
    extension(BASIC, b"\x30\x03\x01\x01\x00"),
    extension(BASIC, b"\x30\x00\x00"),
    extension(USAGE, b"\x03\x02\x00\x80"),
    extension(USAGE, b"\x03\x02\x07\x81"),
    extension(PURPOSES, tlv(SEQUENCE, OTHER)),
    extension(PURPOSES, tlv(SEQUENCE, b"")),
    extension(KEY_ID, b""),
    extension(KEY_ID, b"\x04"),
    extension(KEY_ID, tlv(0x05, b"k" * 20)),
    extension(KEY_ID, b"\x04\x13" + b"k" * 20),
    extension(KEY_ID, b"\x05\x13" + b"k" * 20),
    extension(AUTHORITY_KEY_ID, b""),
    extension(AUTHORITY_KEY_ID, b"\x30\x00"),
    extension(AUTHORITY_KEY_ID, b"\x30\x01\x80"),
    extension(AUTHORITY_KEY_ID, tlv(SEQUENCE, tlv(0x81, b"k" * 20))),
    extension(AUTHORITY_KEY_ID, tlv(SEQUENCE, tlv(0x80, b"k") + tlv(0x82, b"1"))),
    extension(AUTHORITY_KEY_ID, b"\x31\x03\x80\x01k"),
    extension(NAMES, b""),
    extension(NAMES, b"\x30"),
    extension(NAMES, b"\x30\x00"),
    extension(NAMES, tlv(0x31, TEXTS[0])),
    extension(NAMES, names(TEXTS[0]) + b"\x00"),
    extension(NAMES, b"\x30\x04" + TEXTS[0]),
    extension(NAMES, b"\x31\x04" + TEXTS[0]),
    extension(NAMES, names(tlv(0x87, bytes(5)))),
    extension(NAMES, names(tlv(0x87, bytes(8)))),
    extension(NAMES, names(tlv(0x88, bytes(4)))),
    extension(NAMES, names(tlv(0xA4, b"\x30\x00"))),
    extension(NAMES, names(TEXTS[0], b"\x82")),
    extension(NAMES, names(TEXTS[0], b"\x82\x02a")),
    # A text is IA5: no byte of it has its top bit, the first and the last included.
    *(extension(NAMES, names(tlv(0x82, text))) for text in (b"\xe4bc", b"a\xe4c", b"ab\xe4")),
    extension(NAMES, names(tlv(0x82, b"\xe4"))),
    # Lengths of one byte alone are read: 0x80 has no end, and above it stands a length's length.
    extension(NAMES, b"\x30\x82\x82\x80" + b"a" * 128),
    b"\x30\x89\x06\x03\x55\x1d\x11\x04\x82" + names(tlv(0x82, b"a" * 126)),
    b"\x30\x87\x06\x03\x55\x1d\x0e\x04\x80" + b"\x04\x7e" + b"k" * 126,
    b"\x30\x88\x06\x03\x55\x1d\x0e\x04\x81" + b"\x04\x7f" + b"k" * 127,
    # The whole, the value in it and the end must agree.
    extension(KEY_ID, tlv(OCTETS, b"k"))[:-1],
    b"\x30\x0b" + extension(KEY_ID, tlv(OCTETS, b"k"))[2:],
    b"\x30\x0a\x06\x03\x55\x1d\x0e\x04\x04\x04\x01k\x00",
    extension(KEY_ID, tlv(OCTETS, b"k")) + b"\x00",
    # One that comes twice, whatever number it has (§4.2).
    *(extension(shape.number, shape.value) * 2 for shape in READ),
    b"",
]


@pytest.mark.parametrize("data", LEFT, ids=lambda data: data.hex()[:40] or "none")
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    assert extensions.common(data) is None


@pytest.mark.parametrize("shape", READ)
def test_what_is_left_to_the_parser_is_left_beside_a_common_shape_too(shape: Read) -> None:
    odd = extension(30, b"\x30\x00")
    assert extensions.common(extension(shape.number, shape.value) + odd) is None
    assert extensions.common(odd + extension(shape.number, shape.value)) is None


@pytest.mark.parametrize(
    ("number", "value", "unknown"),
    [
        (KEY_ID, tlv(OCTETS, b"k"), True),
        (AUTHORITY_KEY_ID, authority_key_id(b"k"), True),
        (BASIC, b"\x30\x00", False),
        (USAGE, b"\x03\x02\x07\x80", False),
        (NAMES, names(TEXTS[0]), False),
        (PURPOSES, tlv(SEQUENCE, CLIENT), False),
    ],
)
def test_a_key_identifier_that_is_critical_is_not_understood(
    number: int, value: bytes, unknown: bool
) -> None:
    # §4.2.1.1 and §4.2.1.2: it must not be critical.
    read = extensions.common(extension(number, value, CRITICAL))
    assert read is not None and read.unknown is unknown
    assert extensions.common(extension(number, value, tlv(0x01, b"\x00"))) is None


def test_all_of_them_are_read_together() -> None:
    data = b"".join(
        (
            extension(BASIC, b"\x30\x06\x01\x01\xff\x02\x01\x03", CRITICAL),
            extension(USAGE, b"\x03\x02\x02\x04", CRITICAL),
            extension(PURPOSES, tlv(SEQUENCE, SERVER)),
            extension(NAMES, names(*TEXTS)),
            extension(KEY_ID, tlv(OCTETS, b"own")),
            extension(AUTHORITY_KEY_ID, authority_key_id(b"theirs")),
        )
    )
    assert extensions.common(data) == Extensions(
        True, 3, False, True, False, b"own", b"theirs", False, False
    )
