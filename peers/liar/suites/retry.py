"""The second ClientHello (RFC 8446 §4.1.2, §4.1.4): what must stay, what may change."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from dataclasses import replace
from typing import Any

from peers.liar import codes, hello
from peers.liar.client import Client, Edit
from peers.liar.conversation import Basis, Connection, Stage
from peers.liar.ends import End, established, refused
from peers.liar.record import record
from peers.liar.shares import make_share
from peers.liar.wire import vec16

from .base import HANDSHAKE, SECOND, add, both, change, drop, edit_body, pad_to, put, set_field

RETRY = refused("tls-server-retry-share")
SETUP = HANDSHAKE.setup
OTHER = make_share(codes.SECP256R1, bytes(31) + b"\x07").public


def second(
    name: str, rule: str, where: str, end: End, edit: Edit,
    basis: Basis = "rfc", alpn: bool = False,
    **options: Any,
) -> None:
    """An honest first hello without a share; the edit is the second's."""
    setup = replace(SETUP, alpn=("h2", "echo")) if alpn else SETUP
    options.setdefault("shares", ())

    @HANDSHAKE.case(name, rule, where, end, basis, setup)
    def _(stage: Stage) -> Connection:
        c = stage.connect(**options).hello().need("retry").hello(edit)
        return c.finish().echo() if c.client.state == "flight" else c


second("second-hello-other-session-id", "the second hello keeps the session id",
       "RFC 8446 §4.1.2", RETRY, set_field("session_id", bytes(32)), "policy")
second("second-hello-no-session-id", "the second hello does not lose its session id",
       "RFC 8446 §4.1.2", RETRY, set_field("session_id", b""), "policy")
second("second-hello-drops-the-suite", "the second hello still offers the suite of the retry",
       "RFC 8446 §4.1.4", RETRY, set_field("suites", [0x1303, 0x1302]))
second("second-hello-drops-every-suite", "a second hello with no common suite is refused for it",
       "SPEC §1.3", refused("tls-server-suite"), set_field("suites", [0x1304]), "policy")
second("second-hello-no-share-list", "the second hello has a key_share", "RFC 8446 §4.1.2",
       refused("tls-server-missing-extension"), drop(codes.KEY_SHARE))
second("second-hello-empty-shares", "the second hello brings the share", "RFC 8446 §4.1.2", RETRY,
       put(codes.KEY_SHARE, hello.key_shares([])))
second("second-hello-other-share", "the second hello's share is of the group asked for",
       "RFC 8446 §4.1.2", RETRY,
       put(codes.KEY_SHARE, hello.key_shares([(codes.SECP256R1, OTHER)])))
second("second-hello-two-shares", "the second hello brings one share", "RFC 8446 §4.1.2", RETRY,
       change(codes.KEY_SHARE, lambda b: vec16(b[2:] + hello.key_shares(
           [(codes.SECP256R1, OTHER)])[2:])))
second("second-hello-grease-share", "not even an unknown group's share comes beside it",
       "RFC 8446 §4.1.2", RETRY,
       change(codes.KEY_SHARE, lambda b: vec16(b[2:] + hello.key_shares([(0x0A0A, b"x")])[2:])))
second("second-hello-short-share", "the second hello's share has its length too",
       "RFC 8446 §4.2.8", refused("tls-server-illegal-parameter"),
       put(codes.KEY_SHARE, hello.key_shares([(codes.X25519, bytes(31))])))
second("second-hello-zero-share", "the second hello's share is a point too", "RFC 8446 §7.4.2",
       refused("tls-key-share"),
       put(codes.KEY_SHARE, hello.key_shares([(codes.X25519, bytes(32))])))
second("second-hello-early-data", "the second hello offers no early data", "RFC 8446 §4.1.2", RETRY,
       add(codes.EARLY_DATA))
second("second-hello-no-versions", "the second hello is of TLS 1.3 too", "RFC 8446 §4.2.1",
       refused("tls-server-version"), drop(codes.SUPPORTED_VERSIONS))
second("second-hello-no-groups", "the second hello has supported_groups", "RFC 8446 §9.2",
       refused("tls-server-missing-extension"), drop(codes.SUPPORTED_GROUPS))
second("second-hello-no-schemes", "the second hello has signature_algorithms", "RFC 8446 §9.2",
       refused("tls-server-missing-extension"), drop(codes.SIGNATURE_ALGORITHMS))
second("second-hello-other-schemes", "the second hello's schemes are judged", "SPEC §1.3",
       refused("tls-server-sigalg"),
       put(codes.SIGNATURE_ALGORITHMS, hello.code_list([codes.ED25519])), "policy")
second("second-hello-deflate", "the second hello has no compression either", "RFC 8446 §4.1.2",
       refused("tls-server-illegal-parameter"), set_field("compressions", b"\x01"))
second("second-hello-repeats", "the second hello repeats no extension", "RFC 8446 §4.2",
       refused("tls-server-extension-repeat"), both(add(0xFAFA), add(0xFAFA)), "policy")
second("second-hello-cut-short", "the second hello parses too", "RFC 8446 §4.1.2",
       refused("tls-server-client-hello-format"), edit_body(lambda b: b[:-1]))
second("second-hello-too-long", "the second hello is bounded too", "SPEC §1.4",
       refused("tls-server-client-hello-length"), pad_to(16385), "policy")
second("second-hello-share-outside", "the second hello's share is in its supported_groups",
       "RFC 8446 §4.2.8", refused("tls-server-illegal-parameter"),
       put(codes.SUPPORTED_GROUPS, hello.code_list([codes.SECP256R1])))
second("second-hello-other-protocols", "the second hello's protocols are read", "SPEC §1.3",
       refused("tls-server-alpn"), put(codes.ALPN, hello.protocol_names(b"h3")), "policy",
       alpn=True)

# Nothing else is compared (SPEC §1.3).
for _name, _rule, _edit, _facts in (
    ("random", "the random of a second hello is not compared",
     set_field("random", bytes(32)), {}),
    ("version", "the legacy_version of a second hello is not compared",
     set_field("version", 0x0301), {}),
    ("name", "the name is read from the second hello",
     put(codes.SERVER_NAME, hello.server_name("two.example")), {"served": SECOND.names[0]}),
    ("more-suites", "suites of a second hello may differ while the chosen one stays",
     set_field("suites", [0x1302, 0x1301]), {"suite": 0x1301}),
    ("fewer-groups", "groups of a second hello may differ",
     put(codes.SUPPORTED_GROUPS, hello.code_list([codes.X25519])), {}),
    ("more-schemes", "schemes of a second hello may differ",
     put(codes.SIGNATURE_ALGORITHMS, hello.code_list([0x0808, 0x0403])), {}),
    ("a-cookie", "a cookie in a second hello is skipped", add(codes.COOKIE, vec16(b"crumbs")), {}),
    ("padding", "a second hello may be padded", pad_to(1000), {}),
    ("no-modes", "a second hello may drop its modes", drop(codes.PSK_KEY_EXCHANGE_MODES), {}),
):
    second(f"second-hello-changes-{_name}", _rule, "SPEC §1.3", established(retried=True, **_facts),
           _edit, "policy")


@HANDSHAKE.case("second-protocols-differ", "the protocol is chosen from the second hello",
                "SPEC §1.3", established(alpn=b"echo"), "policy",
                replace(SETUP, alpn=("h2", "echo")))
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=(), alpn=(b"h2",)).hello().need("retry")
    return c.hello(put(codes.ALPN, hello.protocol_names(b"echo"))).finish().echo()


@HANDSHAKE.case("no-second-hello", "only a ClientHello answers a HelloRetryRequest",
                "RFC 8446 §4.1.2", refused("tls-unexpected-message"))
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=()).hello().need("retry")
    return c.tell(record(codes.HANDSHAKE, b"\x14\0\0\x20" + bytes(32)))


@HANDSHAKE.case("data-instead-of-second-hello", "without early data no data comes before a hello",
                "RFC 8446 §4.1.2", refused("tls-unexpected-message"))
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=()).hello().need("retry")
    return c.tell(record(codes.APPLICATION_DATA, bytes(40)))


@HANDSHAKE.case("second-hello-with-the-first", "a hello ends its record, a retry to come or not",
                "RFC 8446 §5.1", refused("tls-unexpected-message"))
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=())
    first = c.client.hello_message()
    twin = Client(f"{stage.name} twin").hello_message()
    return c.tell(record(codes.HANDSHAKE, first + twin, 0x0301))


@HANDSHAKE.case("second-hello-unasked", "a second hello comes only after a retry",
                "RFC 8446 §4.1.4", refused("tls-unexpected-message", sealed=True))
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    return c.tell(Client(f"{stage.name} twin").hello())


@HANDSHAKE.case("retry-left-out-of-the-transcript", "the transcript has the HelloRetryRequest",
                "RFC 8446 §4.4.1", refused("tls-server-finished", sealed=True))
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=()).flight()
    start = 4 + 32  # behind the synthetic message_hash
    size = 4 + int.from_bytes(c.client.transcript[start + 1 : start + 4], "big")
    del c.client.transcript[start : start + size]
    return c.finish()


@HANDSHAKE.case("early-data-over-16384-before-a-retry", "what is skipped before a retry is bounded",
                "SPEC §1.2", refused("tls-server-early-data-size"), "policy")
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=())
    c.hello(add(codes.EARLY_DATA)).need("retry")
    return c.tell(record(codes.APPLICATION_DATA, bytes(8192)) * 2 + record(23, bytes(17)))


@HANDSHAKE.case("early-data-empty-33-times-before-a-retry",
                "nor are records of no length before a retry skipped for ever", "SPEC §1.3",
                refused("tls-too-many-messages"), "policy")
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=())
    c.hello(add(codes.EARLY_DATA)).need("retry")
    return c.tell(record(codes.APPLICATION_DATA, b"") * 33)


@HANDSHAKE.case("early-data-after-a-retry", "after a second hello nothing is skipped",
                "RFC 8446 §4.2.10", refused("tls-bad-record-mac", sealed=True))
def _(stage: Stage) -> Connection:
    c = stage.connect(shares=())
    c.hello(add(codes.EARLY_DATA)).need("retry").hello().need("flight")
    return c.tell(record(codes.APPLICATION_DATA, bytes(64)))
