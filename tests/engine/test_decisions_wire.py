"""Decisions about bytes of the peer that no other test told from their neighbours.

Each sees an entry of mutants/catalogue: numbers are written out here, not taken from the engine,
and bytes left over are well-formed, so that only the one rule can refuse them.
"""

from __future__ import annotations

import hmac
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from engine import codepoints
from engine.hello import HelloFault, Policy, choose, parse
from engine.key_exchange import exchange
from engine.key_schedule import SUITES
from engine.layout import OUT, OUT_CAP, RECEIVED, SCRATCH, SCRATCH_END, WRITE_SEQ
from engine.messages import encrypted_extensions
from peers.liar import Client
from peers.liar.identities import NOW_MS
from tests.engine.hello_bytes import (
    BINDER,
    GOOD,
    GROUPS,
    P256,
    PRE_SHARED_KEY,
    RESUMING,
    SCHEMES,
    SHARES,
    TICKET,
    VERSIONS,
    X25519,
    Body,
    shares,
    u16,
    v8,
    v16,
    versions,
    word_list,
    words,
)
from tests.engine.pairs import Pair, engine

FORMAT = "tls-server-client-hello-format"
ILLEGAL = "tls-server-illegal-parameter"
UNEXPECTED = ("tls-unexpected-message", 10)


def refusal(body: bytes) -> str:
    with pytest.raises(HelloFault) as raised:
        choose(parse(body), Policy(codepoints.SUITES_WITH_AES, codepoints.GROUPS))
    return raised.value.refusal.tag


# -- the ClientHello -------------------------------------------------------------------------


def test_a_whole_extension_behind_the_list_of_extensions_is_a_format_error() -> None:
    assert refusal(GOOD.encode() + u16(0x2A2A) + v16(b"")) == FORMAT


@pytest.mark.parametrize(
    "body",
    [
        GOOD.put(GROUPS, word_list(X25519) + words([P256])),
        GOOD.put(SCHEMES, word_list(0x0403) + words([0x0804])),
        GOOD.put(VERSIONS, versions(0x0304) + words([0x0303])),
        RESUMING.put(
            PRE_SHARED_KEY,
            v16((v16(TICKET) + bytes(4)) * 2) + v16(v8(BINDER)) + v8(BINDER),
        ),
    ],
    ids=["groups", "schemes", "versions", "binders"],
)
def test_a_whole_item_behind_its_list_is_a_format_error(body: Body) -> None:
    assert refusal(body.encode()) == FORMAT


def test_compression_is_told_before_a_missing_extension() -> None:
    assert refusal(replace(GOOD, compression=b"\x01").without(GROUPS).encode()) == ILLEGAL


@pytest.mark.parametrize(
    ("name", "matched"), [("server.example", True), ("other.example", False), (None, False)]
)
def test_a_server_name_is_answered_when_an_identity_has_it(
    name: str | None, matched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bytes] = []

    def telling(alpn: bytes | None, name_matched: bool) -> bytes:
        told.append(encrypted_extensions(alpn, name_matched))
        return told[-1]

    monkeypatch.setattr("engine.messages.encrypted_extensions", telling)
    Pair(engine(), client=Client(b"name", now_ms=NOW_MS, server_name=name)).establish()
    assert told == [b"\x08\x00\x00" + v8(v16(u16(0) + v16(b"") if matched else b""))]


@pytest.mark.parametrize(("group", "share"), [(X25519, bytes(32)), (P256, b"\x04" + b"\x01" * 64)])
def test_a_share_that_is_no_point_has_a_tag_of_its_own(group: int, share: bytes) -> None:
    body = GOOD.put(SHARES, shares((group, share))).encode()
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    Pair(engine()).fails(b"\x16\x03\x03" + v16(message), "tls-key-share", 47, "")


# -- records ---------------------------------------------------------------------------------


def test_an_inner_plaintext_of_16386_bytes_overflows_and_one_less_does_not() -> None:
    pair = Pair(engine()).establish()
    data = pair.client.protect(23, b"x", 16_383)
    assert pair.feed(data) == len(data)
    assert pair.recv() == b"x"
    pair.fails(pair.client.protect(23, b"x", 16_384), "tls-record-overflow", 22, "application")


@pytest.mark.parametrize("last", [b"\x15", b"\x16", b"\x17"])
def test_an_inner_plaintext_of_zeros_reads_nothing_of_what_waits_before_it(last: bytes) -> None:
    pair = Pair(engine()).establish()
    pair.feed(pair.client.send(b"waits" + last))
    pair.feed(pair.client.protect(0, bytes(5)))
    assert pair.engine.failure(0) == "tls-unexpected-message"
    assert pair.recv() == b"waits" + last


def test_a_hello_behind_the_flight_is_refused_under_the_clients_key_too() -> None:
    pair = Pair(engine()).greet()
    hello = Client(b"another", now_ms=NOW_MS).hello_message()
    pair.fails(pair.client.handshake_bytes(hello), *UNEXPECTED, "application")


def test_a_protected_change_cipher_spec_is_refused_once_established() -> None:
    pair = Pair(engine()).establish()
    pair.fails(pair.client.protect(20, b"\x01"), *UNEXPECTED, "application")


def test_early_data_inside_a_fragmented_second_hello_is_refused() -> None:
    client = Client(b"early", now_ms=NOW_MS, early_data=True, groups=(29, 23), shares=())
    pair = Pair(engine(), client=client)
    pair.answer(client.hello())
    assert client.state == "retry"
    second = client.hello_message()
    fragment = b"\x16\x03\x03" + v16(second[:50])
    pair.fails(fragment + b"\x17\x03\x03" + v16(bytes(20)), *UNEXPECTED, "")


def test_a_change_cipher_spec_of_zero_is_refused() -> None:
    pair = Pair(engine()).greet()
    pair.fails(b"\x14\x03\x03\x00\x01\x00", *UNEXPECTED, "application")


def test_the_33rd_empty_record_in_a_row_is_a_flood_and_the_32nd_is_not() -> None:
    pair = Pair(engine()).establish()
    for _ in range(32):
        pair.feed(pair.client.send(b""))
    assert pair.engine.event(0) == "established"
    pair.fails(pair.client.send(b""), "tls-too-many-messages", 10, "application")


def test_a_protected_record_under_16_bytes_is_refused_by_its_header() -> None:
    pair = Pair(engine()).establish()
    pair.fails(b"\x17\x03\x03\x00\x0f", "tls-bad-record-mac", 20, "application")


def test_sending_ends_the_run_of_a_connection_that_may_not_rest() -> None:
    pair = Pair(engine()).establish()
    pair.engine.set_resting(0)
    for _ in range(2):
        for _ in range(20):
            pair.feed(pair.client.send(b""))
        assert pair.engine.send(0, b"x") == 1
        pair.client.read(pair.take())
    assert pair.engine.event(0) == "established"


def test_a_skipped_record_leaves_no_plaintext_while_the_handshake_goes_on() -> None:
    client = Client(b"early", now_ms=NOW_MS, early_data=True)
    pair = Pair(engine(), client=client)
    pair.answer(client.hello())
    pair.feed(b"\x17\x03\x03" + v16(bytes(200)))
    assert pair.engine.failure(0) is None
    block = pair.engine._pool.held[0].bytes
    assert not any(block[RECEIVED : RECEIVED + 200])


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_full_queue_leaves_its_reserve_whenever_the_key_is_due(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(engine()).establish()
    monkeypatch.setattr(SUITES[pair.engine.suite(0)], "record_limit", limit)
    pair.engine.set_resting(0)
    assert pair.engine.send(0, b"x" * 40_000) > 0
    area = pair.engine._pool.held[0]
    assert OUT_CAP - (area.out_end - area.out_start) >= 256
    pair.client.read(pair.take())


def test_early_data_of_a_first_hello_is_not_skipped_behind_the_second() -> None:
    client = Client(b"early", now_ms=NOW_MS, early_data=True, groups=(29, 23), shares=())
    pair = Pair(engine(), client=client)
    pair.answer(client.hello())
    pair.answer(client.hello())
    pair.fails(b"\x17\x03\x03" + v16(bytes(20)), "tls-bad-record-mac", 20, "application")


def test_the_alert_of_a_connection_whose_area_had_gone_back_is_sealed() -> None:
    pair = Pair(engine()).establish()
    pair.engine.set_resting(0)
    pair.fails(b"\x16\x03\x03\x00\x04", *UNEXPECTED, "application")


@pytest.mark.parametrize("cut", [50, None])
def test_a_failed_handshake_leaves_no_secret_before_its_alert_is_taken(cut: int | None) -> None:
    pair = Pair(engine())
    if cut is None:
        pair.greet()
    else:
        pair.feed(b"\x16\x03\x03" + v16(pair.client.hello_message()[:cut]))
    area = pair.engine._pool.held[0]
    assert any(area.bytes[SCRATCH:SCRATCH_END])
    pair.feed(b"\x16\x03\x03\x00\x00")
    assert pair.engine.failure(0) == "tls-unexpected-message" and pair.engine.holds_area(0)
    assert not any(area.bytes[SCRATCH:OUT])
    assert area.opener is None and area.sealer is None and area.transcript is None


@pytest.mark.parametrize("how", ["close_notify", "finish", "failure"])
def test_a_connection_that_ended_does_not_rest(how: str) -> None:
    pair = Pair(engine()).establish()
    if how == "close_notify":
        pair.feed(pair.client.close_notify())
    elif how == "finish":
        pair.engine.finish(0)
    else:
        pair.feed(b"\x16\x03\x03\x00\x04")
    pair.take()
    assert pair.engine.areas_resting() == 0 and not pair.engine.holds_area(0)


def test_a_key_update_is_answered_with_one_that_asks_for_none_and_only_when_asked() -> None:
    pair = Pair(engine()).establish()
    pair.answer(pair.client.key_update(0))
    assert pair.client.key_updates == []
    pair.answer(pair.client.key_update(1))
    assert pair.client.key_updates == [0]


def test_a_key_update_with_a_byte_behind_it_has_no_effect() -> None:
    pair = Pair(engine()).establish()
    update = b"\x18\x00\x00\x01\x01"
    pair.fails(pair.client.handshake_bytes(update + b"\x18"), *UNEXPECTED, "application")
    assert pair.client.key_updates == []


# -- keys ------------------------------------------------------------------------------------


def test_an_aes_gcm_key_protects_at_most_2_to_the_24_and_a_half_records() -> None:
    limits = {suite: SUITES[suite].record_limit for suite in SUITES}
    assert limits == {0x1301: 23_726_566, 0x1302: 23_726_566, 0x1303: (1 << 63) - 1}
    # The largest whole number under 2^24.5, whose square is 2^49.
    assert 23_726_566**2 < 1 << 49 < 23_726_567**2


@pytest.mark.parametrize("resting", [0, 1])
def test_a_key_whose_limit_is_reached_protects_only_its_key_update(
    resting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SUITES[0x1301], "record_limit", 3)
    client = Client(b"limit", now_ms=NOW_MS, suites=[0x1301])
    pair = Pair(engine(), client=client).greet()
    pair.engine.set_resting(resting)
    pair.answer(client.finish())
    for sent in range(1, 12):
        assert pair.engine.send(0, b"x") == 1
        # Three records, then the KeyUpdate and the first record under the next key.
        if sent > 3:
            assert pair.engine._pool.words(0)[WRITE_SEQ] == (sent - 1) % 3 + 1
        client.read(pair.take())
    assert client.received == b"x" * 11


@pytest.mark.parametrize(
    ("group", "length", "order"),
    [
        (23, 48, 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551),
        (24, 64, int("f" * 48 + "c7634d81f4372ddf581a0db248b0a77aecec196accc52973", 16)),
    ],
)
def test_a_share_of_a_nist_curve_is_made_as_it_says(group: int, length: int, order: int) -> None:
    curve: ec.EllipticCurve = ec.SECP256R1() if group == 23 else ec.SECP384R1()
    secret = bytes(range(32))
    stretched = block = b""
    for counter in range(1, 3):
        block = hmac.digest(secret, block + b"residue share" + bytes([group, counter]), "sha256")
        stretched += block
    scalar = int.from_bytes(stretched[:length], "big") % (order - 1) + 1
    own = ec.derive_private_key(scalar, curve)
    other = ec.generate_private_key(curve)
    made = exchange(group, memoryview(secret), point(other.public_key()))
    assert made is not None
    assert made[0] == point(own.public_key())
    assert made[1] == other.exchange(ec.ECDH(), own.public_key())


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def test_the_finished_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def comparing(ours: bytes, theirs: bytes) -> bool:
        compared.append(bytes(theirs))
        return ours == theirs

    monkeypatch.setattr("engine.server.hmac.compare_digest", comparing)
    pair = Pair(engine()).greet()
    finished = pair.client.finished_message()
    pair.answer(pair.client.handshake_bytes(finished))
    assert pair.engine.event(0) == "established"
    assert compared == [finished[4:]]


def test_the_transcript_goes_with_the_handshake() -> None:
    pair = Pair(engine()).greet()
    data = pair.client.finish() + pair.client.send(b"more")
    assert pair.feed(data) == len(data)
    area = pair.engine._pool.held[0]
    assert area.transcript is None
