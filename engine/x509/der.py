"""Where the parts of a certificate lie in its DER (X.690, RFC 5280 §4.1).

`cryptography` decides whether a certificate parses; this module only finds byte ranges in it: what
was signed, the two names as they were written, the serial, the alternative names. Names are
compared and shown as the bytes that were signed, and rebuilding those from parsed objects costs
ten times more and may not give the same bytes.

Every length is checked against the element that holds it, tags of more than one byte are refused,
and nothing here looks deeper than two levels at a time, so no nesting can exhaust the stack. What
does not fit raises `Malformed`, which the callers in this package turn into `x509-decode`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BOOLEAN = 0x01
INTEGER = 0x02
BIT_STRING = 0x03
OCTET_STRING = 0x04
OBJECT_IDENTIFIER = 0x06
SEQUENCE = 0x30
SET = 0x31
VERSION = 0xA0
EXTENSIONS = 0xA3

# The contents of the object identifiers that are looked up here (RFC 5280 §4.2.1.6, §4.2.1.10).
SUBJECT_ALT_NAME = b"\x55\x1d\x11"
NAME_CONSTRAINTS = b"\x55\x1d\x1e"

# An RDN of one attribute of type 2.5.4.x: the lengths of the set and of the sequence in it, the tag
# of the text (UTF8String, PrintableString, IA5String) and its length.
_UTF8_STRING = b"\x0c"
_PLAIN_RDN = re.compile(rb"\x31(.)\x30(.)\x06\x03\x55\x04.([\x0c\x13\x16])(.)", re.DOTALL)
EMPTY_NAME = b"\x30\x00"


class Malformed(ValueError):
    """The bytes are not the DER that was expected. Holds none of them."""


class Outline(NamedTuple):
    """The parts of a certificate, each exactly as it stands in the DER."""

    tbs: bytes
    serial: bytes
    inner_algorithm: bytes
    issuer: bytes
    subject: bytes
    key_algorithm: bytes
    key_info: bytes
    extensions: bytes
    algorithm: bytes
    signature: bytes


def element(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """The tag of the element at `at`, and where its contents start and stop.

    Raises `Malformed`.
    """
    start = at + 2
    if start > end:
        raise Malformed
    tag = data[at]
    length = data[at + 1]
    if length >= 0x80:
        # Definite lengths of one to three bytes, in their shortest form (X.690 §10.1). A
        # message holds at most 2^24 bytes, so a longer length is a lie.
        count = length & 0x7F
        start += count
        if not 1 <= count <= 3:
            raise Malformed
        length = int.from_bytes(data[at + 2 : start])
        if length < 0x80 or length >> (8 * count - 8) == 0:
            raise Malformed
    if tag & 0x1F == 0x1F or start + length > end:
        raise Malformed
    return tag, start, start + length


def expect(data: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Where the contents of the element at `at` start and stop.

    Raises `Malformed`, also when its tag is not `tag`.
    """
    found, start, stop = element(data, at, end)
    if found != tag:
        raise Malformed
    return start, stop


def elements(data: bytes, at: int, end: int) -> list[tuple[int, int, int]]:
    """The elements from `at` to `end`, which must be where the last of them ends, or `Malformed`.

    `element` in a loop without the calls: this is where most of the walking is done.
    """
    found = []
    while at < end:
        start = at + 2
        if start > end:
            raise Malformed
        tag = data[at]
        length = data[at + 1]
        if length >= 0x80:
            tag, start, stop = element(data, at, end)
        else:
            stop = start + length
            if stop > end or tag & 0x1F == 0x1F:
                raise Malformed
        found.append((tag, start, stop))
        at = stop
    return found


def outline(der: bytes) -> Outline:
    """Find the parts of a certificate. Raises `Malformed`."""
    at, end = expect(der, 0, len(der), SEQUENCE)
    parts = elements(der, at, end)
    if end != len(der) or len(parts) != 3:
        raise Malformed
    (tbs_tag, tbs_start, tbs_end), (algorithm_tag, _, algorithm_end), (tag, start, stop) = parts
    # A signature is a whole number of bytes: no unused bits.
    if (
        (tbs_tag, algorithm_tag, tag) != (SEQUENCE, SEQUENCE, BIT_STRING)
        or start == stop
        or der[start] != 0
    ):
        raise Malformed
    signature = der[start + 1 :]
    fields = elements(der, tbs_start, tbs_end)
    first = 1 if fields and fields[0][0] == VERSION else 0
    if len(fields) < first + 6:
        raise Malformed
    serial, inner, issuer, validity, subject, key = fields[first : first + 6]
    if serial[0] != INTEGER or serial[1] == serial[2]:
        raise Malformed
    for field in (inner, issuer, validity, subject, key):
        if field[0] != SEQUENCE:
            raise Malformed
    key_algorithm_end = expect(der, key[1], key[2], SEQUENCE)[1]
    # What follows is optional: two unique identifiers (read past) and the extensions.
    extensions = b""
    for tag, start, stop in fields[first + 6 :]:
        if tag == EXTENSIONS:
            start, stop = expect(der, start, stop, SEQUENCE)
            extensions = der[start:stop]
    return Outline(
        der[at:tbs_end],
        der[serial[1] : serial[2]],
        der[serial[2] : inner[2]],
        der[inner[2] : issuer[2]],
        der[validity[2] : subject[2]],
        der[key[1] : key_algorithm_end],
        der[subject[2] : key[2]],
        extensions,
        der[tbs_end:algorithm_end],
        signature,
    )


def extension(extensions: bytes, oid: bytes) -> bytes | None:
    """The value of the extension `oid`, or None. Raises `Malformed`."""
    for tag, start, stop in elements(extensions, 0, len(extensions)):
        if tag != SEQUENCE:
            raise Malformed
        first, last = expect(extensions, start, stop, OBJECT_IDENTIFIER)
        if extensions[first:last] == oid:
            tag, first, last = element(extensions, last, stop)
            if tag == BOOLEAN:
                tag, first, last = element(extensions, last, stop)
            if tag != OCTET_STRING:
                raise Malformed
            return extensions[first:last]
    return None


def alternative_names(extensions: bytes) -> list[tuple[int, bytes]]:
    """The names of subjectAltName in their order: each form's number and contents.

    The number is the context tag of GeneralName (RFC 5280 §4.2.1.6): 1 rfc822Name, 2
    dNSName, 4 directoryName, 6 URI, 7 iPAddress. The contents are what stands inside that tag: the
    characters of a DNS name, the 4 or 16 bytes of an address, the whole Name of a directoryName.
    """
    value = extension(extensions, SUBJECT_ALT_NAME)
    if value is None:
        return []
    start, stop = expect(value, 0, len(value), SEQUENCE)
    return [(tag & 0x1F, value[a:b]) for tag, a, b in elements(value, start, stop)]


def plain_name(name: bytes) -> bool:
    """Whether a Name is nothing but RDNs of one text each, of a type 2.5.4.x, in UTF-8 or ASCII.

    Such a name is read by every parser. A False says nothing.
    """
    end = len(name)
    # Up to 127 bytes a length is of one byte, here and in every part (X.690 §8.1.3.4).
    if not 2 <= end < 0x82 or name[0] != SEQUENCE or name[1] != end - 2:
        return False
    at = 2
    while at < end:
        match = _PLAIN_RDN.match(name, at)
        if match is None:
            return False
        outer, inner, tag, size = match.groups()
        start = match.end()
        stop = start + size[0]
        if at + 2 + outer[0] != stop or at + 4 + inner[0] != stop or stop > end:
            return False
        text = name[start:stop]
        if not text.isascii():
            if tag != _UTF8_STRING:
                return False
            try:
                text.decode()
            except UnicodeDecodeError:
                return False
        at = stop
    return True
