"""The server's log: one line each, on standard output, keys always in the same order.

A log that nobody reads must not stop the server: lines without room wait, some are dropped, and
standard error says how many (`servers.lines`).

Whatever a peer gave is escaped before it is written: a name with a line feed in it must not become
a line of its own (log injection), nor a control sequence reach the terminal of who reads it.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import NamedTuple

from engine.codepoints import GROUP_NAMES, SUITE_NAMES
from servers.clock import Clock
from servers.lines import Lines

TOGETHER = 512
"""Lines kept at most before they are written, so that a million take no more memory than these."""

FINISH_MS = 200
"""How long the end of a server waits for who reads the log."""


def escape(value: bytes | None) -> str:
    r"""What a peer gave: bytes outside 0x21 to 0x7E and the backslash as \xNN; None is -."""
    if value is None:
        return "-"
    return "".join(
        chr(byte) if 0x21 <= byte <= 0x7E and byte != 0x5C else f"\\x{byte:02x}" for byte in value
    )


def yes(value: bool) -> str:
    """How the log writes a truth."""
    return "yes" if value else "no"


class Established(NamedTuple):
    """What is told of a connection when its handshake is complete; None is what there is not."""

    suite: int
    group: int
    sni: bytes | None
    alpn: bytes | None
    retried: bool
    resumed: bool
    ticket: str
    client: bytes | None
    fingerprint: bytes | None
    waited: int  # milliseconds from its arrival to its start
    handshake: int  # milliseconds since its start


class Log:
    """Writes the lines. What goes wrong with the server itself goes to the second stream."""

    def __init__(self, lines: Lines, faults: Lines) -> None:
        self._lines = lines
        self._faults = faults
        self._kept: list[str] | None = None

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Write many lines at once. A write for each, which wakes the reader each time, costs more
        than all else that is done for a connection at the end of a server with thousands."""
        self._kept = []
        try:
            yield
        finally:
            self._write_kept()
            self._kept = None

    @property
    def behind(self) -> bool:
        """Whether lines wait for room: `flush` is to be called again."""
        return self._lines.behind or self._faults.behind

    def flush(self) -> None:
        """Write what there is room for, and say how much was dropped once that can be said."""
        for stream in (self._lines, self._faults):
            stream.flush()
        for stream, which in ((self._lines, "the log"), (self._faults, "standard error")):
            if stream.dropped and not stream.behind and not self._faults.behind:
                self.warn(f"{stream.dropped} lines of {which} were dropped: nobody read it")
                stream.dropped = 0

    def finish(self, clock: Clock) -> None:
        """The server ends: write what is left, for a moment at most."""
        by = clock.monotonic_ms() + FINISH_MS
        while self.behind and clock.monotonic_ms() < by:
            time.sleep(0.01)
            self.flush()
        self._lines.give_up()
        self.flush()

    def listening(self, address: str) -> None:
        """The server accepts at this address."""
        self._line(f"listening {address}")

    def established(self, number: int, peer: str, its: Established) -> None:
        """A handshake is complete."""
        fingerprint = its.fingerprint.hex()[:16] if its.fingerprint else "-"
        self._line(
            f"conn {number} peer={peer} established"
            f" suite={SUITE_NAMES.get(its.suite, '-')} group={GROUP_NAMES.get(its.group, '-')}"
            f" sni={escape(its.sni)} alpn={escape(its.alpn)}"
            f" hrr={yes(its.retried)} resumed={yes(its.resumed)} ticket={its.ticket}"
            f" client={escape(its.client)} fp={fingerprint}"
            f" waited={its.waited} handshake={its.handshake}"
        )

    def closed(self, number: int, peer: str, reason: str, received: int, lasted: int) -> None:
        """A connection is over, after `received` bytes and `lasted` milliseconds."""
        self._line(f"conn {number} peer={peer} closed {reason} in={received} ms={lasted}")

    def refused(self, number: int, peer: str, reason: str) -> None:
        """A connection was turned away before it had a handshake."""
        self._line(f"refused {number} peer={peer} {reason}")

    def reload(self, what: str, refusal: str | None) -> None:
        """A file was read again; `refusal` is the tag, or None."""
        self._line(f"reload {what} {'ok' if refusal is None else f'refused {refusal}'}")

    def warn(self, text: str) -> None:
        """Something an operator should know, on standard error: not a line of the log."""
        self._faults.write(f"residue serve: {text}\n")

    def fault(self, where: str, error: BaseException) -> None:
        """A defect of ours: its kind and place. Never its values, which may be a peer's bytes."""
        trace = error.__traceback__
        place = "-"
        while trace is not None:
            code = trace.tb_frame.f_code
            place = f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} in {code.co_name}"
            trace = trace.tb_next
        self.warn(f"error: {where}: {type(error).__name__} at {place}")

    def _line(self, text: str) -> None:
        if self._kept is None:
            self._lines.write(text + "\n")
            return
        self._kept.append(text + "\n")
        if len(self._kept) == TOGETHER:
            self._write_kept()

    def _write_kept(self) -> None:
        if self._kept:
            self._lines.write("".join(self._kept))
            self._kept.clear()
