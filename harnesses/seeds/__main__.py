"""Writes the handmade part of the corpus: inputs, outcomes and provenance.

    python -m harnesses.seeds

Files that are not handmade (real clients' flights, what a campaign found) stay
as they are. Outcomes of handmade inputs, and their reasons, come from the case,
where they were written by hand; nothing is run. Exit codes: 0 they are written,
2 the command line cannot be used.
"""

from __future__ import annotations

import argparse
import importlib

from .. import HARNESSES, outcomes, provenance
from ..outcomes import Outcome
from .case import Case

PREFIX = "handmade-"


def cases() -> dict[str, dict[str, Case]]:
    """The handmade inputs of each harness."""
    return {name: importlib.import_module(f".{name}", __package__).cases() for name in HARNESSES}


def main() -> None:
    """Makes the handmade files as the cases say, and takes away those that no case makes."""
    sources = provenance.read()
    made = cases()
    for name in HARNESSES:
        folder = outcomes.folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        table = outcomes.read(name) if outcomes.path(name).exists() else {}
        kept = {file: line for file, line in table.items() if not file.startswith(PREFIX)}
        for stale in set(table) - set(kept) - set(made.get(name, {})):
            (folder / stale).unlink(missing_ok=True)
            sources.pop(f"{name}/{stale}", None)
        for file, case in made.get(name, {}).items():
            (folder / file).write_bytes(case.data)
            kept[file] = Outcome(case.outcome, case.reason)
            sources[f"{name}/{file}"] = f"made by harnesses.seeds: {case.what}"
        outcomes.write(name, kept)
    provenance.write(sources)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m harnesses.seeds", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    # It has no option; --help, and a word that is none, must not write.
    parser.parse_args()
    main()
