"""Name constraints: which names an authority may vouch for (RFC 5280 §4.2.1.10).

Five forms are processed: DNS names, mail addresses, URIs, addresses and directory names.

A constraint that cannot be understood permits nothing and excludes everything of its form: a base
that is no name of that form, one with a minimum or a maximum, one on a form that is not processed.
A name that cannot be read is inside nothing and outside nothing: where its form is constrained at
all, it is refused. An authority that withheld a name must not vouch for it because the name, or the
constraint, is spelled in a way that does not compare.

Where a text does not settle the meaning, the reading that refuses is taken:

- a DNS name or a host is a plain host name whose last label is not a number, which no address is
  (RFC 1123 §2.1); a star may stand for the first label of a name, and in no base;
- `*.example` is excluded by an excluded `host.example`, which it covers;
- the local part of a mail address has one spelling: quotes where they are needed and not else;
- a URI has an authority of the characters that RFC 3986 gives it, so that no reader finds another
  host in it;
- an IPv4 address in the shape of an IPv6 one is neither;
- directory names are compared as RFC 5280 §7.1 has it, near enough: case, spaces, the string
  type and the compatible spellings of Unicode do not matter, so that respelling a name does not
  take it out of an excluded subtree.

The work is names times bases. `LIMIT` bounds it: a certificate of thousands of names under an
authority of hundreds of bases would otherwise stop the server for seconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

from . import der

MAIL = 1
DNS = 2
DIRECTORY = 4
URI = 6
ADDRESS = 7

LIMIT = 16_384

_PERMITTED = 0xA0
_EXCLUDED = 0xA1
_EMAIL_ADDRESS = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01"
_LABEL = rb"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rb"(?:%b\.)*%b" % (_LABEL, _LABEL))
# RFC 5321 §4.1.2, without a space, which it allows in quotes.
_DOT_STRING = re.compile(rb"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*")
_QUOTED_STRING = re.compile(rb'"((?:[!#-\[\]-~]|\\["\\])*)"')
# RFC 3986 §3: a scheme, an authority (its userinfo, host and port), the rest.
_URI = re.compile(
    rb"[A-Za-z][A-Za-z0-9+.-]*://"
    rb"(?:[\w.~!$&'()*+,;=:%-]*@)?([\w.-]+)(?::[0-9]*)?"
    rb"(?:[/?#][!-~]*)?"
)
# ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
_MAPPED = bytes(10) + b"\xff\xff"
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
    """The bases of one authority by form, and the forms of which it excludes everything.

    A base is kept as its form compares it, so that it is prepared once and not once a name.
    """

    permitted: dict[int, _Bases]
    excluded: dict[int, _Bases]
    closed: frozenset[int]


def read(value: bytes) -> Constraints:
    """Read the value of a nameConstraints extension. Raises `Malformed`."""
    permitted: dict[int, _Bases] = {}
    excluded: dict[int, _Bases] = {}
    closed = set()
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
            try:
                # A minimum other than 0 or a maximum follows the base: RFC 5280 has neither.
                if form not in _FORMS or base_end != b:
                    raise der.Malformed
                bases.append(_FORMS[form].base(value[base_at:base_end]))
            except ValueError:
                # Not understood: left out of what is permitted; of what is excluded it is all.
                if tag == _EXCLUDED:
                    closed.add(form)
    return Constraints(permitted, excluded, frozenset(closed))


def names_of(subject: bytes, extensions: bytes) -> Names:
    """Every name of a certificate that a constraint can be about.

    They are its alternative names and its subject; the mail addresses of the subject too, when the
    alternative names have none (RFC 5280 §4.2.1.10). Raises `Malformed`, a ValueError, for a
    subject that does not parse, and ValueError when its mail address is in no known encoding.
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
        if permitted == [] or form in constraints.closed:
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


def _host(name: bytes) -> bytes:
    """A host name in lower case, or `Malformed`."""
    name = name.lower()
    if len(name) > 253 or not _HOST.fullmatch(name) or name.rpartition(b".")[2].isdigit():
        raise der.Malformed
    return name


def _domain(base: bytes) -> bytes:
    """A host, or with a dot in front all that is under it."""
    return b"." + _host(base[1:]) if base[:1] == b"." else _host(base)


def _dns_name(name: bytes) -> bytes:
    """A DNS name, whose first label may be a star."""
    return b"*." + _host(name[2:]) if name[:2] == b"*." else _host(name)


def _dns_base(base: bytes) -> bytes:
    """A domain, or nothing: every name."""
    return _domain(base) if base else base


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
    """The local part as it stands (RFC 5280 §7.5: its case matters), and the host."""
    local, _, host = mail.rpartition(b"@")
    quoted = _QUOTED_STRING.fullmatch(local)
    # Quotes round what needs none would be a second spelling of the same mailbox.
    if bool(_DOT_STRING.fullmatch(quoted[1] if quoted else local)) == bool(quoted):
        raise der.Malformed
    return local, _host(host)


def _mail_base(base: bytes) -> tuple[bytes | None, bytes]:
    """One mailbox, or every mailbox of a host or of a domain."""
    return _mail_parts(base) if b"@" in base else (None, _domain(base))


def _mail_fits(name: tuple[bytes, bytes], base: tuple[bytes | None, bytes]) -> bool:
    return _host_fits(name[1], base[1]) and base[0] in (None, name[0])


def _uri_host(uri: bytes) -> bytes:
    """The host of a URI, which must be a host name and no address."""
    parts = _URI.fullmatch(uri)
    if parts is None:
        raise der.Malformed
    return _host(parts[1])


def _host_fits(host: bytes, base: bytes) -> bool:
    """Just this host; with a dot in front, every host under it and not itself."""
    return host.endswith(base) if base[:1] == b"." else host == base


def _address(name: bytes) -> bytes:
    if len(name) not in (4, 16) or name.startswith(_MAPPED):
        raise der.Malformed
    return name


def _network(base: bytes) -> tuple[bytes, int]:
    """A network and its mask, whose ones stand before its zeros (RFC 4632 §3.1)."""
    half = len(base) // 2
    zeros = ~int.from_bytes(base[half:]) & (1 << 8 * half) - 1
    if len(base) % 2 or zeros & zeros + 1:
        raise der.Malformed
    return _address(base[:half]), zeros


def _address_fits(name: bytes, base: tuple[bytes, int]) -> bool:
    """An address under a network of its own family."""
    network, zeros = base
    differ = int.from_bytes(name) ^ int.from_bytes(network)
    return len(name) == len(network) and differ | zeros == zeros


def _directory_fits(name: _Name, base: _Name) -> bool:
    return name[: len(base)] == base


def _attributes(name: bytes) -> list[list[tuple[bytes, int, bytes]]]:
    """The RDNs of a Name: each a list of (type, tag of the value, contents of the value)."""
    rdns = []
    start, stop = der.expect(name, 0, len(name), der.SEQUENCE)
    if stop != len(name):
        raise der.Malformed
    for tag, first, last in der.elements(name, start, stop):
        if tag != der.SET or first == last:
            raise der.Malformed
        rdn = []
        for inner, a, b in der.elements(name, first, last):
            if inner != der.SEQUENCE:
                raise der.Malformed
            type_at, type_end = der.expect(name, a, b, der.OBJECT_IDENTIFIER)
            kind, value_at, value_end = der.element(name, type_end, b)
            if value_end != b:
                raise der.Malformed
            rdn.append((name[type_at:type_end], kind, name[value_at:value_end]))
        rdns.append(rdn)
    return rdns


def _canonical(name: bytes) -> _Name:
    """A Name in the form that is compared."""
    rdns = []
    for rdn in _attributes(name):
        attributes = []
        for oid, tag, value in rdn:
            encoding = _ENCODINGS.get(tag)
            if encoding is not None:
                tag, value = 0x0C, _folded(value.decode(encoding))
            attributes.append((oid, tag, value))
        rdns.append(tuple(sorted(attributes)))
    return tuple(rdns)


def _folded(text: str) -> bytes:
    """A text without what does not matter in a comparison (RFC 4518 §2), or `Malformed`.

    What has no form of its own (controls, zero-width and unassigned characters) would make a second
    spelling that looks the same.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = " ".join(unicodedata.normalize("NFKC", folded).split())
    if not folded.isprintable():
        raise der.Malformed
    return folded.encode()


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
    MAIL: _Form(_mail_parts, _mail_base, _mail_fits, _mail_fits),
    DNS: _Form(_dns_name, _dns_base, _dns_permits, _dns_excludes),
    DIRECTORY: _Form(_canonical, _canonical, _directory_fits, _directory_fits),
    URI: _Form(_uri_host, _domain, _host_fits, _host_fits),
    ADDRESS: _Form(_address, _network, _address_fits, _address_fits),
}
