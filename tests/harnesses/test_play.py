"""A script that is played again in other pieces says the same to the engine."""

from __future__ import annotations

import pytest

from harnesses import play
from harnesses.formats.server import Call, Step, decode, encode


@pytest.mark.parametrize("size", [0, 1, 3])
def test_recutting_moves_no_byte_past_another_call(size: int) -> None:
    whole = decode(encode(b"abcdefgh", bytes([2, 1, 0xF1, 1, 0, 2, 0xF0])))
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
