"""Whatever is sent as a chain, the answer comes after bounded work, and nothing is raised."""

import ipaddress
import itertools
import warnings

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import client_certificate
from engine.refusals import Refusal
from engine.x509 import certificates, der, extensions, name_constraints, paths, stores
from tests.engine.x509.chain_maker import (
    NOW,
    authority,
    edited,
    key,
    leaf,
    name,
    replacing,
    with_serial,
)

DNS_TWO = x509.DNSName("two.test")


@pytest.fixture
def checks(monkeypatch):
    """The signature checks that were made, counted where they are made."""
    made = []
    real = certificates.Certificate.signed_by

    def counted(self, issuer):
        made.append((self, issuer))
        return real(self, issuer)

    monkeypatch.setattr(certificates.Certificate, "signed_by", counted)
    return made


def load(*roots):
    return stores.load(b"".join(root.pem for root in roots))


# Work.


def test_a_chain_whose_names_lead_to_no_root_costs_no_check(checks):
    # Every one of them can have signed every other and the leaf.
    top = authority("same")
    many = [authority("same", top, own=top.key, serial=i + 1) for i in range(100)]
    own = leaf(top)
    answer = paths.verify([own.der, *(one.der for one in many)], load(authority("root")), NOW)
    assert answer == Refusal.X509_UNKNOWN_ISSUER
    assert checks == []


def test_a_dead_end_is_not_climbed():
    # Longer than a path may be, but nothing that it could be told of leads anywhere.
    made = [authority("stranger")]
    for i in range(4):
        made.append(authority(f"middle {i}", made[-1]))
    chain = [leaf(made[-1]).der, *(one.der for one in made[:0:-1])]
    assert paths.verify(chain, load(authority("root")), NOW) == Refusal.X509_UNKNOWN_ISSUER
    assert paths.verify(chain, load(made[0]), NOW) == Refusal.X509_PATH_TOO_LONG


@pytest.mark.parametrize(("kind", "cost"), [("P-384", 3), ("P-256", 5)])
def test_a_strangers_chain_under_a_roots_name_costs_few_checks(checks, kind, cost):
    # Each says that the root issued it, and each can have issued any other.
    top = authority("root", own=key("another root"), key_id=None)
    many = [
        authority("root", top, own=key(f"one {i}"), key_id=None, issuer_key_id=None)
        for i in range(4)
    ]
    own = leaf(many[0], issuer_key_id=None)
    root = authority("root", own=key("dear root", kind))
    answer = paths.verify([own.der, *(one.der for one in many)], load(root), NOW)
    told = Refusal.X509_CHAIN_TOO_LARGE if kind == "P-384" else Refusal.X509_BAD_SIGNATURE
    assert answer == told
    assert [issuer.der for _, issuer in checks] == [root.der] * cost


@pytest.mark.parametrize(
    ("kind", "wrong", "found"), [("P-384", 2, True), ("P-384", 3, False), ("P-256", 3, True)]
)
def test_a_dear_key_under_which_three_signatures_were_wrong_is_not_tried_again(
    checks, kind, wrong, found
):
    root = authority("root", own=key("dear root", kind))
    stranger = authority("root", own=key("stranger"))
    middle = authority("middle", root, key_id=None)
    others = [
        authority("middle", stranger, own=key(f"other {i}"), key_id=None, issuer_key_id=None)
        for i in range(wrong)
    ]
    own = leaf(middle, issuer_key_id=None)
    chain = [own.der, *(one.der for one in others), middle.der]
    answer = paths.verify(chain, load(root), NOW)
    if found:
        assert isinstance(answer, paths.Verified)
        assert len(checks) == wrong + 2
    else:
        assert answer == Refusal.X509_CHAIN_TOO_LARGE
        assert len(checks) == 3


def test_only_what_is_wrong_under_a_dear_key_itself_counts(checks):
    root = authority("root", own=key("dear root", "P-384"))
    unnamed = {"key_id": None, "issuer_key_id": None}
    wrong = authority("middle", authority("root", own=key("stranger")), key("x"), **unnamed)
    other = authority("middle", root, key("other"), **unnamed)
    right = authority("middle", root, **unnamed)
    own = leaf(right, issuer_key_id=None)
    chain = [own.der, wrong.der, other.der, right.der]
    assert isinstance(paths.verify(chain, load(root), NOW), paths.Verified)
    assert len(checks) == 5


def test_signatures_are_checked_from_the_root_down(checks):
    root = authority("root")
    one = authority("one", root)
    two = authority("two", one)
    own = leaf(two)
    answer = paths.verify([own.der, two.der, one.der], load(root), NOW)
    assert isinstance(answer, paths.Verified)
    assert [child.der for child, _ in checks] == [one.der, two.der, own.der]


def test_a_signature_that_two_paths_need_is_checked_once(checks):
    # The authority was certified twice, and the root too, so there are four paths to the leaf.
    roots = [authority("root", serial=i + 1, excluded=[DNS_TWO]) for i in range(2)]
    middles = [authority("middle", roots[0], serial=i + 1) for i in range(2)]
    own = leaf(middles[0], san=[DNS_TWO])
    answer = paths.verify([own.der, *(one.der for one in middles)], load(*roots), NOW)
    assert answer == Refusal.X509_NAME_CONSTRAINT
    assert len(checks) == 3


def test_what_a_checked_signature_shows_to_be_wrong_is_not_climbed_over(checks):
    # The leaf is not the first's; the second root above it is not asked about.
    roots = [authority("root"), authority("root", own=key("new root"), key_id=None)]
    wrong = authority("middle", roots[0], own=key("wrong"), key_id=None, issuer_key_id=None)
    right = authority("middle", roots[0], key_id=None)
    own = leaf(right, issuer_key_id=None)
    twin = authority("middle", roots[1], own=key("wrong"), key_id=None, serial=2)
    chain = [own.der, wrong.der, twin.der, right.der]
    assert isinstance(paths.verify(chain, load(*roots), NOW), paths.Verified)
    assert [child.der for child, _ in checks] == [wrong.der, own.der, right.der, own.der]


@pytest.mark.parametrize(("less", "found"), [(0, True), (1, False)])
def test_as_many_issuers_as_the_bound_are_looked_at(less, found, monkeypatch):
    root = authority("root")
    middle = authority("middle", root)
    monkeypatch.setattr(paths, "STEPS", 2 - less)
    answer = paths.verify([leaf(middle).der, middle.der], load(root), NOW)
    assert isinstance(answer, paths.Verified) if found else answer == "x509-chain-too-large"


def test_a_thousand_issuers_of_one_name_are_looked_at_512_times(checks, monkeypatch):
    looks = []
    real = paths._Search._judge

    def counted(self, issuer, anchor, path):
        looks.append(issuer)
        return real(self, issuer, anchor, path)

    monkeypatch.setattr(paths._Search, "_judge", counted)
    root = authority("root", before=NOW - 2, after=NOW - 1)
    many = [authority("root", root, own=key(f"many {i}")) for i in range(40)]
    answer = paths.verify([leaf(many[0]).der, *(one.der for one in many)], load(root), NOW)
    assert answer == Refusal.X509_CHAIN_TOO_LARGE
    assert len(looks) == 512
    assert checks == []


def test_a_hundred_intermediates_with_a_root_behind_them_are_answered_at_once(checks):
    root = authority("root")
    many = [authority("same", root, own=key("same"), serial=i + 1) for i in range(100)]
    own = leaf(many[0])
    answer = paths.verify([own.der, *(one.der for one in many)], load(root), NOW)
    assert isinstance(answer, paths.Verified)
    assert len(checks) == 2


def test_32_roots_of_one_name_are_answered_in_eight_checks(checks):
    roots = [authority("same", own=key(f"same {i}"), key_id=None) for i in range(32)]
    own = leaf(roots[20], issuer_key_id=None)
    assert paths.verify([own.der], load(*roots), NOW) == Refusal.X509_CHAIN_TOO_LARGE
    assert len(checks) == 8


@pytest.mark.parametrize(("place", "found"), [(7, True), (8, False)])
def test_the_eighth_check_is_the_last(checks, place, found):
    roots = [authority("same", own=key(f"same {i}"), key_id=None) for i in range(9)]
    own = leaf(roots[place], issuer_key_id=None)
    answer = paths.verify([own.der], load(*roots), NOW)
    assert isinstance(answer, paths.Verified) == found
    assert len(checks) == 8


def test_the_root_whose_key_identifier_matches_is_tried_first(checks):
    roots = [authority("same", own=key(f"same {i}")) for i in range(32)]
    assert isinstance(paths.verify([leaf(roots[31]).der], load(*roots), NOW), paths.Verified)
    assert len(checks) == 1


def test_roots_without_a_key_identifier_come_before_those_with_another(checks):
    others = [authority("same", own=key(f"same {i}")) for i in range(10)]
    right = authority("same", own=key("same right"), key_id=None)
    assert isinstance(paths.verify([leaf(right).der], load(*others, right), NOW), paths.Verified)
    assert len(checks) == 1


def test_a_key_identifier_that_differs_is_a_hint_and_no_more(checks):
    root = authority("root", key_id=b"one")
    own = leaf(root, issuer_key_id=b"two")
    assert isinstance(paths.verify([own.der], load(root), NOW), paths.Verified)
    assert len(checks) == 1


def test_a_root_whose_kind_of_key_cannot_have_signed_costs_no_check(checks):
    roots = [authority("same", own=key(f"same {i}", "Ed25519"), key_id=None) for i in range(9)]
    right = authority("same", own=key("same right"), key_id=None)
    own = leaf(right, issuer_key_id=None)
    assert isinstance(paths.verify([own.der], load(*roots, right), NOW), paths.Verified)
    assert len(checks) == 1


def test_a_web_of_cross_signed_authorities_is_answered_in_eight_checks(checks):
    # No key identifiers, so nothing tells the right turns from the wrong ones.
    root = authority("root")
    names = ("a", "b", "c", "d")
    own = [authority(one) for one in names]
    unnamed = {"key_id": None, "issuer_key_id": None}
    web = [
        authority(one, own[j], key(f"{one} {i}"), serial=10 * i + j + 1, **unnamed)
        for (i, one), j in itertools.product(enumerate(names), range(4))
        if i != j
    ]
    tops = [authority(one, root, key(f"top {one}"), **unnamed) for one in names]
    below = leaf(own[0], issuer_key_id=None)
    chain = [below.der, *(w.der for w in (*tops, *web))]
    assert paths.verify(chain, load(root), NOW) == Refusal.X509_CHAIN_TOO_LARGE
    assert len(checks) == 8


def test_names_times_constraints_are_bounded():
    bases = [x509.DNSName(f"{i}.example") for i in range(600)]
    root = authority("root", permitted=bases)
    middle = authority("middle", root, permitted=bases)
    names = [x509.DNSName("599.example")] * 13
    few, many = leaf(middle, san=names), leaf(middle, san=[*names, names[0]])
    store = load(root)
    assert 2 * 13 * 600 <= name_constraints.LIMIT < 2 * 14 * 600
    assert isinstance(paths.verify([few.der, middle.der], store, NOW), paths.Verified)
    answer = paths.verify([many.der, middle.der], store, NOW)
    assert answer == Refusal.X509_CHAIN_TOO_LARGE


def test_a_spent_search_tries_no_other_path():
    root = authority("root")
    bases = [x509.DNSName(f"{i}.example") for i in range(600)]
    tight = authority("middle", root, permitted=bases)
    loose = authority("middle", root)
    own = leaf(loose, san=[x509.DNSName("599.example")] * 28)
    chain = [own.der, tight.der, loose.der]
    assert paths.verify(chain, load(root), NOW) == Refusal.X509_CHAIN_TOO_LARGE
    assert isinstance(paths.verify([own.der, loose.der], load(root), NOW), paths.Verified)


# What is told of several faults.


def test_the_likeliest_issuers_fault_is_told():
    root = authority("root")
    expired = authority("middle", root, before=NOW - 2, after=NOW - 1)
    stranger = authority("middle", authority("stranger"))
    for order in ((expired, stranger), (stranger, expired)):
        chain = [leaf(expired).der, *(one.der for one in order)]
        # The stranger's path is a dead end, which is told only when nothing else went wrong.
        assert paths.verify(chain, load(root), NOW) == Refusal.X509_EXPIRED


def test_a_sent_issuer_whose_key_identifier_agrees_is_tried_before_one_whose_differs():
    root = authority("root")
    expired = authority("middle", root, before=NOW - 2, after=NOW - 1)
    other = authority("middle", root, own=key("other"))
    chain = [leaf(expired).der, other.der, expired.der]
    assert paths.verify(chain, load(root), NOW) == Refusal.X509_EXPIRED


@pytest.mark.parametrize("first", [0, 1])
def test_an_issuer_without_a_key_identifier_stands_between_the_two(first):
    """It is behind one that agrees, and before one that differs."""
    expired = authority("same", before=NOW - 2, after=NOW - 1)
    bare = authority("same", own=key("bare"), key_id=None, ca=False)
    other = authority("same", own=key("other"))
    for likelier, less, told in (
        (expired, bare, Refusal.X509_EXPIRED),
        (bare, other, Refusal.X509_NOT_CA),
    ):
        roots = (likelier, less) if first else (less, likelier)
        assert paths.verify([leaf(expired).der], load(*roots), NOW) == told


def test_a_certificate_behind_a_self_issued_one_is_bound_by_constraints():
    """RFC 5280 §6.1.3 (b) spares that one and no other."""
    root = authority("root", excluded=[x509.DNSName("bad.test")])
    old = authority("middle", root, own=key("old"), san=[x509.DNSName("bad.test")])
    new = authority("middle", old, own=key("new"))
    chain = [leaf(new).der, new.der, old.der]
    assert paths.verify(chain, load(root), NOW) == Refusal.X509_NAME_CONSTRAINT
    right = authority("middle", root, own=key("old"))
    chain = [leaf(new).der, new.der, right.der]
    assert isinstance(paths.verify(chain, load(root), NOW), paths.Verified)


def test_a_mail_address_that_cannot_be_read_is_inside_no_constraint():
    """The parser takes UTF-8 in an IA5String, which has ASCII alone (RFC 5280 §4.1.2.6)."""
    subject = name("device", mail="ab@one.test")
    replace = replacing(b"\x16\x0bab@one", "\x16\x0b\u00f8@one".encode())
    for told, excluded in ((None, None), (Refusal.X509_NAME_CONSTRAINT, [DNS_TWO])):
        root = authority("root", excluded=excluded)
        answer = paths.verify([edited(leaf(root, subject), root, replace)], load(root), NOW)
        assert isinstance(answer, paths.Verified) if told is None else answer == told


@pytest.mark.parametrize("less", [0, 1])
def test_as_many_comparisons_as_the_bound_are_made(less, monkeypatch):
    root = authority("root", permitted=[x509.DNSName("example"), x509.DNSName("test")])
    own = leaf(root, san=[x509.DNSName("a.example")] * 3)
    monkeypatch.setattr(name_constraints, "LIMIT", 6 - less)
    answer = paths.verify([own.der], load(root), NOW)
    if less:
        assert answer == Refusal.X509_CHAIN_TOO_LARGE
    else:
        assert isinstance(answer, paths.Verified)


def test_an_empty_chain_does_not_parse():
    assert paths.verify([], load(authority("root")), NOW) == Refusal.X509_DECODE


# The parser.


@pytest.mark.parametrize("serial", [b"\xff", b"\x00", b"\x80\x01"])
def test_warnings_of_the_parser_change_nothing(serial):
    root = authority("root")
    data = edited(leaf(root), root, with_serial(serial))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert isinstance(paths.verify([data], load(root), NOW), paths.Verified)
    assert not seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(paths.verify([data], load(root), NOW), paths.Verified)
    assert client_certificate.serial(data) == serial


def test_a_country_of_three_letters_is_no_fault_whatever_warnings_do():
    root = authority("root")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = x509.NameAttribute(x509.NameOID.COUNTRY_NAME, "NOR", _validate=False)
    strange = x509.Name([text, x509.NameAttribute(x509.ObjectIdentifier("1.2.3.4"), "x")])
    for own in (leaf(root, strange), leaf(root, san=[x509.DirectoryName(strange)])):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert isinstance(paths.verify([own.der], load(root), NOW), paths.Verified)
        assert not seen
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isinstance(paths.verify([own.der], load(root), NOW), paths.Verified)


NAMES = [
    name("text"),
    name("text", o="Org \u00e9", c="NO"),
    name(),
    name("text", mail="a@b.c"),
]


@settings(max_examples=600)
@given(st.data())
def test_a_plain_name_is_read_by_the_parser(data):
    subject = data.draw(st.sampled_from(NAMES))
    made = leaf(ROOT, subject).der
    inside = subject.public_bytes()
    first = made.index(inside)
    damaged = bytearray(made)
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(first, first + len(inside) - 1))
        damaged[place] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from(inside)))
    try:
        parts = der.outline(bytes(damaged))
        parsed = x509.load_der_x509_certificate(bytes(damaged))
    except ValueError:
        return
    if der.plain_name(parts.subject):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(list(parsed.subject)) == len(parsed.subject.rdns)


def test_a_modulus_that_cannot_be_computed_with_verifies_nothing():
    even = RSAPublicNumbers(65537, (1 << 2047) | 2).public_key()
    root = authority("root")
    bad = authority("bad", root, own=key("bad", "RSA-2048"))
    own = leaf(bad)
    twin = leaf(root, own=even)
    broken = certificates.read(twin.der)
    signed = certificates.read(own.der)
    assert broken is not None and broken.study() is None
    assert signed is not None and signed.study() is None
    assert not signed.signed_by(broken)


ROOT = authority("root")
MIDDLE = authority("middle", ROOT, permitted=[x509.DNSName("example")])
LEAF = leaf(MIDDLE, name("device", mail="a@b.test"), san=[x509.DNSName("a.example")])
STORE = load(ROOT)


@given(st.lists(st.binary(max_size=64), max_size=5))
def test_bytes_that_are_no_certificates_raise_nothing(chain):
    assert paths.verify(chain, STORE, NOW) == Refusal.X509_DECODE


@given(st.data())
def test_damaged_certificates_raise_nothing(data):
    chain = [bytearray(LEAF.der), bytearray(MIDDLE.der)]
    for _ in range(data.draw(st.integers(1, 4))):
        target = chain[data.draw(st.integers(0, 1))]
        place = data.draw(st.integers(0, len(target) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                target[place] = data.draw(st.integers(0, 255))
            case 1:
                del target[place : place + data.draw(st.integers(1, 8))]
            case _:
                target[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        if not target:
            target += b"\0"
    answer = paths.verify([bytes(one) for one in chain], STORE, NOW)
    if isinstance(answer, paths.Verified):
        # Damage to the intermediate alone can pass only where nothing is signed: nowhere.
        assert (bytes(chain[0]), bytes(chain[1])) == (LEAF.der, MIDDLE.der)
    else:
        assert answer.tag.startswith("x509-")


@given(st.data())
def test_damage_that_was_signed_again_raises_nothing(data):
    # The root's key signs what was damaged, so that the fault is met behind the signature.
    def damage(tbs):
        out = bytearray(tbs)
        for _ in range(data.draw(st.integers(1, 3))):
            out[data.draw(st.integers(0, len(out) - 1))] = data.draw(st.integers(0, 255))
        return bytes(out)

    middle = edited(MIDDLE, ROOT, damage)
    own = edited(LEAF, MIDDLE, damage)
    for chain in ([LEAF.der, middle], [own, MIDDLE.der]):
        answer = paths.verify(chain, STORE, NOW)
        if isinstance(answer, paths.Verified):
            # What was accepted can be shown: no reading of the identity raises.
            client_certificate.subject(chain[0])
            client_certificate.serial(chain[0])
            client_certificate.alternative_names(chain[0])
        else:
            assert answer.tag.startswith("x509-")


def test_every_strict_prefix_of_a_certificate_fails_to_parse():
    for data in (LEAF.der, MIDDLE.der):
        for end in range(len(data)):
            assert certificates.read(data[:end]) is None


# The quick reading of extensions.

SHAPES = [
    LEAF,
    MIDDLE,
    authority("shape", path_length=3, purposes=(Purpose.CLIENT_AUTH, Purpose.SERVER_AUTH)),
    leaf(ROOT, ca=False, san=[x509.IPAddress(ipaddress.ip_address("::1")), x509.RFC822Name("a@b")]),
    leaf(ROOT, uses=("key_agreement", "encipher_only"), san=None),
    leaf(ROOT, san=[x509.DirectoryName(name("x"))], key_id=b"", issuer_key_id=bytes(200)),
]


def both_readings(data):
    """What the quick reading says, and what the parser does (None when it raises)."""
    parts = der.outline(data)
    quick = extensions.common(parts.extensions)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            slow = extensions.read(x509.load_der_x509_certificate(data))
    except Exception:
        slow = None
    return quick, slow


def test_the_quick_reading_reads_the_common_shapes():
    for made in SHAPES[:4]:
        if made is not MIDDLE:
            quick, slow = both_readings(made.der)
            assert quick is not None and quick == slow
    for made in SHAPES[4:]:
        quick, slow = both_readings(made.der)
        assert quick is None and slow is not None


@settings(max_examples=1500)
@given(st.data())
def test_the_quick_reading_never_differs_from_the_parser(data):
    shape = data.draw(st.sampled_from(SHAPES)).der
    inside = der.outline(shape).extensions
    first = shape.index(inside)
    damaged = bytearray(shape)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(first, first + len(inside) - 1))
        damaged[place] = data.draw(
            st.one_of(st.integers(0, 255), st.sampled_from(inside), st.just(damaged[place] ^ 1))
        )
    try:
        quick, slow = both_readings(bytes(damaged))
    except der.Malformed:
        return
    assert quick is None or quick == slow
