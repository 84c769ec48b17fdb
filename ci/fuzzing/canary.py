"""The canary: a bug made on purpose, which the campaign's own machinery must find.

A planted fault of the catalogue is applied to a copy of the tree, and the harness is run there as a
shard would be, from the committed input that the catalogue names, with the same runner, fuzzer,
oracles and findings folder. If no finding comes of it, then "nothing found" means nothing, and the
run is not to be trusted.
"""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from subprocess import Popen

from ci.fuzzing import libfuzzer
from ci.process import TICK, Stop, all_killed, cpu_seconds, importing, signal_group, spawn
from mutants import plants
from mutants.plants import Plant

# The named input trips its canary at once; starting takes some seconds of processor time, on a
# machine under load as well. The wall's are for one that sleeps.
LIMIT, WALL = 60.0, 900
# Oracles that look at every input come first: one that looks at a sample may miss the named one.
PREFERRED = ("residue", "repeat", "refusal", "raised")


@dataclass
class Canary:
    """One harness's planted fault and whether it was found. `plant` is None when there is none."""

    harness: str
    plant: Plant | None
    seed: Path | None = None
    found: bool = False

    @property
    def missed(self) -> str:
        """Why this canary condemns the run; empty when it was found."""
        if self.plant is None:
            return f"{self.harness}: no planted fault names this harness, so it has no canary"
        if not self.found:
            return f"{self.harness}: the planted fault {self.plant.name!r} was not found"
        return ""


def choose(harness: str, catalogue: tuple[Plant, ...], corpus: Path) -> Canary:
    """The planted fault for this harness whose oracle is the most direct, and its input."""
    seen = [
        (fields[2], plant, corpus / harness / fields[3])
        for plant in catalogue
        for fields in (line.split(" ") for line in plant.detected_by)
        if len(fields) == 4 and fields[:2] == ["oracle", harness]
    ]
    if not seen:
        return Canary(harness, None)
    rank = {oracle: number for number, oracle in enumerate(PREFERRED)}
    _, plant, seed = min(seen, key=lambda entry: rank.get(entry[0], len(rank)))
    return Canary(harness, plant, seed)


def run_canaries(canaries: list[Canary], folder: Path, jobs: int, stop: Stop) -> None:
    """Run the canaries, `jobs` at a time, until each is found or has had its time, or a signal."""
    children: list[Popen[bytes]] = []
    running: list[tuple[Canary, Popen[bytes], float]] = []
    waiting = [canary for canary in canaries if canary.plant is not None]
    with all_killed(children):
        while (waiting or running) and not stop:
            if waiting and len(running) < jobs:
                canary = waiting.pop(0)
                child = _start(canary, folder / canary.harness)
                children.append(child)
                running.append((canary, child, time.monotonic() + WALL))
                continue
            for entry in list(running):
                canary, child, deadline = entry
                over = time.monotonic() > deadline or cpu_seconds(child.pid) > LIMIT
                # Before the findings are looked for: it may write one and end.
                ended = child.poll() is not None
                canary.found = any((folder / canary.harness / "findings").glob("*.json"))
                if canary.found or ended or over:
                    signal_group(child, SIGKILL)
                    running.remove(entry)
            time.sleep(TICK)
    if all(canary.found for canary in canaries):
        shutil.rmtree(folder, ignore_errors=True)


def _start(canary: Canary, here: Path) -> Popen[bytes]:
    """The harness over its planted tree, in a folder of its own."""
    assert canary.plant is not None and canary.seed is not None
    tree = plants.apply(canary.plant, here / "tree")
    for name in ("corpus", "findings", "seed"):
        (here / name).mkdir()
    if canary.seed.is_file():
        shutil.copyfile(canary.seed, here / "seed" / canary.seed.name)
    arguments = libfuzzer.fuzz_arguments(
        output=here / "corpus",
        seeds=[here / "seed"],
        artifacts=here,
        dictionary=None,
        seed=1,
        seconds=WALL,
    )
    return spawn(
        [*libfuzzer.runner(canary.harness), *arguments],
        here / "log",
        {
            **importing(tree),
            "RESIDUE_FINDINGS": str(here / "findings"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=here,
    )
