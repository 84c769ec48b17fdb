"""A Python file in the terms of a change: its functions, and the parts that run on its import.

A mutant is a function behind a switch, so what runs when a file is imported gets none: a table, an
import, a class body, a default argument, a decorator, a function under an `if`. Such a part is
judged by putting back what it was: if no test tells the two apart, nothing watches it.
"""

import ast
import builtins
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ci.exits import UsageError

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
# An expression or statement that takes a decision. A call of a constructor takes none here.
_DECIDES = (
    *(ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.IfExp, ast.Compare, ast.BoolOp),
    *(ast.If, ast.For, ast.While, ast.Try),
)
# What tells the reader or a type checker something, and nothing to the code.
_SAYS_NOTHING = frozenset({"__all__"})
_TYPES = frozenset({"TypeVar", "NewType", "ParamSpec", "TypeAlias"})
# Code that is text or comes from elsewhere: what it does is in no file that is looked at.
HIDING = frozenset(
    {"exec", "eval", "compile", "__import__", "importlib", "runpy", "marshal", "pickle", "ctypes"}
    | {"__code__", "CodeType", "FunctionType", "__builtins__", "setattr", "delattr", "globals"}
)


@dataclass(frozen=True)
class Part:
    """A piece of a file that runs on its import."""

    name: str
    """`import NAME`, `name NAME`, `name CLASS.NAME`, `def FUNCTION` for its decorators and
    defaults, `class CLASS` for its bases; `module` or `in CLASS` for what binds no name."""
    code: str
    text: str
    line: int
    end: int
    indent: str = ""
    decides: bool = False

    @property
    def binds(self) -> str:
        """The name itself, without its class; nothing where none is bound."""
        kind, _, name = self.name.partition(" ")
        return name.rpartition(".")[2] if kind in ("import", "name") else ""


@dataclass
class Code:
    """What a file has."""

    functions: dict[str, str] = field(default_factory=dict)
    """The code of each function and method, by name: f, C.f."""
    parts: list[Part] = field(default_factory=list)
    read: frozenset[str] = frozenset()
    """The names that it reads anywhere but in annotations."""
    ends: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The last line of each class and the indentation of its body."""
    hiding: Counter[str] = field(default_factory=Counter)
    """How often it names each of the things that hide code."""
    whole: str = ""
    """All of it, but for comments and docstrings."""


@dataclass(frozen=True)
class Changed:
    """A part that is new, another or gone, and the file with the part as it was."""

    part: Part
    was: str
    now: str
    reverted: str | None
    """None where putting it back says nothing or cannot be done."""
    decides: bool
    """Whether it takes a decision, of which that it is noticed as a whole says too little."""


def parse(name: str, source: str) -> ast.Module:
    """The tree of a file; UsageError when it is none."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {error}") from None


def read(name: str, source: str | None) -> Code:
    """What a file has; nothing for one that is not there."""
    found = Code()
    if source is None:
        return found
    module = parse(name, source)
    lines = source.splitlines()
    _body(module.body, "", lines, found)
    loads: set[str] = set()
    for node in _outside_annotations(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.add(node.id)
        for word in _words(node):
            if word in HIDING:
                found.hiding[word] += 1
    found.read = frozenset(loads)
    found.whole = _whole(module)
    return found


def _words(node: ast.AST) -> Iterator[str]:
    """The identifiers of a node that may name something that hides code."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and node.attr != "compile":  # re.compile hides nothing
        yield node.attr
    elif isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((node.module or "").partition(".")[0], *(alias.name for alias in node.names))


def _outside_annotations(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _outside_annotations(child)


def _body(body: list[ast.stmt], owner: str, lines: list[str], found: Code) -> None:
    for node in body:
        if isinstance(node, FUNCTION):
            found.functions[owner + node.name] = dump(node)
            found.parts.append(_header(node, owner, lines))
        elif isinstance(node, ast.ClassDef) and not owner:
            own = [*node.bases, *node.keywords, *node.decorator_list]
            text = f"class {node.name}({', '.join(map(ast.unparse, own))})"
            part = _part(f"class {node.name}", "".join(map(ast.dump, own)), text, node)
            found.parts.append(part)
            indent = " " * node.body[0].col_offset
            found.ends[node.name] = (node.end_lineno or node.lineno, indent)
            _body(node.body, f"{node.name}.", lines, found)
        elif not _silent(node):
            found.parts += _statement(node, owner, lines)


def _silent(node: ast.stmt) -> bool:
    """Whether a statement says nothing to the code: a docstring, types, a future import."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING" and not node.orelse
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return True
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in _TYPES:
        return True
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).rpartition(".")[2] in _TYPES
    return isinstance(node, ast.Pass) or docstring(node)


def _statement(node: ast.stmt, owner: str, lines: list[str]) -> Iterator[Part]:
    indent = " " * node.col_offset
    text = source_of(node, lines)
    if isinstance(node, ast.Import | ast.ImportFrom) and node.names[0].name != "*":
        for alias in node.names:
            one = ast.unparse(
                ast.Import([alias])
                if isinstance(node, ast.Import)
                else ast.ImportFrom(node.module, [alias], node.level)
            )
            name = alias.asname or alias.name.partition(".")[0]
            yield _part(f"import {owner}{name}", one, one, node, indent)
        return
    names = _bound(node)
    value = getattr(node, "value", None)
    decides = any(isinstance(inner, _DECIDES) for inner in ast.walk(node))
    decides |= isinstance(node, ast.ImportFrom | ast.ClassDef)
    if not names:
        where = f"in {owner.rstrip('.')}" if owner else "module"
        yield _part(where, ast.dump(node), text, node, indent, decides)
    for name in names:
        if name not in _SAYS_NOTHING:
            code = ast.dump(value) if value is not None else ""
            yield _part(f"name {owner}{name}", code, text, node, indent, decides)


def _bound(node: ast.stmt) -> list[str]:
    """The plain names that an assignment binds; none for anything else."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    flat = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    names = [one.id for one in flat if isinstance(one, ast.Name)]
    return names if len(names) == len(flat) else []


def _header(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str, lines: list[str]) -> Part:
    """A function's decorators and defaults. Its code is what a mutant's is copied from."""
    given = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    decides = any(isinstance(inner, _DECIDES) for value in given for inner in ast.walk(value))
    text = ", ".join(map(ast.unparse, given))
    indent = " " * node.col_offset
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    code = "".join(map(ast.dump, given))
    end = node.end_lineno or node.lineno
    return Part(f"def {owner}{node.name}", code, text, first, end, indent, decides)


def _part(
    name: str, code: str, text: str, node: ast.stmt, indent: str = "", decides: bool = False
) -> Part:
    return Part(name, code, text, node.lineno, node.end_lineno or node.lineno, indent, decides)


def source_of(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a statement, without the indentation that they share."""
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    return textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))


def dump(node: ast.AST) -> str:
    """The code of a node, without a function's docstring."""
    if isinstance(node, FUNCTION) and docstring(node.body[0]):
        node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(node)


def _whole(module: ast.Module) -> str:
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTION):
            node.body = [one for one in node.body if not docstring(one)]
    return ast.dump(module)


def docstring(node: ast.AST) -> bool:
    """Whether a statement is a string and nothing else."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@dataclass(frozen=True)
class Function:
    """A function or method as it stands in its file."""

    line: int
    text: str
    empty: bool
    """Whether it does nothing: a stub, which has nothing to mutate."""
    inner: tuple[str, ...]
    """The decorated functions in it, which get no mutants."""


def functions(name: str, source: str) -> dict[str, Function]:
    """The functions and methods of a file by name."""
    lines = source.splitlines()
    found: dict[str, Function] = {}
    for node in parse(name, source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, FUNCTION):
                inner = tuple(
                    one.name
                    for one in ast.walk(member)
                    if isinstance(one, FUNCTION) and one is not member and one.decorator_list
                )
                text = source_of(member, lines)
                function = Function(member.lineno, text, all(map(_idle, member.body)), inner)
                found[owner + member.name] = function
    return found


def _idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass)


# -- two files compared -----------------------------------------------------------------------


def changed_parts(was: Code, now: Code, source: str) -> Iterator[Changed]:
    """The parts that differ, each with the file as it would be with that part alone put back."""
    lines = source.splitlines()
    named_was, named = _named(was), _named(now)
    for name, parts in named.items():
        old = named_was.get(name, [])
        if [part.code for part in parts] == [part.code for part in old]:
            continue
        part = parts[-1]
        decides = part.decides or (bool(old) and name.startswith("class "))
        before = old[-1].text if old else ""
        yield Changed(part, before, part.text, _back(part, old, was, lines), decides)
    for name, old in named_was.items():
        owner = name.partition(" ")[2].rpartition(".")[0]
        if name.startswith("name ") and owner in now.ends and name not in named:
            yield _gone(old[-1], now.ends[owner], lines)
    effects_was, effects = _effects(was), _effects(now)
    for key, part in effects.items():
        if key not in effects_was:
            reverted = [*lines[: part.line - 1], f"{part.indent}pass", *lines[part.end :]]
            yield Changed(part, "", part.text, _joined(reverted), part.decides)
    for key, part in effects_was.items():
        if key not in effects:
            owner = part.name.removeprefix("in ") if part.name != "module" else ""
            yield _gone(part, now.ends.get(owner, (len(lines), "")), lines)


def _named(code: Code) -> dict[str, list[Part]]:
    table: dict[str, list[Part]] = {}
    for part in code.parts:
        if part.name.partition(" ")[0] not in ("module", "in"):
            table.setdefault(part.name, []).append(part)
    return table


def _effects(code: Code) -> dict[tuple[str, str], Part]:
    return {
        (part.name, part.code): part
        for part in code.parts
        if part.name.partition(" ")[0] in ("module", "in")
    }


def _back(part: Part, old: list[Part], was: Code, lines: list[str]) -> str | None:
    """The file with a named part as it was; a new one is taken away again where it hides a name
    that is there without it, and holds nothing where it is a table."""
    kind = part.name.partition(" ")[0]
    if kind == "def":
        return _with_header(part, old[-1], lines) if old else None
    if kind == "class":
        return None
    if old:
        line = old[-1].text
    elif part.binds in dir(builtins) and part.binds in was.read:
        line = f"del {part.binds}"
    elif kind == "name" and part.code:
        line = f"{part.binds} = None"
    else:
        return None
    return _joined([*lines[: part.end], textwrap.indent(line, part.indent), *lines[part.end :]])


def _with_header(part: Part, old: Part, lines: list[str]) -> str | None:
    """The file with a function's decorators and defaults as they were, its body as it is."""
    now = ast.parse(textwrap.dedent("\n".join(lines[part.line - 1 : part.end]))).body[0]
    assert isinstance(now, FUNCTION)
    given = ast.parse(f"({old.text},)", mode="eval").body if old.text else ast.Tuple([])
    assert isinstance(given, ast.Tuple)
    args = now.args
    values = [*now.decorator_list, *args.defaults, *filter(None, args.kw_defaults)]
    if len(values) == len(given.elts):
        names = len(now.decorator_list)
        plain = names + len(args.defaults)
        now.decorator_list = given.elts[:names]
        args.defaults = given.elts[names:plain]
        rest = iter(given.elts[plain:])
        args.kw_defaults = [value and next(rest) for value in args.kw_defaults]
    elif len(given.elts) == len(values) - len(now.decorator_list):
        now.decorator_list = []
    else:
        return None
    text = textwrap.indent(ast.unparse(now), part.indent)
    return _joined([*lines[: part.line - 1], text, *lines[part.end :]])


def _gone(part: Part, end: tuple[int, str], lines: list[str]) -> Changed:
    at, indent = end
    text = _joined([*lines[:at], textwrap.indent(part.text, indent), *lines[at:]])
    gone = Part(part.name, "", "", min(part.line, len(lines)), part.end, indent)
    return Changed(gone, part.text, "", text, decides=False)


def _joined(lines: list[str]) -> str | None:
    text = "\n".join(lines) + "\n"
    try:
        compile(text, "reverted", "exec")
    except (SyntaxError, ValueError):
        return None
    return text
