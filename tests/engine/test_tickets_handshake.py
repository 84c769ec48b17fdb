"""Resumption through whole connections: what a ticket does, and every verdict on the wire."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from engine import Engine, Event, Refused, tickets
from engine.codepoints import TLS_AES_128_GCM_SHA256 as AES_128
from engine.codepoints import TLS_AES_256_GCM_SHA384 as AES_256
from engine.codepoints import TLS_CHACHA20_POLY1305_SHA256 as CHACHA20
from engine.tickets import MAX_TICKET, VERDICT_NAMES
from peers.liar import Hello, Ticket
from tests.engine import ticket_format
from tests.engine.ticket_serving import HOUR, KEY, NOW, Serving, fingerprint, identity

X25519, P256, P384 = 29, 23, 24
DER = Encoding.DER


def forged(serving: Serving, key: bytes = KEY, **changes: object) -> Ticket:
    """A ticket that the client sealed itself, right but for `changes`."""
    fields: dict[str, object] = {
        "issue_ms": serving.now_ms,
        "expiry_ms": serving.now_ms + HOUR,
        "age_add": 77,
        "suite": AES_128,
        "psk": b"p" * 32,
        "fingerprint": fingerprint(),
        "name": b"server.example",
        **changes,
    }
    plaintext = ticket_format.plaintext_of(**fields)  # type: ignore[arg-type]
    sealed = ticket_format.sealed(plaintext, key, b"s" * 32)
    psk = fields["psk"]
    assert isinstance(psk, bytes)
    suite = AES_256 if len(psk) == 48 else AES_128
    return Ticket(sealed, psk, suite, 77, 3_600, b"\0", serving.now_ms)


def damaged(ticket: Ticket, at: int = -1) -> Ticket:
    sealed = bytearray(ticket.identity)
    sealed[at] ^= 1
    return replace(ticket, identity=bytes(sealed))


def refused(serving: Serving, tag: str, slot: int = 0) -> None:
    failure = serving.engine.failure(slot)
    assert failure is not None
    assert failure == tag
    assert serving.engine.event(slot) is Event.FAILED
    serving.engine.drop(slot)
    assert serving.engine.residue() == 0


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


# Every verdict.


def test_verdict_off() -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.engine.set_tickets(0)
    client = serving.client(ticket)
    assert serving.connect(client) == "off"
    assert client.tickets == []


def test_verdict_no_psk_dhe_ke() -> None:
    serving = Serving()
    ticket = serving.ticket()
    client = serving.client(ticket, psk_modes=(0,))
    assert serving.connect(client) == "no-psk-dhe-ke"
    assert client.tickets == []


@pytest.mark.parametrize("identity", [b"x", b"x" * 154, b"x" * 200, b"x" * 682, b"x" * 15_000])
def test_verdict_unknown_for_a_made_up_ticket(identity: bytes) -> None:
    serving = Serving()
    made_up = replace(serving.ticket(), identity=identity)
    assert serving.come_back(made_up) == "unknown"


def test_verdict_unknown_for_another_s_key() -> None:
    serving = Serving()
    assert serving.come_back(forged(serving, b"K" * 32)) == "unknown"
    assert serving.come_back(damaged(serving.ticket(), 0)) == "unknown"


@pytest.mark.parametrize("at", [16, 47, 48, 100, -17, -16, -1])
def test_verdict_tampered(at: int) -> None:
    serving = Serving()
    assert serving.come_back(damaged(serving.ticket(), at)) == "tampered"


def test_verdict_tampered_or_unknown_for_a_cut_or_longer_ticket() -> None:
    serving = Serving()
    ticket = serving.ticket()
    whole = ticket.identity
    assert serving.come_back(replace(ticket, identity=whole[:-10])) == "tampered"
    assert serving.come_back(replace(ticket, identity=whole[:40])) == "unknown"
    assert serving.come_back(replace(ticket, identity=whole + b"\0")) == "tampered"


@pytest.mark.parametrize(
    "changes", [{"version": 2}, {"trailing": b"\0"}, {"psk": b"p" * 20}, {"psk": b"p" * 48}]
)
def test_verdict_format(changes: dict[str, object]) -> None:
    serving = Serving()
    assert serving.come_back(forged(serving, KEY, **changes)) == "format"


def test_verdict_auth() -> None:
    serving = Serving()
    assert serving.come_back(forged(serving, auth=1)) == "auth"


def test_verdict_expired_to_the_millisecond() -> None:
    serving = Serving(lifetime_s=60)
    ticket = serving.ticket()
    serving.now_ms = NOW + 59_999
    assert serving.come_back(ticket) == "resumed"
    serving.now_ms = NOW + 60_000
    assert serving.come_back(ticket) == "expired"


@pytest.mark.parametrize(
    ("skew_ms", "verdict"),
    [
        (29_000, "resumed"),
        (30_000, "resumed"),
        (30_001, "age"),
        (60_000, "age"),
        (-29_000, "resumed"),
        (-30_000, "resumed"),
        (-30_001, "age"),
    ],
)
def test_verdict_age(skew_ms: int, verdict: str) -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.now_ms += 100_000
    assert serving.come_back(ticket, age_skew_ms=skew_ms) == verdict


def test_a_captured_hello_resumes_inside_the_window_and_not_later() -> None:
    serving = Serving()
    client = serving.client(serving.ticket())
    captured = client.hello()
    for later_ms, verdict in ((0, "resumed"), (30_000, "resumed"), (30_001, "age")):
        serving.now_ms = NOW + later_ms
        serving.engine.serve(0, serving.now_ms)
        assert serving.exchange(0, captured)
        assert serving.engine.ticket_verdict(0) == verdict
        assert serving.engine.event(0) is Event.WANT_READ
        serving.engine.drop(0)
        assert serving.engine.residue() == 0


def test_verdict_name() -> None:
    serving = Serving()
    ticket = serving.ticket()
    assert serving.come_back(ticket, server_name="other.example") == "name"
    assert serving.come_back(ticket, server_name=None) == "name"
    assert serving.come_back(ticket, server_name="SERVER.Example") == "resumed"
    nameless = serving.ticket(server_name=None)
    assert serving.come_back(nameless, server_name=None) == "resumed"
    assert serving.come_back(nameless) == "name"


def test_verdict_identity_after_a_renewal_and_none_after_the_same_one_again() -> None:
    serving = Serving()
    ticket = serving.ticket()
    serving.replace()
    assert serving.come_back(ticket) == "resumed"
    serving.replace("renewed.example")
    client = serving.client(ticket)
    assert serving.connect(client) == "identity"
    assert client.chain != ()
    assert serving.come_back(forged(serving, fingerprint=bytes(32))) == "identity"


def test_verdict_suite() -> None:
    serving = Serving()
    ticket = serving.ticket(suites=[AES_128])

    def only_384(hello: Hello) -> None:
        hello.suites = [AES_256]

    assert serving.connect(serving.client(ticket), edit=only_384) == "suite"
    longer = serving.ticket(suites=[AES_256])
    assert serving.come_back(longer, suites=[AES_128, AES_256]) == "suite"


def test_verdict_alpn() -> None:
    serving = Serving()
    serving.engine.set_alpn(["h2", "http/1.1"])
    ticket = serving.ticket(alpn=[b"h2"])
    assert serving.come_back(ticket, alpn=[b"http/1.1"]) == "alpn"
    assert serving.come_back(ticket) == "alpn"
    assert serving.come_back(ticket, alpn=[b"h2"]) == "resumed"


def test_every_verdict_has_a_test_here_that_reaches_it() -> None:
    source = Path(__file__).read_text("ascii")
    assert [name for name in VERDICT_NAMES if f'"{name}"' not in source] == []


# Several tickets.


def test_the_good_ticket_is_taken_wherever_it_stands_among_four() -> None:
    serving = Serving()
    good = serving.ticket()
    bad = [damaged(good, at) for at in (20, 21, 22, 23)]
    for place in range(4):
        offer = [*bad[:place], good, *bad[place:3]]
        client = serving.client(*offer)
        assert serving.connect(client) == "resumed"
        assert client.selected == place
    assert serving.connect(serving.client(*bad, good)) == "tampered"


def test_of_several_bad_tickets_the_first_one_s_verdict_is_told() -> None:
    serving = Serving()
    good = serving.ticket()
    unknown = replace(good, identity=b"x" * 200)
    assert serving.connect(serving.client(unknown, damaged(good))) == "unknown"
    assert serving.connect(serving.client(damaged(good), unknown)) == "tampered"


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


# Settings.


@pytest.mark.parametrize(
    ("count", "lifetime_s"), [(9, 60), (-1, 60), (1, 0), (1, 604_801), (0, 8 * 86_400)]
)
def test_settings_out_of_range_are_refused_and_change_nothing(count: int, lifetime_s: int) -> None:
    serving = Serving(1, 60)
    with pytest.raises(Refused) as caught:
        serving.engine.set_tickets(count, lifetime_s)
    assert caught.value.refusal == "tls-server-ticket-config"
    client = serving.client()
    serving.connect(client)
    assert [ticket.lifetime for ticket in client.tickets] == [60]


@pytest.mark.parametrize(
    "keys", [[], [b""], [b"k" * 31], [b"k" * 33], [bytes([n]) * 32 for n in range(5)], [KEY, KEY]]
)
def test_a_bad_list_of_keys_is_refused_and_changes_nothing(keys: list[bytes]) -> None:
    serving = Serving()
    ticket = serving.ticket()
    with pytest.raises(Refused) as caught:
        serving.engine.set_ticket_keys(keys, NOW + 10 * HOUR)
    assert caught.value.refusal == "tls-server-ticket-key"
    assert serving.come_back(ticket) == "resumed"


def test_rotating_before_the_engine_is_seeded_is_refused() -> None:
    engine = Engine.server(1)
    with pytest.raises(Refused) as caught:
        engine.rotate_ticket_key(NOW)
    assert caught.value.refusal == "tls-no-entropy"
    assert engine.ticket_keys() == 0


def test_tickets_are_off_by_default_and_no_key_is_drawn() -> None:
    serving = Serving(0, keys=())
    assert serving.connect(serving.client()) == "none"
    serving.engine.set_time(NOW + HOUR)
    assert serving.engine.ticket_keys() == 0


def test_settings_may_come_before_the_seed_and_the_key_with_the_first_connection() -> None:
    engine = Engine.server(1)
    engine.set_tickets(1)
    engine.set_time(NOW)
    assert engine.ticket_keys() == 0
    engine.seed(bytes(32))
    engine.add_identity(*identity(), [], NOW)
    assert engine.ticket_keys() == 0
    engine.serve(0, NOW)
    assert engine.ticket_keys() == 1


def test_a_refused_start_moves_no_clock_and_draws_no_key() -> None:
    engine = Engine.server(2, 1)
    engine.seed(bytes(32))
    engine.set_tickets(1)
    with pytest.raises(Refused):
        engine.serve(0, NOW)
    assert engine.ticket_keys() == 0
    engine.add_identity(*identity(), [], NOW)
    engine.serve(0, NOW)
    with pytest.raises(Refused) as caught:
        engine.serve(1, NOW + 10 * HOUR)
    assert caught.value.refusal == "tls-pool"
    assert engine.ticket_keys() == 1
    with pytest.raises(ValueError, match="out of range"):
        engine.serve(1, 1 << 62)
    assert engine.residue() == 0


def test_after_close_no_key_is_left_and_every_call_raises() -> None:
    serving = Serving()
    engine = serving.engine
    ring = engine._server.resumption.ring
    key = ring.current()
    assert key is not None
    engine.close()
    assert key.secret == bytes(32)
    for call in (
        lambda: engine.set_tickets(1),
        lambda: engine.set_ticket_keys([KEY], NOW),
        lambda: engine.rotate_ticket_key(NOW),
        lambda: engine.set_time(NOW),
        engine.ticket_keys,
        lambda: engine.ticket_verdict(0),
        lambda: engine.resumed(0),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_residue_sees_a_key_left_in_an_unused_place() -> None:
    serving = Serving(keys=(KEY, b"j" * 32))
    ring = serving.engine._server.resumption.ring
    key = ring.current()
    assert key is not None
    serving.engine.set_ticket_keys([b"j" * 32], NOW)
    assert serving.engine.residue() == 0
    key.secret[3] = 1
    assert serving.engine.residue() == 1
