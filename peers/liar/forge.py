"""Certificates that no builder makes: DER taken apart and put together again, signed anew."""

from __future__ import annotations

from collections.abc import Callable

from .identities import Identity

#: AlgorithmIdentifiers (RFC 3279, RFC 4055, RFC 8410).
RSA_KEY = bytes.fromhex("300d06092a864886f70d0101010500")
RSA_PSS_KEY = bytes.fromhex("300b06092a864886f70d01010a")
SHA1_WITH_RSA = bytes.fromhex("300d06092a864886f70d0101050500")
PSS_SHA256 = bytes.fromhex(
    "304106092a864886f70d01010a3034a00f300d06096086480165030402010500"
    "a11c301a06092a864886f70d010108300d06096086480165030402010500a203020120"
)

Signer = Callable[[bytes], bytes]


def tlv(tag: int, content: bytes) -> bytes:
    """A DER value: tag, length, content."""
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    raw = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(raw))) + raw + content


def parts(der: bytes) -> list[bytes]:
    """The elements inside a constructed value, each with its header."""
    content = der[header(der)[0] :]
    out, at = [], 0
    while at < len(content):
        start, size = header(content[at:])
        out.append(content[at : at + start + size])
        at += start + size
    return out


def header(der: bytes) -> tuple[int, int]:
    """Where the content starts, and how long it is."""
    if der[1] < 128:
        return 2, der[1]
    more = der[1] & 0x7F
    return 2 + more, int.from_bytes(der[2 : 2 + more], "big")


def reissue(
    identity: Identity,
    signer: Signer,
    algorithm: bytes | None = None,
    edit: Callable[[list[bytes]], list[bytes]] | None = None,
) -> bytes:
    """A leaf's DER with the fields of its TBSCertificate edited, under another algorithm.

    The fields are version, serial, algorithm, issuer, validity, subject, key, extensions.
    """
    tbs, was, _ = parts(identity.der)
    used = was if algorithm is None else algorithm
    fields = parts(tbs)
    fields[2] = used
    if edit is not None:
        fields = edit(fields)
    body = tlv(0x30, b"".join(fields))
    return tlv(0x30, body + used + tlv(0x03, b"\0" + signer(body)))


def with_key_algorithm(old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    """The same public key under another algorithm's name."""

    def edit(fields: list[bytes]) -> list[bytes]:
        algorithm, key = parts(fields[6])
        assert algorithm == old
        return [*fields[:6], tlv(0x30, new + key), *fields[7:]]

    return edit
