"""The handmade inputs of the hello harness: one for each choice, and one for each way to be
refused.

Each case is its bytes, the outcome that the contract names for it (written here by hand, never
copied from a run), and what it shows. `plain()` is accepted by every rule, so an edit of it breaks
just the rule it names.
"""

from __future__ import annotations

from typing import NamedTuple

from engine import codepoints as c

from .hellobytes import Hello, alpn, names, numbers, plain, psk, share, shares, vector, x25519_share


class Case(NamedTuple):
    """One input: its bytes, the outcome it must have, and what it is there for."""

    data: bytes
    outcome: str
    what: str


P256_POINT = bytes.fromhex(
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
"""The base point of P-256 (SEC 2), the public key of the private key 1."""

P384_POINT = bytes.fromhex(
    "04aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7"
    "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f"
)
"""The base point of P-384 (SEC 2)."""

GREASE = 0x1A1A
UNKNOWN_GROUP = 25
HYBRID = 0x11EC

AES_128 = "TLS_AES_128_GCM_SHA256"
AES_256 = "TLS_AES_256_GCM_SHA384"
CHACHA = "TLS_CHACHA20_POLY1305_SHA256"


def chosen(suite: str = AES_128, group: str = "X25519", retried: str = "no", more: str = "") -> str:
    """The outcome of a hello that is answered."""
    return f"waiting suite={suite} group={group} retried={retried}{more}"


def _format(what: str, hello: Hello) -> Case:
    return Case(hello.body(), "tls-server-client-hello-format", what)


def accepted() -> dict[str, Case]:
    """Hellos that are answered: every suite, every group, a retry, and what must be skipped."""
    tls = numbers(c.VERSION_TLS_1_3)
    groups = c.EXT_SUPPORTED_GROUPS
    p256 = shares(share(c.P256, P256_POINT))
    p384 = shares(share(c.P384, P384_POINT))
    plain_body = plain().body()
    only_256 = plain()
    only_256.suites = numbers(c.TLS_AES_256_GCM_SHA384)
    only_chacha = plain()
    only_chacha.suites = numbers(0x00FF, c.TLS_CHACHA20_POLY1305_SHA256)
    no_sid = plain()
    no_sid.session_id = b""
    greased = plain()
    greased.suites = numbers(GREASE) + greased.suites
    greased.extensions = [(GREASE, b"\0"), *(greased.extensions or []), (0xFAFA, b"")]
    greased.put(c.EXT_SUPPORTED_VERSIONS, vector(1, numbers(GREASE), tls))
    greased.put(c.EXT_KEY_SHARE, shares(share(GREASE, b"\0"), share(c.X25519, x25519_share())))
    hybrid = plain().put(
        c.EXT_KEY_SHARE, shares(share(HYBRID, bytes(1216)), share(c.X25519, x25519_share()))
    )
    two = plain().put(
        c.EXT_KEY_SHARE, shares(share(c.P256, P256_POINT), share(c.X25519, x25519_share()))
    )
    long_name = plain().put(c.EXT_SERVER_NAME, names((0, b"a" * 256)))
    other_name = plain().put(c.EXT_SERVER_NAME, names((9, b"x"), (0, b"other.example")))
    no_groups_common = plain().put(groups, vector(2, numbers(UNKNOWN_GROUP, c.P384)))
    no_groups_common.put(c.EXT_KEY_SHARE, shares(share(UNKNOWN_GROUP, bytes(133))))
    return {
        "plain": Case(plain_body, chosen(), "every rule accepts it"),
        "suite-aes-256": Case(only_256.body(), chosen(AES_256), "only AES-256"),
        "suite-chacha20": Case(only_chacha.body(), chosen(CHACHA), "only ChaCha20"),
        "group-p256": Case(
            plain().put(c.EXT_KEY_SHARE, p256).body(), chosen(group="P-256"), "a share of P-256"
        ),
        "group-p384": Case(
            plain().put(c.EXT_KEY_SHARE, p384).body(), chosen(group="P-384"), "a share of P-384"
        ),
        "group-order": Case(two.body(), chosen(), "the server's order of groups wins"),
        "group-hybrid-skipped": Case(hybrid.body(), chosen(), "a hybrid share is skipped"),
        "retry-no-shares": Case(
            plain().put(c.EXT_KEY_SHARE, shares()).body(),
            chosen(retried="yes"),
            "an empty list of shares leads to a retry",
        ),
        "retry-p384": Case(
            no_groups_common.body(), chosen(group="P-384", retried="yes"), "a share of P-521 alone"
        ),
        "session-id-empty": Case(no_sid.body(), chosen(), "no legacy session id"),
        "grease": Case(greased.body(), chosen(), "GREASE wherever it may stand"),
        "name-over-255": Case(long_name.body(), chosen(), "a name over 255 bytes counts as none"),
        "name-other-type": Case(other_name.body(), chosen(), "other name types are skipped"),
        "name-none": Case(plain().without(c.EXT_SERVER_NAME).body(), chosen(), "no server_name"),
        "alpn": Case(
            plain().put(c.EXT_ALPN, alpn(b"http/1.1", b"h2")).body(), chosen(), "ALPN in common"
        ),
        "early-data": Case(
            plain().put(c.EXT_EARLY_DATA, b"").body(), chosen(), "early data is offered, not taken"
        ),
        "cookie": Case(
            plain().put(c.EXT_COOKIE, vector(2, b"abc")).body(), chosen(), "a cookie is skipped"
        ),
    }


def refused_while_reading() -> dict[str, Case]:
    """Hellos that do not parse, in wire order."""
    whole = plain().body()
    long_sid, odd, none, no_compression = plain(), plain(), plain(), plain()
    long_sid.session_id = bytes(33)
    odd.suites += b"\x13"
    none.suites = b""
    no_compression.compressions = b""
    early = plain().put(c.EXT_EARLY_DATA, b"\0")
    modes = plain().put(c.EXT_PSK_KEY_EXCHANGE_MODES, b"\0")
    base = (c.EXT_PSK_KEY_EXCHANGE_MODES, vector(1, bytes([c.PSK_DHE_KE])))
    twice = plain()
    twice.extensions = [*(twice.extensions or []), (c.EXT_ALPN, alpn(b"h2"))] * 2
    unknown_twice = plain()
    unknown_twice.extensions = [*(unknown_twice.extensions or []), (GREASE, b""), (GREASE, b"")]

    def offers(data: bytes) -> Hello:
        hello = plain().put(*base)
        return hello.put(c.EXT_PRE_SHARED_KEY, data)

    first = plain()
    first.extensions = [
        base,
        (c.EXT_PRE_SHARED_KEY, psk([b"ticket"], [bytes(32)])),
        *(first.extensions or []),
    ]
    return {
        "empty": Case(b"", "tls-server-client-hello-format", "nothing at all"),
        "cut": Case(whole[:-1], "tls-server-client-hello-format", "the last byte is missing"),
        "left-over": Case(whole + b"\0", "tls-server-client-hello-format", "a byte too many"),
        "session-id-33": _format("a session id of 33 bytes", long_sid),
        "suites-odd": _format("half a suite", odd),
        "suites-empty": _format("no suites", none),
        "compressions-empty": _format("no compression methods", no_compression),
        "early-data-body": _format("early_data with a body (RFC 9846)", early),
        "psk-modes-empty": _format("an empty list of modes", modes),
        "versions-odd": _format(
            "half a version", plain().put(c.EXT_SUPPORTED_VERSIONS, vector(1, b"\3\4\3"))
        ),
        "versions-empty": _format("no versions", plain().put(c.EXT_SUPPORTED_VERSIONS, b"\0")),
        "groups-empty": _format("no groups", plain().put(c.EXT_SUPPORTED_GROUPS, vector(2))),
        "groups-left-over": _format(
            "a byte behind the groups",
            plain().put(c.EXT_SUPPORTED_GROUPS, vector(2, numbers(c.X25519)) + b"\0"),
        ),
        "schemes-odd": _format(
            "half a scheme", plain().put(c.EXT_SIGNATURE_ALGORITHMS, vector(2, b"\4\3\4"))
        ),
        "share-cut": _format(
            "a share longer than its list",
            plain().put(c.EXT_KEY_SHARE, vector(2, numbers(c.X25519, 32), bytes(31))),
        ),
        "share-empty": _format(
            "a share of no bytes", plain().put(c.EXT_KEY_SHARE, shares(share(GREASE, b"")))
        ),
        "name-empty": _format(
            "an empty host name", plain().put(c.EXT_SERVER_NAME, names((0, b"")))
        ),
        "names-none": _format("an empty list of names", plain().put(c.EXT_SERVER_NAME, names())),
        "alpn-empty-name": _format("an empty ALPN name", plain().put(c.EXT_ALPN, alpn(b"h2", b""))),
        "alpn-none": _format("an empty ALPN list", plain().put(c.EXT_ALPN, alpn())),
        "psk-lists-differ": _format(
            "two tickets, one binder", offers(psk([b"a", b"b"], [bytes(32)]))
        ),
        "psk-identity-empty": _format("an empty identity", offers(psk([b""], [bytes(32)]))),
        "psk-binder-31": _format("a binder of 31 bytes", offers(psk([b"a"], [bytes(31)]))),
        "psk-none": _format("no identities", offers(psk([], []))),
        "extension-repeat": Case(
            twice.body(), "tls-server-extension-repeat", "every extension twice"
        ),
        "extension-repeat-unknown": Case(
            unknown_twice.body(), "tls-server-extension-repeat", "an unknown extension twice"
        ),
        "two-names": Case(
            plain().put(c.EXT_SERVER_NAME, names((0, b"a.example"), (0, b"b.example"))).body(),
            "tls-server-illegal-parameter",
            "two host names",
        ),
        "psk-not-last": Case(
            first.body(), "tls-server-illegal-parameter", "pre_shared_key is not the last"
        ),
        "share-twice": Case(
            plain().put(c.EXT_KEY_SHARE, shares(*[share(c.X25519, x25519_share())] * 2)).body(),
            "tls-server-illegal-parameter",
            "two shares of one of our groups",
        ),
        "share-length": Case(
            plain().put(c.EXT_KEY_SHARE, shares(share(c.X25519, bytes(31)))).body(),
            "tls-server-illegal-parameter",
            "an X25519 share of 31 bytes",
        ),
    }


def refused_when_judged() -> dict[str, Case]:
    """Hellos that parse and offer what the server cannot take, in the order of the checks."""
    no_extensions, ssl3, compressed, no_suite, old = plain(), plain(), plain(), plain(), plain()
    no_extensions.extensions = None
    ssl3.version = c.VERSION_SSL_3_0
    compressed.compressions = b"\1\0"
    no_suite.suites = numbers(0xC02B, 0xC02F)
    old.put(c.EXT_SUPPORTED_VERSIONS, vector(1, numbers(c.VERSION_TLS_1_2)))
    no_group = plain().put(c.EXT_SUPPORTED_GROUPS, vector(2, numbers(UNKNOWN_GROUP)))
    no_group.put(c.EXT_KEY_SHARE, shares(share(UNKNOWN_GROUP, bytes(133))))
    unlisted = plain().put(c.EXT_SUPPORTED_GROUPS, vector(2, numbers(c.P256)))
    rsa = plain().put(
        c.EXT_SIGNATURE_ALGORITHMS, vector(2, numbers(c.RSA_PSS_RSAE_SHA256, c.ED25519))
    )
    no_modes = plain().put(c.EXT_PRE_SHARED_KEY, psk([b"ticket"], [bytes(32)]))
    both = plain().without(c.EXT_KEY_SHARE)
    both.compressions = b"\1"
    missing = "tls-server-missing-extension"
    version = "tls-server-version"
    illegal = "tls-server-illegal-parameter"
    return {
        "version-none": Case(no_extensions.body(), version, "no extensions at all"),
        "version-ssl3": Case(ssl3.body(), version, "legacy_version 0x0300"),
        "version-1.2": Case(old.body(), version, "TLS 1.2 alone in supported_versions"),
        "version-extension-none": Case(
            plain().without(c.EXT_SUPPORTED_VERSIONS).body(), version, "no supported_versions"
        ),
        "compression": Case(compressed.body(), illegal, "a compression method besides null"),
        "two-faults": Case(both.body(), illegal, "compression is judged before what is missing"),
        "missing-groups": Case(
            plain().without(c.EXT_SUPPORTED_GROUPS).body(), missing, "no supported_groups"
        ),
        "missing-share": Case(plain().without(c.EXT_KEY_SHARE).body(), missing, "no key_share"),
        "missing-schemes": Case(
            plain().without(c.EXT_SIGNATURE_ALGORITHMS).body(), missing, "no signature_algorithms"
        ),
        "missing-modes": Case(no_modes.body(), missing, "pre_shared_key without its modes"),
        "share-unlisted": Case(unlisted.body(), illegal, "a share outside supported_groups"),
        "suite-none": Case(no_suite.body(), "tls-server-suite", "no suite in common"),
        "scheme-none": Case(rsa.body(), "tls-server-sigalg", "no scheme in common"),
        "group-none": Case(no_group.body(), "tls-server-group", "no group in common"),
        "alpn-none-common": Case(
            plain().put(c.EXT_ALPN, alpn(b"spdy/3")).body(), "tls-server-alpn", "no ALPN in common"
        ),
    }


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    parts = {**accepted(), **refused_while_reading(), **refused_when_judged()}
    return {f"handmade-{name}": case for name, case in parts.items()}
