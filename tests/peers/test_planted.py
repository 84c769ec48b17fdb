"""A fault planted in a rule turns the conversations red that name the rule, and not an honest one.

The faults are mutants/catalogue/conversations.toml's; each is applied to a copy of the tree, and a
process of its own plays the conversations over it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import plants
from mutants.plants import Plant
from tests.tools import PATIENCE

PLANTS = plants.load(plants.CATALOGUE / "conversations.toml")
NODE = re.compile(r"test tests/peers/test_conversations\.py::test_it_ends_as_it_must\[(.*)\]")
#: A full handshake and a round trip: none of the faults may touch it.
CONTROL = "handshake-aes_128_gcm_sha256-x25519"

PLAYED = """
import json, sys
from peers.liar.conversation import play
from peers.liar.suites import SUITES
from peers.memory import EngineServer
found = {f"{c.suite}-{c.name}": c for s in SUITES.values() for c in s.conversations}
print(json.dumps({name: play(found[name], EngineServer()).wrong for name in sys.argv[1:]}))
"""


def witnesses(plant: Plant) -> list[str]:
    found = [NODE.fullmatch(line) for line in plant.detected_by]
    return [match[1] for match in found if match]


def played(tree: Path, names: list[str]) -> dict[str, list[str]]:
    """What is wrong with the end of each conversation, over the tree."""
    argv = [sys.executable, "-c", PLAYED, *names]
    run = subprocess.run(argv, cwd=tree, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr[-500:]
    told: dict[str, list[str]] = json.loads(run.stdout)
    return told


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_fault_is_seen_by_the_conversations_that_name_its_rule(
    plant: Plant, tmp_path: Path
) -> None:
    names = witnesses(plant)
    assert names and len(names) == len(plant.detected_by)
    tree = plants.apply(plant, tmp_path, folders=("engine", "peers"))
    told = played(tree, [*names, CONTROL])
    assert told.pop(CONTROL) == []
    assert [name for name, wrong in told.items() if not wrong] == []


def test_without_a_fault_they_are_all_right(tmp_path: Path) -> None:
    tree = plants.copy(tmp_path, folders=("engine", "peers"))
    names = sorted({name for plant in PLANTS for name in witnesses(plant)})
    assert [name for name, wrong in played(tree, [*names, CONTROL]).items() if wrong] == []
