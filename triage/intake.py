"""Takes sightings into a store: each is run again, and counted in the bucket that it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harnesses.outcomes import ROOT

from .bucket import NOT_REPRODUCED, Bucket
from .limits import Limits
from .prober import Found, Prober, Verdict
from .sightings import Sighting
from .signature import Signature, outcome
from .store import Store

ATTEMPTS = 3
"""How often an input may fail to show its bucket before that is believed."""

COSTS = ("slow", "hungry")


@dataclass
class Probers:
    """One fork server a harness, started when it is first asked; a context manager."""

    root: Path = ROOT
    limits: Limits | None = None

    def __post_init__(self) -> None:
        self._by_harness: dict[str, Prober] = {}

    def __enter__(self) -> Probers:
        return self

    def __exit__(self, *exc: object) -> None:
        for prober in self._by_harness.values():
            prober.stop()

    def __getitem__(self, harness: str) -> Prober:
        if harness not in self._by_harness:
            self._by_harness[harness] = Prober(harness, self.root, self.limits)
        return self._by_harness[harness]


def take(
    store: Store, sightings: list[Sighting], probers: Probers, tell: Callable[[str], None]
) -> int:
    """Run each sighting again and count it; how many were not in the store already."""
    fresh = 0
    counted = {key for made in store.buckets.values() for key in made.sightings}
    for number, sighting in enumerate(sightings, 1):
        tell(f"{number} of {len(sightings)} inputs, {len(store.buckets)} buckets")
        if sighting.key in counted:
            continue
        for found in _identify(sighting, probers[sighting.harness]):
            _count(store, sighting, found)
            fresh += 1
    return fresh


def _identify(sighting: Sighting, prober: Prober) -> list[Found]:
    """What is wrong with an input: what it shows now, or else what was said of it."""
    said = sighting.said
    verdict = prober.judge(sighting.data)
    found = _told(verdict, said)
    for _ in range(ATTEMPTS - 1):
        if found or said is None or said.kind in COSTS:
            break
        found = _told(prober.judge(sighting.data), said)
    # A cost that two runs refute was the load of the machine; all else is kept as it was told.
    if not found and said is not None and said.kind not in COSTS:
        note = f"{NOT_REPRODUCED}: in a fresh process it ended as {verdict.outcome or 'nothing'}"
        return [Found(said, note, sighting.traceback)]
    return found


def _told(verdict: Verdict, said: Signature | None) -> list[Found]:
    """The findings of a verdict; a committed input's wrong outcome is one too."""
    if said is not None and said.kind == "outcome" and verdict.outcome is not None:
        if verdict.outcome != said.expected:
            made = outcome(said.harness, said.expected, verdict.outcome)
            return [Found(made, f"expected {said.expected}, found {verdict.outcome}")]
        return []
    return verdict.found


def _count(store: Store, sighting: Sighting, found: Found) -> None:
    shows = not found.detail.startswith(NOT_REPRODUCED)
    made = store.get(found.signature)
    data: bytes | None = sighting.data
    if made is None:
        made = Bucket(
            signature=found.signature,
            detail=found.detail if shows else sighting.detail,
            first_seen=sighting.when,
            last_seen=sighting.when,
            seconds=found.seconds,
            memory_kb=found.memory_kb,
            reproduced=shows,
            note="" if shows else found.detail,
            committed=sighting.committed,
            traceback=found.traceback,
        )
    elif shows and (len(sighting.data) < made.size or not made.reproduced or made.fixed):
        made = replace(
            made,
            detail=found.detail,
            seconds=found.seconds,
            memory_kb=found.memory_kb,
            minimised=False,
            reproduced=True,
            fixed="",
            note=f"came back: it was fixed {made.fixed}" if made.fixed else "",
            committed=sighting.committed,
            traceback=found.traceback,
        )
    else:
        data = None
    store.put(made.seen(sighting.key, sighting.when), data)


def replay(made: Bucket, data: bytes, prober: Prober, now: str) -> Bucket:
    """A bucket after its input was run again: fixed when it no longer shows it.

    One that never showed it in a fresh process is not fixed by not showing it again.
    """
    for _ in range(ATTEMPTS):
        verdict = prober.judge(data)
        if made.signature.kind == "outcome":
            shown = verdict.outcome != made.signature.expected
        else:
            shown = verdict.of(made.signature) is not None
        if shown:
            back = f"came back: it was fixed {made.fixed}" if made.fixed else ""
            return replace(made, reproduced=True, fixed="", note=back)
    if not made.reproduced:
        return made
    other = verdict.found[0].signature.id if verdict.found else ""
    note = f"the input shows {other} now" if other else f"the input ends as {verdict.outcome} now"
    return replace(made, fixed=made.fixed or now, note=note)
