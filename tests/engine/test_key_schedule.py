"""The key schedule against a second one made of `cryptography`'s HKDF, and against RFC 8448.

Suites are made anew here: those of the module were made when it was imported.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from engine import key_schedule
from engine.key_schedule import SUITES, CipherSuite, HashSuite, mac

SECRETS = (
    b"c hs traffic",
    b"s hs traffic",
    b"c ap traffic",
    b"s ap traffic",
    b"res master",
)


@dataclass(frozen=True)
class Second:
    """RFC 8446 §7.1 as it is written, with another's HMAC and HKDF."""

    name: str
    algorithm: HashAlgorithm
    block: int

    def made(self) -> HashSuite:
        return HashSuite(self.name, self.block, getattr(hashlib, self.name))

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.name, data).digest()

    def hmac(self, key: bytes, message: bytes) -> bytes:
        made = HMAC(key, self.algorithm)
        made.update(message)
        return made.finalize()

    def expand(self, secret: bytes, label: bytes, context: bytes, length: int) -> bytes:
        label = b"tls13 " + label
        info = length.to_bytes(2) + bytes([len(label)]) + label + bytes([len(context)]) + context
        return HKDFExpand(self.algorithm, length, info).derive(secret)

    def derive_secret(self, secret: bytes, label: bytes, messages: bytes) -> bytes:
        return self.expand(secret, label, self.hash(messages), self.algorithm.digest_size)


SECONDS = [Second("sha256", SHA256(), 64), Second("sha384", SHA384(), 128)]
of_both = pytest.mark.parametrize("second", SECONDS, ids=lambda second: second.name)


@of_both
def test_a_hash_suite_says_what_its_hash_is(second: Second) -> None:
    made = second.made()
    size = second.algorithm.digest_size
    assert (made.name, made.block, made.size) == (second.name, second.block, size)
    assert made.new(b"abc").digest() == second.hash(b"abc")
    assert made.empty == second.hash(b"")
    assert made.zeros == bytes(size)


@of_both
def test_an_hmac_begins_at_the_states_of_its_key(second: Second) -> None:
    made = second.made()
    # A key is at most a block, which is the longest that HMAC does not hash.
    for length in (1, made.size, second.block):
        key = bytes(range(length))
        assert mac(made.keyed(key), b"message") == second.hmac(key, b"message")


@of_both
def test_without_a_pre_shared_key_the_handshake_secret_begins_at_a_constant(
    second: Second,
) -> None:
    made = second.made()
    early = second.hmac(made.zeros, made.zeros)
    salt = second.derive_secret(early, b"derived", b"")
    assert mac(made.no_psk, b"shared") == second.hmac(salt, b"shared")


@of_both
def test_a_pre_shared_key_gives_its_own_early_secret_and_what_follows(second: Second) -> None:
    made = second.made()
    psk = bytes(range(made.size))
    early = second.hmac(made.zeros, psk)
    assert mac(made.early(psk), b"m") == second.hmac(early, b"m")
    assert mac(made.early(psk), made.derived) == second.derive_secret(early, b"derived", b"")
    assert mac(made.early(psk), made.res_binder) == second.derive_secret(early, b"res binder", b"")


@of_both
@pytest.mark.parametrize("label", SECRETS)
def test_each_secret_is_derived_under_its_label_and_the_transcript(
    second: Second, label: bytes
) -> None:
    made = second.made()
    secret = bytes(reversed(range(made.size)))
    expected = second.derive_secret(secret, label, b"messages")
    assert made.derive(made.keyed(secret), label, second.hash(b"messages")) == expected


@of_both
def test_the_master_secret_comes_from_the_handshake_secret_and_zeros(second: Second) -> None:
    made = second.made()
    handshake = bytes(range(made.size))
    salt = second.derive_secret(handshake, b"derived", b"")
    assert made.master(made.keyed(handshake)) == second.hmac(salt, made.zeros)


@of_both
def test_a_finished_is_keyed_by_its_own_label(second: Second) -> None:
    made = second.made()
    secret = bytes(range(made.size))
    key = second.expand(secret, b"finished", b"", made.size)
    assert mac(made.keyed(secret), made.finished) == key
    assert made.finished_mac(key, b"hash") == second.hmac(key, b"hash")


@of_both
def test_each_of_eight_tickets_has_its_number_as_nonce(second: Second) -> None:
    made = second.made()
    master = bytes(range(made.size))
    for index in range(8):
        expected = second.expand(master, b"resumption", bytes([index]), made.size)
        assert made.resumption_psk(made.keyed(master), index) == expected
    with pytest.raises(IndexError):
        made.resumption_psk(made.keyed(master), 8)


@of_both
def test_a_key_update_goes_on_to_the_next_secret(second: Second) -> None:
    made = second.made()
    secret = bytes(range(made.size))
    assert made.next_secret(secret) == second.expand(secret, b"traffic upd", b"", made.size)


@of_both
def test_a_retry_s_first_hello_stands_as_a_message_of_its_hash(second: Second) -> None:
    # §4.4.1: message_hash is type 254, and its length takes three bytes.
    expected = b"\xfe\x00\x00" + bytes([second.algorithm.digest_size]) + second.hash(b"hello")
    assert key_schedule.message_hash(second.made(), b"hello") == expected


def test_a_label_s_lengths_have_the_width_that_the_rfc_gives_them() -> None:
    # §7.1: a uint16, then two vectors under one byte each; behind them HKDF's counter.
    made = key_schedule._info(0x8001, b"l" * 200, b"c" * 255)
    assert made == b"\x80\x01" + b"\xce" + b"tls13 " + b"l" * 200 + b"\xff" + b"c" * 255 + b"\x01"
    assert key_schedule._info(32, b"key") == b"\x00\x20\x09tls13 key\x00\x01"


@pytest.mark.parametrize(
    ("code", "aead", "key_length", "second", "records"),
    [
        (0x1301, AESGCM, 16, SECONDS[0], 23_726_566),
        (0x1302, AESGCM, 32, SECONDS[1], 23_726_566),
        (0x1303, ChaCha20Poly1305, 32, SECONDS[0], 2**63 - 1),
    ],
)
def test_a_suite_s_traffic_key_and_iv_are_of_its_aead(
    code: int,
    aead: type[AESGCM] | type[ChaCha20Poly1305],
    key_length: int,
    second: Second,
    records: int,
) -> None:
    hash_suite = second.made()
    anew = CipherSuite(code, aead, key_length, hash_suite, records)
    assert anew.hash is hash_suite
    secret = bytes(range(hash_suite.size))
    for made in (anew, SUITES[code]):
        assert (made.code, made.aead, made.key_length) == (code, aead, key_length)
        assert (made.record_limit, made.hash.name) == (records, second.name)
        pads = made.hash.keyed(secret)
        assert made.traffic_key(pads) == second.expand(secret, b"key", b"", key_length)
        assert made.traffic_iv(pads) == second.expand(secret, b"iv", b"", 12)


# RFC 8448 §3, "Simple 1-RTT Handshake": the values that it prints.

SHARED = bytes.fromhex("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d")
HELLOS = bytes.fromhex("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8")
SERVER_HANDSHAKE = "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"
CLIENT_HANDSHAKE = "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"
MASTER = "18df06843d13a08bf2a449844c5f8a478001bc4d4c627984d5a41da8d0402919"


def test_the_simple_handshake_of_rfc_8448_has_its_secrets() -> None:
    made = SECONDS[0].made()
    handshake = made.keyed(mac(made.no_psk, SHARED))
    assert made.derive(handshake, b"c hs traffic", HELLOS).hex() == CLIENT_HANDSHAKE
    secret = made.derive(handshake, b"s hs traffic", HELLOS)
    assert secret.hex() == SERVER_HANDSHAKE
    assert made.master(handshake).hex() == MASTER
    pads = made.keyed(secret)
    assert SUITES[0x1301].traffic_key(pads).hex() == "3fce516009c21727d0f2e4e86ee403bc"
    assert SUITES[0x1301].traffic_iv(pads).hex() == "5d313eb2671276ee13000b30"
