"""What a change touches: the merge base of a reference and HEAD, against the working tree.

Staged, unstaged and untracked files are all of it: what is tested is what lies on the disk. A
function has changed when its code has, comments and docstrings apart; so moving it is no change.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ci.exits import Untrusted, UsageError
from ci.process import ROOT

DEEPEN = "in a shallow clone: git fetch --unshallow (actions/checkout: fetch-depth: 0)"


@dataclass
class Change:
    """A change, in the terms of the gate."""

    base: str
    files: dict[str, str] = field(default_factory=dict)
    """Each touched file: A added, M changed, D deleted."""
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    """For each engine file that is there, its functions that are new or changed."""
    tables: set[str] = field(default_factory=set)
    """Engine files whose module statements or class bodies changed."""
    lines: dict[str, set[int]] = field(default_factory=dict)
    """The changed lines of each engine file, as they are now."""
    changed_tests: set[str] = field(default_factory=set)
    deleted_tests: list[str] = field(default_factory=list)
    changed_inputs: set[str] = field(default_factory=set)
    """HARNESS/FILE."""
    deleted_inputs: list[str] = field(default_factory=list)
    changed_plants: set[str] = field(default_factory=set)
    deleted_plants: list[str] = field(default_factory=list)
    """NAME: RULE, which nothing can be looked up for any more."""

    @property
    def engine(self) -> list[str]:
        """The engine's touched files."""
        return sorted(file for file in self.files if file.startswith("engine/"))


def git(*arguments: str, root: Path = ROOT) -> str:
    """What git prints; Untrusted when it cannot."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        raise Untrusted("git is not installed") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["failed"]
        raise Untrusted(f"git {arguments[0]}: {said[0]}")
    return done.stdout.decode(errors="surrogateescape")


def merge_base(ref: str, root: Path = ROOT) -> str:
    """The commit that the change started from."""
    git("rev-parse", "--git-dir", root=root)
    try:
        git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", root=root)
    except Untrusted:
        raise UsageError(f"there is no revision {ref!r} here; {DEEPEN}") from None
    try:
        return git("merge-base", ref, "HEAD", root=root).strip()
    except Untrusted:
        raise Untrusted(f"{ref} and HEAD have no merge base; {DEEPEN}") from None


def since(ref: str, root: Path = ROOT) -> Change:
    """Everything that differs from the merge base."""
    change = Change(merge_base(ref, root))
    said = git("diff", "--name-status", "--no-renames", "-z", change.base, "--", root=root)
    words = said.split("\0")[:-1]
    change.files = {name: status[0] for status, name in zip(words[::2], words[1::2], strict=True)}
    for name in git("ls-files", "--others", "--exclude-standard", "-z", root=root).split("\0"):
        if name:
            # One that the index deletes and the disk still has is both; what counts is the disk.
            change.files[name] = "M" if change.files.get(name) == "D" else "A"
    for name in sorted(change.files):
        old, new = _before(change.base, name, root), _now(name, root)
        if name.startswith("engine/") and name.endswith(".py") and new is not None:
            _engine(change, name, old, new, root)
        elif re.fullmatch(r"tests/(?:.*/)?test_\w+\.py", name):
            _tests(change, name, old, new)
        elif re.fullmatch(r"corpus/[^/]+/[^/]+", name):
            _, harness, file = name.split("/")
            if new is None and not (root / name).is_file():
                change.deleted_inputs.append(f"{harness}/{file}")
            else:
                change.changed_inputs.add(f"{harness}/{file}")
        elif re.fullmatch(r"mutants/catalogue/[^/]+\.toml", name):
            _plants(change, old, new)
    return change


def _before(base: str, name: str, root: Path) -> str | None:
    try:
        return git("show", f"{base}:{name}", root=root)
    except Untrusted:
        return None


def _now(name: str, root: Path) -> str | None:
    try:
        return (root / name).read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def before(change: Change, name: str, root: Path = ROOT) -> str | None:
    """A file as it was at the merge base; None when it was not there."""
    return _before(change.base, name, root)


# -- the engine -------------------------------------------------------------------------------


def _engine(change: Change, name: str, old: str | None, new: str, root: Path) -> None:
    functions, rest = _parts(name, new)
    was, rest_was = _parts(name, old) if old is not None else ({}, [])
    change.functions[name] = frozenset(f for f, code in functions.items() if was.get(f) != code)
    if rest != rest_was:
        change.tables.add(name)
    if old is None:
        change.lines[name] = set(range(1, new.count("\n") + 2))
        return
    said = git("diff", "-U0", "--no-color", "--no-ext-diff", change.base, "--", name, root=root)
    lines = change.lines.setdefault(name, set())
    for start, count in re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", said, re.MULTILINE):
        first, length = int(start), int(count or 1)
        # What is only deleted has no line of its own: those on either side stand for it.
        lines |= set(range(first, first + length)) or {first, first + 1}


def _parts(name: str, source: str) -> tuple[dict[str, str], list[str]]:
    """The code of each function and method, and of everything that is neither nor an import."""
    functions: dict[str, str] = {}
    rest: list[str] = []
    for node in _parse(name, source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[node.name] = _code(node)
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    functions[f"{node.name}.{member.name}"] = _code(member)
                elif not _docstring(member):
                    rest.append(f"{node.name}: {_code(member)}")
            rest += [_code(part) for part in (*node.bases, *node.decorator_list)]
        elif not isinstance(node, ast.Import | ast.ImportFrom) and not _docstring(node):
            rest.append(_code(node))
    return functions, rest


def _parse(name: str, source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {error}") from None


def _code(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _docstring(node.body[0]):
        node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(node)


def _docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def functions_of(name: str, source: str) -> set[str]:
    """The functions and methods of a file, as the ledger calls them."""
    return set(_parts(name, source)[0])


def concerns(change: Change, name: str, text: str, root: Path = ROOT) -> bool:
    """Whether this text of a touched file lies where the change is.

    That is in a function that changed; anywhere, once a table of the file did; and where the text
    is no longer there once, which says that the change took it away.
    """
    if name not in change.files:
        return False
    if name in change.tables or change.files[name] == "D":
        return True
    source = (root / name).read_text(encoding="utf-8")
    if source.count(text) != 1:
        return True
    first = source.count("\n", 0, source.index(text)) + 1
    last = first + text.rstrip("\n").count("\n")
    changed = change.functions.get(name, frozenset())
    return any(
        function in changed and start <= last and first <= end
        for function, start, end in _spans(name, source)
    )


def _spans(name: str, source: str) -> Iterator[tuple[str, int, int]]:
    """Each function and method of a file with its first and last line, decorators included."""
    for node in _parse(name, source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                starts = [member.lineno, *(one.lineno for one in member.decorator_list)]
                yield owner + member.name, min(starts), member.end_lineno or member.lineno


# -- tests, the catalogue ---------------------------------------------------------------------


def _tests(change: Change, name: str, old: str | None, new: str | None) -> None:
    was, rest_was = _nodes(name, old)
    now, rest = _nodes(name, new)
    for node, code in was.items():
        if node not in now:
            change.deleted_tests.append(node)
        elif now[node] != code or rest != rest_was:
            change.changed_tests.add(node)
    change.changed_tests |= set(now) - set(was)


def _nodes(name: str, source: str | None) -> tuple[dict[str, str], list[str]]:
    """The tests of a file by node id, and the code that they share."""
    if source is None:
        return {}, []
    functions, rest = _parts(name, source)
    nodes: dict[str, str] = {}
    for function, code in functions.items():
        owner, _, test = function.rpartition(".")
        if test.startswith("test_") and (not owner or owner.startswith("Test")):
            nodes[f"{name}::{function.replace('.', '::')}"] = code
        else:
            rest.append(code)
    return nodes, rest


def _plants(change: Change, old: str | None, new: str | None) -> None:
    was, now = _entries(old), _entries(new)
    change.changed_plants |= {name for name, entry in now.items() if was.get(name) != entry}
    change.deleted_plants += [
        f"{name}: {entry.get('rule', '')}" for name, entry in was.items() if name not in now
    ]


def _entries(text: str | None) -> dict[str, dict[str, object]]:
    try:
        table = tomllib.loads(text or "").get("plant", [])
        return {str(entry["name"]): entry for entry in table}
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        # The catalogue that is there now is read again, and refused, where it is used.
        return {}
