"""What one certificate says, and what is asked of it before it may play a part in a path."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15

from engine.refusals import Refusal
from engine.x509 import certificates, der, extensions
from engine.x509.certificates import ED25519, P256, RSA, Certificate
from engine.x509.der import BIT_STRING, INTEGER, SEQUENCE
from tests.engine.x509.chain_maker import (
    Made,
    authority,
    edited,
    key,
    leaf,
    name,
    tlv,
    with_serial,
)

# -- the signatures that are accepted --------------------------------------------------------

# RFC 5758 §3.2, RFC 8410 §3, RFC 8017 §A.2 (for RSA each hash's last byte).
EXPECTED: dict[str, tuple[str, str]] = {
    "3005 06032b6570": (ED25519, ""),
    "300a 06082a8648ce3d040302": (P256, "ECDSA sha256"),
    "300a 06082a8648ce3d040303": (P256, "ECDSA sha384"),
    "300a 06082a8648ce3d040304": (P256, "ECDSA sha512"),
    "300b 06092a864886f70d01010b": (RSA, "PKCS1v15 sha256"),
    "300d 06092a864886f70d01010b 0500": (RSA, "PKCS1v15 sha256"),
    "300b 06092a864886f70d01010c": (RSA, "PKCS1v15 sha384"),
    "300d 06092a864886f70d01010c 0500": (RSA, "PKCS1v15 sha384"),
    "300b 06092a864886f70d01010d": (RSA, "PKCS1v15 sha512"),
    "300d 06092a864886f70d01010d 0500": (RSA, "PKCS1v15 sha512"),
}
for number, (digest, size) in enumerate(
    (("sha256", "20"), ("sha384", "30"), ("sha512", "40")), start=1
):
    oid = f"0609608648016503040 20{number}".replace(" ", "")
    for own, inner, outer, whole, mgf, one, two in (
        ("", "300b", "a00d", "303d", "3030", "a11a 3018", "300b"),
        ("0500", "300d", "a00f", "303f", "3032", "a11a 3018", "300b"),
        ("", "300b", "a00d", "303f", "3032", "a11c 301a", "300d"),
        ("0500", "300d", "a00f", "3041", "3034", "a11c 301a", "300d"),
    ):
        theirs = "0500" if two == "300d" else ""
        EXPECTED[
            f"{whole} 06092a864886f70d01010a {mgf} {outer}{inner}{oid}{own}"
            f" {one} 06092a864886f70d010108 {two}{oid}{theirs} a203 0201{size}"
        ] = (RSA, f"PSS {digest} {int(size, 16)} {digest}")


def described(how: tuple[Any, ...]) -> str:
    words: list[object] = []
    for part in how:
        if isinstance(part, ECDSA):
            words += ["ECDSA", part.algorithm.name]
        elif isinstance(part, PSS):
            assert isinstance(part.mgf, MGF1)
            words += ["PSS", part.mgf._algorithm.name, part._salt_length]
        elif isinstance(part, PKCS1v15):
            words.append("PKCS1v15")
        else:
            words.append(part.name)
    return " ".join(map(str, words))


def test_the_signatures_that_are_accepted_byte_for_byte() -> None:
    assert len(EXPECTED) == 22
    expected = {bytes.fromhex(text): told for text, told in EXPECTED.items()}
    for table in (certificates.SIGNATURES, certificates._signatures()):
        assert {one: (family, described(how)) for one, (family, how) in table.items()} == expected


# -- one certificate -------------------------------------------------------------------------


def read(data: bytes) -> Certificate:
    made = certificates.read(data)
    assert made is not None
    return made


def test_before_it_is_studied_a_certificate_is_of_no_key_and_no_use() -> None:
    made = read(leaf(authority("root")).der)
    assert made.studied is False
    assert made.fault is None and made.key is None and made.constraints is None
    assert made.kind == ""
    assert made.extensions == extensions.Extensions()


def test_a_certificate_is_studied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = []
    real = Certificate._key

    def counted(self: Certificate, anchor: bool) -> Refusal | None:
        times.append(anchor)
        return real(self, anchor)

    monkeypatch.setattr(Certificate, "_key", counted)
    good = read(leaf(authority("root")).der)
    bad = read(leaf(authority("root"), own=key("leaf", "P-521")).der)
    for _ in range(2):
        assert good.study() is None
        assert bad.study() is Refusal.X509_UNSUPPORTED_ALGORITHM
    assert times == [False, False]
    assert good.studied is True
    assert good.kind == P256


def test_a_signature_is_its_issuers_or_it_is_none() -> None:
    root, other = authority("root"), authority("root", own=key("other"))
    own = read(leaf(root).der)
    for issuer, answer in ((root, True), (other, False)):
        by = read(issuer.der)
        assert by.study(anchor=True) is None
        assert own.signed_by(by) is answer


# -- what costs less -------------------------------------------------------------------------


def test_what_is_common_is_read_without_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subject of one text each, the usual extensions, and nothing that a warning is for."""
    whole = leaf(authority("root")).der
    monkeypatch.setattr(warnings, "catch_warnings", None)
    monkeypatch.setattr(extensions, "read", None)
    made = read(whole)
    parsed, made.parsed = made.parsed, None  # type: ignore[assignment]
    made._read_subject()
    made.parsed = parsed
    assert made.study() is None
    assert made.extensions.signs_data and made.extensions.client_purpose


ROOT = authority("root")


@pytest.mark.parametrize("serial", [b"\x00", b"\x80", b"\xff\x7f"])
def test_what_the_parser_may_warn_of_is_read_in_silence(serial: bytes) -> None:
    whole = edited(leaf(ROOT), ROOT, with_serial(serial))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certificates.read(whole) is not None


# -- the key ---------------------------------------------------------------------------------

RSA_KEY = bytes.fromhex("300d06092a864886f70d0101010500")


def integer(value: int) -> bytes:
    return tlv(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def of_rsa(modulus: int, exponent: int) -> bytes:
    """A leaf that certifies this key, whether or not anybody could have it."""
    made: Made = leaf(ROOT)
    key_info = der.outline(made.der).key_info
    numbers = tlv(SEQUENCE, integer(modulus) + integer(exponent))
    new = tlv(SEQUENCE, RSA_KEY + tlv(BIT_STRING, b"\x00" + numbers))
    return edited(made, ROOT, lambda tbs: tbs.replace(key_info, new))


@pytest.mark.parametrize(
    ("bits", "good"), [(1024, False), (2047, False), (2048, True), (4096, True), (4097, False)]
)
def test_the_size_of_an_rsa_key(bits: int, good: bool) -> None:
    made = read(of_rsa((1 << bits) - 1, 65537))
    assert made.study() is (None if good else Refusal.X509_KEY_SIZE)
    assert made.kind == (RSA if good else "")


@pytest.mark.parametrize(
    ("exponent", "good"),
    [
        (3, True),
        (5, True),
        (65537, True),
        ((1 << 64) - 1, True),
        ((1 << 64) + 1, False),
    ],
)
def test_an_exponent_is_of_at_most_64_bits(exponent: int, good: bool) -> None:
    made = read(of_rsa((1 << 2048) - 1, exponent))
    assert made.study() is (None if good else Refusal.X509_KEY_SIZE)


@pytest.mark.parametrize("exponent", [1, 2, 4, 65538])
def test_an_exponent_of_no_use_is_refused(exponent: int) -> None:
    """By the parser or by us: with 1 anybody could sign, and an even one has no private key."""
    made = read(of_rsa((1 << 2048) - 1, exponent))
    assert made.study() in (Refusal.X509_KEY_SIZE, Refusal.X509_DECODE)
    assert made.key is None


# -- names -----------------------------------------------------------------------------------


def test_the_names_are_those_of_the_subject_and_its_alternatives() -> None:
    made = read(leaf(ROOT, name("device", mail="a@b.c")).der)
    assert made.study() is None
    assert [form for form, _ in made.names()] == [2, 1, 4]


def test_constraints_are_read_with_the_extensions() -> None:
    made = read(authority("middle", ROOT, permitted=[x509.DNSName("example")]).der)
    assert made.study() is None
    assert made.constraints is not None
    assert made.constraints.permitted == {2: [b"example"]}
