"""The ring of ticket keys, and what changes between an answer and its Finished (SPEC §5)."""

from __future__ import annotations

# The tables below are set by hand.
# fmt: off
from collections.abc import Callable
from dataclasses import replace

from peers.liar.conversation import Connection, Setup, Stage
from peers.liar.ends import End, established, resumed
from peers.liar.identities import make
from peers.liar.sealed import key_name

from .base import TICKETS
from .ticket_steps import HOUR_MS, KEYED, KEYS, earn, present

OWN = TICKETS.setup
Step = Callable[[Stage], object]


def keys(*which: int) -> Step:
    """The server is given these of three ticket keys."""
    return lambda stage: stage.call("set_ticket_keys", [KEYS[i] for i in which], stage.now_ms)


def rotate(times: int = 1) -> Step:
    """The server draws new ticket keys, so many times."""
    def step(stage: Stage) -> None:
        for _ in range(times):
            stage.call("rotate_ticket_key", stage.now_ms)

    return step


def wait(ms: int) -> Step:
    """So many milliseconds go by."""
    return lambda stage: stage.pass_time(ms)


def ring(name: str, rule: str, end: End, *steps: Step, setup: Setup = KEYED) -> None:
    """Earn a ticket, turn the ring, come back."""

    def script(stage: Stage) -> Connection:
        ticket = earn(stage)
        for step in steps:
            step(stage)
        return present(stage, ticket)

    TICKETS.add(name, rule, "SPEC §5.3", end, script, "policy", setup)


LONG = replace(KEYED, lifetime=86400)
OWN_LONG = replace(OWN, lifetime=86400)
UNKNOWN = established("unknown")
ring("keys-previous", "a previous key still opens", resumed(), keys(1, 0))
ring("keys-dropped", "a key that is not listed any more opens nothing", UNKNOWN, keys(1))
ring("keys-dropped-and-back", "a key that comes back as a previous one opens", resumed(),
     keys(1), keys(1, 0))
ring("keys-the-same-again", "the same list changes nothing", resumed(), keys(0))
ring("keys-swapped", "the order of the list may change", resumed(), keys(1, 0), keys(0, 1))
ring("keys-last-of-four", "the last of four keys opens", resumed(), keys(1, 2, 3, 0))
ring("keys-refused", "a list that is refused leaves the ring as it was", resumed(),
     keys(1, 1))
ring("keys-previous-almost-over", "a previous key opens for one lifetime", resumed(),
     keys(1, 0), wait(HOUR_MS - 1))
ring("keys-previous-over", "a previous key's end comes before a ticket's own reading", UNKNOWN,
     keys(1, 0), wait(HOUR_MS))
ring("keys-list-repeated", "repeating the list does not lengthen a previous key's life", UNKNOWN,
     keys(1, 0), wait(HOUR_MS // 2), keys(1, 0), wait(HOUR_MS // 2))
ring("keys-supplied-never-rotate", "supplied keys are not rotated by the engine", resumed(),
     wait(HOUR_MS - 1), lambda stage: stage.connect().honest())
ring("rotated-once", "a rotated key still opens", resumed(), rotate(), setup=OWN)
ring("rotated-three-times", "three rotations leave the oldest key in the ring", resumed(),
     rotate(3), setup=OWN)
ring("rotated-four-times", "a fourth rotation drops the oldest key", UNKNOWN, rotate(4), setup=OWN)
ring("rotated-supplied", "a supplied key may be rotated too", resumed(), rotate())


@TICKETS.case("ring-of-one", "a rotation is counted among the keys that open", "SPEC §5",
              established("none"), "policy", OWN)
def _(stage: Stage) -> Connection:
    first = earn(stage).identity[:16]
    rotate()(stage)
    c = stage.connect().honest()
    assert c.client.tickets[0].identity[:16] != first, "the new key seals"
    return c


@TICKETS.case("own-key-for-one-lifetime", "the engine's own key seals for one lifetime", "SPEC §5",
              established("none"), "policy", OWN)
def _(stage: Stage) -> Connection:
    first = earn(stage).identity[:16]
    stage.pass_time(HOUR_MS - 1)
    assert earn(stage).identity[:16] == first, "the key is of age, not past it"
    stage.pass_time(1)
    c = stage.connect().honest()
    assert c.client.tickets[0].identity[:16] != first, "after exactly a lifetime it is replaced"
    return c


@TICKETS.case("own-key-opens-for-another", "a key that was replaced opens for a lifetime more",
              "SPEC §5", resumed(), "policy", OWN)
def _(stage: Stage) -> Connection:
    earn(stage)
    stage.pass_time(HOUR_MS - 1)
    ticket = earn(stage)
    stage.pass_time(HOUR_MS - 1)
    earn(stage)
    return present(stage, ticket)


@TICKETS.case("supplied-key-seals", "the first key of the list seals", "SPEC §5.3",
              established("none"), "policy", KEYED)
def _(stage: Stage) -> Connection:
    keys(1, 0)(stage)
    c = stage.connect().honest()
    assert c.client.tickets[0].identity[:16] == key_name(KEYS[1])
    return c


@TICKETS.case("supplied-key-outlives-its-lifetime", "a supplied key seals as long as it is listed",
              "SPEC §5", established("none"), "policy", KEYED)
def _(stage: Stage) -> Connection:
    earn(stage)
    stage.pass_time(10 * HOUR_MS)
    c = stage.connect().honest()
    assert c.client.tickets[0].identity[:16] == key_name(KEYS[0])
    return c


@TICKETS.case("clock-set-back", "the clock only moves forward", "SPEC §5", established("expired"),
              "policy", KEYED)
def _(stage: Stage) -> Connection:
    ticket = earn(stage)
    stage.pass_time(HOUR_MS)
    stage.call("set_time", stage.now_ms - HOUR_MS)
    stage.pass_time(-HOUR_MS, tell=False)
    return present(stage, ticket)


# Midway: between the server's flight and our Finished.
def midway(name: str, rule: str, end: End, step: Step, *, resume: bool = False,
           after: Step | None = None, setup: Setup = KEYED) -> None:
    """Change something while the server waits for the Finished; then use what it sent."""

    def script(stage: Stage) -> Connection:
        tickets = [earn(stage)] if resume else []
        c = stage.connect(tickets=tickets).flight()
        step(stage)
        c.finish().echo().need("established")
        if after is not None:
            after(stage)
        return present(stage, c.client.tickets[0])

    TICKETS.add(name, rule, "SPEC §5.2", end, script, "policy", setup)


def replace_first(stage: Stage) -> object:
    """The server's first identity is replaced by a renewed one."""
    other = make(["server.example"], label="a renewed server")
    return stage.call("replace_identity", 0, other.chain_pem, other.key_pem, stage.now_ms)


for _resume in (False, True):
    _word = "a resumption" if _resume else "a full handshake"
    _tail = "resumed" if _resume else "full"
    midway(f"midway-identity-{_tail}", f"the tickets of {_word} bind the leaf that was answered",
           established("identity"), replace_first, resume=_resume)
    midway(f"midway-keys-{_tail}", f"the tickets of {_word} are sealed by the key of the Finished",
           resumed(), keys(1), resume=_resume)
    midway(f"midway-keys-dropped-{_tail}", f"the key of the hello does not seal for {_word}",
           established("unknown"), keys(1), after=keys(0), resume=_resume)
    midway(f"midway-clock-{_tail}", f"the tickets of {_word} are dated by the Finished", resumed(),
           wait(HOUR_MS - 2), after=wait(HOUR_MS - 2), resume=_resume)


@TICKETS.case("midway-count-raised", "the number of tickets is read at the Finished", "SPEC §5",
              established("none", tickets=5), "policy", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    stage.call("set_tickets", 5, 3600)
    return c.finish().echo()


@TICKETS.case("midway-tickets-off", "tickets switched off before the Finished are not sent",
              "SPEC §5", established("none", tickets=0), "policy", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    stage.call("set_tickets", 0, 3600)
    return c.finish().echo()


@TICKETS.case("midway-lifetime-cut", "the lifetime is read at the Finished", "SPEC §5",
              established("none", tickets=2), "policy", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    stage.call("set_tickets", 2, 60)
    c.finish().echo()
    assert c.client.tickets[0].lifetime == 60
    return c


@TICKETS.case("no-ticket-after-a-wrong-finished", "no ticket comes before the Finished verified",
              "RFC 8446 §4.6.1", End("alert", 51, True, "tls-server-finished",
                                     facts=(("tickets", 0),)), "rfc", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect().flight()
    wrong = c.client.finished_message(edit=lambda b: bytes(len(b)))
    return c.tell(c.client.handshake_bytes(wrong))


@TICKETS.case("wrong-finished-of-a-resumption", "a resumption's Finished is compared too",
              "RFC 8446 §4.4.4", End("alert", 51, True, "tls-server-finished", "resumed"),
              "rfc", KEYED)
def _(stage: Stage) -> Connection:
    c = stage.connect(tickets=[earn(stage)]).flight()
    wrong = c.client.finished_message(edit=lambda b: b[:-1] + bytes((b[-1] ^ 1,)))
    return c.tell(c.client.handshake_bytes(wrong))
