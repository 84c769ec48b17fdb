"""Where the parts of a certificate lie, byte for byte (X.690, RFC 5280 §4.1)."""

from __future__ import annotations

import pytest

from engine.x509 import der
from engine.x509.der import (
    BIT_STRING,
    BOOLEAN,
    EXTENSIONS,
    INTEGER,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    SET,
    SUBJECT_ALT_NAME,
    VERSION,
    Malformed,
)
from tests.engine.x509.chain_maker import tlv

# -- elements (X.690 §8.1 and §10.1) --------------------------------------------------

LENGTHS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x1_0000, 0x1_2345]
TAGS = [0x00, 0x04, 0x0F, 0x1E, 0x30, 0x80, 0xA3, 0xFE]


@pytest.mark.parametrize("length", LENGTHS)
def test_an_element_is_where_its_length_says(length: int) -> None:
    whole = tlv(OCTET_STRING, b"\x5a" * length)
    data = b"\x81\x82\x83" + whole + b"\x00\x01"
    end = 3 + len(whole)
    found = (OCTET_STRING, end - length, end)
    assert der.element(data, 3, end) == der.element(data, 3, len(data)) == found
    assert der.elements(data, 3, end) == [found]
    assert der.expect(data, 3, end, OCTET_STRING) == found[1:]
    with pytest.raises(Malformed):
        der.expect(data, 3, end, SEQUENCE)
    # What holds it ends within its header, within its contents, or a byte before it.
    for short in {*range(4, end - length), end - length // 2, end - 1} - {end}:
        for read in (der.element, der.elements):
            with pytest.raises(Malformed):
                read(data, 3, short)


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("length", [1, 0x80])
def test_every_tag_of_one_byte_is_told(tag: int, length: int) -> None:
    whole = tlv(tag, bytes(length))
    found = (tag, len(whole) - length, len(whole))
    assert der.element(whole, 0, len(whole)) == found
    assert der.elements(whole, 0, len(whole)) == [found]


@pytest.mark.parametrize("tag", [0x1F, 0x3F, 0x5F, 0x9F, 0xBF, 0xFF])
@pytest.mark.parametrize("length", [0, 1, 0x80])
def test_a_tag_of_more_than_one_byte_is_malformed(tag: int, length: int) -> None:
    whole = tlv(tag, bytes(length))
    for read in (der.element, der.elements):
        with pytest.raises(Malformed):
            read(whole, 0, len(whole))


@pytest.mark.parametrize(
    "length",
    [
        "80",  # indefinite
        "8100",  # not the shortest form
        "817f",
        "820000",
        "82007f",
        "8200ff",
        "830000ff",
        "8300ffff",
        "8401000000",  # more than a message holds
        "8400000080",
        "ff00",
    ],
)
def test_a_length_in_another_form_is_malformed(length: str) -> None:
    whole = b"\x04" + bytes.fromhex(length) + bytes(0x1_0000)
    for read in (der.element, der.elements):
        with pytest.raises(Malformed):
            read(whole, 0, 1 << 26)


def test_elements_follow_one_another_to_the_end() -> None:
    parts = [tlv(4, b"ab"), tlv(5, b""), tlv(0x30, bytes(200)), tlv(2, b"\x01")]
    data = b"\x00" + b"".join(parts)
    found, at, ends = [], 1, set()
    for part, (tag, length) in zip(parts, ((4, 2), (5, 0), (0x30, 200), (2, 1)), strict=True):
        at += len(part)
        found.append((tag, at - length, at))
        ends.add(at)
        assert der.elements(data, 1, at) == found
    assert der.elements(data, 1, 1) == []
    for end in set(range(2, len(data))) - ends:
        with pytest.raises(Malformed):
            der.elements(data, 1, end)


def test_short_lengths_are_read_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(der, "element", None)
    data = tlv(4, bytes(0x7F)) + tlv(5, b"")
    assert der.elements(data, 0, len(data)) == [(4, 2, 0x81), (5, 0x83, 0x83)]


# -- the outline of a certificate (RFC 5280 §4.1) -------------------------------------

VERSION_3 = tlv(VERSION, tlv(INTEGER, b"\x02"))
SERIAL = tlv(INTEGER, b"\x12\x34")
INNER = tlv(SEQUENCE, b"\x06\x01\x2a")
ISSUER = tlv(SEQUENCE, b"issuer")
VALIDITY = tlv(SEQUENCE, b"validity")
SUBJECT = tlv(SEQUENCE, b"the subject")
KEY_ALGORITHM = tlv(SEQUENCE, b"\x06\x02\x2a\x03")
KEY = tlv(SEQUENCE, KEY_ALGORITHM + tlv(BIT_STRING, b"\x00key"))
SIX = (SERIAL, INNER, ISSUER, VALIDITY, SUBJECT, KEY)
EXTENDED = tlv(EXTENSIONS, tlv(SEQUENCE, b"extensions"))
ALGORITHM = tlv(SEQUENCE, b"\x06\x01\x2b")
SIGNATURE = tlv(BIT_STRING, b"\x00\xc0signature")


def certificate(
    *fields: bytes, algorithm: bytes = ALGORITHM, signature: bytes = SIGNATURE
) -> bytes:
    return tlv(SEQUENCE, tlv(SEQUENCE, b"".join(fields)) + algorithm + signature)


@pytest.mark.parametrize("first", [(), (VERSION_3,)])
@pytest.mark.parametrize(
    ("last", "extensions"),
    [
        ((), b""),
        ((EXTENDED,), b"extensions"),
        ((tlv(0x81, b"\x00i"), tlv(0x82, b"\x00s")), b""),
        ((tlv(0x81, b"\x00i"), EXTENDED), b"extensions"),
        ((EXTENDED, *[tlv(0x84, b"")] * 8), b"extensions"),
    ],
)
def test_the_parts_are_exactly_as_they_stand(
    first: tuple[bytes, ...], last: tuple[bytes, ...], extensions: bytes
) -> None:
    fields = (*first, *SIX, *last)
    assert der.outline(certificate(*fields)) == der.Outline(
        tbs=tlv(SEQUENCE, b"".join(fields)),
        serial=b"\x12\x34",
        inner_algorithm=INNER,
        issuer=ISSUER,
        subject=SUBJECT,
        key_algorithm=KEY_ALGORITHM,
        key_info=KEY,
        extensions=extensions,
        algorithm=ALGORITHM,
        signature=b"\xc0signature",
    )


def but(which: int, other: bytes) -> bytes:
    """A certificate that has another field in this place."""
    return certificate(VERSION_3, *SIX[:which], other, *SIX[which + 1 :], EXTENDED)


WHOLE = certificate(VERSION_3, *SIX, EXTENDED)
TBS = tlv(SEQUENCE, b"".join((VERSION_3, *SIX)))
MALFORMED = {
    "nothing": b"",
    "another tag around it": tlv(SET, WHOLE[2:]),
    "a byte behind it": WHOLE + b"\x00",
    "an element behind it": WHOLE + tlv(5, b""),
    "two parts": tlv(SEQUENCE, TBS + ALGORITHM),
    "four parts": tlv(SEQUENCE, TBS + ALGORITHM + SIGNATURE + SIGNATURE),
    "a signed part that is a set": tlv(
        SEQUENCE, tlv(SET, b"".join((VERSION_3, *SIX))) + ALGORITHM + SIGNATURE
    ),
    "an algorithm that is a set": certificate(*SIX, algorithm=tlv(SET, b"\x06\x01\x2b")),
    "a signature that is octets": certificate(*SIX, signature=tlv(OCTET_STRING, b"\x00s")),
    "a signature of no byte": certificate(*SIX, signature=tlv(BIT_STRING, b"")),
    "a signature of seven bits": certificate(*SIX, signature=tlv(BIT_STRING, b"\x01s")),
    "no fields": certificate(),
    "a version alone": certificate(VERSION_3),
    "five fields": certificate(*SIX[:5]),
    "five fields behind a version": certificate(VERSION_3, *SIX[:5]),
    "a version in another place": certificate(SERIAL, VERSION_3, *SIX[1:]),
    "a serial of no byte": but(0, tlv(INTEGER, b"")),
    "a serial that is octets": but(0, tlv(OCTET_STRING, b"\x01")),
    "a key with no algorithm": but(5, tlv(SEQUENCE, tlv(BIT_STRING, b"\x00key"))),
    "a key of nothing": but(5, tlv(SEQUENCE, b"")),
    "extensions that are a set": certificate(*SIX, tlv(EXTENSIONS, tlv(SET, b"x"))),
    "extensions of nothing": certificate(*SIX, tlv(EXTENSIONS, b"")),
} | {f"field {which} is a set": but(which, tlv(SET, b"\x30\x00")) for which in range(1, 6)}


@pytest.mark.parametrize("case", MALFORMED)
def test_anything_else_has_no_outline(case: str) -> None:
    with pytest.raises(Malformed):
        der.outline(MALFORMED[case])


def test_a_signature_may_be_of_zeros_behind_its_unused_bits() -> None:
    assert der.outline(certificate(*SIX, signature=tlv(BIT_STRING, b"\x00"))).signature == b""
    zeros = tlv(BIT_STRING, b"\x00\x00\x07")
    assert der.outline(certificate(*SIX, signature=zeros)).signature == b"\x00\x07"


# -- extensions (RFC 5280 §4.2 and §4.2.1.6) ------------------------------------------


def extension(oid: bytes, value: bytes, critical: bytes = b"") -> bytes:
    return tlv(SEQUENCE, tlv(OBJECT_IDENTIFIER, oid) + critical + tlv(OCTET_STRING, value))


TRUE = tlv(BOOLEAN, b"\xff")
ONE, TWO, THREE = b"\x55\x1d\x01", b"\x55\x1d\x02", b"\x55\x1d\x03"


def test_the_value_of_an_extension_is_what_stands_in_its_octets() -> None:
    both = extension(ONE, b"one") + extension(TWO, b"the two", TRUE) + extension(TWO, b"again")
    assert der.extension(both, ONE) == b"one"
    assert der.extension(both, TWO) == b"the two"
    assert der.extension(both, THREE) is None
    assert der.extension(b"", ONE) is None
    assert der.extension(extension(ONE, b""), ONE) == b""


OID = tlv(OBJECT_IDENTIFIER, ONE)
BAD_EXTENSIONS = {
    "a set": tlv(SET, OID + tlv(OCTET_STRING, b"v")),
    "no identifier": tlv(SEQUENCE, tlv(OCTET_STRING, ONE) + tlv(OCTET_STRING, b"v")),
    "nothing": tlv(SEQUENCE, b""),
    "no value": tlv(SEQUENCE, OID),
    "no value behind the flag": tlv(SEQUENCE, OID + TRUE),
    "a value of bits": tlv(SEQUENCE, OID + tlv(BIT_STRING, b"v")),
    "bits behind the flag": tlv(SEQUENCE, OID + TRUE + tlv(BIT_STRING, b"v")),
    "two flags": tlv(SEQUENCE, OID + TRUE + TRUE + tlv(OCTET_STRING, b"v")),
}


@pytest.mark.parametrize("case", BAD_EXTENSIONS)
def test_an_extension_of_another_shape_is_malformed(case: str) -> None:
    # What follows is right, and no part of it.
    with pytest.raises(Malformed):
        der.extension(BAD_EXTENSIONS[case] + extension(ONE, b"v"), ONE)


def test_alternative_names_are_told_by_form_in_their_order() -> None:
    names = tlv(0x82, b"a.example") + tlv(0x87, b"\x7f\x00\x00\x01")
    names += tlv(0xA4, ISSUER) + tlv(0x9E, b"") + tlv(0x81, b"a@b")
    value = tlv(SEQUENCE, names)
    assert der.alternative_names(extension(ONE, b"x") + extension(SUBJECT_ALT_NAME, value)) == [
        (2, b"a.example"),
        (7, b"\x7f\x00\x00\x01"),
        (4, ISSUER),
        (30, b""),
        (1, b"a@b"),
    ]
    assert der.alternative_names(extension(ONE, value)) == []
    assert der.alternative_names(extension(SUBJECT_ALT_NAME, tlv(SEQUENCE, b""))) == []


@pytest.mark.parametrize("value", [b"", b"\x30", tlv(SET, b""), tlv(SEQUENCE, b"\x82")])
def test_alternative_names_of_another_shape_are_malformed(value: bytes) -> None:
    with pytest.raises(Malformed):
        der.alternative_names(extension(SUBJECT_ALT_NAME, value))


# -- plain names -----------------------------------------------------------------------------


def rdn(text: bytes, tag: int = 0x0C, oid: bytes = b"\x55\x04\x03") -> bytes:
    return tlv(SET, tlv(SEQUENCE, tlv(OBJECT_IDENTIFIER, oid) + tlv(tag, text)))


def named(*rdns: bytes) -> bytes:
    return tlv(SEQUENCE, b"".join(rdns))


PLAIN = {
    "empty": named(),
    "UTF-8": named(rdn("sm\u00f8r".encode())),
    "printable": named(rdn(b"text", 0x13)),
    "IA5": named(rdn(b"text", 0x16)),
    "another attribute": named(rdn(b"NO", 0x13, b"\x55\x04\x06")),
    "three": named(rdn(b"a"), rdn(b"bc", 0x13), rdn(b"d", 0x16)),
    "with an empty text": named(rdn(b""), rdn(b"a")),
}

NOT_PLAIN = {
    "nothing": b"",
    "a tag alone": b"\x30",
    "a set": b"\x31\x00",
    "a byte short": named(rdn(b"ab"))[:-1],
    "a byte behind it": named(rdn(b"ab")) + b"\x00",
    "T61": named(rdn(b"text", 0x14)),
    "another type of attribute": named(rdn(b"text", 0x0C, b"\x55\x1d\x03")),
    "a type of two bytes": named(rdn(b"text", 0x0C, b"\x55\x04\x83\x03")),
    "printable that is not ASCII": named(rdn("\u00f8".encode(), 0x13)),
    "IA5 that is not ASCII": named(rdn("\u00f8".encode(), 0x16)),
    "UTF-8 that is none": named(rdn(b"\xc3")),
    "the second is not plain": named(rdn(b"a"), rdn(b"b", 0x14)),
    "two attributes in one": named(tlv(SET, rdn(b"a")[2:] + rdn(b"b")[2:])),
}


@pytest.mark.parametrize("case", PLAIN)
def test_a_name_of_one_text_each_is_plain(case: str) -> None:
    assert der.plain_name(PLAIN[case]) is True


@pytest.mark.parametrize("case", NOT_PLAIN)
def test_any_other_name_is_left_to_the_parser(case: str) -> None:
    assert der.plain_name(NOT_PLAIN[case]) is False


@pytest.mark.parametrize("at", [1, 3, 5, 12])
@pytest.mark.parametrize("change", [-1, 1, 0x80])
@pytest.mark.parametrize("more", [0, 1])
def test_every_length_of_a_plain_name_must_agree(at: int, change: int, more: int) -> None:
    name = bytearray(named(rdn(b"text"), *[rdn(b"more")] * more))
    name[at] += change
    assert der.plain_name(bytes(name)) is False


@pytest.mark.parametrize("size", [1, 2])
def test_a_text_may_not_pass_the_end_of_its_name(size: int) -> None:
    """The lengths agree with one another, and not with where the name ends."""
    name = bytearray(named(rdn(b"text")))
    for at in (3, 5, 12):
        name[at] += size
    assert der.plain_name(bytes(name)) is False


@pytest.mark.parametrize("size", [115, 116, 117, 118, 0x7F, 0x80, 0xF0])
def test_lengths_of_128_and_more_are_left_to_the_parser(size: int) -> None:
    """In one byte they are no lengths (X.690 §8.1.3.4), however well they agree."""
    text = b"x" * size
    head = bytes((0x30, size + 11, 0x31, size + 9, 0x30, size + 7, 6, 3, 0x55, 4, 3, 12, size))
    assert der.plain_name(head + text) is (size + 11 < 0x80)
