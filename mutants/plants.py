"""Planted faults: the one mechanism by which the suite proves that it can fail.

An oracle that has never been seen to fail may be unable to. A *plant* is a bug made on purpose: one
file, a text that occurs in it exactly once, its replacement, the rule it breaks and what must see
it. It is applied to a copy of the tree, never in place, so that nothing of a killed run stays
behind.

The text must occur exactly once. A text that occurs twice could plant another bug than the one
described, and a text that no longer occurs would plant none: both are errors, so a stale entry is
red and cannot pass for a fault that nothing noticed.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutants.settings import ROOT, SUITE

CATALOGUE = ROOT / SUITE.catalogue

# What a planted tree needs to run a harness. Corpora are read from the tree the test stands in.
FOLDERS = SUITE.planted
FIELDS = ("name", "file", "text", "replacement", "rule", "detected_by")


# The kinds of detected_by and how many words follow each: an oracle of a harness on a committed
# input, an oracle of injection into a scenario, or a test by its node id.
WITNESSES = {"oracle": 3, "injection": 2, "test": 1}


class PlantError(ValueError):
    """A catalogue entry that cannot be used: a missing field, a stale text, a name used twice."""


@dataclass(frozen=True)
class Plant:
    """One bug, where it goes, the rule it breaks, and everything that must notice it.

    A line of `detected_by` is `oracle HARNESS ORACLE INPUT`, a committed input that the harness
    reports under just that oracle; `injection SCENARIO ORACLE`, a scenario in which an injection
    at some place trips that oracle; or `test NODE`, a test that fails.
    """

    name: str
    file: str
    text: str
    replacement: str
    rule: str
    detected_by: tuple[str, ...]


def load(path: Path) -> tuple[Plant, ...]:
    """The entries of one catalogue file, in its order; PlantError for one that is not whole."""
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> tuple[Plant, ...]:
    """The entries of a catalogue file's text."""
    try:
        entries = tomllib.loads(text).get("plant", [])
    except tomllib.TOMLDecodeError as error:
        raise PlantError(f"{name}: {error}") from None
    return tuple(_plant(entry, name) for entry in entries)


def load_all(folder: Path = CATALOGUE) -> tuple[Plant, ...]:
    """Every entry of the catalogue; PlantError when two share a name."""
    plants = tuple(plant for path in sorted(folder.glob("*.toml")) for plant in load(path))
    seen: set[str] = set()
    for plant in plants:
        if plant.name in seen:
            raise PlantError(f"two plants are called {plant.name}")
        seen.add(plant.name)
    return plants


def planted(plant: Plant, root: Path = ROOT) -> str:
    """The file's text with the fault in it; PlantError unless the text occurs exactly once."""
    source = (root / plant.file).read_text(encoding="utf-8")
    count = source.count(plant.text)
    if count != 1:
        raise PlantError(f"{plant.name}: its text occurs {count} times in {plant.file}, not once")
    edited = source.replace(plant.text, plant.replacement)
    if edited == source:
        raise PlantError(f"{plant.name}: the replacement changes nothing")
    return edited


def copy(dest: Path, *, root: Path = ROOT, folders: Iterable[str] = FOLDERS) -> Path:
    """Copies the folders a harness needs to `dest`, and returns it.

    Bytecode is left out: a cached file of the same size and second would hide the edit.
    """
    for folder in folders:
        if (root / folder).is_dir():
            shutil.copytree(
                root / folder,
                dest / folder,
                ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
                dirs_exist_ok=True,
            )
    return dest


def apply(plant: Plant, dest: Path, *, root: Path = ROOT, folders: Iterable[str] = FOLDERS) -> Path:
    """Copies the folders to `dest`, makes the edit there and nowhere else, and returns `dest`."""
    edited = planted(plant, root)
    copy(dest, root=root, folders=folders)
    target = dest / plant.file
    if not target.is_file():
        raise PlantError(f"{plant.name}: {plant.file} is in none of the copied folders")
    target.write_text(edited, encoding="utf-8")
    return dest


def oracle_witnesses(plant: Plant) -> Iterator[tuple[str, str, str]]:
    """The harness, the oracle and the committed input of each `oracle` line of `detected_by`."""
    for line in plant.detected_by:
        kind, *words = line.split(" ")
        if kind == "oracle":
            harness, oracle, file = words
            yield harness, oracle, file


def injection_witnesses(plant: Plant) -> Iterator[tuple[str, str]]:
    """The scenario and the oracle of each `injection` line of `detected_by`."""
    for line in plant.detected_by:
        kind, *words = line.split(" ")
        if kind == "injection":
            scenario, oracle = words
            yield scenario, oracle


def _plant(entry: dict[str, object], name: str) -> Plant:
    missing = [field for field in FIELDS if not entry.get(field) and field != "replacement"]
    unknown = sorted(set(entry) - set(FIELDS))
    if missing or unknown:
        raise PlantError(f"{name}: {entry.get('name')}: missing {missing}, unknown {unknown}")
    detected_by = entry["detected_by"]
    if not isinstance(detected_by, list) or not all(isinstance(line, str) for line in detected_by):
        raise PlantError(f"{name}: {entry['name']}: detected_by is a list of strings")
    for line in detected_by:
        kind, *words = line.split(" ")
        if WITNESSES.get(kind) != len(words):
            raise PlantError(f"{name}: {entry['name']}: no such detected_by: {line}")
    texts = {field: entry.get(field, "") for field in FIELDS if field != "detected_by"}
    for field, value in texts.items():
        if not isinstance(value, str):
            raise PlantError(f"{name}: {entry['name']}: {field} is a string")
    return Plant(
        **{field: str(value) for field, value in texts.items()}, detected_by=tuple(detected_by)
    )
