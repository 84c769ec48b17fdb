"""Clients that present a certificate, or none where none is needed (RFC 8446 §4.4.2; SPEC §6)."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
import datetime
import ipaddress
from dataclasses import replace

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ObjectIdentifier

from peers.liar import codes, forge
from peers.liar.client import Credential
from peers.liar.conversation import Connection, Stage
from peers.liar.ends import established, refused, resumed
from peers.liar.fault import check
from peers.liar.identities import NOW, Identity, authority, issue, make_key, make_name, pem
from peers.liar.proofs import pss_sign

from .base import CLIENTS, add
from .client_steps import (
    ANONYMOUS,
    CA,
    DEVICE,
    MIDDLE,
    OPTIONAL,
    REQUIRED,
    SCHEMES,
    SCHEMES_CERT,
    STRANGER,
    VERIFIED,
    device,
    honest,
    names_of_size,
    same_identity,
)

HOUR = datetime.timedelta(hours=1)

# Keys and schemes (§4.2.3).
for _kind in ("p256", "p384", "ed25519", "rsa2048", "rsa3072", "rsa4096"):
    honest(f"key-{_kind}", f"a client's key may be {_kind}", "SPEC §6", device(_kind))
for _scheme, _hash in ((0x0804, "SHA-256"), (0x0805, "SHA-384"), (0x0806, "SHA-512")):
    _rsa = device("rsa2048").credential
    honest(f"rsa-pss-{_hash.lower()}", f"an RSA client may sign with RSA-PSS and {_hash}",
           "RFC 8446 §4.2.3", Credential(_rsa.chain, _rsa.key, _scheme))

# Signatures on the certificates (SPEC §6).
for _kind, _hash in (("p256", "sha256"), ("p256", "sha384"), ("p256", "sha512"), ("p384", "sha384"),
                     ("p384", "sha256"), ("rsa2048", "sha256"), ("rsa2048", "sha384"),
                     ("rsa2048", "sha512"), ("ed25519", "sha256")):
    _root = authority(f"a root of {_kind}", _kind)
    honest(f"issued-by-{_kind}-{_hash}", f"a certificate may be signed by {_kind} with {_hash}",
           "SPEC §6", issue(f"device of {_kind} {_hash}", issuer=_root, hash_name=_hash,
                            usage="client"), setup=replace(REQUIRED, roots=pem(_root)))
_RSA_ROOT = authority("a root of rsa2048", "rsa2048")


def _pss(content: bytes) -> bytes:
    key = make_key("rsa2048", "")
    assert isinstance(key, rsa.RSAPrivateKey)
    return pss_sign(key, content, "sha256")


_BY_PSS = forge.reissue(issue("a device by PSS", issuer=_RSA_ROOT, usage="client"), _pss,
                        forge.PSS_SHA256)
honest("issued-by-rsa-pss", "a certificate may be signed with RSA-PSS", "SPEC §6",
       Credential((_BY_PSS,), make_key("p256", "a device by PSS")),
       setup=replace(REQUIRED, roots=pem(_RSA_ROOT)))

# Chains.
_SECOND = authority("a second intermediate", "ed25519", issuer=MIDDLE)
_THIRD = authority("a third intermediate", "ed25519", issuer=_SECOND)
_UNDER = [device(issuer=i, label=f"device under {n}") for n, i in
          enumerate((MIDDLE, _SECOND, _THIRD), 1)]
for _i, _leaf in enumerate(_UNDER, 1):
    honest(f"intermediates-{_i}", f"a chain may have {_i} intermediates", "SPEC §6", _leaf)
honest("chain-with-its-root", "a chain that carries its root is accepted", "SPEC §6",
       Credential((*DEVICE.chain_der, CA.der), DEVICE.key))
honest("five-certificates", "a leaf, three intermediates and the root are five", "SPEC §1.4",
       Credential((*_UNDER[2].chain_der, CA.der), _UNDER[2].key), basis="policy")
honest("chain-out-of-order", "the intermediates may come in any order", "RFC 8446 §4.4.2",
       Credential((_UNDER[1].der, *reversed(_UNDER[1].chain_der[1:])), _UNDER[1].key))
honest("a-certificate-too-many", "a certificate that leads nowhere is left aside",
       "RFC 8446 §4.4.2", Credential((*_UNDER[0].chain_der, STRANGER.der), _UNDER[0].key))
honest("path-length-kept", "a path length counts the intermediates below it", "RFC 5280 §4.2.1.9",
       device(label="device below", issuer=authority(
           "an issuing CA", "ed25519", issuer=authority("a bounded CA", "ed25519", issuer=CA,
                                                        path_length=1), path_length=0)))
honest("path-length-and-self-issued", "self-issued intermediates do not count",
       "RFC 5280 §4.2.1.9",
       device(label="device of a self-issued one", issuer=issue(
           "a CA of length 0", "ed25519", ca=True, key=make_key("ed25519", "renewed"),
           issuer=issue("a CA of length 0", "ed25519", issuer=CA, ca=True, path_length=0))))
honest("two-roots", "a store may hold two roots", "SPEC §6", DEVICE,
       setup=replace(REQUIRED, roots=pem(STRANGER, CA)))
honest("a-device-that-is-its-own-ca", "a self-signed CA in the store vouches for itself",
       "SPEC §6.4", issue("a device and CA", "p256", ca=True, key_usage=None),
       setup=replace(REQUIRED, roots=pem(issue("a device and CA", "p256", ca=True,
                                               key_usage=None))))

# What a leaf may hold.
_SANS = [x509.DNSName("device.example"), x509.RFC822Name("device@example.org"),
         x509.UniformResourceIdentifier("urn:device:17"),
         x509.IPAddress(ipaddress.ip_address("192.0.2.7")),
         x509.DirectoryName(make_name("a directory name"))]
honest("every-kind-of-name", "every kind of name of a leaf is told", "SPEC §6",
       device(label="a device with names", sans=_SANS, serial=(0xFF << 120) + 5))
honest("no-names-no-subject", "a leaf may have neither names nor subject", "SPEC §6",
       device(label="a bare device", subject=x509.Name([])))
honest("no-extensions", "an absent extension restricts nothing", "SPEC §6",
       device(label="a device of few words", ca=None, key_usage=None, usage=None, key_ids=False))
honest("both-usages", "a leaf may be for servers and clients", "SPEC §6",
       device(label="a device of both", usage="both"))
honest("an-unknown-extension", "an unknown extension that is not critical is skipped",
       "RFC 5280 §4.2", device(label="a device with more", more=[
           (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4.5"), b"\x04\x00"), False)]))


def large(size: int) -> Identity:
    """A leaf of exactly ``size`` bytes of DER."""
    fill = size - 500
    while True:
        extension = x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4.5"), bytes(fill))
        leaf = device("ed25519", label=f"a device of {size}", more=[(extension, False)])
        if len(leaf.der) == size:
            return leaf
        fill += size - len(leaf.der)


for _size in (2048, 2049, 16000):
    honest(f"leaf-of-{_size}", f"a leaf of {_size} bytes is kept whole", "SPEC §2, §6",
           large(_size), basis="policy")
honest("first-second", "a leaf is valid from its first second", "RFC 5280 §4.1.2.5",
       device(label="a device of now", not_before=NOW), timed=True)
honest("last-second", "a leaf is valid to its last second", "RFC 5280 §4.1.2.5",
       device(label="a device of until now", not_after=NOW), timed=True)


def constrained(permitted: list[x509.GeneralName] | None,
                excluded: list[x509.GeneralName] | None, label: str) -> Identity:
    """An intermediate with name constraints."""
    return issue(label, "ed25519", issuer=CA, ca=True,
                 more=[(x509.NameConstraints(permitted, excluded), True)])


honest("names-permitted", "a name inside the constraints is accepted", "RFC 5280 §4.2.1.10",
       device(label="a device inside", names=("a.inside.example",),
              issuer=constrained([x509.DNSName("inside.example")], None, "a narrow CA")))
honest("names-not-excluded", "a name outside the exclusions is accepted", "RFC 5280 §4.2.1.10",
       device(label="a device elsewhere", names=("elsewhere.example",),
              issuer=constrained(None, [x509.DNSName("inside.example")], "a CA with a hole")))

# How it is sent.
honest("each-message-apart", "each message may have its own record", "RFC 8446 §5.1", DEVICE,
       apart=True)
honest("in-single-bytes", "a flight may come in records of one byte", "RFC 8446 §5.1", DEVICE,
       cut=1)
honest("after-a-retry", "a certificate is verified after a retry", "RFC 8446 §4.4.1", DEVICE,
       shares=())
honest("under-aes-256", "the signature covers a SHA-384 transcript", "RFC 8446 §4.4.3", DEVICE,
       suites=(0x1302,))
honest("under-chacha", "a certificate is verified under ChaCha20", "RFC 8446 §4.4.3", DEVICE,
       suites=(0x1303,), session_id=b"")
honest("optional-with-one", "a certificate is verified where it is optional", "SPEC §6", DEVICE,
       setup=OPTIONAL, basis="policy")


@CLIENTS.case("post-handshake-auth-offered", "post-handshake authentication is offered in vain",
              "SPEC §6", established(verified=True), "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect(credential=DEVICE.credential).hello(add(codes.POST_HANDSHAKE_AUTH))
    return same_identity(c.finish().echo(), DEVICE)


CLIENTS.hello("optional-without", "an empty list is accepted where one is optional", "SPEC §6",
              established(verified=False, asked=True), setup=OPTIONAL, basis="policy")
CLIENTS.hello("off", "without a mode nobody is asked", "SPEC §6",
              established(verified=False, asked=False), basis="policy")
CLIENTS.hello("off-with-a-store", "a store alone asks nobody", "SPEC §6",
              established(verified=False, asked=False),
              setup=replace(CLIENTS.setup, roots=pem(CA)), basis="policy")


# What is asked for (§4.3.2).
@CLIENTS.case("what-is-asked-for", "the request lists the schemes and the authorities",
              "SPEC §6", ANONYMOUS, "policy", OPTIONAL)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    request = c.client.request
    assert request is not None
    check(request.schemes == SCHEMES, "SPEC §6: signature_algorithms")
    check(request.schemes_cert == SCHEMES_CERT, "SPEC §6: signature_algorithms_cert")
    check(request.authorities == [CA.certificate.subject.public_bytes()], "SPEC §6: authorities")
    return c.finish().echo()


for _size in (8192, 8193):
    _roots = names_of_size(_size)

    @CLIENTS.case(f"authorities-of-{_size}",
                  f"the authorities' names are listed up to 8,192 bytes: {_size}",
                  "SPEC §1.4", ANONYMOUS, "policy", replace(OPTIONAL, roots=pem(*_roots)))
    def _(stage: Stage, listed: bool = _size == 8192, count: int = len(_roots)) -> Connection:
        c = stage.connect().flight()
        assert c.client.request is not None
        check(len(c.client.request.authorities) == (count if listed else 0),
              "SPEC §1.4: CA names in the request", str(len(c.client.request.authorities)))
        return c.finish().echo()


# The store while a connection is under way (SPEC §6).
def trust(stage: Stage, *roots: Identity) -> str:
    """Replace the server's store with these roots; the tag when it is refused."""
    return stage.call("trust_clients", pem(*roots))


@CLIENTS.case("store-replaced-after-it", "a verified connection outlives the store", "SPEC §6",
              VERIFIED, "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect(credential=DEVICE.credential).honest()
    trust(stage, STRANGER)
    return same_identity(c.echo(), DEVICE)


@CLIENTS.case("store-widened-midway", "a chain is judged by the store of its moment", "SPEC §6",
              VERIFIED, "policy", replace(REQUIRED, roots=pem(STRANGER)))
def _(stage: Stage) -> Connection:
    c = stage.connect(credential=DEVICE.credential).flight()
    trust(stage, CA)
    return same_identity(c.finish().echo(), DEVICE)


@CLIENTS.case("store-refused-midway", "a replacement that is refused changes nothing", "SPEC §6",
              established(verified=True, answers=("tls-server-client-store",)), "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect(credential=DEVICE.credential).flight()
    first = b"".join(c.client.certificate_flight())
    c.tell(c.client.handshake_bytes(first))
    stage.call("trust_clients", b"no certificate")
    last = c.client.handshake_bytes(c.client.add(c.client.finished_message()))
    c.client.establish()
    return same_identity(c.tell(last).echo(), DEVICE)


@CLIENTS.case("mode-changed-midway", "a connection keeps the mode it was served with", "SPEC §6",
              established(verified=False), "policy", OPTIONAL)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    stage.call("client_auth_mode", 2)
    return c.finish().echo()


# With tickets (SPEC §5, §6).
TICKETED = replace(OPTIONAL, tickets=2, ticket_keys=(bytes(range(32)),))


@CLIENTS.case("no-ticket-for-a-certificate", "a client with a certificate earns no ticket",
              "SPEC §5", established(verified=True, tickets=0), "policy", TICKETED)
def _(stage: Stage) -> Connection:
    return stage.connect(credential=DEVICE.credential).honest()


@CLIENTS.case("a-ticket-without-a-certificate", "an anonymous client's ticket resumes, unasked",
              "RFC 8446 §4.3.2", resumed(verified=False, asked=False, tickets=2), "rfc", TICKETED)
def _(stage: Stage) -> Connection:
    ticket = stage.connect().honest().client.tickets[0]
    return stage.connect(tickets=[ticket], credential=DEVICE.credential).honest()


@CLIENTS.case("a-ticket-where-one-is-required", "a ticket does not stand for a certificate",
              "SPEC §5", established("auth", verified=True, asked=True), "policy", TICKETED)
def _(stage: Stage) -> Connection:
    ticket = stage.connect().honest().client.tickets[0]
    stage.call("client_auth_mode", 2)
    c = stage.connect(tickets=[ticket], credential=DEVICE.credential).honest()
    return same_identity(c, DEVICE)


@CLIENTS.case("a-ticket-and-nothing-where-one-is-required", "a ticket alone is not enough",
              "SPEC §5", refused("tls-server-client-cert-required", True, "auth"), "policy",
              TICKETED)
def _(stage: Stage) -> Connection:
    ticket = stage.connect().honest().client.tickets[0]
    stage.call("client_auth_mode", 2)
    return stage.connect(tickets=[ticket]).flight().finish()
