"""Lines to a descriptor that is read by somebody else, who may stop reading at any time.

A write to a full pipe waits until its reader reads, and a server that waits there serves nobody and
cannot be stopped. So nothing is written that would make us wait: what finds no room is kept, up to
a bound, and tried again; lines over the bound are dropped and counted.

Lines go whole, as many as a pipe takes in one piece (PIPE_BUF, below which POSIX lets no other
writer of the same pipe come between). A file that is full may still cut one: the rest of it is the
first that is written when there is room again, so that no line ever begins inside another.
"""

import contextlib
import errno
import os
import select
import stat

MAX_KEPT = 1 << 20
"""Bytes kept for a reader that does not read: some ten thousand lines."""

_GONE = {errno.EPIPE, errno.EBADF, errno.ECONNRESET, errno.ENXIO}


class Lines:
    """A descriptor to write lines to, and the lines that it had no room for yet."""

    def __init__(self, fd: int) -> None:
        self._fd = _own(fd)
        self._room = select.poll()
        self._room.register(self._fd, select.POLLOUT)
        self._kept = bytearray()
        self.dropped = 0

    @property
    def behind(self) -> bool:
        """Whether lines wait for room: `flush` is to be called again."""
        return bool(self._kept)

    def write(self, lines: str) -> None:
        """Write whole lines, or keep them, or drop them. Never waits and never raises OSError."""
        data = lines.encode("ascii", "backslashreplace")
        if len(self._kept) + len(data) > MAX_KEPT:
            self.dropped += data.count(b"\n")
            return
        self._kept += data
        self.flush()

    def flush(self) -> None:
        """Write what there is room for."""
        try:
            while self._kept and self._room.poll(0):
                end = self._kept.rfind(b"\n", 0, select.PIPE_BUF) + 1 or select.PIPE_BUF
                del self._kept[: os.write(self._fd, bytes(self._kept[:end]))]
        except OSError as error:
            # Whoever read this has left and misses nothing; any other want, of space, may end.
            if error.errno in _GONE:
                self._kept.clear()

    def give_up(self) -> None:
        """Drop what was kept."""
        self.dropped += self._kept.count(b"\n")
        self._kept.clear()


def _own(fd: int) -> int:
    """The same pipe or terminal, opened again so that it never makes us wait; else `fd` itself.

    The flag belongs to what was opened and not to the descriptor: set on the one that was given to
    us it would be set for every process that shares it, the operator's shell for one.
    """
    with contextlib.suppress(OSError):
        mode = os.fstat(fd).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{fd}", flags)
    return fd
