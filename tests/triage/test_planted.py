"""A fault of each kind, planted in a copy of the tree: told, bucketed, made smaller, promoted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci.command import main
from ci.commands import minimise, promote
from harnesses import outcomes, provenance
from tests.triage.faults import CORPUS, FAULTS, Fault, plant
from triage import intake
from triage import minimise as shrinking
from triage.prober import Prober

BY_NAME = {fault.plant: fault for fault in FAULTS}


class Kept(Prober):
    """A fork server that outlives the commands which ask it: to start one takes half a second."""

    def stop(self) -> None:
        pass

    def end(self) -> None:
        super().stop()


class Planted:
    """A faulty tree, the commands that run inputs there, and a store and a corpus of its own."""

    def __init__(self, fault: Fault, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fault = fault
        self.store = folder / "store"
        self.out = folder / "out"
        self.faulty = Kept(fault.harness, plant(fault, folder), fault.limits)
        self.right = Kept(fault.harness)
        self.gone = False
        for module in (intake, promote, minimise):
            monkeypatch.setattr(module, "Prober", self.prober)
        monkeypatch.setattr(outcomes, "CORPUS", folder / "corpus")
        monkeypatch.setattr(provenance, "PATH", folder / "corpus" / "provenance.tsv")

    def prober(self, harness: str, *rest: object) -> Prober:
        return self.right if self.gone else self.faulty

    def end(self) -> None:
        self.faulty.end()
        self.right.end()

    def finds(self, name: str, data: bytes) -> None:
        """What a campaign leaves that was killed: an artifact of libFuzzer's."""
        folder = self.out / "shards" / f"{self.fault.harness}-0" / "artifacts"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    def triage(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        rows = self.store.with_name("rows.json")
        code = main(["triage", str(self.store), *arguments, "--json", str(rows)])
        return code, json.loads(rows.read_text())


@pytest.mark.parametrize("name", ["slow", "hungry", "killed", "recursion"])
def test_a_fault_is_told_for_what_it_is_and_always_the_same(name: str, tmp_path: Path) -> None:
    fault = BY_NAME[name]
    with Prober(fault.harness, plant(fault, tmp_path), fault.limits) as prober:
        (found,) = prober.judge(fault.data).found
        assert (found.signature.kind, found.signature.name) == (
            fault.kind,
            fault.name,
        )
        assert prober.judge(fault.data).of(found.signature) is not None
    assert {
        "slow": found.seconds > fault.limits.slow,
        "hungry": 39 << 10 < found.memory_kb < 48 << 10,
        "killed": found.detail == "killed by SIGABRT",
        "recursion": found.signature.frames[-2:] == ("hello.py:_deep", "hello.py:_deeper"),
    }[name]


# How many tries there is time for; a hang's cost the most.
TRIES = {"raised": 130, "residue": 70, "chunks": 140, "memory-peak": 3, "loop": 1, "eater": 3}


@pytest.mark.parametrize("name", TRIES)
def test_from_a_killed_campaign_to_a_red_replay(
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shrinking, "MOST_RUNS", TRIES[name])
    fault = BY_NAME[name]
    planted = Planted(fault, tmp_path, monkeypatch)
    request.addfinalizer(planted.end)
    planted.finds("crash-aa", fault.data)
    code, (row,) = planted.triage("--from", str(planted.out))
    assert code == 1 and (row["kind"], row["state"], row["count"]) == (fault.kind, "new", 1)
    if name in ("loop", "eater"):
        # The function that loops, and not what it calls: that is another one each time.
        assert "hello.py:parse" in row["frames"] and "hello.py:_turn" not in row["frames"]
    identity = str(row["id"])
    _, (row,) = planted.triage("--from", str(planted.out), "--minimise", "100")
    assert (row["id"], row["count"]) == (identity, 1)
    file = planted.store / f"{identity}.input"
    assert row["size"] == file.stat().st_size
    if fault.harness == "server":
        assert file.stat().st_size < len(fault.data) and row["minimised"]

    capsys.readouterr()
    arguments = ["promote", identity, "--dir", str(planted.store)]
    assert main(arguments) == 2
    assert "what must it end as" in capsys.readouterr().err
    right = planted.right.ask(file.read_bytes()).outcome
    assert right is not None
    assert main([*arguments, "--outcome", right]) == 0
    assert "residue replay is red" in capsys.readouterr().out
    (committed,) = outcomes.inputs(fault.harness)
    assert committed.name == f"{fault.name}-{identity}"
    assert outcomes.read(fault.harness)[committed.name].outcome == right
    # Red while the fault is there, green here, where it never was.
    found = planted.faulty.judge(committed.read_bytes()).found
    assert [one.signature.id for one in found] == [identity]
    assert main(["replay", fault.harness]) == 0
    planted.gone = True
    code, (row,) = planted.triage("--replay")
    assert (code, row["state"]) == (0, "fixed")


def test_a_wrong_outcome_is_made_smaller_beside_the_right_tree(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = BY_NAME["outcome"]
    planted = Planted(fault, tmp_path, monkeypatch)
    request.addfinalizer(planted.end)
    (tmp_path / "corpus").mkdir()
    outcomes.folder(fault.harness).symlink_to(CORPUS / fault.harness)
    row = {
        "harness": fault.harness,
        "file": fault.input,
        "outcome": "tls-record-overflow",
        "expected": fault.right,
        "wrong": f"expected {fault.right}",
        "committed": True,
    }
    replayed = tmp_path / "replay.json"
    replayed.write_text(json.dumps([row]))
    code, (made,) = planted.triage("--from", str(replayed))
    assert (code, made["kind"], made["committed"]) == (1, "outcome", f"server/{fault.input}")
    assert (made["expected"], made["found"]) == ("tls-protocol-version", "tls-record-overflow")
    identity = str(made["id"])
    assert main(["promote", identity, "--dir", str(planted.store)]) == 0
    assert "is committed already; residue replay is red until it ends as" in capsys.readouterr().out
    assert main(["minimise", identity, "--dir", str(planted.store)]) == 2
    assert "--against" in capsys.readouterr().err
    # The tree that is right is this one.
    _, (made,) = planted.triage("--minimise", "100", "--against", str(outcomes.ROOT))
    assert made["committed"] == "" and made["minimised"] and made["size"] < len(fault.data)
    planted.gone = True
    _, (made,) = planted.triage("--replay")
    assert made["state"] == "fixed"
