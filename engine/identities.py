"""The certificates and keys that the server shows, and which of them a server name gets.

An identity is a chain, its key and the names it serves. All of it is judged when it is added, so
that a stale or mismatched file fails at the start and not at the first client; what a refused call
was given is dropped, and nothing changes. The chain is sent as given: whether clients trust it is
the operator's affair, and the engine does not compare names with the leaf.

The order of the checks is the order of the lines of `_judge`. Limits are those of what is sent.

Keys. A key is parsed by OpenSSL and stays there; no call returns it, and nothing here prints it.
The table has a fixed number of entries, and only those in use hold an object: `stray_keys` counts
the others that do. An identity that was replaced lives on for the connections already answered
with it; OpenSSL overwrites a key when the last reference to it goes.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import warnings
from collections.abc import Sequence
from operator import index as as_int

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from .codepoints import CERTIFICATE
from .refusals import Refusal, Refused
from .x509 import certificates
from .x509.certificates import Certificate

MAX_IDENTITIES = 16
MAX_CHAIN = 16384
"""The certificate_list as it is sent, so that a flight fits the out buffer of an area."""
MAX_NAMES = 16384
MAX_NAME = 255
MAX_LABEL = 63

_HEDGED = ec.ECDSA(SHA256())
_DETERMINISTIC = ec.ECDSA(SHA256(), deterministic_signing=True)

_BEGIN = b"-----BEGIN"
_MARKER = re.compile(rb"^-----(BEGIN|END) ([^\r\n]*?)-----[ \t]*\r?$", re.MULTILINE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")


class Identity:
    """One chain, its key, and the names that it serves."""

    __slots__ = (
        "_key",
        "_public_key",
        "certificate_message",
        "fingerprint",
        "names",
        "not_after_ms",
    )

    def __init__(
        self,
        chain: list[bytes],
        names: tuple[bytes, ...],
        not_after_ms: int,
        key: ec.EllipticCurvePrivateKey,
        public_key: ec.EllipticCurvePublicKey,
    ) -> None:
        self.certificate_message = _certificate_message(chain)
        self.fingerprint = hashlib.sha256(chain[0]).digest()
        self.names = names
        self.not_after_ms = not_after_ms
        self._key = key
        self._public_key = public_key

    def sign(self, content: bytes | bytearray | memoryview, deterministic: bool) -> bytes:
        """The ECDSA P-256 SHA-256 signature of `content`, in DER.

        A nonce used twice gives the key away, so both ways avoid a bare random one: OpenSSL's
        own mixes the key and the content into it, and the deterministic one is RFC 6979's.
        """
        return self._key.sign(content, _DETERMINISTIC if deterministic else _HEDGED)

    def check(self, signature: bytes, content: bytes | bytearray | memoryview) -> bool:
        """Whether `signature` is the leaf's over `content`. One faulted signature can give the key
        away, so it is checked under the public key of the certificate before it is sent."""
        try:
            self._public_key.verify(signature, content, _HEDGED)
        except InvalidSignature:
            return False
        return True


class Identities:
    """Up to 16 identities, the first of which is the default."""

    __slots__ = ("_count", "_default", "_entries", "_exact", "_wild")

    def __init__(self) -> None:
        self._entries: list[Identity | None] = [None] * MAX_IDENTITIES
        self._count = 0
        self._default: tuple[Identity, bool] | None = None
        self._exact: dict[bytes, tuple[Identity, bool]] = {}
        self._wild: dict[bytes, tuple[Identity, bool]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, chain_pem: bytes, key_pem: bytes, names: Sequence[str], now_ms: int) -> int:
        """Add an identity and answer its id. Raises Refused, and then nothing has changed;
        TypeError for one name that is no list.
        """
        if self._count == MAX_IDENTITIES:
            raise Refused(Refusal.SERVER_IDENTITIES_FULL)
        which = self._count
        self._place(which, _judge(chain_pem, key_pem, names, now_ms))
        return which

    def replace(
        self,
        which: int,
        chain_pem: bytes,
        key_pem: bytes,
        now_ms: int,
        names: Sequence[str] | None = None,
    ) -> None:
        """Put a renewed identity in the place of another, under the same names unless new ones
        are given. Raises Refused, and then nothing has changed; IndexError for an id never given,
        TypeError for one name that is no list.
        """
        if not 0 <= which < self._count:
            raise IndexError("no such identity")
        old = self._entries[which]
        assert old is not None
        kept = [name.decode() for name in old.names] if names is None else names
        self._place(which, _judge(chain_pem, key_pem, kept, now_ms))

    def find(self, server_name: bytes | None) -> tuple[Identity, bool]:
        """The identity for a server name in lower case, and whether one of its names matched.

        An exact name comes before a wildcard, which stands for one label. A name that no identity
        has gets the default, never an error that would tell names apart. Two look-ups whatever the
        number of names, so the time tells little either. With no identity at all: Refused.
        """
        if server_name is not None:
            found = self._exact.get(server_name)
            if found is not None:
                return found
            label, _, parent = server_name.partition(b".")
            if label:
                found = self._wild.get(parent)
                if found is not None:
                    return found
        if self._default is None:
            raise Refused(Refusal.SERVER_CHAIN)
        return self._default

    def stray_keys(self) -> int:
        """How many entries not in use hold something. It is a scan, and always 0."""
        return MAX_IDENTITIES - self._count - self._entries[self._count :].count(None)

    def wipe(self) -> None:
        """Forget every identity. A key goes with the last connection that holds its identity."""
        self._hold([None] * MAX_IDENTITIES)

    def _place(self, which: int, identity: Identity) -> None:
        entries = self._entries.copy()
        entries[which] = identity
        self._hold(entries)

    def _hold(self, entries: list[Identity | None]) -> None:
        """These identities and the tables of their names, in one step: a call that breaks has
        changed nothing. The earlier identity keeps a name that two have."""
        exact: dict[bytes, tuple[Identity, bool]] = {}
        wild: dict[bytes, tuple[Identity, bool]] = {}
        held = [identity for identity in entries if identity is not None]
        for identity in held:
            for name in identity.names:
                if name.startswith(b"*."):
                    wild.setdefault(name[2:], (identity, True))
                else:
                    exact.setdefault(name, (identity, True))
        first = entries[0]
        default = None if first is None else (first, False)
        self._entries, self._count = entries, len(held)
        self._default, self._exact, self._wild = default, exact, wild


def _judge(chain_pem: bytes, key_pem: bytes, names: Sequence[str], now_ms: int) -> Identity:
    """Everything that is asked of an identity, in the order in which it is asked."""
    chain, leaf = _chain(chain_pem)
    not_after_ms = leaf.not_after * 1000
    served = _names(names)
    public_key = _leaf_key(leaf)
    key = _private_key(key_pem)
    if _point(key.public_key()) != _point(public_key):
        raise Refused(Refusal.SERVER_KEY_MISMATCH)
    if as_int(now_ms) > not_after_ms:
        raise Refused(Refusal.SERVER_CERT_EXPIRED)
    return Identity(chain, served, not_after_ms, key, public_key)


# The chain.


def _chain(pem: bytes) -> tuple[list[bytes], Certificate]:
    """The certificates of a PEM chain in DER, and the leaf.

    Text between the blocks is skipped. A block that is no certificate is refused, a private key
    above all: a file that holds one is not a file to send.
    """
    chain = _pem_certificates(pem)
    read = [certificates.read(der) for der in chain]
    leaf = read[0]
    if leaf is None or None in read:  # The parser raises nothing here: see `certificates`.
        raise Refused(Refusal.SERVER_CHAIN)
    return chain, leaf


def _pem_certificates(pem: bytes) -> list[bytes]:
    """The contents of the CERTIFICATE blocks of a text, which must hold one and no other block."""
    chain: list[bytes] = []
    sent = 0
    markers = list(_MARKER.finditer(pem))
    if not markers or len(markers) % 2 or pem.count(_BEGIN) * 2 != len(markers):
        raise Refused(Refusal.SERVER_CHAIN)
    for at in range(0, len(markers), 2):
        begin, end = markers[at], markers[at + 1]
        if begin.groups() != (b"BEGIN", b"CERTIFICATE") or end.groups() != (b"END", b"CERTIFICATE"):
            raise Refused(Refusal.SERVER_CHAIN)
        text = b"".join(pem[begin.end() : end.start()].split())
        try:
            der = binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            der = b""  # It is no certificate.
        chain.append(der)
        # Three bytes of length and two of no extensions (RFC 8446 §4.4.2).
        sent += len(der) + 5
        if sent > MAX_CHAIN:
            raise Refused(Refusal.SERVER_CHAIN)
    return chain


def _certificate_message(chain: list[bytes]) -> bytes:
    """The server's Certificate message (RFC 8446 §4.4.2): no context, no extensions."""
    entries = b"".join(len(der).to_bytes(3) + der + b"\x00\x00" for der in chain)
    body = b"\x00" + len(entries).to_bytes(3) + entries
    return bytes((CERTIFICATE,)) + len(body).to_bytes(3) + body


# The names.


def _names(names: Sequence[str]) -> tuple[bytes, ...]:
    """The names in lower case. Each is a host name, or `*.` and one of at least two labels: a
    wildcard over a whole top-level domain would match what nobody meant.
    """
    if isinstance(names, (str, bytes)):
        raise TypeError("names is a list of names, not one name")
    served = tuple(_name(name) for name in names)
    if sum(map(len, served)) > MAX_NAMES:
        raise Refused(Refusal.SERVER_NAMES)
    return served


def _name(name: str) -> bytes:
    if not isinstance(name, str) or not name.isascii() or len(name) > MAX_NAME:
        raise Refused(Refusal.SERVER_NAMES)
    name = name.lower()
    labels = name.split(".")
    least = 1
    if labels[0] == "*":
        labels = labels[1:]
        least = 2
    if len(labels) < least:
        raise Refused(Refusal.SERVER_NAMES)
    for label in labels:
        if len(label) > MAX_LABEL or _LABEL.fullmatch(label) is None:
            raise Refused(Refusal.SERVER_NAMES)
    return name.encode()


# The keys.


def _leaf_key(leaf: Certificate) -> ec.EllipticCurvePublicKey:
    """The leaf's public key, which must be P-256: what the parser does not know is not.

    It raises a dozen kinds for a key that it cannot read, and none of them leaves a call.
    """
    try:
        key = leaf.parsed.public_key()
    except Exception:
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Refused(Refusal.SERVER_KEY_TYPE)
    return key


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """The one key of a PEM text: PKCS#8 or SEC 1, not encrypted, P-256.

    A block of EC PARAMETERS, which OpenSSL writes before a SEC 1 key, is skipped, and so is other
    text. An exception of the parser is dropped here, unchained: it may know a piece of the key.
    """
    labels = [match[2] for match in _MARKER.finditer(pem) if match[1] == b"BEGIN"]
    keys = [label for label in labels if label != b"EC PARAMETERS"]
    # The count sees a marker that is not a line of its own, which the parser might take.
    if len(labels) != pem.count(_BEGIN) or keys not in ([b"PRIVATE KEY"], [b"EC PRIVATE KEY"]):
        raise Refused(Refusal.SERVER_KEY_FORMAT)
    refusal = Refusal.SERVER_KEY_TYPE
    try:
        # What it warns of decides nothing, and a program may have made errors of warnings.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            key = load_pem_private_key(pem, None)
        if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
            return key
    except UnsupportedAlgorithm:
        pass
    except Exception:
        refusal = Refusal.SERVER_KEY_FORMAT
    raise Refused(refusal)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
