"""What the suite is told of the project that it tests: the section [suite] of setup.cfg.

No module of ci/, triage/ or mutants/ has the name of the package under test in it, nor one of a
harness: another project has another section, other harnesses and another catalogue, and the same
suite. The reader is here and not in ci/, because a staged copy has no ci/.
"""

from __future__ import annotations

import configparser
import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 1e6


class SettingsError(ValueError):
    """A section that cannot be used. The message is one line that says why."""


@dataclass(frozen=True)
class Suite:
    """The section, typed. Paths are relative to the checkout, with `/`."""

    package: str
    """The package under test: its folder, and what it is imported as."""
    tests: str
    """The folder of the tests that may kill its mutants."""
    harnesses: str
    """The package of the harnesses; its HARNESSES are their names."""
    beside: tuple[str, ...]
    """Further folders that a harness imports."""
    read: tuple[str, ...]
    """Further folders that a test reads."""
    corpus: str
    catalogue: str
    ledger: str
    refusal_probe: str
    """A module whose `Watch` sees which refusals an input reaches."""
    refusal_matrix: str
    """A module whose `coverage` says which of the possible ones were reached."""
    mutated: tuple[str, ...]
    """The files that `residue mutate` takes when none is named."""
    small_file: str
    """One that is mutated in moments, for an example."""
    small_input: str
    """A committed input of the first harness, for an example."""
    slice_lines: int
    """So many lines of code, at most, are mutated in a night."""
    state_machine: str
    """The test that a night runs for as long as it has."""
    weights: Mapping[str, float]
    """How much more than the others a harness is fuzzed, where not as much."""
    floor_executions: float
    """Executions a second of a harness's own processor time, its start included."""
    floor_edges: int
    """Edges that the instrumentation reports."""
    floor_lines: float
    """Percent of the package's lines that the merged corpora of all harnesses reach."""
    floor_branches: float
    """Percent of its branches."""

    @property
    def planted(self) -> tuple[str, ...]:
        """The folders that a tree needs in which a harness is run."""
        return (self.package, self.harnesses, *self.beside)

    def version(self) -> str:
        """The package's own, for which it is imported; not every package says one."""
        return str(getattr(importlib.import_module(self.package), "__version__", "unknown"))

    def has(self, file: str) -> bool:
        """Whether a file of the checkout is one of the package under test."""
        return file.startswith(f"{self.package}/")


def read(path: Path = ROOT / "setup.cfg") -> Suite:
    """The section of a file; SettingsError for a key that is missing, unknown, or no such value."""
    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None
    if "suite" not in config:
        raise SettingsError(f"{path.name} has no section [suite]")
    section = config["suite"]
    keys = {field.name for field in fields(Suite)}
    for what, which in (("no", keys - set(section)), ("an unknown", set(section) - keys)):
        if which:
            raise SettingsError(f"{path.name} [suite] has {what} {', '.join(sorted(which))}")

    def number(key: str, text: str | None = None) -> float:
        try:
            value = float(section[key] if text is None else text)
        except ValueError:
            value = math.nan
        # A NaN is neither: a floor that nothing is under would let everything through.
        if not 0 <= value <= MOST:
            raise SettingsError(f"{path.name} [suite] {key}: {section[key]!r}")
        return value

    weights = (word.partition("=") for word in section["weights"].split())
    return Suite(
        package=section["package"],
        tests=section["tests"],
        harnesses=section["harnesses"],
        beside=tuple(section["beside"].split()),
        read=tuple(section["read"].split()),
        corpus=section["corpus"],
        catalogue=section["catalogue"],
        ledger=section["ledger"],
        refusal_probe=section["refusal_probe"],
        refusal_matrix=section["refusal_matrix"],
        mutated=tuple(section["mutated"].split()),
        small_file=section["small_file"],
        small_input=section["small_input"],
        slice_lines=int(number("slice_lines")),
        state_machine=section["state_machine"],
        weights={harness: number("weights", text) for harness, _, text in weights},
        floor_executions=number("floor_executions"),
        floor_edges=int(number("floor_edges")),
        floor_lines=number("floor_lines"),
        floor_branches=number("floor_branches"),
    )


SUITE = read()
