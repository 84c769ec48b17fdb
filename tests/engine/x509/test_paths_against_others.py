"""The same chains put to two readings that are not ours: cryptography's verifier and OpenSSL's.

Both must accept what we accept and refuse what we refuse, but for the differences below, each with
its reason. A difference that no longer differs is stale, and fails.
"""

import datetime
import warnings

import pytest
from cryptography import x509
from cryptography.x509 import verification
from OpenSSL import crypto
from OpenSSL._util import lib

from tests.engine.x509 import constraint_cases  # noqa: F401  (adds its cases)
from tests.engine.x509.chain_cases import CASES, OK

WEB = "it judges by the profile of the web's authorities, which asks for this and we do not: "
STRICTER_KEYS = "it accepts more kinds and sizes of keys than the contract lists"
STRICTER_SIGNATURES = "it accepts more signature algorithms than the contract lists"
ANY_PURPOSE = "it reads anyExtendedKeyUsage as leave for clients; the contract does not"
PINNED = "it takes a leaf of the store for its own anchor; docs/client-certificates.md argues ours"
NO_URI = "it processes no constraint on URIs, and refuses one that is critical"
NO_DIRECTORY = "it processes no constraint on directory names, and refuses one that is critical"
DOT = "it refuses a DNS constraint with a dot in front, which OpenSSL reads as we do"
NAMES_UNREAD = "it compares names as bytes and reads none; ours are shown to programs"
ONE_TRY = "it takes the first issuer of the right name and does not come back from it"
EMPTY = "it takes an empty base for a host of that name, which no name has"
UNREADABLE = "it passes a constraint that such a name cannot be held against; ours refuses"
NO_BASE = "it compares a base that is no name as text, which no name equals; ours excludes all"
ALL_BASES = "one base that it cannot read refuses every name; ours still permits what others permit"
MAPPED = "it takes an IPv4 address in the shape of an IPv6 one for another address"
SPELLING = "it tells names apart that RFC 5280 §7.1 compares as one, or that look like one"


def titled(reason, of, end, but):
    """The cases of a kind that `constraint_cases` makes from a table, but for one."""
    ours = {title for title in CASES if of in title and title.endswith(end)}
    return dict.fromkeys(ours - {f"{but} {end}"}, reason)


CRYPTOGRAPHY = {
    "the root's key was changed and a self-issued intermediate bridges": (
        "it counts self-issued intermediates in pathLen, which RFC 5280 §4.2.1.9 does not"
    ),
    "the root's key is Ed25519": WEB + "an authority's key is RSA or on a NIST curve",
    "the leaf may only encipher keys": (
        "it asks for no digitalSignature in a client's key usage; TLS 1.3 does (RFC 8446 §4.4.2.2)"
    ),
    "the leaf has no alternative name": WEB + "subjectAltName",
    "the leaf's key identifier is critical": "it understands it in a leaf; our list does not",
    "the leaf's subject is empty and so are its names": WEB + "subjectAltName",
    "the subject is permitted": WEB + "subjectAltName",
    "the subject's mail address is inside": WEB + "subjectAltName",
    "the leaf is an authority": WEB + "a leaf that is no authority",
    "the leaf signed itself, is an authority and is in the store": WEB + "as above",
    "the leaf has no key identifiers": WEB + "authorityKeyIdentifier",
    "the root has no key usage": WEB + "an authority's keyUsage",
    "the intermediate has no key usage": WEB + "an authority's keyUsage",
    "the leaf's serial is negative": WEB + "a positive serial",
    "the leaf's serial is of 300 bytes": WEB + "a serial of at most 20 bytes",
    "a leaf's own constraints bind nobody": WEB + "a leaf without nameConstraints",
    "the leaf's key is P-521": STRICTER_KEYS,
    "the leaf's key is RSA of 1024 bits": STRICTER_KEYS,
    "the leaf's key is RSA of 2047 bits": STRICTER_KEYS,
    "the leaf's key is RSA of 4097 bits": STRICTER_KEYS,
    "the leaf's RSA exponent is 18446744073709551617": STRICTER_KEYS,
    "the leaf's key is bound to RSASSA-PSS": STRICTER_KEYS,
    "the intermediate's key is P-521": STRICTER_KEYS,
    "the leaf's key is no point of its curve": "it does not look at the leaf's key",
    "the leaf's subject is a text of an unknown type": NAMES_UNREAD,
    "the leaf's subject is a text in broken UTF-8": NAMES_UNREAD,
    "an intermediate's subject is a text of an unknown type": NAMES_UNREAD,
    "the leaf signed itself and is in the store": PINNED,
    "the root is for any purpose": ANY_PURPOSE,
    "the intermediate is for any purpose": ANY_PURPOSE,
    "the leaf's RSA signature has no parameters": WEB + "NULL parameters of RSA",
    "an empty DNS base permits everything": "it takes an empty DNS base for a malformed one",
    "x.c.example is permitted by DNS .c.example": DOT,
    "d.example is not excluded by DNS .c.example": DOT,
    "mqtt://h.example:1/x?y#z is permitted by URI h.example": NO_URI,
    "mqtt://x.h.example/ is not excluded by URI h.example": NO_URI,
    "https://u@x.h.example is permitted by URI .h.example": NO_URI,
    "https://h.example/ is not excluded by URI .h.example": NO_URI,
    "<Name(CN=x,O=One)> is permitted by name O=One": NO_DIRECTORY,
    "<Name(CN=x,O=Two)> is not excluded by name O=One": NO_DIRECTORY,
    "an empty subject is not constrained": NO_DIRECTORY,
    "constraints do not bind the authority that has them": (
        "it holds an authority's own names against its own constraints"
    ),
    "a constraint has a minimum and the leaf has such a name": (
        "it passes over the minimum; RFC 5280 §4.2.1.10 has none but 0"
    ),
    "the DNS base '192.0.2.1' excludes everything": "it takes an address for a host name",
    "an IPv4 address in the shape of an IPv6 one is outside nothing": MAPPED,
    **titled(ALL_BASES, " base '", "takes nothing from another", but="the DNS base '192.0.2.1'"),
}

OPENSSL = {
    "4 intermediates": "its depth is bounded at 100 unless it is told otherwise",
    "the store's root is an intermediate of another authority": (
        "an anchor that is not self-signed is one for it only with the flag PARTIAL_CHAIN"
    ),
    "the root's key was changed and a self-issued intermediate bridges": ONE_TRY,
    "a self-issued intermediate is not bound by constraints": ONE_TRY,
    "a second path has no constraint in its way": ONE_TRY,
    "the leaf has critical policies": "it understands policyConstraints; our list does not",
    "the leaf's key is P-521": STRICTER_KEYS,
    "the leaf's key is RSA of 1024 bits": STRICTER_KEYS,
    "the leaf's key is RSA of 2047 bits": STRICTER_KEYS,
    "the leaf's key is RSA of 4097 bits": STRICTER_KEYS,
    "the leaf's RSA exponent is 18446744073709551617": STRICTER_KEYS,
    "the leaf's key is bound to RSASSA-PSS": STRICTER_KEYS,
    "the root's key is RSA of 1024 bits": STRICTER_KEYS,
    "the intermediate's key is RSA of 1024 bits": STRICTER_KEYS,
    "the intermediate's key is P-521": STRICTER_KEYS,
    "the leaf is signed with SHA3-256": STRICTER_SIGNATURES,
    "the intermediate is signed with SHA3": STRICTER_SIGNATURES,
    "the leaf is signed with RSASSA-PSS and a short salt": STRICTER_SIGNATURES,
    "the leaf signed itself and is in the store": PINNED,
    "the root has no basic constraints": (
        "it takes a self-signed root with keyCertSign and no basicConstraints for an authority"
    ),
    "a byte follows the leaf": "its decoder stops at the end of the certificate",
    "the leaf has an extension twice": "its decoder does not look for repeated extensions",
    "the leaf's ECDSA signature has parameters": "its decoder reads past them",
    "an empty mail base excludes everything": EMPTY,
    "an empty URI base excludes everything": EMPTY,
    "a wildcard covers an excluded host": UNREADABLE,
    "a DNS name that is none is constrained": UNREADABLE,
    "a DNS name with a dot at its end is constrained": UNREADABLE,
    "a URI whose host is an address is constrained": UNREADABLE,
    "the subject's mail address does not count beside an rfc822Name": (
        "it judges the subject's mail addresses always; RFC 5280 §4.2.1.10 without another"
    ),
    "the mail base '@bar.test' permits nothing": "it takes it for every mailbox of the host",
    "an IPv4 address in the shape of an IPv6 one is outside nothing": MAPPED,
    "the subject is excluded in other letters that are not ASCII": SPELLING,
    "the subject is excluded and has a character without a form": SPELLING,
    **titled(NO_BASE, " base '", "excludes everything", but="the mail base '@bar.test'"),
    **titled(UNREADABLE, "the mail name '", "side nothing", but=""),
    **titled(UNREADABLE, "the URI 'https:", "is outside nothing", but="the URI 'https:b.test'"),
}


def time(case):
    return datetime.datetime.fromtimestamp(case.now, datetime.UTC)


def cryptography_accepts(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            leaf, *others = [x509.load_der_x509_certificate(der) for der in case.chain]
            verifier = (
                verification.PolicyBuilder()
                .store(verification.Store([root.cert for root in case.roots]))
                .time(time(case))
                .max_chain_depth(3)
                .build_client_verifier()
            )
            verifier.verify(leaf, others)
        except (verification.VerificationError, x509.DuplicateExtension, ValueError):
            return False
    return True


def openssl_accepts(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            leaf, *others = [
                crypto.load_certificate(crypto.FILETYPE_ASN1, der) for der in case.chain
            ]
            store = crypto.X509Store()
            for root in case.roots:
                store.add_cert(crypto.X509.from_cryptography(root.cert))
            store.set_time(time(case))
            # pyOpenSSL has no call of its own for the purpose.
            lib.X509_STORE_set_purpose(store._store, lib.X509_PURPOSE_SSL_CLIENT)
            crypto.X509StoreContext(store, leaf, others).verify_certificate()
        except (crypto.X509StoreContextError, crypto.Error):
            return False
    return True


@pytest.mark.parametrize(
    ("accepts", "differences"),
    [(cryptography_accepts, CRYPTOGRAPHY), (openssl_accepts, OPENSSL)],
    ids=["cryptography", "OpenSSL"],
)
def test_every_chain_is_judged_alike_but_for_the_argued_differences(accepts, differences):
    assert differences.keys() <= CASES.keys()
    unargued, stale = [], []
    for title, (expected, make) in CASES.items():
        differs = accepts(make()) != (expected == OK)
        if differs and title not in differences:
            unargued.append(title)
        if not differs and title in differences:
            stale.append(title)
    assert not unargued
    assert not stale
