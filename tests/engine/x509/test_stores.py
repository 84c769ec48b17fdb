"""The client store is read strictly, and says what the CertificateRequest lists."""

import base64
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from engine.refusals import Refusal, Refused
from engine.x509 import paths, stores
from tests.engine.x509.chain_maker import NOW, authority, key, leaf

BEGIN, END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


@cache
def root(common="root", **changes):
    return authority(common, own=key("store root", "Ed25519"), **changes)


def refused(pem):
    with pytest.raises(Refused) as caught:
        stores.load(pem)
    return caught.value.refusal == "tls-server-client-store"


def pem_of_size(size):
    """A root whose DER has just this size."""
    pad = 10
    while True:
        extra = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4.5"), bytes(pad))
        made = authority("padded", own=key("store root", "Ed25519"), extra=[(extra, False)])
        if len(made.der) == size:
            return made.pem
        pad += size - len(made.der)


def test_a_bundle_of_roots_is_loaded_with_the_text_around_them():
    pem = b"# our authorities\r\n" + root().pem + b"\n  another:\n" + root("two").pem + b"end"
    store = stores.load(pem.replace(b"\n", b"\r\n"))
    assert [one.der for one in store.roots] == [root().der, root("two").der]
    assert len(store) == 2


def test_thirty_two_roots_are_held_and_one_more_is_not():
    assert len(stores.load(root().pem * 32)) == 32
    assert refused(root().pem * 33)


def test_32768_bytes_are_held_and_one_more_is_not():
    assert len(stores.load(pem_of_size(16_384) * 2)) == 2
    assert refused(pem_of_size(16_384) + pem_of_size(16_385))


BAD_BLOCKS = [BEGIN + b"\n" + body + END + b"\n" for body in (b"", b"AAAA\n", b"!!!!\n", b"AAA\n")]


@pytest.mark.parametrize("pem", [b"", b"no certificate at all\n", *BAD_BLOCKS])
def test_a_bundle_without_a_certificate_is_refused(pem):
    assert refused(pem)


@pytest.mark.parametrize("block", BAD_BLOCKS)
def test_a_bad_block_refuses_the_good_ones(block):
    assert refused(root().pem + block)
    assert refused(block + root().pem)


@pytest.fixture
def private_key_pem():
    return key("store root", "Ed25519").private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )


def test_a_private_key_in_the_bundle_is_refused(private_key_pem):
    assert refused(root().pem + private_key_pem)
    assert refused(private_key_pem + root().pem)


def test_a_block_cut_short_is_refused():
    whole = root().pem
    for cut in (whole.index(END), len(whole) - 5, 40):
        assert refused(root().pem + whole[:cut])
        assert refused(whole[:cut] + root().pem)


def test_an_end_without_a_beginning_is_refused():
    assert refused(root().pem + END + b"\n")


def test_a_block_that_begins_inside_a_line_is_refused():
    assert refused(root().pem + b"text " + root().pem)


def test_another_kind_of_block_is_refused():
    for label in (b"TRUSTED CERTIFICATE", b"X509 CRL"):
        assert refused(root().pem + root().pem.replace(b"CERTIFICATE", label))


def test_another_kind_of_block_that_does_not_end_is_refused():
    for beginning in (b"-----BEGIN X509 CRL-----", b"-----BEGIN CERTIFICATE----"):
        assert refused(root().pem + beginning + b"\n")


def test_spaces_around_a_line_say_nothing():
    indented = b"".join(b" \t" + line + b" \n" for line in root().pem.splitlines())
    assert [one.der for one in stores.load(indented).roots] == [root().der]


def test_a_root_s_own_signature_is_not_judged():
    # It proves nothing: the root is trusted because it is in the bundle. SHA-224 is not accepted.
    own = key("store root", "P-256")
    made = authority("weakly signed", own=own, digest=hashes.SHA224())
    answer = paths.verify([leaf(made).der], stores.load(made.pem), NOW)
    assert isinstance(answer, paths.Verified)


def test_der_with_bytes_behind_it_is_refused():
    body = base64.encodebytes(root().der + b"\0")
    assert refused(BEGIN + b"\n" + body + END + b"\n")


def test_a_root_whose_key_no_chain_can_use_is_refused():
    assert refused(authority("big curve", own=key("big curve", "P-521")).pem)


def test_roots_that_only_the_time_or_a_chain_can_judge_are_held():
    for made in (
        root(before=NOW - 2, after=NOW - 1),
        root(ca=None),
        root(uses=("crl_sign",)),
        leaf(None),
        authority("small", own=key("small", "RSA-1024")),
    ):
        assert len(stores.load(made.pem)) == 1


def test_the_authorities_are_the_subjects_each_once_behind_its_length():
    first, second = root(), root("two")
    store = stores.load(first.pem + second.pem + first.pem)
    expected = b"".join(
        len(subject).to_bytes(2, "big") + subject
        for subject in (made.subject.public_bytes() for made in (first, second))
    )
    assert store.authorities == expected


def named(size):
    """A root whose subject is of this size."""
    pad = size
    while True:
        text = x509.NameAttribute(x509.ObjectIdentifier("1.2.3.4"), "x" * pad)
        made = authority(x509.Name([text]), own=key("store root", "Ed25519"))
        if len(made.subject.public_bytes()) == size:
            return made
        pad += size - len(made.subject.public_bytes())


def test_names_of_8192_bytes_are_listed_and_one_more_leaves_all_out():
    pem = named(4_094).pem
    assert len(stores.load(pem + named(4_094 - 2 * 10).pem + named(18).pem).authorities) == 8_192
    assert stores.load(pem + named(4_095 - 2 * 10).pem + named(18).pem).authorities == b""


def test_the_generation_counts_and_stops():
    assert stores.next_generation(0) == 1
    assert stores.next_generation(2**32 - 2) == 2**32 - 1
    assert stores.next_generation(2**32 - 1) == 2**32 - 1


def test_a_root_is_judged_when_a_chain_needs_it():
    old = root(before=NOW - 2, after=NOW - 1)
    assert paths.verify([leaf(old).der], stores.load(old.pem), NOW) == Refusal.X509_EXPIRED
