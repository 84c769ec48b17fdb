"""A subject as text, against what OpenSSL prints for a certificate with that subject."""

import random
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers import names
from servers.names import name_text
from tests.servers.running import needs_openssl
from tests.tools import PATIENCE

CN = "2.5.4.3"
UTF8, PRINTABLE, LATIN, BMP, UNIVERSAL = 12, 19, 20, 30, 28

# A certificate version 3 over the generator of P-256, with no signature to speak of: OpenSSL parses
# it and that is all it is asked for.
ALGORITHM = bytes.fromhex("300a06082a8648ce3d040302")
KEY = bytes.fromhex(
    "3059301306072a8648ce3d020106082a8648ce3d030107034200046b17d1f2e12c4247f8bce6e563a440f277037d81"
    "2deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)


def tlv(tag: int, contents: bytes) -> bytes:
    length = len(contents)
    if length < 128:
        return bytes((tag, length)) + contents
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size, "big") + contents


def attribute(oid: str, value: bytes) -> bytes:
    first, second, *rest = map(int, oid.split("."))
    contents = b""
    for arc in (40 * first + second, *rest):
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.append(arc & 0x7F | 0x80)
        contents += bytes(reversed(groups))
    return tlv(0x30, tlv(6, contents) + value)


def name(*rdns: list[bytes]) -> bytes:
    return tlv(0x30, b"".join(tlv(0x31, b"".join(attributes)) for attributes in rdns))


def openssl(subject: bytes) -> bytes:
    """What OpenSSL prints for a certificate of that subject; raises when it cannot read one."""
    moment = tlv(0x17, b"250101000000Z")
    version, serial = tlv(0xA0, tlv(2, b"\x02")), tlv(2, b"\x01")
    tbs = version + serial + ALGORITHM + subject + tlv(0x30, moment + moment) + subject + KEY
    signature = tlv(3, b"\x00" + tlv(0x30, serial + serial))
    done = subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-noout", "-subject", "-nameopt", "RFC2253"],
        input=tlv(0x30, tlv(0x30, tbs) + ALGORITHM + signature),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.removeprefix(b"subject=").removesuffix(b"\n")


def rdns(oid: str, tag: int, *values: bytes) -> bytes:
    return name(*([attribute(oid, tlv(tag, value))] for value in values))


def texts() -> bytes:
    """Values that make every rule of escaping matter, alone and at both ends."""
    pieces = [b" ", b"#", b",", b"+", b"\\", b'"', b";", b"<", b">", b"=", b"a", b"\n", b"\0"]
    pieces += [b"\x7f", "é".encode(), "€".encode(), "𝄞".encode()]
    chosen = random.Random(4514)
    values = [b"", *pieces, *(one + other for one in pieces for other in pieces)]
    values += [b"".join(chosen.choices(pieces, k=chosen.randrange(3, 7))) for _ in range(300)]
    return rdns(CN, UTF8, *values)


SUBJECTS = {
    "nothing": name(),
    "an RDN of nothing": name([], [attribute(CN, tlv(UTF8, b"a"))]),
    "every attribute with a short name": name(
        *([attribute(oid, tlv(UTF8, b"x"))] for oid in names._SHORT_NAMES)
    ),
    "attributes nobody knows": name(
        [attribute("1.2.3.4", tlv(UTF8, b"x"))],
        [attribute("2.999.3", tlv(PRINTABLE, b"y"))],
        [attribute("2.5.4.3.1", tlv(0x30, tlv(2, b"\x05")))],
        [attribute("1.3.6.1.4.1.99999999.4294967296", tlv(UTF8, b""))],
    ),
    "RDNs of several attributes": name(
        [attribute(CN, tlv(UTF8, b"y")), attribute("2.5.4.10", tlv(UTF8, b"z,"))],
        [attribute("1.2.3.4", tlv(UTF8, b"x")), attribute("2.5.4.6", tlv(PRINTABLE, b"DE"))],
    ),
    "text": texts(),
    **{
        f"every byte in a string of tag {tag}": rdns(
            CN, tag, *(bytes((byte,)) for byte in range(256)), b" # ", b"# #", bytes(range(256))
        )
        for tag in (18, PRINTABLE, LATIN, 22)
    },
    "UCS-2": rdns(
        CN, BMP, b"", b"\0#", b"\0#\0#", b"\0 \x20\xac\0 ", b"\xff\xff", b"\xd7\xff\xe0\0", b"\0\0"
    ),
    "UCS-4": rdns(CN, UNIVERSAL, b"", b"\0\0\0,", b"\0\1\xd1\x1e\0\0\0 ", b"\0\x10\xff\xff"),
    "types that are no text": name(
        *([attribute(CN, tlv(tag, b"\0AB "))] for tag in (3, 7, 8, 9, 11, 13, 14, 15, 29)),
        [attribute(CN, tlv(0x30, tlv(2, b"\x05")))],
        [attribute(CN, tlv(0x30, bytes(300)))],
    ),
}


@needs_openssl
@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_a_subject_is_written_as_openssl_writes_it(subject):
    assert name_text(subject) == openssl(subject)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tlv(BMP, b"\xd8\x34\xdd\x1e"), b"CN=#1E04D834DD1E"),
        (tlv(BMP, b"\0ab"), b"CN=#1E03006162"),
        (tlv(UNIVERSAL, b"\0\x11\0\0"), b"CN=#1C0400110000"),
        (tlv(UNIVERSAL, b"\xff\xff\xff\xff"), b"CN=#1C04FFFFFFFF"),
        (tlv(UNIVERSAL, b"\0\0a"), b"CN=#1C03000061"),
        (tlv(0x1A, b"visible"), b"CN=#1A0776697369626C65"),
        (tlv(2, b"\x05"), b"CN=#020105"),
        (tlv(UTF8, b"\xff,"), b"CN=\\FF\\,"),
    ],
)
def test_what_openssl_does_not_read_loses_no_byte(value, text):
    assert name_text(name([attribute(CN, value)])) == text


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x31\x00",
        name() + b"\x00",
        tlv(0x30, tlv(0x30, b"")),
        tlv(0x30, tlv(0x31, tlv(0x31, b""))),
        name([tlv(0x30, tlv(6, b"") + tlv(UTF8, b"x"))]),
        name([tlv(0x30, tlv(6, b"\x55\x84") + tlv(UTF8, b"x"))]),
        name([tlv(0x30, tlv(6, b"\x81" * 64 + b"\x01") + tlv(UTF8, b"x"))]),
        name([attribute(CN, b"")]),
        name([attribute(CN, tlv(UTF8, b"x") * 2)]),
    ],
)
def test_what_is_no_name_is_written_in_hex(broken):
    assert name_text(broken) == b"#" + broken.hex().upper().encode()


@given(st.binary(max_size=60))
def test_no_bytes_raise_or_give_anything_but_printable_ascii(junk):
    for subject in (junk, tlv(0x30, junk), name([tlv(0x30, junk)]), name([attribute(CN, junk)])):
        assert all(0x20 <= byte < 0x7F for byte in name_text(subject))
