"""The server's limits and deadlines, as a client meets them."""

import contextlib
import random
import resource
import socket
import struct
import time

import pytest

from tests.servers.running import WAIT, Server, close, connect, context, dial, echo, sealed

HELLO = bytes.fromhex("1603010200010001fc0303")
"""The begin of a ClientHello, that says it is longer."""


def test_handshakes_over_the_bound_wait_and_are_not_refused(identity):
    options = ("--handshakes", "2", "--handshake-timeout", "1500")
    with (
        Server(identity, *options) as server,
        dial(server.port) as first,
        dial(server.port) as second,
    ):
        for slow in (first, second):
            slow.sendall(HELLO)
        # Later than the slow two, so that they are out of its way before its own time is up.
        time.sleep(0.7)
        client = connect(server.port, context(identity / "chain.pem"))
        assert echo(client, b"patience") == b"patience"
        close(client)
        waited = server.line(r"conn 3 .* established .* waited=(\d+) handshake=\d+")[1]
        assert 400 < int(waited) < 1500
        for number in (1, 2):
            server.line(rf"conn {number} peer=\S+ closed handshake-timeout in=0 ms=\d+")


def test_a_wait_in_the_queue_has_a_deadline_of_its_own(identity):
    # The first has the only start of this second, and the second's time is over before the next.
    # Waiting for the place of the first, both times would be over at once.
    options = ("--rate", "1", "--handshake-timeout", "400")
    with (
        Server(identity, *options) as server,
        dial(server.port) as first,
        dial(server.port) as second,
    ):
        first.sendall(HELLO)
        second.sendall(HELLO)
        second.settimeout(WAIT)
        # What it said was never read, so that the end is a reset.
        with pytest.raises(ConnectionResetError):
            second.recv(1)
        server.line(r"conn 2 peer=\S+ closed handshake-timeout in=0 ms=\d+")


def test_no_byte_puts_the_deadline_of_a_handshake_back(identity):
    with Server(identity, "--handshake-timeout", "800") as server, dial(server.port) as slow:
        slow.settimeout(0.05)
        start = time.monotonic()
        # A ClientHello that never ends: type, version, length, then one byte at a time.
        slow.sendall(HELLO)
        while time.monotonic() - start < WAIT:
            try:
                slow.sendall(b"\0")
                if slow.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - start < 5
        server.line(r"conn 1 peer=\S+ closed handshake-timeout in=0 ms=\d+")


def test_handshakes_over_the_rate_wait(identity):
    with Server(identity, "--rate", "5") as server:
        start = time.monotonic()
        raw = [dial(server.port) for _ in range(15)]
        clients = [connect(server.port, context(identity / "chain.pem"), raw=one) for one in raw]
        assert time.monotonic() - start > 1.9
        assert [echo(client, b"x") for client in clients] == [b"x"] * 15
        waits = [int(m[1]) for m in server.lines(r"conn .* established .* waited=(\d+) .*")]
        assert max(waits) > 1900
        for client in clients:
            client.close()


def test_a_connection_over_the_table_is_closed_at_once(identity):
    made = context(identity / "chain.pem")
    with Server(identity, "--connections", "4") as server:
        held = [connect(server.port, made) for _ in range(4)]
        with dial(server.port) as fifth:
            port = fifth.getsockname()[1]
            start = time.monotonic()
            with contextlib.suppress(ConnectionResetError):
                assert fifth.recv(1) == b""
            assert time.monotonic() - start < 5
        assert server.line(rf"refused 5 peer=127.0.0.1:{port} full")
        assert echo(held[0], b"still here") == b"still here"
        close(held.pop())
        server.line(r"conn \d+ .* closed ok .*")
        again = connect(server.port, made)
        assert echo(again, b"a place came free") == b"a place came free"
        for client in [*held, again]:
            client.close()


def test_an_idle_connection_gets_close_notify(identity):
    with Server(identity, "--idle", "500") as server:
        client = connect(server.port, context(identity / "chain.pem"))
        assert echo(client, b"tick") == b"tick"
        start = time.monotonic()
        assert client.recv(1) == b""
        assert 0.4 < time.monotonic() - start < 10
        server.line(r"conn 1 peer=\S+ closed idle in=4 ms=\d+")
        client.close()


def test_half_a_record_holds_an_area_for_so_long_and_no_longer(identity):
    made = context(identity / "chain.pem")
    with Server(identity, "--handshake-timeout", "700", "--idle", "60000") as server:
        stalled, record, _ = sealed(server.port, made)
        other = connect(server.port, made)
        whole = record(b"never whole")
        stalled.sendall(whole[:9])
        start = time.monotonic()
        # A byte now and then completes no record, and so buys no time.
        for at in range(9, 12):
            assert echo(other, b"another area") == b"another area"
            time.sleep(0.15)
            stalled.sendall(whole[at : at + 1])
        server.line(r"conn 1 peer=\S+ closed record-timeout in=0 ms=\d+")
        assert time.monotonic() - start < 5
        assert echo(other, b"another area") == b"another area"
        stalled.close()
        close(other)


def test_whole_records_may_go_on_for_longer_than_the_time_of_one(identity):
    made = context(identity / "chain.pem")
    options = ("--areas", "2", "--handshake-timeout", "500")
    with Server(identity, *options) as server:
        uploading, record, _ = sealed(server.port, made)
        rest = b""
        for _ in range(12):
            # Every write ends in the middle of a record, so that the area is never given back.
            piece = record(b"y" * 100)
            uploading.sendall(rest + piece[:50])
            rest = piece[50:]
            time.sleep(0.1)
        assert not server.lines(r".* closed .*")
        uploading.close()


def test_fewer_areas_than_connections_serve_them_all(identity):
    made = context(identity / "chain.pem")
    with Server(identity, "--areas", "4", "--handshakes", "32") as server:
        raw = [dial(server.port) for _ in range(60)]
        clients = [connect(server.port, made, raw=one) for one in raw]
        for client in clients:
            client.sendall(b"z" * 20000)
        for client in clients:
            assert echo(client, b"") == b""
            got = bytearray()
            while len(got) < 20000:
                got += client.recv(20000)
            assert got == b"z" * 20000
        for client in clients:
            close(client)
        server.line(r"conn \d+ .* closed ok in=20000 .*", 60)


def test_strangers_that_drip_on_every_area_keep_nobody_waiting(identity):
    made = context(identity / "chain.pem")
    options = ("--areas", "4", "--connections", "64", "--handshake-timeout", "1000")
    with Server(identity, *options) as server:
        drips = []
        for _ in range(4):
            plain, record, _ = sealed(server.port, made)
            drips.append((plain, record, record(b"x")))
            plain.sendall(drips[-1][2][:10])
        for _ in range(3):
            client = connect(server.port, made)
            assert echo(client, b"at once") == b"at once"
            close(client)
            # The rest of the one, and half of the next.
            for at, (plain, record, half) in enumerate(drips):
                drips[at] = plain, record, record(b"y")
                plain.sendall(half[10:] + drips[at][2][:10])
        server.line(r"conn \d+ .* closed ok .*", 3)
        for plain, _, _ in drips:
            plain.close()


def test_silent_connections_keep_nobody_waiting(identity):
    made = context(identity / "chain.pem")
    options = ("--connections", "60", "--handshakes", "4", "--handshake-timeout", "60000")
    with contextlib.ExitStack() as stack, Server(identity, *options) as server:
        for _ in range(100):
            stack.callback(dial(server.port).close)
        client = connect(server.port, made)
        assert echo(client, b"at once") == b"at once"
        close(client)


def test_a_peer_that_sends_on_reads_the_alert_and_not_a_reset(identity):
    with Server(identity) as server, dial(server.port) as plain:
        plain.settimeout(WAIT)
        plain.sendall(b"\0" * 200_000)
        assert plain.makefile("rb").read() == bytes.fromhex("1503030002020a")


def test_a_peer_that_never_stops_sending_is_closed_all_the_same(identity):
    with Server(identity) as server, dial(server.port) as plain:
        start = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - start < WAIT:
                plain.sendall(b"\0" * 1000)
                time.sleep(0.01)
        assert time.monotonic() - start < 5


def test_running_out_of_descriptors_neither_spins_nor_kills(identity):
    made = context(identity / "chain.pem")
    with Server(identity) as server:
        first = connect(server.port, made)
        limit = server.descriptors() + 1
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        second = connect(server.port, made)
        with dial(server.port) as third:
            before = server.cpu_seconds()
            time.sleep(1)
            assert server.cpu_seconds() - before < 0.3
            assert echo(first, b"and goes on") == b"and goes on"
            close(second)
            late = connect(server.port, made, raw=third)
            assert echo(late, b"served when there is one") == b"served when there is one"
            close(late)
        close(first)
        assert server.stop()[0] == 0
    assert "cannot accept" in server.errors


def test_a_silent_server_uses_no_time(identity):
    made = context(identity / "chain.pem")
    with Server(identity) as server:
        clients = [connect(server.port, made) for _ in range(20)]
        before = server.cpu_seconds()
        time.sleep(1)
        assert server.cpu_seconds() - before < 0.1
        for client in clients:
            client.close()


def test_after_a_storm_of_rude_clients_nothing_is_left(identity):
    made = context(identity / "chain.pem")
    randomness = random.Random(12)
    with Server(identity, "--areas", "8", "--handshake-timeout", "5000") as server:
        steady = connect(server.port, made)
        before = server.descriptors()
        for turn in range(120):
            kind = turn % 6
            if kind < 3:
                rude = dial(server.port)
                if kind == 1:
                    rude.sendall(randomness.randbytes(300))
                elif kind == 2:
                    rude.sendall(HELLO)
            else:
                rude, record, _ = sealed(server.port, made)
                if kind == 4:
                    rude.sendall(record(b"v" * 16384)[:10_000])
                elif kind == 5:
                    rude.sendall(record(b"v" * 200) + randomness.randbytes(40))
            if turn % 2:
                # Closing with this set sends a reset instead of an end.
                rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            rude.close()
            assert echo(steady, b"steady") == b"steady"
        server.line(r"conn \d+ .* closed .*", 120)
        end = time.monotonic() + WAIT
        while server.descriptors() > before and time.monotonic() < end:
            time.sleep(0.05)
        assert server.descriptors() == before
        close(steady)
        reasons = {m[1] for m in server.lines(r"conn \d+ .* closed (\S+) .*")}
        assert "error" not in reasons
        assert {"tls-peer-closed", "tls-unexpected-message"} <= reasons
        assert server.stop()[0] == 0
    assert server.errors == ""
