"""Chains whose authorities constrain names: more cases for `chain_cases.CASES`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence

from cryptography import x509

from tests.engine.x509.chain_cases import OK, Case, built, case, chain
from tests.engine.x509.chain_maker import authority, edited, key, leaf, name, replacing

DNS = x509.DNSName
MAIL = x509.RFC822Name
URI = x509.UniformResourceIdentifier
DIR = x509.DirectoryName


def NET(text: str) -> x509.IPAddress:
    return x509.IPAddress(ipaddress.ip_network(text))


def ADDRESS(text: str) -> x509.IPAddress:
    return x509.IPAddress(ipaddress.ip_address(text))


OTHER = x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3"), b"\x0c\x01x")


# Name constraints: (form, constraint kind, base, name, allowed).
def constrained(
    title: str,
    expected: str,
    names: Sequence[x509.GeneralName] | None,
    subject: x509.Name | str = "device",
    **limits: Sequence[x509.GeneralName],
) -> None:
    def make() -> Case:
        root = authority("root", **limits)  # type: ignore[arg-type]
        return chain(leaf(root, subject, san=names), roots=[root])

    built(title, expected, make)


BAD = "x509-name-constraint"
for form, base, inside, outside in (
    ("DNS", DNS("example"), DNS("device.example"), DNS("device.test")),
    ("DNS", DNS("Example"), DNS("DEVICE.eXample"), DNS("device.xample")),
    ("DNS", DNS("a.example"), DNS("a.example"), DNS("xa.example")),
    ("DNS", DNS("b.example"), DNS("*.b.example"), DNS("b.example.test")),
    ("DNS", DNS(".c.example"), DNS("x.c.example"), DNS("d.example")),
    ("address", NET("192.0.2.0/24"), ADDRESS("192.0.2.255"), ADDRESS("192.0.3.0")),
    ("address", NET("2001:db8::/33"), ADDRESS("2001:db8::1"), ADDRESS("2001:db8:8000::1")),
    ("mail", MAIL("a@example.com"), MAIL("a@EXAMPLE.com"), MAIL("b@example.com")),
    ("mail", MAIL("example.com"), MAIL("any@example.com"), MAIL("any@sub.example.com")),
    ("mail", MAIL(".example.com"), MAIL("any@sub.example.com"), MAIL("any@example.com")),
    ("URI", URI("h.example"), URI("mqtt://h.example:1/x?y#z"), URI("mqtt://x.h.example/")),
    ("URI", URI(".h.example"), URI("https://u@x.h.example"), URI("https://h.example/")),
    ("name", DIR(name(o="One")), DIR(name("x", o="One")), DIR(name("x", o="Two"))),
):
    text = f"{form} {base.value}".replace("<Name(", "").replace(")>", "")
    own = name("device", o="One") if form == "name" else "device"
    constrained(f"{inside.value} is permitted by {text}", OK, [inside], own, permitted=[base])
    constrained(
        f"{outside.value} is not permitted by {text}", BAD, [outside], own, permitted=[base]
    )
    if form == "name":
        own = "device"
    constrained(f"{inside.value} is excluded by {text}", BAD, [inside], own, excluded=[base])
    constrained(f"{outside.value} is not excluded by {text}", OK, [outside], own, excluded=[base])

constrained(
    "one of two names is outside", BAD, [DNS("a.one"), DNS("a.two")], permitted=[DNS("one")]
)
constrained(
    "each of two names fits a base of its own",
    OK,
    [DNS("a.one"), DNS("a.two")],
    permitted=[DNS("one"), DNS("two")],
)
constrained(
    "a name is permitted and excluded",
    BAD,
    [DNS("a.b.one")],
    permitted=[DNS("one")],
    excluded=[DNS("b.one")],
)
constrained(
    "names of another form are not constrained", OK, [MAIL("a@b.c")], permitted=[DNS("one")]
)
constrained(
    "an address of the other family is not permitted",
    BAD,
    [ADDRESS("192.0.2.1")],
    permitted=[NET("2001:db8::/32")],
)
constrained(
    "an address of the other family is not excluded",
    OK,
    [ADDRESS("192.0.2.1")],
    excluded=[NET("::/0")],
)
constrained("every DNS name is excluded", BAD, [DNS("a.example")], excluded=[DNS("")])
constrained(
    "a wildcard covers an excluded host", BAD, [DNS("*.example")], excluded=[DNS("a.example")]
)
constrained(
    "a wildcard does not reach two labels down",
    OK,
    [DNS("*.example")],
    excluded=[DNS("a.b.example")],
)
constrained(
    "a DNS name that is none is constrained", BAD, [DNS("a..example")], permitted=[DNS("example")]
)
constrained(
    "a DNS name with a dot at its end is constrained",
    BAD,
    [DNS("a.example.")],
    excluded=[DNS("other.test")],
)
constrained("a URI without a host is constrained", BAD, [URI("urn:x:y")], excluded=[URI("a.b")])
constrained(
    "a URI whose host is an address is constrained",
    BAD,
    [URI("http://192.0.2.1/")],
    excluded=[URI("a.b")],
)
for form, empty, present in (
    ("mail", MAIL._init_without_validation(""), MAIL("a@b.example")),
    ("URI", URI(""), URI("https://b.example/")),
):
    constrained(f"an empty {form} base permits nothing", BAD, [present], permitted=[empty])
    constrained(f"an empty {form} base excludes everything", BAD, [present], excluded=[empty])
constrained("an empty DNS base permits everything", OK, [DNS("a.example")], permitted=[DNS("")])
constrained("a mail address without a host is constrained", BAD, [MAIL("a")], excluded=[MAIL("b")])
constrained(
    "a mail address's local part is compared as it stands",
    BAD,
    [MAIL("A@b.example")],
    permitted=[MAIL("a@b.example")],
)
# A base that is no name of its form: nothing is inside it, and nothing outside.
NO_BASES: tuple[tuple[str, tuple[str, ...], Callable[[str], x509.GeneralName], str, str], ...] = (
    (
        "DNS",
        ("bar.test.", "..bar.test", ".bar.test.", " bar.test", "bar.test ", "bar..test", ".",
         "192.0.2.1", "bar.test:443"),
        DNS,
        "bar.test",
        "test",
    ),
    (
        "mail",
        ("@bar.test", "bar.test.", "a@bar.test.", "a@.bar.test", "a@b@bar.test", "a b@bar.test"),
        MAIL._init_without_validation,
        "a@bar.test",
        "bar.test",
    ),
    (
        "URI",
        ("https://bar.test/", "//bar.test", "bar.test.", "bar.test:443", "bar.test/", "u@bar.test"),
        URI,
        "https://bar.test/",
        "bar.test",
    ),
)  # fmt: skip
for form, bases, kind, inside_it, right in NO_BASES:
    for text in bases:
        wrong, own_name = kind(text), [kind(inside_it)]
        told = f"the {form} base {text!r}"
        constrained(f"{told} excludes everything", BAD, own_name, excluded=[wrong])
        constrained(f"{told} permits nothing", BAD, own_name, permitted=[wrong])
        both = [wrong, kind(right)]
        constrained(f"{told} takes nothing from another", OK, own_name, permitted=both)

# A name that is none is refused where its form is constrained.
for local in ("a@b", "a b", '"a b"', "a\0b", "\u00f8", ".a", "a..b", '"a"'):
    own_name = [MAIL._init_without_validation(f"{local}@bar.test")]
    told = f"the mail name {local + '@bar.test'!r}"
    constrained(f"{told} is outside nothing", BAD, own_name, excluded=[MAIL("other.test")])
    constrained(f"{told} is inside nothing", BAD, own_name, permitted=[MAIL("bar.test")])
    constrained(f"{told} is left alone", OK, own_name, excluded=[DNS("other.test")])
for text in ("https://u@v@bar.test", "https://b.test\\@x.test/", "https://[::1]/", "https:b.test"):
    constrained(
        f"the URI {text!r} is outside nothing", BAD, [URI(text)], excluded=[URI("other.test")]
    )
constrained(
    "an IPv4 address in the shape of an IPv6 one is outside nothing",
    BAD,
    [ADDRESS("::ffff:192.0.2.1")],
    excluded=[NET("2001:db8::/32")],
)
constrained(
    "the subject is excluded in other letters that are not ASCII",
    BAD,
    None,
    name("device", o="\u00c9t\u00e9"),
    excluded=[DIR(name(o="\u00e9T\u00c9"))],
)
constrained(
    "the subject is excluded and has a character without a form",
    BAD,
    None,
    name("device", o="O\u200bne"),
    excluded=[DIR(name(o="One"))],
)

constrained(
    "the subject is permitted", OK, None, name("device", o="One"), permitted=[DIR(name(o="One"))]
)
constrained(
    "the subject is not permitted",
    BAD,
    None,
    name("device", o="Two"),
    permitted=[DIR(name(o="One"))],
)
constrained(
    "the subject is excluded", BAD, None, name("device", o="One"), excluded=[DIR(name(o="One"))]
)
constrained(
    "the subject is excluded in other letters",
    BAD,
    None,
    name("device", o="ONE  two"),
    excluded=[DIR(name(o="one Two"))],
)
constrained(
    "an empty subject is not constrained",
    OK,
    [DNS("a.example")],
    name(),
    permitted=[DIR(name(o="One"))],
)
constrained("every subject is excluded", BAD, None, name("device"), excluded=[DIR(name())])
constrained(
    "the subject's mail address is outside",
    BAD,
    None,
    name("device", mail="a@two.test"),
    permitted=[MAIL("one.test")],
)
constrained(
    "the subject's mail address is inside",
    OK,
    None,
    name("device", mail="a@one.test"),
    permitted=[MAIL("one.test")],
)
constrained(
    "the subject's mail address does not count beside an rfc822Name",
    OK,
    [MAIL("a@one.test")],
    name("device", mail="a@two.test"),
    permitted=[MAIL("one.test")],
)
constrained(
    "a form that is not processed is constrained and present", BAD, [OTHER], excluded=[OTHER]
)
constrained(
    "a form that is not processed is constrained and absent",
    OK,
    [DNS("a.example")],
    permitted=[OTHER],
)
constrained(
    "a form that is not processed is present and not constrained",
    OK,
    [OTHER],
    permitted=[DNS("example")],
)


@case("an intermediate constrains what is under it", BAD)
def _() -> Case:
    root = authority("root")
    middle = authority("middle", root, permitted=[DNS("one.test")])
    return chain(leaf(middle), middle, roots=[root])


@case("the root constrains an intermediate's own names", BAD)
def _() -> Case:
    root = authority("root", excluded=[DNS("bad.test")])
    middle = authority("middle", root, san=[DNS("bad.test")])
    return chain(leaf(middle), middle, roots=[root])


@case("constraints do not bind the authority that has them")
def _() -> Case:
    root = authority("root")
    middle = authority("middle", root, san=[DNS("bad.test")], excluded=[DNS("bad.test")])
    return chain(leaf(middle), middle, roots=[root])


@case("a self-issued intermediate is not bound by constraints")
def _() -> Case:
    old = authority("root", own=key("old root"), excluded=[DNS("bad.test")])
    new = authority("root", old, own=key("new root"), san=[DNS("bad.test")])
    return chain(leaf(new), new, roots=[old])


@case("a leaf's own constraints bind nobody")
def _() -> Case:
    root = authority("root")
    limits = x509.NameConstraints(None, [DNS("device.example")])
    return chain(leaf(root, extra=[(limits, True)]), roots=[root])


@case("a second path has no constraint in its way")
def _() -> Case:
    root = authority("root")
    tight = authority("middle", root, permitted=[DNS("one.test")])
    return chain(leaf(tight), tight, authority("middle", root), roots=[root])


@case("a constraint has a minimum and the leaf has such a name", BAD)
def _() -> Case:
    root = authority("root")
    middle = authority("middle", root, permitted=[DNS("exampleXYZ")])
    # The subtree's base loses three letters to a minimum of 1.
    data = edited(middle, root, replacing(b"\x82\x0aexampleXYZ", b"\x82\x07example\x80\x01\x01"))
    return chain(leaf(middle), data, roots=[root])
