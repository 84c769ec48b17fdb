"""The parts of docs/architecture.md that follow from the code: the picture, and a line a file.

    python docs/architecture.py            says whether the page is stale
    python docs/architecture.py --update   writes it (`make docs`)

Arrows are read from the import statements, lines from the first sentence of each module's
docstring. The table of who may import whom is the page's own, written by hand: it is read here,
for the test that holds the code to it. Exit codes: 0 the page is right, 1 it is stale.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/architecture.md")
# Between the lines that name it, a part of the page is this module's.
PART = "<!-- {} by docs/architecture.py -->"
END = "<!-- end -->"


@dataclass(frozen=True)
class Folder:
    """A row of the page's table: what a folder's modules may import."""

    ours: frozenset[str]
    packages: frozenset[str] | None
    """Beside the standard library; None is whatever is installed."""


def rules(root: Path = ROOT) -> dict[str, Folder]:
    """The table of who may import whom, by folder."""
    text = (root / PAGE).read_text(encoding="utf-8")
    _, _, table = text.partition("| folder | may import |")
    found = {}
    for row in table.partition("\n\n")[0].splitlines()[2:]:
        folder, ours, packages = row.split("|")[1:4]
        found[_names(folder).pop()] = Folder(
            frozenset(_names(ours)), None if "any" in packages else frozenset(_names(packages))
        )
    return found


def _names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def packages(root: Path = ROOT) -> list[str]:
    """The folders of the root that are packages, the tests left out."""
    return sorted(
        entry.name
        for entry in root.iterdir()
        if (entry / "__init__.py").is_file() and entry.name != "tests"
    )


def sources(root: Path = ROOT) -> list[Path]:
    """Every module of every package."""
    return [path for name in packages(root) for path in sorted((root / name).rglob("*.py"))]


def imported(path: Path, root: Path = ROOT) -> set[str]:
    """The absolute names that a file imports, in functions too; relative ones made absolute.

    Of `from a import b` that is `a`, and `a.b` where it is a module or a package.
    """
    names = set()
    package = path.relative_to(root).with_suffix("").parts[:-1]
    for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            whole = ".".join([*base, *([node.module] if node.module else [])])
            names.add(whole)
            for alias in node.names:
                inside = root.joinpath(*whole.split("."), alias.name)
                if inside.with_suffix(".py").is_file() or inside.is_dir():
                    names.add(f"{whole}.{alias.name}")
    return names


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement within, and no expression, which are most of a tree and import nothing."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, block, ()):
            yield child
            yield from _statements(child)


def arrows(folders: list[str], root: Path = ROOT) -> set[tuple[str, str]]:
    """Which of the folders imports which: the innermost one that a module is in counts."""

    def home(name: str) -> str:
        inside = [f for f in folders if f"{name}.".startswith(f.replace("/", ".") + ".")]
        return max(inside, key=len, default="")

    found = set()
    for path in sources(root):
        here = home(".".join(path.relative_to(root).with_suffix("").parts))
        for name in imported(path, root):
            there = home(name)
            if here and there and here != there:
                found.add((here, there))
    return found


def picture(folders: list[str], root: Path = ROOT) -> str:
    """The arrows as a picture in Mermaid's words; what can be had through another is left out."""
    direct = arrows(folders, root)
    shown = {(a, b) for a, b in direct if not _leads(direct - {(a, b)}, a, b)}
    names = {folder: f"n{number}" for number, folder in enumerate(folders)}
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {names[folder]}["{folder}"]' for folder in folders]
    lines += [f"    {names[a]} --> {names[b]}" for a, b in sorted(shown)]
    return "\n".join([*lines, "```"])


def _leads(edges: set[tuple[str, str]], start: str, goal: str) -> bool:
    """Whether a way leads from one to the other."""
    seen, todo = set(), [start]
    while todo:
        here = todo.pop()
        if here == goal:
            return True
        if here not in seen:
            seen.add(here)
            todo += [b for a, b in edges if a == here]
    return False


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring, on one line; empty without one."""
    # Read and not parsed, because there are hundreds.
    found = re.match(r'"""(.*?)(?:\n\n|""")', path.read_text(encoding="utf-8"), re.DOTALL)
    paragraph = " ".join(found[1].split()) if found else ""
    return re.split(r"(?<=[.?:])\s+(?=[A-Z])", paragraph)[0].rstrip(".:")


def folders_in(root: Path = ROOT) -> list[str]:
    """Every package and every package within, from the outside."""
    return sorted({path.parent.relative_to(root).as_posix() for path in sources(root)})


def files(root: Path = ROOT) -> Iterator[str]:
    """A heading a folder and a line a file."""
    for folder in folders_in(root):
        what = sentence(root / folder / "__init__.py")
        yield from ("", f"### {folder}/", "", *([f"{what}.", ""] if what else []))
        yield from ("| file | what it is |", "| --- | --- |")
        for path in sorted((root / folder).glob("*.py")):
            if path.name != "__init__.py":
                yield f"| `{path.name}` | {sentence(path)} |"


def page(text: str, root: Path = ROOT) -> str:
    """The page with its parts made again."""
    parts = {
        "the picture": picture(list(rules(root)), root),
        "the files": "\n".join(files(root)).strip(),
    }
    for name, made in parts.items():
        head = PART.format(name)
        before, found, rest = text.partition(head)
        if not found or END not in rest:
            raise ValueError(f"{PAGE} has no part {head} ... {END}")
        text = f"{before}{head}\n\n{made}\n\n{END}{rest.partition(END)[2]}"
    return text


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        prog="python docs/architecture.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--update", action="store_true", help="write the page")
    args = parser.parse_args(argv)
    path = root / PAGE
    text = path.read_text(encoding="utf-8")
    made = page(text, root)
    if made == text:
        return 0
    if args.update:
        path.write_text(made, encoding="utf-8")
        print(f"{PAGE}: written")
        return 0
    print(f"{PAGE} is stale: make docs")
    return 1


if __name__ == "__main__":
    sys.exit(main())
