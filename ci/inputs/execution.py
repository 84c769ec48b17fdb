"""One input in this process: what it comes to, within its time and its memory; and which there are.

An input that takes longer than any could is stopped by an alarm and is a finding like another.
"""

import importlib
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ci.exits import UsageError
from ci.inputs import workers
from ci.wording import unknown
from harnesses import HARNESSES, outcomes
from harnesses.outcomes import Outcome
from mutants.settings import SUITE
from triage.limits import MEMORY

INPUT_SECONDS = 30
# What `residue fuzz recordings` and `residue inject` leave: no harnesses of libFuzzer's.
RECORDINGS = "recordings"
INJECTION = "injection"


def load(harness: str) -> Callable[[bytes], str]:
    """The harness's function over bytes, with no oracle left to a sample."""
    if harness not in (*HARNESSES, RECORDINGS, INJECTION):
        raise UsageError(unknown("harness", harness, HARNESSES))
    return partial(importlib.import_module(f"{SUITE.harnesses}.{harness}").run, thorough=True)


class Ended(NamedTuple):
    """How an input ended: an outcome, or what an oracle or an exception said against it."""

    outcome: str | None
    wrong: str = ""
    error: Exception | None = None


def attempt(run: Callable[[bytes], str], data: bytes) -> Ended:
    """Run one input, for so long and with so much memory as any may need."""
    space = resource.getrlimit(resource.RLIMIT_AS)
    with workers.alarm(INPUT_SECONDS):
        signal.alarm(INPUT_SECONDS)
        # An input that eats memory without end gets a MemoryError, and not the machine.
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY, space[1]))
        try:
            return Ended(run(data))
        except workers.TooLong as error:
            return Ended(None, str(error))
        except Exception as error:
            said = (str(error).splitlines() or [""])[0]
            # An oracle names itself in what it says.
            kind = "oracle " if hasattr(error, "oracle") else f"{type(error).__name__}: "
            return Ended(None, kind + said, error)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, space)


def _address_space() -> int:
    """How much of it this process has, in bytes."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


def read_outcomes(harness: str) -> dict[str, Outcome]:
    """The committed outcomes of a harness; none when the file is not there yet."""
    try:
        return outcomes.read(harness)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"corpus/{harness}.outcomes: {error}") from None


def committed(harness: str) -> list[Path]:
    """The committed inputs of a harness; none when the folder is not there. UsageError for a folder
    that holds anything else."""
    try:
        return outcomes.inputs(harness) if outcomes.folder(harness).is_dir() else []
    except ValueError as error:
        raise UsageError(str(error)) from None


def read_input(file: Path) -> bytes:
    """The bytes of an input that the user named."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
