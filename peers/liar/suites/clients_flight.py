"""The client's Certificate and CertificateVerify, and what comes in their place (RFC 8446 §4.4)."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from collections.abc import Callable
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from peers.liar import codes
from peers.liar.client import Client, Credential
from peers.liar.conversation import Connection, Stage
from peers.liar.ends import answered, refused
from peers.liar.identities import authority, issue, make_key, pem
from peers.liar.proofs import SERVER_CONTEXT, pss_sign
from peers.liar.wire import message, u16, vec8, vec16, vec24

from .base import CLIENTS, SECOND
from .client_steps import (
    CA,
    DEVICE,
    OPTIONAL,
    REQUIRED,
    STRANGER,
    UNEXPECTED,
    answering,
    device,
    verify,
)

BAD_VERIFY = refused("tls-bad-certificate-verify", sealed=True)
SIGALG = refused("tls-server-client-sigalg", sealed=True)
DECODE = refused("tls-decode-error", sealed=True)
FINISHED = refused("tls-server-finished", sealed=True)
TOO_LARGE = refused("x509-chain-too-large", sealed=True)
NONE = Credential((), DEVICE.key)
EMPTY = message(codes.CERTIFICATE, b"\0\0\0\0")


def saying(data: bytes) -> Callable[[Client], bytes]:
    """A flight of these bytes and nothing else."""
    return lambda client: data


def entry_with(block: bytes) -> Callable[[Client], bytes]:
    """An honest Certificate whose leaf has this extension block."""
    return lambda client: client.certificate_message(extensions=[block])


def after_certificate(data: bytes) -> Callable[[Client], bytes]:
    """A flight of an honest Certificate and these bytes."""
    return lambda client: client.certificate_message() + data


def verifying(**lies: Any) -> Callable[[Client], bytes]:
    """A flight whose CertificateVerify lies so."""
    return lambda client: verify(client, **lies)


def salted(size: int) -> Callable[[bytes], bytes]:
    """RSA-PSS with SHA-256 and a salt of this size."""

    def signer(content: bytes) -> bytes:
        key = make_key("rsa2048", "")
        assert isinstance(key, rsa.RSAPrivateKey)
        return pss_sign(key, content, "sha256", size)

    return signer


# None at all.
CLIENTS.hello("required-without", "an empty list is refused where one is required", "SPEC §6",
              refused("tls-server-client-cert-required", sealed=True), setup=REQUIRED,
              basis="policy")
for _setup, _mode in ((REQUIRED, "required"), (OPTIONAL, "optional")):
    answering(f"finished-for-the-certificate-{_mode}",
              f"a request is answered with a Certificate, {_mode} or not", "RFC 8446 §4.4.2",
              UNEXPECTED, lambda c: c.finished_message(), setup=_setup)
answering("verify-for-the-certificate", "a CertificateVerify follows a Certificate",
          "RFC 8446 §4.4.3", UNEXPECTED, lambda c: c.certificate_verify_message())
answering("key-update-for-the-certificate", "no KeyUpdate comes before the Finished",
          "RFC 8446 §4.6.3", UNEXPECTED, lambda c: message(codes.KEY_UPDATE, b"\0"))
answering("hello-for-the-certificate", "no hello comes in the place of a Certificate",
          "RFC 8446 §A.2", UNEXPECTED, lambda c: Client("another").hello_message())
answering("verify-of-nothing", "an empty list has no CertificateVerify", "RFC 8446 §4.4.3",
          UNEXPECTED, lambda c: c.add(EMPTY) + c.certificate_verify_message(), setup=OPTIONAL)
answering("certificate-after-none", "an empty list is the last word", "RFC 8446 §4.4.2",
          UNEXPECTED, lambda c: c.add(EMPTY) + verify(c), setup=OPTIONAL)
answering("finished-for-the-verify", "a certificate is proved with a CertificateVerify",
          "RFC 8446 §4.4.3", UNEXPECTED,
          lambda c: c.add(c.certificate_message()) + c.finished_message())
answering("certificate-twice", "there is one Certificate", "RFC 8446 §4.4.2", UNEXPECTED,
          lambda c: c.certificate_message() * 2)
answering("verify-twice", "there is one CertificateVerify", "RFC 8446 §4.4.3", UNEXPECTED,
          lambda c: verify(c) + c.certificate_verify_message())
answering("verify-first", "a Certificate comes before its CertificateVerify", "RFC 8446 §4.4",
          UNEXPECTED, lambda c: c.certificate_verify_message() + c.certificate_message())
answering("end-of-early-data-for-the-certificate", "no early data was accepted that could end",
          "RFC 8446 §4.5", UNEXPECTED, lambda c: message(codes.END_OF_EARLY_DATA, b""))


@CLIENTS.case("data-for-the-certificate", "no data comes before a Certificate", "RFC 8446 §2",
              UNEXPECTED, setup=REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    return c.tell(c.client.send(b"early"))


@CLIENTS.case("data-for-the-verify", "no data comes before a CertificateVerify", "RFC 8446 §2",
              UNEXPECTED, setup=REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect(credential=DEVICE.credential).flight()
    return c.tell(c.client.handshake_bytes(c.client.certificate_message())).tell(
        c.client.send(b"early"))


for _name, _what, _description in (("fatal-alert", "an alert", codes.HANDSHAKE_FAILURE),
                                   ("user-canceled", "a user_canceled", codes.USER_CANCELED)):
    @CLIENTS.case(f"{_name}-clear-behind-the-certificate",
                  f"{_what} in the clear is nobody's behind a protected Certificate",
                  "RFC 8446 §6", UNEXPECTED, setup=REQUIRED)
    def _(stage: Stage, description: int = _description) -> Connection:
        c = stage.connect(credential=DEVICE.credential).flight()
        c.tell(c.client.handshake_bytes(c.client.add(c.client.certificate_message())))
        return c.tell(c.client.alert(description, sealed=False))


@CLIENTS.case("alert-for-the-certificate", "a client may refuse to answer", "RFC 8446 §6.2",
              refused("tls-alert"), setup=REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    return c.tell(c.client.alert(codes.ACCESS_DENIED))


for _kind, _body in ((codes.CERTIFICATE, b"\0\0\0\0"), (codes.CERTIFICATE_VERIFY, bytes(76))):
    @CLIENTS.case(f"{codes.MESSAGE_NAMES[_kind].replace('_', '-')}-later",
                  f"no {codes.MESSAGE_NAMES[_kind]} comes after the handshake", "RFC 8446 §4.6.2",
                  UNEXPECTED, setup=REQUIRED)
    def _(stage: Stage, kind: int = _kind, body: bytes = _body) -> Connection:
        c = stage.connect(credential=DEVICE.credential).honest()
        return c.tell(c.client.handshake_bytes(message(kind, body)))


# The Certificate's shape (§4.4.2).
answering("context", "the context is empty in the handshake", "RFC 8446 §4.4.2",
          refused("tls-server-illegal-parameter", sealed=True),
          lambda c: c.certificate_message(context=b"\x01"))
answering("context-of-255", "a long context is not empty either", "RFC 8446 §4.4.2",
          refused("tls-server-illegal-parameter", sealed=True),
          lambda c: c.certificate_message(context=bytes(255)))
for _name, _block in (("status", u16(codes.STATUS_REQUEST) + vec16(b"\x01\0\0\x01x")),
                      ("unknown", u16(0xFAFA) + vec16(b"")),
                      ("grease", u16(0x0A0A) + vec16(b"x"))):
    answering(f"entry-extension-{_name}",
              f"no {_name} extension was asked for beside a certificate",
              "RFC 8446 §4.4.2", refused("tls-unsupported-extension", sealed=True),
              entry_with(_block))
_ENTRY = vec24(DEVICE.der) + vec16(b"")
for _name, _rule, _body in (
    ("empty-body", "a Certificate has a context and a list", b""),
    ("context-alone", "a Certificate has a list", b"\0"),
    ("context-runs-over", "a context ends inside its message", vec8(b"", 200)),
    ("list-short", "the list is as long as it says", b"\0" + vec24(_ENTRY, len(_ENTRY) + 1)),
    ("list-and-more", "nothing follows the list", b"\0" + vec24(_ENTRY) + b"\0"),
    ("empty-certificate", "a certificate in the list is not empty",
     b"\0" + vec24(vec24(b"") + vec16(b""))),
    ("certificate-runs-over", "a certificate ends inside its list",
     b"\0" + vec24(vec24(DEVICE.der, 60000) + vec16(b""))),
    ("no-extension-block", "a certificate has its extensions", b"\0" + vec24(vec24(DEVICE.der))),
    ("extensions-run-over", "an entry's extensions end inside its list",
     b"\0" + vec24(vec24(DEVICE.der) + vec16(b"", 4))),
    ("half-an-extension", "an entry's extension is whole",
     b"\0" + vec24(vec24(DEVICE.der) + vec16(b"\0\x05\0"))),
):
    answering(f"certificate-{_name}", _rule, "RFC 8446 §4.4.2", DECODE,
              saying(message(codes.CERTIFICATE, _body)))
for _size in (16385, (1 << 24) - 1):
    answering(f"certificate-declares-{_size}",
              f"a Certificate is judged by its header alone: {_size} bytes", "SPEC §1.3, §1.4",
              TOO_LARGE, saying(message(codes.CERTIFICATE, b"", _size)),
              basis="policy")

# The CertificateVerify (§4.4.3).
answering("signature-flipped", "the signature is checked", "RFC 8446 §4.4.3", BAD_VERIFY,
          lambda c: verify(c, edit=lambda s: s[:-1] + bytes((s[-1] ^ 1,))))
answering("signature-empty", "an empty signature is wrong", "RFC 8446 §4.4.3", BAD_VERIFY,
          lambda c: verify(c, edit=lambda s: b""))
answering("signature-of-zeros", "a signature of zeros is wrong", "RFC 8446 §4.4.3", BAD_VERIFY,
          lambda c: verify(c, edit=lambda s: bytes(len(s))))
answering("signature-with-a-byte-more", "a signature is DER without a rest", "RFC 8446 §4.2.3",
          BAD_VERIFY, lambda c: verify(c, edit=lambda s: s + b"\0"))
answering("signature-before-the-certificate", "the signature covers the Certificate",
          "RFC 8446 §4.4.3", BAD_VERIFY, lambda c: verify(c, transcript=bytes(c.transcript)))
answering("signature-over-nothing", "the signature covers the handshake", "RFC 8446 §4.4.3",
          BAD_VERIFY, lambda c: verify(c, transcript=b""))
answering("the-servers-context", "a client signs in a client's words", "RFC 8446 §4.4.3",
          BAD_VERIFY, lambda c: verify(c, context=SERVER_CONTEXT))
answering("another-key", "the leaf's key signs", "RFC 8446 §4.4.3", BAD_VERIFY,
          lambda c: verify(c, key=make_key("p256", "another device")))
answering("a-stolen-certificate", "a server's certificate is not proved by another key",
          "RFC 8446 §4.4.3", BAD_VERIFY, lambda c: verify(c, key=SECOND.key))
for _key in ("p384", "ed25519", "rsa2048"):
    answering(f"signature-flipped-{_key}", f"a signature of {_key} is checked",
              "RFC 8446 §4.4.3", BAD_VERIFY,
              lambda c: verify(c, edit=lambda s: s[:-1] + bytes((s[-1] ^ 1,))), who=device(_key))
for _salt in (0, 20, 64):
    answering(f"pss-salt-of-{_salt}", f"a salt is as long as its digest, not {_salt} bytes",
              "RFC 8446 §4.2.3", BAD_VERIFY,
              verifying(signer=salted(_salt)), who=device("rsa2048"))

# Schemes: not asked for, or asked for and not the key's (§4.2.3).
for _scheme, _name in ((codes.RSA_PKCS1_SHA256, "rsa_pkcs1_sha256"),
                       (codes.RSA_PKCS1_SHA1, "rsa_pkcs1_sha1"), (codes.ECDSA_SHA1, "ecdsa_sha1"),
                       (codes.ECDSA_SECP521R1_SHA512, "ecdsa_secp521r1_sha512"),
                       (codes.RSA_PSS_PSS_SHA256, "rsa_pss_pss_sha256"), (codes.ED448, "ed448"),
                       (0x0000, "zero"), (0x0A0A, "grease")):
    answering(f"scheme-{_name.replace('_', '-')}", f"the scheme {_name} was not asked for",
              "RFC 8446 §4.4.3", SIGALG,
              verifying(scheme=_scheme))
for _key, _scheme, _name in (("p256", 0x0503, "P-384's"), ("p384", 0x0403, "P-256's"),
                              ("p256", 0x0807, "Ed25519's"), ("p256", 0x0804, "RSA's"),
                              ("p384", 0x0807, "Ed25519's"), ("p384", 0x0806, "RSA's"),
                              ("ed25519", 0x0403, "P-256's"), ("ed25519", 0x0503, "P-384's"),
                              ("ed25519", 0x0805, "RSA's"), ("rsa2048", 0x0403, "P-256's"),
                              ("rsa2048", 0x0503, "P-384's"), ("rsa2048", 0x0807, "Ed25519's")):
    answering(f"scheme-{_scheme:04x}-of-{_key}", f"a key of {_key} does not sign under {_name}",
              "RFC 8446 §4.4.3", SIGALG,
              verifying(scheme=_scheme), who=device(_key))
answering("scheme-of-another-hash", "the scheme's hash is the signature's", "RFC 8446 §4.2.3",
          BAD_VERIFY, verifying(scheme=0x0805, signer=salted(32)),
          who=device("rsa2048"))
for _name, _rule, _body in (
    ("empty", "a CertificateVerify has a scheme", b""),
    ("scheme-alone", "a CertificateVerify has a signature", u16(0x0403)),
    ("runs-over", "a signature ends inside its message", u16(0x0403) + vec16(bytes(70), 71)),
    ("and-more", "nothing follows the signature", u16(0x0403) + vec16(bytes(70)) + b"\0"),
):
    answering(f"verify-{_name}", _rule, "RFC 8446 §4.4.3", DECODE,
              after_certificate(message(codes.CERTIFICATE_VERIFY, _body)))
answering("verify-declares-2^24-1", "a CertificateVerify is judged by its header", "SPEC §1.3",
          DECODE, lambda c: c.certificate_message()
          + message(codes.CERTIFICATE_VERIFY, b"", (1 << 24) - 1), basis="policy")

# The Finished behind them (§4.4.4).
answering("finished-before-the-verify-was-covered", "the Finished covers the CertificateVerify",
          "RFC 8446 §4.4.4", FINISHED, lambda c: c.add(c.certificate_message())
          + c.certificate_verify_message() + c.finished_message())
answering("finished-without-the-certificate", "the Finished covers the Certificate",
          "RFC 8446 §4.4.4", FINISHED, lambda c: _uncovered(c))
answering("finished-wrong-after-a-certificate", "a proved key does not excuse a wrong Finished",
          "RFC 8446 §4.4.4", FINISHED,
          lambda c: verify(c) + c.finished_message(edit=lambda b: bytes(len(b))))
answering("finished-wrong-without-one", "an empty list is covered by the Finished",
          "RFC 8446 §4.4.4", FINISHED, lambda c: EMPTY + c.finished_message(), setup=OPTIONAL)


def _uncovered(client: Client) -> bytes:
    before = bytes(client.transcript)
    return verify(client) + client.finished_message(transcript=before)


@CLIENTS.case("flight-of-another-connection", "a flight is good for its own connection",
              "RFC 8446 §4.4.3", BAD_VERIFY, setup=REQUIRED)
def _(stage: Stage) -> Connection:
    first = stage.connect(credential=DEVICE.credential).flight()
    captured = b"".join(first.client.certificate_flight())
    captured += first.client.add(first.client.finished_message())
    c = stage.connect().flight()
    return c.tell(c.client.handshake_bytes(captured))


# The store, between the messages (SPEC §6).
@CLIENTS.case("store-replaced-before-the-certificate", "a chain is judged by the store of now",
              "SPEC §6", refused("x509-unknown-issuer", sealed=True), "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    c = stage.connect(credential=DEVICE.credential).flight()
    stage.call("trust_clients", pem(STRANGER))
    return c.finish()


for _name, _roots in (("by-another", pem(STRANGER)), ("by-itself", pem(CA))):
    @CLIENTS.case(f"store-replaced-{_name}",
                  f"a store replaced {_name.replace('-', ' ')} before the Finished ends it",
                  "SPEC §6", refused("tls-server-client-store-replaced", sealed=True), "policy",
                  REQUIRED)
    def _(stage: Stage, roots: bytes = _roots) -> Connection:
        c = stage.connect(credential=DEVICE.credential).flight()
        c.tell(c.client.handshake_bytes(b"".join(c.client.certificate_flight())))
        stage.call("trust_clients", roots)
        return c.tell(c.client.handshake_bytes(c.client.finished_message()))


# The program's calls (SPEC §6). A bundle is made when its conversation is played: twenty signatures
# of RSA-4096 would be half of what importing all conversations costs.
def _many(count: int) -> bytes:
    return pem(*(authority(f"root number {i}", "ed25519") for i in range(count)))


def _large() -> bytes:
    names = [f"{'a' * 60}{j}.example" for j in range(12)]
    return pem(*(issue(f"a large root {i}", "rsa4096", ca=True, names=names) for i in range(20)))


for _name, _rule, _bundle, _tag in (
    ("empty", "an empty bundle is refused", bytes, "tls-server-client-store"),
    ("text", "a bundle without a certificate is refused", lambda: b"hello",
     "tls-server-client-store"),
    ("a-key-among-them", "a block that is no certificate is refused",
     lambda: pem(CA) + CA.key_pem, "tls-server-client-store"),
    ("a-broken-block", "a certificate that does not parse is refused",
     lambda: pem(CA) + b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
     "tls-server-client-store"),
    ("cut-short", "a bundle cut short is refused", lambda: pem(CA, STRANGER)[:-40],
     "tls-server-client-store"),
    ("33-roots", "33 roots are too many", partial(_many, 33), "tls-server-client-store"),
    ("32-roots", "32 roots are taken", partial(_many, 32), ""),
    ("too-large", "more than 32,768 bytes are too many", _large, "tls-server-client-store"),
):
    def _trusting(stage: Stage, bundle: Callable[[], bytes] = _bundle) -> None:
        stage.call("trust_clients", bundle())

    CLIENTS.add(f"store-{_name}", _rule, "SPEC §1.4, §6", answered(_tag), _trusting, "policy",
                REQUIRED)
for _number in (1, 2):
    def _asking(stage: Stage, mode: int = _number) -> None:
        stage.call("client_auth_mode", mode)

    CLIENTS.add(f"mode-{_number}-without-a-store", f"mode {_number} needs a store", "SPEC §6",
                answered("tls-server-client-store"), _asking, "policy")


@CLIENTS.case("refused-store-changes-nothing", "after a bundle is refused the store is as it was",
              "SPEC §6", refused("x509-unknown-issuer", sealed=True,
                                 answers=("tls-server-client-store",)), "policy", REQUIRED)
def _(stage: Stage) -> Connection:
    stage.call("trust_clients", pem(STRANGER) + b"-----BEGIN CERTIFICATE-----\n")
    stranger = device(issuer=STRANGER, label="a stranger's device")
    return stage.connect(credential=stranger.credential).flight().finish()
