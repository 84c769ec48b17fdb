"""A run of the fuzzers from beginning to end: canaries, shards, merge, coverage, verdict.

Canaries come first, because a machinery that cannot find a planted bug should not take an hour to
say so. The summary is written whatever the merge and the measurement come to. A signal at any
moment ends the phase at hand and goes on with what there is; a second one leaves out the merge and
the measurement, and then every input is kept.
"""

import contextlib
import hashlib
import importlib
import secrets
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci.coverage import covered
from ci.coverage.covered import Measured, Reach
from ci.exits import Exit
from ci.fuzzing import allocation, canary, findings, floors, libfuzzer, merge, supervisor
from ci.fuzzing.allocation import Share
from ci.fuzzing.canary import Canary
from ci.fuzzing.curve import Curve
from ci.fuzzing.findings import Finding
from ci.fuzzing.merge import Merge
from ci.fuzzing.progress import FuzzingProgress
from ci.fuzzing.shard import Shard, Task
from ci.fuzzing.summary import HarnessRow, Summary
from ci.fuzzing.supervisor import Phase, Supervise
from ci.output import Output
from ci.process import ROOT, Stop, commit, run_all
from ci.wording import many
from harnesses import tally
from mutants import plants
from mutants.plants import PlantError
from mutants.settings import SUITE

# A shard's process is ended by its supervisor, and with it; this is for when neither comes to pass.
BACKSTOP = 3600.0
# Signals after which a phase is left out altogether.
LEAVES_OUT = 2


@dataclass
class Options:
    """What is to be run."""

    kind: str
    harnesses: list[str]
    seconds: float
    jobs: int
    corpus: Path = ROOT / SUITE.corpus
    seeds: Path | None = None
    """A folder of folders, one a harness, of inputs to begin from beside the committed ones."""
    weights: dict[str, float] = field(default_factory=dict)
    value_profile: str | None = None
    """The harness that has one more share, which looks at compared values too."""
    command: Callable[[str], list[str]] = libfuzzer.runner
    dictionary: Callable[[Path], None] | None = None
    supervise: Supervise = supervisor.run
    lanes: int | None = None
    """How many shards at once, where it is not `jobs`: on other machines."""
    canaries: bool = True
    measures: bool = True
    whole: bool = True
    """All harnesses are run, so that the coverage of all of them together has a floor."""


@dataclass
class Run:
    """A campaign as it goes on: its parts one after the other, and what each has found."""

    options: Options
    output: Output
    phase: Phase
    canaries: list[Canary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    new: dict[str, int] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)
    oracles: list[tuple[str, str]] = field(default_factory=list)
    """Which harness has which oracle, as the planted faults name them."""
    late: dict[str, int] = field(default_factory=dict)
    """How many of a shard's time-outs were the machine's and not the input's."""
    untrusted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False
    took: float = 0.0

    @property
    def total(self) -> Reach:
        """What the merged inputs of all harnesses reach together."""
        return covered.union(m.reach["merged"] for m in self.measured.values())

    @property
    def exit(self) -> Exit:
        """The verdict. A finding stands whatever the rest of the run is worth."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.findings:
            return Exit.FOUND
        return Exit.UNTRUSTED if self.untrusted else Exit.CLEAN


def run_campaign(options: Options, output: Output, progress: FuzzingProgress, stop: Stop) -> Run:
    """Do it all. Nothing is raised for what a harness or the fuzzer does."""
    began = time.monotonic()
    shares = allocation.shares(options.harnesses, options.weights, options.value_profile)
    run = Run(options, output, Phase(options.seconds, options.lanes or options.jobs, shares))
    _copy_seeds(run)
    if options.canaries:
        progress.say("planted faults first")
        _run_canaries(run, stop)
    if not stop:
        _fuzz(run, progress, stop)
    if stop:
        progress.say("interrupted: keeping what there is; once more leaves out the merge")
    _merge(run, progress, stop)
    for shard in run.phase.shards:
        if libfuzzer.TIMEOUT in shard.ends:
            run.late[shard.task.name] = len(findings.late(shard.task.harness, shard.artifacts))
    # After the merge, which runs every input again and saves a finding like a shard.
    for harness in options.harnesses:
        pairs = [(s.artifacts, s.log) for s in run.phase.of(harness) if s.artifacts.is_dir()]
        run.findings += findings.collect(output.findings(harness), harness, pairs)
    if options.measures:
        _measure(run, progress, stop)
    run.new = {m.harness: m.hand_over() for m in run.merges}
    run.interrupted = bool(stop)
    _judge(run)
    shutil.rmtree(output.scratch, ignore_errors=True)
    run.took = time.monotonic() - began
    return run


def _seeds(run: Run, harness: str) -> list[Path]:
    folders = (run.options.corpus / harness, run.output.seeds(harness))
    return [folder for folder in folders if folder.is_dir()]


def _copy_seeds(run: Run) -> None:
    # A copy, because merging wants every folder inside of the output folder, and because the one
    # that was given may be replaced by what comes of this run.
    for harness in run.options.harnesses:
        if run.options.seeds is not None and (run.options.seeds / harness).is_dir():
            run.notes += merge.copy_inputs(run.options.seeds / harness, run.output.seeds(harness))


def _run_canaries(run: Run, stop: Stop) -> None:
    try:
        catalogue = plants.load_all()
        run.oracles = [pair[:2] for plant in catalogue for pair in plants.oracle_witnesses(plant)]
        corpus = run.options.corpus
        run.canaries = [canary.choose(name, catalogue, corpus) for name in run.options.harnesses]
        canary.run_canaries(run.canaries, run.output.root / "canaries", run.options.jobs, stop)
    except PlantError as error:
        run.untrusted.append(f"the catalogue of planted faults is stale: {error}")
    else:
        if stop:
            # A canary whose time was cut short was not missed.
            run.canaries = [c for c in run.canaries if c.found]
        run.untrusted += [c.missed for c in run.canaries if c.missed]


def _fuzz(run: Run, progress: FuzzingProgress, stop: Stop) -> None:
    dictionary: Path | None = None
    if run.options.dictionary is not None:
        dictionary = run.output.root / "dictionary"
        run.options.dictionary(dictionary)
    # libFuzzer takes 0 for "choose one"; the seed is kept in the summary, for the little it is
    # worth while addresses are random.
    base = secrets.randbelow(2**30) + 1

    def make(share: Share, seconds: float, number: int) -> Shard:
        harness = share.harness
        name = f"{harness}-{number}{'-values' if share.value_profile else ''}"
        return Shard(
            Task(
                harness=harness,
                name=name,
                folder=run.output.shards / name,
                seeds=_seeds(run, harness),
                earlier=[shard.corpus for shard in run.phase.of(harness)],
                findings=run.output.findings(harness),
                dictionary=dictionary,
                seed=base + number * 1000,
                limit=run.options.seconds + BACKSTOP,
                command=run.options.command(harness),
                value_profile=share.value_profile,
            ),
            seconds,
        )

    curve = Curve(lambda harness: progress.finds.get(harness, 0))

    def report(phase: Phase, now: float) -> None:
        for harness in run.options.harnesses:
            folder = run.output.findings(harness)
            progress.finds[harness] = len(list(folder.glob("*.json"))) if folder.is_dir() else 0
        curve(phase, now)
        progress(phase, now)

    run.options.supervise(run.phase, make, stop, report)
    curve.end(run.phase, time.monotonic())
    run.curve = curve.points


def _merge(run: Run, progress: FuzzingProgress, stop: Stop) -> None:
    if run.phase.shards and stop.count < LEAVES_OUT:
        progress.say("merging")
    jobs = []
    for harness in run.options.harnesses:
        sources = [s.corpus for s in run.phase.of(harness) if s.corpus.is_dir()]
        if run.output.seeds(harness).is_dir():
            sources.append(run.output.seeds(harness))
        merged = run.output.merged(harness)
        m = Merge(harness, run.options.corpus / harness, sources, merged, run.output.new(harness))
        run.merges.append(m)
        log = run.output.shards / f"merge-{harness}.log"
        command = run.options.command(harness)
        merge.prepare(m, log, run.output.root, command, run.output.findings(harness))
        if m.job is not None:
            jobs.append(m.job)
    run_all(jobs, run.options.jobs, stop, LEAVES_OUT)
    for m in run.merges:
        merge.judge(m)


def _measure(run: Run, progress: FuzzingProgress, stop: Stop) -> None:
    """Measure the merged inputs; where they reach less than all inputs, keep all and say so."""
    # After a signal only what must be checked is measured: merges that could have lost something.
    wanted = [m for m in run.merges if m.found or not stop]
    jobs, results = [], {}
    if wanted and stop.count < LEAVES_OUT:
        progress.say("measuring coverage")
    for m in wanted:
        results[m.harness] = result = run.output.scratch / f"{m.harness}.json"
        log = run.output.shards / f"measure-{m.harness}.log"
        jobs.append(covered.job(m.harness, m.committed, m.merged, m.sources, result, log))
    run_all(jobs, run.options.jobs, stop, LEAVES_OUT)
    for m in wanted:
        measured = covered.read(results[m.harness])
        if measured is None:
            cut = stop.count >= LEAVES_OUT
            m.keep_all("it was interrupted" if cut else "what it reaches could not be measured")
            continue
        run.measured[m.harness] = measured
        m.add(measured.restored)
        if lost := measured.reach["merged"].lost(measured.reach["all"]):
            m.keep_all(f"it lost {many(lost, 'line or branch', 'lines and branches')}")
            measured.reach["merged"] = measured.reach["all"]


def _judge(run: Run) -> None:
    run.untrusted += run.phase.troubles
    run.notes += run.phase.notes
    for m in run.merges:
        if m.kept_all:
            run.notes.append(
                f"{m.harness}: every input was kept instead of the merge: {m.kept_all}"
            )
    for shard in run.phase.shards:
        late = run.late.get(shard.task.name, 0)
        if late:
            run.notes.append(
                f"{shard.task.name}: {many(late, 'input')} took over "
                f"{libfuzzer.INPUT_SECONDS} s on a busy "
                "machine, and less of processor time when run again"
            )
        for code in shard.ends:
            if code == libfuzzer.TIMEOUT and late:
                late -= 1
            elif code in libfuzzer.KINDS and any(
                f.harness == shard.task.harness for f in run.findings
            ):
                what = libfuzzer.KINDS[code]
                run.notes.append(f"{shard.task.name}: a process ended with a {what}")
            else:
                run.untrusted.append(
                    f"{shard.task.name}: a process ended by itself with {code}; see {shard.log}"
                )
    if run.interrupted or not run.options.measures:
        return
    done = [_done(run, harness) for harness in run.options.harnesses]
    for one in done:
        if floors.unreached(one):
            run.notes.append(
                f"{one.harness}: not reached in its time; its fuzzer had {one.cpu:.1f} s of "
                "processor time"
            )
        run.untrusted += floors.under_floor(one)
    if not any(one.executions for one in done):
        run.untrusted.append("nothing was executed")
    # A harness that has not been through its seeds has not shown them to its oracles.
    fuzzed = [h for h in run.options.harnesses if any(s.first_edges for s in run.phase.of(h))]
    run.untrusted += floors.unlooked(run.oracles, _looked(run), fuzzed)
    if run.options.whole and run.measured:
        run.untrusted += floors.coverage_under_floor(run.total)


def _looked(run: Run) -> dict[str, Counter[str]]:
    """How often each oracle looked, by harness."""
    table: dict[str, Counter[str]] = {}
    for shard in run.phase.shards:
        table.setdefault(shard.task.harness, Counter()).update(tally.read(shard.looked))
    return table


def _done(run: Run, harness: str) -> floors.Done:
    measured = run.measured.get(harness)
    shards = run.phase.of(harness)
    return floors.Done(
        harness=harness,
        executions=sum(shard.executions for shard in shards),
        cpu=sum(shard.cpu for shard in shards),
        edges=max((shard.edges for shard in shards), default=0),
        imported=measured.reach["import"] if measured else Reach(),
        merged=measured.reach["merged"] if measured else None,
        gave_up=any(shard.gave_up for shard in shards),
    )


def _files(total: Reach) -> dict[str, Any]:
    """The coverage of each file, with its digest: lines mean nothing once it has changed."""
    table = total.by_file()
    for name, row in table.items():
        with contextlib.suppress(OSError):
            row["sha256"] = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
    return table


def as_data(run: Run) -> Summary:
    """The run as the JSON summary has it."""
    # Not above: it imports the package under test, which a run begins without.
    matrix = importlib.import_module(SUITE.refusal_matrix)
    looked = _looked(run)
    harnesses: dict[str, HarnessRow] = {}
    for m in run.merges:
        shards = run.phase.of(m.harness)
        executions = sum(s.executions for s in shards)
        seconds = sum(s.elapsed(time.monotonic()) for s in shards)
        cpu = sum(s.cpu for s in shards)
        measured = run.measured.get(m.harness)
        harnesses[m.harness] = {
            "executions": executions,
            "seconds": round(seconds, 1),
            "cpu": round(cpu, 1),
            "rate": round(executions / cpu, 1) if cpu else 0.0,
            "edges": max((s.edges for s in shards), default=0),
            "gained": run.phase.gained(m.harness),
            "turns": sum(begun.shard in shards for begun in run.phase.turns),
            "looked": {name: count for name, count in looked.get(m.harness, {}).items() if count},
            "committed": len(merge.files(m.committed)),
            "seeds": (seeds := len(merge.files(run.output.seeds(m.harness)))),
            "found": m.found - seeds,
            "new": run.new.get(m.harness, 0),
            "new_folder": str(m.new),
            "merged_folder": str(m.merged),
            "kept_all": m.kept_all,
            "findings": sum(f.harness == m.harness for f in run.findings),
            "coverage": measured.reach["merged"].as_data() if measured else {},
            "committed_coverage": measured.reach["committed"].as_data() if measured else {},
            "corpus": measured.corpus if measured else {},
            "shards": [
                {
                    "name": s.task.name,
                    "seed": s.task.seed,
                    "starts": s.starts,
                    "ends": s.ends,
                    "executions": s.executions,
                    "gave_up": s.gave_up,
                    "value_profile": s.task.value_profile,
                }
                for s in shards
            ],
        }
    total = run.total
    own = {oracle for harness, oracle in run.oracles if harness in run.options.harnesses}
    every: Counter[str] = Counter()
    for counts in looked.values():
        every.update(counts)
    return {
        "kind": run.options.kind,
        "commit": commit(),
        "exit": int(run.exit),
        "python": sys.version.split()[0],
        "interrupted": run.interrupted,
        "asked_seconds": run.options.seconds,
        "fuzzing_seconds": round(run.phase.took, 1),
        "seconds": round(run.took, 1),
        "jobs": run.options.lanes or run.options.jobs,
        "harnesses": harnesses,
        "coverage": total.as_data() if run.measured else {},
        "files": _files(total),
        "curve": run.curve,
        "refusals": matrix.coverage(m.refusals for m in run.measured.values())
        if run.measured
        else {},
        "oracles": {name: n for name, n in every.items() if n or name in own},
        "canaries": [
            {"harness": c.harness, "plant": c.plant.name if c.plant else "", "found": c.found}
            for c in run.canaries
        ],
        "untrusted": run.untrusted,
        "notes": run.notes,
        "findings": findings.as_data(run.findings),
    }
