"""Lines that fit, counts that are said right, and names that were meant."""

import io
import os
import shlex
import shutil

import pytest

from ci import wording


@pytest.mark.parametrize(
    "told, said",
    [
        (wording.many(1, "time"), "1 time"),
        (wording.many(0, "bucket"), "0 buckets"),
        (wording.many(2345, "run"), "2,345 runs"),
        (wording.many(1, "entry", "entries"), "1 entry"),
        (wording.many(2, "entry", "entries"), "2 entries"),
    ],
)
def test_one_is_told_as_one(told: str, said: str) -> None:
    assert told == said


def test_the_nearest_name_is_told_and_without_one_all_of_them() -> None:
    names = ("hello", "server")
    assert wording.unknown("harness", "helo", names) == (
        "there is no harness 'helo'; did you mean hello?"
    )
    assert wording.unknown("harness", "xyz", names) == (
        "there is no harness 'xyz'; choose from hello, server"
    )


PROSE = "  not to be trusted because " + "the fuzzer of the harness had no time " * 6


def test_a_long_line_is_broken_at_its_spaces_and_stays_indented() -> None:
    lines = wording.fold(f"short\n{PROSE}\n\nend", 79).split("\n")
    assert (lines[0], lines[-2], lines[-1]) == ("short", "", "end")
    assert all(len(line) <= 79 for line in lines) and len(lines) > 5
    assert lines[1].startswith("  not") and all(line[:4] == "    " for line in lines[2:-2])
    assert " ".join(" ".join(lines[1:-2]).split()) == " ".join(PROSE.split())


def test_a_command_that_is_broken_is_still_the_same_command() -> None:
    command = f"  residue promote {'a/long/path/' * 3}x --outcome 'established suite=A group=B' -v"
    folded = wording.fold(command, 60)
    assert "\n" in folded and all(len(line) <= 60 for line in folded.split("\n"))
    assert shlex.split(folded.replace("\\\n", "")) == shlex.split(command)


def test_what_only_begins_like_a_command_is_none() -> None:
    assert "\\" not in wording.fold("python 3.11.7, ssl OpenSSL 3.0.19, cryptography 50", 30)


def test_a_word_that_no_line_holds_is_not_cut() -> None:
    assert "x" * 100 in wording.fold("see " + "x" * 100, 79).split()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns, most", [(80, 79), (120, 119), (10, wording.NARROWEST)])
def test_lines_of_a_terminal_are_narrower_than_it(
    columns: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: size)
    stream = Terminal()
    folded = wording.Folded(stream)
    for piece in (PROSE[:50], PROSE[50:], "\n", "end"):
        folded.write(piece)
    assert max(map(len, stream.getvalue().split("\n"))) <= most
    assert "end" not in stream.getvalue()
    folded.flush()
    assert stream.getvalue().endswith("\nend")


def test_elsewhere_a_line_is_let_be_unless_it_is_very_long() -> None:
    stream = io.StringIO()
    wording.Folded(stream).write(f"{'word ' * 30}\n{'word ' * 60}\n")
    lengths = [len(line) for line in stream.getvalue().split("\n")]
    assert lengths[0] == 150 and max(lengths) < 200 and len(lengths) == 4
