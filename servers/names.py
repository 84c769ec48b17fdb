"""A certificate's subject as text: RFC 4514, as `openssl x509 -nameopt RFC2253` prints it.

An operator compares the log with what OpenSSL says of a certificate file, so the text is OpenSSL's
to the byte, its own additions to the RFC included: control characters and bytes over 0x7F are
escaped too, and a value is written as text or, when its type is no text or its attribute is
unknown, as `#` and the hex of its DER. All of it is printable ASCII.

Two differences remain. A value that OpenSSL does not read at all (a string with half a character
or a surrogate in it, a type that no name should have) is written in hex here, since two subjects
that differ must not look the same. And an attribute has the short name of the table below, which
holds OpenSSL's attribute types, not the thousand other identifiers for which it has a name: those
are written in numbers, their value in hex.
"""

from engine.x509.der import OBJECT_IDENTIFIER, SEQUENCE, SET, Malformed, elements, expect

_UTF8, _BMP, _UNIVERSAL = 0x0C, 0x1E, 0x1C
# Numeric, printable, T61 (which everybody reads as Latin-1) and IA5.
_LATIN_1 = frozenset({0x12, 0x13, 0x14, 0x16})
_MAX_OID = 64
"""No attribute's is near it, and a number of ten thousand digits costs a second to write."""
_SPECIAL = frozenset(b'"+,;<>\\')
"""RFC 4514 §2.4: always behind a backslash."""


def _under(arc: str, attributes: str) -> dict[str, str]:
    """The names of some attribute types, each behind the last number of its identifier."""
    words = attributes.split()
    numbers = (f"{arc}.{number}" for number in words[::2])
    return dict(zip(numbers, words[1::2], strict=True))


_SHORT_NAMES = {
    # X.520
    **_under(
        "2.5.4",
        """3 CN 4 SN 5 serialNumber 6 C 7 L 8 ST 9 street 10 O 11 OU 12 title 13 description
        14 searchGuide 15 businessCategory 16 postalAddress 17 postalCode 18 postOfficeBox
        19 physicalDeliveryOfficeName 20 telephoneNumber 21 telexNumber
        22 teletexTerminalIdentifier 23 facsimileTelephoneNumber 24 x121Address
        25 internationaliSDNNumber 26 registeredAddress 27 destinationIndicator
        28 preferredDeliveryMethod 29 presentationAddress 30 supportedApplicationContext 31 member
        32 owner 33 roleOccupant 34 seeAlso 35 userPassword 36 userCertificate 37 cACertificate
        38 authorityRevocationList 39 certificateRevocationList 40 crossCertificatePair 41 name
        42 GN 43 initials 44 generationQualifier 45 x500UniqueIdentifier 46 dnQualifier
        47 enhancedSearchGuide 48 protocolInformation 49 distinguishedName 50 uniqueMember
        51 houseIdentifier 52 supportedAlgorithms 53 deltaRevocationList 54 dmdName 65 pseudonym
        72 role 97 organizationIdentifier 98 c3 99 n3 100 dnsName""",
    ),
    # RFC 4524 and its predecessors
    **_under(
        "0.9.2342.19200300.100.1",
        """1 UID 2 textEncodedORAddress 3 mail 4 info 5 favouriteDrink 6 roomNumber 7 photo
        8 userClass 9 host 10 manager 11 documentIdentifier 12 documentTitle 13 documentVersion
        14 documentAuthor 15 documentLocation 20 homeTelephoneNumber 21 secretary 22 otherMailbox
        23 lastModifiedTime 24 lastModifiedBy 25 DC 26 aRecord 27 pilotAttributeType27 28 mXRecord
        29 nSRecord 30 sOARecord 31 cNAMERecord 37 associatedDomain 38 associatedName
        39 homePostalAddress 40 personalTitle 41 mobileTelephoneNumber 42 pagerTelephoneNumber
        43 friendlyCountryName 44 uid 45 organizationalStatus 46 janetMailbox
        47 mailPreferenceOption 48 buildingName 49 dSAQuality 50 singleLevelQuality
        51 subtreeMinimumQuality 52 subtreeMaximumQuality 53 personalSignature 54 dITRedirect
        55 audio 56 documentPublisher""",
    ),
    # RFC 2985
    **_under(
        "1.2.840.113549.1.9",
        """1 emailAddress 2 unstructuredName 3 contentType 4 messageDigest 5 signingTime
        6 countersignature 7 challengePassword 8 unstructuredAddress
        9 extendedCertificateAttributes 14 extReq 15 SMIME-CAPS 16 SMIME 20 friendlyName
        21 localKeyID""",
    ),
    # The CA/Browser Forum's guidelines for extended validation
    **_under("1.3.6.1.4.1.311.60.2.1", "1 jurisdictionL 2 jurisdictionST 3 jurisdictionC"),
    # The Russian law on electronic signatures
    **_under("1.2.643.3.131.1", "1 INN"),
    **_under("1.2.643.100", "1 OGRN 3 SNILS 5 OGRNIP"),
}


def name_text(name: bytes) -> bytes:
    """A DER Name as text, the last RDN first; nothing for an empty one.

    A Name that is no DER, which no verified certificate has, is `#` and its hex.
    """
    try:
        return ",".join(_rdns(name)).encode("ascii")
    except Malformed:
        return _hex(name).encode("ascii")


def _rdns(name: bytes) -> list[str]:
    start, end = expect(name, 0, len(name), SEQUENCE)
    if end != len(name):
        raise Malformed
    texts = []
    for tag, first, last in reversed(elements(name, start, end)):
        if tag != SET:
            raise Malformed
        attributes = reversed(elements(name, first, last))
        text = "+".join(_attribute(name, *attribute) for attribute in attributes)
        if text:
            texts.append(text)
    return texts


def _attribute(name: bytes, tag: int, start: int, end: int) -> str:
    """TYPE=VALUE."""
    if tag != SEQUENCE:
        raise Malformed
    first, last = expect(name, start, end, OBJECT_IDENTIFIER)
    values = elements(name, last, end)
    if len(values) != 1:
        raise Malformed
    oid = _oid(name[first:last])
    whole = name[last:end]
    short = _SHORT_NAMES.get(oid)
    if short is None:
        return f"{oid}={_hex(whole)}"
    value_tag, value_start, value_end = values[0]
    return f"{short}={_value(value_tag, name[value_start:value_end], whole)}"


def _oid(contents: bytes) -> str:
    """An object identifier in numbers (X.690 §8.19)."""
    if not 1 <= len(contents) <= _MAX_OID or contents[-1] & 0x80:
        raise Malformed
    arcs, arc = [], 0
    for byte in contents:
        arc = arc << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(arc)
            arc = 0
    top = min(arcs[0] // 40, 2)
    return ".".join(str(number) for number in (top, arcs[0] - 40 * top, *arcs[1:]))


def _value(tag: int, contents: bytes, whole: bytes) -> str:
    try:
        if tag == _UTF8:
            # Its bytes are escaped one by one, so whether they are UTF-8 makes no difference.
            units = [bytes((byte,)) for byte in contents]
        elif tag in _LATIN_1:
            units = [chr(byte).encode() for byte in contents]
        elif tag == _BMP:
            # UCS-2: a surrogate is no character, and two are not one either.
            units = [_scalar(contents[at : at + 2]) for at in range(0, len(contents), 2)]
            if len(contents) % 2:
                return _hex(whole)
        elif tag == _UNIVERSAL:
            units = [_scalar(contents[at : at + 4]) for at in range(0, len(contents), 4)]
            if len(contents) % 4:
                return _hex(whole)
        else:
            return _hex(whole)
    except ValueError:
        return _hex(whole)
    return "".join(_escape(unit, at, len(units)) for at, unit in enumerate(units))


def _scalar(unit: bytes) -> bytes:
    """The UTF-8 of a big-endian character. Raises ValueError when there is no such character."""
    try:
        return chr(int.from_bytes(unit, "big")).encode()
    except OverflowError:
        raise ValueError from None


def _escape(unit: bytes, at: int, count: int) -> str:
    """One character of a value, as UTF-8, written so that RFC 4514 §3 reads it back."""
    last = at == count - 1
    if unit[0] in _SPECIAL or (unit == b" " and (at == 0 or last)):
        return "\\" + chr(unit[0])
    if unit == b"#" and at == 0 and not last:
        # OpenSSL asks whether a character is the last before it asks whether it is the first, so
        # that a lone # is not escaped.
        return "\\#"
    if 0x20 <= unit[0] < 0x7F:
        return chr(unit[0])
    return "".join(f"\\{byte:02X}" for byte in unit)


def _hex(element: bytes) -> str:
    return "#" + element.hex().upper()
