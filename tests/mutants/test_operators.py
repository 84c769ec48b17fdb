"""Each added operator fires on a snippet, and makes just what it says.

The table that they are added to is an internal of mutmut: were an update of it to read the table
elsewhere, or not at all, these would fail and the engine would not quietly have fewer mutants.
"""

from __future__ import annotations

from typing import Any

import pytest

from mutants import operators, survey
from mutants.verdicts import Mutant, function_of

SNIPPET = '''
TABLE = {1: 2}


class Area:
    """A docstring, which is no statement."""

    size = 4

    def clear(self, view, start, end):
        """Zero it."""
        if start > end:
            raise ValueError("backwards")
        wipe(view[start:end], self.size)
        count: int = end - start
        while count:
            count -= 1
        if not count:
            return
        return count

    @property
    def half(self):
        return self.size // 2


def first(items):
    for item in items:
        if item is None:
            continue
        return item
    return None
'''


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    return survey.mutate("engine/snippet.py", SNIPPET)[1]


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("statement_deleted", "wipe(view[start:end], self.size)", "pass"),
        ("statement_deleted", "count: int = end - start", "pass"),
        ("statement_deleted", "count -= 1", "pass"),
        ("statement_deleted", "continue", "pass"),
        ("raise_removed", 'raise ValueError("backwards")', "pass"),
        ("return_replaced", "return count", "return None"),
        ("return_replaced", "return", "pass"),
        ("return_replaced", "return item", "return None"),
        ("guard_forced", "if start > end:", "if True:"),
        ("guard_forced", "if start > end:", "if False:"),
        ("guard_forced", "if not count:", "if True:"),
        ("loop_not_entered", "while count:", "while False:"),
        (
            "arguments_swapped",
            "wipe(view[start:end], self.size)",
            "wipe(self.size, view[start:end])",
        ),
        (
            "slice_off_by_one",
            "wipe(view[start:end], self.size)",
            "wipe(view[start + 1:end], self.size)",
        ),
        (
            "slice_off_by_one",
            "wipe(view[start:end], self.size)",
            "wipe(view[start:end - 1], self.size)",
        ),
    ],
)
def test_each_added_operator_fires(
    operator: str, before: str, after: str, mutants: list[Mutant]
) -> None:
    found = [m for m in mutants if m.operator == operator]
    assert (before, after) in [(m.before, m.after) for m in found]


def test_every_added_operator_and_mutmut_s_own_are_at_work(mutants: list[Mutant]) -> None:
    names = {mutant.operator for mutant in mutants}
    assert {operator.__name__ for _, operator in operators.ADDED} <= names
    assert {"swap_op", "arg_removal", "assignment", "number"} <= names
    assert "unknown" not in names


def test_open_slices_get_a_bound() -> None:
    source = "def f(view, end):\n    return view[:end], view[end:], view[2:]\n"
    afters = [m.after for m in survey.mutate("engine/a.py", source)[1]]
    for wanted in ("view[1:end]", "view[end:-1]", "view[2 - 1:]", "view[:end + 1]"):
        assert any(wanted in after for after in afters), wanted


def test_no_two_mutants_of_a_function_are_the_same_code() -> None:
    # mutmut replaces the argument, and so would swapping: f(None, None) has nothing to swap.
    source = "def f():\n    g(None, None)\n    return None\n"
    made = survey.mutate("engine/a.py", source)[1]
    assert len({(m.line, m.after) for m in made}) == len(made)
    assert not [m for m in made if m.operator == "arguments_swapped"]


def test_a_return_of_nothing_is_replaced_only_where_something_follows() -> None:
    source = """
def f(x):
    if x > 1:
        return None
    g(x)
    if x:
        return
    elif x is None:
        return None
    else:
        h(x)
        return None
"""
    made = [m for m in survey.mutate("engine/a.py", source)[1] if m.operator == "return_replaced"]
    assert [(m.line, m.after) for m in made] == [(4, "pass")]


def test_the_arguments_of_max_and_min_are_not_swapped() -> None:
    source = "def f(a, b):\n    return max(a, b), min(a, b), pow(a, b)\n"
    made = [m for m in survey.mutate("engine/a.py", source)[1] if m.operator == "arguments_swapped"]
    assert [m.after for m in made] == ["return max(a, b), min(a, b), pow(b, a)"]


def test_an_assert_is_not_deleted() -> None:
    source = "def f(a):\n    assert a is not None\n    g(a)\n"
    made = [m for m in survey.mutate("engine/a.py", source)[1] if m.operator == "statement_deleted"]
    assert [m.before for m in made] == ["g(a)"]


def test_a_mutant_says_where_it_is(mutants: list[Mutant]) -> None:
    (deleted,) = [m for m in mutants if (m.before, m.after) == ("count -= 1", "pass")]
    assert deleted.function == "Area.clear"
    assert SNIPPET.splitlines()[deleted.line - 1].strip() == "count -= 1"
    assert "-        count -= 1" in deleted.diff and "+        pass" in deleted.diff
    assert function_of(deleted.name) == "engine.snippet.xǁAreaǁclear"


def test_the_mutated_file_has_them_all_and_a_planted_one_for_each_function() -> None:
    code, made = survey.mutate("engine/snippet.py", SNIPPET)
    names: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), names)
    switches = {**names["mutants_xǁAreaǁclear__mutmut"], **names["mutants_x_first__mutmut"]}
    assert {m.name.rpartition(".")[2] for m in made} <= set(switches)
    with pytest.raises(AssertionError, match="planted"):
        switches["x_first__mutmut_planted"]([1])


def test_functions_can_be_chosen_and_keep_their_numbers() -> None:
    everything = survey.mutate("engine/snippet.py", SNIPPET)[1]
    chosen = survey.mutate("engine/snippet.py", SNIPPET, frozenset({"first"}))[1]
    assert chosen == [m for m in everything if m.function == "first"] != []


def test_what_gets_no_mutants_is_listed_with_its_share() -> None:
    found = survey.unmutable(SNIPPET, frozenset({"x_first"}))
    listed = {what: count for what, _, count in found.places}
    assert listed == {
        "the module's own statements and tables": 1,
        "class Area: its body": 2,
        "Area.half: decorated with property": 2,
        "first: called while the module is imported": 6,
    }
    # The class, its attribute, two methods of ten and two, the function of six, the table.
    assert found.statements == 21 and found.count == 11 and round(found.percent) == 52
