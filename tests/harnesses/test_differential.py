"""What the engine and OpenSSL answer to the same first bytes, and the table of what may differ."""

from __future__ import annotations

import pytest

from engine import codepoints as c
from harnesses import differential, expected, openssl, outcomes
from harnesses.handmade_hello import plain
from harnesses.openssl import RETRY, Answer
from harnesses.oracles import Broken
from peers.liar.record import record

HELLO = record(c.HANDSHAKE, plain().message())


def server_hello(random: bytes) -> bytes:
    return record(c.HANDSHAKE, bytes([c.SERVER_HELLO]) + b"\0\0\x48\3\3" + random + bytes(38))


@pytest.mark.parametrize(
    ("output", "failed", "word"),
    [
        (b"", False, "waiting"),
        (b"", True, "silence"),
        (server_hello(RETRY), False, "retry"),
        (server_hello(bytes(32)), False, "flight"),
        (server_hello(RETRY) + server_hello(bytes(32)), False, "retry, flight"),
        (record(c.ALERT, b"\2\x32"), True, "alert 50"),
        (server_hello(RETRY) + record(c.ALERT, b"\2\x2f"), True, "alert 47"),
        # What comes after a flight is another matter.
        (server_hello(bytes(32)) + record(c.ALERT, b"\2\x2f"), True, "flight"),
    ],
)
def test_an_answer_is_read_up_to_the_flight(output: bytes, failed: bool, word: str) -> None:
    assert openssl.read(output, failed).word() == word


def test_both_answer_a_plain_hello_and_neither_its_first_half() -> None:
    assert openssl.answer(HELLO).word() == "flight"
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
    names = [row.name for row in expected.EXPECTED]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if name not in used] == []
    assert all(len(row.why) > 40 and row.ours and row.theirs for row in expected.EXPECTED)


def test_no_row_of_one_refusal_is_wide() -> None:
    """Where one accepts what the other refuses, the row names a tag or OpenSSL's reasons."""
    for row in expected.EXPECTED:
        if row.ours & expected.ACCEPTED and row.theirs - expected.ACCEPTED:
            assert row.reasons
