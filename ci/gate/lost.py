"""What the deleted tests saw: they are brought back from the merge base into a copy, and asked.

One that fails there was deleted because it was right. For the others, the mutants of the
functions that they run are judged by them, and what they kill by the tests that are left: a mutant
that none of those kills has lost its test.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ci import mutation
from ci.gate import changes
from ci.mutation import Asked
from ci.process import ROOT, Job, Stop, run_all

if TYPE_CHECKING:
    from ci.gate.stages import Gate

LIMIT = 120.0
# Beside the file of today, where its own helpers are; a name that no test has.
SUFFIX = "_before_this_change"


def search(gate: Gate) -> str:
    """Ask the deleted tests; say what they see."""
    from mutants import stage

    begun = time.monotonic()
    restored, nodes = bring_back(gate.change)
    tree = gate.folder / "deleted" / "tree"
    stage.copy(tree)
    for name, text in restored.items():
        (tree / name).write_text(text, encoding="utf-8")
    answers = _ask(tree, [f"test {node}" for node in nodes], gate.stop)
    passing: list[str] = []
    for node, was in nodes.items():
        answer = answers.get(f"test {node}", "not asked")
        if answer == "saw":
            gate.red("lost", f"{was} was deleted, and fails on this tree", was.split("::")[0])
        elif answer == "passed":
            passing.append(node)
        else:
            gate.told.note("deleted tests that cannot be run any more", [f"{was}: {answer}"])
    tried = due = 0
    for file, tests in gate.settings.tests.items():
        files = {node.split("::")[0].replace(SUFFIX, "") for node in passing}
        left = gate.settings.numbers["lost_seconds"] - (time.monotonic() - begun)
        mine = [node for node in passing if node.split("::")[0].replace(SUFFIX, "") in tests]
        if not files & set(tests) or not (ROOT / file).is_file() or gate.stop:
            continue
        if left <= 0:
            gate.told.note("not searched for lost mutants: out of time", [file])
            continue
        counted = _mutants(gate, file, restored, mine, left, nodes)
        tried, due = tried + counted[0], due + counted[1]
    return f"{len(nodes)} asked, {tried} of {due} mutants that they run judged"


def bring_back(change: changes.Change) -> tuple[dict[str, str], dict[str, str]]:
    """The files of the deleted tests as they were, under other names; each new node's old name."""
    restored: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for was in change.deleted_tests:
        name, _, test = was.partition("::")
        aside = str(Path(name).with_name(Path(name).stem + SUFFIX + ".py"))
        if aside not in restored:
            restored[aside] = changes.before(change, name) or ""
        nodes[f"{aside}::{test}"] = was
    return restored, nodes


def _ask(tree: Path, lines: list[str], stop: Stop) -> dict[str, str]:
    from mutants import stage

    out = tree.parent / "answers.json"
    job = tree.parent / "job.json"
    job.write_text(json.dumps({"seen_by": lines, "out": str(out)}), encoding="utf-8")
    argv = [sys.executable, "-m", "mutants.witness", str(job)]
    run_all(
        [Job(argv, tree.parent / "log", LIMIT, dict(stage.ENVIRONMENT), tree)], 1, stop, stops_at=1
    )
    try:
        answers: dict[str, str] = json.loads(out.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return answers


def _mutants(
    gate: Gate,
    file: str,
    restored: dict[str, str],
    nodes: list[str],
    seconds: float,
    names: dict[str, str],
) -> tuple[int, int]:
    """Judge what the deleted tests run; red is what nothing else kills."""
    folder = gate.folder / "deleted" / Path(file).stem
    asked = Asked(file, folder, gate.jobs, extra=restored, last=tuple(nodes), seconds=seconds)
    judged = mutation.judge(asked, gate.settings, gate.stop, lambda *_: None)
    deleted = set(nodes)
    for result in judged.report.results:
        killers = [name.partition("[")[0] for name in judged.killers[result.mutant.name]]
        if killers and deleted.issuperset(killers):
            was = names[killers[0]]
            mutant = result.mutant
            message = f"{mutant.function}, {mutant.operator}: only the deleted {was} killed it"
            gate.red("lost", message, file, mutant.line, mutant.diff)
    return len(judged.killers), judged.report.due
