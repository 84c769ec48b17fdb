"""Sets of lines and branches, the floors over them, and the process that measures."""

import subprocess
import sys

import pytest

from ci.coverage import covered
from ci.coverage.covered import Reach
from ci.fuzzing.floors import Done, coverage_under_floor, under_floor, unlooked, unreached
from ci.process import ROOT, Stop, run_all
from tests.tools import PATIENCE


def made(lines, branches, of=10):
    names = [("engine/a.py", str(n)) for n in range(of)]
    return Reach(
        frozenset(names[:lines]), frozenset(names), frozenset(names[:branches]), frozenset(names)
    )


def test_the_union_counts_a_line_once():
    total = covered.union([made(3, 1), made(5, 2)])
    assert (len(total.lines), len(total.all_lines), total.line_percent) == (5, 10, 50.0)
    assert total.lines == made(5, 2).lines


def test_a_file_has_its_counts_and_what_it_missed():
    arcs = {("engine/a.py", "4", "-1"), ("engine/a.py", "4", "5"), ("engine/a.py", "10", "11")}
    lines = made(3, 0)
    total = Reach(lines.lines, lines.all_lines, frozenset(sorted(arcs)[:1]), frozenset(arcs))
    assert total.by_file() == {
        "engine/a.py": {
            "lines": 3,
            "all_lines": 10,
            "branches": 1,
            "all_branches": 3,
            "missed_lines": "3-9",
            "missed_branches": "4>-1 4>5",
        }
    }
    assert covered.ranges([9, 3, 5, 4, 3]) == "3-5 9" and covered.ranges([]) == ""


def test_what_is_lost_is_counted_one_way():
    assert made(3, 1).lost(made(5, 2)) == 3
    assert made(5, 2).lost(made(3, 1)) == 0


def test_nothing_of_nothing_is_no_coverage():
    assert Reach().line_percent == 0.0
    assert coverage_under_floor(Reach())


def done(**changes):
    usual = {
        "harness": "hello",
        "executions": 100_000,
        "cpu": 30.0,
        "edges": 500,
        "imported": made(2, 0),
        "merged": made(8, 6),
        "gave_up": False,
    }
    return Done(**{**usual, **changes})


def test_an_ordinary_run_is_over_every_floor():
    assert under_floor(done()) == []
    assert coverage_under_floor(made(8, 6)) == []


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"executions": 0}, "nothing was executed"),
        ({"executions": 40}, "fewer than"),
        ({"gave_up": True}, "given up"),
        ({"edges": 40}, "not instrumented"),
        ({"merged": None}, "could not be measured"),
        ({"merged": made(2, 0)}, "nothing that its import does not"),
    ],
)
def test_each_floor_can_be_missed(changes, says):
    (why,) = under_floor(done(**changes))
    assert why.startswith("hello: ") and says in why


def test_what_had_no_time_to_begin_is_not_broken_and_what_had_it_is():
    early = done(executions=0, cpu=1.5, edges=0, merged=None)
    assert unreached(early) and under_floor(early) == []
    given_up = done(executions=0, cpu=1.5, gave_up=True)
    assert not unreached(given_up) and len(under_floor(given_up)) == 2
    assert not unreached(done(executions=0)) and not unreached(done(cpu=0.5))


def test_a_busy_machine_has_the_same_floors():
    """A minute on the wall of which the fuzzer had three seconds."""
    assert under_floor(done(executions=50, cpu=3.0)) == []


def test_an_oracle_that_never_looked_condemns_the_run_of_a_harness_that_has_it():
    pairs = [("hello", "work"), ("server", "work"), ("server", "memory"), ("pool", "areas")]
    counts = {"hello": {"work": 3}, "server": {"work": 0, "memory": 0}}
    assert unlooked(pairs, counts, ["hello", "server"]) == [
        "the oracle memory never looked at an input"
    ]
    assert len(unlooked(pairs, counts, ["server"])) == 2
    assert unlooked(pairs, {**counts, "server": {"memory": 1}}, ["hello", "server"]) == []


@pytest.mark.parametrize("lines, branches", [(4, 9), (9, 2)])
def test_lines_and_branches_have_a_floor_each(lines, branches):
    assert len(coverage_under_floor(made(lines, branches))) == 1


MEASURE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ci.coverage import measure
class NoWatch:
    def of(self, harness, run, data):
        try:
            return run(data), {("state", "message", "tag")}
        except ValueError:
            return None, set()
measure.ROOT = Path(sys.argv[1])
measure.watch = NoWatch
measure.main(sys.argv[2:])
"""

ENGINE = """
def judge(data):
    if data == b"a":
        return "a"
    if data == b"b":
        return "b"
    raise ValueError("neither")
"""


def test_a_process_measures_what_each_group_reaches_and_restores_what_the_merge_lost(tmp_path):
    """Over a tree of its own: three inputs, of which a merge kept the committed one."""
    for name, text in (("engine", ENGINE), ("harnesses", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / "harnesses" / "tiny.py").write_text("import engine\nrun = engine.judge\n")
    for folder, inputs in (("committed", "a"), ("merged", "a"), ("shard", "abc")):
        (tmp_path / folder).mkdir()
        for letter in inputs:
            (tmp_path / folder / letter).write_bytes(letter.encode())
    folders = [str(tmp_path / name) for name in ("committed", "merged", "shard")]
    result = tmp_path / "result.json"
    subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), str(result), "tiny", *folders],
        check=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    measured = covered.read(result)
    got = {group: len(r.lines) for group, r in measured.reach.items()}
    # Import: the def. "a": two lines more. "b": two lines beyond that; "c": one.
    assert got == {"import": 1, "committed": 3, "merged": 6, "all": 6}
    assert sorted(file.name for file in measured.restored) == ["b", "c"]
    assert measured.reach["merged"].lost(measured.reach["all"]) == 0
    # "a" and "b" end with an outcome and reach a cell; "c" raises.
    (cell,) = measured.refusals
    assert (cell["inputs"], cell["committed"], cell["witness"]) == (2, 1, "tiny/a")
    corpus = measured.corpus
    assert (corpus["inputs"], corpus["committed"], corpus["bytes"]) == (3, 1, 3)
    assert corpus["outcomes"] == {"a": 1, "b": 1, "finding": 1}
    assert corpus["sizes"][0] == {"up_to": 16, "inputs": 3} and len(corpus["new"]) == 2


def test_a_measurement_that_fails_is_none(tmp_path):
    result = tmp_path / "result.json"
    job = covered.job("no_such_harness", tmp_path, tmp_path, [], result, tmp_path / "log")
    run_all([job], 1, Stop(), stops_at=2)
    assert job.code == 1 and covered.read(result) is None
