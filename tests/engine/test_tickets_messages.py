"""Binders, resumption PSKs, and the NewSessionTicket messages a connection is sent."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from engine import tickets
from engine.key_schedule import SHA256, SHA384, HashSuite
from engine.ticket_keys import TicketKeyRing
from engine.tickets import (
    ENTROPY_LENGTH,
    MAX_COUNT,
    Moment,
    Session,
    binder,
    binder_holds,
    choose,
    expiry,
    issue,
    new_session_ticket,
)
from tests.engine import ticket_format

KEY = b"k" * 32
LEAF = b"\x11" * 32
FAR = 10**13
ENTROPY = bytes(n % 251 for n in range(MAX_COUNT * ENTROPY_LENGTH))
MASTER = bytes(range(48))

# RFC 8448 §4, "Resumed 0-RTT Handshake": the PSK, the hash of the truncated ClientHello and
# the binder over it.
RFC8448_PSK = bytes.fromhex("4ecd0eb6ec3b4d87f5d6028f922ca4c5851a277fd41311c9e62d2c9492e1c4f3")
RFC8448_HASH = bytes.fromhex("63224b2e4573f2d3454ca84b9d009a04f6be9e05711a8396473aefa01e924a14")
RFC8448_BINDER = bytes.fromhex("3add4fb2d8fdf822a0ca3cf7678ef5e88dae990141c5924d57bb6fa31b9e5f9d")


def ring(now_ms: int = 5_000, lifetime_ms: int = 3_600_000) -> TicketKeyRing:
    made = TicketKeyRing(lifetime_ms)
    made.set_keys([KEY], now_ms)
    return made


def issued(
    count: int = 2,
    *,
    keys: TicketKeyRing | None = None,
    suite: int = 0x1301,
    not_after_ms: int = FAR,
    name: bytes = b"server.example",
    alpn: bytes = b"h2",
) -> list[bytes]:
    length = 48 if suite == 0x1302 else 32
    session = Session(suite, LEAF, not_after_ms, name, alpn)
    return issue(keys or ring(), count, ENTROPY, MASTER[:length], session)


def parsed(message: bytes) -> tuple[int, int, bytes, bytes]:
    """Lifetime, age_add, nonce and ticket of a NewSessionTicket, read by hand."""
    assert message[0] == 4
    assert int.from_bytes(message[1:4], "big") == len(message) - 4
    lifetime = int.from_bytes(message[4:8], "big")
    age_add = int.from_bytes(message[8:12], "big")
    nonce_end = 13 + message[12]
    ticket_end = nonce_end + 2 + int.from_bytes(message[nonce_end : nonce_end + 2], "big")
    assert message[ticket_end:] == b"\0\0"
    return lifetime, age_add, message[13:nonce_end], message[nonce_end + 2 : ticket_end]


def second_binder(psk: bytes, hash_name: str, transcript_hash: bytes) -> bytes:
    empty = hashlib.new(hash_name).digest()
    early = hmac.new(bytes(len(empty)), psk, hash_name).digest()
    key = ticket_format.expand_label(early, hash_name, "res binder", empty)
    finished = ticket_format.expand_label(key, hash_name, "finished", b"")
    return hmac.new(finished, transcript_hash, hash_name).digest()


def test_the_binder_of_rfc_8448_is_made_and_held() -> None:
    early = SHA256.early(RFC8448_PSK)
    assert binder(SHA256, early, RFC8448_HASH) == RFC8448_BINDER
    assert binder_holds(SHA256, early, RFC8448_HASH, RFC8448_BINDER)


@given(st.sampled_from([SHA256, SHA384]), st.data())
def test_a_second_implementation_makes_the_same_binder(
    hash_suite: HashSuite, data: st.DataObject
) -> None:
    length = hash_suite.size
    psk = data.draw(st.binary(min_size=length, max_size=length))
    seen = data.draw(st.binary(min_size=length, max_size=length))
    made = binder(hash_suite, hash_suite.early(psk), seen)
    assert made == second_binder(psk, hash_suite.name, seen)


@pytest.mark.parametrize("hash_suite", [SHA256, SHA384])
def test_a_binder_of_another_value_or_length_does_not_hold(hash_suite: HashSuite) -> None:
    length = hash_suite.size
    psk, seen = bytes(range(length)), b"t" * length
    early = hash_suite.early(bytearray(psk))
    right = binder(hash_suite, early, seen)
    assert binder_holds(hash_suite, early, seen, memoryview(right))
    for at in range(length):
        wrong = bytearray(right)
        wrong[at] ^= 0x80
        assert not binder_holds(hash_suite, early, seen, wrong)
    assert not binder_holds(hash_suite, early, seen, right[:-1])
    assert not binder_holds(hash_suite, early, seen, right + b"\0")
    assert not binder_holds(hash_suite, early, seen, b"")
    assert not binder_holds(hash_suite, hash_suite.early(bytes(length)), seen, right)
    assert not binder_holds(hash_suite, early, b"u" * length, right)


@pytest.mark.parametrize("hash_suite", [SHA256, SHA384])
def test_each_ticket_of_a_connection_has_a_psk_of_its_own(hash_suite: HashSuite) -> None:
    master = MASTER[: hash_suite.size]
    keyed = hash_suite.keyed(master)
    psks = [hash_suite.resumption_psk(keyed, index) for index in range(MAX_COUNT)]
    assert len(set(psks)) == MAX_COUNT
    for index, psk in enumerate(psks):
        nonce = bytes([index])
        assert psk == ticket_format.expand_label(master, hash_suite.name, "resumption", nonce)


def test_a_new_session_ticket_is_encoded_without_extensions() -> None:
    message = new_session_ticket(3600, b"\1\2\3\4", 5, b"ticket")
    assert message.hex() == "04000014" + "00000e10" + "01020304" + "0105" + "0006" + (
        b"ticket".hex() + "0000"
    )
    assert parsed(message) == (3600, 0x01020304, b"\x05", b"ticket")


@pytest.mark.parametrize("count", range(MAX_COUNT + 1))
def test_as_many_tickets_are_made_as_were_asked_for(count: int) -> None:
    assert len(issued(count)) == count


@pytest.mark.parametrize("suite", [0x1301, 0x1302, 0x1303])
def test_what_a_ticket_holds_is_what_the_connection_was(suite: int) -> None:
    hash_name, length = ("sha384", 48) if suite == 0x1302 else ("sha256", 32)
    for index, message in enumerate(issued(MAX_COUNT, suite=suite)):
        lifetime, age_add, nonce, ticket = parsed(message)
        fields = ticket_format.opened(ticket, KEY)
        start = index * 36
        assert ticket[16:48] == ENTROPY[start : start + 32]
        assert age_add == int.from_bytes(ENTROPY[start + 32 : start + 36], "big")
        assert lifetime == 3_600
        assert nonce == bytes([index])
        assert fields == {
            "version": 1,
            "auth": 0,
            "issue_ms": 5_000,
            "expiry_ms": 3_605_000,
            "age_add": age_add,
            "suite": suite,
            "psk": ticket_format.expand_label(MASTER[:length], hash_name, "resumption", nonce),
            "fingerprint": LEAF,
            "name": b"server.example",
            "alpn": b"h2",
        }


def test_what_tickets_are_made_from_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    made_from: list[tuple[bytearray, int]] = []

    class Cipher:
        def __init__(self, key: bytes) -> None:
            self.inner = ChaCha20Poly1305(key)

        def encrypt(self, nonce: bytes, data: bytearray, aad: bytes) -> bytes:
            made_from.append((data, len(data)))
            assert data[0] and data[-1]
            return self.inner.encrypt(nonce, data, aad)

    monkeypatch.setattr(tickets, "ChaCha20Poly1305", Cipher)
    issued(3)
    ticket = tickets.Ticket(1, 2, 3, 0x1301, bytearray(b"p" * 32), LEAF, b"n", b"a")
    tickets.seal(ticket, b"n" * 16, KEY, b"s" * 32)
    # A buffer that shrank or grew would leave bytes behind where nobody clears them.
    assert [len(data) for data, _ in made_from] == [length for _, length in made_from]
    assert [length for _, length in made_from] == [107, 107, 107, 93]
    assert not any(any(data) for data, _ in made_from)


def test_an_issued_ticket_resumes() -> None:
    keys = ring()
    for message in issued(keys=keys):
        _, age_add, nonce, ticket = parsed(message)
        keys.advance(9_000)
        moment = Moment(keys.now_ms, b"server.example", LEAF, 0x1303, b"h2", False)
        choice = choose(keys, True, b"\x01", [(ticket, (4_000 + age_add) % 2**32)], moment)
        assert choice.ticket is not None
        keyed = SHA256.keyed(MASTER[:32])
        assert choice.ticket.psk == SHA256.resumption_psk(keyed, nonce[0])


def test_a_ticket_without_a_name_or_a_protocol_has_neither() -> None:
    ticket = parsed(issued(1, name=b"", alpn=b"")[0])[3]
    fields = ticket_format.opened(ticket, KEY)
    assert (fields["name"], fields["alpn"]) == (b"", b"")
    assert len(ticket) == 155


@pytest.mark.parametrize(
    ("not_after_ms", "expiry_ms", "lifetime_s"),
    [
        (3_605_001, 3_605_000, 3_600),
        (3_605_000, 3_605_000, 3_600),
        (3_604_999, 3_604_999, 3_599),
        (6_000, 6_000, 1),
    ],
)
def test_a_ticket_never_outlives_the_leaf(
    not_after_ms: int, expiry_ms: int, lifetime_s: int
) -> None:
    lifetime, _, _, ticket = parsed(issued(1, not_after_ms=not_after_ms)[0])
    assert ticket_format.opened(ticket, KEY)["expiry_ms"] == expiry_ms
    assert lifetime == lifetime_s


@pytest.mark.parametrize("not_after_ms", [5_999, 5_000, 4_999, 0, -1])
def test_a_leaf_with_less_than_a_second_to_live_gets_no_ticket(not_after_ms: int) -> None:
    assert issued(1, not_after_ms=not_after_ms) == []


def test_without_a_key_there_is_no_ticket() -> None:
    assert issued(2, keys=TicketKeyRing(3_600_000)) == []


def test_a_ticket_is_sealed_under_the_current_key() -> None:
    keys = TicketKeyRing(3_600_000)
    keys.set_keys([b"n" * 32, KEY], 0)
    ticket_format.opened(parsed(issued(1, keys=keys)[0])[3], b"n" * 32)


def test_the_latest_time_and_the_longest_lifetime_fit_in_a_ticket() -> None:
    keys = ring((1 << 62) - 1, 604_800_000)
    lifetime, _, _, ticket = parsed(issued(1, keys=keys, not_after_ms=1 << 63)[0])
    assert lifetime == 604_800
    assert ticket_format.opened(ticket, KEY)["expiry_ms"] == (1 << 62) - 1 + 604_800_000


@given(st.integers(0, 10**13), st.integers(1_000, 604_800_000), st.integers(0, 10**13))
def test_the_expiry_is_the_earlier_of_the_lifetime_s_end_and_the_leaf_s(
    issue_ms: int, lifetime_ms: int, not_after_ms: int
) -> None:
    end = expiry(issue_ms, lifetime_ms, not_after_ms)
    assert end in (issue_ms + lifetime_ms, not_after_ms)
    assert end <= issue_ms + lifetime_ms
    assert end <= not_after_ms
