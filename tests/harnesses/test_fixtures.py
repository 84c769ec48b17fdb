"""The fixed identity can be made again, the dictionary and the input format are what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import codepoints as c
from harnesses import build_identity, dictionary, fixtures, play
from harnesses.formats import server
from harnesses.formats.server import Call, Script, Step


def test_the_committed_identity_is_what_its_builder_makes() -> None:
    assert build_identity.build() == {
        "chain.pem": fixtures.CHAIN,
        "key.pem": fixtures.KEY,
        "clients.pem": fixtures.CLIENTS,
    }


def test_the_dictionary_has_every_suite_group_extension_and_alert(tmp_path: Path) -> None:
    tokens = set(dictionary.entries().values())
    for code in (*c.SUITE_NAMES, *c.GROUP_NAMES, *c.EXTENSION_NAMES, *c.SCHEME_NAMES):
        assert code.to_bytes(2) in tokens
    assert {bytes([c.ALERT_LEVEL_FATAL, alert]) for alert in c.ALERT_NAMES} <= tokens
    dictionary.write(tmp_path / "words.dict")
    lines = (tmp_path / "words.dict").read_text().splitlines()
    assert len(lines) == len(set(lines)) == len(tokens)
    assert 'TLS_AES_128_GCM_SHA256="\\x13\\x01"' in lines


def test_a_step_feeds_as_many_bytes_as_it_says() -> None:
    data = bytes([1, 0, 4, 3, 0, 0xF0, 0xF8]) + bytes(range(10))
    stream = bytes(range(10))
    assert server.parse(data) == Script(
        0,
        [
            Step(Call.FEED, stream[:3]),
            Step(Call.FEED_NOTHING, b""),
            Step(Call.SEND, b""),
            Step(Call.FEED, stream[3:]),
        ],
    )


def test_what_the_steps_leave_is_fed_whole() -> None:
    assert server.parse(server.build(b"hello", b"\2")) == Script(
        0, [Step(Call.FEED, b"he"), Step(Call.FEED, b"llo")]
    )


@pytest.mark.parametrize("data", [b"", b"\1\0", b"\0\0\0hello", b"\2\0\0hello"])
def test_an_input_of_an_unknown_version_is_no_script(data: bytes) -> None:
    assert server.parse(data) is None


@pytest.mark.parametrize("size", [0, 1, 0xEF, 0xF0, 255, 256, 300, 16_406, 40_000])
def test_feeding_steps_add_up(size: int) -> None:
    steps = server.parse(server.build(bytes(size), server.feeding(size)))
    assert steps is not None
    assert sum(len(step.data) for step in steps.steps) == size


def test_more_steps_than_are_read_cannot_be_built() -> None:
    assert server.parse(server.build(b"", bytes(31))) is not None
    with pytest.raises(ValueError, match="32 steps"):
        server.build(b"", bytes(32))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_recutting_moves_no_byte_past_another_call(size: int) -> None:
    whole = server.parse(server.build(b"abcdefgh", bytes([2, 1, 0xF1, 1, 0, 2, 0xF0])))
    assert whole is not None

    def told(steps: list[Step]) -> list[bytes | Call]:
        told: list[bytes | Call] = [b""]
        for step in steps:
            if step.call is Call.FEED:
                assert isinstance(told[-1], bytes)
                told[-1] += step.data
            elif step.call is not Call.FEED_NOTHING:
                told += [step.call, b""]
        return told

    again = play.recut(whole, size)
    assert told(again.steps) == told(whole.steps) == [b"abc", Call.FINISH, b"def", Call.SEND, b"gh"]
    if size:
        assert max(len(step.data) for step in again.steps) <= size
