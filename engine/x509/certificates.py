"""One certificate as path validation sees it: what it says, and whether it may play a part at all.

A certificate is looked at in two steps. `read` decodes it and finds its parts; `study` reads the
extensions and the key, which costs most of the time and is done only for a certificate that a path
may need. `cryptography` decides what parses; `der` finds the bytes.

Whatever the parser raises is `x509-decode` and stays inside (`read` gives None, `study` leaves the
refusal in `fault`). The order of the faults is fixed, so a certificate with two of them always has
the same tag: decoding, critical extensions, the signature's algorithm, the key's kind, its size.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ..refusals import Refusal
from . import der, extensions, name_constraints

PublicKey = EllipticCurvePublicKey | RSAPublicKey | Ed25519PublicKey

# The kinds of key. The two curves are one family where certificates are signed and two where TLS
# binds a scheme to a curve (RFC 8446 §4.2.3).
P256: Final = "P-256"
P384: Final = "P-384"
RSA: Final = "RSA"
ED25519: Final = "Ed25519"

# An RSA key outside these sizes is too weak, or so large that a hostile chain buys much work with
# few bytes. So does a public exponent of thousands of bits, which no honest key has.
RSA_BITS = range(2048, 4097)
RSA_EXPONENT_BITS = 64

_SHA2: Final = (
    (hashes.SHA256(), "608648016503040201"),
    (hashes.SHA384(), "608648016503040202"),
    (hashes.SHA512(), "608648016503040203"),
)


def _tlv(tag: int, *parts: bytes) -> bytes:
    contents = b"".join(parts)
    return bytes((tag, len(contents))) + contents


def _oid(text: str) -> bytes:
    return _tlv(der.OBJECT_IDENTIFIER, bytes.fromhex(text))


_NULL = b"\x05\x00"
_RSA_ENCRYPTION = _tlv(der.SEQUENCE, _oid("2a864886f70d010101"), _NULL)

# The AlgorithmIdentifier of each kind of key, byte for byte. Parameters are part of it, so an RSA
# key bound to RSASSA-PSS (RFC 4055 §3.1), an explicit curve and another curve are none.
KEY_KINDS: Final = {
    _tlv(der.SEQUENCE, _oid("2a8648ce3d0201"), _oid("2a8648ce3d030107")): P256,
    _tlv(der.SEQUENCE, _oid("2a8648ce3d0201"), _oid("2b81040022")): P384,
    _RSA_ENCRYPTION: RSA,
    _tlv(der.SEQUENCE, _oid("2b6570")): ED25519,
}

# The family of a key, and what its `verify` is given behind the signature and what was signed.
_Signature = tuple[str, tuple[Any, ...]]


def _signatures() -> dict[bytes, _Signature]:
    """The AlgorithmIdentifier of each accepted signature on a certificate.

    RSA is taken with its parameters absent or NULL (RFC 4055 §5), and the hashes of
    RSASSA-PSS too (§2.1); its salt is as long as the digest, as TLS has it.
    """
    table: dict[bytes, _Signature] = {_tlv(der.SEQUENCE, _oid("2b6570")): (ED25519, ())}
    mgf1 = _oid("2a864886f70d010108")
    for i, (algorithm, digest) in enumerate(_SHA2):
        ecdsa = _oid("2a8648ce3d0403%02x" % (2 + i))
        table[_tlv(der.SEQUENCE, ecdsa)] = (P256, (ECDSA(algorithm),))
        pkcs1 = _oid("2a864886f70d0101%02x" % (11 + i))
        pss = PSS(MGF1(algorithm), algorithm.digest_size)
        for null in (b"", _NULL):
            table[_tlv(der.SEQUENCE, pkcs1, null)] = (RSA, (PKCS1v15(), algorithm))
            for other in (b"", _NULL):
                parameters = _tlv(
                    der.SEQUENCE,
                    _tlv(0xA0, _tlv(der.SEQUENCE, _oid(digest), null)),
                    _tlv(0xA1, _tlv(der.SEQUENCE, mgf1, _tlv(der.SEQUENCE, _oid(digest), other))),
                    _tlv(0xA2, _tlv(der.INTEGER, bytes([algorithm.digest_size]))),
                )
                oid = _oid("2a864886f70d01010a")
                table[_tlv(der.SEQUENCE, oid, parameters)] = (RSA, (pss, algorithm))
    return table


SIGNATURES: Final = _signatures()

_NONE = extensions.Extensions()


class Certificate:
    """A decoded certificate. What stands below `studied` is known only after `study`."""

    __slots__ = (
        "constraints",
        "der",
        "extensions",
        "fault",
        "key",
        "kind",
        "not_after",
        "not_before",
        "parsed",
        "parts",
        "studied",
    )

    def __init__(self, data: bytes, parts: der.Outline, parsed: x509.Certificate) -> None:
        self.der = data
        self.parts = parts
        self.parsed = parsed
        self.not_before = int(parsed.not_valid_before_utc.timestamp())
        self.not_after = int(parsed.not_valid_after_utc.timestamp())
        self.studied = False
        self.fault: Refusal | None = None
        self.key: PublicKey | None = None
        self.kind = ""
        self.extensions = _NONE
        self.constraints: name_constraints.Constraints | None = None

    @property
    def self_issued(self) -> bool:
        """Whether subject and issuer are the same, byte for byte (RFC 5280 §3.2)."""
        return self.parts.subject == self.parts.issuer

    def study(self, anchor: bool = False) -> Refusal | None:
        """Read the extensions and the key, once; answer what is wrong with the certificate itself.

        An `anchor` stands in the store: its own signature proves nothing and is not judged.
        """
        if not self.studied:
            self.studied = True
            try:
                self._read_subject()
                self.fault = self._extensions() or self._key(anchor)
            except Exception:
                # The parser raises a dozen kinds for an extension or a key that it cannot read.
                self.fault = Refusal.X509_DECODE
        return self.fault

    def judge_time(self, now: int) -> Refusal | None:
        """Validity is exact, both ends included (RFC 5280 §4.1.2.5)."""
        if now < self.not_before:
            return Refusal.X509_NOT_YET_VALID
        return Refusal.X509_EXPIRED if now > self.not_after else None

    def signed_by(self, issuer: Certificate) -> bool:
        """Whether the issuer's key, which fits, verifies the signature on this certificate."""
        _, how = SIGNATURES[self.parts.algorithm]
        assert issuer.key is not None
        try:
            issuer.key.verify(self.parts.signature, self.parts.tbs, *how)
        except Exception:
            # It is not the key's; or the library cannot compute with the key, of an even modulus
            # say.
            return False
        return True

    def fits(self, issuer: Certificate) -> bool:
        """Whether the issuer's key can have made a signature of this algorithm."""
        family = P256 if issuer.kind == P384 else issuer.kind
        return SIGNATURES[self.parts.algorithm][0] == family

    def names(self) -> name_constraints.Names:
        """The names that name constraints are about."""
        return name_constraints.names_of(self.parts.subject, self.parts.extensions)

    def _read_subject(self) -> None:
        """The subject is shown to programs, so it must parse, which the parser leaves for later.

        The issuer is the subject of the next certificate on the path.
        """
        if not der.plain_name(self.parts.subject):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _ = self.parsed.subject

    def _extensions(self) -> Refusal | None:
        raw = self.parts.extensions
        found = extensions.common(raw)
        if found is None:
            # A name in an extension may be worth a warning, for a country of three letters.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = extensions.read(self.parsed)
        self.extensions = found
        if found.constrained:
            limits = der.extension(raw, der.NAME_CONSTRAINTS)
            assert limits is not None
            self.constraints = name_constraints.read(limits)
        return Refusal.X509_CRITICAL_EXTENSION if found.unknown else None

    def _key(self, anchor: bool) -> Refusal | None:
        parts = self.parts
        kind = KEY_KINDS.get(parts.key_algorithm)
        if kind is None or not (anchor or parts.algorithm in SIGNATURES):
            return Refusal.X509_UNSUPPORTED_ALGORITHM
        # Both copies of the algorithm must agree (RFC 5280 §4.1.1.2): the outer one is not
        # signed.
        if parts.inner_algorithm != parts.algorithm:
            return Refusal.X509_DECODE
        key = self.parsed.public_key()
        if isinstance(key, RSAPublicKey):
            exponent = key.public_numbers().e
            # An exponent of 1 would let anybody sign, and an even one has no private key.
            if (
                key.key_size not in RSA_BITS
                or exponent.bit_length() > RSA_EXPONENT_BITS
                or exponent < 3
                or exponent % 2 == 0
            ):
                return Refusal.X509_KEY_SIZE
        else:
            assert isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey)
        self.key = key
        self.kind = kind
        return None


def read(data: bytes) -> Certificate | None:
    """Decode one certificate; None when it is not one."""
    try:
        parts = der.outline(data)
        if _silent(parts):
            parsed = x509.load_der_x509_certificate(data)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parsed = x509.load_der_x509_certificate(data)
        return Certificate(data, parts, parsed)
    except Exception:
        return None


def _silent(parts: der.Outline) -> bool:
    """Whether the parser has nothing to warn about.

    It warns of a serial that is not positive and of parameters where ECDSA has none, and a program
    may have turned warnings into errors: the outcome of a handshake must not hang on that. Silence
    costs 5 µs and touches the process's filters, so it is kept for the certificates that need it.
    """
    serial = parts.serial
    return (
        serial[0] < 0x80
        and serial != b"\x00"
        and parts.algorithm in SIGNATURES
        and parts.inner_algorithm in SIGNATURES
    )
