"""The rooms of `ci/`: few, with no circle between them, and each command by its name."""

import ast
from pathlib import Path

import pytest

from ci.command import COMMANDS
from ci.process import ROOT

CI = ROOT / "ci"
# As many as a person takes in when the folder is listed.
MOST_ROOMS = 20


def rooms(folder: Path) -> set[str]:
    """What lies in a package beside its own `__init__`: its files and its folders, by name."""
    return {
        entry.stem
        for entry in folder.iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").is_file()
    } - {"__init__"}


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package, by its dotted name within it."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(package: Path) -> dict[str, set[str]]:
    """For each module those of the same package that it imports, in functions too."""
    known = modules(package)
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            said = []
            if isinstance(node, ast.Import):
                said = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                # `from ci.night import state` is an import of the module, if there is one.
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                said = [name if name.partition(".")[2] in known else node.module for name in whole]
            inside = {s.partition(".")[2] for s in said if s.partition(".")[0] == package.name}
            graph[name] |= (inside & set(known)) - {name}
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The names of one circle, or none."""
    done: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        for following in sorted(graph[name]):
            if found := search(following, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := search(name, []))), [])


def between(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same between the rooms alone: what a file of one imports of another."""
    made: dict[str, set[str]] = {}
    for name, others in graph.items():
        room = name.partition(".")[0]
        made.setdefault(room, set()).update(o.partition(".")[0] for o in others)
        made[room].discard(room)
    return made


def test_ci_has_few_rooms():
    assert len(rooms(CI)) <= MOST_ROOMS, sorted(rooms(CI))


def test_no_import_of_ci_leads_back_to_where_it_began():
    graph = imports(CI)
    assert circle(between(graph)) == []
    assert circle(graph) == []


def test_a_circle_is_found(tmp_path):
    package = tmp_path / "ci"
    for name, text in {
        "a/__init__.py": "",
        "a/one.py": "from ci.b import two\n",
        "a/other.py": "",
        "b/__init__.py": "",
        "b/two.py": "def f():\n    import ci.a.other\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    graph = imports(package)
    assert graph["a.one"] == {"b.two"} and graph["b.two"] == {"a.other"}
    assert circle(graph) == [] and circle(between(graph)) == ["a", "b"]
    (package / "a" / "other.py").write_text("from ci.a.one import x\n")
    assert circle(imports(package)) == ["a.one", "b.two", "a.other"]
    assert rooms(package) == {"a", "b"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if COMMANDS[name].module[:3] == "ci."])
def test_a_command_is_the_module_of_its_name(name):
    assert COMMANDS[name].module == f"ci.commands.{name}"


def test_every_module_of_the_commands_is_one_or_a_part_of_one():
    for name in rooms(CI / "commands"):
        assert name in COMMANDS or name.partition("_")[0] in COMMANDS, name
