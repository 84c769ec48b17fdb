"""Honest handshakes: everything a hello may offer, and what the server makes of it."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from dataclasses import replace

from peers.liar import codes, hello
from peers.liar.client import Edit
from peers.liar.conversation import Connection, Stage
from peers.liar.ends import End, established
from peers.liar.record import record
from peers.liar.wire import u16, vec8, vec16

from .base import (
    FIRST,
    GREASE,
    HANDSHAKE,
    OTHER_SHARES,
    SECOND,
    WILD,
    add,
    both,
    change,
    pad_to,
    put,
    set_field,
)

case = HANDSHAKE.hello
SETUP = HANDSHAKE.setup
WITH_ALPN = replace(SETUP, alpn=("h2", "echo"))
OK = established()

# Every suite and group (§9.1).
for _suite, _suite_name in codes.SUITE_NAMES.items():
    for _group, _group_name in codes.GROUP_NAMES.items():
        case(f"{_suite_name.removeprefix('TLS_').lower()}-{_group_name.lower()}",
             f"{_suite_name} is spoken with {_group_name}", "RFC 8446 §9.1",
             established(suite=_suite, group=_group, retried=False),
             suites=(_suite,), groups=(_group,))

# Choices (SPEC §1.3): the server's order, not the client's.
case("suite-order-with-aes", "with AES instructions AES-128-GCM is preferred", "SPEC §1.3",
     established(suite=codes.AES_128_GCM_SHA256), basis="policy", suites=(0x1303, 0x1302, 0x1301))
case("suite-order-without-aes", "without AES instructions ChaCha20 is preferred", "SPEC §1.3",
     established(suite=codes.CHACHA20_POLY1305_SHA256), basis="policy",
     setup=replace(SETUP, aes=False), suites=(0x1302, 0x1301, 0x1303))
case("suite-order-second-with-aes", "with AES instructions ChaCha20 is before AES-256",
     "SPEC §1.3", established(suite=codes.CHACHA20_POLY1305_SHA256), basis="policy",
     suites=(0x1302, 0x1303))
case("suite-order-second-without-aes", "without AES instructions AES-128 is before AES-256",
     "SPEC §1.3", established(suite=codes.AES_128_GCM_SHA256), basis="policy",
     setup=replace(SETUP, aes=False), suites=(0x1302, 0x1301))
case("group-order", "of several shares X25519 is taken first", "SPEC §1.3",
     established(group=codes.X25519, retried=False), basis="policy",
     groups=(codes.SECP384R1, codes.SECP256R1, codes.X25519),
     shares=(codes.SECP384R1, codes.SECP256R1, codes.X25519))
case("group-order-nist", "P-256 is taken before P-384", "SPEC §1.3",
     established(group=codes.SECP256R1, retried=False), basis="policy",
     groups=(codes.SECP384R1, codes.SECP256R1), shares=(codes.SECP384R1, codes.SECP256R1))
case("a-share-spares-a-retry", "a share of a lesser group is taken rather than retried",
     "SPEC §1.3", established(group=codes.SECP384R1, retried=False), basis="policy",
     shares=(codes.SECP384R1,))

# Retries (§4.1.4): the first common group that has no share.
for _group, _name in codes.GROUP_NAMES.items():
    case(f"retry-to-{_name.lower()}", f"without a usable share the server asks for {_name}",
         "RFC 8446 §4.1.4", established(group=_group, retried=True),
         put(codes.KEY_SHARE, hello.key_shares([(GREASE, b"\0")])),
         groups=(_group, GREASE), shares=())
case("no-shares-yet", "an empty list of shares asks for a retry", "RFC 8446 §4.2.8",
     established(group=codes.X25519, retried=True), shares=())
case("retry-without-session-id", "a retry is answered without a session id too",
     "RFC 8446 §D.4", established(retried=True), shares=(), session_id=b"")
case("retry-with-sha384", "after a retry the transcript is the message_hash, SHA-384 too",
     "RFC 8446 §4.4.1", established(retried=True, suite=0x1302), shares=(), suites=(0x1302,))

# What is skipped (§4.1.2, §4.2, RFC 8701).
case("grease-everywhere", "unknown values are skipped wherever they may stand", "RFC 8701 §3.1",
     established(group=codes.X25519), both(
         set_field("suites", [GREASE, 0x1301, 0x2A2A]),
         change(codes.SUPPORTED_VERSIONS, lambda b: vec8(u16(GREASE) + b[1:])),
         change(codes.SUPPORTED_GROUPS, lambda b: vec16(u16(GREASE) + b[2:])),
         change(codes.SIGNATURE_ALGORITHMS, lambda b: vec16(u16(GREASE) + b[2:])),
         change(codes.KEY_SHARE, lambda b: vec16(u16(GREASE) + vec16(b"\0") + b[2:])),
         change(codes.PSK_KEY_EXCHANGE_MODES, lambda b: vec8(b"\x0b" + b[1:])),
         lambda h: h.extensions.insert(0, (GREASE, b"")), add(0x1A1A, b"\0")))
case("a-hybrid-share", "a hybrid share of a group the server has not is skipped", "SPEC §1.3",
     established(group=codes.X25519, retried=False), both(
         change(codes.SUPPORTED_GROUPS, lambda b: vec16(u16(codes.X25519MLKEM768) + b[2:])),
         change(codes.KEY_SHARE, lambda b: vec16(
             u16(codes.X25519MLKEM768) + vec16(bytes(OTHER_SHARES[0x11EC])) + b[2:]))),
     basis="policy")
case("unknown-extensions", "an unknown extension is skipped, empty and full", "RFC 8446 §4.2",
     OK, both(add(0xFAFA), add(0xFAFB, bytes(4000))))
case("other-features-offered", "features the server has not are not answered", "RFC 8446 §4.2",
     OK, both(add(codes.STATUS_REQUEST, b"\x01\0\0\0\0"), add(codes.RECORD_SIZE_LIMIT, b"\x40\x01"),
              add(codes.MAX_FRAGMENT_LENGTH, b"\x04"), add(codes.POST_HANDSHAKE_AUTH),
              add(codes.SIGNED_CERTIFICATE_TIMESTAMP), add(27, b"\x02\0\x02")))
case("old-suites-too", "suites of older versions are skipped", "RFC 8446 §4.1.2",
     established(suite=0x1301), suites=(0xC02B, 0x009C, 0x00FF, 0x1301, 0x5600))
case("old-versions-too", "older versions beside 1.3 are skipped", "RFC 8446 §4.2.1", OK,
     put(codes.SUPPORTED_VERSIONS, hello.supported_versions(0x7F1C, 0x0303, 0x0304, 0x0301)))
case("schemes-for-certificates", "signature_algorithms_cert is not read", "SPEC §1.3", OK,
     add(codes.SIGNATURE_ALGORITHMS_CERT, hello.code_list([codes.RSA_PKCS1_SHA1])), basis="policy")
case("a-cookie-nobody-gave", "a cookie in a first hello is skipped", "SPEC §1.3", OK,
     add(codes.COOKIE, vec16(b"crumbs")), basis="policy")
for _version in (0x0301, 0x0302, 0x0304, 0xFEFD):
    case(f"legacy-version-{_version:04x}", f"legacy_version {_version:#06x} is not read",
         "RFC 8446 §4.2.1", OK, set_field("version", _version))
for _size in (0, 1, 31):
    case(f"session-id-of-{_size}", f"a session id of {_size} bytes is echoed", "RFC 8446 §4.1.3",
         OK, session_id=bytes(range(_size)))

# Names (RFC 6066 §3; SPEC §1.3, §3).
for _name, _host, _server, _answered in (
    ("the-exact-name", "two.example", SECOND, True),
    ("a-name-in-capitals", "TWO.Example", SECOND, True),
    ("a-name-by-wildcard", "b.wild.example", WILD, True),
    ("exact-before-wildcard", "host.wild.example", SECOND, True),
    ("a-wildcard-is-one-label", "a.b.wild.example", FIRST, False),
    ("a-wildcard-is-a-label", "wild.example", FIRST, False),
    ("an-unknown-name", "nobody.example", FIRST, False),
    ("no-name", None, FIRST, False),
    ("a-name-of-255-bytes", "a" * 255, FIRST, False),
    ("a-name-of-256-bytes", "a" * 256, FIRST, False),
    ("a-name-that-is-no-text", b"\xff\x00 \x80", FIRST, False),
):
    case(_name, f"{_name.replace('-', ' ')} is served by its identity or the default",
         "SPEC §1.3, §3", established(served=_server.names[0], name_answered=_answered),
         basis="policy", server_name=_host)
case("another-type-of-name", "a name of another type is skipped", "SPEC §1.3",
     established(served=FIRST.names[0], name_answered=False),
     put(codes.SERVER_NAME, hello.server_name("two.example", kind=7)), basis="policy")

# Protocols (RFC 7301).
case("protocol-in-server-order", "the server's order decides", "RFC 7301 §3.2",
     established(alpn=b"h2"), setup=WITH_ALPN, alpn=(b"x", b"echo", b"h2"))
case("one-protocol", "the common protocol is chosen", "RFC 7301 §3.2",
     established(alpn=b"echo"), setup=WITH_ALPN, alpn=(b"echo",))
case("protocols-without-a-list", "without a list of its own the server answers none", "SPEC §1.3",
     established(alpn=None), basis="policy", alpn=(b"h2", b"echo"))
case("no-protocol-offered", "without an offer none is answered", "RFC 7301 §3.1",
     established(alpn=None), setup=WITH_ALPN)

# Size and cuts (§5.1).
case("hello-of-16384", "a hello of exactly 16,384 bytes is read", "SPEC §1.4", OK, pad_to(16384),
     basis="policy")


def _cut(name: str, rule: str, cut: int | list[int], edit: Edit | None = None) -> None:
    @HANDSHAKE.case(name, rule, "RFC 8446 §5.1", OK)
    def _(stage: Stage) -> Connection:
        return stage.connect().hello(edit, cut=cut).finish().echo()


for _at in (1, 2, 3, 4):
    _cut(f"hello-cut-at-{_at}", f"a hello may be cut after {_at} bytes of its header", [_at])
_cut("hello-in-single-bytes", "a hello may come in records of one byte", 1)
_BROWSER = both(
    change(codes.KEY_SHARE, lambda b: vec16(u16(0x11EC) + vec16(bytes(1216)) + b[2:])),
    change(codes.SUPPORTED_GROUPS, lambda b: vec16(u16(0x11EC) + b[2:])),
    pad_to(1818),
)
_cut("browser-hello", "a hello of a browser's size comes in one record", 16384, _BROWSER)
_cut("browser-hello-in-pieces", "a hello of a browser's size comes in many records", 100, _BROWSER)
_cut("browser-hello-in-bytes", "a hello of a browser's size comes in one-byte records", 1, _BROWSER)

for _version in (0x0300, 0x0303, 0x0304, 0x03FF):

    @HANDSHAKE.case(f"record-version-{_version:04x}",
                    f"a hello's record may say version {_version:#06x}", "RFC 8446 §5.1", OK)
    def _(stage: Stage, version: int = _version) -> Connection:
        return stage.connect().hello(version=version).finish().echo()


# change_cipher_spec (§D.4).
@HANDSHAKE.case("ccs-without-session-id", "the client may send a change_cipher_spec unasked",
                "RFC 8446 §D.4", OK)
def _(stage: Stage) -> Connection:
    return stage.connect(session_id=b"").hello().finish(ccs=True).echo()


@HANDSHAKE.case(
    "no-ccs", "a client need not send a change_cipher_spec", "RFC 8446 §D.4", OK
)
def _(stage: Stage) -> Connection:
    return stage.connect().hello().finish(ccs=False).echo()


@HANDSHAKE.case("ccs-in-both-places", "one is dropped before each flight after the first hello",
                "RFC 8446 §5", OK)
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=()).hello().need("retry")
    ccs = record(codes.CHANGE_CIPHER_SPEC, b"\x01")
    return c.tell(ccs).hello(ccs=False).tell(ccs).finish(ccs=False).echo()


@HANDSHAKE.case("ccs-many-times", "each change_cipher_spec before the Finished is dropped",
                "RFC 8446 §5", OK)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    return c.tell(record(codes.CHANGE_CIPHER_SPEC, b"\x01") * 20).finish().echo()


@HANDSHAKE.case("ccs-right-behind-the-hello", "it may come with the first hello (early data does)",
                "RFC 8446 §D.4", OK)
def _(stage: Stage) -> Connection:
    c = stage.connect()
    c.tell(c.client.hello() + record(codes.CHANGE_CIPHER_SPEC, b"\x01"))
    return c.finish(ccs=False).echo()


# Early data, never accepted, is skipped (§4.2.10).
def _early(name: str, rule: str, sizes: list[int], end: End = OK, retry: bool = False,
           basis: str = "rfc") -> None:
    @HANDSHAKE.case(name, rule, "RFC 8446 §4.2.10", end, "policy" if basis == "policy" else "rfc")
    def _(stage: Stage) -> Connection:
        c = stage.connect(shares=() if retry else None)
        c.tell(c.client.hello(add(codes.EARLY_DATA)) + b"".join(
            record(codes.APPLICATION_DATA, bytes(i + n & 255 for i in range(n))) for n in sizes
        ))
        if retry:
            c.need("retry").hello()
        return c.finish().echo()


_early("early-data-offered-alone", "early data may be offered and not sent", [])
_early("early-data-skipped", "early data is skipped after the flight", [40, 200])
_early("early-data-of-16384", "16,384 bytes of early data are skipped", [8192, 8192])
_early(
    "early-data-before-a-retry", "early data is skipped before a second hello", [100], retry=True
)
_early("early-data-of-16384-before-a-retry", "16,384 bytes are skipped before a second hello",
       [16384], retry=True)


@HANDSHAKE.case("a-psk-nobody-knows", "an unknown PSK leads to a full handshake",
                "RFC 8446 §4.2.11", established(verdict="off", resumed=False))
def _(stage: Stage) -> Connection:
    def edit(h: hello.Hello) -> None:
        h.offers = [hello.Offer(b"a made-up ticket", 0, bytes(32), "sha256")]
        h.put(codes.PRE_SHARED_KEY, b"")
        h.last(codes.PRE_SHARED_KEY)

    return stage.connect().honest(edit)


# The program's side.
@HANDSHAKE.case("identity-replaced", "a replaced identity serves the next connection", "SPEC §3",
                established(), "policy")
def _(stage: Stage) -> Connection:
    from peers.liar.identities import make

    other = make(["server.example"], label="a renewed server")
    stage.connect().honest()
    stage.call("replace_identity", 0, other.chain_pem, other.key_pem, stage.now_ms)
    c = stage.connect().honest()
    assert c.client.chain[0] == other.der
    return c


@HANDSHAKE.case("identity-replaced-midway", "a connection answered keeps its identity", "SPEC §3",
                established(served=FIRST.names[0]), "policy")
def _(stage: Stage) -> Connection:
    from peers.liar.identities import make

    other = make(["server.example"], label="a renewed server")
    c = stage.connect().flight()
    stage.call("replace_identity", 0, other.chain_pem, other.key_pem, stage.now_ms)
    return c.finish().echo()


@HANDSHAKE.case("identity-refused", "a replacement that is refused changes nothing", "SPEC §3",
                established(served=FIRST.names[0], answers=("tls-server-key-mismatch",)),
                "policy")
def _(stage: Stage) -> Connection:
    stage.call("replace_identity", 0, FIRST.chain_pem, SECOND.key_pem, stage.now_ms)
    return stage.connect().honest()
