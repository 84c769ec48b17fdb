"""The handmade inputs of the differential harness: a client's first bytes, as records.

Most are those of the hello and server harnesses, with what those expect, up to the server's flight;
the rest are differences that need inputs of their own (`harnesses.models.differential_rows`).
"""

from __future__ import annotations

from engine import codepoints as c
from peers.liar import hello as build
from peers.liar.hello import Hello
from peers.liar.record import record

from ..fixtures import plain
from ..formats.server import NO_AES, Call, decode
from ..hello import hello_records
from ..outcomes import chosen
from . import server, server_flights, server_states
from .case import Case
from .hello import P521, psk, without
from .hello import cases as hello_cases

RSA_PKCS1_SHA256 = 0x0401
CCS = record(c.CHANGE_CIPHER_SPEC, b"\1")
RETRIED = chosen(retried="yes")
UNEXPECTED = "tls-unexpected-message"
SPOILT = b"\0"
"""The body of an extension that no list can have."""


def cases() -> dict[str, Case]:
    """Every handmade input by its file's name."""
    found = {
        name.replace("handmade-", "handmade-hello-"): Case(
            hello_records(case.data), _first(case.outcome), case.what
        )
        for name, case in hello_cases().items()
    }
    whole = {
        **server.clear(),
        **server.retries(),
        **server_states.before_keys(),
        **server_states.second_hellos(),
        **server_flights.resumptions(),
    }
    for name, case in whole.items():
        stream = _stream(case.data)
        if stream is not None:
            found[f"handmade-{name}"] = Case(stream, _first(case.outcome), case.what)
    own = {name: Case(data, outcome, what) for name, data, outcome, what in _own()}
    return found | {f"handmade-{name}": case for name, case in own.items()}


def _first(outcome: str) -> str:
    """What a conversation's outcome says of its first flight."""
    return (
        "waiting retried=yes"
        if outcome.startswith("waiting") and "retried=yes" in outcome
        else outcome.replace("established", "waiting")
    )


def _stream(data: bytes) -> bytes | None:
    """What a script's client says; None when the script does anything else but feed it."""
    script = decode(data)
    if script is None or script.settings & ~NO_AES:
        return None
    if any(step.call not in (Call.FEED, Call.FEED_NOTHING) for step in script.steps):
        return None
    return b"".join(step.data for step in script.steps)


def _own() -> tuple[tuple[str, bytes, str, str], ...]:
    named = plain(c.EXT_SIGNATURE_ALGORITHMS_CERT, build.code_list((RSA_PKCS1_SHA256,)))
    late = plain(c.EXT_KEY_SHARE, build.key_shares([]))
    late.drop(c.EXT_SIGNATURE_ALGORITHMS)
    late.put(c.EXT_PSK_KEY_EXCHANGE_MODES, build.psk_modes(c.PSK_DHE_KE))
    late.put(c.EXT_PRE_SHARED_KEY, psk([b"ticket"], [bytes(32)]))
    old = plain()
    old.version = 0x0200
    other = plain(c.EXT_SUPPORTED_GROUPS, build.code_list((P521,)))
    other.put(c.EXT_KEY_SHARE, build.key_shares([]))
    first = _sent(plain(c.EXT_KEY_SHARE, build.key_shares([])))
    fewer = plain()
    fewer.suites = [c.TLS_AES_128_GCM_SHA256]
    canceled = record(c.ALERT, b"\1\x5a")
    empty = record(c.HANDSHAKE, b"")
    nothing = record(c.CHANGE_CIPHER_SPEC, b"")
    second = plain().message()
    broken = record(c.HANDSHAKE, second[:9]) + CCS + record(c.HANDSHAKE, second[9:])
    again = _sent(plain())
    return (
        ("authorities", _sent(plain(c.EXT_CERTIFICATE_AUTHORITIES, SPOILT)), chosen(), "not read"),
        ("sigalgs-cert", _sent(named), chosen(), "no certificate of ours fits"),
        ("sigalgs-late", _sent(late), "waiting retried=yes", "judged after the tickets"),
        ("legacy-version", _sent(old), chosen(), "before SSL 3.0"),
        ("group-p521", _sent(other), "tls-server-group", "a group that OpenSSL has"),
        ("retry-suites", first + _sent(fewer), RETRIED, "other suites are gone"),
        (
            "retry-groups",
            first + _sent(without(c.EXT_SUPPORTED_GROUPS)),
            "tls-server-missing-extension",
            "no supported_groups in the second hello",
        ),
        ("canceled-only", canceled, "waiting", "and nothing follows"),
        ("canceled-six", first + canceled * 6 + again, RETRIED, "OpenSSL takes five"),
        ("empty-first", empty + again, UNEXPECTED, "an empty record before the hello"),
        ("empty-ccs", nothing + again, UNEXPECTED, "an empty change_cipher_spec"),
        ("empty-retry", empty + first + again, UNEXPECTED, "where OpenSSL asks for a retry"),
        ("interleaved", first + broken, UNEXPECTED, "between the fragments of the second hello"),
        ("sigalgs-late-two", _sent(late) + again, RETRIED, "and a second hello"),
    )


def _sent(hello: Hello) -> bytes:
    return record(c.HANDSHAKE, hello.message())
