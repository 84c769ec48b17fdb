"""What the client-certificate conversations are made of: authorities, devices, and steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from peers.liar import codes
from peers.liar.client import Client, Credential
from peers.liar.conversation import Basis, Connection, Setup, Stage
from peers.liar.ends import End, established, refused
from peers.liar.fault import check
from peers.liar.identities import Identity, authority, issue, make, pem

from .base import CLIENTS

#: Signed with Ed25519, so that a recording is the same everywhere.
CA = authority("a client root", "ed25519")
STRANGER = authority("a stranger's root", "ed25519")
MIDDLE = authority("an intermediate", "ed25519", issuer=CA)
REQUIRED = replace(CLIENTS.setup, client_auth=2, roots=pem(CA))
OPTIONAL = replace(REQUIRED, client_auth=1)
VERIFIED = established(verified=True)
ANONYMOUS = established(verified=False)
UNEXPECTED = refused("tls-unexpected-message", sealed=True)


def device(kind: str = "p256", issuer: Identity = CA, **options: Any) -> Identity:
    """A client's leaf; options are `issue`'s."""
    options.setdefault("usage", "client")
    return issue(options.pop("label", f"device {kind}"), kind, issuer=issuer, **options)


DEVICE = make([], issuer=CA, usage="client", label="device 17")


def same_identity(c: Connection, want: Identity | bytes) -> Connection:
    """The program is told of exactly the certificate that was sent, read by another parser."""
    told = c.stage.server.verified(c.transport)
    if told is None:
        check(not c.stage.server.own, "SPEC §6: a verified client is told of")
        return c
    der = want if isinstance(want, bytes) else want.der
    leaf = x509.load_der_x509_certificate(der)
    rule = "SPEC §6: what is told of a client is what was verified"
    check(told.certificate == der, rule, "certificate")
    check(told.subject == leaf.subject.public_bytes(), rule, "subject")
    serial = leaf.serial_number
    size = serial.bit_length() // 8 + 1
    check(told.serial == serial.to_bytes(size, "big"), rule, f"serial {told.serial.hex()}")
    check(told.fingerprint == hashlib.sha256(der).digest(), rule, "fingerprint")
    check(told.not_after == int(leaf.not_valid_after_utc.timestamp()), rule, "not_after")
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    check([v for _, v in told.san] == [_content(n) for n in names], rule, f"names {told.san}")
    return c


def _content(name: x509.GeneralName) -> bytes:
    """The content of a GeneralName."""
    if isinstance(name, x509.IPAddress):
        return bytes(name.value.packed)  # type: ignore[union-attr]
    if isinstance(name, x509.DirectoryName):
        return name.value.public_bytes()
    assert isinstance(name, x509.DNSName | x509.RFC822Name | x509.UniformResourceIdentifier)
    return name.value.encode()


def honest(
    name: str, rule: str, where: str, who: Identity | Credential, *, setup: Setup = REQUIRED,
    end: End = VERIFIED, basis: Basis = "rfc", apart: bool = False, cut: int = 16384,
    timed: bool = False, **options: Any,
) -> None:  # fmt: skip
    """A client that presents a certificate, and what the program is told of it.

    ``timed`` says that its dates are about the server's clock.
    """
    credential = who.credential if isinstance(who, Identity) else who

    def script(stage: Stage) -> Connection:
        stage.at_our_time(timed)
        c = stage.connect(credential=credential, **options).flight()
        c.finish(apart=apart, cut=cut).echo()
        return same_identity(c, credential.chain[0]) if c.client.state == "established" else c

    CLIENTS.add(name, rule, where, end, script, basis, setup)


def presenting(
    name: str, rule: str, end: End, who: Identity | Credential, *, where: str = "SPEC §6",
    setup: Setup = REQUIRED, basis: Basis = "rfc", timed: bool = False, **options: Any,
) -> None:  # fmt: skip
    """A client whose certificates are wrong, and whose signature is right."""
    credential = who.credential if isinstance(who, Identity) else who

    def script(stage: Stage) -> Connection:
        stage.at_our_time(timed)
        return stage.connect(credential=credential, **options).flight().finish()

    CLIENTS.add(name, rule, where, end, script, basis, setup)


def answering(
    name: str, rule: str, where: str, end: End, make_bytes: Callable[[Client], bytes], *,
    setup: Setup = REQUIRED, basis: Basis = "rfc", who: Identity = DEVICE,
) -> None:  # fmt: skip
    """Handshake bytes in the place of the client's flight, in one record."""

    def script(stage: Stage) -> Connection:
        c = stage.connect(credential=who.credential).flight()
        return c.tell(c.client.handshake_bytes(make_bytes(c.client)))

    CLIENTS.add(name, rule, where, end, script, basis, setup)


def verify(client: Client, **lies: Any) -> bytes:
    """An honest Certificate, and a CertificateVerify with lies."""
    first = client.add(client.certificate_message())
    return first + client.add(client.certificate_verify_message(**lies))


def names_of_size(total: int, count: int = 30) -> tuple[Identity, ...]:
    """Roots whose subject names make a certificate_authorities list of exactly ``total`` bytes."""
    roots: list[Identity] = []
    left = total
    for i in range(count):
        want = left // (count - i)
        left -= want
        roots.append(_root_of_name(i, want - 2))
    return tuple(roots)


def _root_of_name(number: int, size: int) -> Identity:
    oid = x509.NameOID.ORGANIZATIONAL_UNIT_NAME
    text = f"root {number} "
    while True:
        subject = x509.Name([x509.NameAttribute(oid, text)])
        short = size - len(subject.public_bytes())
        if not short:
            break
        text += "x" * short if short > 0 else ""
        text = text[:short] if short < 0 else text
    return issue(f"root {number}", "ed25519", subject=subject, ca=True)


def der_of(*identities: Identity) -> tuple[bytes, ...]:
    """The leaf of each identity, in DER."""
    return tuple(i.certificate.public_bytes(Encoding.DER) for i in identities)


SCHEMES = [0x0403, 0x0503, 0x0807, 0x0804, 0x0805, 0x0806]
SCHEMES_CERT = [*SCHEMES, codes.RSA_PKCS1_SHA256, codes.RSA_PKCS1_SHA384, codes.RSA_PKCS1_SHA512]
