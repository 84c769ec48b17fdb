"""Line and branch coverage of inputs over the engine, measured in a process of its own.

    python -m ci.coverage.measure RESULT.json HARNESS COMMITTED MERGED [SOURCE...]

The inputs of the folders are run without a fuzzer under coverage.py, each once, and the result says
which lines and branches of `engine/` are reached by the committed inputs, by the merged ones, and
by all that the sources hold. libFuzzer's own `cov:` is not used: it counts what its instrumentation
sees, differs from run to run, and names no line. The same runs say which refusals are reached
(`harnesses.refusal_probe`) and what the inputs are (`ci.coverage.corpus`).
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import coverage

from ci.coverage import corpus
from ci.coverage.corpus import Cell, Input
from mutants.settings import SUITE

ROOT = Path(__file__).resolve().parent.parent.parent
IMPORT = "import"
COMMITTED, NEW, REST = "committed", "new", "rest"


def inputs(folders: list[Path], seen: set[bytes]) -> Iterator[tuple[Path, bytes]]:
    """Every input of the folders that was not seen yet, once by content."""
    for folder in folders:
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            data = file.read_bytes()
            if data not in seen:
                seen.add(data)
                yield file, data


class Watch(Protocol):
    """What sees the refusals of this process."""

    def install(self) -> None:
        """Begin to see them."""

    def of(
        self, harness: str, run: Callable[[bytes], str], data: bytes
    ) -> tuple[str | None, set[Cell]]:
        """The outcome of an input, None when it was stopped, and the cells that it reached."""


def watch() -> Watch:
    """What sees the refusals, around the package in this process."""
    # Not above: it imports the package, which must not be there before it is measured.
    watch: Watch = importlib.import_module(SUITE.refusal_probe).Watch()
    watch.install()
    return watch


class Meter:
    """A harness under coverage.py, with a context for each group of inputs."""

    def __init__(self, harness: str) -> None:
        self.harness = harness
        self.ran: dict[str, list[Input]] = {}
        self.cov = coverage.Coverage(
            data_file=None, branch=True, source=[str(ROOT / SUITE.package)], config_file=False
        )
        self.cov.start()
        self.cov.switch_context(IMPORT)
        self.run: Callable[[bytes], str] = importlib.import_module(
            f"{SUITE.harnesses}.{harness}"
        ).run
        self.watch = watch()

    def over(self, context: str, group: list[tuple[Path, bytes]]) -> None:
        """Run these inputs in one context."""
        self.cov.switch_context(context)
        ran = self.ran.setdefault(context, [])
        for file, data in group:
            outcome, cells = self.watch.of(self.harness, self.run, data)
            ran.append(Input(file.name, data, context == COMMITTED, outcome, cells))
        self.cov.switch_context(IMPORT)

    def restoring(self, have: list[str], group: list[tuple[Path, bytes]]) -> dict[str, Path]:
        """Which of the rest give back what the merge lost: the input by its context.

        libFuzzer merges by what its instrumentation counts, which is not quite what coverage.py
        counts; so a merge that is right by the one can lose a branch by the other.
        """
        lost = self._arcs([REST]) - self._arcs(have)
        kept = {}
        for number, (file, data) in enumerate(group):
            if not lost:
                break
            context = f"one-{number}"
            self.over(context, [(file, data)])
            if back := lost & self._arcs([context]):
                lost -= back
                kept[context] = file
        return kept

    def _arcs(self, contexts: list[str]) -> set[tuple[str, int, int]]:
        data = self.cov.get_data()
        data.set_query_contexts([f"^{name}$" for name in contexts])
        return {(f, a, b) for f in data.measured_files() for a, b in data.arcs(f) or ()}

    def report(self, contexts: list[str]) -> dict[str, dict[str, list[Any]]]:
        """The lines and branches that the contexts reached together, by file."""
        with TemporaryDirectory() as scratch:
            file = Path(scratch) / "report.json"
            self.cov.json_report(outfile=str(file), contexts=[f"^{name}$" for name in contexts])
            return _files(json.loads(file.read_text(encoding="utf-8")))


def measure(harness: str, committed: Path, merged: Path, sources: list[Path]) -> dict[str, Any]:
    """What each group reached, and which inputs the merged ones must be given back."""
    meter = Meter(harness)
    seen: set[bytes] = set()
    groups = {
        COMMITTED: list(inputs([committed], seen)),
        NEW: list(inputs([merged], seen)),
        REST: list(inputs(sources, seen)),
    }
    for context, group in groups.items():
        meter.over(context, group)
    have = [IMPORT, COMMITTED, NEW]
    restored = meter.restoring(have, groups[REST])
    meter.cov.stop()
    kept = [entry for context in (COMMITTED, NEW, *restored) for entry in meter.ran[context]]
    return {
        "reach": {
            "import": meter.report([IMPORT]),
            "committed": meter.report([IMPORT, COMMITTED]),
            "merged": meter.report([*have, *restored]),
            "all": meter.report([*have, REST]),
        },
        "restored": [str(file) for file in restored.values()],
        "refusals": corpus.refusals(harness, kept),
        "corpus": corpus.corpus(kept),
    }


def _files(report: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    kept = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    return {
        str(Path(name).resolve().relative_to(ROOT)): {key: data[key] for key in kept}
        for name, data in report["files"].items()
    }


def main(argv: list[str]) -> None:
    """Measure, and write the result aside before it is given its name."""
    result, harness, committed, merged, *sources = argv
    measured = measure(harness, Path(committed), Path(merged), [Path(source) for source in sources])
    aside = Path(result + ".part")
    aside.write_text(json.dumps(measured), encoding="utf-8")
    aside.replace(result)


if __name__ == "__main__":
    main(sys.argv[1:])
