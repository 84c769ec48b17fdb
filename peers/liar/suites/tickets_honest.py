"""Tickets given and taken (RFC 8446 §2.2, §4.2.11, §4.6.1; SPEC §5)."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from dataclasses import replace
from typing import Any

from peers.liar import codes, hello, sealed
from peers.liar.conversation import Connection, Stage
from peers.liar.ends import established, refused, resumed
from peers.liar.fault import check
from peers.liar.identities import NOW, make
from peers.liar.observer import Ticket

from .base import FIRST, TICKETS, drop, put, set_field
from .ticket_steps import HOUR_MS, KEYED, KEYS, coming_back, earn, made_up, present

OFF = replace(TICKETS.setup, tickets=0)


@TICKETS.case("two-tickets", "a full handshake earns the set number of tickets, each its own PSK",
              "RFC 8446 §4.6.1", established("none", tickets=2), "policy")
def _(stage: Stage) -> Connection:
    c = stage.connect().honest()
    assert len({t.secret for t in c.client.tickets}) == len(c.client.tickets)
    assert len({t.identity for t in c.client.tickets}) == len(c.client.tickets)
    assert {t.lifetime for t in c.client.tickets} == {3600}
    return c


@TICKETS.case("eight-tickets", "eight tickets are the most", "SPEC §1.4",
              established("none", tickets=8), "policy", replace(TICKETS.setup, tickets=8))
def _(stage: Stage) -> Connection:
    c = stage.connect().honest()
    assert [t.nonce for t in c.client.tickets] == [bytes((i,)) for i in range(8)]
    return c


TICKETS.hello("no-tickets-when-off", "without a setting no ticket is sent", "SPEC §5",
              established("none", tickets=0), basis="policy", setup=OFF)

for _suite, _name in codes.SUITE_NAMES.items():
    coming_back(f"resumed-{_name.removeprefix('TLS_').lower()}", f"a ticket resumes under {_name}",
                "RFC 8446 §2.2", resumed(suite=_suite), basis="rfc", first={"suites": (_suite,)},
                suites=(_suite,))
    coming_back(f"resumed-after-a-retry-{_name.removeprefix('TLS_').lower()}",
                f"a ticket of {_name} resumes after a retry", "RFC 8446 §4.2.11.2",
                resumed(suite=_suite, retried=True), basis="rfc", first={"suites": (_suite,)},
                suites=(_suite,), shares=())
for _group, _name in codes.GROUP_NAMES.items():
    coming_back(f"resumed-over-{_name.lower()}", f"a resumption makes a new exchange over {_name}",
                "RFC 8446 §2.2", resumed(group=_group), basis="rfc", groups=(_group,))
coming_back("resumed-under-the-other-suite", "a ticket resumes under another suite of its hash",
            "RFC 8446 §4.2.11", resumed(suite=0x1303), basis="rfc", suites=(0x1303,))
coming_back("resumed-with-tickets", "a resumed connection earns new tickets", "SPEC §5",
            resumed(tickets=2))
coming_back("resumed-without-name-answer", "a resumption does not answer the name", "SPEC §1.3",
            resumed(name_answered=False))
coming_back("resumed-without-a-name", "a ticket without a name resumes without one", "SPEC §5",
            resumed(), first={"server_name": None}, server_name=None)
coming_back("resumed-in-capitals", "the name of a ticket is compared in lower case", "SPEC §1.3",
            resumed(), server_name="SERVER.Example")
coming_back("resumed-without-schemes", "a resumption needs no signature_algorithms", "SPEC §1.2",
            resumed(), edit=drop(codes.SIGNATURE_ALGORITHMS))
coming_back("resumed-with-foreign-schemes", "a resumption signs nothing: no scheme need be common",
            "SPEC §1.3", resumed(),
            edit=put(codes.SIGNATURE_ALGORITHMS, hello.code_list([codes.ED25519])))
coming_back("full-without-schemes", "without a ticket taken signature_algorithms is missing",
            "SPEC §1.2", refused("tls-server-missing-extension"),
            lambda t: replace(t, identity=bytes(200)), edit=drop(codes.SIGNATURE_ALGORITHMS))
coming_back("full-with-foreign-schemes", "without a ticket taken a scheme must be common",
            "SPEC §1.3", refused("tls-server-sigalg"),
            lambda t: replace(t, identity=bytes(200)),
            edit=put(codes.SIGNATURE_ALGORITHMS, hello.code_list([codes.ED25519])))
coming_back("resumed-with-both-modes", "psk_dhe_ke is taken where psk_ke is offered too",
            "RFC 8446 §4.2.9", resumed(), psk_modes=(0, 1), basis="rfc")
coming_back("resumed-with-unknown-modes", "unknown modes are skipped", "RFC 8701 §3.1",
            resumed(), psk_modes=(0x0B, 1, 0x2A), basis="rfc")
coming_back("resumed-in-single-bytes", "binders are checked over the hello, however it was cut",
            "RFC 8446 §4.2.11.2", resumed(), basis="rfc", edit=set_field("session_id", b"x" * 32))


@TICKETS.case("resumed-second-identity", "a ticket of the second identity and its protocol resumes",
              "SPEC §5", resumed(alpn=b"echo"), "policy",
              replace(KEYED, alpn=("h2", "echo")))
def _(stage: Stage) -> Connection:
    who: dict[str, Any] = {"server_name": "two.example", "alpn": (b"echo",)}
    return present(stage, earn(stage, **who), **who)


@TICKETS.case("good-ticket-second-of-three", "the first ticket that every rule accepts is taken",
              "RFC 8446 §4.2.11", resumed(selected=1), "policy", KEYED)
def _(stage: Stage) -> Connection:
    good = earn(stage)
    return present(stage, replace(good, identity=b"nobody's"), good, good)


@TICKETS.case("good-ticket-fourth-of-five", "four tickets are tried", "SPEC §1.4",
              resumed(selected=3), "policy", KEYED)
def _(stage: Stage) -> Connection:
    good = earn(stage)
    return present(stage, *[replace(good, identity=b"no")] * 3, good, good)


@TICKETS.case("good-ticket-fifth-of-five", "a fifth ticket is not tried", "SPEC §1.4",
              established("unknown"), "policy", KEYED)
def _(stage: Stage) -> Connection:
    good = earn(stage)
    return present(stage, *[replace(good, identity=b"no")] * 4, good)


@TICKETS.case("400-identities", "a hello may carry 400 tickets", "SPEC §1.4",
              established("unknown"), "policy", KEYED)
def _(stage: Stage) -> Connection:
    return present(stage, *[replace(earn(stage), identity=b"x")] * 400)


@TICKETS.case("1600-identities", "a hello with as many tickets as it can say is too long",
              "SPEC §1.4",
              refused("tls-server-client-hello-length"), "policy", KEYED)
def _(stage: Stage) -> Connection:
    # 2,000 binders do not fit in an extension block of 65,535 bytes; 1,600 do.
    return present(stage, *[replace(earn(stage), identity=b"x")] * 1600)


@TICKETS.case("a-chain-of-resumptions", "a ticket of a resumption resumes in turn", "SPEC §5",
              resumed(), "policy", KEYED)
def _(stage: Stage) -> Connection:
    ticket = earn(stage)
    for _ in range(4):
        ticket = present(stage, ticket).need("established").client.tickets[-1]
    return present(stage, ticket)


@TICKETS.case("the-second-ticket", "each ticket of a connection resumes", "RFC 8446 §4.6.1",
              resumed(), "rfc", KEYED)
def _(stage: Stage) -> Connection:
    return present(stage, stage.connect().honest().client.tickets[1])


@TICKETS.case("early-data-with-a-good-ticket", "early data of a resumption is skipped",
              "RFC 8446 §4.2.10", resumed(early_accepted=False), "policy", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect(tickets=[earn(stage)], early_data=True)
    c.tell(c.client.hello() + c.client.early_bytes(b"GET / HTTP/1.1\r\n\r\n"))
    return c.finish().echo()


@TICKETS.case("early-data-before-a-retried-resumption", "early data before a retry is skipped",
              "RFC 8446 §4.2.10", resumed(retried=True), "policy", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect(tickets=[earn(stage)], early_data=True, shares=())
    c.tell(c.client.hello() + c.client.early_bytes(b"GET / HTTP/1.1\r\n\r\n")).need("retry")
    return c.hello().finish().echo()


@TICKETS.case("lifetime-ends-with-the-certificate", "a ticket does not outlive the leaf",
              "SPEC §5", established(), "policy",
              replace(KEYED, identities=(make(["server.example"], label="a short-lived server",
                                              not_after=NOW.replace(minute=1, second=40)),)))
def _(stage: Stage) -> Connection:
    c = stage.connect().honest()
    check(c.client.tickets[0].lifetime == 100, "SPEC §5", f"{c.client.tickets[0].lifetime} s")
    return c


@TICKETS.case("opened-by-the-client", "a ticket is in the format that is written down",
              "SPEC §5.1", established("none", tickets=2), "policy",
              replace(KEYED, alpn=("echo",)))
def _(stage: Stage) -> Connection:
    c = stage.connect(alpn=(b"echo",), server_name="Server.Example").honest()
    for ticket in c.client.tickets:
        found = sealed.unseal(KEYS[0], ticket.identity)
        want = sealed.Contents(stage.now_ms, stage.now_ms + HOUR_MS, ticket.age_add,
                               c.client.suite, ticket.secret, FIRST.fingerprint,
                               b"server.example", b"echo")
        check(found == want, "SPEC §5.1: each field of a ticket's plaintext")
    return c


@TICKETS.case("sealed-by-the-client", "a ticket made by another holder of the key resumes",
              "SPEC §5.1, SPEC §5.3", resumed(), "policy", KEYED)
def _(stage: Stage) -> Connection:
    return present(stage, made_up())


@TICKETS.case("clock-moved-in-a-long-connection", "a ticket is dated when it is made", "SPEC §5",
              resumed(), "policy", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    stage.pass_time(HOUR_MS)
    return present(stage, c.finish().echo().client.tickets[0])


# Who gets none (rule a).
TICKETS.hello("no-ticket-for-psk-ke", "a client that lists psk_ke alone earns no ticket",
              "RFC 8446 §4.2.9", established("none", tickets=0), psk_modes=(0,), setup=KEYED,
              basis="policy")
TICKETS.hello("no-ticket-without-modes", "a client that lists no modes earns no ticket",
              "RFC 8446 §4.2.9", established("none", tickets=0), psk_modes=None, setup=KEYED,
              basis="policy")
coming_back("psk-ke-alone", "a ticket is not taken without a key exchange", "SPEC §5",
            established("no-psk-dhe-ke", tickets=0), psk_modes=(0,))
coming_back("unknown-mode-alone", "a mode nobody knows is no mode", "RFC 8446 §4.2.9",
            established("no-psk-dhe-ke", tickets=0), psk_modes=(7,))
coming_back("no-modes", "pre_shared_key comes with its modes", "RFC 8446 §4.2.9",
            refused("tls-server-missing-extension"), psk_modes=None, basis="rfc")


@TICKETS.case("ticket-when-off", "with tickets off a ticket leads to a full handshake", "SPEC §5",
              established("off", tickets=0), "policy", OFF)
def _(stage: Stage) -> Connection:
    return present(stage, made_up())


@TICKETS.case("no-modes-when-off", "with tickets off pre_shared_key still needs its modes",
              "SPEC §1.2", refused("tls-server-missing-extension"), "policy", OFF)
def _(stage: Stage) -> Connection:
    return present(stage, made_up(), psk_modes=None)


# Used again (rule e).
@TICKETS.case("one-ticket-three-times", "a ticket may be used until it expires", "SPEC §5.2",
              resumed(), "policy", KEYED)
def _(stage: Stage) -> Connection:
    ticket: Ticket = earn(stage)
    present(stage, ticket).need("established")
    stage.pass_time(1000)
    present(stage, ticket).need("established")
    stage.pass_time(1000)
    return present(stage, ticket)
