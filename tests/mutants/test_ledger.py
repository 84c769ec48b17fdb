"""The ledger: an argument covers the code it was made for, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.gate.diff import functions_of
from mutants import ledger
from mutants.ledger import Entry, LedgerError
from mutants.settings import ROOT
from mutants.verdicts import Mutant, Result, Verdict

TEXT = """
[[equivalent]]
file = "engine/a.py"
function = "f"
before = "x < 3"
after = "x <= 3"
argument = "x is never 3."
"""


def mutant(number: int = 1, after: str = "x <= 3", function: str = "f") -> Mutant:
    name = f"engine.a.x_{function}__mutmut_{number}"
    return Mutant(name, "engine/a.py", function, 7, "swap_op", "x < 3", after, "-x < 3\n+x <= 3")


ENTRY = Entry("engine/a.py", "f", "x < 3", "x <= 3", "x is never 3.")


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "ledger.toml").write_text(TEXT)
    assert ledger.load(tmp_path / "ledger.toml") == (ENTRY,)
    assert ledger.load(tmp_path / "none.toml") == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TEXT.replace('argument = "x is never 3."', ""), "missing"),
        (TEXT.replace('"x is never 3."', '""'), "missing"),
        (TEXT + 'why = "x"\n', "unknown"),
        (TEXT + "count = 0\n", "count 0"),
        (TEXT + TEXT, "twice"),
        ("[[equivalent]", "ledger.toml"),
    ],
)
def test_an_entry_that_is_not_whole_is_an_error(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "ledger.toml").write_text(text)
    with pytest.raises(LedgerError, match=told):
        ledger.load(tmp_path / "ledger.toml")


def test_a_survivor_is_argued_by_its_code_and_not_by_its_number() -> None:
    for number in (1, 9):
        made = [mutant(number), mutant(5, "x > 3")]
        results = [Result(m, Verdict.SURVIVED) for m in made]
        settled = ledger.settle([ENTRY], made, results)
        assert settled.argued == {made[0].name: ENTRY} and settled.stale == []
        assert settled.left == [results[1]]


def test_a_mutant_that_no_test_runs_is_left_like_a_survivor() -> None:
    made = [mutant(1, "x > 3")]
    results = [Result(made[0], Verdict.NOT_RUN)]
    assert ledger.settle([], made, results).left == results


def test_an_entry_that_matches_nothing_any_more_is_stale() -> None:
    settled = ledger.settle([ENTRY], [mutant(1, "x > 3")], [])
    assert len(settled.stale) == 1 and settled.stale[0].startswith("stale: 0 mutants match")


def test_an_entry_that_matches_more_than_it_was_made_for_is_stale() -> None:
    made = [mutant(1), mutant(2)]
    settled = ledger.settle([ENTRY], made, [Result(m, Verdict.SURVIVED) for m in made])
    assert settled.stale and not settled.argued
    twice = Entry(*ENTRY.key, ENTRY.argument, 2)
    settled = ledger.settle([twice], made, [Result(m, Verdict.SURVIVED) for m in made])
    assert not settled.stale and len(settled.argued) == 2


@pytest.mark.parametrize("verdict", [Verdict.KILLED, Verdict.TIMED_OUT, Verdict.CRASHED])
def test_an_argument_is_wrong_when_something_tells_the_mutant(verdict: Verdict) -> None:
    made = [mutant()]
    settled = ledger.settle([ENTRY], made, [Result(made[0], verdict, "test_x")])
    assert settled.stale == [f"wrong: {verdict} by test_x: {ENTRY}"] and not settled.argued


def test_entries_of_functions_that_were_not_looked_at_are_not_judged() -> None:
    assert ledger.settle([ENTRY], [mutant(function="g")], []).stale == []


def test_an_entry_of_a_function_that_is_gone_is_stale() -> None:
    assert ledger.orphans([ENTRY], {"engine/a.py": {"f"}}) == []
    assert ledger.orphans([ENTRY], {"engine/a.py": {"g"}}) and ledger.orphans([ENTRY], {})


def test_every_entry_of_the_committed_ledger_is_of_a_line_that_is_there() -> None:
    for entry in ledger.load():
        source = (ROOT / entry.file).read_text(encoding="utf-8")
        assert entry.function in functions_of(entry.file, source), str(entry)
        lines = {line.strip() for line in source.splitlines()}
        assert set(entry.before.splitlines()) <= lines, str(entry)
