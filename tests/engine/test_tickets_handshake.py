"""Resumption through whole connections: what a ticket does, and what a wrong binder does."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from engine import Event, tickets
from engine.codepoints import TLS_AES_128_GCM_SHA256 as AES_128
from engine.codepoints import TLS_AES_256_GCM_SHA384 as AES_256
from engine.codepoints import TLS_CHACHA20_POLY1305_SHA256 as CHACHA20
from engine.tickets import MAX_TICKET
from peers.liar import Hello
from tests.engine import ticket_format
from tests.engine.ticket_serving import (
    HOUR,
    KEY,
    NOW,
    Serving,
    damaged,
    fingerprint,
    forged,
    identity,
    refused,
)

X25519, P256, P384 = 29, 23, 24
DER = Encoding.DER


# What an honest connection gets.


def test_a_full_handshake_sends_the_tickets_with_the_call_that_verified_the_finished() -> None:
    serving = Serving(3)
    client = serving.client()
    serving.hello(client)
    assert client.tickets == []
    engine = serving.engine
    engine.feed(0, client.finish())
    assert engine.event(0) is Event.WANT_WRITE
    out = bytearray(65_536)
    client.read(bytes(out[: engine.take(0, out)]))
    assert engine.event(0) is Event.ESTABLISHED
    assert len(client.tickets) == 3
    assert len({ticket.secret for ticket in client.tickets}) == 3
    assert len({ticket.age_add for ticket in client.tickets}) == 3
    assert all(ticket.extensions == {} for ticket in client.tickets)
    assert all(ticket.lifetime == 3_600 for ticket in client.tickets)
    assert engine.ticket_verdict(0) == "none"
    assert not engine.resumed(0)


@pytest.mark.parametrize("suite", [AES_128, AES_256, CHACHA20])
@pytest.mark.parametrize("group", [X25519, P256, P384])
def test_a_ticket_resumes_without_a_certificate(suite: int, group: int) -> None:
    serving = Serving()
    ticket = serving.ticket(suites=[suite])
    client = serving.client(ticket, suites=[suite], groups=[group])
    assert serving.connect(client, keep=True) == "resumed"
    assert client.resumed
    assert client.chain == ()
    assert not client.name_answered
    assert serving.engine.suite(0) == suite
    assert serving.engine.group(0) == group
    assert serving.engine.server_name(0) == b"server.example"
    assert serving.exchange(0, client.send(b"hello")) == b""
    out = bytearray(100)
    assert serving.engine.recv(0, out) == 5
    assert serving.engine.send(0, b"there") == 5
    client.read(serving.exchange(0, client.key_update(1)))
    assert client.received == b"there"


def test_tickets_of_the_suites_of_one_hash_serve_each_other() -> None:
    serving = Serving()
    ticket = serving.ticket(suites=[AES_128])
    assert serving.come_back(ticket, suites=[CHACHA20]) == "resumed"


@pytest.mark.parametrize("suite", [AES_128, AES_256])
def test_a_ticket_resumes_after_a_hello_retry_request(suite: int) -> None:
    serving = Serving()
    ticket = serving.ticket(suites=[suite])
    client = serving.client(ticket, suites=[suite], groups=[P384, X25519], shares=[])
    assert serving.connect(client, keep=True) == "resumed"
    assert client.retried
    assert serving.engine.retried(0)


@pytest.mark.parametrize("suite", [0x1301, 0x1302, 0x1303])
def test_a_ticket_of_a_connection_that_was_retried_resumes(suite: int) -> None:
    serving = Serving()
    ticket = serving.ticket(suites=[suite], groups=[29], shares=[])
    assert serving.come_back(ticket, suites=[suite]) == "resumed"


def test_one_ticket_a_connection_is_taken_too() -> None:
    serving = Serving(1)
    assert serving.come_back(serving.ticket()) == "resumed"


def test_a_resumed_connection_is_sent_new_tickets_and_a_chain_of_them_goes_on() -> None:
    serving = Serving()
    ticket = serving.ticket()
    seen = {ticket.identity}
    for _ in range(5):
        serving.now_ms += HOUR - 1
        client = serving.client(ticket)
        assert serving.connect(client) == "resumed"
        assert len(client.tickets) == 2
        ticket = client.tickets[0]
        assert ticket.identity not in seen
        seen.add(ticket.identity)


def test_one_ticket_resumes_three_times() -> None:
    serving = Serving()
    ticket = serving.ticket()
    for _ in range(3):
        serving.now_ms += 10_000
        assert serving.come_back(ticket) == "resumed"


def test_a_ticket_with_a_protocol_resumes_and_the_protocol_is_answered() -> None:
    serving = Serving()
    serving.engine.set_alpn(["h2"])
    ticket = serving.ticket(alpn=[b"h2"])
    client = serving.client(ticket, alpn=[b"http/1.1", b"h2"])
    assert serving.connect(client) == "resumed"
    assert client.alpn == b"h2"


def test_a_ticket_for_the_second_identity_resumes_there() -> None:
    serving = Serving()
    serving.engine.add_identity(*identity("other.example"), ["other.example"], NOW)
    ticket = serving.ticket(server_name="other.example")
    assert serving.come_back(ticket, server_name="other.example") == "resumed"
    assert serving.come_back(ticket) == "name"


def test_a_ticket_of_the_second_implementation_resumes() -> None:
    serving = Serving()
    assert serving.come_back(forged(serving)) == "resumed"


def test_a_ticket_reads_as_the_format_says() -> None:
    serving = Serving(lifetime_s=60)
    serving.engine.set_alpn(["h2"])
    ticket = serving.ticket(suites=[AES_256], alpn=[b"h2"])
    assert ticket_format.opened(ticket.identity, KEY) == {
        "version": 1,
        "auth": 0,
        "issue_ms": NOW,
        "expiry_ms": NOW + 60_000,
        "age_add": ticket.age_add,
        "suite": AES_256,
        "psk": ticket.secret,
        "fingerprint": fingerprint(),
        "name": b"server.example",
        "alpn": b"h2",
    }


def test_early_data_is_never_accepted_and_is_skipped() -> None:
    serving = Serving()
    client = serving.client(serving.ticket(), early_data=True)
    serving.engine.serve(0, NOW)
    hello = client.hello() + client.early_bytes(b"0-RTT")
    client.read(serving.exchange(0, hello))
    assert not client.early_accepted
    serving.finish(client)
    assert serving.engine.ticket_verdict(0) == "resumed"
    assert serving.engine.recv(0, bytearray(10)) == -1


def test_a_client_without_psk_dhe_ke_is_sent_no_ticket() -> None:
    serving = Serving()
    for modes in (None, (0,), (2, 255)):
        client = serving.client(psk_modes=modes)
        assert serving.connect(client) == "none"
        assert client.tickets == []


def test_with_tickets_off_none_are_sent() -> None:
    serving = Serving(0)
    client = serving.client()
    assert serving.connect(client) == "none"
    assert client.tickets == []


def test_a_failed_finished_is_sent_no_ticket() -> None:
    serving = Serving()
    client = serving.client()
    serving.hello(client)
    wrong = client.finished_message(edit=lambda data: bytes(len(data)))
    client.read(serving.exchange(0, client.handshake_bytes(wrong)))
    assert client.tickets == []
    refused(serving, "tls-server-finished")


def test_the_largest_tickets_are_as_large_as_the_bounds_say() -> None:
    serving = Serving(8)
    serving.engine.set_alpn([b"a" * 255])
    client = serving.client(server_name="n" * 255, alpn=[b"a" * 255], suites=[AES_256])
    serving.connect(client)
    assert [len(ticket.identity) for ticket in client.tickets] == [MAX_TICKET] * 8


def test_the_largest_chain_and_eight_tickets_fit_when_nothing_is_taken_in_between() -> None:
    outputs = []
    finished = b""
    for taken_between in (True, False):
        serving = Serving(8)
        chain, key = identity()
        more = (16_384 - 5) // (len(x509.load_pem_x509_certificate(chain).public_bytes(DER)) + 5)
        serving.engine.replace_identity(0, chain * more, key, NOW)
        serving.engine.set_alpn([b"a" * 255])
        client = serving.client(server_name="n" * 255, alpn=[b"a" * 255], suites=[AES_256])
        serving.engine.serve(0, NOW)
        hello = client.hello()
        if taken_between:
            output = serving.exchange(0, hello)
            client.read(output)
            finished = client.finish()
            output += serving.exchange(0, finished)
        else:
            # The same seed, so the same flight: its Finished can be known before it is taken.
            assert serving.engine.feed(0, hello) == len(hello)
            output = serving.exchange(0, finished)
        assert len(output) > 21_500
        outputs.append(output)
    assert outputs[0] == outputs[1]


def test_the_same_seed_and_the_same_input_give_the_same_tickets() -> None:
    outputs = []
    for _ in range(2):
        serving = Serving(keys=())
        client = serving.client()
        serving.connect(client)
        outputs.append([ticket.identity for ticket in client.tickets])
    assert outputs[0] == outputs[1]


def test_tickets_change_no_byte_of_another_slot_s_connection() -> None:
    serving = Serving()
    first, second = serving.client(), serving.client()
    serving.engine.serve(0, NOW)
    serving.engine.serve(1, NOW)
    second.read(serving.exchange(1, second.hello()))
    serving.finish(second, 1)
    first.read(serving.exchange(0, first.hello()))
    serving.finish(first, 0)
    alone = Serving()
    client = alone.client()
    alone.hello(client)
    alone.finish(client)
    assert client.tickets == first.tickets


def test_the_psk_of_a_taken_ticket_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytearray] = []

    def spying(*arguments: Any) -> tickets.Choice:
        chosen = choose(*arguments)
        assert chosen.ticket is not None
        taken.append(chosen.ticket.psk)
        return chosen

    serving = Serving()
    ticket = serving.ticket()
    choose = tickets.choose
    monkeypatch.setattr(tickets, "choose", spying)
    assert serving.come_back(ticket) == "resumed"
    assert taken == [bytes(32)]


# Aborts.


@pytest.mark.parametrize("retry", [False, True])
@pytest.mark.parametrize(
    "lie",
    [
        lambda binder: bytes([binder[0] ^ 1]) + binder[1:],
        lambda binder: binder[:-1] + bytes([binder[-1] ^ 1]),
        lambda binder: binder + b"\0",
        lambda binder: bytes(48),
    ],
)
def test_a_wrong_binder_on_an_accepted_ticket_ends_the_connection(lie: object, retry: bool) -> None:
    serving = Serving()
    ticket = serving.ticket()

    def edit(hello: Hello) -> None:
        hello.edit_binders = lambda binders: [lie(binder) for binder in binders]  # type: ignore[operator]

    client = serving.client(ticket, groups=[X25519], shares=[] if retry else [X25519])
    serving.hello(client, edit=edit)
    assert client.retried == retry
    assert client.alerts[-1].description == 51
    assert not serving.engine.resumed(0)
    refused(serving, "tls-server-binder")


def test_a_binder_under_another_psk_or_label_ends_the_connection() -> None:
    serving = Serving()
    ticket = serving.ticket()
    changes: list[dict[str, Any]] = [{"secret": bytes(32)}, {"label": "ext binder"}]
    for change in changes:

        def edit(hello: Hello, change: dict[str, Any] = change) -> None:
            hello.offers = [hello.offers[0]._replace(**change)]

        client = serving.client(ticket)
        serving.hello(client, edit=edit)
        refused(serving, "tls-server-binder")


def test_a_binder_that_leaves_the_retry_out_of_its_transcript_ends_the_connection() -> None:
    serving = Serving()
    client = serving.client(serving.ticket(), groups=[X25519], shares=[])
    serving.engine.serve(0, NOW)
    client.read(serving.exchange(0, client.hello()))
    assert client.state == "retry"
    client.transcript.clear()
    client.read(serving.exchange(0, client.hello()))
    refused(serving, "tls-server-binder")


def test_a_wrong_binder_on_a_ticket_that_a_rule_refused_is_not_looked_at() -> None:
    serving = Serving()
    ticket = damaged(serving.ticket())

    def edit(hello: Hello) -> None:
        hello.edit_binders = lambda binders: [bytes(len(binder)) for binder in binders]

    assert serving.connect(serving.client(ticket), edit=edit) == "tampered"


def test_the_binder_that_is_looked_at_is_the_accepted_ticket_s() -> None:
    serving = Serving()
    good = serving.ticket()

    def first_wrong(hello: Hello) -> None:
        hello.edit_binders = lambda binders: [bytes(32), *binders[1:]]

    def second_wrong(hello: Hello) -> None:
        hello.edit_binders = lambda binders: [binders[0], bytes(32)]

    client = serving.client(damaged(good), good)
    assert serving.connect(client, edit=first_wrong) == "resumed"
    client = serving.client(damaged(good), good)
    serving.hello(client, edit=second_wrong)
    refused(serving, "tls-server-binder")


@pytest.mark.parametrize("count", [0, 2])
def test_a_ticket_without_modes_is_a_missing_extension_whatever_the_setting(count: int) -> None:
    serving = Serving()
    client = serving.client(serving.ticket(), psk_modes=None)
    serving.engine.set_tickets(count)
    serving.hello(client)
    refused(serving, "tls-server-missing-extension")


def no_schemes(hello: Hello) -> None:
    hello.drop(13)


def other_schemes(hello: Hello) -> None:
    hello.put(13, b"\0\x02\x08\x04")


def test_a_resumption_needs_no_signature_algorithms() -> None:
    serving = Serving()
    ticket = serving.ticket()
    assert serving.connect(serving.client(ticket), edit=no_schemes) == "resumed"
    assert serving.connect(serving.client(ticket), edit=other_schemes) == "resumed"


@pytest.mark.parametrize("count", [0, 2])
def test_without_a_ticket_taken_signature_algorithms_are_needed(count: int) -> None:
    serving = Serving()
    ticket = damaged(serving.ticket())
    serving.engine.set_tickets(count)
    serving.hello(serving.client(ticket), edit=no_schemes)
    assert serving.engine.ticket_verdict(0) == ("tampered" if count else "off")
    refused(serving, "tls-server-missing-extension")
    serving.hello(serving.client(ticket), edit=other_schemes)
    refused(serving, "tls-server-sigalg")
