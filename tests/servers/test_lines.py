"""A log that nobody reads, or that has no room: nothing waits for it, and no line is torn."""

import fcntl
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time

import pytest

from servers.lines import MAX_KEPT, Lines
from servers.log import Log
from tests.servers.inside import FakeClock, Kept
from tests.servers.running import WAIT, close, connect, context, echo

LINE = re.compile(r"(listening \S+|conn \d+ peer=\S+ (established|closed) .*)")


@pytest.fixture
def pipe():
    """Both ends of a pipe, as an operator's shell would make one."""
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        os.close(fd)


def read_all(fd: int) -> bytes:
    os.set_blocking(fd, False)
    got = b""
    try:
        while piece := os.read(fd, 1 << 16):
            got += piece
    except BlockingIOError:
        pass
    return got


def test_lines_that_find_a_full_pipe_wait_and_keep_their_order(pipe):
    reader, writer = pipe
    lines = Lines(writer)
    written = [f"line {number} {'x' * 90}\n" for number in range(3000)]
    for line in written:
        lines.write(line)
    assert lines.behind
    got = b""
    while lines.behind:
        got += read_all(reader)
        lines.flush()
    assert (got + read_all(reader)).decode() == "".join(written)
    assert lines.dropped == 0


def test_lines_over_the_bound_are_dropped_and_counted(pipe):
    reader, writer = pipe
    log = Log(Lines(writer), faults := Kept())
    count = 0
    while not log._lines.dropped:
        log.reload("y" * 990, None)
        count += 1
        assert count * 1000 < 3 * MAX_KEPT
    log.reload("y" * 990, None)
    assert log.behind and faults.getvalue() == ""
    got = b""
    while log.behind:
        got += read_all(reader)
        log.flush()
    assert faults.getvalue() == "residue serve: 2 lines of the log were dropped: nobody read it\n"
    whole = (got + read_all(reader)).decode().splitlines()
    assert len(whole) == count - 1
    assert set(whole) == {f"reload {'y' * 990} ok"}
    log.flush()
    assert faults.getvalue().count("\n") == 1


def test_what_still_waits_at_the_end_is_told(pipe):
    log = Log(Lines(pipe[1]), faults := Kept())
    while not log.behind:
        log.reload("z" * 3000, None)
    clock = FakeClock()
    ticks = iter(range(clock.now, clock.now + 10_000, 100))
    clock.monotonic_ms = lambda: next(ticks)
    log.finish(clock)
    assert faults.getvalue() == "residue serve: 1 lines of the log were dropped: nobody read it\n"


def test_a_pipe_is_not_changed_for_who_shares_it(pipe):
    Lines(pipe[1]).write("one\n")
    assert os.get_blocking(pipe[1])
    assert read_all(pipe[0]) == b"one\n"


def test_a_line_goes_to_a_pipe_in_one_piece(pipe):
    # What another process writes to the same pipe comes between lines and never inside one.
    reader, writer = pipe
    lines = Lines(writer)
    line = "a" * 1500 + "\n"
    for _ in range(100):
        lines.write(line)
    assert lines.behind
    got = b""
    while lines.behind:
        got += os.read(reader, 4096)
        if select.select([], [writer], [], 0)[1]:
            os.write(writer, b"b" * 20 + b"\n")
        lines.flush()
    found = set((got + read_all(reader)).decode().splitlines())
    assert found == {"a" * 1500, "b" * 20}


def test_a_terminal_that_does_not_take_more_is_not_waited_for():
    try:
        main, other = pty.openpty()
    except OSError as error:
        pytest.skip(f"this system gives no terminal: {error.strerror or error}")
    try:
        lines = Lines(other)
        for _ in range(2000):
            lines.write("t" * 99 + "\n")
        assert lines.behind
    finally:
        os.close(main)
        os.close(other)


def test_a_reader_that_left_is_missed_by_nobody():
    reader, writer = os.pipe()
    os.close(reader)
    log = Log(Lines(writer), faults := Kept())
    for _ in range(2):
        log.listening("127.0.0.1:1")
    assert not log.behind and faults.getvalue() == ""
    os.close(writer)


def serving(identity, **streams) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ci", "serve", "echo", "--port", "0", "--dir", str(identity)]
    return subprocess.Popen([*command, "--handshake-timeout", "4000"], **streams)


def talk(port: int, identity) -> None:
    client = connect(port, context(identity / "chain.pem"))
    assert echo(client, b"unheard") == b"unheard"
    close(client)


def test_a_log_that_nobody_reads_stops_neither_the_server_nor_its_stop(identity):
    process = serving(identity, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        port = int(process.stdout.readline().rpartition(b":")[2])
        # As small as a pipe can be: a page.
        fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(40):
            talk(port, identity)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
        assert re.fullmatch(rb"residue serve: \d+ lines of the log .*\n", process.stderr.read())
        assert all(LINE.fullmatch(line.decode()) for line in process.stdout.read().splitlines())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("room", [300, 350, 400])
def test_lines_are_whole_after_a_time_without_room(identity, tmp_path, room):
    log = tmp_path / "log"
    with log.open("w") as file:
        process = serving(identity, stdout=file, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + WAIT
        while not log.read_text().endswith("\n"):
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.02)
        port = int(log.read_text().rpartition(":")[2])
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        for _ in range(4):
            talk(port, identity)
        assert log.stat().st_size <= room
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        # Nobody comes, and the lines are written all the same.
        while log.read_text().count("\n") < 9:
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate()
    lines = log.read_text().splitlines()
    assert len(lines) == 9
    for line in lines:
        assert LINE.fullmatch(line) and line.count("peer=") <= 1, line


def test_the_loop_tries_a_log_again_until_there_is_room(start, pipe):
    inside = start()
    reader, writer = pipe
    stuck = Lines(writer)
    inside.loop._log._lines = stuck
    while not stuck.behind:
        stuck.write("w" * 3000 + "\n")
    assert inside.loop._timeout(None) == 0.1
    inside.turn()
    assert stuck.behind
    read_all(reader)
    inside.turn()
    assert not stuck.behind
    assert inside.loop._timeout(None) == -1
