"""Chains, each with one rule broken or just kept: what `engine.x509.paths` must answer for each.

The same cases are put to two readings that are not ours (`test_chains_against_others.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose

from engine.x509 import der
from tests.engine.x509.chain_maker import (
    DAY,
    NOW,
    Made,
    authority,
    edited,
    key,
    leaf,
    name,
    replacing,
    with_key_algorithm,
    with_serial,
)

OK = "ok"


@dataclass(frozen=True)
class Case:
    chain: tuple[bytes, ...]
    roots: tuple[Made, ...]
    now: int = NOW


Maker = Callable[[], Case]
CASES: dict[str, tuple[str, Maker]] = {}

UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4.5"), b"\x05\x00")


def case(title: str, expected: str = OK) -> Callable[[Maker], Maker]:
    def keep(make: Maker) -> Maker:
        assert title not in CASES
        CASES[title] = expected, make
        return make

    return keep


def built(title: str, expected: str, make: Maker) -> None:
    case(title, expected)(make)


def chain(*made: Made | bytes, roots: Sequence[Made], now: int = NOW) -> Case:
    ders = tuple(one if isinstance(one, bytes) else one.der for one in made)
    return Case(ders, tuple(roots), now)


def under_root(expected: str, title: str, **changes: object) -> None:
    """A leaf right under the root, with changes."""

    def make() -> Case:
        root = authority("root")
        return chain(leaf(root, **changes), roots=[root])  # type: ignore[arg-type]

    built(title, expected, make)


def bad_root(expected: str, title: str, **changes: object) -> None:
    """A right leaf under a root with changes."""

    def make() -> Case:
        root = authority("root", **changes)  # type: ignore[arg-type]
        return chain(leaf(root), roots=[root])

    built(title, expected, make)


def bad_intermediate(expected: str, title: str, **changes: object) -> None:
    """A right leaf under an intermediate with changes."""

    def make() -> Case:
        root = authority("root")
        middle = authority("middle", root, **changes)  # type: ignore[arg-type]
        return chain(leaf(middle), middle, roots=[root])

    built(title, expected, make)


# Right chains.
under_root(OK, "a leaf under a root")
bad_intermediate(OK, "a leaf under an intermediate")
for number in (2, 3, 4):

    def long(number: int = number) -> Case:
        root = authority("root")
        made = [root]
        for i in range(number):
            made.append(authority(f"middle {i}", made[-1]))
        return chain(leaf(made[-1]), *made[:0:-1], roots=[root])

    built(f"{number} intermediates", OK if number <= 3 else "x509-path-too-long", long)


@case("the root comes in the chain")
def _() -> Case:
    root = authority("root")
    middle = authority("middle", root)
    return chain(leaf(middle), middle, root, roots=[root])


@case("three intermediates and the root in the chain")
def _() -> Case:
    made = [authority("root")]
    for i in range(3):
        made.append(authority(f"middle {i}", made[-1]))
    return chain(leaf(made[-1]), *made[::-1], roots=made[:1])


@case("the intermediates come in the wrong order, with a stranger among them")
def _() -> Case:
    root = authority("root")
    one = authority("one", root)
    two = authority("two", one)
    return chain(leaf(two), one, authority("stranger"), two, roots=[root])


@case("the store has two roots")
def _() -> Case:
    one, two = authority("one"), authority("two")
    return chain(leaf(two), roots=[one, two])


@case("the store's root is an intermediate of another authority")
def _() -> Case:
    top = authority("top")
    root = authority("root", top)
    return chain(leaf(root), roots=[root])


@case("the root's key was changed and a self-issued intermediate bridges")
def _() -> Case:
    old = authority("root", own=key("old root"), path_length=0)
    new = authority("root", old, own=key("new root"), path_length=0)
    return chain(leaf(new), new, roots=[old])


@case("an expired root has a renewal of the same name and key")
def _() -> Case:
    old = authority("root", after=NOW - 1, before=NOW - 2 * DAY)
    new = authority("root")
    return chain(leaf(new), roots=[old, new])


@case("an intermediate was cross-signed and one of its certificates has expired")
def _() -> Case:
    root = authority("root")
    old = authority("middle", root, before=NOW - 2 * DAY, after=NOW - 1)
    new = authority("middle", root)
    return chain(leaf(new), old, new, roots=[root])


for kind in ("P-256", "P-384", "Ed25519", "RSA-2048", "RSA-4096"):
    under_root(
        OK,
        f"the leaf's key is {kind}",
        own=key("leaf", kind)
        if kind != "RSA-4096"
        else (rsa.RSAPublicNumbers(65537, (1 << 4095) | 1).public_key()),
    )
for kind in ("P-256", "P-384", "Ed25519", "RSA-2048"):
    bad_root(OK, f"the root's key is {kind}", own=key("root", kind))
for digest in (hashes.SHA256(), hashes.SHA384(), hashes.SHA512()):
    for kind in ("P-256", "P-384", "RSA-2048"):

        def by_digest(digest: hashes.HashAlgorithm = digest, kind: str = kind) -> Case:
            root = authority("root", own=key("root", kind))
            return chain(leaf(root, digest=digest), roots=[root])

        built(f"a {kind} key signs with {digest.name}", OK, by_digest)

    def by_pss(digest: hashes.HashAlgorithm = digest) -> Case:
        root = authority("root", own=key("root", "RSA-2048"))
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        return chain(leaf(root, digest=digest, pss=pss), roots=[root])

    built(f"RSASSA-PSS with {digest.name}", OK, by_pss)

# The leaf.
under_root(OK, "now is the leaf's last second", after=NOW)
under_root("x509-expired", "the leaf expired a second ago", after=NOW - 1)
under_root(OK, "now is the leaf's first second", before=NOW)
under_root("x509-not-yet-valid", "the leaf is valid in a second", before=NOW + 1)
under_root(OK, "the leaf has no key usage", uses=None)
under_root("x509-key-usage", "the leaf may only encipher keys", uses=("key_encipherment",))
under_root(OK, "the leaf has no extended key usage", purposes=None)
under_root(
    OK, "the leaf is for clients and servers", purposes=(Purpose.SERVER_AUTH, Purpose.CLIENT_AUTH)
)
under_root("x509-key-usage", "the leaf is for servers", purposes=(Purpose.SERVER_AUTH,))
under_root(
    "x509-key-usage",
    "the leaf is for any purpose",
    purposes=(Purpose.ANY_EXTENDED_KEY_USAGE,),
)
under_root(OK, "the leaf has no alternative name", san=None)
under_root(OK, "the leaf says that it is no authority", ca=False)
under_root(OK, "the leaf is an authority", ca=True, uses=("digital_signature", "key_cert_sign"))
under_root(OK, "the leaf has no key identifiers", key_id=None, issuer_key_id=None)
under_root(OK, "the leaf's issuer key identifier differs", issuer_key_id=b"other")
under_root(OK, "the leaf has an unknown extension", extra=[(UNKNOWN, False)])
under_root(
    "x509-critical-extension", "the leaf has an unknown critical extension", extra=[(UNKNOWN, True)]
)
under_root(
    "x509-critical-extension",
    "the leaf has critical policies",
    extra=[(x509.PolicyConstraints(0, None), True)],
)
under_root(OK, "the leaf's subject is empty", subject=name())
under_root(OK, "the leaf's subject is empty and so are its names", subject=name(), san=None)
under_root("x509-unsupported-algorithm", "the leaf's key is P-521", own=key("leaf", "P-521"))
under_root("x509-key-size", "the leaf's key is RSA of 1024 bits", own=key("leaf", "RSA-1024"))
for bits, expected in ((2047, "x509-key-size"), (4097, "x509-key-size")):
    modulus = rsa.RSAPublicNumbers(65537, (1 << (bits - 1)) | 1).public_key()
    under_root(expected, f"the leaf's key is RSA of {bits} bits", own=modulus)
for exponent in (2**64 + 1, 3):
    public = rsa.RSAPublicNumbers(exponent, key("leaf", "RSA-2048").public_key().public_numbers().n)
    under_root(
        OK if exponent == 3 else "x509-key-size",
        f"the leaf's RSA exponent is {exponent}",
        own=public.public_key(),
    )


@case("the leaf is signed with SHA-1", "x509-unsupported-algorithm")
def _() -> Case:
    root = authority("root")
    made = leaf(root)
    # ecdsa-with-SHA256 becomes ecdsa-with-SHA1 in both places.
    sha1 = bytes.fromhex("300906072a8648ce3d0401")
    sha256 = der.outline(made.der).algorithm
    return chain(
        edited(made, root, lambda tbs: tbs.replace(sha256, sha1), algorithm=sha1), roots=[root]
    )


def with_algorithm(title: str, expected: str, algorithm: str, own: str = "P-256") -> None:
    """A leaf whose AlgorithmIdentifier is this in both places; an RSA root signs it again."""

    def make() -> Case:
        root = authority("root", own=key("root", own))
        made = leaf(root)
        old, new = der.outline(made.der).algorithm, bytes.fromhex(algorithm)
        return chain(
            edited(made, root, lambda tbs: tbs.replace(old, new), algorithm=new), roots=[root]
        )

    built(title, expected, make)


with_algorithm(
    "the leaf's ECDSA signature has parameters",
    "x509-decode",
    "300c06082a8648ce3d0403020500",
)
with_algorithm(
    "the leaf's RSA signature has no parameters", OK, "300b06092a864886f70d01010b", "RSA-2048"
)


@case("the leaf is signed with SHA3-256", "x509-unsupported-algorithm")
def _() -> Case:
    root = authority("root")
    return chain(leaf(root, digest=hashes.SHA3_256()), roots=[root])


@case("the leaf is signed with RSASSA-PSS and a short salt", "x509-unsupported-algorithm")
def _() -> Case:
    root = authority("root", own=key("root", "RSA-2048"))
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 20)
    return chain(leaf(root, pss=pss), roots=[root])


@case("the leaf's key is bound to RSASSA-PSS", "x509-unsupported-algorithm")
def _() -> Case:
    root = authority("root")
    made = leaf(root, own=key("leaf", "RSA-2048"))
    pss = bytes.fromhex("300b06092a864886f70d01010a")
    return chain(edited(made, root, with_key_algorithm(made, pss)), roots=[root])


@case("a bit of the leaf's signature is flipped", "x509-bad-signature")
def _() -> Case:
    root = authority("root")
    data = bytearray(leaf(root).der)
    data[-1] ^= 1
    return chain(bytes(data), roots=[root])


@case("a byte of the leaf was changed after it was signed", "x509-bad-signature")
def _() -> Case:
    root = authority("root")
    return chain(leaf(root).der.replace(b"device.example", b"devicf.example"), roots=[root])


@case("another key of the same name signed the leaf", "x509-bad-signature")
def _() -> Case:
    root, twin = authority("root"), authority("root", own=key("twin"))
    return chain(leaf(twin), roots=[root])


@case("a key of another kind and the same name signed the leaf", "x509-bad-signature")
def _() -> Case:
    root, twin = authority("root"), authority("root", own=key("twin", "Ed25519"))
    return chain(leaf(twin), roots=[root])


@case("the store does not know the issuer", "x509-unknown-issuer")
def _() -> Case:
    return chain(leaf(authority("stranger")), roots=[authority("root")])


@case("a stranger's root comes in the chain", "x509-unknown-issuer")
def _() -> Case:
    stranger = authority("stranger")
    return chain(leaf(stranger), stranger, roots=[authority("root")])


@case("the intermediate is missing", "x509-unknown-issuer")
def _() -> Case:
    root = authority("root")
    return chain(leaf(authority("middle", root)), roots=[root])


@case("the leaf signed itself", "x509-unknown-issuer")
def _() -> Case:
    return chain(leaf(None), roots=[authority("root")])


@case("the leaf signed itself and is in the store", "x509-not-ca")
def _() -> Case:
    made = leaf(None)
    return chain(made, roots=[made])


@case("the leaf signed itself, is an authority and is in the store")
def _() -> Case:
    made = leaf(None, ca=True, uses=("digital_signature", "key_cert_sign"))
    return chain(made, roots=[made])


@case("a leaf issued another leaf", "x509-not-ca")
def _() -> Case:
    root = authority("root")
    bad = leaf(root, own=key("bad"))
    return chain(leaf(bad, "other"), bad, roots=[root])


@case("the chain is a loop of two authorities", "x509-unknown-issuer")
def _() -> Case:
    first = authority("a")
    b_by_a, a_by_b = authority("b", first), authority("a", authority("b"))
    return chain(leaf(first), a_by_b, b_by_a, roots=[authority("root")])


@case("a loop of two authorities has a way out to the root")
def _() -> Case:
    root = authority("root")
    first = authority("a", root)
    b_by_a, a_by_b = authority("b", first), authority("a", authority("b"))
    return chain(leaf(first), a_by_b, b_by_a, first, roots=[root])


# Serials.
for title, contents in (
    ("negative", b"\xff"),
    ("zero", b"\x00"),
    ("of 21 bytes", b"\x01" + bytes(20)),
    ("of 300 bytes", b"\x7f" + bytes(299)),
):

    def with_it(contents: bytes = contents) -> Case:
        root = authority("root")
        return chain(edited(leaf(root), root, with_serial(contents)), roots=[root])

    built(f"the leaf's serial is {title}", OK, with_it)

# Authorities.
for who, change in (("root", bad_root), ("intermediate", bad_intermediate)):
    change("x509-expired", f"the {who} expired a second ago", after=NOW - 1)
    change(OK, f"now is the {who}'s last second", after=NOW)
    change("x509-not-yet-valid", f"the {who} is valid in a second", before=NOW + 1)
    change(OK, f"now is the {who}'s first second", before=NOW)
    change("x509-not-ca", f"the {who} has no basic constraints", ca=None)
    change("x509-not-ca", f"the {who} says that it is no authority", ca=False)
    change(OK, f"the {who} has no key usage", uses=None)
    change("x509-key-usage", f"the {who} may not sign certificates", uses=("crl_sign",))
    change(OK, f"the {who} is for clients", purposes=(Purpose.CLIENT_AUTH,))
    change("x509-key-usage", f"the {who} is for servers", purposes=(Purpose.SERVER_AUTH,))
    change(
        "x509-key-usage",
        f"the {who} is for any purpose",
        purposes=(Purpose.ANY_EXTENDED_KEY_USAGE,),
    )
    change(
        "x509-critical-extension",
        f"the {who} has an unknown critical extension",
        extra=[(UNKNOWN, True)],
    )
    change(OK, f"the {who} has an unknown extension", extra=[(UNKNOWN, False)])
    change("x509-key-size", f"the {who}'s key is RSA of 1024 bits", own=key("weak", "RSA-1024"))
    change(OK, f"the {who} has no key identifier", key_id=None)
bad_intermediate(
    "x509-unsupported-algorithm", "the intermediate's key is P-521", own=key("weak", "P-521")
)
bad_intermediate(
    "x509-unsupported-algorithm", "the intermediate is signed with SHA3", digest=hashes.SHA3_256()
)


@case("the intermediate's signature is wrong", "x509-bad-signature")
def _() -> Case:
    root = authority("root")
    middle = authority("middle", root)
    data = bytearray(middle.der)
    data[-1] ^= 1
    return chain(leaf(middle), bytes(data), roots=[root])


bad_root(OK, "the root's own signature is with SHA3", digest=hashes.SHA3_256())
for who, change in (("leaf", under_root), ("intermediate", bad_intermediate)):
    change(
        "x509-critical-extension",
        f"the {who}'s key identifier is critical",
        key_id=None,
        extra=[(x509.SubjectKeyIdentifier(b"12345678"), True)],
    )
    change(
        "x509-critical-extension",
        f"the {who}'s issuer key identifier is critical",
        issuer_key_id=None,
        extra=[(x509.AuthorityKeyIdentifier(b"12345678", None, None), True)],
    )


@case("the root's own signature is wrong")
def _() -> Case:
    root = authority("root")
    data = bytearray(root.der)
    data[-1] ^= 1
    broken = Made(x509.load_der_x509_certificate(bytes(data)), root.key)
    return chain(leaf(root), roots=[broken])


# Path lengths.
for limit, number, expected in (
    (0, 0, OK),
    (0, 1, "x509-path-too-long"),
    (1, 1, OK),
    (1, 2, "x509-path-too-long"),
    (2, 3, "x509-path-too-long"),
    (3, 3, OK),
):

    def limited(limit: int = limit, number: int = number) -> Case:
        made = [authority("root", path_length=limit)]
        for i in range(number):
            made.append(authority(f"middle {i}", made[-1]))
        return chain(leaf(made[-1]), *made[:0:-1], roots=made[:1])

    built(f"{number} intermediates where the root allows {limit}", expected, limited)


@case("an intermediate allows no other and has one", "x509-path-too-long")
def _() -> Case:
    root = authority("root")
    one = authority("one", root, path_length=0)
    two = authority("two", one)
    return chain(leaf(two), two, one, roots=[root])


# What does not parse.
for title, bad in (
    ("nothing", b""),
    ("text", b"certificate"),
    ("an empty sequence", b"\x30\x00"),
):

    def garbage(bad: bytes = bad) -> Case:
        root = authority("root")
        return chain(leaf(root), bad, roots=[root])

    built(f"a certificate of the chain is {title}", "x509-decode", garbage)


@case("a byte follows the leaf", "x509-decode")
def _() -> Case:
    root = authority("root")
    return chain(leaf(root).der + b"\0", roots=[root])


for title, value in (
    ("of an unknown type", b"\x55\x04text"),
    ("in broken UTF-8", b"\x0c\x04te\xfft"),
):

    def bad_subject(value: bytes = value) -> Case:
        root = authority("root")
        made = leaf(root, name("text"))
        return chain(edited(made, root, replacing(b"\x0c\x04text", value)), roots=[root])

    built(f"the leaf's subject is a text {title}", "x509-decode", bad_subject)


@case("an intermediate's subject is a text of an unknown type", "x509-decode")
def _() -> Case:
    root = authority("root")
    middle = authority("text", root)
    data = edited(middle, root, replacing(b"\x0c\x04text", b"\x55\x04text"))
    own = edited(leaf(middle), middle, replacing(b"\x0c\x04text", b"\x55\x04text"))
    return chain(own, data, roots=[root])


@case("the leaf has an extension twice", "x509-decode")
def _() -> Case:
    root = authority("root")
    other = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4.6"), b"\x05\x00")
    made = leaf(root, extra=[(UNKNOWN, False), (other, False)])
    change = replacing(b"\x06\x04\x2a\x03\x04\x06", b"\x06\x04\x2a\x03\x04\x05")
    return chain(edited(made, root, change), roots=[root])


@case("the leaf has a known extension twice", "x509-decode")
def _() -> Case:
    root = authority("root")
    other = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.99"), b"\x04\x02ab")
    made = leaf(root, extra=[(other, False)])
    change = replacing(b"\x06\x03\x55\x1d\x63", b"\x06\x03\x55\x1d\x0e")
    return chain(edited(made, root, change), roots=[root])


@case("the leaf's key usage does not parse", "x509-decode")
def _() -> Case:
    root = authority("root")
    made = leaf(root)
    change = replacing(b"\x04\x04\x03\x02\x07\x80", b"\x04\x04\x04\x02\x07\x80")
    return chain(edited(made, root, change), roots=[root])


@case("the leaf's key is no point of its curve", "x509-decode")
def _() -> Case:
    root = authority("root")
    made = leaf(root)
    point = made.cert.public_key().public_numbers()
    x = point.x.to_bytes(32, "big")
    change = replacing(x, b"\xff" * 32)
    return chain(edited(made, root, change), roots=[root])


@case("the two copies of the leaf's algorithm differ", "x509-decode")
def _() -> Case:
    root = authority("root")
    made = leaf(root)
    change = replacing(bytes.fromhex("2a8648ce3d040302"), bytes.fromhex("2a8648ce3d040303"))
    return chain(edited(made, root, change), roots=[root])
