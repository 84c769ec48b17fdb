"""The slices of the engine, of which a night mutates one.

A slice is a file, or some functions of it that stand together, small enough for the share that a
short night has for it: some hundred mutants. Its name says what is in it, so a score is compared
with that of the same functions.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

from ci.process import ROOT
from mutants.settings import SUITE

LINES = SUITE.slice_lines


@dataclass(frozen=True)
class Slice:
    """Functions of a file; all of them when none is named."""

    file: str
    functions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file, and from which function to which."""
        if not self.functions:
            return self.file
        first, last = self.functions[0], self.functions[-1]
        return f"{self.file} {first}" if first == last else f"{self.file} {first} to {last}"

    @property
    def arguments(self) -> list[str]:
        """What `residue mutate` is given."""
        return [self.file, *(word for name in self.functions for word in ("--function", name))]


def slices(root: Path = ROOT) -> list[Slice]:
    """Every slice, in the order of the files and of the functions in them."""
    found: list[Slice] = []
    for path in sorted((root / SUITE.package).rglob("*.py")):
        file = path.relative_to(root).as_posix()
        sizes = _functions(ast.parse(path.read_text(encoding="utf-8")))
        parts = _parts(sizes)
        found += [Slice(file, tuple(part)) if len(parts) > 1 else Slice(file) for part in parts]
    return found


def _functions(tree: ast.Module) -> dict[str, int]:
    """The functions that get mutants, in order, and how many lines each has."""
    sizes: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            sizes[node.name] = _lines(node)
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and _mutated(one):
                    sizes[f"{node.name}.{one.name}"] = _lines(one)
    return sizes


def _mutated(method: ast.FunctionDef) -> bool:
    """A decorated method gets no mutants, but for a lone staticmethod or classmethod."""
    names = [ast.unparse(one) for one in method.decorator_list]
    return names in ([], ["staticmethod"], ["classmethod"])


def _lines(node: ast.FunctionDef) -> int:
    """Lines from the first statement that is no docstring to the last."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1 if body else 0


def _parts(sizes: dict[str, int]) -> list[list[str]]:
    """Functions in a row with about as many lines in each part, and no part much over LINES."""
    total = sum(sizes.values())
    if not total:
        return []
    count = -(-total // LINES)
    parts: list[list[str]] = [[]]
    before = 0
    for name, lines in sizes.items():
        # A function belongs to the part that its middle falls into.
        place = int((before + lines / 2) * count / total)
        if place >= len(parts) and parts[-1]:
            parts.append([])
        parts[-1].append(name)
        before += lines
    return parts
