"""A bucket's signature: what two inputs have in common when they show the same bug.

What an oracle or an exception says comes from `harnesses.signature`, which the fuzzers use too.
Here the ways to end that no exception tells of are added.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harnesses.outcomes import tags

KINDS = (
    "exception",
    "oracle",
    "timeout",
    "out-of-memory",
    "crash",
    "slow",
    "hungry",
    "outcome",
)
"""What can be wrong with an input. The middle ones are what libFuzzer calls them."""

ID_DIGITS = 12
WORD = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True)
class Signature:
    """Two inputs with equal signatures are in one bucket.

    `oracle` and `says` are an oracle's, `error` is the exception's type, `refusal` is the tag that
    is spoken of; `expected` and `found` are of kind outcome. What does not apply is empty.
    """

    harness: str
    kind: str
    oracle: str = ""
    error: str = ""
    says: str = ""
    refusal: str = ""
    frames: tuple[str, ...] = ()
    expected: str = ""
    found: str = ""

    @property
    def id(self) -> str:
        """The bucket's name: the same on every machine."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]

    @property
    def name(self) -> str:
        """The oracle, or the kind where there is none."""
        return self.oracle or self.error or self.kind


def from_data(data: Mapping[str, Any]) -> Signature:
    """A signature as JSON has it; ValueError, TypeError or KeyError for what is none."""
    made = Signature(**{**data, "frames": tuple(data["frames"])})
    if made.kind not in KINDS:
        raise ValueError(f"there is no kind {made.kind!r}")
    return made


def raised(harness: str, told: Mapping[str, Any], detail: str) -> Signature:
    """The signature of what a harness raised, from the runner's own."""
    oracle = str(told["oracle"] or "")
    return Signature(
        harness=harness,
        kind="oracle" if oracle else "exception",
        oracle=oracle,
        error=str(told["kind"]),
        says=str(told.get("says", "")),
        refusal=refusal_in(detail),
        frames=tuple(told["frames"]),
    )


def ended(harness: str, kind: str, frames: Sequence[str] = ()) -> Signature:
    """The signature of an end that no exception tells of. Only the frames tell two apart."""
    return Signature(harness=harness, kind=kind, frames=tuple(frames))


def outcome(harness: str, expected: str, found: str) -> Signature:
    """The signature of a committed input that ends as it must not."""
    tag = refusal_in(found) or refusal_in(expected)
    return Signature(harness=harness, kind="outcome", refusal=tag, expected=expected, found=found)


def common(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """The outermost frames that two stacks share."""
    same = []
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        same.append(mine)
    return same


def refusal_in(text: str) -> str:
    """The first refusal's tag in a text; empty when there is none."""
    return next((word for word in WORD.findall(text) if word in tags()), "")
