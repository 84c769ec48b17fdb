"""Decisions about calls, memory and identities that no other test told from their neighbours."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from engine import Engine, Refused, layout
from engine.client_certificate import read_certificate
from engine.copies import clear_keys, copy_core
from engine.drbg import Drbg
from engine.identities import Identities
from engine.layout import CORE_LEN
from engine.pool import Pool
from engine.x509 import der
from engine.x509.certificates import read
from engine.x509.stores import load
from peers.liar import Client
from peers.liar.identities import NOW_MS, make
from tests.engine.mutual_pairs import client, device, mutual, root
from tests.engine.pairs import ENTROPY, Pair, engine

# -- the maps --------------------------------------------------------------------------------


def flags_of(memory: mmap.mmap) -> set[str]:
    """The kernel's flags for the mapping that an address lies in (proc(5), smaps)."""
    place = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(place)
    del place
    inside = False
    with open("/proc/self/smaps", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and ":" not in words[0]:
                start, _, end = words[0].partition("-")
                inside = int(start, 16) <= address < int(end, 16)
            elif inside and words[0] == "VmFlags:":
                return set(words[1:])
    raise AssertionError("no mapping holds the map")


@pytest.fixture
def maps() -> Iterator[list[mmap.mmap]]:
    pool = Pool(3, 2)
    yield [pool._core_map, pool._area_map, pool._room_map]
    pool.wipe()
    pool.close()


def test_a_map_is_in_no_core_dump_has_no_huge_page_and_is_not_committed(
    maps: list[mmap.mmap],
) -> None:
    for memory in maps:
        assert {"dd", "nh", "nr"} <= flags_of(memory)
        assert "sh" not in flags_of(memory)


def test_a_core_moves_whole() -> None:
    target = bytearray(CORE_LEN + 1)
    copy_core(memoryview(target), memoryview(b"\xff" * (CORE_LEN + 1)))
    assert target == b"\xff" * CORE_LEN + b"\x00"


# -- closing and seeding ---------------------------------------------------------------------


def test_a_second_seed_is_mixed_with_what_is_there() -> None:
    def draws(*seeds: bytes) -> bytes:
        made = Engine.server(1)
        for seed in seeds:
            made.seed(seed)
        assert made.residue() == 0 and made._drbg is not None
        return made._drbg.draw(64)

    other = bytes(reversed(ENTROPY))
    drawn = [
        draws(ENTROPY), draws(other), draws(ENTROPY, other), draws(other, ENTROPY),
        draws(ENTROPY, ENTROPY), draws(ENTROPY, ENTROPY, ENTROPY),
    ]  # fmt: skip
    assert len(set(drawn)) == len(drawn)
    assert draws(ENTROPY, other) == drawn[2]


def test_closing_wipes_the_generator_and_the_identities() -> None:
    made = engine()
    generator, identities = made._drbg, made._server.identities
    made.close()
    assert generator is not None and generator._key == bytes(32)
    assert len(identities) == 0 and identities._entries == [None] * 16


def test_a_draw_is_left_nowhere_else() -> None:
    generator = Drbg(ENTROPY)
    generator.draw(100)
    assert not any(generator._stream)


def test_a_refused_list_of_protocols_leaves_the_one_before() -> None:
    made = engine()
    made.set_alpn(["h2"])
    with pytest.raises(Refused):
        made.set_alpn(["h2", "h2"])
    assert made._server.policy.alpn == (b"h2",)


def test_a_key_in_an_unused_identity_entry_is_residue_of_the_engine() -> None:
    made = engine()
    entries = made._server.identities._entries
    entries[7] = entries[0]
    assert made.residue() == 1
    entries[7] = None
    assert made.residue() == 0


def test_a_connections_draws_are_the_generators_first_352_bytes() -> None:
    made = engine()
    made.serve(0, NOW_MS)
    block = made._pool.held[0].bytes
    drawn = bytes(block[layout.ENTROPY : layout.ENTROPY + 352])
    assert drawn == Drbg(ENTROPY).draw(352)
    assert layout.ENTROPY_END == layout.ENTROPY + 352


def test_a_retry_is_told_and_answers_no_suite_yet() -> None:
    pair = Pair(engine(), client=Client(b"retry", now_ms=NOW_MS, shares=()))
    assert not pair.engine.retried(0)
    pair.answer(pair.client.hello())
    assert pair.engine.retried(0) and not pair.engine.resumed(0)
    assert pair.engine.suite(0) == pair.engine.group(0) == 0
    pair.answer(pair.client.hello())
    assert pair.engine.suite(0) == 0x1301 and pair.engine.group(0) == 29


def test_a_list_of_protocols_of_513_bytes_is_refused() -> None:
    made = engine()
    made.set_alpn([b"x" * 255, b"y" * 255])
    with pytest.raises(Refused, match="tls-server-alpn-list"):
        made.set_alpn([b"x" * 255, b"y" * 254, b"z"])


# -- moving bytes ----------------------------------------------------------------------------


def test_a_resting_connection_sends_nothing_for_nothing() -> None:
    pair = Pair(engine()).establish()
    assert pair.engine.areas_resting() == 1
    assert pair.engine.send(0, b"") == 0
    assert pair.take() == b""


def test_a_resting_connection_sends_16385_bytes_in_two_records() -> None:
    pair = Pair(engine()).establish()
    assert pair.engine.areas_resting() == 1
    assert pair.engine.send(0, b"x" * 16_385) == 16_385
    said = pair.take()
    assert int.from_bytes(said[3:5], "big") == 16_384 + 1 + 16
    pair.client.read(said)
    assert pair.client.received == b"x" * 16_385


def test_output_is_wanted_before_the_peers_end_is_told() -> None:
    pair = Pair(engine()).establish()
    assert pair.engine.send(0, b"answer") == 6
    pair.feed(pair.client.close_notify())
    assert pair.engine.event(0) == "want_write"
    pair.take()
    assert pair.engine.event(0) == "closed"


@pytest.mark.parametrize("way", ["take", "recv"])
def test_no_more_rest_than_may_when_a_record_was_moved_the_quick_way(way: str) -> None:
    made = engine(2, 2)
    made.set_resting(1)
    one, two = Pair(made, 0).establish(), Pair(made, 1).establish()
    one.feed(one.client.send(b"wake"))
    assert one.recv() == b"wake" and made.areas_resting() == 1
    if way == "take":
        made.send(0, b"out")
    else:
        one.feed(one.client.send(b"in"))
    two.feed(two.client.send(b"wake"))
    assert two.recv() == b"wake" and made.areas_resting() == 1
    assert one.take() if way == "take" else one.recv()
    assert made.areas_resting() == 1 and made.areas_free() == 2


def test_a_record_that_was_moved_the_quick_way_may_be_had_in_two_parts() -> None:
    pair = Pair(engine()).establish()
    assert pair.engine.areas_resting() == 1
    assert pair.engine.send(0, b"answer") == 6
    first = bytearray(1)
    assert pair.engine.take(0, first) == 1
    pair.client.read(bytes(first) + pair.take())
    assert pair.client.received == b"answer"
    pair.feed(pair.client.send(b"question"))
    assert pair.engine.recv(0, first) == 1
    assert bytes(first) + pair.recv() == b"question"


def test_feeding_nothing_takes_no_area_from_one_that_rests() -> None:
    made = engine(2, 1)
    Pair(made, 0).establish()
    Pair(made, 1).establish()
    assert list(made._pool.held) == list(made._pool.resting) == [1]
    assert made.feed(0, b"") == 0
    assert list(made._pool.held) == list(made._pool.resting) == [1]


def test_plaintext_that_was_received_makes_room_for_the_next_record() -> None:
    pair = Pair(engine()).establish()
    records = [pair.client.send(bytes([n]) * 16_384) for n in (1, 2, 3)]
    assert pair.feed(records[0] + records[1]) == len(records[0] + records[1])
    assert pair.engine.feed(0, records[2]) == 0
    assert pair.engine.recv(0, bytearray(16_384)) == 16_384
    assert pair.engine.feed(0, records[2]) == len(records[2])
    assert pair.recv() == b"\x02" * 16_384 + b"\x03" * 16_384


def test_a_transports_end_behind_the_peers_close_notify_changes_nothing() -> None:
    pair = Pair(engine()).establish()
    pair.feed(pair.client.close_notify())
    pair.engine.eof(0)
    assert pair.engine.event(0) == "closed" and pair.engine.failure(0) is None
    assert pair.engine.send(0, b"still") == 5


def test_a_read_only_out_is_a_type_error_with_and_without_an_area() -> None:
    pair = Pair(engine()).greet()
    for call in (pair.engine.take, pair.engine.recv):
        with pytest.raises(TypeError):
            call(0, memoryview(bytes(9)))
    pair.answer(pair.client.finish())
    pair.engine.set_resting(0)
    for call in (pair.engine.take, pair.engine.recv):
        with pytest.raises(TypeError):
            call(0, memoryview(bytes(9)))


def test_a_failed_core_has_nothing_of_an_identity() -> None:
    pair = Pair(mutual(), client=client(device())).establish()
    assert pair.engine.peer_verified(0) == 1
    pair.engine.eof(0)
    words = pair.engine._pool.words(0)
    assert words[layout.PEER_GENERATION] == words[layout.STORE_GENERATION] == 0
    assert words[layout.LEAF_LEN] == words[layout.PEER_NOT_AFTER] == 0


def test_the_room_of_a_failed_connection_is_residue() -> None:
    own = device()
    made = mutual()
    Pair(made, client=client(own)).establish()
    made.set_resting(0)
    words = made._pool.words(0)
    clear_keys(made._pool.core(0))
    words[layout.STATE] = layout.FAILED
    assert made.residue() == len(own.der) - own.der.count(0)
    words[layout.STATE] = layout.ESTABLISHED


# -- identities ------------------------------------------------------------------------------


def test_a_block_that_ends_as_a_certificate_and_begins_as_another_is_refused() -> None:
    own = make(("server.example",))
    chain = own.chain_pem.replace(b"BEGIN CERTIFICATE", b"BEGIN PUBLIC KEY")
    with pytest.raises(Refused, match="tls-server-chain"):
        Identities().add(chain, own.key_pem, [], NOW_MS)


def test_a_certificate_with_bytes_behind_it_has_no_outline() -> None:
    whole = device().der
    assert der.outline(whole).tbs in whole
    with pytest.raises(der.Malformed):
        der.outline(whole + b"\x00")


def test_an_element_that_is_longer_than_what_holds_it_is_malformed() -> None:
    whole = b"\x04\x81\x90" + bytes(0x90)
    assert der.element(whole, 0, len(whole)) == (4, 3, len(whole))
    with pytest.raises(der.Malformed):
        der.element(whole, 0, len(whole) - 1)


def test_a_store_with_a_stray_character_in_a_block_is_refused() -> None:
    pem = root().pem.replace(b"CERTIFICATE-----\n", b"CERTIFICATE-----\n!", 1)
    with pytest.raises(Refused, match="tls-server-client-store"):
        load(pem)


def test_a_request_context_is_told_before_a_list_of_another_length() -> None:
    assert read_certificate(b"\x01x\x00\x00\x05") == "tls-server-illegal-parameter"
    assert read_certificate(b"\x00\x00\x00\x05") == "tls-decode-error"


@pytest.mark.parametrize(("exponent", "fault"), [(1, True), (2, True), (3, False), (4, True)])
def test_a_public_exponent_that_lets_anybody_sign_is_refused(exponent: int, fault: bool) -> None:
    made = rsa.generate_private_key(3, 2048)
    signer = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rsa")])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    whole = (
        x509.CertificateBuilder(name, name, made.public_key(), 7, day, day + timedelta(days=1))
        .sign(signer, None)
        .public_bytes(Encoding.DER)
    )
    modulus = made.public_key().public_numbers().n.to_bytes(256, "big")
    assert whole.count(modulus + b"\x02\x01\x03") == 1
    found = read(whole.replace(modulus + b"\x02\x01\x03", modulus + bytes((2, 1, exponent))))
    assert found is not None
    study = found.study()
    assert study in ("x509-key-size", "x509-decode") if fault else study is None


def test_a_verified_clients_key_goes_with_its_handshake() -> None:
    pair = Pair(mutual(), client=client(device())).establish()
    assert pair.engine._pool.held[0].peer_key is None


def test_a_letter_that_lowers_to_ascii_is_not_ascii() -> None:
    own = make(("kelvin.example",))
    with pytest.raises(Refused, match="tls-server-names"):
        # U+212A, the Kelvin sign, whose lower case is a plain k.
        Identities().add(own.chain_pem, own.key_pem, ["\u212aelvin.example"], NOW_MS)


def test_a_refused_key_carries_nothing_of_the_parsers() -> None:
    own = make(("server.example",))
    damaged = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    with pytest.raises(Refused, match="tls-server-key-format") as raised:
        Identities().add(own.chain_pem, damaged, [], NOW_MS)
    assert raised.value.__context__ is None and raised.value.__cause__ is None


def test_of_two_with_one_wildcard_the_earlier_gets_it() -> None:
    own, other = make(("server.example",)), make(("other.example",))
    table = Identities()
    table.add(own.chain_pem, own.key_pem, ["*.one.example"], NOW_MS)
    table.add(other.chain_pem, other.key_pem, ["*.one.example"], NOW_MS)
    first = table.find(None)[0]
    assert table.find(b"a.one.example") == (first, True)
    # One label, whatever their number.
    for name in (b"b.a.one.example", b"one.example", b"c.b.a.one.example"):
        assert table.find(name) == (first, False)
