"""Sessions are resumed: by OpenSSL and Python's ssl, at one server and at its neighbour."""

import os
import signal
import ssl

import pytest

from tests.servers.certificates import Authority, write_identity
from tests.servers.running import (
    Server,
    close,
    connect,
    context,
    echo,
    needs_openssl,
    s_client,
)

KEYS = "ticket.keys"


@pytest.fixture
def directory(tmp_path):
    """A server's directory of the test's own: an identity, and a file of one ticket key."""
    write_identity(tmp_path, "localhost")
    write_keys(tmp_path, new_key())
    return tmp_path


def new_key() -> str:
    return os.urandom(32).hex()


def write_keys(directory, *keys: str) -> None:
    (directory / KEYS).write_text("".join(f"{key}\n" for key in keys))


def visit(
    server: Server, made: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> ssl.SSLSession:
    """One connection with an echo, maybe with a session of before; the session that it leaves."""
    client = connect(server.port, made, session=session)
    # The tickets lie before the answer: who read it has them.
    assert echo(client, b"again") == b"again"
    left = client.session
    close(client)
    assert left is not None
    return left


def verdicts(server: Server, count: int) -> list[tuple[str, str]]:
    """`resumed` and `ticket` of the first connections, in the order in which they came."""
    server.line(".* closed ok .*", count)
    lines = server.lines(r"conn \d+ .* established .* resumed=(\S+) ticket=(\S+) client=- fp=- .*")
    return [(line[1], line[2]) for line in lines]


@needs_openssl
def test_openssl_resumes_its_session(identity, tmp_path):
    chain, kept = identity / "chain.pem", tmp_path / "session.pem"
    with Server(identity, "--tickets", "2") as server:
        s_client(server, chain, "-servername", "localhost", "-sess_out", str(kept))
        for _ in range(2):
            s_client(server, chain, "-servername", "localhost", "-sess_in", str(kept))
        # Another name than the ticket's: a full handshake, and the log says why.
        s_client(server, chain, "-servername", "other.test", "-sess_in", str(kept))
        expected = [("no", "none"), ("yes", "resumed"), ("yes", "resumed"), ("no", "name")]
        assert verdicts(server, 4) == expected


def test_python_resumes_three_times_from_one_session(identity):
    made = context(identity / "chain.pem")
    with Server(identity, "--tickets", "1", "--ticket-lifetime", "77") as server:
        session = visit(server, made)
        assert session.ticket_lifetime_hint == 77
        for _ in range(3):
            assert visit(server, made, session).has_ticket
        assert verdicts(server, 4) == [("no", "none"), *[("yes", "resumed")] * 3]


def test_sessions_go_on_at_a_server_with_the_same_keys_and_at_no_other(directory, tmp_path):
    made = context(directory / "chain.pem")
    shared = ("--tickets", "2", "--ticket-keys", KEYS)
    with Server(directory, *shared) as one, Server(directory, *shared) as two:
        visit(two, made, visit(one, made))
        assert verdicts(two, 1) == [("yes", "resumed")]
        session = visit(two, made)
        visit(one, made, session)
        assert verdicts(one, 2) == [("no", "none"), ("yes", "resumed")]
        with Server(directory, "--tickets", "2") as stranger, Server(directory) as without:
            visit(stranger, made, session)
            assert verdicts(stranger, 1) == [("no", "unknown")]
            visit(without, made, session)
            assert verdicts(without, 1) == [("no", "off")]


def test_a_rotated_key_opens_until_it_leaves_the_file(directory):
    made = context(directory / "chain.pem")
    first, second, third = new_key(), new_key(), new_key()
    write_keys(directory, first)
    with Server(directory, "--tickets", "1", "--ticket-keys", KEYS) as server:
        session = visit(server, made)
        write_keys(directory, second, first)
        reload(server, "reload tickets ok", 1)
        visit(server, made, session)

        # What is refused changes nothing.
        for count, broken in enumerate(
            ("no key", first[:-1], f"{first}\nx", "", f"{first}\n{first}", f"{first}0"), 1
        ):
            (directory / KEYS).write_text(broken)
            reload(server, "reload tickets refused tls-server-ticket-key", count)
        (directory / KEYS).unlink()
        reload(server, "reload tickets refused tls-server-ticket-key", count + 1)
        visit(server, made, session)

        write_keys(directory, third, second)
        reload(server, "reload tickets ok", 2)
        visit(server, made, session)
        resumed = ("yes", "resumed")
        assert verdicts(server, 4) == [("no", "none"), resumed, resumed, ("no", "unknown")]
    for key in (first, second, third):
        assert key not in server.errors
    assert server.errors.count("cannot use") == 6
    assert "cannot read" in server.errors


def reload(server: Server, line: str, count: int) -> None:
    server.signal(signal.SIGHUP)
    server.line(line, count)


def test_a_renewed_certificate_ends_sessions_and_the_same_one_does_not(directory):
    old = context(directory / "chain.pem")
    with Server(directory, "--tickets", "1") as server:
        session = visit(server, old)
        reload(server, "reload - ok", 1)
        visit(server, old, session)
        write_identity(directory, "renewed.test", "localhost")
        reload(server, "reload - ok", 2)
        # The client that kept the session trusts the new certificate too.
        old.load_verify_locations(cafile=str(directory / "chain.pem"))
        visit(server, old, session)
        assert verdicts(server, 3) == [("no", "none"), ("yes", "resumed"), ("no", "identity")]
        # Nothing is named in a reload that no option named.
        assert server.lines("reload (tickets|client-ca).*") == []


def test_a_session_is_no_way_around_a_required_certificate(directory, tmp_path):
    authority = Authority("Clients")
    (directory / "clients.pem").write_bytes(authority.pem())
    credential = authority.client(tmp_path / "client", "device")
    made = context(directory / "chain.pem")
    shared = ("--tickets", "1", "--ticket-keys", KEYS)
    required = ("--client-ca", "clients.pem", "--require-client-cert")
    with Server(directory, *shared) as open_to_all, Server(directory, *shared, *required) as strict:
        session = visit(open_to_all, made)
        made.load_cert_chain(credential.chain, credential.key)
        client = connect(strict.port, made, session=session)
        assert echo(client, b"anew") == b"anew"
        # Who showed a certificate is sent no ticket.
        assert not client.session.has_ticket
        close(client)
        strict.line(r".* established .* resumed=no ticket=auth client=CN=device fp=\S{16} .*")


def test_a_ticket_ends_with_its_lifetime_to_the_millisecond(start):
    inside = start(tickets=(1, 60))
    first = inside.connect()
    assert first.echo(b"first") == b"first"
    session = first.tls.session
    # The client dates its session by the machine's clock, and 29 s are within what may differ.
    inside.turn(29_000)
    inside.connect(session)
    inside.turn(31_000)
    inside.connect(session)
    found = [line.partition("ticket=")[2].split()[0] for line in inside.lines(".* established .*")]
    assert found == ["none", "resumed", "expired"]


def test_the_server_draws_another_key_when_the_first_had_its_lifetime(start):
    inside = start(tickets=(1, 60))
    inside.connect()
    assert inside.engine.ticket_keys() == 1
    # No connection comes: the loop alone keeps the time.
    inside.turn(60_000)
    assert inside.engine.ticket_keys() == 2
    inside.turn(60_000)
    assert inside.engine.ticket_keys() == 2
