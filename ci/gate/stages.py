"""The stages of the gate: what each of them looks at, and what is red there."""

import json
import sys
from pathlib import Path

from ci import output
from ci.coverage.harness_selection import harnesses_that_reach
from ci.exits import Exit, Untrusted
from ci.gate import code, diff, judges, parts
from ci.gate.report import GateFinding
from ci.gate.run import Run
from ci.mutation import catalogue, evaluation
from ci.mutation.evaluation import Asked
from ci.mutation.progress import MutationProgress
from ci.process import Job, run_all
from ci.wording import many
from harnesses import HARNESSES
from mutants import ledger, plants
from mutants.ledger import Entry
from mutants.plants import Plant
from mutants.verdicts import Verdict

REPLAY_LIMIT = 600.0
# What a campaign does after fuzzing: merging and measuring.
FUZZ_LIMIT = 240.0
# Of a list that one bug can make as long as the corpus.
SHOWN = 10


class Gate(Run):
    """The stages, each a method that says in a line what it did."""

    # -- what the change is made of, and what it says of itself ------------------------------

    def reading(self) -> str:
        """What is seen without running anything."""
        change = self.change
        for message in change.outside:
            self.add_finding("outside", message)
        for message in change.hiding:
            self.add_question("outside", f"{message}, which can hide code from all that judges it")
        for name in change.shared:
            self.add_question(
                "judge", f"{name}: what tests share, or what runs them, is another", name
            )
        for message, lines in (
            ("inputs that are to end otherwise", change.outcomes),
            ("inputs deleted", change.deleted_inputs),
            ("inputs with other bytes under the same name", change.altered_inputs),
        ):
            if lines:
                self.add_question("judge", f"{len(lines)} {message}", detail="\n".join(lines))
        was = judges.catalogue_before(change, self.root)
        _, asked, told = judges.rewritten(was, self.catalogue_now(), self.root)
        for message in asked:
            self.add_question("judge", message)
        self.report.note("entries of the catalogue rewritten with their code", told)
        return many(len(change.files), "file")

    def catalogue_now(self) -> tuple[Plant, ...]:
        """The entries of the change."""
        return plants.load_all(self.root / judges.CATALOGUE)

    # -- the catalogue ----------------------------------------------------------------------

    def entries(self) -> list[Plant]:
        """The catalogue entries that the change concerns."""
        change = self.change
        harnesses = {Path(name).stem for name in change.files if name.startswith("harnesses/")}
        tests = change.changed_tests | set(change.deleted_tests)
        inputs = change.changed_inputs | set(change.deleted_inputs)

        def concerned(plant: Plant) -> bool:
            return (
                diff.concerns(change, plant.file, plant.text, self.root)
                or plant.name in change.changed_plants
                or any(_names(line, tests, inputs) for line in plant.detected_by)
                or any(_of(line, harnesses) for line in plant.detected_by)
            )

        return [plant for plant in self.catalogue_now() if concerned(plant)]

    def catalogue(self) -> str:
        """Run them, and say of each that is no kill what it decided and who saw it."""
        now = self.entries()
        was = judges.catalogue_before(self.change, self.root)
        again, _, _ = judges.rewritten(was, self.catalogue_now(), self.root)
        entries = [*now, *again]
        where = self.folder / "catalogue"
        decided = catalogue.evaluate(entries, where, self.jobs, self.stop, self.root)
        for at, row in enumerate(decided):
            # What has lost its witness by being rewritten asks for a person's word already.
            spared = Verdict.NOT_RUN if at >= len(now) else Verdict.KILLED
            if row.verdict not in (Verdict.KILLED, Verdict.TIMED_OUT, spared):
                plant = row.plant
                detail = f"rule: {plant.rule}\nseen by: " + "\n         ".join(plant.detected_by)
                message = f"{plant.name}: {row.verdict}, {row.why}"
                self.add_finding("decision", message, plant.file, _line(plant, self.root), detail)
        killed = sum(row.verdict is Verdict.KILLED for row in decided)
        late = sum(row.verdict is Verdict.TIMED_OUT for row in decided)
        return f"{many(len(entries), 'entry', 'entries')}, {killed} killed, {late} timed out"

    # -- mutants ----------------------------------------------------------------------------

    def mutants(self) -> str:
        """The mutants of the changed functions."""
        entries = self.ledger
        made = killed = late = argued = 0
        timed_out: list[str] = []
        progress = MutationProgress(self.quiet)
        for file, functions in sorted(self.change.functions.items()):
            if not functions or self.stop:
                continue
            self.unmutable(file, functions)
            where = self.folder / "mutants" / file.replace("/", "-").removesuffix(".py")
            asked = Asked(file, where, self.jobs, functions, unchanged=True, root=self.root)
            try:
                judged = evaluation.evaluate(asked, self.settings, self.stop, progress)
            except (evaluation.NotClean, evaluation.NothingRuns) as error:
                self.add_finding("tests", str(error), file)
                continue
            finally:
                progress.end()
            report = judged.report
            counts = report.counts()
            made, killed = made + report.due, killed + counts[Verdict.KILLED]
            late += counts[Verdict.TIMED_OUT]
            if not report.adds_up() and not self.stop:
                raise Untrusted(f"{file}: the counts do not add up")
            settled = ledger.settle(entries, judged.mutants, report.results)
            for line in settled.stale:
                self.add_finding("ledger", line, file)
            for result in [*settled.left, *report.of(Verdict.CRASHED)]:
                rule = "crashed" if result.verdict is Verdict.CRASHED else "survivor"
                mutant = result.mutant
                message = f"{result.verdict}: {mutant.function}, {mutant.operator}"
                self.add_finding(rule, message, file, mutant.line, mutant.diff)
            argued += len(settled.argued)
            for entry in dict.fromkeys(settled.argued.values()):
                self.argument(entry)
            timed_out += [
                f"{file}:{r.mutant.line} {r.mutant.before!r} to {r.mutant.after!r}"
                for r in report.of(Verdict.TIMED_OUT)
            ]
        self.report.note("mutants that never ended, twice", timed_out)
        return f"{many(made, 'mutant')}, {killed} killed, {late} timed out, {argued} argued"

    def unmutable(self, file: str, functions: frozenset[str]) -> None:
        """The changed functions of which nothing, or not all, can be mutated."""
        from mutants import survey

        source = (self.root / file).read_text(encoding="utf-8")
        made = {mutant.function for mutant in survey.mutate(file, source, functions)[1]}
        for name, function in code.functions(file, source).items():
            if name not in functions or function.empty or (name in made and not function.inner):
                continue
            if not self.argued(Entry(file, f"def {name}", "", parts.plain(function.text), "")):
                what = f"{', '.join(function.inner)} in it" if name in made else "it"
                message = f"{name} changed, and no mutant can be made of {what}"
                detail = f'{function.text}\nin the ledger: function = "def {name}"'
                self.add_finding("unmutable", message, file, function.line, detail)

    def orphans(self) -> None:
        """Entries of the ledger for code that is not there any more."""
        known = {file: _functions(file, self.root) for file in {e.file for e in self.ledger}}
        for line in ledger.orphans([e for e in self.ledger if " " not in e.function], known):
            self.add_finding("ledger", line)
        for entry in self.ledger:
            path = self.root / entry.file
            source = path.read_text(encoding="utf-8") if path.is_file() else ""
            if " " in entry.function and entry.after not in parts.plain(source):
                self.add_finding("ledger", f"stale: {entry.file} has no such code: {entry}")

    # -- the corpus and the fuzzer ----------------------------------------------------------

    def corpus(self) -> str:
        """Every committed input against its committed outcome."""
        log = self.folder / "replay.json"
        errors = self.folder / "replay.log"
        argv = [sys.executable, "-m", "ci", "replay", "--json", "-"]
        job = Job(argv, errors, REPLAY_LIMIT, cwd=self.root, answer=log)
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
            count = many(len(names), "input") if len(names) > 1 else names[0]
            self.add_finding(
                "corpus", f"{count}: {said}", detail="\n".join([*names[:SHOWN], *more])
            )
        return f"{many(len(rows), 'input')}, {len(wrong)} wrong"

    def fuzz(self) -> str:
        """A short campaign of the harnesses that reach the touched files."""
        names = harnesses_that_reach(self.change.sources, self.root)
        seconds = int(self.settings.numbers["fuzz_seconds"])
        out = self.folder / "fuzz"
        argv = [sys.executable, "-m", "ci", "campaign", "--seconds", str(seconds)]
        argv += ["--jobs", str(self.jobs), "--out", str(out)]
        for name in names:
            argv += ["--harness", name]
        log = self.folder / "fuzz.log"
        job = Job(argv, log, seconds + FUZZ_LIMIT, cwd=self.root)
        run_all([job], 1, self.stop, 1)
        if job.code == Exit.FOUND:
            said = _last(log, 1000).partition("\nfinding 1:")
            told = "".join(said[1:]).partition("new inputs in")[0] or said[0]
            detail = "\n".join(told.strip().splitlines()[: 4 * SHOWN])
            self.add_finding("fuzz", f"see {output.shown(out)}/summary.txt", detail=detail)
        elif job.code != Exit.CLEAN and not self.stop:
            raise Untrusted(f"the campaign ended with {job.code}: {_last(log)}")
        return f"{seconds} s of {', '.join(names)}"

    # -- another gate -------------------------------------------------------------------------

    def before(self) -> str:
        """The merge base's gate, on the change."""
        tree = self.folder / "before" / "tree"
        judges.tree(self.change, tree, self.root)
        return self.other("the merge base's gate", tree.parent, tree)

    def own(self) -> str:
        """The change's own gate, alone."""
        folder = self.folder / "own"
        folder.mkdir(parents=True)
        return self.other("the change's own gate", folder, self.root, "--alone")

    def other(self, whose: str, folder: Path, tree: Path, *more: str) -> str:
        """Run another gate; what it found and this one did not is found."""
        job = judges.job(self.change, self.jobs, folder, tree, *more)
        run_all([job], 1, self.stop, 1)
        if self.stop:
            return "interrupted"
        try:
            data = judges.found(job, folder)
        except Untrusted as error:
            raise Untrusted(f"{whose} {error}") from None
        known = {(f.rule, f.message, f.file) for f in self.report.findings}
        for row in data["findings"]:
            if (row["rule"], row["message"], row["file"]) not in known:
                self.report.findings.append(
                    GateFinding(**{**row, "message": f"{whose}: {row['message']}"})
                )
        self.report.untrusted += [f"{whose}: {reason}" for reason in data["untrusted"]]
        return f"{whose}: {len(data['findings'])} red, see {output.shown(folder / 'out')}"


def _names(line: str, tests: set[str], inputs: set[str]) -> bool:
    """Whether a line of detected_by names one of the tests or inputs."""
    kind, *words = line.split(" ")
    if kind == "oracle":
        return f"{words[0]}/{words[2]}" in inputs
    return kind == "test" and _is_one(words[0], tests)


def _is_one(node: str, tests: set[str]) -> bool:
    """Whether a node of pytest is one of the tests, or a file with one of them."""
    return node.partition("[")[0] in tests or any(t.startswith(f"{node}::") for t in tests)


def _of(line: str, harnesses: set[str]) -> bool:
    """Whether a line of detected_by is an oracle of one of these harnesses, or one of them is a
    module that harnesses share."""
    kind, *words = line.split(" ")
    return kind != "test" and (words[0] in harnesses or bool(harnesses - set(HARNESSES)))


def _line(plant: Plant, root: Path) -> int:
    """The line that a plant edits, or the first where its text is gone."""
    try:
        source = (root / plant.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return 1
    at = max(source.find(plant.text), 0)
    return source.count("\n", 0, at + len(plant.text) - len(plant.text.lstrip("\n"))) + 1


def _functions(file: str, root: Path) -> set[str]:
    try:
        source = (root / file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return set()
    return diff.functions_of(file, source)


def _last(log: Path, lines: int = 1) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return "\n".join(text.strip().splitlines()[-lines:]) or "nothing was said"
