"""What the engine and OpenSSL answer to the same first bytes, and the table of what may differ."""

from __future__ import annotations

import pytest

from engine import codepoints as c
from harnesses import differential, outcomes
from harnesses.fixtures import plain
from harnesses.models import differential as openssl
from harnesses.models import differential_rows as rows
from harnesses.models.differential import RETRY, Answer
from harnesses.oracles import Broken
from harnesses.seeds.hello import P521, psk
from peers.liar import hello as build
from peers.liar.hello import Hello
from peers.liar.record import record

HELLO = record(c.HANDSHAKE, plain().message())
WAITING = Answer(False, False, False)


def server_hello(random: bytes) -> bytes:
    return record(c.HANDSHAKE, bytes([c.SERVER_HELLO]) + b"\0\0\x48\3\3" + random + bytes(38))


@pytest.mark.parametrize(
    ("output", "failed", "word"),
    [
        (b"", False, "waiting"),
        (b"", True, "silence"),
        (server_hello(RETRY), False, "retry, waiting"),
        (server_hello(bytes(32)), False, "flight"),
        (server_hello(RETRY) + server_hello(bytes(32)), False, "retry, flight"),
        (record(c.ALERT, b"\2\x32"), True, "alert 50"),
        (server_hello(RETRY) + record(c.ALERT, b"\2\x2f"), True, "alert 47"),
        # What comes after a flight is another matter.
        (server_hello(bytes(32)) + record(c.ALERT, b"\2\x2f"), True, "flight"),
    ],
)
def test_an_answer_is_read_up_to_the_flight(output: bytes, failed: bool, word: str) -> None:
    answer = openssl.read(output, failed)
    assert answer.word(answer) == word


@pytest.mark.parametrize(("flight", "refused"), [(False, False), (True, False), (False, True)])
def test_who_alone_asked_for_a_retry_said_nothing_else_that_compares(
    flight: bool, refused: bool
) -> None:
    answer = Answer(True, flight, refused, 47 if refused else None)
    assert answer.word(WAITING) == "retry"


def test_both_answer_a_plain_hello_and_neither_its_first_half() -> None:
    assert openssl.answer(HELLO).word(WAITING) == "flight"
    assert differential.compare(HELLO)[1] is None
    assert differential.compare(HELLO[:80]) == ("waiting", None)


def test_a_difference_that_no_row_expects_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssl, "answer", lambda data: Answer(False, False, True, 80, "WHY"))
    with pytest.raises(Broken, match="differential: the engine says flight, OpenSSL alert 80 WHY"):
        differential.run(HELLO)


def test_every_row_is_used_by_a_committed_input_and_argues() -> None:
    used = {
        row.name
        for entry in outcomes.inputs("differential")
        if (row := differential.compare(entry.read_bytes())[1]) is not None
    }
    names = [row.name for row in rows.EXPECTED]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if name not in used] == []
    assert all(len(row.why) > 40 and row.ours and row.theirs for row in rows.EXPECTED)


def test_no_row_of_one_refusal_is_wide() -> None:
    """Where one accepts what the other refuses, the row names a tag or OpenSSL's reasons."""
    for row in rows.EXPECTED:
        if row.ours & rows.ACCEPTED and row.theirs - rows.ACCEPTED:
            assert row.reasons


# What a client may put between its records, and into them, at each place: whatever the two servers
# make of it, the table has an argument.


def _without_shares(hello: Hello) -> Hello:
    hello.put(c.EXT_KEY_SHARE, build.key_shares([]))
    return hello


def _offering(hello: Hello) -> Hello:
    hello.put(c.EXT_EARLY_DATA, b"")
    hello.put(c.EXT_PSK_KEY_EXCHANGE_MODES, build.psk_modes(c.PSK_DHE_KE))
    hello.put(c.EXT_PRE_SHARED_KEY, psk([b"ticket"], [bytes(32)]))
    return hello


def _foreign(hello: Hello) -> Hello:
    hello.put(c.EXT_SUPPORTED_GROUPS, build.code_list((P521, c.X25519)))
    return hello


FLIGHTS = {
    "one-hello": (plain(),),
    "early-data": (_offering(plain()),),
    "retry": (_without_shares(plain()), plain()),
    "retry-early-data": (_without_shares(_offering(plain())), plain()),
    "retry-foreign-group": (_without_shares(_foreign(plain())), plain()),
    "retry-again": (_without_shares(plain()), _without_shares(plain())),
}
CUTS = ((), (2,), (70,), (2, 70))
"""Where a hello's message is cut into records."""

PUT = {
    **{
        f"{n}-empty-of-{kind}": record(kind, b"") * n
        for kind in (0, 20, 21, 22, 24)
        for n in (1, 33)
    },
    **{f"{n}-ccs": record(c.CHANGE_CIPHER_SPEC, b"\1") * n for n in (1, 33)},
    **{f"{n}-canceled": record(c.ALERT, b"\1\x5a") * n for n in (1, 6)},
    **{f"early-{n}": record(c.APPLICATION_DATA, bytes(n)) for n in (1, 17, 16_384)},
}


def _cut(hello: Hello, cuts: tuple[int, ...]) -> list[bytes]:
    message = hello.message()
    ends = [*cuts, len(message)]
    return [record(c.HANDSHAKE, message[at:end]) for at, end in zip([0, *cuts], ends, strict=True)]


@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("put", PUT)
def test_what_is_put_at_any_place_of_a_flight_differs_as_the_table_expects(
    flight: str, put: str
) -> None:
    for cuts in CUTS:
        records = [piece for hello in FLIGHTS[flight] for piece in _cut(hello, cuts)]
        for place in range(len(records) + 1):
            before, after = b"".join(records[:place]), b"".join(records[place:])
            differential.run(before + PUT[put])
            differential.run(before + PUT[put] + after)


def test_a_kind_that_the_client_did_not_send_argues_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same two answers without an empty record are a finding."""
    empty = record(c.HANDSHAKE, b"") + HELLO
    row = differential.compare(empty)[1]
    assert row is not None and row.name == "empty-record"
    refused = ("tls-unexpected-message", Answer(False, False, True, 10))
    monkeypatch.setattr(differential, "_ours", lambda data: refused)
    with pytest.raises(Broken, match="the engine says tls-unexpected-message, OpenSSL flight"):
        differential.run(HELLO)


@pytest.mark.parametrize(
    ("between", "interleaves"),
    [(b"", False), (record(c.CHANGE_CIPHER_SPEC, b"\1"), True), (record(c.ALERT, b""), True)],
)
def test_fragments_with_a_record_between_them_are_interleaved(
    between: bytes, interleaves: bool
) -> None:
    first, second = _cut(plain(), (70,))
    assert rows.interleaves(first + between + second) is interleaves
    assert not rows.interleaves(between + HELLO + between + HELLO + between)
