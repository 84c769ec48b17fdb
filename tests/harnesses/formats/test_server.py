"""The format of harness server: settings, steps, and the stream that they feed."""

from __future__ import annotations

import pytest

from harnesses.formats.server import Call, Script, Step, decode, encode, feeding


def test_a_step_feeds_as_many_bytes_as_it_says() -> None:
    data = bytes([1, 0, 4, 3, 0, 0xF0, 0xF8]) + bytes(range(10))
    stream = bytes(range(10))
    assert decode(data) == Script(
        0,
        [
            Step(Call.FEED, stream[:3]),
            Step(Call.FEED_NOTHING, b""),
            Step(Call.SEND, b""),
            Step(Call.FEED, stream[3:]),
        ],
    )


def test_what_the_steps_leave_is_fed_whole() -> None:
    assert decode(encode(b"hello", b"\2")) == Script(
        0, [Step(Call.FEED, b"he"), Step(Call.FEED, b"llo")]
    )


@pytest.mark.parametrize("size", [0, 1, 0xEF, 0xF0, 255, 256, 300, 16_406, 40_000])
def test_feeding_steps_add_up(size: int) -> None:
    steps = decode(encode(bytes(size), feeding(size)))
    assert steps is not None
    assert sum(len(step.data) for step in steps.steps) == size


def test_more_steps_than_are_read_cannot_be_built() -> None:
    assert decode(encode(b"", bytes(31))) is not None
    with pytest.raises(ValueError, match="32 steps"):
        encode(b"", bytes(32))
