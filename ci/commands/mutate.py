"""`residue mutate`: the mutants of some files, and which of them no test notices."""

import argparse
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ci import arguments, output
from ci.exits import Exit, Interrupted, Untrusted, UsageError
from ci.gate import code
from ci.mutation import catalogue, evaluation
from ci.mutation.evaluation import Asked, Judged, Settings
from ci.mutation.progress import MutationProgress
from ci.process import ROOT, Stop
from ci.progress import Progress, clock
from ci.report import hosted
from ci.wording import many, meant
from harnesses import HARNESSES
from mutants import ledger, plants, verdicts
from mutants.ledger import Settled
from mutants.settings import SUITE
from mutants.verdicts import Report, Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue mutate`."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help=f"files or folders (default: {' '.join(SUITE.mutated)})",
    )
    parser.add_argument(
        "--function", action="append", metavar="F", help="only this one, as Pool.lease (repeatable)"
    )
    parser.add_argument(
        "--shard", type=shard, default=(1, 1), metavar="K/N", help="the K-th of N parts of the work"
    )
    arguments.jobs(parser)
    arguments.json(parser, "the results")
    arguments.quiet(parser)
    parser.add_argument(
        "--kill-with",
        choices=["tests", "corpus"],
        default="tests",
        help="what may kill: the tests (default), or the committed inputs and nothing else",
    )
    parser.add_argument(
        "--catalogue",
        action="store_true",
        help="the hand-written mutants of mutants/catalogue instead, before their own witnesses",
    )
    parser.add_argument(
        "--hunt",
        type=arguments.positive,
        metavar="SECONDS",
        help="then give each survivor to the fuzzer, for as long",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="PATHs are results of the shards: merge and judge them, and run nothing",
    )
    arguments.scheduler(parser, "judge")


def shard(text: str) -> tuple[int, int]:
    """K/N with K from 1 to N."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with K from 1 to N")
    return int(match[1]), int(match[2])


def engine_files(paths: Sequence[str], root: Path = ROOT) -> list[str]:
    """The Python files that the paths name, relative to the checkout."""
    found: list[str] = []
    for path in paths:
        given = Path(path) if Path(path).is_absolute() else Path.cwd() / path
        if not given.exists():
            given = root / path
        if not given.exists():
            # By their names alone: all of them are alike in the folder.
            every = root.glob(f"{SUITE.package}/**/*.py")
            known = {file.stem: str(file.relative_to(root)) for file in every}
            near = meant(Path(path).stem, known, known.__getitem__)
            raise UsageError(f"there is no file {path}{near}")
        files = sorted(given.rglob("*.py")) if given.is_dir() else [given]
        for file in files:
            try:
                name = output.real(file).relative_to(root).as_posix()
            except ValueError:
                raise UsageError(f"{path} is not in {root.name}") from None
            if not file.is_file() or not SUITE.has(name) or file.suffix != ".py":
                raise UsageError(f"{path}: only files of {SUITE.package}/ are mutated")
            found.append(name)
    return list(dict.fromkeys(found))


def known_functions(names: Sequence[str], files: Sequence[str]) -> frozenset[str] | None:
    """The functions of the files that are asked for; UsageError for one that none of them has."""
    there = {
        name
        for file in files
        for name in code.functions(file, (ROOT / file).read_text(encoding="utf-8"))
    }
    for name in names:
        if name not in there:
            near = meant(name, there) or "; is the name as Class.method?"
            raise UsageError(f"there is no function {name} in {', '.join(files)}{near}")
    return frozenset(names) or None


def run(args: argparse.Namespace) -> int:
    """Run `residue mutate`."""
    if not args.merge:
        evaluation.check_installed()
    settings = evaluation.read_settings()
    try:
        entries = ledger.load()
    except ledger.LedgerError as error:
        raise UsageError(str(error)) from None
    if args.scheduler and (args.merge or args.catalogue or args.shard != (1, 1)):
        raise UsageError("--scheduler makes its own shards, of mutants that are to be judged")
    if args.merge:
        return _merge(args, entries, settings)
    if args.catalogue:
        return _catalogue(args)
    return _mutate(args, entries, settings)


def _mutate(args: argparse.Namespace, entries: tuple[ledger.Entry, ...], settings: Settings) -> int:
    """The mutants of the files that are named, and what is left of them."""
    files = engine_files(args.paths or SUITE.mutated)
    only = known_functions(args.function or (), files)
    out = output.make(None, "mutate")
    begun = time.monotonic()
    with Stop() as stop:
        answers = _answers(args, files, only, settings, out.root, stop)
        report = verdicts.merge_parts([answer.report for answer in answers])
        report.seconds = time.monotonic() - begun
        report.write(out.root / "results.json")
        args.json.write(report.as_data())
        mutants = [mutant for answer in answers for mutant in answer.mutants]
        settled = ledger.settle(entries, mutants, report.results)
        if args.kill_with == "corpus":
            _print_corpus(report, answers, bool(stop))
            code = int(Exit.CLEAN)
        else:
            whole = args.shard == (1, 1) and not args.function
            code = judge_and_print(report, settled, settings, whole)
        if args.hunt and not stop and settled.left:
            _hunt(args, settings, stop, out.root, settled)
    if stop:
        raise Interrupted
    if not report.due:
        raise Untrusted("there is no mutant to run: nothing of this can be mutated")
    _trust(report)
    return code


def _answers(
    args: argparse.Namespace,
    files: list[str],
    only: frozenset[str] | None,
    settings: Settings,
    folder: Path,
    stop: Stop,
) -> list[Judged]:
    """What became of each file's mutants, here or on a cluster; of fewer once interrupted."""
    corpus = HARNESSES if args.kill_with == "corpus" else None
    progress = MutationProgress(args.quiet)
    if args.scheduler:
        # Here and not above: Dask is an extra, and takes a second to import.
        from ci.cluster import mutate as cluster

        answers = cluster.evaluate(args.scheduler, files, only, corpus, folder, stop, progress)
    else:
        answers = []
        for file in files:
            if not stop:
                where = folder / file.replace("/", "-").removesuffix(".py")
                asked = Asked(file, where, args.jobs, only=only, shard=args.shard, corpus=corpus)
                answers.append(evaluation.evaluate(asked, settings, stop, progress))
    progress.end()
    return answers


def _catalogue(args: argparse.Namespace) -> int:
    """The entries of the files that are named, or all; their verdicts."""
    try:
        entries = plants.load_all()
    except plants.PlantError as error:
        raise UsageError(str(error)) from None
    if args.paths:
        files = set(engine_files(args.paths))
        entries = tuple(plant for plant in entries if plant.file in files)
    step, of = args.shard
    entries = entries[step - 1 :: of]
    out = output.make(None, "mutate")
    begun = time.monotonic()
    with Stop() as stop:
        show = _show(args.quiet)
        decided = catalogue.evaluate(entries, out.scratch, args.jobs, stop, show=show)
    for row in decided:
        if row.verdict is not Verdict.KILLED:
            print(f"{row.verdict}: {row.plant.name} ({row.plant.file}): {row.why}")
            print(f"  rule: {row.plant.rule}")
    counts = {v: sum(row.verdict is v for row in decided) for v in Verdict}
    took = clock(time.monotonic() - begun)
    print(f"{many(len(decided), 'entry', 'entries')} in {took}: ", end="")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    args.json.write([{"name": r.plant.name, "verdict": r.verdict, "why": r.why} for r in decided])
    if stop:
        raise Interrupted
    if not decided:
        raise Untrusted("the catalogue has no entry for these files")
    dead = counts[Verdict.KILLED] + counts[Verdict.TIMED_OUT]
    return Exit.CLEAN if dead == len(decided) else Exit.FOUND


def _show(quiet: bool) -> Callable[[int, int], None]:
    progress = Progress(quiet=quiet)
    return lambda done, of: progress.say(f"{done} of {of} entries")


def _trust(report: Report) -> None:
    if not report.adds_up():
        counted = sum(report.counts().values())
        raise Untrusted(f"the counts do not add up: {counted} verdicts for {report.due} mutants")
    if report.counts()[Verdict.NOT_RUN] == report.due:
        raise Untrusted("no test ran any of the mutants")


def _merge(args: argparse.Namespace, entries: tuple[ledger.Entry, ...], settings: Settings) -> int:
    if not args.paths:
        raise UsageError("--merge needs the results of the shards")
    try:
        report = verdicts.merge([verdicts.read(Path(path)) for path in args.paths])
    except verdicts.MergeError as error:
        raise UsageError(str(error)) from None
    args.json.write(report.as_data())
    mutants = [result.mutant for result in report.results]
    settled = ledger.settle(entries, mutants, report.results)
    code = judge_and_print(report, settled, settings, True)
    hosted.told("Mutation", table(report, settled))
    _trust(report)
    return code


def judge_and_print(report: Report, settled: Settled, settings: Settings, whole: bool) -> int:
    """Everything a person needs to know, and the exit code."""
    red = [f"the ledger: {line}" for line in settled.stale]
    for result in settled.left:
        print(f"\n{describe(result)}")
    for verdict in (Verdict.TIMED_OUT, Verdict.CRASHED):
        for row in report.of(verdict):
            print(f"\n{describe(row)}")
    print(f"\n{table(report, settled)}\n")
    for file, entry in report.unmutable.items():
        print(f"{file}: {entry.count} of {many(entry.statements, 'statement')}", end="")
        print(f" without mutants ({entry.percent:.0f}%)")
        for what, line, count in entry.places:
            print(f"  {count:4d}  line {line}: {what}")
    if len(settled.left) > settings.numbers["survivors"]:
        left = many(len(settled.left), "mutant")
        red.append(f"{left} that nothing kills and nobody argues")
    crashed = report.counts()[Verdict.CRASHED]
    if crashed > settings.numbers["crashed"]:
        red.append(f"{many(crashed, 'mutant')} crashed")
    for file, made in report.made.items() if whole else ():
        argued = sum(entry.file == file for entry in settled.argued.values())
        if made and 100.0 * argued / made > settings.numbers["argued_percent"]:
            red.append(
                f"{file}: {argued} of {many(made, 'mutant')} are in the ledger, which is too many"
            )
    print(f"{clock(report.seconds)}, {report.due / max(report.seconds, 0.1):.1f} mutants a second")
    for reason in red:
        print(f"RED: {reason}")
    if not red:
        print("nothing found: every mutant is killed, or argued in the ledger")
    return Exit.FOUND if red else Exit.CLEAN


def describe(result: verdicts.Result) -> str:
    """One mutant, with its diff."""
    mutant = result.mutant
    return (
        f"{result.verdict}: {mutant.file}:{mutant.line} {mutant.function} ({mutant.operator})"
        f"\n  {mutant.name}\n" + "\n".join(f"  {line}" for line in mutant.diff.splitlines())
    )


def table(report: Report, settled: Settled) -> str:
    """The counts by file and verdict; `argued` is a part of `survived` and `not run`."""
    columns = [*Verdict, "argued", "all", "score"]
    rows = [["file", *map(str, columns)]]
    files = list(report.made)
    for file in [*files, *(["all"] if len(files) > 1 else [])]:
        counts = report.counts(None if file == "all" else file)
        spared = sum(
            result.mutant.name in settled.argued
            for result in report.results
            if file in ("all", result.mutant.file)
        )
        every = sum(counts.values())
        detected = counts[Verdict.KILLED] + counts[Verdict.TIMED_OUT]
        score = f"{100.0 * detected / (every - spared):.1f}%" if every > spared else "-"
        rows.append([file, *(str(counts[v]) for v in Verdict), str(spared), str(every), score])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _print_corpus(report: Report, answers: list[Judged], interrupted: bool) -> None:
    killers: dict[str, int] = {}
    for answer in answers:
        for names in answer.killers.values():
            for name in names:
                killers[name] = killers.get(name, 0) + 1
    idle = set.intersection(*(set(answer.idle) for answer in answers)) if answers else set()
    print(f"\n{table(report, Settled())}\n")
    print("what the committed inputs kill with no other test; what they do not is in results.json")
    for name, count in sorted(killers.items(), key=lambda item: (-item[1], item[0]))[:20]:
        print(f"  {count:5d}  {name}")
    if interrupted:
        print("interrupted: which inputs kill none is not known")
        return
    print(f"{many(len(idle), 'input')} without a kill among these mutants:")
    for name in sorted(idle):
        print(f"         {name}")


def _hunt(
    args: argparse.Namespace, settings: Settings, stop: Stop, out: Path, settled: Settled
) -> None:
    """Original against mutant on the same bytes, for each survivor in turn."""
    by_file: dict[str, list[str]] = {}
    for result in settled.left:
        by_file.setdefault(result.mutant.file, []).append(result.mutant.name)
    for file, names in by_file.items():
        folder = out / f"hunt-{Path(file).stem}"
        asked = Asked(
            file, folder, 1, corpus=HARNESSES, names=frozenset(names), hunt=float(args.hunt)
        )
        print(f"hunting {many(len(names), 'survivor')} of {file}, {args.hunt} s each")
        answer = evaluation.evaluate(asked, settings, stop, lambda *_: None)
        for name in names:
            found = answer.found.get(name)
            if found is None:
                print(f"  {name}: no input told it from the original")
            else:
                print(f"  {name}: {found['harness']} {found['original']} -> {found['mutant']}")
                print(f"    residue promote {found['file']} --harness {found['harness']}")
