"""Which names an authority may vouch for, form by form (RFC 5280 §4.2.1.10).

The names and the bases are given as they stand in a certificate, so that those which no maker of
certificates writes are met as well. `test_paths` has the same rules in whole chains.
"""

from __future__ import annotations

import pytest

from engine.x509 import name_constraints
from engine.x509.der import OBJECT_IDENTIFIER, SEQUENCE, SET, SUBJECT_ALT_NAME, Malformed
from engine.x509.name_constraints import ADDRESS, DIRECTORY, DNS, MAIL, URI, Constraints
from tests.engine.x509.chain_maker import tlv
from tests.engine.x509.test_der import extension

TAGS = {
    0: 0xA0, MAIL: 0x81, DNS: 0x82, 3: 0xA3, DIRECTORY: 0xA4, 5: 0xA5, URI: 0x86, ADDRESS: 0x87,
    8: 0x88,
}  # fmt: skip
Base = tuple[int, bytes]


def subtree(base: Base, behind: bytes = b"") -> bytes:
    form, value = base
    return tlv(SEQUENCE, tlv(TAGS[form], value) + behind)


def side(tag: int, bases: tuple[Base, ...]) -> bytes:
    return tlv(tag, b"".join(map(subtree, bases))) if bases else b""


def limits(permitted: tuple[Base, ...] = (), excluded: tuple[Base, ...] = ()) -> Constraints:
    value = tlv(SEQUENCE, side(0xA0, permitted) + side(0xA1, excluded))
    return name_constraints.read(value)


# -- the names -------------------------------------------------------------------------------


def attribute(value: bytes, tag: int = 0x0C, oid: bytes = b"\x55\x04\x0a") -> bytes:
    return tlv(SEQUENCE, tlv(OBJECT_IDENTIFIER, oid) + tlv(tag, value))


def directory(*rdns: bytes) -> bytes:
    """A Name of these RDNs, each the attributes of one set."""
    return tlv(SEQUENCE, b"".join(tlv(SET, rdn) for rdn in rdns))


ONE = directory(attribute(b"One"))
BITS = 0x03
BOTH = attribute(b"a") + attribute(b"b", oid=b"\x55\x04\x0b")
TURNED = attribute(b"b", oid=b"\x55\x04\x0b") + attribute(b"a")
LONGEST = b".".join([b"x" * 63] * 3 + [b"y" * 61])
assert len(LONGEST) == 253

# form, base, name, whether a permitted base lets the name pass, whether an excluded one stops it.
PAIRS: list[tuple[int, bytes, bytes, bool, bool]] = [
    (DNS, b"example", b"example", True, True),
    (DNS, b"EXAMPLE", b"a.eXample", True, True),
    (DNS, b"example", b"anexample", False, False),
    (DNS, b"a.example", b"example", False, False),
    (DNS, b".example", b"a.example", True, True),
    (DNS, b".example", b"example", False, False),
    (DNS, b"", b"a.example", True, True),
    (DNS, b"example", b"*.example", True, True),
    (DNS, b".example", b"*.example", True, True),
    (DNS, b"a.example", b"*.example", False, True),
    (DNS, b"a.b.example", b"*.example", False, False),
    (DNS, b"a.example", b"x.example", False, False),
    (DNS, b"a.example", b"*.test", False, False),
    (DNS, b"y" * 61, LONGEST, True, True),
    (DNS, b"_dns.example", b"a._DNS.example", True, True),
    (DNS, b"xn--4ca.example", b"XN--4CA.example", True, True),
    (MAIL, b"one.test", b"a@ONE.test", True, True),
    (MAIL, b"one.test", b"a@x.one.test", False, False),
    (MAIL, b".one.test", b"a@x.one.test", True, True),
    (MAIL, b".one.test", b"a@one.test", False, False),
    (MAIL, b".one.test", b"a@b.test", False, False),
    (MAIL, b".t", b"a@long.enough", False, False),
    (MAIL, b"a@one.test", b"a@one.test", True, True),
    (MAIL, b"a@one.test", b"A@one.test", False, False),
    (MAIL, b"a@one.test", b"a@two.test", False, False),
    (MAIL, b"one.test", b'"a@b"@one.test', True, True),
    (MAIL, b'"a@b"@one.test', b'"a@b"@one.test', True, True),
    (MAIL, b"one.test", b"a.b+c/d=e'f{g}|h~!#$%&*-?^_`@one.test", True, True),
    (MAIL, b"one.test", b'"a\\"b\\\\c"@one.test', True, True),
    (MAIL, b"one.test", b'""@one.test', True, True),
    (URI, b"h.test", b"https://h.test", True, True),
    (URI, b"h.test", b"https://H.test:8443/p", True, True),
    (URI, b"h.test", b"https://h.test?q=1/2", True, True),
    (URI, b"h.test", b"https://h.test#f/g", True, True),
    (URI, b"h.test", b"https://u:p@h.test/", True, True),
    (URI, b"h.test", b"https://x.h.test/", False, False),
    (URI, b".h.test", b"https://x.h.test/", True, True),
    (URI, b".h.test", b"https://h.test/", False, False),
    (URI, b".h.test", b"https://xh.test/", False, False),
    (URI, b"h.test", b"https://x.test/@h.test", False, False),
    (URI, b"h.test", b"a+b-1.c://h.test", True, True),
    (URI, b"h.test", b"https://@h.test:/", True, True),
    (URI, b"h.test", b"https://a%40b:~!$&'()*+,;=@h.test", True, True),
    (URI, b"H.TEST", b"https://h.test", True, True),
    (ADDRESS, bytes((192, 0, 2, 0, 255, 255, 255, 0)), bytes((192, 0, 2, 9)), True, True),
    (ADDRESS, bytes((192, 0, 2, 0, 255, 255, 255, 0)), bytes((192, 0, 3, 9)), False, False),
    (ADDRESS, bytes((192, 0, 2, 0, 255, 255, 255, 0)), bytes((193, 0, 2, 9)), False, False),
    (ADDRESS, bytes((192, 0, 2, 7, 255, 255, 255, 255)), bytes((192, 0, 2, 7)), True, True),
    (ADDRESS, bytes((192, 0, 2, 7, 255, 255, 255, 255)), bytes((192, 0, 2, 6)), False, False),
    (ADDRESS, bytes(8), bytes((192, 0, 2, 6)), True, True),
    (ADDRESS, bytes(32), bytes((192, 0, 2, 6)), False, False),
    (ADDRESS, bytes(8), bytes(16), False, False),
    (ADDRESS, bytes(16) + b"\xff" * 16, bytes(16), True, True),
    (ADDRESS, bytes(16) + b"\xff" * 16, bytes(15) + b"\x01", False, False),
    (ADDRESS, bytes(32), bytes(16), True, True),
    (DIRECTORY, ONE, ONE, True, True),
    (DIRECTORY, ONE, directory(attribute(b"One"), attribute(b"more")), True, True),
    (DIRECTORY, ONE, directory(attribute(b"more"), attribute(b"One")), False, False),
    (DIRECTORY, directory(attribute(b"One"), attribute(b"more")), ONE, False, False),
    (DIRECTORY, directory(), ONE, True, True),
    (DIRECTORY, ONE, directory(attribute(b"  oNE ")), True, True),
    (DIRECTORY, directory(attribute(b"a b")), directory(attribute(b"A \t B")), True, True),
    (DIRECTORY, directory(attribute(b"a b")), directory(attribute(b"ab")), False, False),
    (DIRECTORY, ONE, directory(attribute(b"One", oid=b"\x55\x04\x0b")), False, False),
    (DIRECTORY, directory(BOTH), directory(TURNED), True, True),
    (DIRECTORY, directory(BOTH), directory(attribute(b"a")), False, False),
    (DIRECTORY, directory(attribute(b"One", BITS)), directory(attribute(b"One", BITS)), True, True),
    (
        DIRECTORY,
        directory(attribute(b"One", BITS)),
        directory(attribute(b"one", BITS)),
        False,
        False,
    ),
    (
        DIRECTORY,
        directory(attribute(b"\xff", BITS)),
        directory(attribute(b"\xff", BITS)),
        True,
        True,
    ),
    (
        DIRECTORY,
        directory(attribute("\u00c9".encode())),
        directory(attribute("\u00e9".encode())),
        True,
        True,
    ),
    (
        DIRECTORY,
        directory(attribute("e\u0301".encode())),
        directory(attribute("\u00e9".encode())),
        True,
        True,
    ),
    (DIRECTORY, ONE, directory(attribute("\uff2fne".encode())), True, True),
    (
        DIRECTORY,
        directory(attribute(b"a b")),
        directory(attribute("a\u00a0\u3000b".encode())),
        True,
        True,
    ),
    (
        DIRECTORY,
        directory(attribute(b"strasse")),
        directory(attribute("STRA\u1e9eE".encode())),
        True,
        True,
    ),
]


@pytest.mark.parametrize(("form", "base", "name", "passes", "stopped"), PAIRS)
def test_a_name_under_a_base(
    form: int, base: bytes, name: bytes, passes: bool, stopped: bool
) -> None:
    names = [(form, name)]
    assert name_constraints.allows(limits(permitted=((form, base),)), names) is passes
    assert name_constraints.allows(limits(excluded=((form, base),)), names) is not stopped


# What is no name of its form, neither where a certificate has it nor where a constraint does.
NO_HOSTS = [
    b".", b"..example", b"a..example", b"example.", b"bar.example.test.", b".example.test.",
    b" example", b"example ", b"a b.example", b"a\0.example", b"example\0", b"a\n.example",
    b"\xc3\xb8.test", b"a*.example", b"a.*.example", b"*.*.example", b"*", b"*.", b"*example",
    b"-a.example", b"a-.example", b"x" * 64 + b".example", LONGEST + b"y",
    b"192.0.2.1", b"example.1", b"1", b"[::1]", b"[192.0.2.1]", b"::1", b"example:443",
    b"//example", b"https://example/", b"example/", b"a@example", b"%65xample", b"a,example",
]  # fmt: skip
NO_LOCALS = [
    b"", b"@", b"a@b", b"a@b@c", b'"a"@b', b"a b", b" a", b"a ", b'"a b"', b"a\0", b"\0",
    b'"a\0"', b"\xc3\xb8", b"a\xff", b'"\xc3\xb8"', b"a\x7f", b"a\t", b".a", b"a.", b"a..b",
    b"a(b)", b"<a", b"a,b", b"a:b", b"a;b", b"a[b]", b"a\\b", b'"', b'a"b"', b'"a"b', b'"a""b"',
    b'"a"', b'"a.b"', b'"a\\bc@"', b'"a@\\"', b'"a@"b"',
]  # fmt: skip
NO_NAMES: list[tuple[int, bytes]] = [
    (DNS, b""),
    *[(DNS, host) for host in NO_HOSTS],
    (MAIL, b""), (MAIL, b"a"), (MAIL, b"one.test"), (MAIL, b"a@"), (MAIL, b"a@.one.test"),
    *[(MAIL, b"a@" + host) for host in NO_HOSTS if host != b"a@example"],
    *[(MAIL, local + b"@one.test") for local in NO_LOCALS],
    (URI, b""), (URI, b"h.test"), (URI, b"//h.test"), (URI, b"://h.test"), (URI, b"urn:h.test"),
    (URI, b"https:/h.test"), (URI, b"https:h.test"), (URI, b"https://"), (URI, b"https:///h.test"),
    (URI, b"1http://h.test"), (URI, b"ht_tp://h.test"), (URI, b" https://h.test"),
    (URI, b"https://u@v@h.test/"), (URI, b"https://h.test:x/"),
    (URI, b"https://h.test:1:2/"), (URI, b"https://x.test\\@h.test/"), (URI, b"https://u v@h.test"),
    (URI, b"https://[::1]/"), (URI, b"https://[::1]:443/"), (URI, b"https://[v1.a]/"),
    (URI, b"https://h.test/a b"), (URI, b"https://h.test/\0"), (URI, b"https://h.test/\xc3\xb8"),
    (URI, b"https://h.test\n"), (URI, b"https://\xc3\xb8@h.test/"),
    *[(URI, b"https://" + host + b"/") for host in NO_HOSTS
      if host not in (b"example:443", b"a@example", b"example/", b"https://example/")],
    *[(ADDRESS, bytes(size)) for size in (0, 1, 3, 5, 8, 15, 17, 32)],
    (ADDRESS, bytes(10) + b"\xff\xff" + bytes(4)),
    (DIRECTORY, b""), (DIRECTORY, b"\x30"), (DIRECTORY, directory()[:-1]),
    (DIRECTORY, ONE + b"\0"), (DIRECTORY, ONE + ONE), (DIRECTORY, ONE[:-1]),
    (DIRECTORY, directory(b"")), (DIRECTORY, tlv(SET, b"")),
    (DIRECTORY, tlv(SEQUENCE, tlv(SEQUENCE, attribute(b"One")))),
    (DIRECTORY, directory(tlv(SET, attribute(b"One")[2:]))),
    (DIRECTORY, directory(tlv(SEQUENCE, tlv(4, b"\x55")))),
    (DIRECTORY, directory(tlv(SEQUENCE, tlv(OBJECT_IDENTIFIER, b"\x55") + b"\x0c\0\x0c\0"))),
    (DIRECTORY, directory(tlv(SEQUENCE, tlv(OBJECT_IDENTIFIER, b"\x55")))),
    *[(DIRECTORY, directory(attribute(*text))) for text in (
        (b"\xff",), (b"\xed\xa0\x80",), (b"\xff", 0x13), (b"\xff", 0x16), (b"a", 0x1E),
        (b"\xd8\0", 0x1E), (b"abc", 0x1C), (b"\xff\xff\xff\xff", 0x1C),
        (b"a\0b",), (b"a\x7f",), ("a\u200bb".encode(),), ("a\u00adb".encode(),),
        ("\ufeffa".encode(),), ("\ue000".encode(),), ("\uffff".encode(),),
    )],
]  # fmt: skip
# A name of each form that is one, and a base that it is not under.
OTHERS = {
    DNS: (b"a.other.test", b"another.test"),
    MAIL: (b"a@other.test", b"another.test"),
    URI: (b"https://other.test/", b"another.test"),
    ADDRESS: (b"\x0a\0\0\x01", b"\x0b\0\0\0\xff\0\0\0"),
    DIRECTORY: (directory(attribute(b"Other")), directory(attribute(b"Another"))),
}
NO_BASES: list[Base] = [
    *[(DNS, host) for host in NO_HOSTS],
    (DNS, b"*.example"), (MAIL, b""), (MAIL, b"*.example"), (MAIL, b"@example"),
    *[(MAIL, host) for host in NO_HOSTS if host != b"a@example"],
    *[(MAIL, b"a@" + host) for host in [*NO_HOSTS, b"", b".example"] if host != b"a@example"],
    *[(MAIL, local + b"@one.test") for local in NO_LOCALS],
    (URI, b""), (URI, b"*.example"),
    *[(URI, host) for host in NO_HOSTS],
    *[(ADDRESS, bytes(size)) for size in (0, 1, 4, 7, 9, 16, 31, 33, 64)],
    (ADDRESS, bytes((192, 0, 2, 0, 255, 0, 255, 0))), (ADDRESS, bytes((192, 0, 2, 0, 0, 0, 0, 1))),
    (ADDRESS, bytes((192, 0, 2, 0, 127, 255, 255, 255))), (ADDRESS, bytes(16) + b"\xff\0" * 8),
    (ADDRESS, bytes(10) + b"\xff\xff\xc0\0\2\0" + b"\xff" * 15 + b"\0"),
    *[(form, value) for form, value in NO_NAMES if form == DIRECTORY],
    # otherName, x400Address, ediPartyName, registeredID: forms that are not processed.
    *[(form, b"\x2a") for form in (0, 3, 5, 8)],
]  # fmt: skip


@pytest.mark.parametrize(("form", "name"), NO_NAMES)
def test_what_is_no_name_is_refused_where_its_form_is_constrained(form: int, name: bytes) -> None:
    _, base = OTHERS[form]
    everything = {DNS: b"", ADDRESS: bytes(8), DIRECTORY: directory()}.get(form, base)
    for known in (limits(permitted=((form, everything),)), limits(excluded=((form, base),))):
        assert name_constraints.allows(known, [(form, name)]) is False
    elsewhere = limits(excluded=((8, b"\x2a"),))
    assert name_constraints.allows(elsewhere, [(form, name)]) is True


@pytest.mark.parametrize(("form", "base"), NO_BASES)
def test_a_base_that_is_no_name_permits_nothing_and_excludes_everything(
    form: int, base: bytes
) -> None:
    name, other = OTHERS.get(form, (b"\x2b", b"\x2c"))
    assert name_constraints.allows(limits(permitted=((form, base),)), [(form, name)]) is False
    assert name_constraints.allows(limits(excluded=((form, base),)), [(form, name)]) is False
    assert name_constraints.allows(limits(excluded=((form, base),)), [(form, base)]) is False
    # Not when the base beside it is understood either.
    both = limits(excluded=((form, base), (form, other)))
    assert name_constraints.allows(both, [(form, name)]) is False
    # Another form is left alone.
    assert name_constraints.allows(limits(excluded=((form, base),)), [(9, name)]) is True


@pytest.mark.parametrize(("form", "base"), [one for one in NO_BASES if one[0] in OTHERS])
def test_a_permitted_base_beside_one_that_is_not_understood_still_permits(
    form: int, base: bytes
) -> None:
    name, _ = OTHERS[form]
    inside = {MAIL: b"other.test", URI: b"other.test", ADDRESS: name + b"\xff" * 4}.get(form, name)
    assert name_constraints.allows(limits(permitted=((form, base), (form, inside))), [(form, name)])


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        (0x12, b"12 3"),
        (0x13, b"12 3"),
        (0x14, b"12 3"),
        (0x16, b"12 3"),
        (0x1A, b"12 3"),
        (0x1C, "12 3".encode("utf-32-be")),
        (0x1E, "12 3".encode("utf-16-be")),
    ],
)
def test_the_type_of_a_text_does_not_matter(tag: int, text: bytes) -> None:
    known = limits(permitted=((DIRECTORY, directory(attribute(b"12 3"))),))
    assert name_constraints.allows(known, [(DIRECTORY, directory(attribute(text, tag)))]) is True


def test_a_letter_that_is_not_ascii_is_the_same_in_every_type_of_text() -> None:
    known = limits(permitted=((DIRECTORY, directory(attribute("\u00e9".encode()))),))
    for tag, encoding in ((0x14, "latin-1"), (0x1C, "utf-32-be"), (0x1E, "utf-16-be")):
        own = directory(attribute("\u00e9".encode(encoding), tag))
        assert name_constraints.allows(known, [(DIRECTORY, own)]) is True


def test_a_text_is_no_other_value_of_the_same_bytes() -> None:
    known = limits(permitted=((DIRECTORY, directory(attribute(b"one"))),))
    texts = {0x0C, 0x12, 0x13, 0x14, 0x16, 0x1A}
    for tag in range(1, 0x1F):
        own = [(DIRECTORY, directory(attribute(b"one", tag)))]
        assert name_constraints.allows(known, own) is (tag in texts), tag


# -- all of them -----------------------------------------------------------------------------

A, B = (DNS, b"a.test"), (DNS, b"b.test")
ADDRESS_BASE = (ADDRESS, bytes(8))


def test_every_name_must_be_inside_one_permitted_base_and_outside_all_excluded() -> None:
    both = limits(permitted=(A, B), excluded=((DNS, b"x.a.test"), (DNS, b"x.b.test")))
    assert name_constraints.allows(both, [])
    assert name_constraints.allows(both, [(DNS, b"a.test"), (DNS, b"b.test")])
    for bad in (b"c.test", b"x.a.test", b"x.b.test"):
        assert name_constraints.allows(both, [(DNS, b"a.test"), (DNS, bad)]) is False
        # One of a form that nothing is said about is passed over, and not what follows.
        assert name_constraints.allows(both, [(MAIL, b"a@c.test"), (DNS, bad)]) is False
    assert name_constraints.allows(both, [(MAIL, b"a@c.test"), (DNS, b"a.test")]) is True
    # Whatever it is: of a form that is not processed, or no such name.
    assert name_constraints.allows(both, [(8, b"\x2a"), (MAIL, b""), (DNS, b"a.test")]) is True


@pytest.mark.parametrize("unread", [(8, b"\x2a"), (DNS, b"\xff"), (DIRECTORY, b"\x31\x00")])
def test_a_base_that_is_not_understood_leaves_the_others_as_they_are(unread: Base) -> None:
    for known in (limits(permitted=(unread, ADDRESS_BASE)), limits((ADDRESS_BASE,), (unread,))):
        assert known.closed == ({unread[0]} if unread[0] in known.excluded else set())
        assert known.permitted[ADDRESS] == [(bytes(4), 0xFFFFFFFF)]
        assert name_constraints.allows(known, [(unread[0], b"a.test")]) is False
        assert name_constraints.allows(known, [(ADDRESS, bytes(4))]) is True
        assert name_constraints.allows(known, [(ADDRESS, bytes(16))]) is False


@pytest.mark.parametrize("behind", [b"\x80\x01\x01", b"\x81\x01\x05"])
def test_a_minimum_or_a_maximum_is_not_understood(behind: bytes) -> None:
    value = tlv(SEQUENCE, tlv(0xA1, subtree(A, behind) + subtree(ADDRESS_BASE)))
    known = name_constraints.read(value)
    assert known == Constraints({}, {DNS: [], ADDRESS: [(bytes(4), 0xFFFFFFFF)]}, frozenset({DNS}))
    assert name_constraints.allows(known, [(DNS, b"other.test")]) is False
    within = name_constraints.read(tlv(SEQUENCE, tlv(0xA0, subtree(A, behind) + subtree(B))))
    assert name_constraints.allows(within, [(DNS, b"a.test")]) is False
    assert name_constraints.allows(within, [(DNS, b"b.test")]) is True


def test_both_sides_are_read() -> None:
    known = limits((A, (MAIL, b"c@D")), (B, (DNS, b"C")))
    assert known.permitted == {DNS: [b"a.test"], MAIL: [(b"c", b"d")]}
    assert known.excluded == {DNS: [b"b.test", b"c"]}
    assert known.closed == frozenset()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        tlv(SET, side(0xA0, (A,))),
        tlv(SEQUENCE, side(0xA2, (A,))),
        tlv(SEQUENCE, side(0xA0, (A,)) + side(0x30, (B,))),
        tlv(SEQUENCE, tlv(0xA0, tlv(SET, tlv(0x82, b"a.test")))),
        tlv(SEQUENCE, tlv(0xA0, tlv(0x82, tlv(0x82, b"a.test")))),
        tlv(SEQUENCE, tlv(0xA1, tlv(SEQUENCE, b""))),
    ],
)
def test_constraints_of_another_shape_are_malformed(value: bytes) -> None:
    with pytest.raises(Malformed):
        name_constraints.read(value)


def test_the_cost_is_the_number_of_comparisons() -> None:
    known = limits((A, B, (MAIL, b"c")), ((DNS, b"x"), (URI, b"y")))
    cases = {DNS: 3, MAIL: 1, URI: 1, ADDRESS: 0}
    for form, cost in cases.items():
        assert name_constraints.cost(known, [(form, b"")]) == cost
    assert name_constraints.cost(known, [(form, b"") for form in cases] * 2) == 10
    assert name_constraints.cost(known, []) == 0


# -- which names a certificate has -----------------------------------------------------------

EMAIL = bytes.fromhex("2a864886f70d010901")
EXTENSION = extension(SUBJECT_ALT_NAME, tlv(SEQUENCE, tlv(0x82, b"a.test")))
WITH_MAIL = extension(SUBJECT_ALT_NAME, tlv(SEQUENCE, tlv(0x81, b"a@b") + tlv(0x82, b"a.test")))


def test_an_empty_subject_is_no_name() -> None:
    assert name_constraints.names_of(directory(), EXTENSION) == [(DNS, b"a.test")]
    assert name_constraints.names_of(directory(), b"") == []


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        (0x16, b"c@d"),
        (0x0C, b"c@d"),
        (0x1E, "c@d".encode("utf-16-be")),
        (0x1C, "c@d".encode("utf-32-be")),
        (0x04, b"c@d"),  # of no type of text: as it stands
    ],
)
def test_a_subjects_mail_address_counts_where_there_is_no_other(tag: int, text: bytes) -> None:
    subject = directory(attribute(b"One"), attribute(text, tag, EMAIL))
    own = (DIRECTORY, subject)
    assert name_constraints.names_of(subject, b"") == [(MAIL, b"c@d"), own]
    assert name_constraints.names_of(subject, EXTENSION) == [(DNS, b"a.test"), (MAIL, b"c@d"), own]
    assert name_constraints.names_of(subject, WITH_MAIL) == [(MAIL, b"a@b"), (DNS, b"a.test"), own]


def test_a_mail_address_in_another_alphabet_is_told_in_utf_8() -> None:
    subject = directory(attribute("\u00f8@d".encode("utf-16-be"), 0x1E, EMAIL))
    assert name_constraints.names_of(subject, b"")[0] == (MAIL, "\u00f8@d".encode())
    broken = directory(attribute(b"\xd8\x00", 0x1E, EMAIL))
    with pytest.raises(ValueError, match="utf-16-be"):
        name_constraints.names_of(broken, b"")
