"""`residue fuzz recordings`: repeatable, judged by the oracles, and nothing found is lost."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

from ci import command
from ci.commands import fuzz_recordings
from ci.exits import Exit
from ci.process import ROOT
from harnesses import connection
from harnesses import recordings as recorded
from harnesses.oracles import Broken
from peers.recorder import program
from peers.recorder.format import all_names, load
from tests.tools import PATIENCE

SAMPLE = "handshake/aes_128_gcm_sha256-x25519"


def fuzz(*arguments, out):
    return command.main(["fuzz", "recordings", "--jobs", "1", "--out", str(out), *arguments])


def test_a_seed_gives_the_same_inputs_again_and_another_gives_others():
    made = [fuzz_recordings.make(7, number)[0] for number in range(40)]
    assert [fuzz_recordings.make(7, number)[0] for number in range(40)] == made
    assert [fuzz_recordings.make(8, number)[0] for number in range(40)] != made


def test_a_mutation_is_one_and_keeps_its_bound():
    chance = random.Random("bounds")
    for line in fuzz_recordings.lines()[::20]:
        for _ in range(10):
            made = recorded.mutate(chance, line.data)
            assert made != line.data
            assert len(made) <= recorded.MOST


def test_every_line_is_an_honest_client_s():
    assert len(fuzz_recordings.lines()) > 1000
    assert all(line.recording.honest and line.data for line in fuzz_recordings.lines())


@pytest.mark.parametrize("name", all_names()[::40])
def test_a_recording_as_it_is_breaks_no_oracle_in_any_pieces(name):
    recorded.play(load(name), b"", thorough=True)


def test_what_came_before_the_mutated_line_is_left_as_it_was():
    line = [x for x in fuzz_recordings.lines() if x.recording.name == SAMPLE][1]
    made = line.saying(b"\x15\x03\x03\x00\x02\x02\x28")
    before = line.step
    assert made.steps[:before] == line.recording.steps[:before]
    assert recorded.run(recorded.text_of(made)) == "tls-alert"


def test_a_run_ends_clean_and_says_what_it_did(tmp_path, capsys, monkeypatch):
    assert fuzz("--count", "60", "--seed", "3", "--json", "-", out=tmp_path / "one") == Exit.CLEAN
    data = json.loads(capsys.readouterr().out)
    assert data["executions"] == sum(data["ends"].values()) == 60
    assert json.loads((tmp_path / "one" / "summary.json").read_text()) == data
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    assert fuzz("--count", "60", "--seed", "3", out=tmp_path / "two") == Exit.CLEAN
    told = (tmp_path / "two" / "summary.txt").read_text()
    assert told.strip() in (tmp_path / "page.md").read_text()
    again = json.loads((tmp_path / "two" / "summary.json").read_text())
    assert again["ends"] == data["ends"]


def test_several_processes_run_the_same_inputs(tmp_path):
    ends = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        assert fuzz("--jobs", jobs, "--count", "60", "--seed", "4", out=out) == Exit.CLEAN
        ends.append(json.loads((out / "summary.json").read_text())["ends"])
    assert ends[0] == ends[1]


@pytest.fixture
def fault(monkeypatch):
    """An oracle that speaks against every alert for a message that the state does not allow."""

    def judge(output, refusal, closing):
        if refusal.tag == "tls-unexpected-message":
            raise Broken("alert", "planted")

    monkeypatch.setattr(connection, "check_alert", judge)


def test_a_finding_is_saved_once_and_replays(tmp_path, capsys, fault, monkeypatch):
    assert fuzz("--count", "60", "--seed", "3", out=tmp_path) == Exit.FOUND
    (report,) = (tmp_path / "findings" / "recordings").glob("*.json")
    data = json.loads((tmp_path / "summary.json").read_text())
    assert data["broken"] > 1 and data["findings"][0]["oracle"] == "alert"
    said = capsys.readouterr().out
    assert "residue replay recordings" in said and "planted" in said
    file = report.with_suffix(".input")
    assert "a line was mutated" in file.read_text(encoding="utf-8")
    assert command.main(["replay", "recordings", str(file)]) == Exit.FOUND
    monkeypatch.undo()
    assert command.main(["replay", "recordings", str(file)]) == Exit.CLEAN


def test_an_input_without_an_end_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_recordings, "INPUT_SECONDS", 1)
    monkeypatch.setattr(recorded, "play", lambda recording, key: time.sleep(30))
    assert fuzz("--count", "1", out=tmp_path) == Exit.FOUND
    (found,) = json.loads((tmp_path / "summary.json").read_text())["findings"]
    assert found["kind"] == "TooLong"


def test_recordings_that_are_stale_make_a_run_worthless(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "replay", lambda recording: ["wrong"])
    assert fuzz("--count", "10", out=tmp_path) == Exit.UNTRUSTED
    assert "is not as recorded" in capsys.readouterr().err


def test_a_run_that_goes_nowhere_is_not_to_be_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "play", lambda recording, key: "waiting")
    assert fuzz("--count", "1000", out=tmp_path) == Exit.UNTRUSTED


def test_its_options_are_its_own(capsys):
    assert command.main(["fuzz", "hello", "--count", "5"]) == Exit.USAGE
    assert "fuzz recordings" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_signal_ends_it_in_order(tmp_path, jobs):
    out = tmp_path / "run"
    argv = [sys.executable, "-m", "ci", "fuzz", "recordings", "--jobs", jobs, "--out", str(out)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stderr is not None and b"seed" in run.stderr.readline()
        time.sleep(4)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == Exit.INTERRUPTED
    assert b"interrupted" in said
    assert json.loads((out / "summary.json").read_text())["interrupted"]
