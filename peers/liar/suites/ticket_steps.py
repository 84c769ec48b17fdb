"""What the ticket conversations are made of: a ticket, a way to come back, a forger's hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from peers.liar import codes, sealed
from peers.liar.client import Edit
from peers.liar.conversation import Basis, Connection, NotPlayable, Setup, Stage
from peers.liar.ends import End
from peers.liar.hello import Hello
from peers.liar.identities import NOW_MS
from peers.liar.observer import Ticket
from peers.liar.wire import Randomness

from .base import FIRST, TICKETS

KEYS = tuple(Randomness("ticket keys").draw(str(i)) for i in range(6))
#: Two tickets a connection under a key that the liar knows too.
KEYED = replace(TICKETS.setup, ticket_keys=(KEYS[0],))
HOUR_MS = 3_600_000

Change = Callable[[Ticket], Ticket]


def earn(stage: Stage, **options: Any) -> Ticket:
    """A whole connection, and the first ticket of it."""
    c = stage.connect(**options).honest()
    c.need("established")
    assert c.client.tickets, "no ticket came"
    return c.client.tickets[0]


def present(stage: Stage, *tickets: Ticket, edit: Edit | None = None, **options: Any) -> Connection:
    """Come back with tickets; what the server allows is gone through with."""
    if not stage.server.own and stage.setup.tickets:
        earned = {t.identity[:16] for c in stage.connections for t in c.client.tickets}
        for ticket in tickets:
            name = ticket.identity[:16]
            if name == sealed.key_name(KEYS[0]) and name not in earned:
                raise NotPlayable("the server's ticket keys are not ours to know")
    c = stage.connect(tickets=tickets, **options).hello(edit)
    if c.client.state == "retry":
        c.hello()
    return c.finish().echo() if c.client.state == "flight" else c


def coming_back(
    name: str, rule: str, where: str, end: End, change: Change = lambda t: t,
    basis: Basis = "policy", edit: Edit | None = None, first: dict[str, Any] | None = None,
    wait_ms: int = 0, setup: Setup = KEYED, **options: Any,
) -> None:  # fmt: skip
    """Earn a ticket (with ``first`` options), wait, change it, and come back with it."""

    def script(stage: Stage) -> Connection:
        ticket = earn(stage, **(first or {}))
        if wait_ms:
            stage.pass_time(wait_ms)
        return present(stage, change(ticket), edit=edit, **options)

    TICKETS.add(name, rule, where, end, script, basis, setup)


def forged(ticket: Ticket, **lies: Any) -> Ticket:
    """The same ticket, sealed anew by a holder of the key with some of its contents changed."""
    if ticket.identity[:16] != sealed.key_name(KEYS[0]):
        raise NotPlayable("the server's ticket keys are not ours to know")
    contents = sealed.unseal(KEYS[0], ticket.identity)
    plaintext = replace(contents, **lies).plaintext()
    return replace(ticket, identity=sealed.seal(KEYS[0], bytes(range(32)), plaintext))


def made_up(**lies: Any) -> Ticket:
    """A ticket that no server made, of a connection that never was."""
    psk = Randomness("a made-up psk").draw("psk")
    contents = sealed.Contents(
        NOW_MS - 5000, NOW_MS + HOUR_MS, 77, codes.AES_128_GCM_SHA256, psk, FIRST.fingerprint,
        b"server.example",
    )  # fmt: skip
    contents = replace(contents, **lies)
    identity = sealed.seal(KEYS[0], bytes(range(1, 33)), contents.plaintext())
    return Ticket(identity, psk, contents.suite, 77, 3600, b"\0", NOW_MS - 5000, b"server.example")


def flip(at: int) -> Change:
    """One bit of the ticket's bytes."""

    def change(ticket: Ticket) -> Ticket:
        raw = bytearray(ticket.identity)
        raw[at] ^= 1
        return replace(ticket, identity=bytes(raw))

    return change


def binders(how: Callable[[list[bytes]], list[bytes]]) -> Edit:
    """An edit that changes the binders once they are computed."""
    return lambda h: setattr(h, "edit_binders", how)


def psk_body(how: Callable[[bytes], bytes]) -> Edit:
    """An edit that changes the encoded pre_shared_key."""
    return lambda h: setattr(h, "edit_psk", how)


def raw_psk(body: bytes) -> Edit:
    """A pre_shared_key extension with this body and no arithmetic."""

    def edit(h: Hello) -> None:
        h.offers = []
        h.put(codes.PRE_SHARED_KEY, body)

    return edit
