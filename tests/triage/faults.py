"""Planted faults of every kind, each in a copy of the tree, and the input that shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from harnesses import outcomes
from mutants import plants, settings
from mutants.plants import Plant
from triage.limits import MIB, Limits

CORPUS = settings.ROOT / "corpus"
FOLDERS = (*plants.FOLDERS, "triage")
QUICK = Limits(seconds=0.5, memory=96 * MIB, slow=0.12, hungry=24 * MIB)
"""A hang, an eater and a slow input are told in a moment."""
PATIENT = replace(QUICK, seconds=5.0)
"""For an input that is slow and no hang."""
HASTY = replace(QUICK, seconds=0.2, slow=0.15)
"""For a hang, which costs its whole limit in every run."""

SEEN = "        seen.add(kind)\n"


def hello(name: str, text: str, replacement: str) -> Plant:
    """A fault of the parser of a ClientHello that no committed input needs to see."""
    return Plant(name, "engine/hello.py", text, replacement, "none", ())


LOCAL = (
    # A loop that is nearly always in what it calls.
    hello("loop", SEEN, SEEN + "        while kind == 16:\n            _turn(sorted(range(50)))\n"),
    hello(
        "eater",
        SEEN,
        SEEN + "        room = []\n        while kind == 16:\n            _eat(room)\n",
    ),
    hello("slow", SEEN, SEEN + "        if kind == 16:\n            _dawdle()\n"),
    hello("hungry", SEEN, SEEN + "        room = _populated() if kind == 16 else None\n"),
    Plant(
        "outcome",
        "engine/receive.py",
        "        return Refusal.PROTOCOL_VERSION\n",
        "        return Refusal.RECORD_OVERFLOW\n",
        "none",
        (),
    ),
    hello("killed", SEEN, SEEN + "        if kind == 16:\n            __import__('os').abort()\n"),
    hello("recursion", SEEN, SEEN + "        if kind == 16:\n            _deep(0)\n"),
)
HELPERS = """

def _turn(items: list[int]) -> int:
    return sum(items)


def _eat(room: list[bytes]) -> None:
    room.append(b"x" * (1 << 20))


# Time inside C, and memory that is not Python's: no oracle counts these.


def _dawdle() -> None:
    import hashlib
    import time

    end = time.process_time() + 0.08
    while time.process_time() < end:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)


def _populated() -> object:
    import mmap

    return mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)


def _deep(depth: int) -> None:
    _deeper(depth)


def _deeper(depth: int) -> None:
    _deep(depth + 1)
"""


@dataclass(frozen=True)
class Fault:
    """A plant, whose input shows it, and the bucket's kind and name that must come of it."""

    plant: str
    harness: str
    input: str
    kind: str
    name: str

    @property
    def data(self) -> bytes:
        return (CORPUS / self.harness / self.input).read_bytes()

    @property
    def limits(self) -> Limits:
        return {"slow": PATIENT, "timeout": HASTY}.get(self.kind, QUICK)

    @property
    def right(self) -> str:
        """What the input must end as."""
        text = (CORPUS / f"{self.harness}.outcomes").read_text(encoding="utf-8")
        return outcomes.parse(text)[self.input].outcome


FAULTS = (
    Fault("raised", "server", "handmade-alert-short", "oracle", "raised"),
    Fault("residue", "server", "handmade-again", "oracle", "residue"),
    Fault("chunks", "server", "handmade-major-version", "oracle", "chunks"),
    Fault("memory-peak", "hello", "handmade-plain", "oracle", "memory"),
    Fault("loop", "hello", "handmade-alpn", "timeout", "timeout"),
    Fault("eater", "hello", "handmade-alpn", "out-of-memory", "out-of-memory"),
    Fault("slow", "hello", "handmade-alpn", "slow", "slow"),
    Fault("hungry", "hello", "handmade-alpn", "hungry", "hungry"),
    Fault("killed", "hello", "handmade-alpn", "crash", "crash"),
    Fault("outcome", "server", "handmade-major-version", "outcome", "outcome"),
    Fault("recursion", "hello", "handmade-alpn", "oracle", "raised"),
)


@cache
def catalogue() -> dict[str, Plant]:
    return {plant.name: plant for plant in (*plants.load_all(), *LOCAL)}


def plant(fault: Fault, folder: Path) -> Path:
    """A copy of the tree with the fault in it."""
    tree = plants.apply(catalogue()[fault.plant], folder / "tree", folders=FOLDERS)
    with (tree / "engine" / "hello.py").open("a", encoding="utf-8") as file:
        file.write(HELPERS)
    return tree
