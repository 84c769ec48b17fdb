"""What we know of libFuzzer: the arguments we give it, the codes it ends with, the lines it prints.

Facts found by trying, with atheris 3.0.0 and 3.1.0:

- The first folder is the one it writes to; it must exist. It reads the others. So a committed
  folder is never the first.
- `-merge` and `-set_cover_merge` run argv[0] again through a shell. With a wrong one they exit 0
  and give no files, so nothing here believes an exit code of a merge.
- It prints a status line for each new input and at each power of two. Final counts come with
  `-print_final_stats=1`, after SIGUSR1 (exit 0) and SIGINT (exit 72) too.
- SIGUSR1 before it has installed its handlers, that is while Python still imports, kills the child.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from mutants.settings import SUITE

DONE = 0
TIMEOUT = 70
OUT_OF_MEMORY = 71
INTERRUPTED = 72
CRASH = 77

# What ended a child, in words. Anything else is a child that did not come to fuzz at all.
KINDS = {TIMEOUT: "timeout", OUT_OF_MEMORY: "out-of-memory", CRASH: "crash"}

# An input over ten seconds is a hang: the slowest one here costs milliseconds. The memory limit is
# ten times what an instrumented engine needs.
INPUT_SECONDS = 10
MEMORY_MB = 1024
# What took this long is written down, and weighed again in peace (docs/triage.md).
SLOW_SECONDS = 1

STATUS = re.compile(
    rb"^#(?P<runs>\d+)\t(?P<what>\w+) +"
    rb"(?:cov: (?P<cov>\d+) )?(?:ft: (?P<ft>\d+) )?(?:corp: (?P<corp>\d+)/)?"
)
FINAL = re.compile(rb"^stat::number_of_executed_units: (\d+)")
DONE_LINE = re.compile(rb"^Done (\d+) runs in")


@dataclass
class Status:
    """What one child has said so far of its own work."""

    executions: int = 0
    edges: int = 0
    features: int = 0
    corpus: int = 0
    seeded: bool = False
    seeded_edges: int = 0
    """Edges that the seeds alone reach."""

    def read(self, line: bytes) -> None:
        """Take in one line of output; a line that says nothing changes nothing."""
        if match := STATUS.match(line):
            self.executions = max(self.executions, int(match["runs"]))
            self.edges = max(self.edges, int(match["cov"] or 0))
            self.features = max(self.features, int(match["ft"] or 0))
            self.corpus = int(match["corp"] or self.corpus)
            if match["what"] == b"INITED":
                self.seeded, self.seeded_edges = True, self.edges
        elif match := FINAL.match(line) or DONE_LINE.match(line):
            self.executions = max(self.executions, int(match[1]))


class Tail:
    """Reads what is new in a growing log file, in whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.rest = b""

    def lines(self) -> list[bytes]:
        """The whole lines that were added since the last call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return []
        self.offset += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        return lines


def runner(harness: str) -> list[str]:
    """The command that runs a harness under the fuzzer."""
    return [sys.executable, "-m", f"{SUITE.harnesses}.run", harness]


def fuzz_arguments(
    output: Path,
    seeds: list[Path],
    artifacts: Path,
    dictionary: Path | None,
    seed: int,
    seconds: int,
    value_profile: bool = False,
) -> list[str]:
    """Arguments of a shard. The time is a backstop: the supervisor ends a shard by signal.

    With `value_profile` a comparison that comes nearer to equal is new too, not only an edge.
    """
    arguments = [str(output), *(str(folder) for folder in seeds)]
    arguments += [
        f"-seed={seed}",
        f"-artifact_prefix={artifacts}/",
        f"-max_total_time={seconds}",
        f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-report_slow_units={SLOW_SECONDS}",
        "-print_final_stats=1",
    ]
    if dictionary is not None:
        arguments.append(f"-dict={dictionary}")
    if value_profile:
        arguments.append("-use_value_profile=1")
    return arguments


def merge_arguments(output: Path, sources: list[Path], artifacts: Path) -> list[str]:
    """Arguments of a merge into `output` of what the sources add to it: the smallest such set.

    An input that ends the process is left out by libFuzzer, which goes on with the next, and is
    written to where the shards' own artifacts are not.
    """
    return [
        "-set_cover_merge=1",
        f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={artifacts}/",
        str(output),
        *(str(folder) for folder in sources),
    ]
