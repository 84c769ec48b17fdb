"""The lying client, honest for once, against a server that is not ours."""

from __future__ import annotations

import ssl

import pytest

from peers.liar import Client, ServerFault, codes, connect, identities
from peers.liar.record import record
from peers.openssl import OpenSSL, server_context

ROOT = identities.authority()


def honest(server: OpenSSL, **options: object) -> Client:
    client = Client("a test", roots=[ROOT.certificate], exact=False, **options)  # type: ignore[arg-type]
    connect(client, server)
    client.read(server.exchange(client.send(b"hello")))
    assert client.state == "established", server.error
    assert bytes(client.received) == b"hello"
    return client


@pytest.mark.parametrize("suite", list(codes.SUITE_NAMES))
@pytest.mark.parametrize("group", list(codes.GROUP_NAMES))
def test_every_suite_and_group_is_spoken(suite: int, group: int) -> None:
    client = honest(OpenSSL(server_context()), suites=[suite], groups=[group])
    assert (client.suite, client.group, client.retried) == (suite, group, False)


@pytest.mark.parametrize("curve, group", [("prime256v1", 23), ("secp384r1", 24), ("X25519", 29)])
def test_a_retry_is_answered_with_the_share_asked_for(curve: str, group: int) -> None:
    shares = [g for g in (29, 23) if g != group][:1]
    try:
        context = server_context(curve=curve)
    except ssl.SSLError:
        pytest.skip(f"this build of ssl cannot be held to {curve}")
    client = honest(OpenSSL(context), shares=shares)
    assert (client.group, client.retried) == (group, True)


def test_no_share_at_all_leads_to_a_retry() -> None:
    assert honest(OpenSSL(server_context()), shares=()).retried


def test_without_a_session_id_no_change_cipher_spec_is_sent() -> None:
    client = honest(OpenSSL(server_context()), session_id=b"")
    assert not client.ccs_sent


@pytest.mark.parametrize("suite", list(codes.SUITE_NAMES))
@pytest.mark.parametrize("shares", [None, ()])
def test_a_ticket_resumes(suite: int, shares: tuple[int, ...] | None) -> None:
    context = server_context()
    first = honest(OpenSSL(context), suites=[suite])
    assert len(first.tickets) == 2
    again = honest(OpenSSL(context), suites=[suite], tickets=first.tickets[:1], shares=shares)
    assert again.resumed and again.retried == (shares is not None)


def test_a_wrong_binder_is_refused() -> None:
    context = server_context()
    first = honest(OpenSSL(context))
    client = Client("a test", exact=False, tickets=first.tickets[:1], suites=[first.suite])
    server = OpenSSL(context)
    flip = client.hello(
        lambda h: setattr(h, "edit_binders", lambda bs: [bytes((bs[0][0] ^ 1,)) + bs[0][1:]])
    )
    client.read(server.exchange(flip))
    assert client.state == "failed"


@pytest.mark.parametrize("kind", ["p256", "p384", "ed25519", "rsa2048"])
def test_a_client_certificate_of_every_kind_is_accepted(kind: str) -> None:
    context = server_context(client_roots=identities.pem(ROOT), required=True)
    device = identities.make([], kind, usage="client", label=f"device {kind}")
    server = OpenSSL(context)
    client = honest(server, credential=device.credential)
    assert client.request is not None
    assert server.tls.getpeercert(binary_form=True) == device.der


def test_a_client_without_a_certificate_sends_an_empty_list() -> None:
    context = server_context(client_roots=identities.pem(ROOT))
    assert honest(OpenSSL(context)).request is not None


def test_an_intermediate_is_sent() -> None:
    middle = identities.authority("an intermediate", issuer=ROOT)
    device = identities.make([], issuer=middle, usage="client", label="device")
    assert len(device.chain) == 2
    context = server_context(client_roots=identities.pem(ROOT), required=True)
    honest(OpenSSL(context), credential=device.credential)


def test_alpn_is_read() -> None:
    client = honest(OpenSSL(server_context(alpn=["h2", "echo"])), alpn=[b"echo"])
    assert client.alpn == b"echo"


def test_key_updates_go_both_ways() -> None:
    server = OpenSSL(server_context())
    client = honest(server)
    client.read(server.exchange(client.key_update(1) + client.send(b" again")))
    assert client.key_updates == [0]
    client.read(server.exchange(client.send(b", and again", padding=300, cut=2)))
    assert bytes(client.received) == b"hello again, and again"


def test_close_notify_is_answered() -> None:
    server = OpenSSL(server_context())
    client = honest(server)
    client.read(server.exchange(client.close_notify()))
    assert client.state == "closed"


def test_the_hello_may_be_cut_anywhere() -> None:
    server = OpenSSL(server_context())
    client = Client("a test", exact=False)
    client.read(server.exchange(client.hello(cut=1)))
    assert client.state == "flight"


def test_one_seed_gives_the_same_bytes() -> None:
    assert Client("s", shares=(29, 23, 24)).hello() == Client("s", shares=(29, 23, 24)).hello()
    assert Client("s").hello() != Client("t").hello()


def test_rsa_pss_of_our_own_is_deterministic_and_right() -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    from peers.liar.proofs import pss_sign

    for bits in (1024, 2048, 3072):
        key = identities.make_key(f"rsa{bits}", "")
        assert isinstance(key, rsa.RSAPrivateKey)
        for algorithm in (hashes.SHA256(), hashes.SHA384(), hashes.SHA512())[: 2 + (bits > 1024)]:
            signature = pss_sign(key, b"content", algorithm.name)
            assert signature == pss_sign(key, b"content", algorithm.name)
            pss = padding.PSS(padding.MGF1(algorithm), padding.PSS.DIGEST_LENGTH)
            key.public_key().verify(signature, b"content", pss, algorithm)


class TestWhatAServerMayNotDo:
    def flight(self) -> tuple[Client, bytes]:
        client = Client("a test", roots=[ROOT.certificate], exact=False)
        return client, OpenSSL(server_context()).exchange(client.hello())

    def test_a_flight_reads_the_same_one_byte_at_a_time(self) -> None:
        client, flight = self.flight()
        for i in range(len(flight)):
            client.read(flight[i : i + 1])
        assert client.state == "flight"

    def test_every_byte_of_a_flight_is_checked(self) -> None:
        _, flight = self.flight()
        accepted = []
        for i in range(len(flight)):
            other = Client("a test", roots=[ROOT.certificate], exact=False)
            other.hello()
            broken = bytearray(flight)
            broken[i] ^= 1
            try:
                other.read(bytes(broken))
            except ServerFault:
                continue
            if other.state == "flight":
                accepted.append(i)
        assert accepted == []

    def test_nothing_follows_a_fatal_alert(self) -> None:
        client, _ = self.flight()
        client.read(record(21, b"\x02\x28"))
        assert client.state == "failed"
        with pytest.raises(ServerFault, match="nothing follows"):
            client.read(record(21, b"\x02\x28"))

    @pytest.mark.parametrize(
        "wrong",
        [
            record(22, b""),
            record(21, b"\x02"),
            record(21, b"\x01\x28"),
            record(23, b"data"),
            record(20, b"\x01"),
            record(24, b"heartbeat"),
            record(22, b"\x02\x00\x00\x00", version=0x0301),
            record(22, b"", length=0x4001),
            record(22, b"\x08\x00\x00\x02\x00\x00"),
        ],
    )
    def test_a_record_that_breaks_a_rule_is_a_fault(self, wrong: bytes) -> None:
        client = Client("a test")
        client.hello()
        with pytest.raises(ServerFault):
            client.read(wrong)

    def test_an_end_inside_a_record_is_a_fault(self) -> None:
        client, flight = self.flight()
        client.read(flight[:-1])
        with pytest.raises(ServerFault):
            client.eof()
