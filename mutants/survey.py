"""The mutants of a file: mutmut makes them, each is described, and what gets none is counted.

mutmut writes every mutant of a function beside the original, behind a switch that looks at
`MUTANT_UNDER_TEST`. Here its own functions are called on one file at a time, with our operators in
its table; its command line and its runner are not (docs/mutation.md says why).

It does not mutate what runs when a module is imported: tables, class bodies, default arguments that
are more than a name or a constant, decorated functions, functions under a module's `if`. Functions
that are called at import are mutated and it does no good: they have run by then. All of that is
listed, with its share of the statements. A comment that asks for no mutants is listed and not
obeyed: what is judged does not choose what it is judged by.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import file_mutation
from mutmut.mutation.trampoline_templates import mangle_function_name

from mutants import operators
from mutants.verdicts import Mutant, Unmutable, function_of

# A lone one of these does not keep mutmut from a function.
_HARMLESS = {"staticmethod", "classmethod"}
_ENUM_HOOKS = frozenset(file_mutation.NEVER_MUTATE_ENUM_FUNCTION_NAMES)
_PRAGMA = re.compile(r"pragma:\s*no mutate")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef

_PLANTED = """

def _planted(*args: object, **kwargs: object) -> None:
    raise AssertionError("planted")


"""


def mutate(file: str, source: str, only: frozenset[str] | None = None) -> tuple[str, list[Mutant]]:
    """The file with all of its mutants behind switches, and their descriptions in order.

    `only` names the functions to mutate; a mutant's number is the same without it. Each mutated
    function also gets two that are not in the list: a planted one, which only raises, and one that
    is the function itself, with the number after the last.
    """
    operators.install()
    module, mutations, classes, functions = file_mutation.create_mutations(file, source)
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    owners = _owners(module)
    kept: list[file_mutation.Mutation] = []
    found: list[Mutant] = []
    numbers: Counter[str] = Counter()
    seen: dict[cst.FunctionDef, set[str]] = {}
    texts = {function: module.code_for_node(function) for function in owners}
    dotted = ".".join(PurePosixPath(file).with_suffix("").parts).removesuffix(".__init__")
    for mutation in mutations:
        function = mutation.contained_by_top_level_function
        if function not in owners:
            continue  # a class body, or a nested class: mutmut leaves those out as well
        if only is not None and owners[function][1] not in only:
            continue
        assert isinstance(function, cst.FunctionDef)
        if _is_return_at_end(mutation.original_node, function):
            continue
        changed = file_mutation.deep_replace(
            function, mutation.original_node, mutation.mutated_node
        )
        assert isinstance(changed, cst.FunctionDef)
        text = module.code_for_node(changed)
        # Two operators may make the same code of a line; once is enough.
        if text == texts[function] or text in seen.setdefault(function, set()):
            continue
        seen[function].add(text)
        kept.append(mutation)
        mangled, spoken = owners[function]
        numbers[mangled] += 1
        before, after, diff = _difference(texts[function], text)
        found.append(
            Mutant(
                name=f"{dotted}.{mangled}__mutmut_{numbers[mangled]}",
                file=file,
                function=spoken,
                line=positions[mutation.original_node].start.line,
                operator=operators.maker(mutation.mutated_node),
                before=before,
                after=after,
                diff=diff,
            )
        )
    code = file_mutation.combine_mutations_to_source(module, kept, classes, functions).code
    operators.forget()
    code += _PLANTED + "".join(
        f"mutants_{mangled}__mutmut['{mangled}__mutmut_planted'] = _planted\n"
        f"mutants_{mangled}__mutmut['{mangled}__mutmut_{number + 1}'] ="
        f" mutants_{mangled}__mutmut['_mutmut_orig']\n"
        for mangled, number in numbers.items()
    )
    return code, found


def unchanged(mutants: Iterable[Mutant]) -> list[str]:
    """The names of the mutants that are the functions themselves, of files mutated whole."""
    numbers = Counter(function_of(mutant.name) for mutant in mutants)
    return [f"{function}__mutmut_{number + 1}" for function, number in numbers.items()]


def _owners(module: cst.Module) -> dict[cst.FunctionDef, tuple[str, str]]:
    """Each function that mutmut gives mutants: its mangled name and the name people use."""
    owners: dict[cst.FunctionDef, tuple[str, str]] = {}
    for node in module.body:
        if isinstance(node, cst.FunctionDef):
            name = node.name.value
            owners[node] = (mangle_function_name(name=name, class_name=None), name)
        elif isinstance(node, cst.ClassDef) and isinstance(node.body, cst.IndentedBlock):
            for member in node.body.body:
                if isinstance(member, cst.FunctionDef):
                    name, owner = member.name.value, node.name.value
                    mangled = mangle_function_name(name=name, class_name=owner)
                    owners[member] = (mangled, f"{owner}.{name}")
    return owners


def _is_return_at_end(node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    """Whether a statement is a return of nothing with nothing after it: `pass` says the same."""
    if not any(node is last for last in _lasts(function.body)):
        return False
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.Return):
        return False
    value = node.body[0].value
    return value is None or (isinstance(value, cst.Name) and value.value == "None")


def _lasts(block: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    """The statements that a block may end with."""
    last = block.body[-1]
    yield last
    branch: cst.CSTNode | None = last
    while isinstance(branch, cst.If):
        yield from _lasts(branch.body)
        branch = branch.orelse
    if isinstance(branch, cst.Else):
        yield from _lasts(branch.body)


def _difference(old: str, new: str) -> tuple[str, str, str]:
    """The lines that differ, without indentation, and a diff to read."""
    lines = list(
        difflib.unified_diff(
            textwrap.dedent(old.lstrip("\n")).splitlines(),
            textwrap.dedent(new.lstrip("\n")).splitlines(),
            lineterm="",
            n=2,
        )
    )[2:]
    before = "\n".join(line[1:].strip() for line in lines if line.startswith("-"))
    after = "\n".join(line[1:].strip() for line in lines if line.startswith("+"))
    return before, after, "\n".join(line for line in lines if not line.startswith("@@"))


# -- what gets no mutants ---------------------------------------------------------------------


def unmutable(source: str, at_import: frozenset[str] = frozenset()) -> Unmutable:
    """What of a file gets no mutants; `at_import` are functions that run when it is imported."""
    tree = ast.parse(source)
    found = Unmutable(_statements(tree.body))
    module = 0
    first = 0
    for node in tree.body:
        if isinstance(node, _FUNCTION):
            _function(node, None, at_import, found)
        elif isinstance(node, ast.ClassDef):
            _class(node, at_import, found)
        elif not _is_docstring(node):
            hidden = _hidden(node, "", "under a statement of the module", found)
            own = _statements([node]) - hidden
            module += own
            first = first or (node.lineno if own else 0)
    if module:
        found.places.insert(0, ("the module's own statements and tables", first, module))
    for line, function in _pragmas(source, tree):
        reason = f"{function}: `pragma: no mutate`, which is not obeyed"
        found.places.append((reason, line, 0))
    return found


def _class(node: ast.ClassDef, at_import: frozenset[str], found: Unmutable) -> None:
    # The class statement itself, its attributes and nested classes.
    own = 1
    hooks = _ENUM_HOOKS if _is_enum(node) else frozenset()
    for member in node.body:
        if isinstance(member, _FUNCTION):
            _function(member, node.name, at_import, found, hooks)
        elif not _is_docstring(member):
            hidden = _hidden(member, f"{node.name}.", "under a statement of its class", found)
            own += _statements([member]) - hidden
    found.places.append((f"class {node.name}: its body", node.lineno, own))


def _hidden(node: ast.stmt, owner: str, where: str, found: Unmutable) -> int:
    """The functions under a statement of a module or class body, listed; their statements."""
    if isinstance(node, _FUNCTION):
        number = _statements([node])
        found.places.append((f"{owner}{node.name}: {where}", node.lineno, number))
        return number
    if isinstance(node, ast.ClassDef):
        owner = f"{owner}{node.name}."
    inner = (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return sum(_hidden_in(child, owner, where, found) for child in inner)


def _hidden_in(node: ast.AST, owner: str, where: str, found: Unmutable) -> int:
    if isinstance(node, ast.stmt):
        return _hidden(node, owner, where, found)
    # An `except` or a `case` is no statement, and has some.
    return sum(_hidden_in(child, owner, where, found) for child in ast.iter_child_nodes(node))


def _pragmas(source: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines with a comment that asks for no mutants, and what they are in."""
    spans = [
        (node.lineno, node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, _FUNCTION | ast.ClassDef)
    ]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and _PRAGMA.search(token.string):
            line = token.start[0]
            around = [(first, name) for first, last, name in spans if first <= line <= last]
            yield line, max(around)[1] if around else "the module"


def _is_enum(node: ast.ClassDef) -> bool:
    bases = (base.attr if isinstance(base, ast.Attribute) else base for base in node.bases)
    names = (base.id if isinstance(base, ast.Name) else base for base in bases)
    return any(name in file_mutation.ENUM_BASE_NAMES for name in names)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    owner: str | None,
    at_import: frozenset[str],
    found: Unmutable,
    hooks: frozenset[str] = frozenset(),
) -> None:
    name = f"{owner}.{node.name}" if owner else node.name
    mangled = mangle_function_name(name=node.name, class_name=owner)
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    if decorators and not (len(decorators) == 1 and decorators[0] in _HARMLESS):
        reason = f"{name}: decorated with {', '.join(decorators)}"
        found.places.append((reason, node.lineno, _statements([node])))
    elif node.name in file_mutation.NEVER_MUTATE_FUNCTION_NAMES | hooks:
        found.places.append((f"{name}: mutmut leaves it out", node.lineno, _statements([node])))
    elif mangled in at_import:
        reason = f"{name}: called while the module is imported"
        found.places.append((reason, node.lineno, _statements([node])))
    else:
        _defaults(node, name, found)


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, found: Unmutable) -> None:
    """Default arguments that are expressions: they have run when a mutant is chosen. They are a
    part of the `def`, which is one statement."""
    given = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    odd = [value for value in given if not isinstance(value, ast.Name | ast.Constant)]
    if odd:
        said = ", ".join(map(ast.unparse, odd))
        found.places.append((f"{name}: default arguments {said}", odd[0].lineno, 1))


def _statements(body: list[ast.stmt]) -> int:
    """How many statements there are, docstrings apart."""
    return sum(
        isinstance(node, ast.stmt) and not _is_docstring(node)
        for statement in body
        for node in ast.walk(statement)
    )


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
