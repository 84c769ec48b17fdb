"""The program's calls that are refused (SPEC §1.2, §3): each changes nothing, and is said."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from dataclasses import replace

from peers.liar.conversation import Connection, Setup, Stage
from peers.liar.ends import answered, established
from peers.liar.identities import NOW, NOW_MS, make

from .base import FIRST, HANDSHAKE, SECOND

SETUP = HANDSHAKE.setup
NAMES = ("more.example",)
GOOD = (FIRST.chain_pem, FIRST.key_pem)
P384 = make(NAMES, "p384")
OLD = make(NAMES, label="an old server", not_after=NOW.replace(year=2025, month=6))
BIG = b"".join(make((f"{'a' * 60}.{i}.example",), label=f"big {i}").chain_pem for i in range(40))


def call(name: str, rule: str, tag: str, *arguments: object, setup: Setup = SETUP,
         where: str = "SPEC §3") -> None:
    """One call, and what it answers."""

    def script(stage: Stage) -> None:
        stage.call(str(arguments[0]), *arguments[1:])

    HANDSHAKE.add(name, rule, where, answered(tag), script, "policy", setup)


def identity(name: str, rule: str, tag: str, chain: bytes, key: bytes,
             names: object = NAMES) -> None:
    """Add a conversation in which `add_identity` is refused with this tag."""
    call(f"identity-{name}", rule, tag, "add_identity", chain, key, names, NOW_MS)


identity("taken", "a chain, its key and names are taken", "", *GOOD)
identity("no-chain", "an identity has a chain", "tls-server-chain", b"", FIRST.key_pem)
identity("chain-of-text", "a chain is PEM", "tls-server-chain", b"hello", FIRST.key_pem)
identity("chain-of-a-key", "a chain is certificates", "tls-server-chain", FIRST.key_pem,
         FIRST.key_pem)
identity("chain-too-long", "a chain has at most 16,384 bytes", "tls-server-chain",
         FIRST.chain_pem + BIG, FIRST.key_pem)
for _label, _names in (("not-ascii", ("ä.example",)), ("empty", ("",)), ("of-empty-labels",
                       ("a..example",)), ("of-a-bare-star", ("*",)), ("with-a-star-inside",
                       ("a*.example",)), ("with-a-star-behind", ("a.*.example",))):
    identity(f"name-{_label}", f"a name is exact or begins with a star: {_label}",
             "tls-server-names", *GOOD, _names)
identity("leaf-of-p384", "a leaf's key is P-256", "tls-server-key-type", P384.chain_pem,
         P384.key_pem)
identity("leaf-of-rsa", "a leaf's key is not RSA", "tls-server-key-type",
         make(NAMES, "rsa2048").chain_pem, make(NAMES, "rsa2048").key_pem)
identity("key-of-text", "a key is PEM", "tls-server-key-format", FIRST.chain_pem, b"hello")
identity("key-of-a-certificate", "a key is no certificate", "tls-server-key-format", *GOOD[:1] * 2)
identity("key-of-p384", "a key is P-256", "tls-server-key-type", FIRST.chain_pem, P384.key_pem)
identity("key-of-another", "the key is the leaf's", "tls-server-key-mismatch", FIRST.chain_pem,
         SECOND.key_pem)
identity("expired", "an expired leaf is not shown", "tls-server-cert-expired", OLD.chain_pem,
         OLD.key_pem)
call("identity-seventeenth", "sixteen identities are the most", "tls-server-identities-full",
     "add_identity", *GOOD, NAMES, NOW_MS,
     setup=replace(SETUP, identities=tuple(make((f"s{i}.example",)) for i in range(16))))

for _label, _list in (("an-empty-name", [b""]), ("a-name-of-256", [b"a" * 256]),
                      ("more-than-512-bytes", [bytes((65 + i,)) * 200 for i in range(3)])):
    call(f"alpn-{_label}", f"a protocol list is refused for {_label.replace('-', ' ')}",
         "tls-server-alpn-list", "set_alpn", _list, where="SPEC §1.4")
call("served-without-an-identity", "without an identity nothing is served", "tls-server-chain",
     "serve", 0, NOW_MS, setup=Setup(), where="SPEC §1.1")
call("served-without-entropy", "without entropy nothing is served", "tls-no-entropy",
     "serve", 0, NOW_MS, setup=replace(SETUP, seeded=False), where="SPEC §1.1")


@HANDSHAKE.case("served-without-an-area", "without a free area nothing is served", "SPEC §1.1",
                established(answers=("tls-pool",)), "policy", replace(SETUP, areas=1))
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    stage.call("serve", 7, stage.now_ms)
    return c.finish().echo()


@HANDSHAKE.case("served-in-a-resting-area", "a handshake takes a resting connection's area",
                "SPEC §2", established(received=b"pingping"), "policy", replace(SETUP, areas=1))
def _(stage: Stage) -> Connection:
    first = stage.connect().honest()
    stage.connect().honest()
    return first.echo()
