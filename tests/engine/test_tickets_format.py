"""The sealed format of tickets, against a second implementation of it."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from engine import tickets
from engine.ticket_keys import KEY_LENGTH, TicketKeyRing, key_name
from engine.tickets import FORMAT, TAMPERED, UNKNOWN, Ticket, open_ticket, seal
from tests.engine import ticket_format

KEY = bytes(range(100, 132))
SALT = bytes(range(32))
SUITES = {0x1301: 32, 0x1302: 48, 0x1303: 32}


def ring_of(*keys: bytes) -> TicketKeyRing:
    ring = TicketKeyRing(3_600_000)
    ring.set_keys(keys or (KEY,), 1_000)
    return ring


def made(suite: int = 0x1301, name: bytes = b"server.example", alpn: bytes = b"h2") -> Ticket:
    psk = bytearray(range(1, SUITES[suite] + 1))
    return Ticket(10_000, 20_000, 0x01020304, suite, psk, bytes(range(32)), name, alpn)


def sealed_ticket(ticket: Ticket | None = None) -> bytes:
    return seal(ticket or made(), key_name(KEY), KEY, SALT)


@st.composite
def any_ticket(draw: st.DrawFn) -> Ticket:
    suite = draw(st.sampled_from(sorted(SUITES)))
    length = SUITES[suite]
    return Ticket(
        draw(st.integers(0, 2**64 - 1)),
        draw(st.integers(0, 2**64 - 1)),
        draw(st.integers(0, 2**32 - 1)),
        suite,
        bytearray(draw(st.binary(min_size=length, max_size=length))),
        draw(st.binary(min_size=32, max_size=32)),
        draw(st.binary(max_size=255)),
        draw(st.binary(max_size=255)),
        draw(st.integers(0, 255)),
    )


def fields_of(ticket: Ticket) -> dict[str, object]:
    fields: dict[str, object] = {name: getattr(ticket, name) for name in Ticket.__slots__}
    fields["psk"] = bytes(ticket.psk)
    fields["name"] = fields.pop("server_name")
    return fields


@given(any_ticket(), st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_the_second_implementation_reads_what_the_engine_seals(
    ticket: Ticket, key: bytes, salt: bytes
) -> None:
    theirs = ticket_format.opened(seal(ticket, key_name(key), key, salt), key)
    assert theirs.pop("version") == 1
    assert theirs == fields_of(ticket)


@given(any_ticket(), st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_the_engine_reads_what_the_second_implementation_seals(
    ticket: Ticket, key: bytes, salt: bytes
) -> None:
    fields = fields_of(ticket)
    sealed = ticket_format.sealed(ticket_format.plaintext_of(**fields), key, salt)  # type: ignore[arg-type]
    assert sealed == seal(ticket, key_name(key), key, salt)
    opened = open_ticket(ring_of(key), sealed)
    assert isinstance(opened, Ticket)
    assert fields_of(opened) == fields


def test_a_key_name_is_the_same_for_every_reader() -> None:
    assert key_name(KEY) == ticket_format.name_of(KEY)
    assert len(key_name(KEY)) == 16


def test_a_known_ticket_is_the_same_for_ever() -> None:
    # Made once by the second implementation; a format that changes must change its version.
    assert sealed_ticket().hex() == (
        "d5fce870686b3b9fc1894783311d4a58000102030405060708090a0b0c0d0e0f101112131415161718191a1b"
        "1c1d1e1f096e854909f9cd80d804c0b128ac82e10300657f60eaa6181a8b8edbdc0351d24fd6cd6885b97c8a"
        "04588451b76c09af13bec71dfc64dbdb16384014fd66fff557f3280b5afcb1c20f5cacec16193c2e5b484a9a"
        "1b80ea259d4852c96970717cc715401fe4935f192e5ad3a159ab3b8a3cb0cfe80dbe9f19cde9eb"
    )


def test_the_smallest_and_the_largest_ticket_have_the_sizes_the_bounds_name() -> None:
    smallest = sealed_ticket(made(name=b"", alpn=b""))
    largest = sealed_ticket(made(0x1302, b"n" * 255, b"a" * 255))
    assert len(smallest) == tickets.MIN_TICKET == 155
    assert len(largest) == tickets.MAX_TICKET == 681
    assert isinstance(open_ticket(ring_of(), smallest), Ticket)
    assert isinstance(open_ticket(ring_of(), largest), Ticket)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 48, 64, 154, 682, 15_000])
def test_a_size_that_no_ticket_has_is_unknown_without_an_opening(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = sealed_ticket(made(0x1302, b"n" * 255, b"a" * 255)) + bytes(15_000)
    monkeypatch.setattr(tickets, "ChaCha20Poly1305", None)
    assert open_ticket(ring_of(), longest[:length]) == UNKNOWN


def test_a_ticket_of_another_key_is_unknown() -> None:
    assert open_ticket(ring_of(bytes(KEY_LENGTH)), sealed_ticket()) == UNKNOWN


def test_a_ring_without_keys_knows_no_ticket() -> None:
    assert open_ticket(TicketKeyRing(1), sealed_ticket()) == UNKNOWN


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_damage_to_any_bit_of_the_name_is_unknown_and_anywhere_else_tampered(suite: int) -> None:
    ring = ring_of()
    sealed = sealed_ticket(made(suite))
    for at in range(len(sealed)):
        for bit in range(8):
            damaged = bytearray(sealed)
            damaged[at] ^= 1 << bit
            assert open_ticket(ring, damaged) == (UNKNOWN if at < 16 else TAMPERED)


def test_every_prefix_and_every_extension_is_tampered_or_unknown() -> None:
    ring = ring_of()
    sealed = sealed_ticket()
    for length in range(len(sealed)):
        assert open_ticket(ring, sealed[:length]) == (UNKNOWN if length < 155 else TAMPERED)
    for more in range(1, 600):
        longer = sealed + bytes(more)
        assert open_ticket(ring, longer) == (UNKNOWN if len(longer) > 681 else TAMPERED)


def test_a_ticket_sealed_under_a_salt_is_bound_to_it() -> None:
    other = seal(made(), key_name(KEY), KEY, bytes(32))
    assert open_ticket(ring_of(), sealed_ticket()[:48] + other[48:]) == TAMPERED


def test_the_associated_data_begins_with_the_version() -> None:
    name = ticket_format.name_of(KEY)
    cipher = ChaCha20Poly1305(ticket_format.subkey_of(KEY, SALT))
    for first in (b"", b"\x00", b"\x02"):
        sealed = cipher.encrypt(bytes(12), ticket_format.plaintext_of(), first + name + SALT)
        assert open_ticket(ring_of(), name + SALT + sealed) == TAMPERED


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 0},
        {"version": 2},
        {"trailing": b"\0"},
        {"psk": bytes(20), "name": bytes(12)},
        {"psk": bytes(48)},
        {"psk": bytes(32), "suite": 0x1302},
        {"psk": bytes(32), "suite": 0x1302, "psk_length": 48},
        {"psk": bytes(0), "suite": 0x1304, "name": bytes(32)},
        {"psk": bytes(32), "suite": 0x1304},
        {"psk": bytes(32), "suite": 0x1300},
        {"psk": bytes(32), "psk_length": 0},
        {"psk": bytes(32), "psk_length": 255},
        {"name": b"n", "name_length": 0},
        {"name": b"n", "name_length": 2},
        {"name_length": 1},
        {"name_length": 2},
        {"name": b"n", "name_length": 255},
        {"alpn_length": 1},
        {"alpn": b"a", "alpn_length": 0},
        {"alpn": b"a", "alpn_length": 2},
        {"alpn": b"a", "alpn_length": 255},
    ],
)
def test_a_plaintext_that_is_not_exactly_a_ticket_is_a_format_error(
    fields: dict[str, int | bytes],
) -> None:
    plaintext = ticket_format.plaintext_of(**fields)  # type: ignore[arg-type]
    assert open_ticket(ring_of(), ticket_format.sealed(plaintext, KEY, SALT)) == FORMAT


@given(st.binary(min_size=91, max_size=617))
def test_a_key_holder_s_plaintext_never_raises_and_opens_only_as_what_seals_to_it(
    plaintext: bytes,
) -> None:
    sealed = ticket_format.sealed(plaintext, KEY, SALT)
    opened = open_ticket(ring_of(), sealed)
    assert opened == FORMAT or seal(opened, key_name(KEY), KEY, SALT) == sealed  # type: ignore[arg-type]


@given(
    st.sampled_from([(0x1301, 32), (0x1302, 48), (0x1302, 32), (0x1303, 32), (0x1303, 48)]),
    st.binary(min_size=34, max_size=560),
    st.integers(0, 1),
)
def test_a_nearly_right_plaintext_opens_only_as_what_seals_to_it(
    head: tuple[int, int], rest: bytes, version: int
) -> None:
    suite, length = head
    plaintext = ticket_format.plaintext_of(
        version=version, suite=suite, psk=bytes(length), fingerprint=b"", name_length=0
    )[: 25 + length]
    plaintext += rest.ljust(91 - len(plaintext), b"\0")
    sealed = ticket_format.sealed(plaintext[:617], KEY, SALT)
    opened = open_ticket(ring_of(), sealed)
    if opened != FORMAT:
        assert isinstance(opened, Ticket)
        assert version == 1
        assert seal(opened, key_name(KEY), KEY, SALT) == sealed


@given(st.binary(max_size=700))
def test_no_bytes_make_open_raise(data: bytes) -> None:
    assert open_ticket(ring_of(), data) == UNKNOWN
    name = ticket_format.name_of(KEY)
    whole = name + data
    verdict = open_ticket(ring_of(), whole)
    assert verdict == (TAMPERED if 155 <= len(whole) <= 681 else UNKNOWN)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_ticket_opens_from_any_buffer(kind: type) -> None:
    assert isinstance(open_ticket(ring_of(), kind(sealed_ticket())), Ticket)


def test_wiping_a_ticket_leaves_a_psk_of_zeros() -> None:
    opened = open_ticket(ring_of(), sealed_ticket())
    assert isinstance(opened, Ticket)
    psk = opened.psk
    opened.wipe()
    assert psk == bytes(32)


def test_the_buffer_that_a_ticket_is_opened_in_is_left_zeroed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    buffers: list[tuple[bytearray, int]] = []

    class Cipher:
        def __init__(self, key: bytes) -> None:
            self.inner = ChaCha20Poly1305(key)

        def decrypt_into(self, nonce: bytes, data: bytes, aad: bytes, buffer: bytearray) -> int:
            buffers.append((buffer, len(buffer)))
            buffer[:] = b"\xff" * len(buffer)
            return self.inner.decrypt_into(nonce, data, aad, buffer)

    monkeypatch.setattr(tickets, "ChaCha20Poly1305", Cipher)
    plaintext = ticket_format.plaintext_of(psk=b"\x55" * 32, alpn=b"h2")
    sealed = ticket_format.sealed(plaintext, KEY, SALT)
    assert isinstance(open_ticket(ring_of(), sealed), Ticket)
    assert open_ticket(ring_of(), sealed[:-1] + b"\0") == TAMPERED
    bad = ticket_format.sealed(ticket_format.plaintext_of(version=9, psk=b"\x55" * 32), KEY, SALT)
    assert open_ticket(ring_of(), bad) == FORMAT
    # A buffer that shrank or grew would leave bytes behind where nobody clears them.
    assert [len(buffer) for buffer, _ in buffers] == [93, 93, 91]
    assert [length for _, length in buffers] == [93, 93, 91]
    assert not any(any(buffer) for buffer, _ in buffers)
