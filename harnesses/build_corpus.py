"""Writes the handmade part of the corpus: inputs, outcomes and provenance.

    python -m harnesses.build_corpus

Files that are not handmade (real clients' flights, what a campaign found) stay as they are.
Outcomes of handmade inputs, and their reasons, come from the case, where they were written by hand;
nothing is run.
"""

from __future__ import annotations

from . import (
    HARNESSES,
    handmade_clientauth,
    handmade_differential,
    handmade_hello,
    handmade_keyed,
    handmade_pool,
    handmade_server,
    handmade_ticket,
    outcomes,
    provenance,
)
from .handmade_hello import Case
from .outcomes import Outcome

PREFIX = "handmade-"


def cases() -> dict[str, dict[str, Case]]:
    """The handmade inputs of each harness."""
    return {
        "hello": handmade_hello.cases(),
        "server": handmade_server.cases(),
        "keyed": handmade_keyed.cases(),
        "ticket": handmade_ticket.cases(),
        "clientauth": handmade_clientauth.cases(),
        "pool": handmade_pool.cases(),
        "differential": handmade_differential.cases(),
    }


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
            sources[f"{name}/{file}"] = f"made by harnesses.build_corpus: {case.what}"
        outcomes.write(name, kept)
    provenance.write(sources)


if __name__ == "__main__":
    main()
