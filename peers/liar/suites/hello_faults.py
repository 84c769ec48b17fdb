"""A ClientHello that does not parse, repeats, lacks or contradicts itself (RFC 8446 §4)."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from dataclasses import replace

from peers.liar import codes, hello
from peers.liar.conversation import Connection, Stage
from peers.liar.ends import refused
from peers.liar.record import record
from peers.liar.shares import make_share
from peers.liar.wire import message, u16, u32, vec8, vec16

from .base import (
    GREASE,
    HANDSHAKE,
    OTHER_SHARES,
    add,
    again,
    append,
    both,
    change,
    drop,
    edit_body,
    pad_to,
    put,
    raw_vec,
    set_field,
    share_entry,
)

FORMAT = refused("tls-server-client-hello-format")
ILLEGAL = refused("tls-server-illegal-parameter")
REPEAT = refused("tls-server-extension-repeat")
MISSING = refused("tls-server-missing-extension")
VERSION = refused("tls-server-version")
case = HANDSHAKE.hello

# Versions (§4.2.1, §D.2).
case("no-versions", "without supported_versions there is no TLS 1.3", "RFC 8446 §4.2.1",
     VERSION, drop(codes.SUPPORTED_VERSIONS))
case("only-tls-1.2", "supported_versions names 0x0304", "RFC 8446 §4.2.1",
     VERSION, put(codes.SUPPORTED_VERSIONS, hello.supported_versions(0x0303, 0x0302)))
case("only-a-draft", "a draft's number is not TLS 1.3", "RFC 8446 §4.2.1.1",
     VERSION, put(codes.SUPPORTED_VERSIONS, hello.supported_versions(0x7F1C)))
case("only-grease-versions", "a GREASE version is no version", "RFC 8701 §3.1",
     VERSION, put(codes.SUPPORTED_VERSIONS, hello.supported_versions(GREASE)))
case("no-extensions-at-all", "a hello that ends behind compression is an older TLS",
     "RFC 8446 §4.1.2", VERSION, set_field("raw_extensions", b""))
case("empty-extension-block", "an empty block has no supported_versions", "RFC 8446 §4.2.1",
     VERSION, set_field("raw_extensions", b"\0\0"))
case("ssl-3", "legacy_version 0x0300 is refused", "RFC 8446 §D.5",
     VERSION, set_field("version", 0x0300), basis="policy")

# Nothing in common (§4.1.1).
case("no-common-suite", "a suite must be common", "RFC 8446 §4.1.1",
     refused("tls-server-suite"), suites=(0x1304, 0x1305, 0xC02B))
case("no-common-group", "a group must be common", "RFC 8446 §4.1.1", refused("tls-server-group"),
     both(put(codes.SUPPORTED_GROUPS, hello.code_list([GREASE, 0x1A1A])),
          put(codes.KEY_SHARE, hello.key_shares([]))))
case("no-common-group-with-shares", "shares of unknown groups make no group common",
     "RFC 8446 §4.2.8", refused("tls-server-group"),
     both(put(codes.SUPPORTED_GROUPS, hello.code_list([0x1A1A, GREASE])),
          put(codes.KEY_SHARE, hello.key_shares([(0x1A1A, bytes(133)), (GREASE, b"x")]))))
case("no-common-scheme", "a signature scheme must fit the identity", "RFC 8446 §4.4.2.2",
     refused("tls-server-sigalg"), schemes=(codes.ED25519, codes.RSA_PSS_RSAE_SHA256))
case("only-sha1-scheme", "ECDSA with SHA-1 signs no TLS 1.3 handshake", "RFC 8446 §4.2.3",
     refused("tls-server-sigalg"), schemes=(codes.ECDSA_SHA1,))
case("no-common-protocol", "a protocol must be common when both name some", "RFC 7301 §3.2",
     refused("tls-server-alpn"), alpn=(b"h3",),
     setup=replace(HANDSHAKE.setup, alpn=("h2", "echo")))

# The fixed part (§4.1.2).
case("empty-suites", "cipher_suites has at least one", "RFC 8446 §4.1.2", FORMAT, suites=())
case("odd-suites", "cipher_suites is a list of pairs", "RFC 8446 §4.1.2", FORMAT,
     edit_body(lambda b: b[:67] + u16(7) + b[69:76] + b[75:]))
case("long-session-id", "legacy_session_id has at most 32 bytes", "RFC 8446 §4.1.2", FORMAT,
     set_field("session_id", bytes(33)))
case("no-compression-list", "legacy_compression_methods has one byte", "RFC 8446 §4.1.2", FORMAT,
     set_field("compressions", b""))
case("deflate", "compression is null", "RFC 8446 §4.1.2", ILLEGAL,
     set_field("compressions", b"\x01"))
case("deflate-and-null", "compression is null alone", "RFC 8446 §4.1.2", ILLEGAL,
     set_field("compressions", b"\x01\x00"))
case("null-twice", "compression is exactly one byte", "RFC 8446 §4.1.2", ILLEGAL,
     set_field("compressions", b"\x00\x00"))
case("cut-short", "a hello holds what it declares", "RFC 8446 §3", FORMAT,
     edit_body(lambda b: b[:-1]))
case("cut-in-the-random", "a hello has a whole random", "RFC 8446 §4.1.2", FORMAT,
     edit_body(lambda b: b[:20]))
case("empty-body", "a hello has a body", "RFC 8446 §4.1.2", FORMAT, edit_body(lambda b: b""))
case("bytes-behind-the-extensions", "nothing follows the extensions", "RFC 8446 §4.1.2", FORMAT,
     edit_body(append(b"\0")))
case("block-shorter-than-said", "the extension block has its declared length", "RFC 8446 §4.2",
     FORMAT, set_field("raw_extensions", b"\xff\xff" + bytes(8)))
case("extension-runs-over", "an extension ends inside its block", "RFC 8446 §4.2", FORMAT,
     set_field("raw_extensions", vec16(u16(GREASE) + raw_vec(b"abc", 4))))
case("half-an-extension-header", "an extension has a type and a length", "RFC 8446 §4.2", FORMAT,
     set_field("raw_extensions", vec16(u16(GREASE) + vec16(b"") + b"\0\x2b\0")))

# Each extension's own shape. A trailing byte in a known one is a format error (RFC 9846).
for _name, _kind in (
    ("server-name", codes.SERVER_NAME),
    ("versions", codes.SUPPORTED_VERSIONS),
    ("groups", codes.SUPPORTED_GROUPS),
    ("schemes", codes.SIGNATURE_ALGORITHMS),
    ("shares", codes.KEY_SHARE),
    ("modes", codes.PSK_KEY_EXCHANGE_MODES),
    ("protocols", codes.ALPN),
):
    case(f"trailing-byte-in-{_name}", f"nothing is left over inside the {_name} extension",
         "RFC 9846 §4.2", FORMAT, change(_kind, append(b"\0")), alpn=(b"echo",))
    case(f"no-body-in-{_name}", f"the {_name} extension has a body", "RFC 8446 §4.2", FORMAT,
         put(_kind, b""), alpn=(b"echo",))
    case(f"short-list-in-{_name}", f"the list of the {_name} extension is as long as it says",
         "RFC 8446 §3.4", FORMAT,
         change(_kind, lambda b: b[:-1]), alpn=(b"echo",))

case("empty-server-name-list", "server_name holds a name", "RFC 6066 §3", FORMAT,
     put(codes.SERVER_NAME, b"\0\0"))
case("empty-host-name", "a host name is not empty", "RFC 6066 §3", FORMAT,
     put(codes.SERVER_NAME, hello.server_name("")))
case("two-host-names", "server_name holds one name of a type", "RFC 6066 §3", ILLEGAL,
     put(codes.SERVER_NAME, hello.server_name("server.example", "two.example")))
case("empty-versions", "supported_versions is not empty", "RFC 8446 §4.2.1", FORMAT,
     put(codes.SUPPORTED_VERSIONS, b"\0"))
case("odd-versions", "supported_versions is a list of pairs", "RFC 8446 §4.2.1", FORMAT,
     put(codes.SUPPORTED_VERSIONS, vec8(b"\x03\x04\x03")))
case("empty-groups", "supported_groups is not empty", "RFC 8446 §4.2.7", FORMAT,
     put(codes.SUPPORTED_GROUPS, vec16(b"")))
case("odd-groups", "supported_groups is a list of pairs", "RFC 8446 §4.2.7", FORMAT,
     put(codes.SUPPORTED_GROUPS, vec16(b"\0\x1d\0")))
case("empty-schemes", "signature_algorithms is not empty", "RFC 8446 §4.2.3", FORMAT,
     put(codes.SIGNATURE_ALGORITHMS, vec16(b"")))
case("odd-schemes", "signature_algorithms is a list of pairs", "RFC 8446 §4.2.3", FORMAT,
     put(codes.SIGNATURE_ALGORITHMS, vec16(b"\x04\x03\x04")))
case("empty-share", "a key share has at least one byte", "RFC 8446 §4.2.8", FORMAT,
     put(codes.KEY_SHARE, hello.key_shares([(codes.X25519, b"")])))
case("empty-unknown-share", "a share of an unknown group has a byte too", "RFC 8446 §4.2.8", FORMAT,
     put(codes.KEY_SHARE, hello.key_shares([(GREASE, b"")])))
case("share-runs-over", "a share ends inside its list", "RFC 8446 §4.2.8", FORMAT,
     put(codes.KEY_SHARE, vec16(u16(codes.X25519) + raw_vec(bytes(32), 33))))
case("half-a-share-header", "a share has a group and a length", "RFC 8446 §4.2.8", FORMAT,
     put(codes.KEY_SHARE, vec16(share_entry(GREASE, b"x") + b"\0\x1d\0")))
case("empty-protocol-list", "ALPN names a protocol", "RFC 7301 §3.1", FORMAT,
     put(codes.ALPN, vec16(b"")))
case("empty-protocol", "a protocol's name is not empty", "RFC 7301 §3.1", FORMAT,
     put(codes.ALPN, hello.protocol_names(b"h2", b"")))
case("protocol-runs-over", "a protocol's name ends inside its list", "RFC 7301 §3.1", FORMAT,
     put(codes.ALPN, vec16(vec8(b"h2", 3))))
case("body-in-early-data", "early_data is empty in a hello", "RFC 8446 §4.2.10", FORMAT,
     add(codes.EARLY_DATA, u32(16384)))

# Lengths (§4; SPEC §1.3: judged when the header is there).
case("body-over-16384", "a hello has at most 16,384 bytes", "SPEC §1.3, §1.4",
     refused("tls-server-client-hello-length"), pad_to(16385), basis="policy")


def _declared(name: str, rule: str, length: int) -> None:
    @HANDSHAKE.case(name, rule, "SPEC §1.3", refused("tls-server-client-hello-length"), "policy")
    def _(stage: Stage) -> Connection:
        head = message(codes.CLIENT_HELLO, b"", length)
        return stage.connect().tell(record(codes.HANDSHAKE, head, 0x0301))


_declared("declares-16385", "a hello is judged by its header alone: 16,385 bytes", 16385)
_declared("declares-2^24-1", "a hello is judged by its header alone: 2^24 - 1 bytes", (1 << 24) - 1)

# Twice (§4.2).
for _name, _kind in (
    ("server-name", codes.SERVER_NAME),
    ("versions", codes.SUPPORTED_VERSIONS),
    ("groups", codes.SUPPORTED_GROUPS),
    ("schemes", codes.SIGNATURE_ALGORITHMS),
    ("shares", codes.KEY_SHARE),
    ("modes", codes.PSK_KEY_EXCHANGE_MODES),
    ("protocols", codes.ALPN),
):
    case(f"{_name}-twice", f"there is one {_name} extension", "RFC 8446 §4.2", REPEAT,
         again(_kind), alpn=(b"echo",))
case("early-data-twice", "there is one early_data extension", "RFC 8446 §4.2", REPEAT,
     both(add(codes.EARLY_DATA), add(codes.EARLY_DATA)))
case("unknown-twice", "an unknown extension comes once too", "RFC 8446 §4.2", REPEAT,
     both(add(0xFAFA), add(0xFAFA, b"x")), basis="policy")
case("unused-twice", "an extension the server does not use comes once too", "RFC 8446 §4.2",
     REPEAT, both(add(codes.STATUS_REQUEST, b"\x01\0\0\0\0"),
                  add(codes.STATUS_REQUEST, b"\x01\0\0\0\0")))
case("repeat-far-apart", "a repeat is seen across a long list", "RFC 8446 §4.2", REPEAT,
     both(*(add(0x5000 + i) for i in range(300)), add(0x5000)), basis="policy")

# What must be there (§9.2).
case("no-groups", "supported_groups goes with key_share", "RFC 8446 §9.2", MISSING,
     drop(codes.SUPPORTED_GROUPS))
case("no-shares", "key_share goes with supported_groups", "RFC 8446 §9.2", MISSING,
     drop(codes.KEY_SHARE))
case("no-schemes", "signature_algorithms is needed for a certificate", "RFC 8446 §4.2.3", MISSING,
     drop(codes.SIGNATURE_ALGORITHMS))
case("neither-groups-nor-shares", "a key exchange needs groups and shares", "RFC 8446 §9.2",
     MISSING, drop(codes.SUPPORTED_GROUPS, codes.KEY_SHARE))

# Shares (§4.2.8: a server MAY check the first two).
case("share-outside-groups", "a share is of a group in supported_groups", "RFC 8446 §4.2.8",
     ILLEGAL, put(codes.SUPPORTED_GROUPS, hello.code_list([codes.SECP256R1])), basis="policy")
case("two-shares-of-a-group", "there is one share a group", "RFC 8446 §4.2.8", ILLEGAL,
     change(codes.KEY_SHARE, lambda b: vec16(b[2:] * 2)), basis="policy")
for _name, _group, _size in (
    ("x25519-share-short", codes.X25519, 31),
    ("x25519-share-long", codes.X25519, 33),
    ("p256-share-short", codes.SECP256R1, 64),
    ("p256-share-compressed", codes.SECP256R1, 33),
    ("p384-share-short", codes.SECP384R1, 96),
):
    case(_name, f"a share has its group's length: {_size} bytes for {codes.GROUP_NAMES[_group]}",
         "RFC 8446 §4.2.8.2", ILLEGAL,
         put(codes.KEY_SHARE, hello.key_shares([(_group, b"\x04" + bytes(_size - 1))])))
KEY_SHARE = refused("tls-key-share")
_POINT = make_share(codes.SECP256R1, bytes(31) + b"\x05").public
case("x25519-share-zero", "an X25519 result is not all zero", "RFC 8446 §7.4.2", KEY_SHARE,
     put(codes.KEY_SHARE, hello.key_shares([(codes.X25519, bytes(32))])))
case("x25519-share-of-low-order", "a low-order X25519 share gives a zero result",
     "RFC 7748 §6.1", KEY_SHARE,
     put(codes.KEY_SHARE, hello.key_shares([(codes.X25519, b"\x01" + bytes(31))])))
case("p256-share-off-the-curve", "a P-256 share is on its curve", "RFC 8446 §4.2.8.2", KEY_SHARE,
     put(codes.KEY_SHARE, hello.key_shares([(codes.SECP256R1, b"\x04" + b"\x01" * 64)])))
case("p256-share-of-zeros", "the point at infinity is no share", "RFC 8446 §4.2.8.2", KEY_SHARE,
     put(codes.KEY_SHARE, hello.key_shares([(codes.SECP256R1, bytes(65))])))
case("p256-share-hybrid-form", "a share is in the uncompressed form", "RFC 8446 §4.2.8.2",
     KEY_SHARE, put(codes.KEY_SHARE, hello.key_shares(
         [(codes.SECP256R1, bytes((6 + (_POINT[-1] & 1),)) + _POINT[1:])])))
case("p384-share-off-the-curve", "a P-384 share is on its curve", "RFC 8446 §4.2.8.2", KEY_SHARE,
     put(codes.KEY_SHARE, hello.key_shares([(codes.SECP384R1, b"\x04" + b"\x01" * 96)])))

# Two faults at once: reading in wire order, then the offers in a fixed order (SPEC §1.3).
_NO_GROUP = both(
    put(codes.SUPPORTED_GROUPS, hello.code_list([codes.SECP521R1])),
    put(codes.KEY_SHARE, hello.key_shares([(codes.SECP521R1, bytes(OTHER_SHARES[25]))])),
)
_NO_SCHEME = put(codes.SIGNATURE_ALGORITHMS, hello.code_list([codes.ED25519]))
_NO_SUITE = set_field("suites", [0x1304])
_NO_PROTOCOL = put(codes.ALPN, hello.protocol_names(b"h3"))
_DEFLATE = set_field("compressions", b"\x01")
_OUTSIDE = put(codes.SUPPORTED_GROUPS, hello.code_list([codes.SECP384R1]))
for _first, _second, _end, _edit in (
    ("a repeat", "a malformed list behind it", "tls-server-extension-repeat",
     both(again(codes.SERVER_NAME), put(codes.KEY_SHARE, b""))),
    ("the length of the block", "a repeat in it", "tls-server-client-hello-format",
     both(again(codes.SERVER_NAME), edit_body(lambda b: b[:-1]))),
    ("a malformed list", "a repeat behind it", "tls-server-client-hello-format",
     both(put(codes.SERVER_NAME, b"\0\0"), again(codes.KEY_SHARE))),
    ("the version", "compression", "tls-server-version",
     both(drop(codes.SUPPORTED_VERSIONS), _DEFLATE)),
    ("compression", "a missing extension", "tls-server-illegal-parameter",
     both(_DEFLATE, drop(codes.SUPPORTED_GROUPS))),
    ("a missing extension", "a share outside the groups", "tls-server-missing-extension",
     both(drop(codes.SIGNATURE_ALGORITHMS), _OUTSIDE)),
    ("a share outside the groups", "the suite", "tls-server-illegal-parameter",
     both(_OUTSIDE, _NO_SUITE)),
    ("the suite", "the scheme", "tls-server-suite", both(_NO_SUITE, _NO_SCHEME)),
    ("the scheme", "the group", "tls-server-sigalg", both(_NO_SCHEME, _NO_GROUP)),
    ("the group", "the protocol", "tls-server-group", both(_NO_GROUP, _NO_PROTOCOL)),
    ("the protocol", "the retry", "tls-server-alpn",
     both(_NO_PROTOCOL, put(codes.KEY_SHARE, hello.key_shares([])))),
):
    case(f"order-{_end.removeprefix('tls-server-')}-{_second.replace(' ', '-')}",
         f"{_first} is judged before {_second}", "SPEC §1.3", refused(_end), _edit,
         basis="policy", alpn=(b"echo",),
         setup=replace(HANDSHAKE.setup, alpn=("echo",)))
