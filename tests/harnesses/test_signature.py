"""One fault has one signature in a harness, whatever called the engine or the oracle."""

from __future__ import annotations

import pytest

from harnesses import signature as signatures
from harnesses.oracles import Broken
from harnesses.signature import ROOT, signature, telling


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        (["harnesses/pool.py:run", "harnesses/models/pool.py:check"], ["models/pool.py:check"]),
        (["harnesses/hello.py:run", "harnesses/hello.py:answer", "engine/hello.py:parse"],
         ["hello.py:parse"]),
        (["engine/a.py:a", "engine/b.py:b", "engine/c.py:c", "engine/d.py:d"],
         ["b.py:b", "c.py:c", "d.py:d"]),
        (["engine/a.py:a", "harnesses/fixtures.py:now", "engine/b.py:b"], ["b.py:b"]),
        (["engine/a.py:a", "harnesses/fixtures.py:now"], ["fixtures.py:now"]),
        ([], []),
    ],
)  # fmt: skip
def test_the_engines_frames_tell_or_else_the_innermost(stack: list[str], told: list[str]) -> None:
    assert telling(stack) == told


def _told(caller: str, says: str = "9 after a call") -> dict[str, object]:
    """The signature of an oracle that speaks, called by a function of that name in a harness."""
    code = {
        "check": f"def check():\n    raise Broken('residue', {says!r})\n",
        caller: f"def {caller}():\n    check()\n",
    }
    space: dict[str, object] = {"Broken": Broken}
    for name, text in code.items():
        exec(compile(text, str(ROOT / "harnesses" / f"{name}.py"), "exec"), space)
    with pytest.raises(Broken) as raised:
        exec(f"{caller}()", space)
    return signature(raised.value)


def test_who_called_an_oracle_is_no_part_of_what_it_says() -> None:
    assert _told("drop") == _told("leave")
    assert _told("drop")["frames"] == ["check.py:check"]


def test_another_sentence_of_an_oracle_is_another_fault_and_another_number_is_not() -> None:
    assert _told("drop") == _told("drop", "-12 after a call")
    assert _told("drop") != _told("drop", "9 after drop")


def test_a_frame_keeps_its_folder_until_it_is_told() -> None:
    assert signatures.name_of(str(ROOT / "engine" / "hello.py"), "parse") == "engine/hello.py:parse"
