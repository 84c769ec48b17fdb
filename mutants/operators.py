"""The mutation operators that mutmut lacks, and the ones that an engine of leases fears most.

mutmut turns `zero(area)` into `zero(None)`, which dies of a TypeError and looks like a kill; "the
area is not zeroed" is never made. So these are added to its table: a statement deleted, a `raise`
removed, a guard forced true and false, arguments swapped, a slice's bounds off by one, a return
replaced.

`install` also wraps every operator, mutmut's own included, so that each mutant can say which one
made it. The table is an internal of mutmut: its version is pinned, and a test asserts that each
operator fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import libcst as cst
from mutmut.mutation import file_mutation, mutators, pragma_handling

Operator = Callable[[Any], Iterable[cst.CSTNode]]

_PASS = cst.Pass()
# Calls whose order of arguments says nothing, where these are numbers.
_UNORDERED = frozenset({"max", "min"})


def statement_deleted(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    """`zero(area)` to `pass`; so too assignments, `del`, `continue`.

    Not an `assert`: as long as it holds, nothing could tell that it is gone.
    """
    if len(node.body) != 1:
        return
    (statement,) = node.body
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.BaseString):
        return  # a docstring
    if isinstance(statement, cst.AnnAssign) and statement.value is None:
        return
    kinds = (cst.Expr, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Del, cst.Continue)
    if isinstance(statement, kinds):
        yield node.with_changes(body=[_PASS])


def raise_removed(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    """`raise X` to `pass`."""
    if len(node.body) == 1 and isinstance(node.body[0], cst.Raise):
        yield node.with_changes(body=[_PASS])


def return_replaced(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    """`return x` to `return None`; a return of nothing to `pass`, so that what follows runs."""
    if len(node.body) != 1 or not isinstance(node.body[0], cst.Return):
        return
    value = node.body[0].value
    if value is None or (isinstance(value, cst.Name) and value.value == "None"):
        yield node.with_changes(body=[_PASS])
    else:
        # Not `value=None`: whitespace after `return` is kept as it is.
        yield node.with_changes(body=[node.body[0].with_changes(value=cst.Name("None"))])


def guard_forced(node: cst.If) -> Iterator[cst.CSTNode]:
    """`if x:` to `if True:` and `if False:`."""
    for word in ("True", "False"):
        if not (isinstance(node.test, cst.Name) and node.test.value == word):
            yield node.with_changes(
                test=cst.Name(word), whitespace_before_test=cst.SimpleWhitespace(" ")
            )


def loop_not_entered(node: cst.While) -> Iterator[cst.CSTNode]:
    """`while x:` to `while False:`. Forced true it would only never end."""
    yield node.with_changes(
        test=cst.Name("False"), whitespace_after_while=cst.SimpleWhitespace(" ")
    )


def arguments_swapped(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Two neighbouring positional arguments change places, but for those of `max` and `min`."""
    if isinstance(node.func, cst.Name) and node.func.value in _UNORDERED:
        return
    args = list(node.args)
    for at in range(len(args) - 1):
        left, right = args[at], args[at + 1]
        if any(arg.keyword is not None or arg.star for arg in (left, right)):
            continue
        if left.value.deep_equals(right.value):
            continue
        swapped = [
            *args[:at],
            left.with_changes(value=right.value),
            right.with_changes(value=left.value),
            *args[at + 2 :],
        ]
        yield node.with_changes(args=swapped)


def slice_off_by_one(node: cst.Slice) -> Iterator[cst.CSTNode]:
    """`view[a:b]` to `a + 1`, `a - 1`, `b + 1`, `b - 1`; a bound that is not there to 1 or -1."""
    for name in ("lower", "upper"):
        bound = getattr(node, name)
        if bound is None:
            yield node.with_changes(**{name: cst.Integer("1") if name == "lower" else _minus_one()})
            continue
        if not isinstance(bound, cst.Integer):  # mutmut adds one to a literal itself
            yield node.with_changes(**{name: _sum(bound, cst.Add())})
        yield node.with_changes(**{name: _sum(bound, cst.Subtract())})


def _minus_one() -> cst.BaseExpression:
    return cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer("1"))


def _sum(bound: cst.BaseExpression, operator: cst.BaseBinaryOp) -> cst.BaseExpression:
    if not isinstance(bound, cst.Integer | cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        bound = bound.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BinaryOperation(left=bound, operator=operator, right=cst.Integer("1"))


ADDED: tuple[tuple[type[cst.CSTNode], Operator], ...] = (
    (cst.SimpleStatementLine, statement_deleted),
    (cst.SimpleStatementLine, raise_removed),
    (cst.SimpleStatementLine, return_replaced),
    (cst.If, guard_forced),
    (cst.While, loop_not_entered),
    (cst.Call, arguments_swapped),
    (cst.Slice, slice_off_by_one),
)

# The operator that made each node, by identity; the nodes are kept so that no identity is reused.
_made: dict[int, tuple[cst.CSTNode, str]] = {}


def install() -> None:
    """Add the operators to mutmut's table and make them all sign their work; once a process."""
    table: list[tuple[type, Operator]] = mutators.mutation_operators  # type: ignore[assignment]
    if any(getattr(operator, "signs", False) for _, operator in table):
        return
    table[:] = [(kind, _signing(operator)) for kind, operator in (*table, *ADDED)]
    # No line is left out because it asks for that, in a comment or by a pattern of the settings.
    file_mutation.get_ignored_lines = _none_ignored  # type: ignore[attr-defined, assignment]


def _none_ignored(*_: object) -> pragma_handling.IgnoredCode:
    return pragma_handling.IgnoredCode(set(), set(), set())


def maker(node: cst.CSTNode) -> str:
    """The name of the operator that made a mutated node."""
    found = _made.get(id(node))
    return found[1] if found else "unknown"


def forget() -> None:
    """Let the nodes of a file that is done with go."""
    _made.clear()


def _signing(operator: Operator) -> Operator:
    name = operator.__name__.removeprefix("operator_")

    @wraps(operator)
    def signed(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        for made in operator(node):
            _made[id(made)] = (made, name)
            yield made

    signed.signs = True  # type: ignore[attr-defined]
    return signed
