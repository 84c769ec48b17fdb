"""One input in a process that may hang, eat memory or die: `python -m triage.probe HARNESS`.

A fork server. It imports the harness once and forks for each input, so that an input costs what it
costs and not an interpreter's start, and every run begins in the state of a fresh process, as
`residue replay HARNESS FILE` does. Requests come on standard input, one answer a line goes out.

    request     HEADER (how many inputs, thorough, seconds of processor time, bytes of memory), then
                each input behind its SIZE
    answer      a JSON object, the fields of `triage.prober.Answer`

Several inputs of one request run one after the other in one process, up to the first that raises;
`before` are the outcomes of those ahead of it. That is many times faster and less strict: what one
leaves behind the next may meet.

How a hang is told. Over its time the child is asked several times where it is. The frames that are
the same *objects* in all samples are those that do not come to an end; the innermost of them is the
function that loops, whatever it calls meanwhile. A child that does not answer is inside one call of
C; faulthandler writes down which.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import json
import os
import re
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import IO, Any, NoReturn

from harnesses.signature import name_of, our_frames, ours, signature

HEADER = struct.Struct(">I?dQ")
SIZE = struct.Struct(">I")
SAMPLES = 8
SAMPLE_EVERY = 0.012
# A child that sleeps uses no processor time and is a hang all the same; the factor is for a machine
# that is busy with other work.
WALL_FACTOR, WALL_MORE = 5.0, 5.0
# How long a child under load may take to say where it is.
ANSWER_SECONDS = 3.0
PAGE = resource.getpagesize()
PR_SET_PDEATHSIG = 1
LINES = 60
STACK_LINE = re.compile(r'^  File "([^"]+)", line \d+ in (\S+)$', re.MULTILINE)

_LIBC = ctypes.CDLL(None)


def main(argv: list[str]) -> None:
    """Serve until standard input ends."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run = importlib.import_module(f"harnesses.{argv[0]}").run
    # What was imported stays as it is; a collection in a child would only copy it.
    gc.collect()
    gc.freeze()
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(b"ready\n")
    answers.flush()
    while header := requests.read(HEADER.size):
        count, thorough, seconds, memory = HEADER.unpack(header)
        inputs = [requests.read(*SIZE.unpack(requests.read(SIZE.size))) for _ in range(count)]
        answer = probe(run, inputs, thorough, seconds, memory)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def probe(
    run: Callable[..., str], inputs: list[bytes], thorough: bool, seconds: float, memory: int
) -> dict[str, Any]:
    """Run inputs in a child, and say how that ended."""
    size, resident = _memory()
    # Where faulthandler writes: what kills the child, and where a child is that does not answer.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as dump:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _child(run, inputs, thorough, size + memory, writing, dump)
        os.close(writing)
        said, hung = _attend(child, reading, seconds)
        _, status, used = os.wait4(child, 0)
        os.close(reading)
        answer: dict[str, Any] = {
            "ended": "done",
            "outcome": None,
            "before": [],
            "signature": None,
            "stack": [],
            "detail": "",
            "traceback": [],
            "seconds": round(used.ru_utime + used.ru_stime, 3),
        }
        dump.seek(0)
        dumped = dump.read()
        try:
            answer.update(json.loads(said))
        except ValueError:
            answer.update(_dead(status, dumped, hung))
    # A fork does not have its parent's pages of files, so only a child knows its own base.
    base = answer.pop("base", resident)
    answer["memory_kb"] = max(0, used.ru_maxrss - base // 1024)
    return answer


def _memory() -> tuple[int, int]:
    """Address space and resident memory of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        size, resident = file.read().split()[:2]
    return int(size) * PAGE, int(resident) * PAGE


def _attend(child: int, reading: int, seconds: float) -> tuple[bytes, bool]:
    """What the child says until it has ended, and whether it had to be ended for its time."""
    said = bytearray()
    began = time.monotonic()
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    clock = ~child << 3 | 2  # the kernel's name for another process's processor time
    while True:
        if poll.poll(20):
            piece = os.read(reading, 1 << 16)
            if not piece:
                return bytes(said), False
            said += piece
            continue
        wall = time.monotonic() - began
        # Beside the wall clock's limit, processor time decides: it does not see other processes.
        if wall < seconds or (
            time.clock_gettime(clock) < seconds and wall < seconds * WALL_FACTOR + WALL_MORE
        ):
            continue
        return _interrogate(child, reading, poll)


def _interrogate(child: int, reading: int, poll: select.poll) -> tuple[bytes, bool]:
    """Ask a child that hangs where it is, and end it."""
    for _ in range(SAMPLES):
        os.kill(child, signal.SIGPROF)
        time.sleep(SAMPLE_EVERY)
    os.kill(child, signal.SIGUSR1)
    said = bytearray()
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        if poll.poll(20):
            piece = os.read(reading, 1 << 16)
            if not piece:
                return bytes(said), True
            said += piece
    os.kill(child, signal.SIGUSR2)
    time.sleep(SAMPLE_EVERY * SAMPLES)
    os.kill(child, signal.SIGKILL)
    return b"", True


def _dead(status: int, dumped: str, hung: bool) -> dict[str, Any]:
    """What is known of a child that said nothing: its end, and what faulthandler wrote."""
    stack = [name_of(f, name) for f, name in STACK_LINE.findall(dumped) if ours(f)][::-1]
    told = {"stack": stack, "traceback": dumped.splitlines()[:LINES]}
    if hung:
        return {"ended": "timeout", "detail": "still running, inside one call", **told}
    if os.WIFSIGNALED(status):
        detail = f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    else:
        detail = f"the process ended with {os.waitstatus_to_exitcode(status)}"
    return {"ended": "crash", "detail": detail, **told}


# In the child.


class _Samples:
    """The frames that do not come to an end: the same objects each time they are looked at."""

    def __init__(self) -> None:
        self.lasting: list[FrameType] | None = None

    def take(self, number: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        stack.reverse()
        if self.lasting is None:
            self.lasting = stack
            return
        same = 0
        for mine, other in zip(self.lasting, stack, strict=False):
            if mine is not other:
                break
            same += 1
        del self.lasting[same:]

    def stack(self) -> list[str]:
        return [
            name_of(f.f_code.co_filename, f.f_code.co_name)
            for f in self.lasting or []
            if ours(f.f_code.co_filename)
        ]


def _child(
    run: Callable[..., str],
    inputs: list[bytes],
    thorough: bool,
    space: int,
    out: int,
    dump: IO[str],
) -> NoReturn:
    """Run the inputs, and write to `out` how each ended. Never returns."""
    try:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        samples = _Samples()
        _, base = _memory()
        outcomes: list[str] = []

        def still_running(number: int, frame: FrameType | None) -> None:
            trace = traceback.format_list(traceback.extract_stack(frame)[-LINES:])
            detail = "still running"
            stack = samples.stack()
            _say(out, base=base, ended="timeout", stack=stack, detail=detail, traceback=trace)

        faulthandler.enable(dump)
        faulthandler.register(signal.SIGUSR2, dump, all_threads=False)
        signal.signal(signal.SIGPROF, samples.take)
        signal.signal(signal.SIGUSR1, still_running)
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (space, hard))
        try:
            for data in inputs:
                outcomes.append(run(data, thorough=thorough))
        except BaseException as error:
            # What follows needs memory too.
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            _tell(out, error, base, outcomes)
        _say(out, base=base, outcome=outcomes.pop(), before=outcomes)
    finally:
        os._exit(1)


def _tell(out: int, error: BaseException, base: int, before: list[str]) -> None:
    cause = error.__cause__ or error
    _say(
        out,
        base=base,
        before=before,
        ended="out-of-memory" if isinstance(cause, MemoryError) else "done",
        signature=signature(error),
        stack=our_frames(cause.__traceback__),
        detail="".join(traceback.format_exception_only(error)).strip()[:500],
        traceback="".join(traceback.format_exception(error)).splitlines()[-LINES:],
    )


def _say(out: int, **answer: object) -> NoReturn:
    data = memoryview(json.dumps(answer).encode())
    while data:
        data = data[os.write(out, data) :]
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
