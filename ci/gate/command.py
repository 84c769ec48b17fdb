"""`residue gate --since REF`: does what a change touches still have something that watches it?

In this order, the quick first: the catalogue's entries, what deleted tests saw, the changed
functions' mutants, the corpus, the fuzzer. Every stage runs even when one before it is red.
"""

import argparse
import os

from ci import extras, hosted, mutation, output
from ci.campaign import positive
from ci.exits import Exit, Interrupted, UsageError
from ci.gate import changes, lost, verdict
from ci.gate.stages import Gate
from ci.process import Stop
from mutants import ledger, plants


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue gate`."""
    parser.add_argument(
        "--since", required=True, metavar="REF", help="what the change started from: main"
    )
    parser.add_argument("--jobs", type=positive, default=2, metavar="N", help="default 2")
    parser.add_argument(
        "--out", metavar="DIR", help="a new folder for the reports (default: under build/gate)"
    )


def run(args: argparse.Namespace) -> int:
    """Run `residue gate`."""
    mutation.check_installed()
    extras.need("git")
    change = changes.since(args.since)
    settings = mutation.read_settings()
    told = verdict.Verdict(args.since, change.base)
    told.note("deleted tests", change.deleted_tests)
    told.note("deleted inputs", change.deleted_inputs)
    told.note("entries that left the catalogue", change.deleted_plants)
    with Stop() as stop:
        out = output.make(args.out, "gate")
        gate = Gate(change, settings, out.scratch, args.jobs, stop, told)
        try:
            if gate.entries():
                gate.stage("catalogue", gate.catalogue)
            if change.deleted_tests:
                gate.stage("deleted tests", lambda: lost.search(gate))
            if any(change.functions.values()):
                gate.stage("mutants", gate.mutants)
        except (plants.PlantError, ledger.LedgerError) as error:
            raise UsageError(str(error)) from None
        gate.stage("corpus", gate.corpus)
        if change.engine:
            gate.stage("fuzz", gate.fuzz)
        verdict.write(told, out.root)
        print(verdict.text(told))
        _hosted(told)
        print(f"\n{output.shown(out.root)}/gate.md, gate.json, gate.sarif")
        if stop:
            raise Interrupted
    if told.findings:
        return Exit.FOUND
    return Exit.UNTRUSTED if told.untrusted else Exit.CLEAN


def _hosted(told: verdict.Verdict) -> None:
    """Where the run is one of GitHub Actions: annotations, and the summary page."""
    if not os.environ.get("GITHUB_ACTIONS"):
        return
    for line in verdict.annotations(told):
        print(line)
    hosted.page(verdict.markdown(told))
