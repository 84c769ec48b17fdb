"""The handmade inputs of the hello harness: a file for each choice and each way to be refused.

Each case is its bytes, the outcome that the contract names for it (written here by hand, never
copied from a run), and what it shows. `plain()` is accepted by every rule, so an edit of it breaks
just the rule it names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine import codepoints as c
from peers.liar import hello as build
from peers.liar.hello import Hello
from peers.liar.wire import u16s, vec8, vec16

from ..fixtures import P256_KEY, P384_KEY, SUITES, X25519_KEY, plain
from ..outcomes import AES_256, CHACHA, chosen
from .case import Case

GREASE = 0x1A1A
P521 = 25
HYBRID = 0x11EC

FORMAT = "tls-server-client-hello-format"


def without(kind: int) -> Hello:
    """The plain hello with an extension taken away."""
    hello = plain()
    hello.drop(kind)
    return hello


def psk(identities: list[bytes], binders: Iterable[bytes]) -> bytes:
    """The body of pre_shared_key, whether or not its two lists fit."""
    offers = [build.Offer(identity, 0, b"", "sha256") for identity in identities]
    return build.identities(offers) + build.binder_list(binders)


def with_psk(data: bytes) -> Hello:
    """The plain hello with modes and a pre_shared_key of this body."""
    hello = plain(c.EXT_PSK_KEY_EXCHANGE_MODES, build.psk_modes(c.PSK_DHE_KE))
    hello.put(c.EXT_PRE_SHARED_KEY, data)
    return hello


def _case(hello: Hello, outcome: str, what: str) -> Case:
    # The message without its four header bytes.
    return Case(hello.message()[4:], outcome, what)


def _with(**fields: object) -> Hello:
    """The plain hello with fields of its own set."""
    return replace(plain(), **fields)  # type: ignore[arg-type]


def accepted() -> dict[str, Case]:
    """Hellos that are answered: every suite, every group, a retry, and what must be skipped."""
    shares, names = c.EXT_KEY_SHARE, c.EXT_SERVER_NAME
    greased = _with(suites=[GREASE, *SUITES])
    greased.extensions = [(GREASE, b"\0"), *greased.extensions, (0xFAFA, b"")]
    greased.put(c.EXT_SUPPORTED_VERSIONS, build.supported_versions(GREASE, c.VERSION_TLS_1_3))
    greased.put(shares, build.key_shares([(GREASE, b"\0"), X25519_KEY]))
    p521 = plain(c.EXT_SUPPORTED_GROUPS, build.code_list((P521, c.P384)))
    p521.put(shares, build.key_shares([(P521, bytes(133))]))
    hybrid = build.key_shares([(HYBRID, bytes(1216)), X25519_KEY])
    two_types = vec16(b"\x09" + vec16(b"x") + b"\0" + vec16(b"other.example"))
    table = (
        ("plain", plain(), chosen(), "every rule accepts it"),
        ("suite-aes-256", _with(suites=[SUITES[2]]), chosen(AES_256), "only AES-256"),
        ("suite-chacha20", _with(suites=[0x00FF, SUITES[1]]), chosen(CHACHA), "only ChaCha20"),
        (
            "group-p256",
            plain(shares, build.key_shares([P256_KEY])),
            chosen(group="P-256"),
            "a share of P-256",
        ),
        (
            "group-p384",
            plain(shares, build.key_shares([P384_KEY])),
            chosen(group="P-384"),
            "a share of P-384",
        ),
        (
            "group-order",
            plain(shares, build.key_shares([P256_KEY, X25519_KEY])),
            chosen(),
            "the server's order of groups wins",
        ),
        ("group-hybrid-skipped", plain(shares, hybrid), chosen(), "a hybrid share is skipped"),
        (
            "retry-no-shares",
            plain(shares, build.key_shares([])),
            chosen(retried="yes"),
            "an empty list of shares leads to a retry",
        ),
        ("retry-p384", p521, chosen(group="P-384", retried="yes"), "a share of P-521 alone"),
        ("session-id-empty", _with(session_id=b""), chosen(), "no legacy session id"),
        ("grease", greased, chosen(), "GREASE wherever it may stand"),
        (
            "name-over-255",
            plain(names, build.server_name("a" * 256)),
            chosen(),
            "a name over 255 bytes counts as none",
        ),
        ("name-other-type", plain(names, two_types), chosen(), "other name types are skipped"),
        ("name-none", without(names), chosen(), "no server_name"),
        (
            "alpn",
            plain(c.EXT_ALPN, build.protocol_names(b"http/1.1", b"h2")),
            chosen(),
            "ALPN in common",
        ),
        ("early-data", plain(c.EXT_EARLY_DATA), chosen(), "early data is offered, not taken"),
        ("cookie", plain(c.EXT_COOKIE, vec16(b"abc")), chosen(), "a cookie is skipped"),
    )
    return {name: _case(hello, outcome, what) for name, hello, outcome, what in table}


def malformed() -> dict[str, Case]:
    """Hellos that do not parse."""
    whole = plain().message()[4:]
    odd = _with(edit_body=lambda body: body.replace(_suites(0), _suites(1)))
    groups, schemes, shares = (
        c.EXT_SUPPORTED_GROUPS,
        c.EXT_SIGNATURE_ALGORITHMS,
        c.EXT_KEY_SHARE,
    )
    versions, names = c.EXT_SUPPORTED_VERSIONS, c.EXT_SERVER_NAME
    one = vec16(u16s((c.X25519,)))
    cut_share = vec16(u16s((c.X25519, 32)) + bytes(31))
    table = (
        ("session-id-33", _with(session_id=bytes(33)), "a session id of 33 bytes"),
        ("suites-odd", odd, "half a suite"),
        ("suites-empty", _with(suites=[]), "no suites"),
        ("compressions-empty", _with(compressions=b""), "no compression methods"),
        ("early-data-body", plain(c.EXT_EARLY_DATA, b"\0"), "early_data with a body (RFC 9846)"),
        ("modes-empty", plain(c.EXT_PSK_KEY_EXCHANGE_MODES, b"\0"), "an empty list of modes"),
        ("versions-odd", plain(versions, vec8(b"\3\4\3")), "half a version"),
        ("versions-empty", plain(versions, vec8(b"")), "no versions"),
        ("groups-empty", plain(groups, vec16(b"")), "no groups"),
        ("groups-left-over", plain(groups, one + b"\0"), "a byte behind the groups"),
        ("schemes-odd", plain(schemes, vec16(b"\4\3\4")), "half a scheme"),
        ("share-cut", plain(shares, cut_share), "a share longer than its list"),
        ("share-empty", plain(shares, build.key_shares([(GREASE, b"")])), "a share of no bytes"),
        ("name-empty", plain(names, build.server_name("")), "an empty host name"),
        ("names-none", plain(names, vec16(b"")), "an empty list of names"),
        ("alpn-name-empty", plain(c.EXT_ALPN, build.protocol_names(b"h2", b"")), "an empty name"),
        ("alpn-none", plain(c.EXT_ALPN, vec16(b"")), "an empty ALPN list"),
        ("psk-identity-empty", with_psk(psk([b""], [bytes(32)])), "an empty identity"),
        ("psk-binder-31", with_psk(psk([b"a"], [bytes(31)])), "a binder of 31 bytes"),
        ("psk-none", with_psk(psk([], [])), "no tickets at all"),
    )
    return {
        "empty": Case(b"", FORMAT, "nothing at all"),
        "cut": Case(whole[:-1], FORMAT, "the last byte is missing"),
        "left-over": Case(whole + b"\0", FORMAT, "a byte too many"),
        **{name: _case(hello, FORMAT, what) for name, hello, what in table},
    }


def forbidden() -> dict[str, Case]:
    """Hellos that parse and hold what no hello may hold."""
    repeated, unknown, first = plain(), plain(), plain()
    repeated.again(c.EXT_SIGNATURE_ALGORITHMS)
    unknown.extensions += [(GREASE, b""), (GREASE, b"")]
    first.extensions = with_psk(psk([b"ticket"], [bytes(32)])).extensions
    first.first(c.EXT_PRE_SHARED_KEY)
    fewer, more = psk([b"a", b"b"], [bytes(32)]), psk([b"a"], [bytes(32)] * 2)
    shares = c.EXT_KEY_SHARE
    two_names = build.server_name("a.example", "b.example")
    short = build.key_shares([(c.X25519, bytes(31))])
    repeat, illegal = "tls-server-extension-repeat", "tls-server-illegal-parameter"
    table = (
        ("extension-repeat", repeated, repeat, "an extension twice"),
        ("extension-repeat-unknown", unknown, repeat, "an unknown extension twice"),
        ("two-names", plain(c.EXT_SERVER_NAME, two_names), illegal, "two host names"),
        ("psk-not-last", first, illegal, "pre_shared_key is not the last"),
        (
            "share-twice",
            plain(shares, build.key_shares([X25519_KEY, X25519_KEY])),
            illegal,
            "two shares of one of our groups",
        ),
        ("share-length", plain(shares, short), illegal, "an X25519 share of 31 bytes"),
        ("psk-lists", with_psk(fewer), illegal, "two tickets and one binder"),
        ("psk-binders", with_psk(more), illegal, "a ticket and two binders"),
    )
    return {name: _case(hello, outcome, what) for name, hello, outcome, what in table}


def refused() -> dict[str, Case]:
    """Hellos that are well-formed and offer what the server cannot take, as they are judged."""
    groups, schemes, versions = (
        c.EXT_SUPPORTED_GROUPS,
        c.EXT_SIGNATURE_ALGORITHMS,
        c.EXT_SUPPORTED_VERSIONS,
    )
    no_group = plain(groups, build.code_list((P521,)))
    no_group.put(c.EXT_KEY_SHARE, build.key_shares([(P521, bytes(133))]))
    rsa = plain(schemes, build.code_list((c.RSA_PSS_RSAE_SHA256, c.ED25519)))
    no_modes = plain(c.EXT_PRE_SHARED_KEY, psk([b"ticket"], [bytes(32)]))
    ticket_rsa = with_psk(psk([b"ticket"], [bytes(32)]))
    ticket_rsa.drop(schemes)
    two_faults = without(c.EXT_KEY_SHARE)
    two_faults.compressions = b"\1"
    old = plain(versions, build.supported_versions(c.VERSION_TLS_1_2))
    missing, version = "tls-server-missing-extension", "tls-server-version"
    illegal = "tls-server-illegal-parameter"
    table = (
        ("version-no-extensions", _with(raw_extensions=b""), version, "no extensions at all"),
        ("version-ssl3", _with(version=c.VERSION_SSL_3_0), version, "legacy_version 0x0300"),
        ("version-1.2", old, version, "TLS 1.2 alone in supported_versions"),
        ("version-none", without(versions), version, "no supported_versions"),
        ("compression", _with(compressions=b"\1\0"), illegal, "a compression method not null"),
        ("two-faults", two_faults, illegal, "compression is judged before what is missing"),
        ("missing-groups", without(groups), missing, "no supported_groups"),
        ("missing-share", without(c.EXT_KEY_SHARE), missing, "no key_share"),
        ("missing-schemes", without(schemes), missing, "no signature_algorithms"),
        ("missing-modes", no_modes, missing, "pre_shared_key without its modes"),
        ("missing-schemes-psk", ticket_rsa, missing, "no schemes, and no ticket was taken"),
        (
            "share-unlisted",
            plain(groups, build.code_list((c.P256,))),
            illegal,
            "a share outside supported_groups",
        ),
        ("suite-none", _with(suites=[0xC02B, 0xC02F]), "tls-server-suite", "no common suite"),
        ("scheme-none", rsa, "tls-server-sigalg", "no common scheme"),
        ("group-none", no_group, "tls-server-group", "no common group"),
        (
            "alpn-none-common",
            plain(c.EXT_ALPN, build.protocol_names(b"spdy/3")),
            "tls-server-alpn",
            "no common protocol",
        ),
    )
    return {name: _case(hello, outcome, what) for name, hello, outcome, what in table}


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    parts = {**accepted(), **malformed(), **forbidden(), **refused()}
    return {f"handmade-{name}": case for name, case in parts.items()}


def _suites(more: int) -> bytes:
    """The list of suites as it stands in the plain hello, or half a suite longer."""
    return vec16(u16s(SUITES) + b"\x13" * more)
