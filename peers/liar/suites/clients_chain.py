"""Chains that do not hold (RFC 5280; SPEC §6): one thing wrong in each, the signature right."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
import datetime
import ipaddress
from dataclasses import replace

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.x509.oid import ObjectIdentifier

from peers.liar import forge
from peers.liar.client import Credential
from peers.liar.conversation import Basis, Connection, Stage
from peers.liar.ends import End, refused
from peers.liar.identities import NOW, Identity, authority, issue, make_key, make_name, pem

from .base import CLIENTS
from .client_steps import CA, DEVICE, MIDDLE, OPTIONAL, REQUIRED, STRANGER, device, presenting
from .clients_honest import constrained

SECOND = datetime.timedelta(seconds=1)


def bad(tag: str) -> End:
    """The chain is refused with this tag, without its `x509-`."""
    return refused(f"x509-{tag}", sealed=True)


def flip(der: bytes, at: int) -> bytes:
    """The same bytes with the last bit of one turned."""
    raw = bytearray(der)
    raw[at] ^= 1
    return bytes(raw)


def swapped(*chain: bytes, who: Identity = DEVICE) -> Credential:
    """Other certificates for the same key."""
    return Credential(chain, who.key)


# Who vouches.
presenting("unknown-issuer", "a root of the store vouches for the leaf", bad("unknown-issuer"),
           device(issuer=STRANGER, label="a stranger's device"))
presenting("unknown-issuer-optional", "a certificate that is presented is verified in every mode",
           bad("unknown-issuer"), device(issuer=STRANGER, label="a stranger's device"),
           setup=OPTIONAL)
presenting("no-intermediate", "the intermediates are the client's to send", bad("unknown-issuer"),
           swapped(device(issuer=MIDDLE, label="device under 1").der,
                   who=device(issuer=MIDDLE, label="device under 1")))
presenting("self-signed", "a leaf that signs itself has no root", bad("unknown-issuer"),
           issue("a self-signed device", usage="client"))
presenting("a-strangers-root-sent", "a root that is sent is no root of the store",
           bad("unknown-issuer"), swapped(
               device(issuer=STRANGER, label="a stranger's device").der, STRANGER.der,
               who=device(issuer=STRANGER, label="a stranger's device")))
presenting("pinned-leaf", "a self-signed leaf in the store that is no CA vouches for nothing",
           bad("not-ca"), issue("a pinned device", usage="client"), where="SPEC §6.4",
           setup=replace(REQUIRED, roots=pem(issue("a pinned device", usage="client"))),
           basis="policy")
_OTHER_KEY = issue("a client root", "ed25519", ca=True, key=make_key("ed25519", "another"),
                   key_ids=False)
presenting("a-namesake-signed", "the issuer's key signed the leaf, not its namesake's",
           bad("bad-signature"), issue("a device of a namesake", issuer=_OTHER_KEY, usage="client",
                                       key_ids=False))
presenting("issuers-signature-flipped", "a bit of the issuer's signature is seen",
           bad("bad-signature"),
           swapped(flip(DEVICE.der, -1)))
presenting("serial-flipped", "a bit of what is signed is seen", bad("bad-signature"),
           swapped(flip(DEVICE.der, 15)))
presenting("intermediate-flipped", "an intermediate's signature is checked too",
           bad("bad-signature"), swapped(
               device(issuer=MIDDLE, label="device under 1").der, flip(MIDDLE.der, -1),
               who=device(issuer=MIDDLE, label="device under 1")))

# When (RFC 5280 §4.1.2.5).
presenting("expired", "a leaf ends with its notAfter", bad("expired"),
           device(label="an expired device", not_after=NOW - SECOND), timed=True)
presenting("not-yet-valid", "a leaf begins with its notBefore", bad("not-yet-valid"),
           device(label="a device of tomorrow", not_before=NOW + SECOND), timed=True)
presenting("intermediate-expired", "an intermediate ends with its notAfter", bad("expired"),
           device(label="under an expired one", issuer=authority(
               "an expired intermediate", "ed25519", issuer=CA, not_after=NOW - SECOND)),
           timed=True)
presenting("intermediate-not-yet-valid", "an intermediate begins with its notBefore",
           bad("not-yet-valid"), device(label="under one of tomorrow", issuer=authority(
               "an intermediate of tomorrow", "ed25519", issuer=CA, not_before=NOW + SECOND)),
           timed=True)
_OLD_ROOT = authority("an expired root", "ed25519", not_after=NOW - SECOND)
presenting("root-expired", "the root is judged like any CA: its end", bad("expired"),
           device(label="under an expired root", issuer=_OLD_ROOT),
           setup=replace(REQUIRED, roots=pem(_OLD_ROOT)), basis="policy")


@CLIENTS.case("clock-moved-past-the-leaf", "the later of serve's time and set_time counts",
              "SPEC §6", bad("expired"), "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    leaf = device(label="a device for a minute", not_after=NOW + 60 * SECOND)
    c = stage.connect(credential=leaf.credential).flight()
    stage.pass_time(61_000)
    return c.finish()


@CLIENTS.case("clock-moved-to-the-last-second", "validity counts whole seconds", "SPEC §6",
              bad("expired"), "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    leaf = device(label="a device for a minute", not_after=NOW + 60 * SECOND)
    c = stage.connect(credential=leaf.credential).flight()
    stage.pass_time(60_999)
    c.finish().echo().need("established")
    stage.pass_time(1)
    return stage.connect(credential=leaf.credential).flight().finish()


# What for (RFC 5280 §4.2.1.3, §4.2.1.9, §4.2.1.12).
presenting("for-servers-only", "a leaf with extended usages has clientAuth", bad("key-usage"),
           device(label="a server's leaf", usage="server"))
presenting("for-any-usage", "anyExtendedKeyUsage alone is refused", bad("key-usage"),
           device(label="a leaf for anything", usage="any"), basis="policy")
presenting("no-digital-signature", "a leaf with key usages has digitalSignature", bad("key-usage"),
           device(label="a leaf that agrees", key_usage="none"), basis="policy")
presenting("intermediate-for-servers", "an intermediate with extended usages has clientAuth",
           bad("key-usage"), device(label="under a server CA", issuer=issue(
               "a server CA", "ed25519", issuer=CA, ca=True, usage="server")), basis="policy")
_SERVER_ROOT = issue("a server root", "ed25519", ca=True, usage="server")
presenting("root-for-servers", "the root is judged like any CA: its usages", bad("key-usage"),
           device(label="under a server root", issuer=_SERVER_ROOT),
           setup=replace(REQUIRED, roots=pem(_SERVER_ROOT)), basis="policy")
presenting("intermediate-without-cert-sign", "an issuer with key usages has keyCertSign",
           bad("key-usage"), device(label="under one that signs no certificate", issuer=issue(
               "a CA that signs no certificate", "ed25519", issuer=CA, ca=True,
               key_usage="digital")))
presenting("intermediate-no-ca", "an issuer is a CA", bad("not-ca"),
           device(label="under a leaf", issuer=issue(
               "a leaf that issues", "ed25519", issuer=CA, ca=False, key_usage="sign")))
presenting("intermediate-without-constraints", "an issuer says that it is a CA", bad("not-ca"),
           device(label="under one without constraints", issuer=issue(
               "an issuer without constraints", "ed25519", issuer=CA, ca=None)))
presenting("path-too-long", "a path length bounds the intermediates below",
           bad("path-too-long"), device(label="far below", issuer=authority(
               "one CA too many", "ed25519", issuer=authority(
                   "a CA of length 0", "ed25519", issuer=CA, path_length=0))))
_SHORT_ROOT = authority("a root of length 0", "ed25519", path_length=0)
presenting("path-too-long-for-the-root", "the root is judged like any CA: its path length",
           bad("path-too-long"), device(label="below a short root", issuer=authority(
               "a CA below it", "ed25519", issuer=_SHORT_ROOT)),
           setup=replace(REQUIRED, roots=pem(_SHORT_ROOT)), basis="policy")

# Names (RFC 5280 §4.2.1.10).
_General = list[x509.GeneralName]
_NARROW: tuple[tuple[str, _General | None, _General | None, _General, x509.Name | None], ...] = (
    ("dns", [x509.DNSName("inside.example")], None, [x509.DNSName("outside.example")], None),
    ("dns-lookalike", [x509.DNSName("inside.example")], None,
     [x509.DNSName("notinside.example")], None),
    ("dns-second", [x509.DNSName("inside.example")], None,
     [x509.DNSName("a.inside.example"), x509.DNSName("outside.example")], None),
    ("dns-excluded", None, [x509.DNSName("hole.example")], [x509.DNSName("a.hole.example")], None),
    ("email", [x509.RFC822Name("inside.example")], None,
     [x509.RFC822Name("someone@outside.example")], None),
    ("address", [x509.IPAddress(ipaddress.ip_network("192.0.2.0/24"))], None,
     [x509.IPAddress(ipaddress.ip_address("198.51.100.1"))], None),
    ("directory", [x509.DirectoryName(make_name(None, "Inside"))], None, [],
     make_name("a device", "Outside")),
    ("subject-excluded", None, [x509.DirectoryName(make_name(None, "Outside"))], [],
     make_name("a device", "Outside")),
)
for _label, _permitted, _excluded, _sans, _subject in _NARROW:
    presenting(f"name-{_label}", f"name constraints hold for {_label.replace('-', ' ')} names",
               bad("name-constraint"), device(
                   label="a device elsewhere", sans=_sans, subject=_subject,
                   issuer=constrained(_permitted, _excluded, f"a CA narrow in {_label}")))

_MAILBOX = x509.RFC822Name._init_without_validation
# A constraint or a name that cannot be read: nothing is permitted, everything is excluded.
_UNREAD: tuple[tuple[str, str, _General | None, _General | None, _General, Basis], ...] = (
    ("base-dns", "an excluded base with a dot at its end is no host name", None,
     [x509.DNSName("hole.example.")], [x509.DNSName("hole.example")], "rfc"),
    ("base-email", "an excluded base without a local part is no mail address", None,
     [_MAILBOX("@hole.example")], [x509.RFC822Name("someone@other.example")], "rfc"),
    ("base-uri", "an excluded base that is a URI is no host", None,
     [x509.UniformResourceIdentifier("https://hole.example/")],
     [x509.UniformResourceIdentifier("https://hole.example/")], "rfc"),
    ("base-permitted", "a base that is no host name permits nothing",
     [x509.DNSName("inside..example")], None, [x509.DNSName("inside..example")], "rfc"),
    ("base-registered", "a form that is not processed is constrained",
     None, [x509.RegisteredID(ObjectIdentifier("1.2.3"))],
     [x509.RegisteredID(ObjectIdentifier("1.2.4"))], "policy"),
    ("email-of-two-hosts", "a mail name has one at sign outside of quotes",
     None, [x509.RFC822Name("hole.example")], [_MAILBOX("a@hole.example@other.example")], "rfc"),
    ("email-with-a-nul", "a mail name has no NUL", [x509.RFC822Name("inside.example")], None,
     [_MAILBOX("a\0b@inside.example")], "rfc"),
    ("email-with-a-space", "a mail name has no space", [x509.RFC822Name("inside.example")], None,
     [_MAILBOX("a b@inside.example")], "rfc"),
    ("email-not-ascii", "a mail name has no byte over 0x7F", [x509.RFC822Name("inside.example")],
     None, [_MAILBOX("\u00f8@inside.example")], "rfc"),
    ("uri-of-two-hosts", "a URI has one at sign before its host", None,
     [x509.UniformResourceIdentifier("hole.example")],
     [x509.UniformResourceIdentifier("https://a@hole.example@other.example/")], "rfc"),
    ("address-of-both-families", "an IPv4 address is not spelled as an IPv6 one", None,
     [x509.IPAddress(ipaddress.ip_network("192.0.2.0/24"))],
     [x509.IPAddress(ipaddress.ip_address("::ffff:192.0.2.1")),
      x509.IPAddress(ipaddress.ip_address("198.51.100.1"))], "policy"),
)
for _label, _rule, _permitted, _excluded, _sans, _basis in _UNREAD:
    presenting(f"name-{_label}", _rule, bad("name-constraint"), device(
        label="a device of an odd name", sans=_sans,
        issuer=constrained(_permitted, _excluded, f"a CA odd in {_label}")), basis=_basis)

# What is not understood, or too weak.
_UNKNOWN = x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4.5"), b"\x05\x00")
presenting("critical-unknown", "a critical extension is understood", bad("critical-extension"),
           device(label="a device with a secret", more=[(_UNKNOWN, True)]))
presenting("critical-unknown-above", "a critical extension of an intermediate is understood",
           bad("critical-extension"), device(label="under a CA with a secret", issuer=issue(
               "a CA with a secret", "ed25519", issuer=CA, ca=True, more=[(_UNKNOWN, True)])))
for _kind in ("p521", "ed448"):
    presenting(f"key-{_kind}", f"a client's key is not {_kind}", bad("unsupported-algorithm"),
               device(_kind), basis="policy")
for _bits in (1024, 5120):
    presenting(f"key-rsa{_bits}", f"an RSA key has 2048 to 4096 bits, not {_bits}",
               bad("key-size"), device(f"rsa{_bits}"), basis="policy")
_RSA_LEAF = device("rsa2048", label="a device of RSA")


def _by_ca(content: bytes) -> bytes:
    assert isinstance(CA.key, ed25519.Ed25519PrivateKey)
    return CA.key.sign(content)


def _with_sha1(content: bytes) -> bytes:
    key = make_key("rsa2048", "")
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.sign(content, padding.PKCS1v15(), hashes.SHA1())


presenting("key-of-pss-oid", "a key under the RSASSA-PSS name is not taken",
           bad("unsupported-algorithm"), swapped(
               forge.reissue(_RSA_LEAF, _by_ca, edit=forge.with_key_algorithm(
                   forge.RSA_KEY, forge.RSA_PSS_KEY)), who=_RSA_LEAF), basis="policy")
_RSA_ROOT = authority("a root of rsa2048", "rsa2048")
_SHA1 = issue("a device by SHA-1", issuer=_RSA_ROOT, usage="client")
presenting("signed-with-sha1", "a certificate is not signed with SHA-1",
           bad("unsupported-algorithm"),
           swapped(forge.reissue(_SHA1, _with_sha1, forge.SHA1_WITH_RSA), who=_SHA1),
           setup=replace(REQUIRED, roots=pem(_RSA_ROOT)))

# How much (SPEC §1.4).
_DEEP = MIDDLE
for _i in range(3):
    _DEEP = authority(f"CA {_i} further down", "ed25519", issuer=_DEEP)
presenting("four-intermediates", "a path has at most three intermediates", bad("path-too-long"),
           device(label="a device too deep", issuer=_DEEP), basis="policy")
presenting("six-certificates", "a client sends at most five certificates",
           bad("chain-too-large"), swapped(DEVICE.der, *[MIDDLE.der] * 5), basis="policy")
presenting("message-over-16384", "a client's Certificate has at most 16,384 bytes",
           bad("chain-too-large"), swapped(DEVICE.der, bytes(16384 - len(DEVICE.der))),
           basis="policy")
_CROWD = tuple(issue("one of many", "ed25519", ca=True, key=make_key("ed25519", f"one {i}"),
                     key_ids=False) for i in range(12))
_OUTSIDER = issue("one of many", "ed25519", ca=True, key=make_key("ed25519", "none of them"),
                  key_ids=False)
presenting("nine-signatures", "a chain costs at most eight signature checks",
           bad("chain-too-large"), issue("a device of a crowd", issuer=_OUTSIDER, usage="client",
                                         key_ids=False),
           setup=replace(REQUIRED, roots=pem(*_CROWD)), basis="policy")

# What is no certificate.
for _label, _der in (
    ("zeros", bytes(300)), ("one-byte", b"\x30"), ("empty-sequence", b"\x30\x00"),
    ("cut", DEVICE.der[:-1]), ("with-a-byte-more", DEVICE.der + b"\0"),
    ("text", b"-----BEGIN CERTIFICATE-----"),
):
    presenting(f"certificate-{_label}", f"a certificate is DER, not {_label.replace('-', ' ')}",
               bad("decode"), swapped(_der))
presenting("second-certificate-of-zeros", "the second certificate is DER too", bad("decode"),
           swapped(DEVICE.der, bytes(200)), basis="policy")
