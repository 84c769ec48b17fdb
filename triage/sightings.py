"""What a run left: its findings, the inputs that ended a process, and those it kept as new.

A run's folder is read as it lies, finished or killed half way. The same input may lie in it more
than once (libFuzzer's artifact, and the finding made of it) and is one sighting. A sighting's key
is the input's digest and the time of its oldest file, so that a folder that is read twice, or moved
and read again, counts once, and a new run's folder of the same name counts anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harnesses import HARNESSES, outcomes

from . import signature
from .signature import Signature

ARTIFACTS = {
    "crash": "crash",
    "timeout": "timeout",
    "oom": "out-of-memory",
    "slow": "slow",
}
"""libFuzzer's names for an input that ended a process, or was slow; and ours."""

PARTS = ("findings", "shards", "new")
KNOWN_HARNESSES = (*HARNESSES, "recordings", "injection")


class SightingsError(ValueError):
    """What was named is no run's folder and no replay's JSON. The message says why."""


@dataclass(frozen=True)
class Sighting:
    """An input, and what the run said of it: nothing, for one that only reached something new."""

    harness: str
    data: bytes
    file: Path
    moment: int
    said: Signature | None = None
    detail: str = ""
    traceback: list[str] = field(default_factory=list)
    committed: str = ""

    @property
    def key(self) -> str:
        """What makes it the same when it is read again."""
        digest = hashlib.sha256(self.data).hexdigest()[:16]
        return f"{self.harness}:{digest}@{self.moment}"

    @property
    def when(self) -> str:
        """When it was found."""
        moment = datetime.fromtimestamp(self.moment // 10**9, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Taken:
    """All that one path holds; `unread` are files that should hold something and do not."""

    sightings: list[Sighting] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read(path: Path) -> Taken:
    """What lies at a path. Raises SightingsError when that is nothing of ours."""
    if not path.exists():
        raise SightingsError(f"there is no {path}")
    taken = Taken()
    if path.is_file():
        _replay(path, taken)
    elif not any((path / part).exists() for part in (*PARTS, "summary.json")):
        # Also what a run leaves that was killed before it began: no reason to take nothing else.
        taken.unread.append(f"{path} has no folder {', '.join(PARTS)}: no run left it")
    else:
        for sighting in (*_findings(path, taken), *_artifacts(path), *_new(path)):
            taken.sightings.append(sighting)
    taken.sightings = _once(taken.sightings)
    return taken


def _once(sightings: list[Sighting]) -> list[Sighting]:
    """Each input once: with what was said of it first, and the time of its oldest file."""
    kept: dict[tuple[str, bytes], Sighting] = {}
    for one in sightings:
        before = kept.setdefault((one.harness, one.data), one)
        kept[one.harness, one.data] = replace(before, moment=min(before.moment, one.moment))
    return list(kept.values())


def _harness(folder: Path) -> str:
    if folder.name not in KNOWN_HARNESSES:
        raise SightingsError(f"{folder}: there is no harness {folder.name!r}")
    return folder.name


def _findings(path: Path, taken: Taken) -> Iterator[Sighting]:
    """What the runner saved, and what was adopted at a campaign's end."""
    for report in sorted(path.glob("findings/*/*.json")):
        harness = _harness(report.parent)
        try:
            data = json.loads(report.read_bytes())
            told, detail = data["signature"], str(data["detail"])
            file = report.with_name(str(data["input"]))
            kind = told["kind"]
            if told["oracle"] is None and "says" not in told and kind in signature.KINDS:
                said = signature.ended(harness, kind, told["frames"])
            else:
                said = signature.raised(harness, told, detail)
            trace = [str(line) for line in data.get("traceback", [])]
            found = Sighting(
                harness, file.read_bytes(), file, file.stat().st_mtime_ns, said, detail, trace
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            taken.unread.append(f"{report} is no finding: {error}")
            continue
        yield found


def _artifacts(path: Path) -> Iterator[Sighting]:
    """What libFuzzer left in each shard's folder (NAME is the harness and a number)."""
    for file in sorted(path.glob("shards/*/artifacts/*")):
        kind = ARTIFACTS.get(file.name.split("-", 1)[0])
        harness = file.parent.parent.name.rpartition("-")[0]
        if kind is not None and harness in KNOWN_HARNESSES and file.is_file():
            said = signature.ended(harness, kind)
            moment = file.stat().st_mtime_ns
            yield Sighting(harness, file.read_bytes(), file, moment, said, f"libFuzzer: {kind}")


def _new(path: Path) -> Iterator[Sighting]:
    """Inputs that reached something new: nothing was said of them, but no fuzzer weighs memory."""
    for file in sorted(path.glob("new/*/*")):
        if file.is_file() and not file.name.startswith("."):
            harness = _harness(file.parent)
            yield Sighting(harness, file.read_bytes(), file, file.stat().st_mtime_ns)


def _replay(path: Path, taken: Taken) -> None:
    """What `residue replay --json` printed: wrong outcomes, and committed inputs that fail."""
    try:
        rows = json.loads(path.read_bytes())
        if not isinstance(rows, list):
            raise ValueError("it is no list")
        for row in rows:
            if row["wrong"]:
                _wrong(row, path, taken)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SightingsError(f"{path} is not what residue replay --json prints: {error}") from None


def _wrong(row: dict[str, Any], path: Path, taken: Taken) -> None:
    harness, name, found = str(row["harness"]), str(row["file"]), row["outcome"]
    expected = row["expected"]
    if found is not None and expected is None:
        # Nothing is wrong with the engine: the corpus lacks a line, and replay is red for that.
        return
    file = outcomes.folder(harness) / name if row["committed"] else Path(name)
    if row["committed"] and not file.exists():
        return  # so is it with an outcome that has no input
    committed = f"{harness}/{name}" if row["committed"] else ""
    try:
        data = file.read_bytes()
    except OSError as error:
        taken.unread.append(f"{file}: {error.strerror}")
        return
    said = None if found is None else signature.outcome(harness, str(expected), str(found))
    taken.sightings.append(
        Sighting(
            harness, data, file, path.stat().st_mtime_ns, said, str(row["wrong"]), [], committed
        )
    )
