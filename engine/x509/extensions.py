"""What a certificate's extensions say to path validation (RFC 5280 §4.2).

`read` has `cryptography` parse them all, and raises whatever it raises for one that does not parse.
`common` reads the shapes that most clients' certificates have, straight from the DER and in half
the time; for anything else, the least doubt included, it answers None and `read` is asked. So the
two never differ where both answer, which a test holds them to with damaged certificates.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from . import der

_UNDERSTOOD: Final = frozenset(
    {
        x509.BasicConstraints.oid,
        x509.KeyUsage.oid,
        x509.ExtendedKeyUsage.oid,
        x509.SubjectAlternativeName.oid,
        x509.NameConstraints.oid,
    }
)


class Extensions(NamedTuple):
    """What the extensions say. An absent one restricts nothing, but makes nobody an authority."""

    authority: bool = False
    path_length: int | None = None
    signs_data: bool = True
    signs_certificates: bool = True
    client_purpose: bool = True
    key_id: bytes | None = None
    authority_key_id: bytes | None = None
    constrained: bool = False
    # A critical extension that is not one of those understood.
    unknown: bool = False


def read(certificate: x509.Certificate) -> Extensions:
    """Every extension, by the parser. Raises what it raises."""
    found: dict[str, object] = {}
    for extension in certificate.extensions:
        value = extension.value
        # The classes have an abstract base, whose isinstance() costs more than the parsing.
        kind = type(value)
        if extension.critical and extension.oid not in _UNDERSTOOD:
            found["unknown"] = True
        if kind is x509.BasicConstraints:
            found["authority"] = value.ca
            found["path_length"] = value.path_length
        elif kind is x509.KeyUsage:
            found["signs_data"] = value.digital_signature
            found["signs_certificates"] = value.key_cert_sign
        elif kind is x509.ExtendedKeyUsage:
            # anyExtendedKeyUsage alone is refused: it says nothing about clients.
            found["client_purpose"] = ExtendedKeyUsageOID.CLIENT_AUTH in value
        elif kind is x509.SubjectKeyIdentifier:
            found["key_id"] = value.digest
        elif kind is x509.AuthorityKeyIdentifier:
            found["authority_key_id"] = value.key_identifier
        elif kind is x509.NameConstraints:
            found["constrained"] = True
    return Extensions(**found)  # type: ignore[arg-type]


# One extension of id-ce (2.5.29.x): the length of the whole, x, whether it is critical, the value's
# length. All lengths are of one byte.
_EXTENSION: Final = re.compile(rb"\x30(.)\x06\x03\x55\x1d(.)(\x01\x01\xff)?\x04(.)", re.DOTALL)
_SUBJECT_KEY_ID: Final = 14
_KEY_USAGE: Final = 15
_ALTERNATIVE_NAME: Final = 17
_BASIC_CONSTRAINTS: Final = 19
_AUTHORITY_KEY_ID: Final = 35
_EXTENDED_KEY_USAGE: Final = 37

# Whole values: basicConstraints, and whether it is an authority and of what path length.
_BASIC: Final[dict[bytes, tuple[bool, int | None]]] = {
    b"\x30\x00": (False, None),
    b"\x30\x03\x01\x01\xff": (True, None),
    **{b"\x30\x06\x01\x01\xff\x02\x01" + bytes([n]): (True, n) for n in range(128)},
}
# keyUsage of one byte with no zeros at its end, and whether it signs data and certificates. The
# last bit, encipherOnly, means something beside keyAgreement alone and is left to the parser.
_USAGES: Final = {
    bytes((3, 2, (bits & -bits).bit_length() - 1, bits)): (bits & 0x80 != 0, bits & 0x04 != 0)
    for bits in range(2, 256, 2)
}
_CLIENT_AUTH: Final = b"\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02"
_SERVER_AUTH: Final = b"\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01"
_PURPOSES: Final = {
    b"\x30\x0a" + _CLIENT_AUTH: True,
    b"\x30\x0a" + _SERVER_AUTH: False,
    b"\x30\x14" + _CLIENT_AUTH + _SERVER_AUTH: True,
    b"\x30\x14" + _SERVER_AUTH + _CLIENT_AUTH: True,
}
# rfc822Name, dNSName and URI are IA5String; iPAddress is 4 or 16 bytes.
_TEXT_NAMES: Final = (0x81, 0x82, 0x86)
_ADDRESS: Final = 0x87


def common(data: bytes) -> Extensions | None:
    """The extensions when there are some and each has a common shape; otherwise None."""
    authority = unknown = False
    signs_data = signs_certificates = client_purpose = True
    path_length = key_id = authority_key_id = None
    seen = 0
    at = 0
    end = len(data)
    while at < end:
        match = _EXTENSION.match(data, at)
        if match is None:
            return None
        whole, place, critical, length = match.groups()
        start = match.end()
        size = length[0]
        at += 2 + whole[0]
        number = place[0]
        if size >= 0x80 or at != start + size or at > end or seen >> number & 1:
            return None
        seen |= 1 << number
        value = data[start:at]
        if number == _ALTERNATIVE_NAME:
            if not _common_names(value):
                return None
        elif number == _KEY_USAGE:
            usage = _USAGES.get(value)
            if usage is None:
                return None
            signs_data, signs_certificates = usage
        elif number == _EXTENDED_KEY_USAGE:
            purpose = _PURPOSES.get(value)
            if purpose is None:
                return None
            client_purpose = purpose
        elif number == _BASIC_CONSTRAINTS:
            basic = _BASIC.get(value)
            if basic is None:
                return None
            authority, path_length = basic
        elif number == _SUBJECT_KEY_ID:
            if size < 2 or value[0] != 4 or value[1] != size - 2:
                return None
            key_id = value[2:]
            unknown = unknown or critical is not None
        elif number == _AUTHORITY_KEY_ID:
            if size < 4 or value[:4] != bytes((0x30, size - 2, 0x80, size - 4)):
                return None
            authority_key_id = value[4:]
            unknown = unknown or critical is not None
        else:
            return None
    if not seen:
        return None
    return Extensions(
        authority,
        path_length,
        signs_data,
        signs_certificates,
        client_purpose,
        key_id,
        authority_key_id,
        False,
        unknown,
    )


def _common_names(value: bytes) -> bool:
    """A subjectAltName, itself of a length of one byte, of texts and addresses only.

    A name of a longer length, or one that is cut, ends past the end.
    """
    end = len(value)
    if end < 4 or value[0] != der.SEQUENCE or value[1] != end - 2:
        return False
    at = 2
    while at + 2 <= end:
        tag, length = value[at], value[at + 1]
        start = at + 2
        at = start + length
        text = tag in _TEXT_NAMES and value[start:at].isascii()
        if not text and (tag != _ADDRESS or length not in (4, 16)):
            return False
    return at == end
