"""What the gate found, and the forms it is told in: a table, Markdown, annotations, JSON, SARIF."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ci.report import hosted
from ci.wording import many
from mutants.settings import SUITE

# SARIF 2.1.0, which code hosts show beside the lines of a change.
SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

RULES = {
    "judge": "What judges the change was changed by it, and somebody has to say that it is right",
    "outside": "What is under test would be made of something that is none of its sources",
    "unmutable": "Changed code that decides something, of which no mutant can be made",
    "unseen": "Changed code that runs on import, which no test tells from what it was",
    "survivor": "A mutant of a changed function that no test kills and the ledger does not argue",
    "decision": "A decision of the catalogue whose bug nothing sees any more",
    "lost": "A test that alone saw a bug, deleted or emptied",
    "ledger": "An argument of the ledger that does not hold",
    "crashed": "A mutant that crashed",
    "tests": "A test that fails with no mutant",
    "corpus": "A committed input whose outcome is not the committed one",
    "fuzz": "A finding of the fuzzer",
}


@dataclass(frozen=True)
class GateFinding:
    """One red thing: its rule, where, in a line, and at length."""

    rule: str
    message: str
    file: str = ""
    line: int = 1
    detail: str = ""
    on_change: bool = False
    """Whether the line is one that the change touched."""
    asks: bool = False
    """Whether the word of a person who has read it is enough to make it none."""


@dataclass
class StageRow:
    """One line of the gate's table."""

    name: str
    did: str
    red: int = 0
    seconds: float = 0.0


@dataclass
class GateReport:
    """Everything that the gate has to say."""

    since: str
    base: str
    first: list[str] = field(default_factory=list)
    """What judges the change and is touched by it."""
    stages: list[StageRow] = field(default_factory=list)
    findings: list[GateFinding] = field(default_factory=list)
    notes: list[tuple[str, list[str]]] = field(default_factory=list)
    """Headed lists to read that are not red: deleted tests, argued survivors, time-outs."""
    untrusted: list[str] = field(default_factory=list)

    def note(self, head: str, lines: list[str]) -> None:
        """Add a list, unless it is empty, to what stands under this head already."""
        known = next((listed for other, listed in self.notes if other == head), None)
        if known is not None:
            known += lines
        elif lines:
            self.notes.append((head, list(lines)))

    @property
    def word(self) -> str:
        """What a person says who has read all that asks for it; it is of just these findings."""
        asked = sorted(f"{f.rule}\0{f.message}\0{f.file}\0{f.detail}" for f in self.asking)
        return sha256("\0\0".join(asked).encode(errors="surrogateescape")).hexdigest()[:12]

    @property
    def asking(self) -> list[GateFinding]:
        """The findings that ask for a person's word."""
        return [finding for finding in self.findings if finding.asks]

    def accept(self, word: str) -> None:
        """Make notes of what asks for a person's word, if this is the word for it."""
        asking = self.asking
        if asking and word == self.word:
            self.note("accepted by who runs this", [f"{f.rule}: {f.message}" for f in asking])
            self.findings = [finding for finding in self.findings if not finding.asks]

    def as_data(self) -> dict[str, Any]:
        """The verdict as JSON has it, for a program."""
        return {
            "since": self.since,
            "base": self.base,
            "first": self.first,
            "word": self.word if self.asking else "",
            "stages": [vars(stage) for stage in self.stages],
            "findings": [vars(finding) for finding in self.findings],
            "notes": [{"head": head, "lines": lines} for head, lines in self.notes],
            "untrusted": self.untrusted,
        }


def text(verdict: GateReport) -> str:
    """The verdict in lines for a terminal."""
    parts = [f"the change touches what judges it: {line}" for line in verdict.first]
    parts += [_asks(verdict)] if verdict.asking else []
    for finding in sorted(verdict.findings, key=lambda one: not one.asks):
        where = f"{finding.file}:{finding.line}: " if finding.file else ""
        mark = " (a changed line)" if finding.on_change else ""
        parts.append(f"RED {finding.rule}: {where}{finding.message}{mark}")
        parts += [f"    {line}" for line in finding.detail.splitlines()]
    for head, lines in verdict.notes:
        parts += ["", head, *(f"  {line}" for line in lines)]
    rows = [("stage", "did", "red", "time")]
    rows += [(s.name, s.did, str(s.red), f"{s.seconds:.1f} s") for s in verdict.stages]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    parts.append("")
    parts += ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    parts += [f"NOT TO BE TRUSTED: {reason}" for reason in verdict.untrusted]
    return "\n".join([*parts, "", f"gate: {last_word(verdict)}"])


def last_word(verdict: GateReport) -> str:
    """What it comes to, in a line."""
    since = f"since {verdict.since} ({verdict.base[:12]})"
    if verdict.findings:
        return f"red: {many(len(verdict.findings), 'finding')} {since}"
    if verdict.untrusted:
        return f"not to be trusted {since}"
    return f"green: nothing found {since}"


def _asks(verdict: GateReport) -> str:
    asks = many(len(verdict.asking), "finding asks", "findings ask")
    it = "it" if len(verdict.asking) == 1 else "them"
    return f"{asks} for the word of somebody who has read {it}: --accept {verdict.word}"


def markdown(verdict: GateReport) -> str:
    """For the summary page of a hosted run."""
    colour = "red" if verdict.findings else "not to be trusted" if verdict.untrusted else "green"
    parts = [f"## Gate since `{verdict.since}`: {colour}", ""]
    if verdict.first:
        parts += ["**The change touches what judges it:**", ""]
        parts += [*(f"- `{line}`" for line in verdict.first), ""]
    if verdict.asking:
        parts += [_asks(verdict), ""]
    parts += ["| stage | did | red | time |", "| --- | --- | --- | --- |"]
    for stage in verdict.stages:
        parts.append(f"| {stage.name} | {_cell(stage.did)} | {stage.red} | {stage.seconds:.1f} s |")
    for reason in verdict.untrusted:
        parts += ["", f"**Not to be trusted:** {reason}"]
    for finding in sorted(verdict.findings, key=lambda one: not one.asks):
        where = f" `{finding.file}:{finding.line}`" if finding.file else ""
        parts += ["", f"**{finding.rule}**{where}: {finding.message}"]
        if finding.detail:
            parts += ["", "```diff", finding.detail, "```"]
    for head, lines in verdict.notes:
        parts += ["", f"<details><summary>{head} ({len(lines)})</summary>", ""]
        parts += [f"- {_cell(line)}" for line in lines] + ["", "</details>"]
    return "\n".join(parts) + "\n"


def _cell(given: str) -> str:
    return given.replace("|", "\\|").replace("\n", " ")


def annotations(verdict: GateReport) -> Iterator[str]:
    """Workflow commands, which GitHub shows on the lines of a change."""
    for finding in verdict.findings:
        place = f"file={_property(finding.file)},line={finding.line}," if finding.file else ""
        body = finding.message + (f"\n{finding.detail}" if finding.detail else "")
        yield f"::error {place}title={_property('residue: ' + finding.rule)}::{_data(body)}"
    for reason in verdict.untrusted:
        yield f"::error title=residue%3A not to be trusted::{_data(reason)}"


def _data(given: str) -> str:
    return given.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(given: str) -> str:
    return _data(given).replace(":", "%3A").replace(",", "%2C")


def sarif(verdict: GateReport) -> dict[str, Any]:
    """For a code host's list of findings."""
    about = hosted.address()
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "residue gate",
                        "version": SUITE.version(),
                        **({"informationUri": about} if about else {}),
                        "rules": [
                            {"id": rule, "shortDescription": {"text": says}}
                            for rule, says in RULES.items()
                        ],
                    }
                },
                "results": [_result(finding) for finding in verdict.findings],
            }
        ],
    }


def _result(finding: GateFinding) -> dict[str, Any]:
    message = finding.message + (f"\n\n{finding.detail}" if finding.detail else "")
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": "error",
        "message": {"text": message},
    }
    if finding.file:
        result["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": finding.file, "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": finding.line},
                }
            }
        ]
    return result


def write(verdict: GateReport, folder: Path) -> None:
    """gate.json, gate.sarif and gate.md."""
    for name, content in (
        ("gate.json", json.dumps(verdict.as_data(), indent=1, ensure_ascii=False) + "\n"),
        ("gate.sarif", json.dumps(sarif(verdict), indent=1, ensure_ascii=False) + "\n"),
        ("gate.md", markdown(verdict)),
    ):
        (folder / name).write_text(content, encoding="utf-8")
