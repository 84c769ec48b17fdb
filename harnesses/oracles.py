"""The oracles: what must hold after every call, whatever bytes came.

Each has a name, so that a finding says which sentence of the contract it breaks, and each has a
planted fault in `mutants/catalogue/` that trips it: an oracle that cannot fail is a defect.

    raised      a byte-moving call raised
    residue     `residue()` is not 0 after a call
    stuck       the engine neither wants input, nor has output, nor has ended
    alert       the alert on the wire is not the refusal's
    silent      a failed connection came back to life, changed its mind or spoke again
    drop        after `drop` a byte of the slot's memory is not zero
    neighbour   what one connection sent changed another's bytes
    chunks      the same bytes in other pieces gave something else
    work        more lines of the engine ran than what the peer sent may cost
    memory      more memory was allocated, or kept, than what the peer sent may cost
    refusal     a ClientHello was refused with a tag that no ClientHello has
    repeat      the same ClientHello was answered otherwise the second time
    prefix      a strict prefix of a ClientHello was accepted
    engine      the engine's tag for a ClientHello is not its parser's
    delivered   what is received is not what was sent, or not all of it
    verdict     a ticket resumes, or does not, by one reading of the rules alone
    proof       established, verified or resumed without the proof that it takes
    model       the engine says of a connection what a plain model of it does not
    differential OpenSSL answers a client's first bytes otherwise, and no row expects it
    areas       areas held, resting and free do not add up, or the wrong one was taken

Cheap ones run for every input. The others run for a fixed share of inputs, chosen by the input's
own bytes (`one_in`), so that a finding replays; `thorough=True` runs all of them, which is what
replay and the tests do.

What they cannot see. `work` counts lines of Python under `engine/`: time inside one call of C (a
copy, a scan, a primitive) is not in it, so a quadratic copy of a buffer shows only as time, and
libFuzzer's `-timeout` is the one guard against it. `memory` is what Python allocates: the maps have
their size from the start, and what OpenSSL allocates is not traced. `drop` reads the maps, not the
freed memory of Python's own objects. An alert under the server's keys is opened in the replay
that `chunks` makes; in the first run only its shape is judged.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from zlib import crc32

from engine import codepoints as c
from engine.refusals import Refusal

from .tally import Tally

ORACLES = (
    "raised",
    "residue",
    "stuck",
    "alert",
    "silent",
    "drop",
    "neighbour",
    "chunks",
    "work",
    "memory",
    "refusal",
    "repeat",
    "prefix",
    "engine",
    "delivered",
    "verdict",
    "proof",
    "model",
    "areas",
    "differential",
)

looked = Tally(ORACLES)
"""How often each of them looked in this process."""

ENGINE_FOLDER = str(Path(sys.modules["engine.refusals"].__file__ or "").parent)

HEADER = 5
SEALED_ALERT = 2 + 1 + 16
"""An alert under protection: its two bytes, the inner content type, the AEAD's tag."""


class Broken(AssertionError):
    """An oracle failed. `oracle` is its name, `detail` says how; neither holds a secret."""

    def __init__(self, oracle: str, detail: str) -> None:
        super().__init__(f"{oracle}: {detail}")
        self.oracle = oracle
        self.detail = detail


def one_in(share: int, data: bytes) -> bool:
    """Whether this input is one of the share that an expensive oracle looks at."""
    return crc32(data) % share == 0


def records(stream: bytes) -> list[bytes]:
    """The whole records of what a server wrote; Broken when it does not end with one."""
    found = []
    at = 0
    while at < len(stream):
        end = at + HEADER + int.from_bytes(stream[at + 3 : at + HEADER])
        if end > len(stream):
            raise Broken("alert", "the output ends inside a record")
        found.append(stream[at:end])
        at = end
    return found


def check_alert(output: bytes, refusal: Refusal, closing: bool) -> None:
    """The last thing that a failed connection wrote is its refusal's alert, or nothing more.

    After the server's own close_notify nothing may follow, an alert neither (RFC 8446 §6.1).
    """
    looked("alert")
    written = records(output)
    last = written[-1] if written else b""
    sealed = any(record[0] == c.APPLICATION_DATA for record in written)
    if refusal.alert is None or closing:
        if last[:1] == bytes([c.ALERT]):
            raise Broken("alert", f"{refusal.tag} has no alert and one was sent")
    elif sealed:
        if last[0] != c.APPLICATION_DATA or len(last) != HEADER + SEALED_ALERT:
            raise Broken("alert", f"{refusal.tag}: the last record is no sealed alert")
    else:
        expected = bytes([c.ALERT, 3, 3, 0, 2, c.ALERT_LEVEL_FATAL, refusal.alert])
        if last != expected:
            raise Broken("alert", f"{refusal.tag}: sent {last[:8].hex() or 'nothing'}")
    if any(record[0] == c.ALERT for record in written[:-1]):
        raise Broken("alert", f"{refusal.tag}: something follows an alert")


class _Lines:
    """Counts the lines of the engine that run: exact, the same each time, whatever the machine."""

    def __init__(self) -> None:
        self.count = 0

    def called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(ENGINE_FOLDER) else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.count += 1
        return self.line


def lines_run(function: Callable[[], object]) -> int:
    """How many lines of the engine a call runs. A tracer that was there (coverage) is put back."""
    lines = _Lines()
    before = sys.gettrace()
    sys.settrace(lines.called)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines.count


def check_work(function: Callable[[], object], ceiling: int) -> None:
    """`work`: at most so many lines of the engine."""
    looked("work")
    ran = lines_run(function)
    if ran > ceiling:
        raise Broken("work", f"{ran} lines where {ceiling} are enough")


def check_memory(function: Callable[[], object], ceiling: int) -> None:
    """`memory`: the peak of what Python allocates, and what is still there afterwards."""
    looked("memory")
    # Somebody else may measure as well (PYTHONTRACEMALLOC): theirs goes on, but for its peak.
    others = tracemalloc.is_tracing()
    if not others:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        function()
        after, most = tracemalloc.get_traced_memory()
    finally:
        if not others:
            tracemalloc.stop()
    kept, peak = after - before, most - before
    if peak > ceiling:
        raise Broken("memory", f"a peak of {peak} bytes where {ceiling} are enough")
    if kept > KEPT:
        raise Broken("memory", f"{kept} bytes are kept")


KEPT = 4_096
"""What one run may leave allocated: Python's own caches and free lists, never the input."""
