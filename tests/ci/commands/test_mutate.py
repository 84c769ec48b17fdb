"""Whole runs over a small engine: every verdict, the checks that come first, shards, the corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.commands import mutate
from ci.exits import Exit, Untrusted, UsageError
from ci.mutation import evaluation
from ci.mutation.evaluation import Asked, Judged
from ci.process import ROOT, Stop
from mutants import ledger, loop, verdicts
from mutants.ledger import Settled
from mutants.verdicts import MergeError, Mutant, Report, Result, Verdict
from tests.mutants.small_tree import ENGINE, SETTINGS, TESTS, make


def judge(root: Path, folder: Path, **asked: object) -> Judged:
    given = Asked("engine/tiny.py", folder, 2, root=root, **asked)  # type: ignore[arg-type]
    with Stop() as stop:
        return evaluation.evaluate(given, SETTINGS, stop, lambda *_: None)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    root = make(tmp_path_factory.mktemp("tree"))
    return judge(root, tmp_path_factory.mktemp("run") / "one")


def verdict_of(judged: Judged, function: str, after: str) -> Verdict:
    (found,) = [
        result.verdict
        for result in judged.report.results
        if result.mutant.function == function and result.mutant.after == after
    ]
    return found


@pytest.mark.parametrize(
    ("function", "after", "verdict"),
    [
        ("double", "return x - x", Verdict.KILLED),
        ("double", "return None", Verdict.KILLED),
        ("slack", "return x >= 3", Verdict.SURVIVED),
        ("count_down", "pass", Verdict.TIMED_OUT),
        ("guarded", "if True:", Verdict.CRASHED),
        ("nobody_runs", "return None", Verdict.NOT_RUN),
    ],
)
def test_the_five_verdicts_are_told_apart(
    function: str, after: str, verdict: Verdict, judged: Judged
) -> None:
    assert verdict_of(judged, function, after) is verdict


def test_every_mutant_has_one_verdict_and_a_kill_names_its_test(judged: Judged) -> None:
    report = judged.report
    assert report.adds_up() and report.due == len(judged.mutants) == 20
    assert sum(report.counts().values()) == report.due
    for result in report.results:
        assert bool(result.by) is (result.verdict is Verdict.KILLED)
    assert {r.by for r in report.of(Verdict.KILLED) if r.mutant.function == "double"} == {
        "tests/engine/test_tiny.py::test_double"
    }


def test_what_gets_no_mutants_comes_with_the_report(judged: Judged) -> None:
    entry = judged.report.unmutable["engine/tiny.py"]
    assert [what for what, _, _ in entry.places] == ["the module's own statements and tables"]
    assert entry.count == 2


def test_the_copy_is_taken_away_and_the_tree_is_as_it_was(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    judge(root, tmp_path / "run", only=frozenset({"double"}))
    assert not (tmp_path / "run" / "tree").exists()
    assert (root / "engine" / "tiny.py").read_text() == ENGINE


def test_a_test_that_fails_with_no_mutant_is_no_run(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    test = root / "tests" / "engine" / "test_tiny.py"
    test.write_text(TESTS.replace("double(3) == 6", "double(3) == 7"))
    with pytest.raises(evaluation.NotClean, match="test_double fails with no mutant"):
        judge(root, tmp_path / "run", only=frozenset({"double"}))


def test_a_test_that_cannot_run_twice_is_no_run(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    test = root / "tests" / "engine" / "test_tiny.py"
    test.write_text(
        TESTS
        + "\n\nSEEN = []\n\n\ndef test_once():\n    SEEN.append(1)\n    assert len(SEEN) == 1\n"
    )
    with pytest.raises(Untrusted, match="the second time: killed"):
        judge(root, tmp_path / "run", only=frozenset({"double"}))


def test_tests_that_swallow_the_planted_mutant_are_no_run(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    (root / "tests" / "engine" / "test_tiny.py").write_text(
        "from contextlib import suppress\n\nfrom engine.tiny import double\n\n\n"
        "def test_double():\n    with suppress(Exception):\n        assert double(3) == 6\n"
    )
    with pytest.raises(Untrusted, match=r"planted in .*double was not killed: survived"):
        judge(root, tmp_path / "run", only=frozenset({"double"}))


def test_a_run_in_which_no_test_runs_anything_is_no_run(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    with pytest.raises(Untrusted, match="no test runs any function"):
        judge(root, tmp_path / "run", only=frozenset({"nobody_runs"}))
    (root / "tests" / "engine" / "test_tiny.py").write_text("")
    with pytest.raises(Untrusted, match=r"there is no test to run|collected nothing"):
        judge(root, tmp_path / "again", only=frozenset({"double"}))


def test_another_copy_of_the_engine_is_noticed(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    other = tmp_path / "elsewhere" / "tiny.py"
    other.parent.mkdir()
    other.write_text(ENGINE)
    (root / "engine" / "__init__.py").write_text(f"__path__ = [{str(other.parent)!r}]\n")
    with pytest.raises(Untrusted, match="another copy was imported"):
        judge(root, tmp_path / "run", only=frozenset({"double"}))


def test_shards_are_parts_of_the_whole_and_merge_to_it(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    only = frozenset({"double", "slack"})
    parts = []
    for step in (1, 2):
        part = judge(root, tmp_path / f"run-{step}", only=only, shard=(step, 2))
        part.report.write(tmp_path / f"part-{step}.json")
        parts.append(verdicts.read(tmp_path / f"part-{step}.json"))
    merged = verdicts.merge(parts)
    assert merged.adds_up() and merged.due == sum(part.due for part in parts)
    assert {r.mutant.name for r in merged.results} == {m.name for m in part.mutants}
    assert not verdicts.merge(parts[:1]).adds_up()
    with pytest.raises(MergeError, match="twice"):
        verdicts.merge([parts[0], parts[0]])
    parts[1].made["engine/tiny.py"] += 1
    with pytest.raises(MergeError, match="mutants here"):
        verdicts.merge(parts)


def test_by_corpus_the_inputs_alone_kill_and_idle_ones_are_named(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    only = frozenset({"double", "slack", "count_down"})
    judged = judge(root, tmp_path / "run", only=only, corpus=("tiny",))
    # No input counts down; the tests would have.
    assert verdict_of(judged, "count_down", "return None") is Verdict.NOT_RUN
    assert verdict_of(judged, "double", "return x - x") is Verdict.KILLED
    assert set(judged.killers[judged.report.of(Verdict.KILLED)[0].mutant.name]) <= {
        "tiny/empty",
        "tiny/long",
    }
    assert judged.idle == []


def test_mutants_that_nothing_runs_are_judged_while_no_other_is() -> None:
    class Idle:
        def __init__(self) -> None:
            self.names = ["a check"]

        def run(self, name: str, following: str | None) -> str:
            return ""

    told: list[loop.Judged] = []
    names = ["engine.tiny.x_slack__mutmut_1", "engine.tiny.x_slack__mutmut_2"]
    loop.Loop(Idle(), 2, loop.Limits()).judge(names, told.append)
    assert told == [loop.Judged(name, Verdict.NOT_RUN) for name in names]


def test_a_driver_that_breaks_is_quoted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Traceback (most recent call last):\n  ...\nValueError: of the driver\n")
    asked = Asked("engine/tiny.py", tmp_path, 1)
    with pytest.raises(Untrusted, match="before it was done: ValueError: of the driver; its log"):
        evaluation._read(asked, Judged(Report(), ()), [{"due": 1}], Stop(), log)


def test_a_hunt_finds_the_input_that_tells_a_survivor(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    judged = judge(root, tmp_path / "run", only=frozenset({"slack"}), corpus=("tiny",))
    (name,) = [m.name for m in judged.mutants if m.after == "return x >= 3"]
    hunted = judge(
        root,
        tmp_path / "hunt",
        only=frozenset({"slack"}),
        corpus=("tiny",),
        names=frozenset({name}),
        hunt=20.0,
    )
    found = hunted.found[name]
    assert found is not None and found["harness"] == "tiny"
    assert len(Path(found["file"]).read_bytes()) == 3
    assert "verdict=False" in found["original"] and "verdict=True" in found["mutant"]


@pytest.mark.parametrize("left", [True, False])
def test_what_a_deleted_test_kills_is_given_to_those_that_are_left(
    left: bool, tmp_path: Path
) -> None:
    root = make(tmp_path / "tree")
    test = root / "tests" / "engine" / "test_tiny.py"
    if not left:
        test.write_text(TESTS.replace("def test_slack", "def no_test_slack"))
    aside = "tests/engine/test_tiny_aside.py"
    judged = judge(
        root, tmp_path / "run", extra={aside: TESTS}, last=(f"{aside}::test_slack",), seconds=60.0
    )
    # Only what the deleted test runs is judged.
    assert {result.mutant.function for result in judged.report.results} == {"slack"}
    assert judged.report.adds_up()
    kills = [names for names in judged.killers.values() if names]
    ours = [f"{aside}::test_slack"]
    assert kills == [[*ours, "tests/engine/test_tiny.py::test_slack"] if left else ours] * len(
        kills
    )
    assert kills


# -- what is printed, and how it ends ----------------------------------------------------------


def report_of(*fates: Verdict) -> Report:
    results = [
        Result(Mutant(f"m{at}", "engine/a.py", "f", at, "op", "a", "b", "-a\n+b"), verdict)
        for at, verdict in enumerate(fates)
    ]
    return Report(results, {"engine/a.py": len(fates)}, len(fates))


NUMBERS = evaluation.Settings({}, (), {"survivors": 0, "crashed": 0, "argued_percent": 3})


@pytest.mark.parametrize(
    ("fates", "code"),
    [
        ([Verdict.KILLED], Exit.CLEAN),
        ([Verdict.KILLED, Verdict.TIMED_OUT], Exit.CLEAN),
        ([Verdict.KILLED, Verdict.SURVIVED], Exit.FOUND),
        ([Verdict.KILLED, Verdict.NOT_RUN], Exit.FOUND),
        ([Verdict.KILLED, Verdict.CRASHED], Exit.FOUND),
    ],
)
def test_what_is_red(fates: list[Verdict], code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(*fates)
    settled = ledger.settle([], [r.mutant for r in report.results], report.results)
    assert mutate.judge_and_print(report, settled, NUMBERS, True) == code
    said = capsys.readouterr().out
    assert ("RED" in said) is (code is Exit.FOUND)
    # A kill is not shown; everything else is, with its diff.
    assert said.count("  -a\n  +b") == sum(fate is not Verdict.KILLED for fate in fates)


def test_too_many_arguments_are_red(capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(*[Verdict.KILLED] * 20, Verdict.SURVIVED)
    entry = ledger.Entry("engine/a.py", "f", "a", "b", "never")
    settled = Settled(argued={report.results[-1].mutant.name: entry})
    assert mutate.judge_and_print(report, settled, NUMBERS, True) == Exit.FOUND
    assert mutate.judge_and_print(report, settled, NUMBERS, False) == Exit.CLEAN
    assert "1 of 21 mutants are in the ledger" in capsys.readouterr().out


def test_the_score_leaves_the_argued_out() -> None:
    report = report_of(Verdict.KILLED, Verdict.TIMED_OUT, Verdict.SURVIVED, Verdict.SURVIVED)
    entry = ledger.Entry("engine/a.py", "f", "a", "b", "never")
    assert "50.0%" in mutate.table(report, Settled())
    assert "66.7%" in mutate.table(report, Settled(argued={"m3": entry}))


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "-1/2", "1/2/3", "a/b"])
def test_a_shard_is_k_of_n(text: str) -> None:
    assert mutate.shard("2/3") == (2, 3)
    with pytest.raises(Exception, match="K/N"):
        mutate.shard(text)


@pytest.mark.parametrize("path", ["engine/nothing.py", "tests", "/etc", "ci/commands/mutate.py"])
def test_only_files_of_the_engine_are_mutated(path: str) -> None:
    assert mutate.engine_files(["engine/pool.py", "engine/pool.py"]) == ["engine/pool.py"]
    assert len(mutate.engine_files(["engine"])) > 20
    with pytest.raises(UsageError):
        mutate.engine_files([path])


def test_results_that_are_none_are_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"made": {}}))
    with pytest.raises(MergeError):
        verdicts.read(tmp_path / "x.json")


def test_every_file_of_the_engine_with_logic_has_a_row_of_tests() -> None:
    rows = set(evaluation.read_settings().tests)
    plain = {
        "engine/__init__.py",
        "engine/codepoints.py",
        "engine/events.py",
        "engine/x509/__init__.py",
    }
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "engine").rglob("*.py")}
    assert rows <= here
    assert here - rows == plain
