"""A bucket: one bug, as far as its signature tells; how often it was seen, its smallest input."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import signature
from .signature import Signature

MOST_SIGHTINGS = 1_000
"""Sightings are kept so that none is counted twice; the oldest are forgotten first."""

NOT_REPRODUCED = "not reproduced"
CAME_BACK = "came back"


@dataclass(frozen=True)
class Bucket:
    """What is kept of a bucket. Times are UTC, as ISO 8601 has them.

    `reproduced` says that its input showed it when it was run again in a fresh process. `fixed` is
    when a replay found it gone; empty otherwise. `sightings` are keys of `triage.sightings`.
    """

    signature: Signature
    detail: str
    first_seen: str
    last_seen: str
    count: int = 0
    size: int = 0
    seconds: float = 0.0
    memory_kb: int = 0
    minimised: bool = False
    reproduced: bool = True
    fixed: str = ""
    note: str = ""
    committed: str = ""
    traceback: list[str] = field(default_factory=list)
    sightings: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The name that follows from the signature: of its files, and what commands are told."""
        return self.signature.id

    def seen(self, key: str, when: str) -> Bucket:
        """The bucket after a sighting; the same bucket when that one was counted."""
        if key in self.sightings:
            return self
        back = self.fixed and when > self.fixed
        return replace(
            self,
            count=self.count + 1,
            first_seen=min(self.first_seen, when),
            last_seen=max(self.last_seen, when),
            sightings=[*self.sightings, key][-MOST_SIGHTINGS:],
            fixed="" if back else self.fixed,
            note=f"{CAME_BACK}: it was fixed {self.fixed}" if back else self.note,
        )

    def stored(self) -> dict[str, Any]:
        """What a store keeps."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["signature"] = vars(self.signature)
        return {"id": self.id, **data}

    def as_data(
        self, file: Path, shown: str, state: str, reason: str, until: str
    ) -> dict[str, Any]:
        """A bucket as other programs read it. `shown` is how a person would type its file."""
        made = self.signature
        return {
            "id": self.id,
            "harness": made.harness,
            "kind": made.kind,
            "oracle": made.oracle,
            "error": made.error,
            "refusal": made.refusal,
            "frames": list(made.frames),
            "expected": made.expected,
            "found": made.found,
            "detail": self.detail,
            "note": self.note,
            "first_seen": self.first_seen,
            "last_seen": self.last_seen,
            "count": self.count,
            "size": self.size,
            "input": str(file),
            "committed": self.committed,
            "seconds": self.seconds,
            "memory_kb": self.memory_kb,
            "minimised": self.minimised,
            "reproduced": self.reproduced,
            "state": state,
            "reason": reason,
            "expires": until,
            "fixed": self.fixed,
            "reproduce": f"residue replay {made.harness} {shlex.quote(shown)}",
            "traceback": self.traceback,
        }


def from_stored(data: Mapping[str, Any]) -> Bucket:
    """A bucket as a store has it; ValueError, TypeError or KeyError for what is none."""
    fields = {key: value for key, value in data.items() if key != "id"}
    made = Bucket(**{**fields, "signature": signature.from_data(data["signature"])})
    if made.id != data["id"]:
        raise ValueError(f"its signature is that of {made.id}")
    return made
