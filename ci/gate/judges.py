"""What judges a change, where the change touches it: said first, and read beside what it was.

A change that chooses what it is judged by is not judged. So settings, ledger, catalogue and
outcomes are those of the merge base and of the change, the stricter of the two; the gate's own code
is the merge base's, in a tree of its own, and the change's beside it.
"""

import configparser
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ci.exits import Exit, Untrusted
from ci.gate import diff
from ci.gate.diff import Change
from ci.mutation.evaluation import Settings, test_file
from ci.process import Job, git
from mutants import ledger, plants
from mutants.ledger import Entry
from mutants.plants import Plant, PlantError
from mutants.settings import SUITE

# The code that judges, which the merge base's gate brings along.
CODE = re.compile(r"ci/.*|triage/.*|mutants/[^/]*\.py")
# Everything that has a word in what is judged, and how.
JUDGES = re.compile(
    CODE.pattern + r"|mutants/.*|harnesses/.*\.py|corpus/[^/]+\.outcomes|setup\.cfg|pyproject\.toml"
    r"|requirements\.lock|Makefile|\.ci/.*|\.github/.*|\.clusterfuzzlite/.*|\.gitignore"
    r"|(.*/)?conftest\.py|(tox|\.?pytest)\.ini|sitecustomize\.py|[^/]*\.pth"
)
# A gate takes five minutes; so much is for a machine that does much else.
LIMIT = 3600.0
LEDGER, CATALOGUE = SUITE.ledger, SUITE.catalogue
# Of these numbers the larger is the stricter; of all others the smaller.
MORE_IS_STRICTER = frozenset({"fuzz_seconds", "lost_seconds"})


def touched(change: Change) -> list[str]:
    """The files that judge and that the change touches."""
    return [
        f"{status} {name}"
        for name, status in sorted(change.files.items())
        if JUDGES.fullmatch(name)
    ]


def code_differs(change: Change) -> bool:
    """Whether the gate itself is another than the merge base's."""
    return any(CODE.fullmatch(name) for name in change.files)


# -- settings, ledger, catalogue --------------------------------------------------------------


def settings(change: Change, own: Settings, root: Path) -> tuple[Settings, list[str]]:
    """The stricter of the merge base's settings and the change's, and what differs."""
    config = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error):
        config.read_string(diff.before(change, "setup.cfg", root) or "")
    numbers, told = dict(own.numbers), []
    for key, text in config["gate"].items() if "gate" in config else ():
        with suppress(ValueError):
            was, now = float(text), own.numbers.get(key)
            if was != now:
                told.append(f"[gate] {key}: {text} -> {'gone' if now is None else f'{now:g}'}")
            stricter = max if key in MORE_IS_STRICTER else min
            numbers[key] = was if now is None else stricter(was, now)
    section = dict(config["mutation"]) if config.has_section("mutation") else {}
    rows: dict[str, tuple[str, ...]] = {}
    for line in filter(None, section.get("tests", "").splitlines()):
        file, _, names = line.partition("=")
        rows[file.strip()] = tuple(map(test_file, names.split()))
    tests = dict(own.tests)
    for file, row in rows.items():
        if row != own.tests.get(file):
            told.append(
                f"[mutation] {file}: {' '.join(row)} -> {' '.join(own.tests.get(file, ()))}"
            )
        # More tests see more; one that is named must be there.
        kept = [name for name in row if (root / name).is_file()]
        tests[file] = tuple(dict.fromkeys([*own.of(file), *kept]))
    left_out = frozenset(filter(None, section.get("leave_out", "").splitlines()))
    if left_out != frozenset(own.leave_out):
        for line in sorted(left_out ^ frozenset(own.leave_out)):
            told.append(f"[mutation] leave_out: {'-' if line in left_out else '+'} {line}")
    return Settings(tests, own.leave_out, numbers), told


def ledger_before(change: Change, root: Path) -> tuple[Entry, ...]:
    """The ledger of the merge base; none of one that cannot be read."""
    with suppress(ledger.LedgerError):
        return ledger.parse(diff.before(change, LEDGER, root) or "", LEDGER)
    return ()


def catalogue_before(change: Change, root: Path) -> dict[str, Plant]:
    """The entries of the merge base's catalogue by name."""
    names = git("ls-tree", "--name-only", "-z", change.base, f"{CATALOGUE}/", root=root)
    found: dict[str, Plant] = {}
    for name in filter(None, names.split("\0")):
        text = diff.before(change, name, root)
        with suppress(PlantError):
            found |= {plant.name: plant for plant in plants.parse(text or "", name)}
    return found


def rewritten(
    was: dict[str, Plant], now: Iterable[Plant], root: Path
) -> tuple[list[Plant], list[str], list[str]]:
    """The entries of the merge base that the change drops or rewrites: those that can still be
    planted, what a person must answer for, and what is only to be said.

    An entry whose text the change took away follows the code: the same rule, seen by the same.
    """
    here = {plant.name: plant for plant in now}
    again: list[Plant] = []
    asked: list[str] = []
    told: list[str] = []
    for name, plant in was.items():
        new = here.get(name)
        if new == plant:
            continue
        try:
            plants.planted(plant, root)
            again.append(plant)
        except (PlantError, FileNotFoundError):
            stands = new and (new.rule, new.detected_by, new.file) == (
                plant.rule,
                plant.detected_by,
                plant.file,
            )
            if stands:
                told.append(f"{name}: rewritten with its code")
                continue
        if new is None:
            asked.append(f"{name} left the catalogue: {plant.rule}")
        else:
            asked.append(f"{name} is another bug, rule or witness than it was: {plant.rule}")
    return again, asked, told


# -- the merge base's own gate ----------------------------------------------------------------


def tree(change: Change, dest: Path, root: Path) -> None:
    """The change with the code that judged before it, in a new folder that git takes for the
    checkout.

    Nothing is asked of the merge base's gate but to be run from its root, so one from before this
    was written does.
    """
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", root=root)
    for name in sorted(set(filter(None, listed.split("\0")))):
        source = root / name
        if CODE.fullmatch(name) or not os.path.lexists(source) or source.is_dir():
            continue
        (dest / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, dest / name, follow_symlinks=False)
    known = git("ls-tree", "-r", "--name-only", "-z", change.base, root=root)
    judges = [name for name in known.split("\0") if CODE.fullmatch(name)]
    if "ci/__main__.py" not in judges:
        raise Untrusted("the merge base has no gate: nothing but the change itself could judge it")
    for name in judges:
        (dest / name).parent.mkdir(parents=True, exist_ok=True)
        text = git("show", f"{change.base}:{name}", root=root)
        (dest / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    folder = git("rev-parse", "--absolute-git-dir", root=root).strip()
    (dest / ".git").write_text(f"gitdir: {folder}\n", encoding="utf-8")


def job(change: Change, jobs: int, folder: Path, tree: Path, *more: str) -> Job:
    """The gate of a tree, run from its root; what it finds will be in `folder`/out/gate.json."""
    argv = [sys.executable, "-m", "ci", "gate", "--since", change.base, "--jobs", str(jobs)]
    argv += ["--out", str(folder / "out"), *more]
    # Git writes down what it saw of a tree; this one is not the checkout's.
    own = {"GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    # The run's summary page is for what all gates found together.
    own |= {"GITHUB_ACTIONS": "", "GITHUB_STEP_SUMMARY": ""}
    return Job(argv, folder / "log", LIMIT, own, tree)


def found(job: Job, folder: Path) -> dict[str, Any]:
    """What a gate found; Untrusted where it did not come to an end."""
    try:
        data: dict[str, Any] = json.loads((folder / "out" / "gate.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        data = {}
    if job.code not in (Exit.CLEAN, Exit.FOUND, Exit.UNTRUSTED) or "findings" not in data:
        said = job.log.read_text("utf-8", errors="replace").strip().splitlines() or ["nothing"]
        raise Untrusted(f"ended with {job.code}, and said: {said[-1]}")
    return data
