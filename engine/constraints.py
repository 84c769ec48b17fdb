"""Name constraints: which names an authority may vouch for (RFC 5280 section 4.2.1.10).

Five forms are processed: DNS names, mail addresses, URIs, addresses and directory names. A
constraint on any other form, or one with a minimum or a maximum, refuses a certificate that has a
name of that form: an authority said something about it that is not understood.

Where a text does not settle the meaning, the reading that refuses is taken, because a constraint
that is read too loosely vouches for names that its author withheld:

- a DNS name or a host that is not a plain host name refuses when its form is constrained at all;
- `*.example` is excluded by an excluded `host.example`, which it covers;
- an empty base of a mail address or a URI permits nothing and excludes everything;
- directory names are compared as OpenSSL does: ASCII case and runs of spaces do not matter, nor
  does the string type, so that respelling a name does not take it out of an excluded subtree.

The work is names times bases. `LIMIT` bounds it: a certificate of thousands of names under an
authority of hundreds of bases would otherwise stop the server for seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from engine import der

MAIL = 1
DNS = 2
DIRECTORY = 4
URI = 6
ADDRESS = 7

LIMIT = 16_384

_PERMITTED = 0xA0
_EXCLUDED = 0xA1
_EMAIL_ADDRESS = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01"
_HOST_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_ENCODINGS = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1A: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}

Names = list[tuple[int, bytes]]
# A directory name as it is compared: a tuple of RDNs, each the sorted tuple of its attributes.
_Name = tuple[tuple[tuple[bytes, int, bytes], ...], ...]
_Bases = list[Any]


class Constraints(NamedTuple):
    """The subtrees of one authority, by form, and the forms that cannot be judged.

    A base is kept as its form compares it, so that it is prepared once and not once a name.
    """

    permitted: dict[int, _Bases]
    excluded: dict[int, _Bases]
    unread: frozenset[int]


def read(value: bytes) -> Constraints:
    """Read the value of a nameConstraints extension. Raises `Malformed`."""
    permitted: dict[int, _Bases] = {}
    excluded: dict[int, _Bases] = {}
    unread = set()
    start, stop = der.expect(value, 0, len(value), der.SEQUENCE)
    for tag, first, last in der.elements(value, start, stop):
        if tag not in (_PERMITTED, _EXCLUDED):
            raise der.Malformed
        side = permitted if tag == _PERMITTED else excluded
        for inner, a, b in der.elements(value, first, last):
            if inner != der.SEQUENCE:
                raise der.Malformed
            form, base_at, base_end = der.element(value, a, b)
            form &= 0x1F
            bases = side.setdefault(form, [])
            # A minimum other than 0 or a maximum follows the base: RFC 5280 has neither.
            if form not in _FORMS or base_end != b:
                unread.add(form)
                continue
            try:
                bases.append(_FORMS[form].base(value[base_at:base_end]))
            except ValueError:
                unread.add(form)
    return Constraints(permitted, excluded, frozenset(unread))


def names_of(subject: bytes, extensions: bytes) -> Names:
    """Every name of a certificate that a constraint can be about.

    They are its alternative names and its subject; the mail addresses of the subject too, when the
    alternative names have none (RFC 5280 section 4.2.1.10). Raises ValueError for a subject whose
    mail address is in no known encoding.
    """
    names = der.alternative_names(extensions)
    if subject != der.EMPTY_NAME:
        if all(form != MAIL for form, _ in names):
            names += [(MAIL, mail) for mail in _mails(subject)]
        names.append((DIRECTORY, subject))
    return names


def cost(constraints: Constraints, names: Names) -> int:
    """How many comparisons `allows` may make."""
    permitted, excluded = constraints.permitted, constraints.excluded
    return sum(len(permitted.get(form, ())) + len(excluded.get(form, ())) for form, _ in names)


def allows(constraints: Constraints, names: Names) -> bool:
    """Whether the authority may vouch for every one of these names."""
    for form, name in names:
        permitted = constraints.permitted.get(form)
        excluded = constraints.excluded.get(form)
        if permitted is None and excluded is None:
            continue
        if form in constraints.unread:
            return False
        rules = _FORMS[form]
        try:
            own = rules.name(name)
        except ValueError:
            # `Malformed`, or text in no such encoding: what cannot be read cannot be inside.
            return False
        if excluded is not None and any(rules.excludes(own, base) for base in excluded):
            return False
        if permitted is not None and not any(rules.permits(own, base) for base in permitted):
            return False
    return True


def _text(data: bytes) -> bytes:
    """ASCII in lower case, or `Malformed`."""
    if not data.isascii():
        raise der.Malformed
    return data.lower()


def _host(name: bytes) -> bytes:
    """A host name in lower case, or `Malformed`."""
    name = _text(name)
    if len(name) > 253:
        raise der.Malformed
    for label in name.split(b"."):
        if not label or not _HOST_BYTES.issuperset(label):
            raise der.Malformed
    return name


def _dns_name(name: bytes) -> bytes:
    """A DNS name, whose first label may be a star."""
    return b"*." + _host(name[2:]) if name[:2] == b"*." else _host(name)


def _dns_permits(name: bytes, base: bytes) -> bool:
    """The base and what is under it; with a dot in front, as OpenSSL reads it, not the base."""
    if base == b"" or name == base:
        return True
    return name.endswith(base if base[:1] == b"." else b"." + base)


def _dns_excludes(name: bytes, base: bytes) -> bool:
    # A wildcard stands for one label, so it covers a base that is one label longer than its rest.
    covered = name[:2] == b"*." and base.partition(b".")[2] == name[2:]
    return covered or _dns_permits(name, base)


def _mail_parts(mail: bytes) -> tuple[bytes, bytes]:
    """The local part as it stands (RFC 5280 section 7.5: its case matters), and the host."""
    local, _, host = mail.rpartition(b"@")
    if not local:
        raise der.Malformed
    return local, _host(host)


def _mail_base(base: bytes) -> tuple[bytes | None, bytes]:
    """One mailbox, or every mailbox of a host or of a domain."""
    local, at, host = base.rpartition(b"@")
    return (local if at else None), _text(host)


def _mail_permits(name: tuple[bytes, bytes], base: tuple[bytes | None, bytes]) -> bool:
    return _host_permits(name[1], base[1]) and base[0] in (None, name[0])


def _mail_excludes(name: tuple[bytes, bytes], base: tuple[bytes | None, bytes]) -> bool:
    return base == (None, b"") or _mail_permits(name, base)


def _uri_host(uri: bytes) -> bytes:
    """The host of a URI (RFC 3986 section 3.2), which must be a host name and no address."""
    _, colon, rest = uri.partition(b":")
    if not colon or rest[:2] != b"//":
        raise der.Malformed
    authority = rest[2:]
    for end in (b"/", b"?", b"#"):
        authority = authority.partition(end)[0]
    host = _host(authority.rpartition(b"@")[2].partition(b":")[0])
    if host.rpartition(b".")[2].isdigit():
        raise der.Malformed
    return host


def _host_permits(host: bytes, base: bytes) -> bool:
    """Just this host; with a dot in front, every host under it and not itself."""
    return host.endswith(base) if base[:1] == b"." else host == base


def _host_excludes(host: bytes, base: bytes) -> bool:
    return base == b"" or _host_permits(host, base)


def _address(name: bytes) -> bytes:
    return name


def _address_fits(name: bytes, base: bytes) -> bool:
    """An address under a network of its own family: the base is the network and its mask."""
    half = len(name)
    if len(base) != 2 * half:
        return False
    mask = int.from_bytes(base[half:])
    return (int.from_bytes(name) ^ int.from_bytes(base[:half])) & mask == 0


def _directory_fits(name: _Name, base: _Name) -> bool:
    return name[: len(base)] == base


def _attributes(name: bytes) -> list[list[tuple[bytes, int, bytes]]]:
    """The RDNs of a Name: each a list of (type, tag of the value, contents of the value)."""
    rdns = []
    start, stop = der.expect(name, 0, len(name), der.SEQUENCE)
    for tag, first, last in der.elements(name, start, stop):
        if tag != der.SET:
            raise der.Malformed
        rdn = []
        for inner, a, b in der.elements(name, first, last):
            if inner != der.SEQUENCE:
                raise der.Malformed
            type_at, type_end = der.expect(name, a, b, der.OBJECT_IDENTIFIER)
            kind, value_at, value_end = der.element(name, type_end, b)
            rdn.append((name[type_at:type_end], kind, name[value_at:value_end]))
        rdns.append(rdn)
    return rdns


def _canonical(name: bytes) -> _Name:
    """A Name in the form that is compared (the case and the spaces of OpenSSL's comparison)."""
    rdns = []
    for rdn in _attributes(name):
        attributes = []
        for oid, tag, value in rdn:
            encoding = _ENCODINGS.get(tag)
            if encoding is not None:
                text = b" ".join(value.decode(encoding).encode("utf-8").split())
                tag, value = 0x0C, text.lower()
            attributes.append((oid, tag, value))
        rdns.append(tuple(sorted(attributes)))
    return tuple(rdns)


def _mails(subject: bytes) -> list[bytes]:
    """The values of the emailAddress attributes of a subject."""
    return [
        value.decode(_ENCODINGS[tag]).encode("utf-8") if tag in _ENCODINGS else value
        for rdn in _attributes(subject)
        for oid, tag, value in rdn
        if oid == _EMAIL_ADDRESS
    ]


class _Form(NamedTuple):
    """How one form of name is compared: both sides are prepared, then each pair is judged."""

    name: Callable[[bytes], Any]
    base: Callable[[bytes], Any]
    permits: Callable[[Any, Any], bool]
    excludes: Callable[[Any, Any], bool]


_FORMS: dict[int, _Form] = {
    MAIL: _Form(_mail_parts, _mail_base, _mail_permits, _mail_excludes),
    DNS: _Form(_dns_name, _text, _dns_permits, _dns_excludes),
    DIRECTORY: _Form(_canonical, _canonical, _directory_fits, _directory_fits),
    URI: _Form(_uri_host, _text, _host_permits, _host_excludes),
    ADDRESS: _Form(_address, _address, _address_fits, _address_fits),
}
