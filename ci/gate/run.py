"""A run of the gate: what its stages look at, and what they find."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci.exits import Untrusted
from ci.gate.diff import Change
from ci.gate.report import GateFinding, GateReport, StageRow
from ci.mutation.evaluation import Settings
from ci.process import ROOT, Stop
from mutants.ledger import Entry


@dataclass
class Run:
    """What the gate looks at, and what it has found."""

    change: Change
    settings: Settings
    folder: Path
    jobs: int
    stop: Stop
    report: GateReport
    root: Path = ROOT
    ledger: tuple[Entry, ...] = ()
    ledger_was: tuple[Entry, ...] = ()
    quiet: bool = False

    def stage(self, name: str, work: Callable[[], str]) -> None:
        """One line of the table: do it, time it, count what is red; nothing once interrupted."""
        if self.stop:
            return
        if not self.quiet:
            print(f"{name} ...", file=sys.stderr, flush=True)
        before, begun = len(self.report.findings), time.monotonic()
        try:
            did = work()
        except Untrusted as error:
            did = "not to be trusted"
            self.report.untrusted.append(f"{name}: {error}")
        red = len(self.report.findings) - before
        self.report.stages.append(StageRow(name, did, red, time.monotonic() - begun))

    def add_finding(
        self, rule: str, message: str, file: str = "", line: int = 1, detail: str = ""
    ) -> None:
        """Add a finding, which makes the gate red. Its line matters when the change touches it."""
        on_change = line in self.change.lines.get(file, ()) if file else False
        self.report.findings.append(GateFinding(rule, message, file, line, detail, on_change))

    def add_question(
        self, rule: str, message: str, file: str = "", line: int = 1, detail: str = ""
    ) -> None:
        """Add a question: it makes the gate red until a person says that it is right."""
        self.report.findings.append(GateFinding(rule, message, file, line, detail, asks=True))

    def argued(self, code: Entry) -> bool:
        """Whether the ledger argues this code; the change's own argument is asked for."""
        found = next((entry for entry in self.ledger if entry.key == code.key), None)
        if found is not None:
            self.argument(found)
        return found is not None

    def argument(self, entry: Entry) -> None:
        """An argument is used; one that the change brings along asks for a person's word."""
        if entry.key in {known.key for known in self.ledger_was}:
            self.report.note("argued in the ledger", [f"{entry}: {entry.argument}"])
        else:
            message = f"argued by the change itself: {entry}"
            self.add_question("judge", message, entry.file, detail=entry.argument)
