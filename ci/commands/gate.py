"""`residue gate --since REF`: does what a change touches still have something that watches it?

In this order, the quick first: what can be read off, the catalogue's entries, what the tests saw
that are deleted or altered, the parts that run on import, the changed functions' mutants, the
corpus, the fuzzer; and where the change touches the gate itself, all of it again by the gate that
was there before. Every stage runs even when one before it is red.
"""

import argparse
import os
from pathlib import Path

from ci import arguments, extras, output
from ci.exits import Exit, Interrupted, UsageError
from ci.gate import deleted_tests, diff, judges, parts, report
from ci.gate.stages import Gate
from ci.mutation import evaluation
from ci.mutation.evaluation import Settings
from ci.process import ROOT, Stop
from ci.report import hosted
from mutants import ledger, plants


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue gate`."""
    parser.add_argument(
        "--since", required=True, metavar="REF", help="what the change started from: main"
    )
    arguments.jobs(parser)
    arguments.out(parser, "gate")
    arguments.json(parser, "gate.json, what was found,")
    arguments.quiet(parser)
    parser.add_argument(
        "--tree",
        metavar="DIR",
        help="judge that checkout, by the gate of its merge base and by its own where they differ",
    )
    parser.add_argument(
        "--alone", action="store_true", help="by this checkout's gate alone, if it changed too"
    )
    parser.add_argument(
        "--accept",
        default="",
        metavar="WORD",
        help="you have read what asks for somebody's word, and this is the word that was shown",
    )


def run(args: argparse.Namespace) -> int:
    """Run `residue gate`."""
    evaluation.check_installed()
    extras.need("git")
    root = Path(args.tree).resolve() if args.tree else ROOT
    change = diff.since(args.since, root)
    told = report.GateReport(args.since, change.base, judges.touched(change))
    told.note("deleted tests", change.deleted_tests)
    told.note("altered tests", change.altered_tests)
    with Stop() as stop:
        out = output.make(args.out, "gate")
        gate = Gate(change, Settings({}, (), {}), out.scratch, args.jobs, stop, told, root)
        gate.quiet = args.quiet
        differs = judges.code_differs(change)
        if root == ROOT:
            own(gate)
        if root != ROOT or (differs and not args.alone):
            gate.stage("the gate before", gate.before)
        if root != ROOT and differs:
            gate.stage("the gate of it", gate.own)
        told.accept(args.accept)
        report.write(told, out.root)
        print(report.text(told))
        _hosted(told)
        print(f"\n{output.shown(out.root)}/gate.md, gate.json, gate.sarif")
        args.json.write(told.as_data())
        if stop:
            raise Interrupted
    if told.findings:
        return Exit.FOUND
    return Exit.UNTRUSTED if told.untrusted else Exit.CLEAN


def own(gate: Gate) -> None:
    """The stages, by the code of this checkout."""
    judge(gate)
    gate.stage("corpus", gate.corpus)
    if gate.change.coded:
        gate.stage("fuzz", gate.fuzz)


def judge(gate: Gate) -> None:
    """Those that ask the tests."""
    change = gate.change
    load(gate)
    try:
        gate.stage("reading", gate.reading)
        if gate.entries():
            gate.stage("catalogue", gate.catalogue)
        if change.deleted_tests or change.altered_tests:
            gate.stage("tests", lambda: deleted_tests.search(gate))
        if any(change.parts.values()):
            gate.stage("parts", lambda: parts.search(gate))
        if any(change.functions.values()):
            gate.stage("mutants", gate.mutants)
        gate.orphans()
    except plants.PlantError as error:
        raise UsageError(str(error)) from None


def load(gate: Gate) -> None:
    """What the stages judge by, of the change and of the merge base."""
    mine = evaluation.read_settings(gate.root / "setup.cfg")
    gate.settings, differs = judges.settings(gate.change, mine, gate.root)
    gate.report.first += differs
    try:
        gate.ledger = ledger.load(gate.root / judges.LEDGER)
    except ledger.LedgerError as error:
        raise UsageError(str(error)) from None
    gate.ledger_was = judges.ledger_before(gate.change, gate.root)


def _hosted(told: report.GateReport) -> None:
    """Where the run is one of GitHub Actions: annotations, and the summary page."""
    if not os.environ.get("GITHUB_ACTIONS"):
        return
    for line in report.annotations(told):
        print(line)
    hosted.page(report.markdown(told))
