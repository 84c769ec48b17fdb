"""The handmade inputs of the clientauth harness: chains and proofs, right and each rule broken.

Leaves go in signed by the lying client's authorities, or anew by the harness (LEAF). Outcomes are
written by hand.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.x509.oid import ObjectIdentifier

from engine import codepoints as c
from peers.liar.client import Client
from peers.liar.identities import Identity, authority, issue, make
from peers.liar.wire import vec16, vec24

from .. import fixtures
from ..build_identity import CLIENT_ROOT, MIDDLE, client
from ..formats.clientauth import HONEST, KINDS, LEAF, OPTIONAL, UNDER_MIDDLE, encode
from .case import Case

NOW = datetime.datetime.fromtimestamp(fixtures.NOW_MS // 1000, datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
PROVEN = "established"
DECODE = "tls-decode-error"
GOOD = client("p256")


def body(*chain: bytes, extensions: Sequence[bytes] = (), context: bytes = b"") -> bytes:
    """A Certificate's body."""
    return Client().certificate_message(chain, extensions=extensions, context=context)[4:]


def leaf(label: str, **fields: object) -> Identity:
    """A leaf under the harness's root with the key of the honest client."""
    fields = {"issuer": CLIENT_ROOT, "usage": "client", "key": GOOD.key} | fields
    return issue(label, **fields)  # type: ignore[arg-type]


def constrained(
    permitted: Sequence[x509.GeneralName] | None, excluded: Sequence[x509.GeneralName] | None = None
) -> Identity:
    """An intermediate that may issue for these names alone, or for all but those."""
    names = x509.NameConstraints(permitted, excluded)
    return issue("harness narrow", issuer=CLIENT_ROOT, ca=True, more=[(names, True)])


def honest() -> dict[str, Case]:
    """What is accepted."""
    found = {}
    for kind in KINDS:
        whole = body(client(kind).der)
        found[kind] = Case(encode(whole, kind=kind), PROVEN, f"a key of kind {kind}")
    below = leaf("below", issuer=MIDDLE)
    plain = leaf("plain", usage=None, key_usage=None, ca=None, key_ids=False)
    many = leaf(
        "many names",
        names=["a.example", "b.example"],
        sans=[
            x509.RFC822Name("a@b.example"),
            x509.IPAddress(ipaddress.ip_address("192.0.2.1")),
            x509.UniformResourceIdentifier("https://a.example/"),
        ],
    )
    last = leaf("last second", not_after=NOW)
    first = leaf("first second", not_before=NOW)
    narrow = constrained([x509.DNSName("example")])
    inside = leaf("inside", issuer=narrow, names=["a.example"])
    root = leaf("with root")
    table = (
        ("chain", body(below.der, MIDDLE.der), "an intermediate"),
        ("chain-root", body(root.der, CLIENT_ROOT.der), "its root is sent"),
        ("plain", body(plain.der), "no extensions restrict nothing"),
        ("names", body(many.der), "names of every form"),
        ("last-second", body(last.der), "the last second of its validity"),
        ("first-second", body(first.der), "the first second"),
        ("constraint-permits", body(inside.der, narrow.der), "a name that is permitted"),
    )
    found |= {name: Case(encode(whole), PROVEN, what) for name, whole, what in table}
    signed = encode(GOOD.der, settings=LEAF | HONEST)
    found["signed-anew"] = Case(signed, PROVEN, "an authority signs what the input says")
    under = encode(below.der, settings=LEAF | HONEST | UNDER_MIDDLE)
    found["signed-anew-middle"] = Case(under, PROVEN, "an intermediate does")
    none = encode(bytes(4), settings=OPTIONAL)
    found["none"] = Case(none, "waiting", "none where it is optional")
    return found


def chains() -> dict[str, Case]:
    """Chains that are refused."""
    stranger = make([], issuer=authority("harness stranger"), usage="client", label="stranger")
    below = leaf("below", issuer=MIDDLE)
    flipped = GOOD.der[:-1] + bytes([GOOD.der[-1] ^ 1])
    deep = authority("harness deep", issuer=MIDDLE)
    narrow = constrained([x509.DNSName("example")])
    no_ca = leaf("no authority", ca=False, key_usage="sign", key=None)
    critical = x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\0")
    table = (
        ("required", bytes(4), "tls-server-client-cert-required", "none where it is required"),
        ("stranger", body(stranger.der), "x509-unknown-issuer", "an unknown root"),
        ("middle-missing", body(below.der), "x509-unknown-issuer", "no intermediate"),
        ("flipped", body(flipped), "x509-bad-signature", "a bit of the signature"),
        ("expired", body(leaf("e", not_after=NOW - SECOND).der), "x509-expired", "a second ago"),
        (
            "not-yet",
            body(leaf("n", not_before=NOW + SECOND).der),
            "x509-not-yet-valid",
            "in a second",
        ),
        ("usage", body(leaf("u", usage="server").der), "x509-key-usage", "a server's"),
        ("usage-any", body(leaf("a", usage="any").der), "x509-key-usage", "any usage alone"),
        ("key-usage", body(leaf("k", key_usage="sign").der), "x509-key-usage", "no signing"),
        ("p521", body(client("p521").der), "x509-unsupported-algorithm", "P-521"),
        ("ed448", body(client("ed448").der), "x509-unsupported-algorithm", "Ed448"),
        ("rsa1024", body(client("rsa1024").der), "x509-key-size", "RSA of 1,024 bits"),
        (
            "critical",
            body(leaf("c", more=[(critical, True)]).der),
            "x509-critical-extension",
            "an extension nobody knows",
        ),
        ("not-ca", body(leaf("x", issuer=no_ca).der, no_ca.der), "x509-not-ca", "no authority"),
        (
            "path",
            body(leaf("p", issuer=deep).der, deep.der, MIDDLE.der),
            "x509-path-too-long",
            "more below it than it allows",
        ),
        (
            "constraint",
            body(leaf("o", issuer=narrow, names=["a.test"]).der, narrow.der),
            "x509-name-constraint",
            "a name that is not permitted",
        ),
        ("six", body(*[GOOD.der] * 6), "x509-chain-too-large", "six certificates"),
        ("garbage", body(b"\x30\3\1\1\1"), "x509-decode", "no certificate"),
        ("cut-der", body(GOOD.der[:-1]), "x509-decode", "a byte missing in the certificate"),
    )
    return {name: Case(encode(whole), outcome, what) for name, whole, outcome, what in table}


def names() -> dict[str, Case]:
    """Names and constraints that cannot be read: nothing is permitted, everything is excluded."""
    mail, uri = x509.RFC822Name._init_without_validation, x509.UniformResourceIdentifier
    network = x509.IPAddress(ipaddress.ip_network("192.0.2.0/24"))
    mapped = x509.IPAddress(ipaddress.ip_address("::ffff:192.0.2.1"))
    other = x509.DNSName("a.test")
    registered = x509.RegisteredID(ObjectIdentifier("1.2.3"))
    table: tuple[tuple[str, x509.GeneralName, x509.GeneralName, str], ...] = (
        ("base-dns", x509.DNSName("b.test."), other, "an excluded base with a dot at its end"),
        ("base-mail", mail("@b.test"), mail("a@a.test"), "an excluded base of no local part"),
        ("base-uri", uri("https://b.test/"), uri("https://a.test/"), "an excluded base of no host"),
        ("base-form", registered, registered, "an excluded base of a form nobody processes"),
        ("mail-hosts", mail("b.test"), mail("a@b.test@c.test"), "a mail name of two hosts"),
        ("mail-nul", mail("b.test"), mail("a\0@a.test"), "a mail name with a NUL"),
        ("uri-hosts", uri("b.test"), uri("https://a@b.test@a.test/"), "a URI of two hosts"),
        ("mapped", network, mapped, "an IPv4 address in the shape of an IPv6 one"),
    )
    found = {}
    for title, base, name, what in table:
        hole = constrained(None, [base])
        own = leaf(f"odd {title}", issuer=hole, sans=[name])
        whole = encode(body(own.der, hole.der))
        found[f"constraint-{title}"] = Case(whole, "x509-name-constraint", what)
    return found


def shapes() -> dict[str, Case]:
    """Certificate messages that do not parse, or hold what they may not."""
    entry = vec24(GOOD.der) + vec16(b"")
    table = (
        ("empty", b"", DECODE, "nothing"),
        ("context", body(GOOD.der, context=b"x"), "tls-server-illegal-parameter", "a context"),
        ("list-short", b"\0" + vec24(entry)[:-1], DECODE, "a byte missing"),
        ("list-long", b"\0" + vec24(entry) + b"\0", DECODE, "a byte more"),
        ("entry-empty", b"\0" + vec24(vec24(b"") + vec16(b"")), DECODE, "no certificate in it"),
        ("entry-cut", b"\0" + vec24(entry[:-1]), DECODE, "no extensions in an entry"),
        (
            "extension",
            body(GOOD.der, extensions=[b"\0\5\0\0"]),
            "tls-unsupported-extension",
            "nobody asked for it",
        ),
        ("extension-cut", body(GOOD.der, extensions=[b"\0\5\0"]), DECODE, "half an extension"),
    )
    return {name: Case(encode(whole), outcome, what) for name, whole, outcome, what in table}


def proofs() -> dict[str, Case]:
    """CertificateVerify messages that are refused."""
    whole = body(GOOD.der)
    wrong = "tls-bad-certificate-verify"
    p256 = c.ECDSA_SECP256R1_SHA256.to_bytes(2)
    table = (
        ("verify-empty", b"", DECODE, "nothing"),
        ("verify-cut", p256 + b"\0\5abcd", DECODE, "a byte missing"),
        ("verify-long", p256 + b"\0\1ab", DECODE, "a byte more"),
        ("verify-wrong", p256 + vec16(bytes(70)), wrong, "no signature"),
        ("verify-none", p256 + vec16(b""), wrong, "a signature of no bytes"),
        ("verify-scheme", b"\2\3" + vec16(bytes(70)), "tls-server-client-sigalg", "SHA-1"),
        ("verify-pkcs1", b"\4\1" + vec16(bytes(70)), "tls-server-client-sigalg", "PKCS #1"),
        ("verify-curve", b"\5\3" + vec16(bytes(70)), "tls-server-client-sigalg", "another curve"),
        ("verify-pss", b"\x08\4" + vec16(bytes(256)), "tls-server-client-sigalg", "RSA's scheme"),
    )
    found = {
        name: Case(encode(whole, verify, 0), outcome, what) for name, verify, outcome, what in table
    }
    other = encode(whole, kind="ed25519")
    found["verify-other"] = Case(other, "tls-server-client-sigalg", "another kind of key's")
    return found


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    groups = (honest(), chains(), names(), shapes(), proofs())
    found = {f"handmade-{name}": case for group in groups for name, case in group.items()}
    assert len(found) == sum(map(len, groups)), "two cases have one name"
    return found
