"""Identities: what is accepted, each refusal and their order, and which one a name gets."""

from __future__ import annotations

import base64
import datetime
import hashlib
from dataclasses import dataclass

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from engine.identities import Identities, Identity
from engine.refusals import Refused

NOT_AFTER = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
NOT_AFTER_MS = 1_893_456_000_000
NOW = NOT_AFTER_MS - 1000

FULL = "tls-server-identities-full"
CHAIN = "tls-server-chain"
NAMES = "tls-server-names"
KEY_TYPE = "tls-server-key-type"
KEY_FORMAT = "tls-server-key-format"
MISMATCH = "tls-server-key-mismatch"
EXPIRED = "tls-server-cert-expired"

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


def pem(label: str, der: bytes) -> bytes:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n".encode()


def pkcs8(key: Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def sec1(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def certificate(key: Key, bulk: int = 0) -> x509.Certificate:
    """A self-signed certificate, with an extension of `bulk` bytes."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOT_AFTER - datetime.timedelta(days=30))
        .not_valid_after(NOT_AFTER)
    )
    if bulk:
        oid = x509.ObjectIdentifier("1.3.6.1.4.1.99999.1")
        builder = builder.add_extension(x509.UnrecognizedExtension(oid, bytes(bulk)), False)
    return builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256())


def der_of(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(Encoding.DER)


@dataclass(frozen=True)
class Files:
    chain: bytes
    key: bytes


def files() -> Files:
    key = ec.generate_private_key(ec.SECP256R1())
    return Files(certificate(key).public_bytes(Encoding.PEM), pkcs8(key))


P256 = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())
RSA = rsa.generate_private_key(65537, 2048)
EDWARDS = ed25519.Ed25519PrivateKey.generate()
LEAF = certificate(P256)
DER = der_of(LEAF)
ISSUER = der_of(certificate(P384))
GOOD = Files(pem("CERTIFICATE", DER), pkcs8(P256))
OTHER = files()


def added(chain: bytes, key: bytes = GOOD.key, *names: str, now_ms: int = NOW) -> Identity:
    identities = Identities()
    assert identities.add(chain, key, names, now_ms) == 0
    return identities.find(None)[0]


def refusal(chain: bytes, key: bytes = GOOD.key, *names: str, now_ms: int = NOW) -> str:
    identities = Identities()
    with pytest.raises(Refused) as raised:
        identities.add(chain, key, names, now_ms)
    assert len(identities) == 0 and identities.stray_keys() == 0
    assert raised.value.__cause__ is None
    return raised.value.refusal.tag


# What an identity holds.


def test_the_certificate_message_is_the_chain_as_given() -> None:
    identity = added(pem("CERTIFICATE", DER) + pem("CERTIFICATE", ISSUER))
    entries = b"".join(len(der).to_bytes(3, "big") + der + b"\x00\x00" for der in (DER, ISSUER))
    body = b"\x00" + len(entries).to_bytes(3, "big") + entries
    assert identity.certificate_message == b"\x0b" + len(body).to_bytes(3, "big") + body


def test_the_fingerprint_and_the_end_are_the_leafs() -> None:
    identity = added(pem("CERTIFICATE", DER) + pem("CERTIFICATE", ISSUER))
    assert identity.fingerprint == hashlib.sha256(DER).digest()
    assert identity.not_after_ms == NOT_AFTER_MS


@pytest.mark.parametrize("deterministic", [False, True])
def test_what_is_signed_verifies_and_nothing_else_does(deterministic: bool) -> None:
    identity = added(GOOD.chain)
    content = bytearray(b"content")
    signature = identity.sign(memoryview(content), deterministic)
    P256.public_key().verify(signature, bytes(content), ec.ECDSA(SHA256()))
    assert identity.check(signature, memoryview(content)) is True
    assert identity.check(signature, b"other") is False
    assert identity.check(signature[:-1] + bytes([signature[-1] ^ 1]), content) is False
    assert identity.check(b"", content) is False


def test_only_the_deterministic_signature_is_the_same_twice() -> None:
    identity = added(GOOD.chain)
    assert identity.sign(b"content", True) == identity.sign(b"content", True)
    assert identity.sign(b"content", False) != identity.sign(b"content", False)


def test_no_text_form_of_an_identity_shows_its_key() -> None:
    secret = P256.private_numbers().private_value
    shown = repr(added(GOOD.chain)) + str(added(GOOD.chain))
    assert str(secret) not in shown and f"{secret:x}" not in shown


# The chain.


def test_text_around_the_blocks_and_other_line_ends_are_accepted() -> None:
    expected = added(GOOD.chain).certificate_message
    assert added(b"Subject: test\n" + GOOD.chain + b"end\n").certificate_message == expected
    assert added(GOOD.chain.replace(b"\n", b"\r\n")).certificate_message == expected
    assert added(GOOD.chain.rstrip(b"\n")).certificate_message == expected


@pytest.mark.parametrize(
    "chain",
    [
        b"",
        b"no certificate",
        DER,
        GOOD.chain.replace(b"-----END CERTIFICATE-----\n", b""),
        GOOD.chain.replace(b"-----BEGIN CERTIFICATE-----\n", b""),
        GOOD.chain.replace(b"END CERTIFICATE", b"END X509 CRL"),
        GOOD.chain.replace(b"BEGIN CERTIFICATE-----", b"BEGIN CERTIFICATE----"),
        b" " + GOOD.chain,
        GOOD.chain + b" -----BEGIN CERTIFICATE-----\n",
        GOOD.chain + GOOD.chain.replace(b"-----END CERTIFICATE-----\n", b""),
        GOOD.chain + GOOD.chain.replace(b"\n", b"\n!", 1),
        GOOD.chain.replace(b"\n", b"\n=", 1),
        GOOD.chain.replace(b"\n", b"\nAA", 1),
        pem("CERTIFICATE", b""),
        pem("CERTIFICATE", DER[:-1]),
        pem("CERTIFICATE", DER + b"\x00"),
        pem("CERTIFICATE", DER.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09", 1)),
        GOOD.chain + pem("CERTIFICATE", b"\x30\x00"),
        GOOD.chain + GOOD.key,
        GOOD.key + GOOD.chain,
        GOOD.chain + pem("X509 CRL", b"\x30\x00"),
        GOOD.key,
    ],
)
def test_a_chain_that_is_not_certificates_from_end_to_end_is_refused(chain: bytes) -> None:
    assert refusal(chain) == CHAIN


def test_a_chain_is_counted_as_it_is_sent_up_to_16384_bytes() -> None:
    bulk = 16384
    # The signature's length varies by a few bytes: try until the certificate is just as long.
    fits = over = None
    while fits is None or over is None:
        der = der_of(certificate(P256, bulk))
        left = 16384 - (len(DER) + 5) - (len(der) + 5)
        if left == 0:
            fits = der
        elif left == -1:
            over = der
        bulk += left if abs(left) > 3 else (left > 0) - (left < -1)
    added(GOOD.chain + pem("CERTIFICATE", fits))
    assert refusal(GOOD.chain + pem("CERTIFICATE", over)) == CHAIN


# The names.


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("a.example", b"a.example"),
        ("A.Example", b"a.example"),
        ("localhost", b"localhost"),
        ("*.a.example", b"*.a.example"),
        ("xn--nxasmq6b.example", b"xn--nxasmq6b.example"),
        ("_dns.a-b.example", b"_dns.a-b.example"),
        ("1.2.3.4", b"1.2.3.4"),
        ("a" * 63 + ".example", b"a" * 63 + b".example"),
        (".".join(["a" * 63] * 3 + ["b" * 63]), b".".join([b"a" * 63] * 3 + [b"b" * 63])),
    ],
)
def test_a_host_name_is_kept_in_lower_case(name: str, kept: bytes) -> None:
    assert added(GOOD.chain, GOOD.key, name).names == (kept,)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "*",
        "*.",
        "*.example",
        "*.*.example",
        "a.*.example",
        "a*.b.example",
        "**.a.example",
        ".a.example",
        "a.example.",
        "a..example",
        "-a.example",
        "a-.example",
        "a b.example",
        "a.example\n",
        "a/b.example",
        "a\x00.example",
        "b\u00fccher.example",
        "\u212a.example",
        "a" * 64 + ".example",
        ".".join(["a" * 62] * 4 + ["bbbb"]),
    ],
)
def test_anything_else_is_no_name(name: str) -> None:
    assert refusal(GOOD.chain, GOOD.key, "good.example", name) == NAMES


def test_names_are_counted_up_to_16384_bytes_in_all() -> None:
    names = [f"{n:03}." + ".".join(["a" * 62] * 3) + ".example.org" for n in range(79)]
    assert {len(name) for name in names} == {204}
    left = 16384 - 204 * 79
    added(GOOD.chain, GOOD.key, *names, *filler(left))
    assert refusal(GOOD.chain, GOOD.key, *names, *filler(left + 1)) == NAMES


def filler(length: int) -> list[str]:
    """Names of one label each that are `length` bytes together."""
    return ["f" * min(60, length - at) for at in range(0, length, 60)]


def test_an_identity_may_have_no_name() -> None:
    assert added(GOOD.chain).names == ()


def test_one_name_where_a_list_belongs_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match=r"^names is a list of names, not one name$"):
        Identities().add(GOOD.chain, GOOD.key, "localhost", NOW)


# The keys.


@pytest.mark.parametrize("key", [P384, RSA, EDWARDS])
def test_a_leaf_that_is_not_p256_is_refused(key: Key) -> None:
    assert refusal(pem("CERTIFICATE", der_of(certificate(key))), pkcs8(key)) == KEY_TYPE


def test_a_leaf_whose_key_nobody_knows_is_refused() -> None:
    known, unknown = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0263")
    assert DER.count(known) == 1
    assert refusal(pem("CERTIFICATE", DER.replace(known, unknown))) == KEY_TYPE


def test_a_leaf_whose_point_is_not_on_the_curve_is_refused() -> None:
    numbers = P256.public_key().public_numbers()
    y = numbers.y.to_bytes(32, "big")
    wrong = (numbers.y ^ 1).to_bytes(32, "big")
    assert refusal(pem("CERTIFICATE", DER.replace(y, wrong))) == KEY_TYPE


@pytest.mark.parametrize(
    "key",
    [
        sec1(P256),
        pem("EC PARAMETERS", bytes.fromhex("06082a8648ce3d030107")) + sec1(P256),
        b"Key of the server\n" + GOOD.key,
        GOOD.key.replace(b"\n", b"\r\n"),
    ],
)
def test_a_key_in_either_format_is_accepted(key: bytes) -> None:
    assert added(GOOD.chain, key).check(added(GOOD.chain, key).sign(b"", True), b"")


def encrypted(form: PrivateFormat) -> bytes:
    return P256.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"pass"))


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"no key",
        GOOD.chain,
        GOOD.key + GOOD.key,
        GOOD.key + GOOD.chain,
        sec1(P256) + GOOD.key,
        encrypted(PrivateFormat.PKCS8),
        encrypted(PrivateFormat.TraditionalOpenSSL),
        sec1(RSA),
        sec1(P256).replace(b"EC PRIVATE", b"PRIVATE"),
        GOOD.key.replace(b"PRIVATE", b"EC PRIVATE"),
        GOOD.key.replace(b"\n", b"\n!", 1),
        GOOD.key.replace(b"-----END PRIVATE KEY-----\n", b""),
        GOOD.key + b" -----BEGIN RSA PRIVATE KEY-----\n",
        b" " + GOOD.key,
        pem("PRIVATE KEY", b"\x30\x00"),
        pem("PRIVATE KEY", b""),
    ],
)
def test_a_key_in_another_format_is_refused(key: bytes) -> None:
    assert refusal(GOOD.chain, key) == KEY_FORMAT


@pytest.mark.parametrize("key", [P384, RSA, EDWARDS, ec.generate_private_key(ec.SECP256K1())])
def test_a_key_that_is_not_p256_is_refused(key: Key) -> None:
    assert refusal(GOOD.chain, pkcs8(key)) == KEY_TYPE


def test_a_key_of_an_algorithm_nobody_knows_is_refused() -> None:
    der = P256.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    known, unknown = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0263")
    assert refusal(GOOD.chain, pem("PRIVATE KEY", der.replace(known, unknown))) == KEY_TYPE


def test_a_key_that_is_not_the_leafs_is_refused() -> None:
    assert refusal(GOOD.chain, OTHER.key) == MISMATCH


def test_a_leaf_is_good_to_its_last_millisecond_and_not_after() -> None:
    added(GOOD.chain, now_ms=NOT_AFTER_MS)
    assert refusal(GOOD.chain, now_ms=NOT_AFTER_MS + 1) == EXPIRED


def test_when_a_leaf_begins_is_not_judged() -> None:
    added(GOOD.chain, now_ms=0)


def test_an_expired_issuer_is_the_operators_affair() -> None:
    added(GOOD.chain + pem("CERTIFICATE", ISSUER), now_ms=NOT_AFTER_MS)


# The order: each refusal comes before those below it.


def test_the_refusals_come_in_their_fixed_order() -> None:
    p384_leaf = pem("CERTIFICATE", der_of(certificate(P384)))
    late = NOT_AFTER_MS + 1
    assert refusal(b"", b"", "*", now_ms=late) == CHAIN
    assert refusal(p384_leaf, b"", "*", now_ms=late) == NAMES
    assert refusal(p384_leaf, b"", now_ms=late) == KEY_TYPE
    assert refusal(GOOD.chain, b"", now_ms=late) == KEY_FORMAT
    assert refusal(GOOD.chain, pkcs8(RSA), now_ms=late) == KEY_TYPE
    assert refusal(GOOD.chain, OTHER.key, now_ms=late) == MISMATCH
    assert refusal(GOOD.chain, now_ms=late) == EXPIRED


def test_the_seventeenth_identity_is_refused_before_anything_is_read() -> None:
    identities = Identities()
    ids = [identities.add(GOOD.chain, GOOD.key, [f"n{n}.example"], NOW) for n in range(16)]
    assert ids == list(range(16))
    with pytest.raises(Refused) as raised:
        identities.add(b"", b"", ["*"], NOW)
    assert raised.value.refusal.tag == FULL
    assert len(identities) == 16
    assert identities.find(b"n15.example")[1]


# Which identity a name gets.


def table(*names: list[str]) -> Identities:
    identities = Identities()
    for listed in names:
        one = files()
        identities.add(one.chain, one.key, listed, NOW)
    return identities


def place(identities: Identities, name: bytes | None) -> tuple[int, bool]:
    identity, matched = identities.find(name)
    return identities._entries.index(identity), matched


def test_no_name_and_an_unknown_name_get_the_first() -> None:
    identities = table(["a.example"], ["b.example"])
    for name in (None, b"", b"c.example", b"example", b".b.example", b"b.example."):
        assert place(identities, name) == (0, False)


def test_a_name_gets_the_identity_that_has_it() -> None:
    identities = table(["a.example"], ["b.example", "c.example"])
    assert place(identities, b"a.example") == (0, True)
    assert place(identities, b"b.example") == (1, True)
    assert place(identities, b"c.example") == (1, True)


def test_a_wildcard_stands_for_exactly_one_label() -> None:
    identities = table([], ["*.b.example"])
    assert place(identities, b"x.b.example") == (1, True)
    for name in (b"b.example", b".b.example", b"y.x.b.example", b"xb.example", b"x.c.example"):
        assert place(identities, name) == (0, False)


def test_a_wildcard_is_no_name_by_itself() -> None:
    assert place(table([], ["*.b.example"]), b"*.b.example") == (1, True)
    assert place(table([], ["x.b.example"]), b"*.b.example") == (0, False)


def test_an_exact_name_comes_before_an_earlier_wildcard() -> None:
    identities = table([], ["*.b.example"], ["x.b.example"])
    assert place(identities, b"x.b.example") == (2, True)


def test_of_two_with_one_name_the_earlier_gets_it() -> None:
    identities = table([], ["b.example", "*.c.example"], ["b.example", "*.c.example"])
    assert place(identities, b"b.example") == (1, True)
    assert place(identities, b"x.c.example") == (1, True)


def test_with_no_identity_there_is_none_to_find() -> None:
    with pytest.raises(Refused) as raised:
        Identities().find(b"a.example")
    assert raised.value.refusal.tag == CHAIN


# Replacing and forgetting.


def test_a_replacement_keeps_the_names_and_the_old_one_still_signs() -> None:
    identities = table(["a.example"], ["B.example", "*.c.example"])
    old, _ = identities.find(b"b.example")
    identities.replace(1, OTHER.chain, OTHER.key, NOW)
    new, matched = identities.find(b"x.c.example")
    assert matched and new is not old and identities.find(b"b.example")[0] is new
    assert new.fingerprint != old.fingerprint
    assert old.check(old.sign(b"content", True), b"content")
    assert len(identities) == 2


def test_a_replacement_of_the_first_is_the_new_default() -> None:
    identities = table(["a.example"])
    identities.replace(0, OTHER.chain, OTHER.key, NOW)
    assert identities.find(None)[0] is identities.find(b"a.example")[0]


def test_a_replacement_with_names_takes_those() -> None:
    identities = table([], ["b.example"])
    identities.replace(1, OTHER.chain, OTHER.key, NOW, ["c.example"])
    assert place(identities, b"c.example") == (1, True)
    assert place(identities, b"b.example") == (0, False)
    identities.replace(1, OTHER.chain, OTHER.key, NOW, [])
    assert place(identities, b"c.example") == (0, False)


@pytest.mark.parametrize(
    ("chain", "key", "names", "now_ms", "tag"),
    [
        (b"", GOOD.key, None, NOW, CHAIN),
        (GOOD.chain, GOOD.key, ["*"], NOW, NAMES),
        (GOOD.chain, OTHER.key, ["new.example"], NOW, MISMATCH),
        (GOOD.chain, GOOD.key, ["new.example"], NOT_AFTER_MS + 1, EXPIRED),
    ],
)
def test_a_refused_replacement_changes_nothing(
    chain: bytes, key: bytes, names: list[str] | None, now_ms: int, tag: str
) -> None:
    identities = table([], ["b.example"])
    old, _ = identities.find(b"b.example")
    with pytest.raises(Refused) as raised:
        identities.replace(1, chain, key, now_ms, names)
    assert raised.value.refusal.tag == tag
    assert identities.find(b"b.example") == (old, True)
    assert place(identities, b"new.example") == (0, False)


@pytest.mark.parametrize("which", [-1, 1, 16])
def test_an_id_never_given_is_the_callers_mistake(which: int) -> None:
    with pytest.raises(IndexError, match=r"^no such identity$"):
        table([]).replace(which, GOOD.chain, GOOD.key, NOW)


def test_a_wiped_table_holds_nothing() -> None:
    identities = table(["a.example", "*.b.example"], ["c.example"])
    identities.wipe()
    assert len(identities) == 0 and identities.stray_keys() == 0
    for name in (None, b"a.example", b"x.b.example"):
        with pytest.raises(Refused):
            identities.find(name)


def test_an_identity_in_an_entry_not_in_use_is_counted() -> None:
    identities = table([], [])
    assert identities.stray_keys() == 0
    identities._entries[15] = identities._entries[1]
    assert identities.stray_keys() == 1
    identities._count = 1
    assert identities.stray_keys() == 2


# Whatever the bytes.


@given(st.binary(max_size=200), st.integers(0, 2000), st.binary(max_size=8))
def test_files_of_any_bytes_are_accepted_or_refused(junk: bytes, at: int, put: bytes) -> None:
    chain = GOOD.chain[:at] + put + GOOD.chain[at + len(put) :]
    key = GOOD.key[:at] + put + GOOD.key[at + len(put) :]
    for one, other in ((junk, GOOD.key), (GOOD.chain, junk), (chain, GOOD.key), (GOOD.chain, key)):
        try:
            Identities().add(one, other, [], NOW)
        except Refused as refused:
            assert refused.refusal.alert is None
