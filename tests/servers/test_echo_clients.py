"""Real clients talk to the echo server: OpenSSL, Python's ssl, curl, GnuTLS."""

import random
import shutil
import socket
import ssl
import subprocess
import time

import pytest

from tests.servers.running import (
    WAIT,
    Server,
    close,
    connect,
    context,
    dial,
    echo,
    needs_openssl,
    read,
    s_client,
    sealed,
)

SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384")
GROUPS = ("X25519", "P-256", "P-384")


def last(server: Server, count: int) -> tuple[str, str]:
    """The `count`th connection's two lines."""
    closed = server.line(r"conn (\d+) .* closed .*", count)
    established = server.line(rf"conn {closed[1]} .* established .*")
    return established[0], closed[0]


@needs_openssl
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("group", GROUPS)
def test_openssl_gets_its_echo_with_each_suite_and_group(server, identity, suite, group):
    before = len(server.lines(r".* closed .*"))
    s_client(
        server,
        identity / "chain.pem",
        *("-ciphersuites", suite, "-groups", group),
        *("-servername", "a.echo.test", "-alpn", "other"),
    )
    established, closed = last(server, before + 1)
    assert (
        f" suite={suite} group={group} sni=a.echo.test alpn=other hrr=no resumed=no ticket=none"
        " client=- fp=- waited=" in established
    )
    assert " closed ok in=10 ms=" in closed


@needs_openssl
def test_openssl_is_asked_to_try_again_with_a_group_of_ours(server, identity):
    before = len(server.lines(r".* closed .*"))
    s_client(server, identity / "chain.pem", "-groups", "P-521:P-256", "-servername", "localhost")
    established, closed = last(server, before + 1)
    assert " group=P-256 sni=localhost alpn=- hrr=yes " in established
    assert " closed ok in=10 " in closed


@needs_openssl
def test_openssl_without_a_name_is_served_the_default(server, identity):
    before = len(server.lines(r".* closed .*"))
    s_client(server, identity / "chain.pem", "-noservername")
    established, _ = last(server, before + 1)
    assert " sni=- alpn=- " in established


@needs_openssl
def test_a_name_is_escaped_in_the_log(server, identity):
    before = len(server.lines(r".* closed .*"))
    s_client(server, identity / "chain.pem", "-servername", "A b\nconn 9 closed\\")
    established, _ = last(server, before + 1)
    assert r" sni=a\x20b\x0aconn\x209\x20closed\x5c alpn=- " in established
    assert not server.lines("conn 9 closed.*")


@needs_openssl
def test_openssl_changes_its_keys_and_asks_for_ours(server, identity):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}"]
    command += ["-CAfile", str(identity / "chain.pem")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            for sent in (b"before\n", b"K\n", b"between\n", b"k\n", b"after\n"):
                process.stdin.write(sent)
                process.stdin.flush()
                # A letter is obeyed when it is all that is read at once, so each is waited for.
                expected = b"KEYUPDATE\n" if len(sent) == 2 else sent
                assert expected in iter(process.stdout.readline, b"")
            process.stdin.write(b"Q\n")
            process.stdin.close()
            assert process.wait(WAIT) == 0
        finally:
            process.kill()


def test_a_refused_hello_is_told_and_logged(server, identity):
    with pytest.raises(ssl.SSLError, match=r"NO_APPLICATION_PROTOCOL|no application protocol"):
        connect(server.port, context(identity / "chain.pem", ("nothing",)))
    assert server.line(r"conn \d+ peer=\S+ closed tls-server-alpn in=0 ms=\d+")


def test_tls_1_2_is_told_the_version(server):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        connect(server.port, old)
    assert server.line(r"conn \d+ peer=\S+ closed tls-server-version in=0 ms=\d+")


def test_what_is_no_tls_is_told_so_and_closed(server):
    with dial(server.port) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        # A fatal unexpected_message alert in the clear, then the end of the stream.
        assert plain.makefile("rb").read() == bytes.fromhex("1503030002020a")
    assert server.line(r"conn \d+ peer=\S+ closed tls-unexpected-message in=0 ms=\d+")


def test_python_gets_twenty_echoes_byte_for_byte(server, identity):
    random_bytes = random.Random(20).randbytes
    sizes = [1, 2, 1000, 16383, 16384, 16385, 20000, *(random.Random(7).sample(range(20000), 13))]
    assert len(sizes) == 20
    client = connect(server.port, context(identity / "chain.pem", ("echo",)))
    assert client.selected_alpn_protocol() == "echo"
    me = client.getsockname()[1]
    for size in sizes:
        data = random_bytes(size or 1)
        assert echo(client, data) == data
    close(client)
    assert server.line(rf"conn \d+ peer=127.0.0.1:{me} closed ok in={sum(sizes)} ms=\d+")


def test_two_hundred_connections_at_once_get_twenty_echoes_each(identity):
    made = context(identity / "chain.pem")
    rounds = [1, 20000, *(random.Random(3).sample(range(1, 20000), 18))]
    with Server(identity) as server:
        raw = [dial(server.port) for _ in range(200)]
        clients = [connect(server.port, made, raw=plain) for plain in raw]
        assert len(server.lines(r".* closed .*")) == 0
        randomness = random.Random(200)
        for size in rounds:
            sent = [randomness.randbytes(size) for _ in clients]
            for client, data in zip(clients, sent, strict=True):
                client.sendall(data)
            for client, data in zip(clients, sent, strict=True):
                assert read(client, size) == data
        for client in clients:
            close(client)
        server.line(rf"conn \d+ peer=\S+ closed ok in={sum(rounds)} ms=\d+", 200)


def test_a_half_close_still_gets_every_answer(server, identity):
    # Everything is sent, and close_notify after it, before anything is read.
    plain, record, answers = sealed(server.port, context(identity / "chain.pem"))
    me = plain.getsockname()[1]
    data = random.Random(1).randbytes(60000)
    plain.sendall(record(data))
    assert answers() == data
    plain.close()
    assert server.line(rf"conn \d+ peer=127.0.0.1:{me} closed ok in=60000 ms=\d+")


def test_an_end_without_close_notify_is_no_clean_end(server, identity):
    client = connect(server.port, context(identity / "chain.pem"))
    assert echo(client, b"cut") == b"cut"
    me = client.getsockname()[1]
    socket.socket(fileno=client.detach()).close()
    assert server.line(rf"conn \d+ peer=127.0.0.1:{me} closed tls-peer-closed in=3 ms=\d+")


def test_a_peer_that_does_not_read_stops_being_read(server, identity):
    # Back-pressure reaches the sender: far less is accepted than it would like to send, and all
    # of it comes back once it reads.
    client = connect(server.port, context(identity / "chain.pem"))
    block = random.Random(5).randbytes(1 << 16)
    client.setblocking(False)
    sent = bytearray()
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.5:
        try:
            count = client.send(block)
            sent += block[:count]
            quiet_since = time.monotonic()
        except ssl.SSLWantWriteError:
            # An SSL object that wanted to write must be given the same bytes again.
            time.sleep(0.01)
        assert len(sent) < 1 << 26
    client.settimeout(WAIT)
    got = bytearray()
    while len(got) < len(sent):
        got += client.recv(1 << 16)
    assert got == sent
    client.close()


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_gets_its_own_request_back(identity):
    with Server(identity, "--idle", "500") as server:
        command = ["curl", "-sS", "--tlsv1.3", "--http0.9", "--cacert", str(identity / "chain.pem")]
        command += ["--resolve", f"localhost:{server.port}:127.0.0.1", "--max-time", str(int(WAIT))]
        command += [f"https://localhost:{server.port}/over-here"]
        done = subprocess.run(command, capture_output=True, timeout=WAIT + 5, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"GET /over-here HTTP/1.1\r\n")
        assert server.line(r"conn 1 peer=\S+ closed (idle|ok) in=\d+ ms=\d+")


@pytest.mark.skipif(not shutil.which("gnutls-cli"), reason="gnutls-cli is not installed")
@pytest.mark.parametrize("group", ["X25519", "SECP256R1", "SECP384R1"])
def test_gnutls_gets_its_echo(server, identity, group):
    command = ["gnutls-cli", "--port", str(server.port), "--sni-hostname", "localhost"]
    command += ["--x509cafile", str(identity / "chain.pem"), "--verify-hostname", "localhost"]
    command += ["--priority", f"NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-{group}"]
    with subprocess.Popen(
        [*command, "127.0.0.1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            process.stdin.write(b"over here\n")
            process.stdin.flush()
            while line := process.stdout.readline():
                if line == b"over here\n":
                    break
            assert line
            process.stdin.close()
            process.stdout.read()
            assert process.wait(WAIT) == 0
        finally:
            process.kill()
