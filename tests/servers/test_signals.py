"""Signals at both ends of a server's life: none meets what the system does by default."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers.signals import HANDLED, Signals, hold
from tests.servers.running import WAIT, Server, connect, context, dial, echo


def starting(identity) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ci", "serve", "echo", "--port", "0", "--dir", str(identity)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + WAIT
    # Its own code runs, and has begun to import what the server is made of.
    while "cryptography" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None and time.monotonic() < end
    return process


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: number.name)
def test_a_signal_while_it_starts_is_obeyed_when_it_has_started(identity, number):
    process = starting(identity)
    try:
        process.send_signal(number)
        assert process.stdout.readline().startswith("listening ")
        if number == signal.SIGHUP:
            assert process.stdout.readline() == "reload - ok\n"
            process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("again", HANDLED, ids=lambda number: number.name)
def test_signals_all_through_a_stop_change_nothing_of_its_end(identity, again):
    with Server(identity) as server:
        client = connect(server.port, context(identity / "chain.pem"))
        assert echo(client, b"x") == b"x"
        client.close()
        server.signal(signal.SIGTERM)
        end = time.monotonic() + WAIT
        while server.process.poll() is None and time.monotonic() < end:
            server.signal(again)
            time.sleep(0.001)
        assert server.process.wait(WAIT) == 0
    assert server.errors == ""


def test_a_storm_of_reloads_leaves_time_to_serve(identity):
    with Server(identity) as server:
        client = connect(server.port, context(identity / "chain.pem"))
        for count in range(200):
            server.signal(signal.SIGHUP)
            if count % 20 == 0:
                assert echo(client, b"x" * 100) == b"x" * 100
                dial(server.port).close()
        server.line("reload - ok")
        assert echo(client, b"served") == b"served"
        client.close()
        assert server.stop()[0] == 0


def test_held_signals_are_given_to_who_asks_and_the_rest_waits():
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    try:
        hold()
        signal.raise_signal(signal.SIGHUP)
        signals = Signals()
        assert not signals.reload
        with signals:
            assert signals.reload and not signals.stop
            signal.raise_signal(signal.SIGTERM)
            assert signals.stop
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= set(HANDLED)
        signal.raise_signal(signal.SIGTERM)
        assert signal.sigpending() == {signal.SIGTERM}
        assert signal.sigwait({signal.SIGTERM}) == signal.SIGTERM
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert {number: signal.getsignal(number) for number in HANDLED} == handlers
