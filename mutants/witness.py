"""Do the named witnesses see a fault? `python -m mutants.witness JOB`, from a planted tree's root.

JOB is a JSON file with `detected_by` lines as in the catalogue and `out`, where the answer goes:
for each line `saw` (the test fails, the oracle reports just that, an injection trips it), `passed`,
or `absent` (there is no such test, input or scenario). A plant is killed when every one of its
witnesses sees it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mutants.settings import SUITE

SAW, PASSED, ABSENT = "saw", "passed", "absent"


class _Watch:
    """Runs only the tests that are named, and keeps what became of each."""

    def __init__(self, nodes: list[str]) -> None:
        self.answers = dict.fromkeys(nodes, ABSENT)

    def named(self, nodeid: str) -> list[str]:
        """The names that a test goes by: its own, without its parameters, its class, its file."""
        return [
            node
            for node in self.answers
            if nodeid == node or nodeid.startswith((f"{node}[", f"{node}::"))
        ]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        chosen = [item for item in items if self.named(item.nodeid)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for node in self.named(report.nodeid):
            if report.failed:
                self.answers[node] = SAW
            elif report.when == "call" and self.answers[node] == ABSENT and not report.skipped:
                self.answers[node] = PASSED


def main(path: str) -> int:
    """Ask every witness of a job."""
    os.environ.pop("PYTHONPATH", None)
    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    nodes = [line.removeprefix("test ") for line in job["detected_by"] if line.startswith("test ")]
    answers: dict[str, str] = {}
    # The engine first: where the fault keeps it from being imported, that is a crash and no kill.
    importlib.import_module(SUITE.package)
    if nodes:
        watch = _Watch(nodes)
        files = sorted({node.split("::", 1)[0] for node in nodes})
        arguments = ["-q", "-p", "no:cacheprovider", "--tb=no", "--assert=plain"]
        code = int(pytest.main([*arguments, *filter(os.path.isfile, files)], plugins=[watch]))
        # 0 and 1 are verdicts, 5 is "nothing collected"; 2 to 4 are pytest's own failures.
        if code not in (0, 1, 5):
            return code
        answers = {f"test {node}": answer for node, answer in watch.answers.items()}
    for line in job["detected_by"]:
        if line.startswith("oracle "):
            answers[line] = _oracle(*line.split(" ")[1:])
        elif line.startswith("injection "):
            answers[line] = _injection(*line.split(" ")[1:])
    out = Path(job["out"])
    out.with_suffix(".new").write_text(json.dumps(answers), encoding="utf-8")
    out.with_suffix(".new").replace(out)
    return 0


def _oracle(harness: str, oracle: str, file: str) -> str:
    from harnesses import outcomes
    from harnesses.oracles import Broken

    path = outcomes.folder(harness) / file
    if not path.is_file():
        return ABSENT
    try:
        importlib.import_module(f"{SUITE.harnesses}.{harness}").run(
            path.read_bytes(), thorough=True
        )
    except Broken as broken:
        return SAW if broken.oracle == oracle else PASSED
    return PASSED


def _injection(scenario: str, oracle: str) -> str:
    from harnesses import injection
    from harnesses.injector.scenarios import SCENARIOS

    if scenario not in SCENARIOS:
        return ABSENT
    return SAW if injection.breaks(scenario, oracle) else PASSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
