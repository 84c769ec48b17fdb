"""The parts of the engine that run on import and changed: each is put back, and a test must notice.

No switch can hold a mutant of them. What a part was before the change is the one mutant that is
known to matter: a test that watches the change fails with it. A part that takes decisions of its
own (a lambda, a function under an `if`) is not settled by that, and has to be argued.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ci.gate.code import Changed
from ci.gate.run import Run
from ci.process import Job, run_all
from ci.wording import many
from mutants.ledger import Entry

LIMIT = 300.0


def search(gate: Run) -> str:
    """Put each part back and run the tests of its file."""
    # Here and not above: mutmut is an extra.
    from mutants import stage

    begun = time.monotonic()
    parts = [(file, part) for file, found in sorted(gate.change.parts.items()) for part in found]
    tree = gate.folder / "parts" / "tree"
    stage.copy(tree, gate.root)
    clean: set[str] = set()
    tried = noticed = 0
    for file, changed in parts:
        part, late = changed.part, time.monotonic() - begun > gate.settings.numbers["lost_seconds"]
        if gate.argued(entry_of(file, changed)) or gate.stop:
            continue
        if changed.decides:
            message = f"{part.name} decides something, and no mutant can be made of it"
            gate.add_finding("unmutable", message, file, part.line, told(changed))
        elif changed.reverted is not None and late:
            message = f"{part.name}: no time to ask the tests (lost_seconds of setup.cfg)"
            gate.add_question("unseen", message, file, part.line, told(changed))
        elif changed.reverted is not None:
            if file not in clean and not _passes(gate, tree, file):
                gate.add_finding("tests", "its tests fail with no mutant", file)
                continue
            clean.add(file)
            (tree / file).write_text(changed.reverted, encoding="utf-8")
            passes = _passes(gate, tree, file)
            (tree / file).write_bytes((gate.root / file).read_bytes())
            tried, noticed = tried + 1, noticed + (not passes)
            if passes and not gate.stop:
                message = f"{part.name}: no test tells it from what it was"
                gate.add_finding("unseen", message, file, part.line, told(changed))
    return f"{many(len(parts), 'part')}, {tried} put back, {noticed} noticed"


def _passes(gate: Run, tree: Path, file: str) -> bool:
    """Whether the tests of a file pass. One that cannot be imported or never ends does not."""
    from mutants import stage

    tests = [name for name in gate.settings.of(file) if (tree / name).exists()]
    argv = [sys.executable, "-m", "mutants.tests", *tests]
    argv += [f"--deselect={name}" for name in gate.settings.leave_out]
    job = Job(argv, tree.parent / "log", LIMIT, dict(stage.ENVIRONMENT), tree)
    run_all([job], 1, gate.stop, stops_at=1)
    return job.code == 0


def entry_of(file: str, changed: Changed) -> Entry:
    """The ledger's entry that would argue a part."""
    return Entry(file, changed.part.name, plain(changed.was), plain(changed.now), "", 1)


def plain(text: str) -> str:
    """Lines without their indentation, as the ledger has them."""
    return "\n".join(line.strip() for line in text.splitlines())


def told(changed: Changed) -> str:
    """A part before and after, to read."""
    lines = [f"-{line}" for line in changed.was.splitlines()]
    lines += [f"+{line}" for line in changed.now.splitlines()]
    return "\n".join([*lines, f'in the ledger: function = "{changed.part.name}"'])
