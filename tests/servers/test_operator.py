"""What an operator does: starts, mistakes, reloads, stops."""

import argparse
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from servers import command
from tests.servers.certificates import write_identity
from tests.servers.running import WAIT, Server, close, connect, context, dial, echo


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Starts a server that must not start: its one line on standard error."""

    def start(*arguments: str) -> str:
        parser = argparse.ArgumentParser(prog="residue serve", allow_abbrev=False)
        command.add_arguments(parser)
        code: object
        try:
            code = command.run(parser.parse_args(["echo", *arguments]))
        except SystemExit as usage:
            code = usage.code
        out, err = capsys.readouterr()
        assert code == 2, err
        assert out == ""
        lines = [line for line in err.splitlines() if not line.startswith("usage: ")]
        assert len(lines) == 1, err
        return lines[0]

    return start


def test_what_the_command_refuses_is_its_exit_code(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ci", "serve", "echo", "--port", "0", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"residue serve: cannot read {tmp_path}/chain.pem: No such file or directory\n"
    )


def serial(client: ssl.SSLSocket) -> int:
    der = client.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "'70000' is not a number from 0 to 65535"),
        (["--nonsense", "1"], "--nonsense"),
        (["--connections", "0"], "'0' is not a number from 1"),
        (["--connections", "1048577"], "is not a number from 1 to 1048576"),
        (["--connections", "1048576"], "descriptors and the limit is"),
        (["--areas", "1"], "'1' is not a number from 2"),
        (["--areas", "300"], "--areas 300: at most one a connection"),
        (["--bind", "localhost"], "'localhost' is not an IPv4 or IPv6 address"),
        (["--bind", "192.0.2.1"], "cannot listen on 192.0.2.1 port 0: "),
        (["--identity", "absent"], "--identity absent: there is no such directory"),
        (["--identity", "../x"], "--identity ../x: a subdirectory"),
        (["--alpn", "a,,b"], "--alpn a,,b: tls-server-alpn-list"),
        (["--tickets", "9"], "'9' is not a number from 0 to 8"),
        (["--ticket-lifetime", "0"], "'0' is not a number from 1 to 604800"),
        (["--ticket-keys", "keys"], "--ticket-keys keys: needs --tickets"),
        (["--tickets", "1", "--ticket-keys", "../keys"], "--ticket-keys ../keys: a file in --dir"),
        (["--tickets", "1", "--ticket-keys", "absent"], "absent: No such file or directory"),
        (["--require-client-cert"], "--require-client-cert: needs --client-ca"),
        (["--client-ca", "/etc/passwd"], "--client-ca /etc/passwd: a file in --dir"),
        (["--client-ca", "absent"], "absent: No such file or directory"),
        (["--client-ca", "."], "--client-ca .: a file in --dir"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(identity, refused, arguments, said):
    assert said in refused("--port", "0", "--dir", str(identity), *arguments)


def test_a_missing_folder_or_file_is_one_line_and_exit_code_2(identity, refused, tmp_path):
    assert "there is no such directory" in refused("--port", "0", "--dir", str(tmp_path / "no"))
    assert "chain.pem: No such file" in refused("--port", "0", "--dir", str(tmp_path))
    (tmp_path / "chain.pem").write_bytes((identity / "chain.pem").read_bytes())
    assert "key.pem: No such file" in refused("--port", "0", "--dir", str(tmp_path))
    (tmp_path / "key.pem").mkdir()
    assert "key.pem: " in refused("--port", "0", "--dir", str(tmp_path))


def test_a_file_that_is_not_pem_is_one_line_and_exit_code_2(identity, refused, tmp_path):
    write_identity(tmp_path, "localhost")
    (tmp_path / "chain.pem").write_bytes(b"\x30\x82\x01\x00 not PEM\n")
    assert "tls-server-chain" in refused("--port", "0", "--dir", str(tmp_path))
    write_identity(tmp_path, "localhost")
    (tmp_path / "key.pem").write_bytes(b"not PEM")
    assert "tls-server-key-format" in refused("--port", "0", "--dir", str(tmp_path))


def test_a_key_of_another_certificate_is_one_line_and_exit_code_2(identity, refused, tmp_path):
    write_identity(tmp_path, "localhost")
    (tmp_path / "key.pem").write_bytes((identity / "key.pem").read_bytes())
    assert "tls-server-key-mismatch" in refused("--port", "0", "--dir", str(tmp_path))


def test_an_expired_certificate_is_one_line_and_exit_code_2(refused, tmp_path):
    write_identity(tmp_path, "localhost", days=-1)
    assert "tls-server-cert-expired" in refused("--port", "0", "--dir", str(tmp_path))


KEY = "5ec2e7" * 10 + "0a0B"


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEY[:-1],
        KEY + "0",
        f"{KEY} # ours",
        f"{KEY[:32]} {KEY[32:]}",
        f"{KEY}\n{KEY}",
        f"{KEY}\n\n{KEY.lower()}",
        "".join(f"{number:064x}\n" for number in range(5)),
    ],
)
def test_a_file_of_no_ticket_keys_is_one_line_and_tells_no_key(refused, tmp_path, text):
    write_identity(tmp_path, "localhost")
    (tmp_path / "keys").write_text(text)
    said = refused("--port", "0", "--dir", str(tmp_path), "--tickets", "1", "--ticket-keys", "keys")
    assert said.startswith(f"residue serve: cannot use {tmp_path}/keys: tls-server-ticket-key: ")
    assert "5ec2e7" not in said.lower()


def test_a_file_of_no_roots_is_one_line_and_exit_code_2(refused, tmp_path):
    write_identity(tmp_path, "localhost")
    said = refused("--port", "0", "--dir", str(tmp_path), "--client-ca", "key.pem")
    assert said.startswith(
        f"residue serve: cannot use {tmp_path}/key.pem: tls-server-client-store: "
    )


@pytest.mark.parametrize("reuse", [False, True])
def test_a_port_that_something_holds_is_left_alone(identity, refused, reuse):
    with socket.socket() as holder:
        if reuse:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        line = refused("--port", str(port), "--dir", str(identity))
        assert line == (
            f"residue serve: cannot listen on 127.0.0.1 port {port}: Address already in use"
        )


def test_a_server_starts_again_on_the_port_it_had(identity):
    # Connections of the last one may still be dying (TIME_WAIT); they are nobody's.
    with Server(identity) as server:
        client = connect(server.port, context(identity / "chain.pem"))
        assert server.stop()[0] == 0
        client.close()
    with Server(identity, port=server.port) as again:
        assert again.port == server.port


def test_names_of_several_identities_lead_to_them(tmp_path):
    serials = {
        name: write_identity(tmp_path / name, *names)
        for name, *names in (
            ("one", "one.test", "*.one.test"),
            ("two", "two.test", "*.test"),
        )
    }
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    with Server(tmp_path, "--identity", "one", "--identity", "two") as server:
        for name, identity in (
            ("one.test", "one"),
            ("a.one.test", "one"),
            ("two.test", "two"),
            ("elsewhere.example", "one"),
        ):
            client = connect(server.port, anyone, name)
            assert serial(client) == serials[identity], name
            client.close()
        assert server.stop()[0] == 0
    # A wildcard over a top-level domain is more than the engine serves.
    assert server.errors == "residue serve: warning: identity two is not served for *.test\n"


def test_several_addresses_share_one_port(identity):
    with Server(identity, "--bind", "127.0.0.1", "--bind", "127.0.0.2") as server:
        assert server.line(rf"listening 127.0.0.2:{server.port}")
        with socket.create_connection(("127.0.0.2", server.port), WAIT) as plain:
            client = connect(server.port, context(identity / "chain.pem"), raw=plain)
            assert echo(client, b"here too") == b"here too"
            client.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python has no IPv6")
def test_ipv6_is_written_in_brackets(identity):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with Server(identity, "--bind", "::1") as server:
        assert server.address == f"[::1]:{server.port}"
        plain = socket.create_connection(("::1", server.port), WAIT)
        me = plain.getsockname()[1]
        client = connect(server.port, context(identity / "chain.pem"), raw=plain)
        close(client)
        server.line(rf"conn 1 peer=\[::1\]:{me} closed ok in=0 ms=\d+")


def test_a_reload_serves_the_new_certificate_and_keeps_the_old_connection(tmp_path):
    old = write_identity(tmp_path / "main", "localhost")
    made = context(tmp_path / "main" / "chain.pem")
    with Server(tmp_path, "--identity", "main") as server:
        before = connect(server.port, made)
        assert serial(before) == old
        new = write_identity(tmp_path / "main", "localhost", "renewed.test")
        server.signal(signal.SIGHUP)
        server.line("reload main ok")
        trusted = context(tmp_path / "main" / "chain.pem")
        after = connect(server.port, trusted, "renewed.test")
        assert serial(after) == new != old
        assert echo(before, b"as before") == b"as before"

        # Half of a renewal: the chain without its key. The engine refuses the pair.
        (tmp_path / "main" / "chain.pem").write_bytes(other_chain(tmp_path))
        server.signal(signal.SIGHUP)
        server.line("reload main refused tls-server-key-mismatch")
        (tmp_path / "main" / "key.pem").unlink()
        server.signal(signal.SIGHUP)
        server.line("reload main refused tls-server-key-format")
        still = connect(server.port, trusted)
        assert serial(still) == new
        for client in (before, after, still):
            close(client)
        assert server.stop()[0] == 0


def other_chain(directory: Path) -> bytes:
    write_identity(directory / "other", "localhost")
    return (directory / "other" / "chain.pem").read_bytes()


def test_the_identity_of_the_directory_itself_is_logged_as_absent(tmp_path):
    write_identity(tmp_path, "localhost")
    with Server(tmp_path) as server:
        server.signal(signal.SIGHUP)
        server.line("reload - ok")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_says_close_notify_and_ends_within_two_seconds(identity, number):
    made = context(identity / "chain.pem")
    with Server(identity, "--handshakes", "1") as server:
        clients = [connect(server.port, made) for _ in range(10)]
        silent, queued = dial(server.port), dial(server.port)
        time.sleep(0.3)
        start = time.monotonic()
        server.signal(number)
        for client in clients:
            assert client.recv(1) == b""  # close_notify: a bare end of the stream would raise
        assert server.process.wait(WAIT) == 0
        assert time.monotonic() - start < 2
        server.line(r"conn \d+ peer=\S+ closed shutdown in=0 ms=\d+", 12)
        with pytest.raises(ConnectionRefusedError):
            dial(server.port)
        for one in (*clients, silent, queued):
            one.close()
    assert server.errors == ""


def test_a_stop_waits_for_nobody_longer_than_two_seconds(identity):
    made = context(identity / "chain.pem")
    with Server(identity) as server:
        # One whose answers fill every buffer, so that not even close_notify can be written.
        full = connect(server.port, made)
        full.setblocking(False)
        with pytest.raises(ssl.SSLWantWriteError):
            while True:
                full.send(b"w" * 16384)
                time.sleep(0.001)
        code, seconds = server.stop()
        assert code == 0 and seconds < 2
        server.line(r"conn 1 peer=\S+ closed shutdown in=\d+ ms=\d+")
        full.close()


def test_a_log_that_nobody_reads_any_more_ends_nothing(identity):
    command_line = [sys.executable, "-m", "ci", "serve", "echo", "--port", "0"]
    with subprocess.Popen(
        [*command_line, "--dir", str(identity)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            port = int(process.stdout.readline().rpartition(b":")[2])
            process.stdout.close()
            for _ in range(2):
                client = connect(port, context(identity / "chain.pem"))
                assert echo(client, b"unheard") == b"unheard"
                close(client)
            process.terminate()
            assert process.wait(WAIT) == 0
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_help_shows_an_example():
    done = subprocess.run(
        [sys.executable, "-m", "ci", "serve", "--help"],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=True,
    )
    assert "example:\n  residue serve echo" in done.stdout
    assert "--handshake-timeout" in done.stdout
