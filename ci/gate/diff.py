"""What a change touches: the merge base of a reference and HEAD, against the working tree.

Staged, unstaged and untracked files are all of it: what is tested is what lies on the disk. A
function has changed when its code has, comments and docstrings apart; so moving it is no change.
"""

import ast
import configparser
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from errno import EISDIR, ELOOP, ENOENT, ENOTDIR
from pathlib import Path

from ci.exits import Untrusted, UsageError
from ci.gate import code
from ci.process import ROOT, git
from ci.wording import meant
from mutants.settings import SUITE

# Files that say which tests run, and how.
CONFIGURES = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "pyproject.toml", "setup.cfg"}
)
# What pytest looks for in a file of tests, besides tests.
READ_BY_PYTEST = re.compile(r"pytest|setup|teardown|collect_ignore|load_tests|__")
DEEPEN = "this clone is shallow: git fetch --unshallow (actions/checkout: fetch-depth: 0)"


@dataclass
class Change:
    """A change, in the terms of the gate."""

    base: str
    files: dict[str, str] = field(default_factory=dict)
    """Each touched file: A added, M changed, D deleted."""
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    """For each engine file that is there, its functions that are new or changed."""
    tables: set[str] = field(default_factory=set)
    """Engine files with a part that changed and runs on their import."""
    parts: dict[str, list[code.Changed]] = field(default_factory=dict)
    """Those parts, where something is to be said of them."""
    coded: set[str] = field(default_factory=set)
    """Engine files whose code is another, or gone."""
    outside: list[str] = field(default_factory=list)
    """What the engine would be made of that is none of its sources."""
    hiding: list[str] = field(default_factory=list)
    """What it names that can hide code from all that judges it."""
    lines: dict[str, set[int]] = field(default_factory=dict)
    """The changed lines of each engine file, as they are now."""
    changed_tests: set[str] = field(default_factory=set)
    deleted_tests: list[str] = field(default_factory=list)
    altered_tests: list[str] = field(default_factory=list)
    """Those of the changed ones that were there before."""
    shared: list[str] = field(default_factory=list)
    """What tests share, or what says which of them run, where it is another than it was."""
    changed_inputs: set[str] = field(default_factory=set)
    """HARNESS/FILE."""
    altered_inputs: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    """Inputs that are to end otherwise than they did."""
    deleted_inputs: list[str] = field(default_factory=list)
    changed_plants: set[str] = field(default_factory=set)
    deleted_plants: list[str] = field(default_factory=list)
    """NAME: RULE, which nothing can be looked up for any more."""

    @property
    def sources(self) -> list[str]:
        """The touched files of the package under test."""
        return sorted(file for file in self.files if SUITE.has(file))


def merge_base(ref: str, root: Path = ROOT) -> str:
    """The commit that the change started from."""
    git("rev-parse", "--git-dir", root=root)
    try:
        git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", root=root)
    except Untrusted:
        names = git("for-each-ref", "--format=%(refname:short)", root=root).split()
        why = _cut_off(root) or meant(ref, names)
        raise UsageError(f"there is no such commit: {ref!r}{why}") from None
    try:
        return git("merge-base", ref, "HEAD", root=root).strip()
    except Untrusted:
        raise Untrusted(f"{ref} and HEAD have no merge base{_cut_off(root)}") from None


def _cut_off(root: Path) -> str:
    """Where the clone has not all of its history: how to have the rest."""
    shallow = git("rev-parse", "--is-shallow-repository", root=root).strip() == "true"
    return f"; {DEEPEN}" if shallow else ""


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
        if SUITE.has(name) and not os.path.lexists(root / name):
            change.coded.add(name)
        elif SUITE.has(name) and not _is_source(name, root):
            change.outside.append(f"{name} is no Python source, so nothing of it is judged")
        elif SUITE.has(name) and new is not None:
            _source(change, name, old, new, root)
        elif re.fullmatch(r"tests/(?:.*/)?test_\w+\.py", name):
            _tests(change, name, old, new)
        elif name.startswith("tests/") or name in CONFIGURES:
            _shared(change, name, old, new)
        elif re.fullmatch(r"corpus/[^/]+\.outcomes", name):
            _outcomes(change, name[7:-9], old, new)
        elif re.fullmatch(r"corpus/[^/]+/[^/]+", name):
            _, harness, file = name.split("/")
            if new is None and not (root / name).is_file():
                change.deleted_inputs.append(f"{harness}/{file}")
            else:
                change.changed_inputs.add(f"{harness}/{file}")
                if old is not None:
                    change.altered_inputs.append(f"{harness}/{file}")
        elif re.fullmatch(r"mutants/catalogue/[^/]+\.toml", name):
            _plants(change, old, new)
    return change


def _is_source(name: str, root: Path) -> bool:
    """Whether a file of the engine is what it seems: a link could lead to a file elsewhere."""
    path = root / name
    inside = [path, *list(path.parents)[: len(Path(name).parts) - 1]]
    if any(part.is_symlink() for part in inside):
        return False
    return path.is_file() and (path.suffix == ".py" or path.name == "py.typed")


def _before(base: str, name: str, root: Path) -> str | None:
    try:
        return git("show", f"{base}:{name}", root=root)
    except Untrusted:
        return None


def _now(name: str, root: Path) -> str | None:
    """A file as it is now; None when it is not there, is a folder, or is a link to itself."""
    try:
        return (root / name).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        if error.errno in (ENOENT, EISDIR, ENOTDIR, ELOOP):
            return None
        raise


def before(change: Change, name: str, root: Path = ROOT) -> str | None:
    """A file as it was at the merge base; None when it was not there."""
    return _before(change.base, name, root)


# -- the engine -------------------------------------------------------------------------------


def _source(change: Change, name: str, old: str | None, new: str, root: Path) -> None:
    was, now = code.read(name, old), code.read(name, new)
    if was.whole != now.whole:
        change.coded.add(name)
    functions = {f for f, text in now.functions.items() if was.functions.get(f) != text}
    change.functions[name] = frozenset(functions)
    parts = code.changed_parts(was, now, new)
    change.parts[name] = [part for part in parts if part.reverted or part.decides]
    if change.parts[name]:
        change.tables.add(name)
    change.outside += [
        f"{name} imports {module}, which is no part of {SUITE.package}"
        for module in sorted(_imported(code.parse(name, new)))
        if module != SUITE.package and ((root / module).is_dir() or any(root.glob(f"{module}.*")))
    ]
    change.hiding += [f"{name} names {word}" for word in sorted(now.hiding - was.hiding)]
    if old is None:
        change.lines[name] = set(range(1, new.count("\n") + 2))
        return
    said = git("diff", "-U0", "--no-color", "--no-ext-diff", change.base, "--", name, root=root)
    lines = change.lines.setdefault(name, set())
    for start, count in re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", said, re.MULTILINE):
        first, length = int(start), int(count or 1)
        # What is only deleted has no line of its own: those on either side stand for it.
        lines |= set(range(first, first + length)) or {first, first + 1}


def _imported(module: ast.Module) -> set[str]:
    """The packages and modules that a file imports, without what is below them."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names


def functions_of(name: str, source: str) -> set[str]:
    """The functions and methods of a file, as the ledger calls them."""
    return set(code.read(name, source).functions)


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
    for node in code.parse(name, source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                starts = [member.lineno, *(one.lineno for one in member.decorator_list)]
                yield owner + member.name, min(starts), member.end_lineno or member.lineno


# -- tests, the catalogue ---------------------------------------------------------------------


def _tests(change: Change, name: str, old: str | None, new: str | None) -> None:
    was, now = code.read(name, old), code.read(name, new)
    tests_was, tests = _nodes(name, was), _nodes(name, now)
    helpers = set(was.functions) - set(tests_was.values())
    shared = _weaker(was, now, helpers)
    for node, function in tests_was.items():
        if node not in tests:
            change.deleted_tests.append(node)
        elif shared or was.functions[function] != now.functions[function]:
            change.changed_tests.add(node)
            change.altered_tests.append(node)
    change.changed_tests |= set(tests) - set(tests_was)


def _nodes(name: str, file: code.Code) -> dict[str, str]:
    """The tests of a file: the function of each node id."""
    nodes: dict[str, str] = {}
    for function in file.functions:
        owner, _, test = function.rpartition(".")
        if test.startswith("test_") and (not owner or owner.startswith("Test")):
            nodes[f"{name}::{function.replace('.', '::')}"] = function
    return nodes


def _weaker(was: code.Code, now: code.Code, helpers: set[str]) -> bool:
    """Whether what tests share is another: more of it changes none of them, unless it runs by
    itself (a fixture, a statement) or takes the name of what they use."""
    if any(was.functions[name] != now.functions.get(name) for name in helpers):
        return True
    tests = {f"def {name}" for name in was.functions if name not in helpers}
    before = [(part.name, part.code) for part in was.parts if part.name not in tests]
    after = [(part.name, part.code) for part in now.parts]
    if any(part not in after for part in before):
        return True
    added = [part for part in now.parts if (part.name, part.code) not in before]
    return any(
        part.name.partition(" ")[0] in ("module", "in")
        or part.name.partition(" ")[2] in was.read
        or READ_BY_PYTEST.match(part.name.partition(" ")[2].rpartition(".")[2]) is not None
        or (part.name.startswith("def ") and bool(part.code) and "test_" not in part.name)
        for part in added
        if part.name not in tests
    )


def _shared(change: Change, name: str, old: str | None, new: str | None) -> None:
    """A file that tests use, and that is none of them."""
    configures = Path(name).name in CONFIGURES
    if configures and _pytest_of(name, old) == _pytest_of(name, new):
        return
    if old is None and not configures:
        return
    if name.endswith(".py") and old is not None and new is not None and not configures:
        was, now = code.read(name, old), code.read(name, new)
        if not _weaker(was, now, set(was.functions)):
            return
    change.shared.append(name)


def _pytest_of(name: str, text: str | None) -> object:
    """What of a file says how tests are run."""
    try:
        if name == "setup.cfg":
            config = configparser.ConfigParser(interpolation=None)
            config.read_string(text or "")
            return dict(config["tool:pytest"]) if "tool:pytest" in config else {}
        if name == "pyproject.toml":
            return tomllib.loads(text or "").get("tool", {}).get("pytest", {})
    except (configparser.Error, tomllib.TOMLDecodeError):
        return text
    return code.read(name, text).whole if name.endswith(".py") else text


def _outcomes(change: Change, harness: str, old: str | None, new: str | None) -> None:
    was, now = (dict(_rows(text or "")) for text in (old, new))
    change.outcomes += [
        f"{harness}/{file}: {outcome} -> {now[file]}"
        for file, outcome in was.items()
        if file in now and now[file] != outcome
    ]


def _rows(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        file, _, rest = line.partition("\t")
        yield file, rest.partition("\t")[0]


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
