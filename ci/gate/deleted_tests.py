"""What tests saw before the change: the deleted and the altered ones are brought back and asked.

They are run in a copy, as they were at the merge base. When one fails there, either the change to
the test was right, or the change to the code was wrong: a person has to say which. For the others,
the mutants of the functions that they run are judged by them, and what they kill by the tests of
the change: a mutant that none of those kills has lost its test, whether that was deleted or
emptied.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from ci.gate import diff
from ci.gate.run import Run
from ci.mutation import evaluation
from ci.mutation.evaluation import Asked
from ci.process import ROOT, Job, Stop, run_all
from ci.wording import many

LIMIT = 120.0
# Beside the file of today, where its own helpers are; a name that no test has.
SUFFIX = "_before_this_change"


def search(gate: Run) -> str:
    """Ask the tests of the merge base; say what they see."""
    from mutants import stage

    begun = time.monotonic()
    restored, nodes = bring_back(gate.change, gate.root)
    tree = gate.folder / "tests" / "tree"
    stage.copy(tree, gate.root)
    for name, text in restored.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    answers = _ask(tree, [f"test {node}" for node in nodes], gate.stop)
    passing: list[str] = []
    for node, was in nodes.items():
        answer = answers.get(f"test {node}", "not asked")
        how = "deleted" if was in gate.change.deleted_tests else "altered"
        if answer == "saw":
            gate.add_question("lost", f"{was} was {how}, and as it was it fails on this tree")
        elif answer == "passed":
            passing.append(node)
        else:
            gate.add_question("lost", f"{was} was {how}, and as it was it cannot be run: {answer}")
    tried = due = 0
    judging = {name for tests in gate.settings.tests.values() for name in tests}
    aside = [nodes[node] for node in passing if _file(node) not in judging]
    gate.report.note("tests that judge no mutants, not compared with what they were", aside)
    for file, tests in gate.settings.tests.items():
        left = gate.settings.numbers["lost_seconds"] - (time.monotonic() - begun)
        mine = [node for node in passing if _file(node) in tests]
        if not mine or not (gate.root / file).is_file() or gate.stop:
            continue
        counted = _mutants(gate, file, restored, mine, left, nodes) if left > 0 else (0, 1)
        tried, due = tried + counted[0], due + counted[1]
        if counted[0] < counted[1] and not gate.stop:
            message = f"{file}: no time to compare what the tests see with what they saw"
            detail = "\n".join(nodes[node] for node in mine)
            gate.add_question("lost", message, file, detail=detail)
    return f"{len(nodes)} asked, {tried} of {many(due, 'mutant')} that they run judged"


def _file(node: str) -> str:
    """The file in which a test stood."""
    return node.split("::")[0].replace(SUFFIX, "")


def bring_back(change: diff.Change, root: Path = ROOT) -> tuple[dict[str, str], dict[str, str]]:
    """The files of these tests as they were, under other names; each new node's old name."""
    restored: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for was in (*change.deleted_tests, *change.altered_tests):
        name, _, test = was.partition("::")
        aside = str(Path(name).with_name(Path(name).stem + SUFFIX + ".py"))
        if aside not in restored:
            restored[aside] = diff.before(change, name, root) or ""
        nodes[f"{aside}::{test}"] = was
    return restored, nodes


def _ask(tree: Path, lines: list[str], stop: Stop) -> dict[str, str]:
    from mutants import stage

    out = tree.parent / "answers.json"
    job = tree.parent / "job.json"
    job.write_text(json.dumps({"detected_by": lines, "out": str(out)}), encoding="utf-8")
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
    gate: Run,
    file: str,
    restored: dict[str, str],
    nodes: list[str],
    seconds: float,
    names: dict[str, str],
) -> tuple[int, int]:
    """Judge what these tests run; red is what nothing else kills."""
    folder = gate.folder / "tests" / file.replace("/", "-").removesuffix(".py")
    asked = Asked(
        file,
        folder,
        gate.jobs,
        extra=restored,
        last=tuple(nodes),
        unchanged=True,
        seconds=seconds,
        root=gate.root,
    )
    try:
        judged = evaluation.evaluate(asked, gate.settings, gate.stop, lambda *_: None)
    except (evaluation.NotClean, evaluation.NothingRuns) as error:
        gate.add_finding("tests", str(error), file)
        return 0, 0
    before = set(nodes)
    for result in judged.report.results:
        killers = [name.partition("[")[0] for name in judged.killers[result.mutant.name]]
        if killers and before.issuperset(killers):
            was = names[killers[0]]
            mutant = result.mutant
            message = f"{mutant.function}, {mutant.operator}: only {was}, as it was, killed it"
            gate.add_finding("lost", message, file, mutant.line, mutant.diff)
    return len(judged.killers), judged.report.due
