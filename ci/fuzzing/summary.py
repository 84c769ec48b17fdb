"""The summary of a run: the same facts as JSON for a program and as text for a person."""

import json
from pathlib import Path
from shlex import quote
from typing import Any, TypedDict

from ci.coverage.covered import Counts
from ci.exits import Exit
from ci.fuzzing.findings import FindingRow
from ci.output import shown
from ci.progress import clock
from ci.wording import many
from mutants.settings import SUITE

VERDICTS = {
    Exit.CLEAN: "nothing found",
    Exit.FOUND: "something was found",
    Exit.UNTRUSTED: "this run is not to be trusted",
    Exit.INTERRUPTED: "interrupted; what was found until then is kept",
}
# More than this many new inputs are not listed by name; the folder is.
LISTED = 8
WORK = ("time", "runs", "a second", "edges", "inputs", "new")
HEAD = ("harness", *WORK, "lines", "branches", "finds")


class ShardRow(TypedDict):
    """One process of a harness."""

    name: str
    seed: int
    starts: int
    ends: list[int]
    executions: int
    gave_up: bool
    value_profile: bool


class HarnessRow(TypedDict):
    """What one harness did. Times are in seconds, `rate` is a second of processor time."""

    executions: int
    seconds: float
    cpu: float
    rate: float
    edges: int
    gained: int
    turns: int
    looked: dict[str, int]
    committed: int
    seeds: int
    found: int
    new: int
    new_folder: str
    merged_folder: str
    kept_all: str
    findings: int
    coverage: Counts
    committed_coverage: Counts
    corpus: dict[str, Any]
    shards: list[ShardRow]


class CanaryRow(TypedDict):
    """A planted fault, and whether the fuzzer found it."""

    harness: str
    plant: str
    found: bool


class Summary(TypedDict):
    """A run as summary.json has it, and as whatever is made from it is given it."""

    kind: str
    commit: str
    exit: int
    python: str
    interrupted: bool
    asked_seconds: float
    fuzzing_seconds: float
    seconds: float
    jobs: int
    harnesses: dict[str, HarnessRow]
    coverage: Counts
    files: dict[str, Any]
    curve: list[dict[str, Any]]
    refusals: dict[str, Any]
    oracles: dict[str, int]
    canaries: list[CanaryRow]
    untrusted: list[str]
    notes: list[str]
    findings: list[FindingRow]


def text(data: Summary) -> str:
    """The summary as a person reads it."""
    lines = [
        f"{data['kind']}: {VERDICTS[Exit(data['exit'])]}",
        f"{clock(data['fuzzing_seconds'])} of fuzzing over "
        f"{many(data['jobs'], 'process', 'processes')}, {clock(data['seconds'])} in all",
        *([f"commit {data['commit']}"] if data.get("commit") else []),
        "",
        *_table(data["harnesses"]),
        "",
        *_coverage(data["coverage"]),
    ]
    if data["canaries"]:
        flown = ", ".join(
            f"{c['harness']}: "
            + (f"{c['plant']} {'found' if c['found'] else 'MISSED'}" if c["plant"] else "none")
            for c in data["canaries"]
        )
        lines += ["", f"planted faults: {flown}"]
    lines += _oracles(data.get("oracles", {}))
    if data["untrusted"]:
        lines += ["", "not to be trusted because", *(f"  {why}" for why in data["untrusted"])]
    if data["notes"]:
        lines += ["", "notes", *(f"  {note}" for note in data["notes"])]
    lines += _findings(data["findings"])
    lines += _new_inputs(data)
    return "\n".join(lines) + "\n"


def _table(harnesses: dict[str, HarnessRow]) -> list[str]:
    rows = [HEAD]
    for name, h in harnesses.items():
        reach = h["coverage"]
        rows.append(
            (
                name,
                clock(h["seconds"]),
                f"{h['executions']:,}",
                f"{h['rate']:,.0f}",
                str(h["edges"]),
                str(h["committed"]),
                str(h["new"]),
                f"{reach['line_percent']:.1f}%" if reach else "-",
                f"{reach['branch_percent']:.1f}%" if reach else "-",
                str(h["findings"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _coverage(coverage: Counts) -> list[str]:
    if not coverage:
        return [f"coverage over {SUITE.package}/: not measured"]
    return [
        f"coverage over {SUITE.package}/, all merged inputs: {coverage['line_percent']}% of "
        f"{coverage['all_lines']} lines, {coverage['branch_percent']}% of "
        f"{coverage['all_branches']} branches"
    ]


def _oracles(looked: dict[str, int]) -> list[str]:
    """How many oracles looked, and the one that looked least: a sample may be too small."""
    if not looked:
        return []
    silent = [name for name, count in looked.items() if not count]
    least = min((name for name in looked if looked[name]), key=looked.__getitem__, default="")
    told = f"oracles: {len(looked) - len(silent)} of {len(looked)} looked"
    if least:
        told += f", the least {least}, {many(looked[least], 'time')}"
    return ["", told + (f"; not {', '.join(silent)}" if silent else "")]


def _findings(findings: list[FindingRow]) -> list[str]:
    lines: list[str] = []
    for number, finding in enumerate(findings, 1):
        oracle = f" ({finding['oracle']})" if finding["oracle"] else ""
        lines += [
            "",
            f"finding {number}: {finding['harness']}: {finding['kind']}{oracle}",
            f"  {finding['detail'].splitlines()[0] if finding['detail'] else ''}",
            f"  in {' > '.join(finding['frames']) or 'no frame of ours'}",
            f"  {finding['replay']}",
        ]
    return lines


def _new_inputs(data: Summary) -> list[str]:
    lines: list[str] = []
    for name, h in data["harnesses"].items():
        if not h["new"]:
            continue
        folder = Path(h["new_folder"])
        lines += ["", f"{name}: {many(h['new'], 'new input')} in {shown(folder)}"]
        if h["new"] <= LISTED:
            lines += [
                f"  residue promote {quote(shown(file))} --harness {name}"
                for file in sorted(folder.iterdir())
            ]
        else:
            lines.append(f"  residue promote {quote(shown(folder))}/FILE --harness {name}")
    return lines


def write(root: Path, data: Summary) -> str:
    """Write both forms into the folder, each aside and then by its name; returns the text."""
    story = text(data)
    for name, body in (("summary.json", json.dumps(data, indent=1) + "\n"), ("summary.txt", story)):
        aside = root / f".{name}"
        aside.write_text(body, encoding="utf-8")
        aside.replace(root / name)
    return story
