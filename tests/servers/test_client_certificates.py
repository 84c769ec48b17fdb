"""Clients with certificates: each kind, wrong ones, none, and those of a replaced store."""

import contextlib
import re
import signal
import socket
import ssl
import subprocess
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from tests.servers.certificates import KEYS, Authority, Credential, write_identity
from tests.servers.running import (
    WAIT,
    Server,
    close,
    connect,
    context,
    dial,
    echo,
    needs_openssl,
    s_client,
)

STORE = "clients.pem"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("Clients")


@pytest.fixture(scope="module")
def stranger() -> Authority:
    """One that no server here trusts, of the same name as the one that they do."""
    return Authority("Clients")


@pytest.fixture(scope="module")
def directory(tmp_path_factory, authority):
    """A server's directory, which no test of this module changes."""
    made = tmp_path_factory.mktemp("verifying")
    write_identity(made, "localhost")
    (made / STORE).write_bytes(authority.pem())
    return made


@pytest.fixture(scope="module")
def optional(directory):
    with Server(directory, "--client-ca", STORE) as server:
        yield server


@pytest.fixture(scope="module")
def required(directory):
    with Server(directory, "--client-ca", STORE, "--require-client-cert") as server:
        yield server


def files(credential: Credential) -> list[str]:
    """What tells s_client to present a credential, its intermediates included."""
    chain = str(credential.chain)
    return ["-cert", chain, "-cert_chain", chain, "-key", str(credential.key)]


def presenting(directory, credential: Credential | None) -> ssl.SSLContext:
    made = context(directory / "chain.pem")
    if credential is not None:
        made.load_cert_chain(credential.chain, credential.key)
    return made


def openssl_says(credential: Credential) -> tuple[bytes, str]:
    """The subject and the first 16 digits of the fingerprint, as OpenSSL prints them."""
    command = ["openssl", "x509", "-in", str(credential.chain), "-noout", "-subject"]
    command += ["-nameopt", "RFC2253", "-fingerprint", "-sha256"]
    done = subprocess.run(
        command,
        capture_output=True,
        timeout=WAIT,
        check=True,
    )
    subject, fingerprint = done.stdout.splitlines()
    digits = fingerprint.partition(b"=")[2].replace(b":", b"").decode().lower()
    return subject.removeprefix(b"subject="), digits[:16]


def unescape(value: str) -> bytes:
    """A value of the log as it was before the log escaped it."""
    plain = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), value)
    return plain.encode("latin-1")


def identity_of(server: Server, port: int) -> tuple[bytes, str]:
    """What the log says of the client at a port."""
    line = server.line(
        rf"conn \d+ peer=127.0.0.1:{port} established .* client=(\S*) fp=(\S+) waited=.*"
    )
    return unescape(line[1]), line[2]


def greet(server: Server, made: ssl.SSLContext) -> tuple[bytes, str]:
    """One connection with an echo: what the log says of its client."""
    client = connect(server.port, made)
    port = client.getsockname()[1]
    assert echo(client, b"it is me") == b"it is me"
    close(client)
    return identity_of(server, port)


def refused(server: Server, made: ssl.SSLContext) -> tuple[str, str]:
    """One connection that is not let in: the reason in the log, and the alert the client read."""
    plain = dial(server.port)
    port = plain.getsockname()[1]
    with pytest.raises(ssl.SSLError) as error:
        # The client is done before the server judges its certificate.
        client = connect(server.port, made, raw=plain)
        client.recv(1)
    closed = server.line(rf"conn \d+ peer=127.0.0.1:{port} closed (\S+) in=0 .*")
    assert server.lines(rf"conn \d+ peer=127.0.0.1:{port} established .*") == []
    return closed[1], error.value.reason


@needs_openssl
@pytest.mark.parametrize("above", ["root", "intermediate"])
@pytest.mark.parametrize("kind", KEYS)
def test_openssl_presents_each_kind_of_key(
    directory, required, authority, tmp_path, kind, above, request
):
    by = authority if above == "root" else Authority("Between", authority)
    credential = by.client(tmp_path, f"device of {kind}", kind)
    before = len(required.lines(".* established .*"))
    s_client(required, directory / "chain.pem", *files(credential))
    line = required.line(r".* established .* client=(\S+) fp=(\S+) .*", before + 1)
    assert (unescape(line[1]), line[2]) == openssl_says(credential)


@needs_openssl
def test_openssl_without_a_certificate_is_let_in_when_it_is_optional(directory, optional):
    before = len(optional.lines(".* established .*"))
    s_client(optional, directory / "chain.pem")
    optional.line(".* established .* client=- fp=- .*", before + 1)


@needs_openssl
def test_openssl_without_a_certificate_is_told_that_one_is_required(directory, required):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{required.port}", "-quiet"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT,
        check=False,
    )
    assert b"SSL alert number 116" in done.stderr
    required.line(".* closed tls-server-client-cert-required .*")


def test_nobody_is_asked_where_no_store_is(identity, authority, tmp_path):
    credential = authority.client(tmp_path, "device")
    with Server(identity) as server:
        assert greet(server, presenting(identity, credential)) == (b"-", "-")


@pytest.mark.parametrize("mode", ["optional", "required"])
def test_a_certificate_of_a_stranger_is_refused(directory, stranger, tmp_path, mode, request):
    server = request.getfixturevalue(mode)
    made = presenting(directory, stranger.client(tmp_path, "device"))
    # A root of the right name and another key: no signature of its chain verifies.
    assert refused(server, made) == ("x509-bad-signature", "SSLV3_ALERT_BAD_CERTIFICATE")
    made = presenting(directory, Authority("Others").client(tmp_path, "device"))
    assert refused(server, made) == ("x509-unknown-issuer", "TLSV1_ALERT_UNKNOWN_CA")


def test_a_certificate_that_is_over_is_refused(directory, optional, authority, tmp_path):
    credential = authority.client(tmp_path, "device", lasts=-timedelta(minutes=1))
    made = presenting(directory, credential)
    assert refused(optional, made) == ("x509-expired", "SSLV3_ALERT_CERTIFICATE_EXPIRED")


def attribute(oid: x509.ObjectIdentifier, value, kind: _ASN1Type | None = None):
    return x509.NameAttribute(oid, value, kind, _validate=False)


SUBJECTS = {
    "words": x509.Name(
        [
            attribute(NameOID.COUNTRY_NAME, "DE"),
            attribute(NameOID.ORGANIZATION_NAME, 'Müller & Söhne, "Werk" <2>'),
            attribute(NameOID.COMMON_NAME, " #device\\17; a+b=c "),
        ]
    ),
    "several in one": x509.Name(
        [
            x509.RelativeDistinguishedName(
                [attribute(NameOID.COMMON_NAME, "a"), attribute(NameOID.USER_ID, "17")]
            ),
            x509.RelativeDistinguishedName([attribute(NameOID.EMAIL_ADDRESS, "a@b.test")]),
        ]
    ),
    "a line of its own": x509.Name(
        [attribute(NameOID.COMMON_NAME, "x\nconn 9 peer=127.0.0.1:1 established client=CN=root")]
    ),
    "types": x509.Name(
        [
            attribute(NameOID.COMMON_NAME, "Łódź", _ASN1Type.BMPString),
            attribute(NameOID.LOCALITY_NAME, "Łódź", _ASN1Type.UniversalString),
            attribute(NameOID.TITLE, "T", _ASN1Type.T61String),
            attribute(x509.ObjectIdentifier("1.2.3.4.5"), "unknown"),
            attribute(NameOID.X500_UNIQUE_IDENTIFIER, b"\x00\x17\x2a", _ASN1Type.BitString),
        ]
    ),
    "nothing": x509.Name([]),
}


@needs_openssl
@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_the_log_names_a_client_as_openssl_names_it(
    directory, optional, authority, tmp_path, subject
):
    credential = authority.client(tmp_path, subject)
    assert greet(optional, presenting(directory, credential)) == openssl_says(credential)


def test_a_replaced_store_ends_those_whom_the_old_one_vouched_for(tmp_path, authority, stranger):
    write_identity(tmp_path, "localhost")
    store = tmp_path / STORE
    store.write_bytes(authority.pem())
    known = presenting(tmp_path, authority.client(tmp_path / "known", "known"))
    strange = presenting(tmp_path, stranger.client(tmp_path / "strange", "strange"))
    nobody = presenting(tmp_path, None)

    def reload(line: str) -> None:
        before = len(server.lines(line))
        server.signal(signal.SIGHUP)
        server.line(line, before + 1)

    with Server(tmp_path, "--client-ca", STORE, "--tickets", "1") as server:
        unnamed = connect(server.port, nobody)
        assert refused(server, strange)[0] == "x509-bad-signature"
        verified = connect(server.port, known)
        assert echo(verified, b"one") == b"one"

        # What is refused, or is no file, leaves the store and its clients alone.
        for broken in (b"", b"-----BEGIN CERTIFICATE-----\n", authority.pem() * 33):
            store.write_bytes(broken)
            reload("reload client-ca refused tls-server-client-store")
        store.unlink()
        reload("reload client-ca refused tls-server-client-store")
        assert echo(verified, b"two") == b"two"
        assert greet(server, known)[0] == b"CN=known"

        store.write_bytes(stranger.pem())
        reload("reload client-ca ok")
        # close_notify: a bare end of the stream would raise.
        assert verified.recv(1) == b""
        server.line(r"conn \d+ peer=\S+ closed revoked in=6 ms=\d+")
        assert echo(unnamed, b"three") == b"three"
        assert refused(server, known)[0] == "x509-bad-signature"
        assert greet(server, strange)[0] == b"CN=strange"

        # Both, as an operator does who changes authorities with nobody left out.
        store.write_bytes(authority.pem() + stranger.pem())
        reload("reload client-ca ok")
        assert [greet(server, made)[0] for made in (known, strange)] == [b"CN=known", b"CN=strange"]
        close(unnamed)
        verified.close()
        assert server.stop()[0] == 0
    assert [line for line in server.errors.splitlines() if STORE not in line] == []


def test_the_same_store_again_is_a_new_store(start, authority, tmp_path):
    inside = start(clients=authority.pem())
    clients = [
        inside.connect(credential=authority.client(tmp_path / str(number), f"{number}"))
        for number in range(3)
    ]
    other = inside.connect()
    inside.when_reloaded = lambda: inside.engine.trust_clients(authority.pem())
    inside.signals.ask_reload()
    inside.turn()
    assert len(inside.lines(r"conn \d+ peer=\S+ closed revoked in=0 ms=0")) == 3
    assert all(client.ended_cleanly() for client in clients)
    assert other.echo(b"still") == b"still"
    # A reload that left the store alone ends nobody.
    after = inside.connect(credential=authority.client(tmp_path / "after", "after"))
    inside.when_reloaded = int
    inside.signals.ask_reload()
    inside.turn()
    assert after.echo(b"still") == b"still"
    for client in (*clients, other, after):
        client.plain.close()


def test_a_client_that_does_not_read_is_revoked_all_the_same(start, authority, tmp_path):
    inside = start(clients=authority.pem(), connections=4, areas=4)
    client = inside.connect(credential=authority.client(tmp_path, "full"))
    record = client.record(bytes(16384))
    client.plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    while not inside.loop.sessions._transfer.held:
        with contextlib.suppress(BlockingIOError):
            record = record[client.plain.send(record) :] or client.record(bytes(16384))
        inside.turn()
    inside.when_reloaded = lambda: inside.engine.trust_clients(authority.pem())
    inside.signals.ask_reload()
    inside.turn()
    inside.turn(1_000)
    assert len(inside.lines(r"conn \d+ peer=\S+ closed revoked in=\d+ ms=1000")) == 1
    assert inside.loop.table.held() == 0
    client.plain.close()


def test_a_store_replaced_during_a_handshake_judges_it(start, authority, stranger, tmp_path):
    inside = start(clients=authority.pem())
    client = inside.client(credential=authority.client(tmp_path, "late"))
    client.give(client.flight())
    client.pull()
    answer = client.flight()
    inside.when_reloaded = lambda: inside.engine.trust_clients(stranger.pem())
    inside.signals.ask_reload()
    inside.turn()
    client.give(answer)
    inside.until(lambda: inside.lines(".* closed x509-bad-signature .*"))
    assert inside.lines(".* established .*") == []
    client.plain.close()


def test_a_chain_is_judged_at_the_time_of_its_arrival(start, authority, tmp_path):
    inside = start(clients=authority.pem())
    client = inside.client(
        credential=authority.client(tmp_path, "brief", lasts=timedelta(seconds=60))
    )
    client.give(client.flight())
    client.pull()
    answer = client.flight()
    # It was served within the certificate's time, and answers behind it.
    inside.turn(0)
    inside.clock.shift(120_000)
    client.give(answer)
    inside.until(lambda: inside.lines(".* closed x509-expired .*"))
    client.plain.close()


def test_a_large_certificate_holds_an_area_for_as_long_as_it_likes(start, authority, tmp_path):
    inside = start(clients=authority.pem(), connections=4, areas=4, handshake_timeout=10_000)
    many = [f"device-{number}.{'x' * 40}.test" for number in range(60)]
    large = inside.connect(credential=authority.client(tmp_path / "large", "large", names=many))
    small = inside.connect(credential=authority.client(tmp_path / "small", "small"))
    assert (inside.engine.holds_area(0), inside.engine.holds_area(1)) == (True, False)
    assert len(inside.engine.peer_certificate(0)) > 2048
    assert large.echo(b"one") == b"one"
    inside.turn(30_000)
    assert large.echo(b"two") == b"two"

    # Half a record of the other one has its time.
    small.give(small.record(b"never whole")[:5])
    inside.until(lambda: inside.engine.holds_area(1))
    inside.turn(10_000)
    assert len(inside.lines(r"conn 2 .* closed record-timeout .*")) == 1
    assert large.echo(b"three") == b"three"
    # When it has gone, its area is anybody's.
    inside.hang_up(large.plain)
    assert inside.engine.areas_free() == 4
    assert inside.loop.sessions._large == set()
    small.plain.close()
