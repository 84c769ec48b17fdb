"""The real fuzzer over the real engine, for a few seconds."""

import json

from ci.command import main
from ci.fuzzing import canary, floors
from ci.fuzzing.canary import Canary
from ci.process import ROOT, Stop
from harnesses import HARNESSES
from mutants import plants
from mutants.plants import Plant
from tests.ci.examples import words


def test_a_few_seconds_of_hello_end_well_with_coverage_and_a_canary(tmp_path, capsys):
    smaller = words("fuzz", seconds="12", jobs="1", out=str(tmp_path / "out"))
    code = main([*smaller, "--json", "-"])
    data = json.loads(capsys.readouterr().out)
    assert (code, data["untrusted"], data["findings"]) == (0, [], [])
    hello = data["harnesses"]["hello"]
    assert hello["executions"] > 0 and hello["edges"] > floors.EDGES
    assert hello["coverage"]["lines"] >= hello["committed_coverage"]["lines"] > 1000
    assert [(c["harness"], c["found"]) for c in data["canaries"]] == [("hello", True)]
    assert not hello["kept_all"]
    assert data["files"]["engine/hello.py"]["lines"] > 100


def test_a_canary_that_is_no_bug_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(canary, "LIMIT", 5.0)
    text = (ROOT / "engine" / "hello.py").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line and text.count(line) == 1)
    plant = Plant("harmless", "engine/hello.py", line, line + "\n", "none", ("oracle hello x y",))
    missed = Canary("hello", plant, tmp_path / "no-such-input")
    canary.run_canaries([missed], tmp_path / "canaries", 1, Stop())
    assert "'harmless' was not found" in missed.missed
    assert (tmp_path / "canaries" / "hello" / "log").exists(), "left for whoever looks for why"


def test_every_harness_has_a_canary_with_a_committed_input():
    catalogue = plants.load_all()
    for harness in HARNESSES:
        chosen = canary.choose(harness, catalogue, ROOT / "corpus")
        assert chosen.plant is not None and chosen.seed is not None and chosen.seed.is_file()


def test_without_a_planted_fault_for_it_a_harness_is_not_to_be_trusted():
    assert "no planted fault" in canary.choose("hello", (), ROOT / "corpus").missed
