"""The stages of the gate: what each of them looks at, and what is red there."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci import decisions, mutation, output
from ci.exits import Exit, Untrusted
from ci.gate import changes, verdict
from ci.gate.changes import Change
from ci.gate.verdict import Finding, Stage
from ci.mutate import Progress
from ci.mutation import Asked, Settings
from ci.process import ROOT, Job, Stop, run_all
from ci.reaching import harnesses_that_reach
from mutants import ledger, plants
from mutants.plants import Plant
from mutants.verdicts import Verdict as Fate

REPLAY_LIMIT = 600.0
# What a campaign does after fuzzing: merging and measuring.
FUZZ_LIMIT = 240.0
# Of a list that one bug can make as long as the corpus.
SHOWN = 10


@dataclass
class Gate:
    """A run of the gate: what it looks at, and what it has found."""

    change: Change
    settings: Settings
    folder: Path
    jobs: int
    stop: Stop
    told: verdict.Verdict

    def stage(self, name: str, work: Callable[[], str]) -> None:
        """One line of the table: do it, time it, count what is red; nothing once interrupted."""
        if self.stop:
            return
        print(f"{name} ...", file=sys.stderr, flush=True)
        before, begun = len(self.told.findings), time.monotonic()
        try:
            did = work()
        except Untrusted as error:
            did = "not to be trusted"
            self.told.untrusted.append(f"{name}: {error}")
        red = len(self.told.findings) - before
        self.told.stages.append(Stage(name, did, red, time.monotonic() - begun))

    def red(self, rule: str, message: str, file: str = "", line: int = 1, detail: str = "") -> None:
        """Something is found."""
        on_change = line in self.change.lines.get(file, ()) if file else False
        self.told.findings.append(Finding(rule, message, file, line, detail, on_change))

    # -- the catalogue ----------------------------------------------------------------------

    def entries(self) -> list[Plant]:
        """The catalogue entries that the change concerns."""
        change = self.change
        tests = change.changed_tests | set(change.deleted_tests)
        inputs = change.changed_inputs | set(change.deleted_inputs)

        def concerned(plant: Plant) -> bool:
            return (
                changes.concerns(change, plant.file, plant.text)
                or plant.name in change.changed_plants
                or any(_names(line, tests, inputs) for line in plant.seen_by)
            )

        return [plant for plant in plants.load_all() if concerned(plant)]

    def catalogue(self) -> str:
        """Run them, and say of each that is no kill what it decided and who saw it."""
        entries = self.entries()
        decided = decisions.judge(entries, self.folder / "catalogue", self.jobs, self.stop)
        for row in decided:
            if row.verdict not in (Fate.KILLED, Fate.TIMED_OUT):
                plant = row.plant
                detail = f"rule: {plant.rule}\nseen by: " + "\n         ".join(plant.seen_by)
                message = f"{plant.name}: {row.verdict}, {row.why}"
                self.red("decision", message, plant.file, _line(plant), detail)
        killed = sum(row.verdict is Fate.KILLED for row in decided)
        late = sum(row.verdict is Fate.TIMED_OUT for row in decided)
        return f"{len(entries)} entries, {killed} killed, {late} timed out"

    # -- mutants ----------------------------------------------------------------------------

    def mutants(self) -> str:
        """The mutants of the changed functions."""
        entries = ledger.load()
        made = killed = late = 0
        argued: list[str] = []
        timed_out: list[str] = []
        progress = Progress()
        for file, functions in sorted(self.change.functions.items()):
            if not functions or self.stop:
                continue
            asked = Asked(file, self.folder / Path(file).stem, self.jobs, functions)
            try:
                judged = mutation.judge(asked, self.settings, self.stop, progress)
            except mutation.NotClean as error:
                self.red("tests", str(error), file)
                continue
            finally:
                progress.end()
            report = judged.report
            counts = report.counts()
            made, killed = made + report.due, killed + counts[Fate.KILLED]
            late += counts[Fate.TIMED_OUT]
            if not report.adds_up() and not self.stop:
                raise Untrusted(f"{file}: the counts do not add up")
            settled = ledger.settle(entries, judged.mutants, report.results)
            for line in settled.stale:
                self.red("ledger", line, file)
            for result in [*settled.left, *report.of(Fate.CRASHED)]:
                rule = "crashed" if result.verdict is Fate.CRASHED else "survivor"
                mutant = result.mutant
                message = f"{result.verdict}: {mutant.function}, {mutant.operator}"
                self.red(rule, message, file, mutant.line, mutant.diff)
            argued += [f"{entry}: {entry.argument}" for entry in settled.argued.values()]
            timed_out += [
                f"{file}:{r.mutant.line} {r.mutant.before!r} to {r.mutant.after!r}"
                for r in report.of(Fate.TIMED_OUT)
            ]
        functions_known = {file: _functions(file) for file in {e.file for e in entries}}
        for line in ledger.orphans(entries, functions_known):
            self.red("ledger", line)
        self.told.note("survivors argued equivalent", argued)
        self.told.note("mutants that never ended, twice", timed_out)
        return f"{made} mutants, {killed} killed, {late} timed out, {len(argued)} argued"

    # -- the corpus and the fuzzer ----------------------------------------------------------

    def corpus(self) -> str:
        """Every committed input against its committed outcome."""
        log = self.folder / "replay.json"
        errors = self.folder / "replay.log"
        argv = [sys.executable, "-m", "ci", "replay", "--json"]
        job = Job(argv, errors, REPLAY_LIMIT, answer=log)
        run_all([job], 1, self.stop, 1)
        try:
            rows = json.loads(log.read_text(encoding="utf-8"))
        except ValueError:
            rows = None
        if rows is None or job.code not in (Exit.CLEAN, Exit.FOUND):
            if self.stop:
                return "interrupted"
            raise Untrusted(f"residue replay ended with {job.code}: {_last(errors)}")
        wrong = [row for row in rows if row["wrong"]]
        # One bug can change every outcome: what is wrong in the same way is one finding.
        alike: dict[str, list[str]] = {}
        for row in wrong:
            said = f"{row['outcome'] or 'no outcome'}: {row['wrong']}"
            alike.setdefault(said, []).append(f"corpus/{row['harness']}/{row['file']}")
        for said, names in alike.items():
            more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
            count = f"{len(names)} inputs" if len(names) > 1 else names[0]
            self.red("corpus", f"{count}: {said}", detail="\n".join([*names[:SHOWN], *more]))
        return f"{len(rows)} inputs, {len(wrong)} wrong"

    def fuzz(self) -> str:
        """A short campaign of the harnesses that reach the touched files."""
        names = harnesses_that_reach(self.change.engine)
        seconds = int(self.settings.numbers["fuzz_seconds"])
        out = self.folder / "fuzz"
        argv = [sys.executable, "-m", "ci", "campaign", "--seconds", str(seconds)]
        argv += ["--jobs", str(self.jobs), "--out", str(out)]
        for name in names:
            argv += ["--harness", name]
        log = self.folder / "fuzz.log"
        job = Job(argv, log, seconds + FUZZ_LIMIT)
        run_all([job], 1, self.stop, 1)
        if job.code == Exit.FOUND:
            said = _last(log, 1000).partition("\nfinding 1:")
            told = "".join(said[1:]).partition("new inputs in")[0] or said[0]
            detail = "\n".join(told.strip().splitlines()[: 4 * SHOWN])
            self.red("fuzz", f"see {output.shown(out)}/summary.txt", detail=detail)
        elif job.code != Exit.CLEAN and not self.stop:
            raise Untrusted(f"the campaign ended with {job.code}: {_last(log)}")
        return f"{seconds} s of {', '.join(names)}"


def _names(line: str, tests: set[str], inputs: set[str]) -> bool:
    """Whether a line of seen_by names one of the tests or inputs."""
    kind, *words = line.split(" ")
    if kind == "oracle":
        return f"{words[0]}/{words[2]}" in inputs
    return words[0].partition("[")[0] in tests or any(t.startswith(words[0] + "::") for t in tests)


def _line(plant: Plant) -> int:
    """The line that a plant edits, or the first where its text is gone."""
    try:
        source = (ROOT / plant.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return 1
    at = max(source.find(plant.text), 0)
    return source.count("\n", 0, at + len(plant.text) - len(plant.text.lstrip("\n"))) + 1


def _functions(file: str) -> set[str]:
    try:
        source = (ROOT / file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return set()
    return changes.functions_of(file, source)


def _last(log: Path, lines: int = 1) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return "\n".join(text.strip().splitlines()[-lines:]) or "nothing was said"
