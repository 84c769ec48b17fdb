"""A survivor goes to the fuzzer: original against mutant on the same bytes, for a bounded time.

Both are in one process, behind the same switch. It starts from the committed inputs that run the
mutated function, changes them, and proposes the first whose outcome differs, twice. What differs
may be the outcome or an oracle that the mutant trips; the original must trip none.

It is a plain random search: it knows nothing of coverage. A survivor that it leaves may still be
no equivalent.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from mutmut.mutation.trampoline import set_mutant_under_test

from mutants.loop import CLEAN, Loop
from mutants.verdicts import function_of

Run = Callable[[bytes], str]
# One input: how long it may take before "still running" is its outcome, and how long it may be.
INPUT_SECONDS = 2.0
MAX_LEN = 8192
_INTERESTING = (0, 1, 2, 3, 0x14, 0x15, 0x16, 0x17, 0x7F, 0x80, 0xFE, 0xFF)


class _TooLong(BaseException):
    """An input that did not come to an end."""


def hunt(
    loop: Loop,
    inputs: Mapping[str, tuple[Run, bytes, str]],
    name: str,
    seconds: float,
    folder: Path,
) -> dict[str, str] | None:
    """An input that tells a mutant from the original, written into the folder; None without one.

    It runs in a fork: a mutant may leave the process it ran in useless.
    """
    seeds = loop.clean.users.get(function_of(name), [])
    if not seeds:
        return None
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        try:
            told = _search({seed: inputs[seed] for seed in seeds}, name, seconds, folder)
            os.write(writing, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(writing)
    said = b""
    if select.select([reading], [], [], seconds * 2 + 10)[0]:
        said = os.read(reading, 65536)
    os.close(reading)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    found: dict[str, str] | None = json.loads(said) if said else None
    return found


def _search(
    inputs: Mapping[str, tuple[Run, bytes, str]], name: str, seconds: float, folder: Path
) -> dict[str, str] | None:
    signal.signal(signal.SIGALRM, _too_long)
    draw = random.Random(name)
    pool = [data for _, data, _ in inputs.values()]
    names = list(inputs)
    until = time.monotonic() + seconds
    fresh = list(names)
    while time.monotonic() < until:
        # Each as it is first, then changed.
        first = bool(fresh)
        seed = fresh.pop() if first else draw.choice(names)
        run, data, _ = inputs[seed]
        given = data if first else change(draw, data, pool)
        told = _outcomes(run, given, name)
        if told is None or told[0] == told[1] or told != _outcomes(run, given, name):
            continue
        harness = seed.split("/", 1)[0]
        target = folder / harness / hashlib.sha256(given).hexdigest()[:16]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(given)
        return {
            "harness": harness,
            "file": str(target),
            "original": told[0],
            "mutant": told[1],
        }
    return None


def _outcomes(run: Run, data: bytes, name: str) -> tuple[str, str] | None:
    """Both outcomes of an input; None when the original itself trips an oracle."""
    set_mutant_under_test(CLEAN)
    original = _outcome(run, data)
    if original is None:
        return None
    set_mutant_under_test(name)
    mutant = _outcome(run, data)
    set_mutant_under_test(CLEAN)
    return original, mutant or "an oracle, or no end"


def _outcome(run: Run, data: bytes) -> str | None:
    signal.setitimer(signal.ITIMER_REAL, INPUT_SECONDS)
    try:
        return run(data)
    except (Exception, _TooLong):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_long(signum: int, frame: FrameType | None) -> None:
    raise _TooLong


def change(draw: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    """The bytes, changed in one to four places."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(changed) + 1)
        kind = draw.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(changed):
            changed[at] = draw.choice(_INTERESTING)
        elif kind == 2 and at < len(changed):
            changed[at] = (changed[at] + draw.choice((-1, 1))) & 0xFF
        elif kind == 3:
            del changed[at : at + draw.randint(1, 16)]
        elif kind == 4:
            other = draw.choice(pool)
            start = draw.randrange(len(other) + 1)
            changed[at:at] = other[start : start + draw.randint(1, 64)]
        elif at < len(changed):
            changed[at:at] = changed[at : at + draw.randint(1, 32)]
    return bytes(changed[:MAX_LEN])
