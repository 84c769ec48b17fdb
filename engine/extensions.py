"""What a certificate's extensions say to path validation (RFC 5280 section 4.2).

`read` has `cryptography` parse them all, and raises whatever it raises for one that does not parse.
`common` reads the shapes that nearly every certificate has, straight from the DER and in a third of
the time; for anything else, the least doubt included, it answers None and `read` is asked. So the
two never differ where both answer, which a test holds them to with damaged certificates.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from engine import der

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


# The last byte of id-ce's children (2.5.29.x), all that `common` knows.
_ID_CE: Final = b"\x06\x03\x55\x1d"
_SUBJECT_KEY_ID: Final = 14
_KEY_USAGE: Final = 15
_ALTERNATIVE_NAME: Final = 17
_BASIC_CONSTRAINTS: Final = 19
_AUTHORITY_KEY_ID: Final = 35
_EXTENDED_KEY_USAGE: Final = 37

_CRITICAL: Final = b"\x01\x01\xff"
_NO_AUTHORITY: Final = b"\x30\x00"
_AUTHORITY: Final = b"\x30\x03\x01\x01\xff"
_LIMITED_AUTHORITY: Final = b"\x30\x06\x01\x01\xff\x02\x01"
_ID_KP: Final = b"\x2b\x06\x01\x05\x05\x07\x03"
_CLIENT_AUTH: Final = _ID_KP + b"\x02"
# rfc822Name, dNSName and URI are IA5String; iPAddress is 4 or 16 bytes.
_TEXT_NAMES: Final = (0x81, 0x82, 0x86)
_ADDRESS: Final = 0x87


def common(data: bytes) -> Extensions | None:
    """The extensions when there are some and each has a common shape; otherwise None."""
    try:
        return _common(data) if data else None
    except der.Malformed:
        return None


def _common(data: bytes) -> Extensions | None:
    authority = unknown = False
    signs_data = signs_certificates = client_purpose = True
    path_length = key_id = authority_key_id = None
    seen = 0
    for tag, start, stop in der.elements(data, 0, len(data)):
        if tag != der.SEQUENCE or data[start : start + 4] != _ID_CE or stop < start + 7:
            return None
        number = data[start + 4]
        bit = 1 << number
        start += 5
        critical = data[start : start + 3] == _CRITICAL
        if critical:
            start += 3
        tag, start, last = der.element(data, start, stop)
        if tag != der.OCTET_STRING or last != stop or seen & bit:
            return None
        seen |= bit
        value = data[start:stop]
        size = len(value)
        if number == _ALTERNATIVE_NAME:
            if not _common_names(value):
                return None
        elif number == _KEY_USAGE:
            # One byte of bits with no zeros at its end. encipherOnly, its last, needs a second
            # look: it means something beside keyAgreement alone.
            if size != 4 or value[:2] != b"\x03\x02" or value[3] & 1:
                return None
            bits = value[3]
            if not bits or bits & -bits != 1 << value[2]:
                return None
            signs_data = bits & 0x80 != 0
            signs_certificates = bits & 0x04 != 0
        elif number == _EXTENDED_KEY_USAGE:
            start, stop = der.expect(value, 0, size, der.SEQUENCE)
            if stop != size or start == stop:
                return None
            client_purpose = False
            for tag, first, last in der.elements(value, start, stop):
                if tag != der.OBJECT_IDENTIFIER or last - first != 8:
                    return None
                oid = value[first:last]
                if oid[:7] != _ID_KP or oid[7] >= 0x80:
                    return None
                client_purpose = client_purpose or oid == _CLIENT_AUTH
        elif number == _BASIC_CONSTRAINTS:
            if value == _AUTHORITY:
                authority = True
            elif size == 8 and value[:7] == _LIMITED_AUTHORITY and value[7] < 0x80:
                authority = True
                path_length = value[7]
            elif value != _NO_AUTHORITY:
                return None
        elif number == _SUBJECT_KEY_ID:
            if value[:1] != b"\x04" or size < 2 or value[1] != size - 2 or size > 0x81:
                return None
            key_id = value[2:]
            unknown = unknown or critical
        elif number == _AUTHORITY_KEY_ID:
            if size < 4 or size > 0x81 or value[:4] != bytes((0x30, size - 2, 0x80, size - 4)):
                return None
            authority_key_id = value[4:]
            unknown = unknown or critical
        else:
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
    """A subjectAltName of texts and addresses only."""
    start, stop = der.expect(value, 0, len(value), der.SEQUENCE)
    if stop != len(value) or start == stop:
        return False
    for tag, first, last in der.elements(value, start, stop):
        if tag in _TEXT_NAMES:
            if not value[first:last].isascii():
                return False
        elif tag != _ADDRESS or last - first not in (4, 16):
            return False
    return True
