"""Replaying committed inputs, and promoting new ones."""

import json
import os
import re
from pathlib import Path

import pytest

from ci.command import main
from ci.inputs import execution
from ci.process import ROOT
from harnesses import outcomes, provenance
from harnesses.outcomes import Outcome
from tests.ci import tiny


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return tiny.install(monkeypatch, tmp_path / "corpus", client=b"e1", plain=b"w")


def test_every_input_is_listed_with_its_outcome(folder, capsys):
    assert main(["replay"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tiny\tclient\testablished suite=S group=G retried=no",
        "tiny\tplain\twaiting",
        "2 inputs, 0 wrong",
    ]


def test_an_outcome_that_changed_is_red(folder, capsys):
    (folder / "plain").write_bytes(b"e")
    assert main(["replay", "tiny"]) == 1
    assert "WRONG: expected waiting" in capsys.readouterr().out


def test_an_input_without_an_outcome_and_an_outcome_without_an_input_are_red(folder, capsys):
    (folder / "more").write_bytes(b"x")
    (folder / "plain").unlink()
    assert main(["replay"]) == 1
    out = capsys.readouterr().out
    assert "WRONG: has no committed outcome" in out and "WRONG: is no input" in out
    assert "2 wrong" in out


@pytest.mark.parametrize(
    "data, says",
    [(b"!", "oracle residue: 3 bytes left"), (b"?", "ValueError: not a byte of ours")],
)
def test_what_an_oracle_or_an_exception_says_is_red(folder, tmp_path, capsys, data, says):
    """With the bucket that triage sorts it into and with where it is, in one line."""
    (tmp_path / "found").write_bytes(data)
    assert main(["replay", "tiny", str(tmp_path / "found"), "--json", str(tmp_path / "rows")]) == 1
    said = capsys.readouterr().out
    (row,) = json.loads((tmp_path / "rows").read_text())
    assert re.fullmatch("[0-9a-f]{12}", row["bucket"]) and row["frames"] == ["ci/tiny.py:run"]
    where = f"(bucket {row['bucket']}, at ci/tiny.py:run)"
    assert f"WRONG: {says} {where}\n" in said and "Traceback" not in said
    assert main(["replay", "tiny", str(tmp_path / "found"), "-v"]) == 1
    assert f"{where}\n  Traceback" in capsys.readouterr().out


def test_who_is_quiet_says_what_is_wrong_and_how_many(folder, tmp_path, capsys):
    (tmp_path / "found").write_bytes(b"!")
    assert main(["replay", "tiny", "-q"]) == 0
    assert capsys.readouterr().out == "2 inputs, 0 wrong\n"
    assert main(["replay", "tiny", str(tmp_path / "found"), "--quiet"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert "WRONG" in first and last == "1 input, 1 wrong"


def test_an_input_that_does_not_end_is_stopped_and_red(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(execution, "INPUT_SECONDS", 1)
    (tmp_path / "found").write_bytes(b"~")
    assert main(["replay", "tiny", str(tmp_path / "found")]) == 1
    assert "still running after 1 s" in capsys.readouterr().out


def test_update_rewrites_what_differs_and_shows_it(folder, capsys):
    (folder / "plain").write_bytes(b"e")
    (folder / "more").write_bytes(b"x")
    (folder / "client").unlink()
    assert main(["replay", "--update"]) == 0
    out = capsys.readouterr().out
    assert "- plain\twaiting\n+ plain\testablished suite=S" in out
    assert "+ more\twaiting" in out and "- client\testablished" in out
    assert set(outcomes.read("tiny")) == {"plain", "more"}
    assert main(["replay"]) == 0


def test_update_does_not_bless_a_finding_and_keeps_a_reason(folder):
    outcomes.write("tiny", {**outcomes.read("tiny"), "client": Outcome("waiting", "as it should")})
    (folder / "plain").write_bytes(b"!")
    assert main(["replay", "--update"]) == 1
    table = outcomes.read("tiny")
    assert table["plain"] == Outcome("waiting")
    assert table["client"] == Outcome("established suite=S group=G retried=no", "as it should")


def test_update_leaves_alone_what_is_not_committed(folder, tmp_path, monkeypatch, capsys):
    before = outcomes.path("tiny").read_bytes()
    monkeypatch.chdir(tmp_path)
    Path("plain").write_bytes(b"e")
    for file in ("plain", str(tmp_path / "plain")):
        assert main(["replay", "tiny", file, "--update"]) == 0
        assert "established" in capsys.readouterr().out
    assert outcomes.path("tiny").read_bytes() == before


def test_a_program_can_read_it(folder, capsys):
    (folder / "plain").write_bytes(b"e")
    assert main(["replay", "--json", "-"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [(row["file"], bool(row["wrong"])) for row in rows] == [
        ("client", False),
        ("plain", True),
    ]


@pytest.mark.parametrize(
    "args, says",
    [
        (["nobody"], "there is no harness 'nobody'; choose from tiny"),
        (["tiny", "/no/such/file"], "/no/such/file: No such file"),
        (["tiny", "."], "Is a directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(folder, capsys, args, says):
    assert main(["replay", *args]) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1


def test_an_outcomes_file_that_is_none_is_bad_input(folder, capsys):
    outcomes.path("tiny").write_text("no tab here\n")
    assert main(["replay"]) == 2
    assert "line 1" in capsys.readouterr().err


def test_an_empty_corpus_proves_nothing(folder):
    for file in folder.iterdir():
        file.unlink()
    outcomes.write("tiny", {})
    assert main(["replay"]) == 3


def found(tmp_path: Path, data: bytes, name: str = "0a1b2c") -> str:
    (tmp_path / name).write_bytes(data)
    return str(tmp_path / name)


def promote(*args: str) -> int:
    return main(["promote", *args, "--harness", "tiny"])


def test_a_promoted_input_is_committed_with_outcome_and_source(folder, tmp_path, capsys):
    assert promote(found(tmp_path, b"e-new")) == 0
    assert "corpus/tiny/0a1b2c\testablished" in capsys.readouterr().out
    assert (folder / "0a1b2c").read_bytes() == b"e-new"
    assert provenance.read() == {"tiny/0a1b2c": "found by fuzzing"}
    assert main(["replay"]) == 0


def test_an_input_that_shows_a_bug_needs_the_outcome_it_must_come_to(folder, tmp_path, capsys):
    file = found(tmp_path, b"!")
    assert promote(file) == 2
    assert "oracle residue" in capsys.readouterr().err
    assert promote(file, "--outcome", "tls-decode-error", "--name", "residue-1") == 0
    assert "residue replay is red until" in capsys.readouterr().out
    assert outcomes.read("tiny")["residue-1"] == Outcome("tls-decode-error")
    assert main(["replay"]) == 1


@pytest.mark.parametrize(
    "args, says",
    [
        (["--outcome", "tls-no-such-thing"], "is no refusal's tag"),
        (["--outcome", "waiting colour=red"], "'colour=red' is none of"),
        (["--name", "../plain"], "is no name for an input"),
        (["--name", "plain"], "another input called plain"),
        (["--reason", "a\tb"], "one line"),
        (["--source", ""], "one line"),
    ],
)
def test_what_cannot_be_promoted_changes_nothing(folder, tmp_path, capsys, args, says):
    before = {f: f.read_bytes() for f in folder.parent.rglob("*") if f.is_file()}
    assert promote(found(tmp_path, b"w-new"), *args) == 2
    assert says in capsys.readouterr().err
    assert {f: f.read_bytes() for f in folder.parent.rglob("*") if f.is_file()} == before


def test_an_input_is_committed_once(folder, tmp_path, capsys):
    assert promote(found(tmp_path, b"w")) == 2
    assert "already, as plain" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"no recording\n", b"\xff\xfe", b""])
def test_a_file_that_is_no_recording_says_nothing_about_the_engine(tmp_path, capsys, data):
    """One good file beside it does not make it usable, and is not run either."""
    (tmp_path / "junk").write_bytes(data)
    good = ROOT / "recordings" / "handshake" / "two-host-names.txt"
    assert main(["replay", "recordings", str(good), str(tmp_path / "junk")]) == 2
    told = capsys.readouterr()
    assert not told.out and told.err.startswith(f"residue: {tmp_path / 'junk'}: no recording: ")
    assert main(["replay", "recordings", str(good)]) == 0


def test_recordings_are_named(capsys):
    assert main(["replay", "recordings"]) == 2
    assert "which recordings?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: (path / "inner").mkdir(), "'inner' is no file but a folder or a link"),
        (lambda path: (path / "gone").symlink_to("nowhere"), "'gone' is no file"),
        (lambda path: (path / "link").symlink_to("plain"), "'link' is no file"),
        (lambda path: os.mkfifo(path / "pipe"), "'pipe' is no file"),
        (lambda path: (path / "two words").write_bytes(b""), "'two words' is no name"),
        (lambda path: (path / "a\tb").write_bytes(b""), "'a\\tb' is no name"),
        (lambda path: (path / ".hidden").write_bytes(b""), "'.hidden' is no name"),
        (lambda path: (path / "-o").write_bytes(b""), "'-o' is no name"),
        (lambda path: (path / "\udcff").write_bytes(b""), "'\\udcff' is no name"),
    ],
)
def test_a_corpus_with_anything_but_inputs_in_it_is_refused(folder, capsys, make, says):
    make(folder)
    assert main(["replay", "tiny"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("residue: corpus/tiny: ") and says in said and said.count("\n") == 1
