"""Line and branch coverage of inputs over the engine, measured in a process of its own.

    python -m ci.measure RESULT.json HARNESS '{"GROUP": ["DIR", ...], ...}'

Each group's inputs are run without a fuzzer under coverage.py, and the result says which lines and
branches of `engine/` each group reached, the import's included. libFuzzer's own `cov:` is not
used: it counts what its instrumentation sees, differs from run to run, and names no line.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import coverage

ROOT = Path(__file__).resolve().parent.parent
IMPORT = "import"


def inputs(folders: list[Path]) -> Iterator[tuple[Path, bytes]]:
    """Every input of the folders once, by content."""
    seen: set[bytes] = set()
    for folder in folders:
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            data = file.read_bytes()
            if data not in seen:
                seen.add(data)
                yield file, data


class Meter:
    """A harness under coverage.py, one context a group of inputs."""

    def __init__(self, harness: str) -> None:
        self.cov = coverage.Coverage(
            data_file=None, branch=True, source=[str(ROOT / "engine")], config_file=False
        )
        self.cov.start()
        self.cov.switch_context(IMPORT)
        self.run: Callable[[bytes], str] = importlib.import_module(f"harnesses.{harness}").run

    def over(self, context: str, folders: list[Path]) -> dict[str, int]:
        """Run all inputs in one context; how many there were and how many an oracle stopped."""
        self.cov.switch_context(context)
        results = [self._one(data) for _, data in inputs(folders)]
        return {"ran": len(results), "broken": results.count(False)}

    def _one(self, data: bytes) -> bool:
        try:
            self.run(data)
        except Exception:
            # A finding, which is counted where findings are; here it is only a path taken.
            return False
        return True

    def restoring(self, whole: str, part: str, folders: list[Path]) -> list[Path]:
        """Inputs that give `part` back what only `whole` reached: each adds something.

        libFuzzer merges by what its instrumentation counts, which is not quite what coverage.py
        counts; so a merge that is right by the one can lose a branch by the other.
        """
        lost = self._arcs(whole) - self._arcs(part) - self._arcs(IMPORT)
        kept = []
        for number, (file, data) in enumerate(inputs(folders)):
            if not lost:
                break
            self.cov.switch_context(f"one-{number}")
            self._one(data)
            self.cov.switch_context(IMPORT)
            if back := lost & self._arcs(f"one-{number}"):
                lost -= back
                kept.append(file)
        return kept

    def _arcs(self, context: str) -> set[tuple[str, int, int]]:
        data = self.cov.get_data()
        data.set_query_context(context)
        return {(f, a, b) for f in data.measured_files() for a, b in data.arcs(f) or ()}

    def report(self, contexts: list[str]) -> dict[str, dict[str, list[Any]]]:
        """The lines and branches that the contexts reached together, by file."""
        with TemporaryDirectory() as scratch:
            file = Path(scratch) / "report.json"
            self.cov.json_report(outfile=str(file), contexts=[f"^{name}$" for name in contexts])
            return _files(json.loads(file.read_text(encoding="utf-8")))


def measure(harness: str, groups: dict[str, list[Path]]) -> dict[str, Any]:
    """What each group reached, how many inputs it had, and what the merge must be given back."""
    meter = Meter(harness)
    counts = {group: meter.over(group, folders) for group, folders in groups.items()}
    restore: list[Path] = []
    if {"merged", "all"} <= groups.keys():
        restore = meter.restoring("all", "merged", groups["all"])
    meter.cov.stop()
    return {
        "groups": {
            IMPORT: {"ran": 0, "broken": 0, "files": meter.report([IMPORT])},
            **{g: {**counts[g], "files": meter.report([IMPORT, g])} for g in groups},
        },
        "restore": [str(file) for file in restore],
    }


def _files(report: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    kept = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    return {
        str(Path(name).resolve().relative_to(ROOT)): {key: data[key] for key in kept}
        for name, data in report["files"].items()
    }


def main(argv: list[str]) -> None:
    """Measure, and write the result aside before it is given its name."""
    result, harness, named = argv
    groups = {group: [Path(d) for d in folders] for group, folders in json.loads(named).items()}
    aside = Path(result + ".part")
    aside.write_text(json.dumps(measure(harness, groups)), encoding="utf-8")
    aside.replace(result)


if __name__ == "__main__":
    main(sys.argv[1:])
