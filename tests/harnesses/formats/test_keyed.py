"""The format of harness keyed: items, compiled to the records that say them."""

from __future__ import annotations

from engine import codepoints as c
from harnesses.build_identity import client
from harnesses.formats.keyed import ESTABLISHED, ITEMS, RECORDS, Kind, decode, encode, items
from harnesses.formats.server import Call


def test_an_item_that_is_cut_off_ends_where_the_input_does() -> None:
    data = encode(0, (23, 1, 2, b"hello"), (22, 0, 0, b"world"))
    assert list(items(data)) == [(23, 1, 2, b"hello"), (22, 0, 0, b"world")]
    assert list(items(data[:-2])) == [(23, 1, 2, b"hello"), (22, 0, 0, b"wor")]
    assert list(items(data[:14])) == [(23, 1, 2, b"hello")]


def test_what_must_be_received_is_what_was_sent_before_a_close_notify() -> None:
    flight = decode(
        encode(
            ESTABLISHED,
            (c.APPLICATION_DATA, 2, 5, b"hello"),
            (Kind.INNER, 0, 0, b" inner\x17\0\0"),
            (c.HANDSHAKE, 0, 0, b"\x18\0\0\1\0"),
            (c.ALERT, 0, 0, b"\1\0"),
            (c.APPLICATION_DATA, 0, 0, b"late"),
        )
    )
    assert flight is not None
    assert flight.plaintext == b"hello inner"
    assert flight.finished


def test_a_flight_is_bounded_and_waits_for_nothing_beyond_its_bound() -> None:
    flight = decode(encode(ESTABLISHED, *[(23, 1, 0, b"x" * 40)] * (ITEMS + 3)))
    assert flight is not None
    assert len(flight.script.steps) == RECORDS + 1
    # The hello and the Finished are two of the records.
    assert flight.plaintext == b"x" * (RECORDS + 1 - 2)


def test_only_an_honest_item_counts_as_a_proof() -> None:
    flight = decode(encode(2, (Kind.CERTIFICATE, 1, 0, b""), (Kind.VERIFY, 0, 0, b"")))
    assert flight is not None
    assert flight.proven == {client("p256").der}
    assert not flight.finished


def test_a_call_of_the_program_is_a_step() -> None:
    flight = decode(encode(0, (Kind.CALL, 1, 0, b""), (Kind.CALL, 0, 0, b"")))
    assert flight is not None
    assert [step.call for step in flight.script.steps] == [Call.FEED, Call.FINISH, Call.SEND]
