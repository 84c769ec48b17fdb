"""What the steps of a night are given: where everything lies, and what earlier nights came to."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ci.night.history import Row
from ci.night.slices import Slice, slices
from ci.night.state import Night
from ci.night.weights import longest_ago, weights
from harnesses import HARNESSES


@dataclass
class Context:
    """A night at work."""

    root: Path
    """The folder of all nights."""
    night: Night
    jobs: int
    history: list[Row] = field(default_factory=list)
    """The rows of earlier nights, oldest first."""
    hurried: bool = False
    """Somebody waits for the end: a signal came."""

    @property
    def corpus(self) -> Path:
        """Inputs kept between nights, a folder a harness."""
        return self.root / "corpus"

    @cached_property
    def slice(self) -> Slice:
        """The part of the engine whose turn it is: the one judged whole longest ago."""
        every = {one.name: one for one in slices()}
        rows = [row.get("slice") or {} for row in self.history]
        done = [str(one.get("name")) for one in rows if one.get("score") is not None]
        return every[longest_ago(list(every), done)]

    @property
    def weights(self) -> dict[str, float]:
        """Each harness's part of the fuzzing."""
        return weights(self.history, HARNESSES)

    @property
    def profiled(self) -> str:
        """The harness whose turn it is to have a shard that looks at values."""
        done = [name for row in self.history for name in row.get("profiled", [])]
        return longest_ago(HARNESSES, done)
