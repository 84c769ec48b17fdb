"""Tickets that a rule refuses (SPEC §5, in its order), and those that end the connection."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from peers.liar import codes, hello
from peers.liar.conversation import Connection, Script, Stage
from peers.liar.ends import End, answered, established, refused, resumed
from peers.liar.identities import NOW_MS, make
from peers.liar.wire import u16, u32, vec8, vec16

from .base import FIRST, TICKETS, again, both, put
from .ticket_steps import (
    HOUR_MS,
    KEYED,
    KEYS,
    Change,
    binders,
    coming_back,
    earn,
    flip,
    forged,
    made_up,
    present,
    psk_body,
    raw_psk,
)

BINDER = refused("tls-server-binder")
FORMAT = refused("tls-server-client-hello-format")
UNKNOWN, TAMPERED = established("unknown"), established("tampered")


def sized(size: int) -> Change:
    """The ticket cut or filled to a size."""
    return lambda t: replace(t, identity=t.identity[:size].ljust(size, b"\0"))


def lying(**lies: Any) -> Change:
    """Sealed anew with these contents."""
    return lambda t: forged(t, **lies)


def malformed(body: bytes) -> Script:
    """A hello whose pre_shared_key has this body."""
    return lambda stage: present(stage, made_up(), edit=raw_psk(body))


# Bytes changed on the way (§12.1).
coming_back("key-name-flipped", "a ticket of a key nobody has is unknown", "SPEC §5", UNKNOWN,
            flip(0))
for _name, _at in (("salt", 16), ("text", 60), ("tag", -1)):
    coming_back(f"{_name}-flipped", f"one bit of a ticket's {_name} is seen", "SPEC §5", TAMPERED,
                flip(_at))
coming_back("cut-by-ten", "a ticket cut short does not open", "SPEC §5", TAMPERED,
            lambda t: replace(t, identity=t.identity[:-10]))
coming_back("one-byte-more", "a ticket with a byte more does not open", "SPEC §5", TAMPERED,
            lambda t: replace(t, identity=t.identity + b"\0"))
for _size, _end in ((40, UNKNOWN), (154, UNKNOWN), (155, TAMPERED), (681, TAMPERED), (682, UNKNOWN),
                    (15000, UNKNOWN)):
    coming_back(f"ticket-of-{_size}-bytes", f"a ticket has 155 to 681 bytes: {_size}", "SPEC §1.4",
                _end, sized(_size))

# Contents that a holder of the key may write (rules in their order).
_Lies = dict[str, Any]
_CONTENTS: tuple[tuple[str, str, _Lies, str], ...] = (
    ("version-two", "the format has a version, and it is 1", {"version": 2}, "format"),
    ("version-zero", "version 0 is not read", {"version": 0}, "format"),
    ("more-behind", "nothing follows a ticket's fields", {"more": b"\0"}, "format"),
    ("psk-of-20", "a PSK is 32 or 48 bytes", {"psk": bytes(20)}, "format"),
    ("psk-runs-over", "a field of a ticket ends inside it", {"psk_size": 255}, "format"),
    ("auth-one", "an authenticated ticket is not taken", {"auth": 1}, "auth"),
    ("expired-long-ago", "a ticket past its end is expired",
     {"issue_ms": NOW_MS - 9000, "expiry_ms": NOW_MS - 1000}, "expired"),
    ("from-the-future", "a ticket of a clock ahead has the wrong age",
     {"issue_ms": NOW_MS + 60_000}, "age"),
    ("another-age-add", "the age is obfuscated with the ticket's own number",
     {"age_add": 1 << 31}, "age"),
    ("another-name", "a ticket is for the name it was earned with", {"name": b"two.example"},
     "name"),
    ("a-name-of-none", "a ticket without a name is not for a name", {"name": b""}, "name"),
    ("another-fingerprint", "a ticket is for the leaf it was earned under",
     {"fingerprint": bytes(32)}, "identity"),
    ("another-protocol", "a ticket is for the protocol it was earned with", {"alpn": b"h2"},
     "alpn"),
)
for _name, _rule, _lies, _verdict in _CONTENTS:
    coming_back(f"forged-{_name}", _rule, "SPEC §5", established(_verdict), lying(**_lies))

# The order of the rules: of two that fail the first is said (SPEC §5).
_ORDER: tuple[tuple[str, str, _Lies], ...] = (
    ("format", "auth", {"more": b"\0", "auth": 1}),
    ("auth", "expired", {"auth": 1, "expiry_ms": NOW_MS}),
    ("expired", "age", {"expiry_ms": NOW_MS, "issue_ms": NOW_MS - 60_000}),
    ("age", "name", {"issue_ms": NOW_MS - 60_000, "name": b"x"}),
    ("name", "identity", {"name": b"x", "fingerprint": bytes(32)}),
    ("suite", "alpn", {"suite": 0x1302, "psk": bytes(48), "alpn": b"h2"}),
    ("identity", "suite", {"fingerprint": bytes(32), "suite": 0x1302, "psk": bytes(48)}),
)
for _first, _second, _lies in _ORDER:
    coming_back(f"order-{_first}-{_second}", f"the rule {_first} is tried before {_second}",
                "SPEC §5", established(_first), lying(**_lies))

# Lifetime and age (rule c).
coming_back("expired", "a ticket is refused after its lifetime", "RFC 8446 §4.6.1",
            established("expired"), wait_ms=HOUR_MS + 1, basis="rfc")
coming_back("expires-exactly", "a ticket is refused at its last millisecond's end", "SPEC §5",
            established("expired"), wait_ms=HOUR_MS)
coming_back("expires-almost", "a ticket is taken a millisecond before", "SPEC §5", resumed(),
            wait_ms=HOUR_MS - 1)
for _skew, _ok in ((60_000, False), (30_001, False), (30_000, True), (29_000, True),
                   (-29_000, True),
                   (-30_000, True), (-30_001, False), (-31_000, False)):
    coming_back(f"age-off-by-{_skew}-ms", f"the client's age may be 30 s off: {_skew} ms",
                "SPEC §5", resumed() if _ok else established("age"), wait_ms=100_000,
                age_skew_ms=_skew)
coming_back("age-wraps", "an obfuscated age is a number of 32 bits", "RFC 8446 §4.2.11.1",
            resumed(), lambda t: forged(replace(t, age_add=0xFFFFFFFF), age_add=0xFFFFFFFF),
            wait_ms=5000, basis="rfc")

# Bound to what it was earned with (rule d).
coming_back("for-another-name", "a ticket is not for another name of the same server", "SPEC §5",
            established("name"), server_name="a.server.example")
coming_back("for-another-server", "a ticket is not for another server's name", "SPEC §5",
            established("name"), server_name="two.example")
coming_back("for-no-name", "a ticket of a name is not for none", "SPEC §5", established("name"),
            server_name=None)
coming_back("for-a-name-now", "a ticket of no name is not for a name", "SPEC §5",
            established("name"), first={"server_name": None})
coming_back("sha256-ticket-under-sha384", "a ticket's hash is the suite's", "RFC 8446 §4.2.11",
            established("suite", suite=0x1302), suites=(0x1302,), basis="rfc")
coming_back("sha384-ticket-beside-sha256", "the suite is chosen before the ticket", "SPEC §1.3",
            established("suite", suite=0x1301), first={"suites": (0x1302,)})
for _name, _was, _now in (("other", (b"h2",), (b"echo",)), ("no", (b"h2",), ()),
                          ("a-new", (), (b"h2",))):
    coming_back(f"with-{_name}-protocol-now", f"a ticket is for its protocol, not {_name} one",
                "SPEC §5", established("alpn"), first={"alpn": _was}, alpn=_now,
                setup=replace(KEYED, alpn=("h2", "echo")))


@TICKETS.case("identity-renewed", "a ticket is for the leaf that would be sent now", "SPEC §5",
              established("identity"), "policy", KEYED)
def _(stage: Stage) -> Connection:
    ticket = earn(stage)
    other = make(["server.example"], label="a renewed server")
    stage.call("replace_identity", 0, other.chain_pem, other.key_pem, stage.now_ms)
    return present(stage, ticket)


@TICKETS.case("identity-reloaded", "the same leaf loaded again keeps its tickets", "SPEC §5",
              resumed(), "policy", KEYED)
def _(stage: Stage) -> Connection:
    ticket = earn(stage)
    stage.call("replace_identity", 0, FIRST.chain_pem, FIRST.key_pem, stage.now_ms)
    return present(stage, ticket)


# A captured hello (rule e): the same seed says the same bytes.
def _capture(name: str, rule: str, end: End, wait_ms: int) -> None:
    @TICKETS.case(name, rule, "SPEC §5.2", end, "policy", KEYED)
    def _(stage: Stage) -> Connection:
        ticket = earn(stage)
        was = stage.now_ms
        stage.connect(twin="captured", tickets=[ticket]).hello().need("flight")
        stage.pass_time(wait_ms)
        return stage.connect(twin="captured", tickets=[ticket], now_ms=was).hello()


_capture("hello-replayed-at-once", "a captured hello is answered inside the window",
         End("flight", verdict="resumed"), 29_000)
_capture("hello-replayed-late", "a captured hello is not a resumption after the window",
         End("flight", verdict="age"), 60_000)


# Binders (rule f).
def _flip_binder(at: int, which: int = 0) -> Callable[[list[bytes]], list[bytes]]:
    def how(found: list[bytes]) -> list[bytes]:
        raw = bytearray(found[which])
        raw[at] ^= 1
        return [*found[:which], bytes(raw), *found[which + 1 :]]

    return how


for _name, _rule, _how in (
    ("first-byte", "a binder's first byte is compared", _flip_binder(0)),
    ("last-byte", "a binder's last byte is compared", _flip_binder(-1)),
    ("too-long", "a binder is as long as its hash", lambda b: [b[0] + b"\0"]),
    ("of-48", "a binder of the other hash's length is wrong", lambda b: [b[0] + bytes(16)]),
    ("of-zeros", "a binder of zeros is wrong", lambda b: [bytes(32)]),
):
    coming_back(f"binder-{_name}", _rule, "RFC 8446 §4.2.11.2", BINDER, basis="rfc",
                edit=binders(_how))
coming_back("binder-sha384-last-byte", "a binder of SHA-384 is compared to its end",
            "RFC 8446 §4.2.11.2", BINDER, basis="rfc", edit=binders(_flip_binder(-1)),
            first={"suites": (0x1302,)}, suites=(0x1302,))
coming_back("binder-of-another-psk", "a binder is made with the ticket's own PSK",
            "RFC 8446 §4.2.11.2", BINDER, lambda t: replace(t, secret=bytes(32)), basis="rfc")
coming_back("binder-of-the-wrong-label", "a ticket's binder is not an external PSK's",
            "RFC 8446 §7.1", BINDER, basis="rfc",
            edit=lambda h: setattr(h, "offers", [o._replace(label="ext binder") for o in h.offers]))
coming_back("binder-over-another-hello", "a binder covers the whole hello before it",
            "RFC 8446 §4.2.11.2", BINDER, basis="rfc",
            edit=lambda h: setattr(h, "edit_body", lambda b: b[:2] + bytes(32) + b[34:]))
coming_back("binder-of-a-forged-ticket", "a ticket's maker cannot choose the client's PSK",
            "RFC 8446 §4.2.11.2", BINDER, lambda t: forged(t, psk=bytes(32)), basis="rfc")
coming_back("binder-wrong-on-an-unknown-ticket", "a binder of a ticket not taken is not read",
            "RFC 8446 §4.2.11", UNKNOWN, flip(0), basis="rfc",
            edit=binders(_flip_binder(0)))
coming_back("binder-wrong-on-an-expired-ticket", "a binder of a ticket a rule refused is not read",
            "SPEC §5", established("expired"), wait_ms=HOUR_MS,
            edit=binders(_flip_binder(0)))


@TICKETS.case("binder-wrong-beside-a-good-one", "only the taken ticket's binder is checked",
              "RFC 8446 §4.2.11", resumed(selected=0), "rfc", KEYED)
def _(stage: Stage) -> Connection:
    good = earn(stage)
    return present(stage, good, good, edit=binders(_flip_binder(0, 1)))


@TICKETS.case("binder-wrong-before-a-good-one", "the first ticket taken is the one checked",
              "RFC 8446 §4.2.11", BINDER, "rfc", KEYED)
def _(stage: Stage) -> Connection:
    good = earn(stage)
    return present(stage, good, good, edit=binders(_flip_binder(0, 0)))


@TICKETS.case("binder-without-the-retry", "after a retry a binder covers the retry too",
              "RFC 8446 §4.2.11.2", BINDER, "rfc", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect(tickets=[earn(stage)], shares=()).hello().need("retry")
    c.client.transcript.clear()
    return c.hello()


@TICKETS.case("binder-of-a-made-up-ticket", "a made-up ticket needs its PSK in the binder",
              "RFC 8446 §4.2.11.2", BINDER, "rfc", KEYED)
def _(stage: Stage) -> Connection:
    return present(stage, replace(made_up(), secret=b"\x01" * 32))


# Shapes (§4.2.11): what does not parse ends the connection.
_ID = vec16(b"a ticket") + u32(7)
for _name, _rule, _body in (
    ("empty-list", "identities has one", vec16(b"") + vec16(vec8(bytes(32)))),
    ("no-binders", "binders has one", vec16(_ID) + vec16(b"")),
    ("identity-runs-over", "an identity ends inside its list",
     vec16(u16(9) + b"a ticket") + vec16(vec8(bytes(32)))),
    ("half-an-age", "an identity has a whole age",
     vec16(vec16(b"a ticket") + b"\0\0") + vec16(vec8(bytes(32)))),
    ("empty-identity", "an identity is not empty",
     vec16(vec16(b"") + u32(0) + b"") + vec16(vec8(bytes(32)))),
    ("empty-identity-first", "the first of two identities is not empty",
     vec16(vec16(b"") + u32(0) + _ID) + vec16(vec8(bytes(32)) * 2)),
    ("binder-of-31", "a binder has 32 bytes at least", vec16(_ID) + vec16(vec8(bytes(31)))),
    ("second-binder-of-31", "the second binder has 32 bytes at least",
     vec16(_ID * 2) + vec16(vec8(bytes(32)) + vec8(bytes(31)))),
    ("binder-runs-over", "a binder ends inside its list", vec16(_ID) + vec16(vec8(bytes(32), 40))),
    ("list-runs-over", "identities end inside the extension",
     vec16(_ID, 200) + vec16(vec8(bytes(32)))),
    ("bytes-behind", "nothing is left over in pre_shared_key",
     vec16(_ID) + vec16(vec8(bytes(32))) + b"\0"),
    ("no-body", "pre_shared_key has a body", b""),
):
    TICKETS.add(f"malformed-{_name}", _rule, "RFC 8446 §4.2.11", FORMAT,
                malformed(_body),
                "rfc", KEYED)
for _name, _rule, _body in (
    ("two-identities-one-binder", "each identity has a binder",
     vec16(_ID * 2) + vec16(vec8(bytes(32)))),
    ("one-identity-two-binders", "each binder has an identity",
     vec16(_ID) + vec16(vec8(bytes(32)) * 2)),
    ("six-identities-five-binders", "the sixth identity has a binder too",
     vec16(_ID * 6) + vec16(vec8(bytes(32)) * 5)),
):
    TICKETS.add(_name, _rule, "RFC 8446 §4.2.11", refused("tls-server-illegal-parameter"),
                malformed(_body), "rfc", KEYED)
coming_back("malformed-cut-by-one", "pre_shared_key is as long as its lists say", "RFC 8446 §3.4",
            FORMAT, basis="rfc", edit=psk_body(lambda b: b[:-1]))
coming_back("empty-modes", "psk_key_exchange_modes is not empty", "RFC 8446 §4.2.9", FORMAT,
            basis="rfc", edit=put(codes.PSK_KEY_EXCHANGE_MODES, hello.psk_modes()))
coming_back("psk-not-last", "pre_shared_key is the last extension", "RFC 8446 §4.2.11",
            refused("tls-server-illegal-parameter"), basis="rfc",
            edit=lambda h: h.extensions.append((0xFAFA, b"")))
coming_back("psk-first", "pre_shared_key is not the first extension", "RFC 8446 §4.2.11",
            refused("tls-server-illegal-parameter"), basis="rfc",
            edit=lambda h: h.first(codes.PRE_SHARED_KEY))
coming_back("psk-twice", "not even a second pre_shared_key follows the first", "RFC 8446 §4.2.11",
            refused("tls-server-illegal-parameter"), basis="rfc",
            edit=both(again(codes.PRE_SHARED_KEY),
                      lambda h: setattr(h, "edit_binders", None)))

# Settings (SPEC §5): a call that is refused changes nothing.
for _name, _rule, _call, _tag in (
    ("count-of-9", "more than eight tickets are refused", ("set_tickets", 9, 3600), "config"),
    ("count-below-0", "fewer than no tickets are refused", ("set_tickets", -1, 3600), "config"),
    ("lifetime-of-0", "a lifetime of nothing is refused", ("set_tickets", 2, 0), "config"),
    ("lifetime-of-8-days", "a lifetime of more than seven days is refused",
     ("set_tickets", 2, 8 * 86400), "config"),
    ("lifetime-of-7-days", "a lifetime of seven days is taken", ("set_tickets", 2, 604800), ""),
    ("no-keys", "a list of no keys is refused", ("set_ticket_keys", [], NOW_MS), "key"),
    ("key-of-31", "a key of 31 bytes is refused", ("set_ticket_keys", [bytes(31)], NOW_MS), "key"),
    ("key-of-33", "a key of 33 bytes is refused", ("set_ticket_keys", [bytes(33)], NOW_MS), "key"),
    ("five-keys", "five keys are refused", ("set_ticket_keys", list(KEYS[:5]), NOW_MS), "key"),
    ("one-key-twice", "a key listed twice is refused",
     ("set_ticket_keys", [KEYS[0], KEYS[1], KEYS[0]], NOW_MS), "key"),
    ("four-keys", "four keys are taken", ("set_ticket_keys", list(KEYS[:4]), NOW_MS), ""),
):
    def _asked(stage: Stage, call: tuple[object, ...] = _call) -> None:
        stage.call(str(call[0]), *call[1:])

    TICKETS.add(f"setting-{_name}", _rule, "SPEC §5",
                answered(_tag and f"tls-server-ticket-{_tag}"), _asked, "policy")


@TICKETS.case("setting-rotation-unseeded", "a key is not drawn without entropy", "SPEC §1.1",
              answered("tls-no-entropy"), "policy",
              replace(TICKETS.setup, seeded=False))
def _(stage: Stage) -> None:
    stage.call("rotate_ticket_key", stage.now_ms)
