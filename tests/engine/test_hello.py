"""Reading a ClientHello: what is read, and one test for each fault, by its place on the wire."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import hello as h
from engine.hello import ClientHello, HelloFault, parse
from tests.engine.hello_bytes import (
    ALPN,
    BINDER,
    EARLY_DATA,
    GOOD,
    GREASE,
    GROUPS,
    HYBRID,
    MODES,
    P256,
    P384,
    PRE_SHARED_KEY,
    RESUMING,
    SCHEMES,
    SERVER_NAME,
    SHARE,
    SHARES,
    TICKET,
    VERSIONS,
    X25519,
    Body,
    names,
    protocols,
    real,
    shares,
    tickets,
    u16,
    v8,
    v16,
    word_list,
    words,
)

FORMAT = "tls-server-client-hello-format"
LENGTH = "tls-server-client-hello-length"
REPEAT = "tls-server-extension-repeat"
ILLEGAL = "tls-server-illegal-parameter"

REAL = real()


def read(body: Body) -> ClientHello:
    return parse(body.encode())


def fault(body: Body | bytes) -> str:
    with pytest.raises(HelloFault) as raised:
        parse(body if isinstance(body, bytes) else body.encode())
    return raised.value.refusal.tag


def fields(hello: ClientHello) -> dict[str, object]:
    return {name: getattr(hello, name) for name in ClientHello.__slots__}


# What is read.


def test_of_an_extension_that_is_not_there_nothing_is_known() -> None:
    hello = read(Body())
    assert (hello.early_data, hello.binders_at, hello.shares) == (False, 0, {})
    assert hello.early_data is False
    others = {"versions", "groups", "schemes", "share_groups", "server_name", "alpn", "psk_modes"}
    assert {fields(hello)[name] for name in others | {"identities", "binders"}} == {None}


def test_a_list_of_up_to_127_numbers_is_read_by_a_reader_that_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A peer chooses the length, and one that were new each time would be a format to compile.
    formats = []

    def unpack_from(form: str, *where: object) -> tuple[int, ...]:
        formats.append(form)
        return ()

    monkeypatch.setattr("engine.hello.struct", SimpleNamespace(unpack_from=unpack_from))
    for count in (1, 3, 127):
        assert read(replace(GOOD, suites=words(range(count)))).suites == tuple(range(count))
    assert formats == []
    read(replace(GOOD, suites=words(range(128))))
    assert formats == [">128H"]


def test_every_field_of_a_full_hello_is_read() -> None:
    body = (
        GOOD.put(SERVER_NAME, names((0, b"Server.Example")))
        .put(ALPN, protocols(b"h2", b"http/1.1"))
        .put(EARLY_DATA, b"")
        .put(MODES, v8(b"\x01\x00"))
        .put(SHARES, shares((HYBRID, bytes(1216)), (X25519, SHARE), (P256, bytes(65))))
        .put(PRE_SHARED_KEY, tickets([(TICKET, 7), (b"u", 2**32 - 1)], [BINDER, b"c" * 48]))
    )
    encoded = body.encode()
    binders = v16(v8(BINDER) + v8(b"c" * 48))
    assert fields(parse(encoded)) == {
        "legacy_version": 0x0303,
        "session_id": b"\x55" * 32,
        "suites": (0x1301, 0x1302, 0x1303),
        "compression": b"\x00",
        "versions": (0x0304,),
        "groups": (X25519, P256, P384),
        "schemes": (0x0403, 0x0804),
        "share_groups": [HYBRID, X25519, P256],
        "shares": {X25519: SHARE, P256: bytes(65)},
        "server_name": b"server.example",
        "alpn": [b"h2", b"http/1.1"],
        "early_data": True,
        "psk_modes": b"\x01\x00",
        "identities": [(TICKET, 7), (b"u", 2**32 - 1)],
        "binders": [BINDER, b"c" * 48],
        "binders_at": len(encoded) - len(binders),
    }
    assert encoded.endswith(binders)


def test_what_is_not_sent_is_none() -> None:
    hello = read(Body(session_id=b"", extensions=None))
    assert hello.session_id == b""
    assert hello.shares == {} and not hello.early_data and hello.binders_at == 0
    for name in ("versions", "groups", "schemes", "share_groups", "server_name", "alpn"):
        assert getattr(hello, name) is None
    for name in ("psk_modes", "identities", "binders"):
        assert getattr(hello, name) is None


def test_the_least_hello_is_41_bytes_and_of_tls_1_2() -> None:
    body = Body(session_id=b"", suites=b"\x13\x01", extensions=None).encode()
    assert len(body) == 41 and parse(body).suites == (0x1301,)


def test_an_empty_list_of_extensions_reads_like_none() -> None:
    assert fields(read(Body())) == fields(read(Body(extensions=None)))


def test_an_empty_list_of_shares_is_read() -> None:
    hello = read(GOOD.put(SHARES, shares()))
    assert hello.share_groups == [] and hello.shares == {}


def test_a_share_of_another_group_is_named_and_not_kept() -> None:
    hello = read(GOOD.put(SHARES, shares((GREASE, b"\x00"), (GREASE, b"\x01"), (P384, bytes(97)))))
    assert hello.share_groups == [GREASE, GREASE, P384]
    assert list(hello.shares) == [P384]


@pytest.mark.parametrize("kind", sorted({*range(52), 0xFFFF, GREASE} - set(h._READERS)))
def test_an_extension_that_is_not_ours_is_skipped_whole(kind: int) -> None:
    for content in (b"", b"\xff", bytes(300)):
        assert fields(read(GOOD.add(kind, content))) == fields(read(GOOD))


def test_a_server_name_is_kept_in_lower_case_ascii_only() -> None:
    name = bytes([*range(0x40, 0x5B), 0xC3, 0x84])
    assert read(GOOD.put(SERVER_NAME, names((0, name)))).server_name == (
        b"@abcdefghijklmnopqrstuvwxyz\xc3\x84"
    )


def test_a_server_name_of_255_bytes_is_kept_and_one_of_256_is_none() -> None:
    assert read(GOOD.put(SERVER_NAME, names((0, b"n" * 255)))).server_name == b"n" * 255
    assert read(GOOD.put(SERVER_NAME, names((0, b"n" * 256)))).server_name is None


def test_a_list_of_protocols_is_read_from_one_byte_to_many() -> None:
    for offered in ([b"h"], [b"p" * 255, b"q" * 200, b"r"]):
        assert read(GOOD.put(ALPN, protocols(*offered))).alpn == offered


def test_names_of_other_types_are_skipped_even_when_empty() -> None:
    sent = names((1, b""), (0, b"a.example"), (255, b"zz"), (1, b""))
    assert read(GOOD.put(SERVER_NAME, sent)).server_name == b"a.example"
    for other in (b"", b"x"):
        assert read(GOOD.put(SERVER_NAME, names((1, other)))).server_name is None


def test_the_first_four_tickets_are_kept_and_the_rest_only_checked() -> None:
    identities = [(bytes([65 + n]), n) for n in range(6)]
    binders = [bytes([n]) * 32 for n in range(6)]
    hello = read(RESUMING.put(PRE_SHARED_KEY, tickets(identities, binders)))
    assert hello.identities == identities[:4] and hello.binders == binders[:4]


def test_tickets_of_any_length_are_kept_whole() -> None:
    identities = [(b"t" * 256, 1), (b"u" * 3, 2), (b"v" * 700, 3)]
    hello = read(RESUMING.put(PRE_SHARED_KEY, tickets(identities, [BINDER] * 3)))
    assert hello.identities == identities


def test_what_a_binder_signs_ends_before_the_list_of_binders() -> None:
    body = RESUMING.encode()
    at = parse(body).binders_at
    assert body[at:] == v16(v8(BINDER))


def test_lists_longer_than_any_ready_reader_are_read() -> None:
    for count in (127, 128, 129, 4000):
        suites = tuple(range(0x4000, 0x4000 + count))
        body = replace(GOOD, suites=b"".join(map(u16, suites))).put(GROUPS, word_list(*suites))
        hello = read(body)
        assert hello.suites == suites and hello.groups == suites


def test_the_longest_body_is_read_and_one_byte_more_is_not() -> None:
    room = 16384 - len(GOOD.add(21, b"").encode())
    assert fields(read(GOOD.add(21, bytes(room)))) == fields(read(GOOD))
    assert fault(GOOD.add(21, bytes(room + 1))) == LENGTH
    assert fault(bytes(16385)) == LENGTH


@pytest.mark.parametrize("name", REAL)
def test_a_real_hello_is_read(name: str) -> None:
    hello = parse(REAL[name])
    assert hello.server_name == b"server.example"
    assert hello.versions is not None and 0x0304 in hello.versions
    assert hello.shares and hello.psk_modes is not None


# Every strict prefix is refused.


@pytest.mark.parametrize("name", REAL)
def test_every_strict_prefix_of_a_real_hello_is_refused(name: str) -> None:
    body = REAL[name]
    end_of_tls12 = len(body) - extensions_length(body) - 2
    for cut in range(len(body)):
        # A hello without extensions is well-formed and one of TLS 1.2: choosing refuses it.
        if cut == end_of_tls12:
            assert parse(body[:cut]).versions is None
        else:
            assert fault(body[:cut]) == FORMAT


def extensions_length(body: bytes) -> int:
    at = 35 + body[34]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    return int.from_bytes(body[at : at + 2], "big")


def test_every_strict_prefix_of_a_known_extension_is_refused() -> None:
    full = {
        SERVER_NAME: names((1, b"x"), (0, b"a.example")),
        GROUPS: word_list(29, 23),
        SCHEMES: word_list(0x0403, 0x0804),
        ALPN: protocols(b"h2", b"http/1.1"),
        VERSIONS: v8(b"\x03\x04\x03\x03"),
        MODES: v8(b"\x01\x00"),
        SHARES: shares((X25519, SHARE), (GREASE, b"\x00")),
        PRE_SHARED_KEY: tickets([(TICKET, 1), (b"u", 2)], [BINDER, BINDER]),
    }
    for kind, content in full.items():
        read(Body(extensions=((kind, content),)))
        for cut in range(len(content)):
            assert fault(Body(extensions=((kind, content[:cut]),))) == FORMAT


# Faults, in the order of the wire.


def test_a_session_id_over_32_bytes_is_a_format_error() -> None:
    assert fault(replace(GOOD, session_id=bytes(33))) == FORMAT


@pytest.mark.parametrize("suites", [b"", b"\x13", b"\x13\x01\x13"])
def test_a_list_of_suites_that_is_empty_or_odd_is_a_format_error(suites: bytes) -> None:
    assert fault(replace(GOOD, suites=suites)) == FORMAT


def test_an_empty_list_of_compression_methods_is_a_format_error() -> None:
    assert fault(replace(GOOD, compression=b"")) == FORMAT


def test_bytes_behind_the_extensions_are_a_format_error() -> None:
    assert fault(GOOD.encode() + b"\x00") == FORMAT


def test_one_byte_where_the_extensions_length_should_be_is_a_format_error() -> None:
    assert fault(Body(extensions=None).encode() + b"\x00") == FORMAT


@pytest.mark.parametrize("rest", [b"\x00", b"\x00\x15", b"\x00\x15\x00"])
def test_an_extension_without_its_header_is_a_format_error(rest: bytes) -> None:
    assert fault(Body(extensions=None).encode() + v16(rest)) == FORMAT


def test_an_extension_longer_than_the_list_is_a_format_error() -> None:
    assert fault(Body(extensions=None).encode() + v16(b"\x00\x15\x00\x01")) == FORMAT


@pytest.mark.parametrize("kind", [kind for kind, _ in GOOD.extensions or ()] + [21, GREASE])
def test_an_extension_twice_is_refused_known_or_not(kind: int) -> None:
    body = GOOD.put(21, b"").put(GREASE, b"")
    content = dict(body.extensions or ())[kind]
    assert fault(body.add(kind, content)) == REPEAT


def test_an_extension_twice_is_refused_before_its_content_is_read() -> None:
    assert fault(GOOD.add(GROUPS, b"\xff")) == REPEAT


@pytest.mark.parametrize("kind", [SERVER_NAME, GROUPS, SCHEMES, ALPN, VERSIONS, MODES, SHARES])
def test_bytes_left_over_in_a_known_extension_are_a_format_error(kind: int) -> None:
    body = (
        GOOD.put(SERVER_NAME, names((0, b"a.example")))
        .put(ALPN, protocols(b"h2"))
        .put(MODES, v8(b"\x01"))
    )
    content = dict(body.extensions or ())[kind]
    assert fault(body.put(kind, content + b"\x00")) == FORMAT


@pytest.mark.parametrize("kind", [GROUPS, SCHEMES])
@pytest.mark.parametrize("content", [b"", b"\x00", v16(b""), v16(b"\x00"), v16(b"\x00\x1d\x00")])
def test_a_list_of_words_that_is_empty_or_odd_is_a_format_error(kind: int, content: bytes) -> None:
    assert fault(GOOD.put(kind, content)) == FORMAT


@pytest.mark.parametrize("content", [b"", v8(b""), v8(b"\x03"), v8(b"\x03\x04\x03")])
def test_a_list_of_versions_that_is_empty_or_odd_is_a_format_error(content: bytes) -> None:
    assert fault(GOOD.put(VERSIONS, content)) == FORMAT


@pytest.mark.parametrize("content", [b"", v8(b"")])
def test_an_empty_list_of_modes_is_a_format_error(content: bytes) -> None:
    assert fault(GOOD.put(MODES, content)) == FORMAT


def test_early_data_that_is_not_empty_is_a_format_error() -> None:
    assert fault(GOOD.put(EARLY_DATA, b"\x00")) == FORMAT


@pytest.mark.parametrize(
    "content",
    [
        b"",
        v16(b""),
        v16(b"\x00"),
        v16(b"\x00\x00"),
        names((0, b"")),
        names((0, b"a"), (0, b"")),
        v16(b"\x00\x00\x02a"),
        v16(b"\x01\x00\x02a"),
        v16(b"\x01\x00\x00\x00"),
    ],
)
def test_a_list_of_names_that_is_empty_cut_or_has_an_empty_host_name_is_a_format_error(
    content: bytes,
) -> None:
    assert fault(GOOD.put(SERVER_NAME, content)) == FORMAT


def test_two_host_names_are_an_illegal_parameter() -> None:
    assert fault(GOOD.put(SERVER_NAME, names((0, b"a"), (1, b"x"), (0, b"a")))) == ILLEGAL


def test_a_host_name_too_long_to_keep_counts_as_one() -> None:
    assert fault(GOOD.put(SERVER_NAME, names((0, b"n" * 256), (0, b"a")))) == ILLEGAL


@pytest.mark.parametrize(
    "content", [b"", v16(b""), v16(b"\x00"), protocols(b"h2", b""), v16(b"\x02h")]
)
def test_a_list_of_protocols_that_is_empty_cut_or_has_an_empty_name_is_a_format_error(
    content: bytes,
) -> None:
    assert fault(GOOD.put(ALPN, content)) == FORMAT


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        v16(b"\x00"),
        v16(b"\x00\x1d\x00"),
        v16(b"\x00\x1d\x00\x21" + SHARE),
        shares((X25519, b"")),
        shares((GREASE, b"")),
        shares((GREASE, b""), (X25519, SHARE)),
    ],
)
def test_a_list_of_shares_that_is_cut_or_has_an_empty_share_is_a_format_error(
    content: bytes,
) -> None:
    assert fault(GOOD.put(SHARES, content)) == FORMAT


@pytest.mark.parametrize(("group", "length"), [(X25519, 32), (P256, 65), (P384, 97)])
def test_a_share_of_ours_of_another_length_is_an_illegal_parameter(group: int, length: int) -> None:
    read(GOOD.put(SHARES, shares((group, bytes(length)))))
    for wrong in (1, length - 1, length + 1, 2 * length):
        assert fault(GOOD.put(SHARES, shares((group, bytes(wrong))))) == ILLEGAL


def test_two_shares_of_one_of_our_groups_are_an_illegal_parameter() -> None:
    assert fault(
        GOOD.put(SHARES, shares((P256, bytes(65)), (X25519, SHARE), (P256, bytes(65))))
    ) == (ILLEGAL)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        v16(b""),
        v16(b"") + v16(v8(BINDER)),
        v16(b"\x00"),
        v16(b"\x00\x00" + bytes(4)) + v16(v8(BINDER)),
        v16(v16(TICKET)) + v16(v8(BINDER)),
        v16(v16(TICKET)) + bytes(4) + v16(v8(BINDER)),
        v16(v16(TICKET) + bytes(3)) + v16(v8(BINDER)),
        v16(v16(TICKET) + bytes(5)) + v16(v8(BINDER)),
        v16(v16(TICKET) + bytes(4)),
        v16(v16(TICKET) + bytes(4)) + b"\x00",
        tickets([(TICKET, 1)], []),
        tickets([], [BINDER, BINDER]),
        tickets([(TICKET, 1)], [b"b" * 31]),
        tickets([(TICKET, 1), (TICKET, 1)], [b"b" * 32, b"b" * 31]),
        tickets([(TICKET, 1), (b"", 1)], [BINDER, BINDER]),
        tickets([(TICKET, 1)], [BINDER, BINDER, b"b" * 31]),
        tickets([(TICKET, 1), (TICKET, 1)], [BINDER])[:-1],
        tickets([(TICKET, 1)], [BINDER]) + b"\x00",
        v16(v16(TICKET) + bytes(4)) + v16(b"\x21" + BINDER),
    ],
)
def test_a_pre_shared_key_that_does_not_parse_is_a_format_error(content: bytes) -> None:
    assert fault(RESUMING.put(PRE_SHARED_KEY, content)) == FORMAT


@pytest.mark.parametrize(("offered", "binders"), [(1, 2), (2, 1), (4, 5), (6, 5), (5, 6), (1, 400)])
def test_as_many_binders_as_tickets_or_it_is_an_illegal_parameter(
    offered: int, binders: int
) -> None:
    """RFC 8446 §4.2.11: each list is well-formed, and they do not go together."""
    content = tickets([(TICKET, 1)] * offered, [BINDER] * binders)
    assert fault(RESUMING.put(PRE_SHARED_KEY, content)) == ILLEGAL


def test_the_least_pre_shared_key_is_44_bytes() -> None:
    content = tickets([(b"t", 1)], [BINDER])
    hello = read(RESUMING.put(PRE_SHARED_KEY, content))
    assert len(content) == 44 and hello.identities == [(b"t", 1)]


@pytest.mark.parametrize("length", [32, 48, 255])
def test_a_binder_of_32_to_255_bytes_parses(length: int) -> None:
    hello = read(RESUMING.put(PRE_SHARED_KEY, tickets([(b"t", 1)], [b"b" * length])))
    assert hello.binders == [b"b" * length]


def test_a_pre_shared_key_that_is_not_last_is_an_illegal_parameter() -> None:
    assert fault(RESUMING.add(21, b"")) == ILLEGAL


def test_a_pre_shared_key_is_read_before_what_follows_it_is_seen() -> None:
    assert fault(RESUMING.put(PRE_SHARED_KEY, b"").add(21, b"")) == FORMAT


def test_of_two_faults_the_first_on_the_wire_is_told() -> None:
    wrong_share = (SHARES, shares((X25519, b"\x01")))
    two_names = (SERVER_NAME, b"")
    assert fault(Body(extensions=(wrong_share, two_names))) == ILLEGAL
    assert fault(Body(extensions=(two_names, wrong_share))) == FORMAT
    assert fault(Body(extensions=((21, b""), (21, b""), two_names))) == REPEAT
    assert fault(replace(GOOD, compression=b"").add(GROUPS, b"")) == FORMAT


# Whatever the bytes.


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused_and_the_same_way_twice(body: bytes) -> None:
    assert outcome(body) == outcome(body)


@given(
    st.sampled_from([GOOD.encode(), RESUMING.encode(), *REAL.values()]),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_a_hello_with_bytes_changed_is_read_or_refused(
    body: bytes, edits: list[tuple[int, int]]
) -> None:
    changed = bytearray(body)
    for at, value in edits:
        changed[at % len(changed)] = value
    assert outcome(bytes(changed)) == outcome(bytes(changed))


def outcome(body: bytes) -> object:
    try:
        return fields(parse(body))
    except HelloFault as refused:
        assert refused.refusal.tag in (FORMAT, LENGTH, REPEAT, ILLEGAL)
        return refused.refusal


def test_the_bounds_are_the_contracts() -> None:
    assert (h.MAX_BODY, h.MAX_NAME, h.MAX_IDENTITIES, h.MIN_BINDER) == (16384, 255, 4, 32)
