"""Where a connection is when a call is made on it: what was done with it before, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from peers.liar import Client, codes

from .scene import (
    ANSWER,
    FEW,
    LARGE_RECORD,
    NOW_MS,
    SLOT,
    TEXT,
    Peer,
    Scene,
    Setting,
    credential,
    honest,
)


@dataclass(frozen=True)
class State:
    """Where a connection is when the call is made, and who is at its other end."""

    name: str
    build: Callable[[Scene], object]
    client: Callable[[], Client] = lambda: honest("client")
    setting: Setting = field(default_factory=Setting)

    def few(self) -> State:
        """The same with one area."""
        return replace(self, setting=replace(self.setting, areas=FEW))


def _nothing(scene: Scene) -> None:
    pass


def _served(scene: Scene) -> None:
    scene.peer.serve()


def _say_first(scene: Scene, count: int, data: bytes) -> None:
    """The client says so many bytes; the rest is what the call may feed."""
    scene.peer.say(data[:count])
    scene.rest = data[count:]


def _hello_begun(scene: Scene) -> None:
    scene.peer.serve()
    _say_first(scene, 90, scene.peer.client.hello())


def _flight_waits(scene: Scene) -> None:
    scene.peer.serve()
    scene.peer.say(scene.peer.client.hello())


def _retried(scene: Scene) -> None:
    _flight_waits(scene)
    scene.peer.hear()


def _flight_taken(scene: Scene) -> None:
    scene.peer.greet()


def _finished_begun(scene: Scene) -> None:
    scene.peer.greet()
    _say_first(scene, 40, scene.peer.client.finish())


def _tickets_wait(scene: Scene) -> None:
    scene.peer.greet()
    scene.peer.say(scene.peer.client.finish())


def _rests(scene: Scene) -> None:
    scene.establish()


def _has_no_area(scene: Scene) -> None:
    scene.establish()
    scene.engine.set_resting(0)


def _robbed(scene: Scene) -> None:
    """The neighbour rests, in the area that this connection had where there is one alone."""
    scene.establish()
    scene.neighbour.echo()


def _plaintext_waits(scene: Scene) -> None:
    scene.establish()
    scene.peer.say(scene.peer.client.send(TEXT))


def _much_plaintext_waits(scene: Scene) -> None:
    scene.establish()
    scene.peer.say(scene.peer.client.send(LARGE_RECORD))
    scene.peer.say(scene.peer.client.send(TEXT))


def _output_waits(scene: Scene) -> None:
    scene.establish()
    scene.engine.send(SLOT, ANSWER)


def _both_wait(scene: Scene) -> None:
    _plaintext_waits(scene)
    scene.engine.send(SLOT, ANSWER)


def _queue_is_full(scene: Scene) -> None:
    scene.establish()
    scene.engine.send(SLOT, LARGE_RECORD * 3)


def _record_begun(scene: Scene) -> None:
    scene.establish()
    _say_first(scene, 100, scene.peer.client.send(TEXT))


def _peer_closed(scene: Scene) -> None:
    scene.establish()
    scene.peer.say(scene.peer.client.close_notify())


def _closing(scene: Scene) -> None:
    scene.establish()
    scene.engine.finish(SLOT)


def _closed(scene: Scene) -> None:
    _closing(scene)
    scene.peer.hear()


def bad_record(scene: Scene) -> bytes:
    """A record that does not open."""
    data = bytearray(scene.peer.client.send(TEXT))
    data[-1] ^= 1
    return bytes(data)


def _alert_waits(scene: Scene) -> None:
    scene.establish()
    scene.peer.say(bad_record(scene))


def _failed(scene: Scene) -> None:
    _alert_waits(scene)
    scene.peer.hear()


def _failed_with_plaintext(scene: Scene) -> None:
    _plaintext_waits(scene)
    scene.peer.say(bad_record(scene))


def _tickets_were_had(scene: Scene) -> None:
    """The client comes again with the tickets of a connection before."""
    before = Peer(scene.engine, SLOT, honest("before")).establish()
    scene.engine.drop(SLOT)
    scene.peer.client.resume = tuple(before.client.tickets)
    scene.peer.serve()


def _resumed(scene: Scene) -> None:
    _tickets_were_had(scene)
    _answer(scene)


def _answer(scene: Scene) -> None:
    scene.peer.say(scene.peer.client.hello())
    scene.peer.hear()


def ticket_keys(first: int, last: int) -> list[bytes]:
    """Keys that tell apart."""
    return [bytes([number]) * 32 for number in range(first, last)]


def _own_tickets(scene: Scene) -> None:
    """Tickets are on, and their key is the engine's own."""
    scene.engine.set_tickets(2)


def _other_keys(scene: Scene) -> None:
    scene.engine.set_ticket_keys(ticket_keys(1, 5), NOW_MS)


def _neighbour_busy(scene: Scene) -> None:
    """The neighbour has plaintext in its area, and this connection is idle without one."""
    _has_no_area(scene)
    scene.neighbour.say(scene.neighbour.client.send(TEXT))


def _only_area_busy(scene: Scene) -> None:
    scene.neighbour.say(scene.neighbour.client.send(TEXT))


def _no_shares() -> Client:
    return honest("no shares", shares=())


def _certified(kind: str) -> Client:
    return honest(kind, credential=credential(kind))


OPTIONAL, REQUIRED = Setting(mode=1), Setting(mode=2)
SMALL, LARGE = partial(_certified, "small"), partial(_certified, "large")

FREE = State("free", _nothing)
SERVED = State("served", _served)
HELLO_BEGUN = State("hello-begun", _hello_begun)
FLIGHT_WAITS = State("flight-waits", _flight_waits)
RETRY_WAITS = State("retry-waits", _flight_waits, _no_shares)
RETRIED = State("retried", _retried, _no_shares)
FLIGHT_TAKEN = State("flight-taken", _flight_taken)
FINISHED_BEGUN = State("finished-begun", _finished_begun)
CERTIFICATE_DUE = State("certificate-due", _flight_taken, SMALL, REQUIRED)
LARGE_DUE = State("large-certificate-due", _flight_taken, LARGE, REQUIRED)
NO_CERTIFICATE = State("no-certificate", _flight_taken, setting=REQUIRED)
STRANGER = State("stranger", _flight_taken, partial(_certified, "stranger"), REQUIRED)
ANYBODY = State("optional-certificate-due", _flight_taken, setting=OPTIONAL)
ASKING = State("served-asking", _served, setting=Setting(mode=1, checked=True))
OTHERWISE = State(
    "served-otherwise",
    _served,
    partial(honest, "otherwise", groups=(codes.SECP256R1,), alpn=(b"h2",)),
    Setting(aes=False, tickets=False),
)
NO_SHARE = State("served-no-share", _served, _no_shares)
STRANGE = State("served-strange", _served, partial(honest, "strange", suites=(0x1399,)))
TICKETS_WAIT = State("tickets-wait", _tickets_wait)
TICKETS_HAD = State("tickets-had", _tickets_were_had)
RESUMED = State("resumed", _resumed)
RESTS = State("rests", _rests)
NO_AREA = State("has-no-area", _has_no_area)
ROBBED = State("robbed", _robbed).few()
PLAINTEXT_WAITS = State("plaintext-waits", _plaintext_waits)
MUCH_PLAINTEXT_WAITS = State("much-plaintext-waits", _much_plaintext_waits)
OUTPUT_WAITS = State("output-waits", _output_waits)
BOTH_WAIT = State("both-wait", _both_wait)
QUEUE_IS_FULL = State("queue-is-full", _queue_is_full)
RECORD_BEGUN = State("record-begun", _record_begun)
PEER_CLOSED = State("peer-closed", _peer_closed)
CLOSING = State("closing", _closing)
CLOSED = State("closed", _closed)
ALERT_WAITS = State("alert-waits", _alert_waits)
FAILED = State("failed", _failed)
FAILED_WITH_PLAINTEXT = State("failed-with-plaintext", _failed_with_plaintext)
VERIFIED = State("verified", _rests, SMALL, REQUIRED)
VERIFIED_NO_AREA = State("verified-has-no-area", _has_no_area, SMALL, REQUIRED)
VERIFIED_LARGE = State("verified-large", _rests, LARGE, REQUIRED)

OWN_TICKETS = State("own-tickets", _own_tickets, setting=Setting(tickets=False))
NO_TICKETS = State("no-tickets", _nothing, setting=Setting(tickets=False))
KEYS_SUPPLIED = State("keys-supplied", _other_keys)
NEIGHBOUR_BUSY = State("neighbour-busy", _neighbour_busy)
NEIGHBOUR_HAS_ALL = State("neighbour-has-all", _only_area_busy).few()

EVERY = (
    FREE, SERVED, HELLO_BEGUN, FLIGHT_WAITS, RETRY_WAITS, RETRIED, FLIGHT_TAKEN, FINISHED_BEGUN,
    CERTIFICATE_DUE, TICKETS_WAIT, RESUMED, RESTS, NO_AREA, ROBBED, PLAINTEXT_WAITS,
    MUCH_PLAINTEXT_WAITS, OUTPUT_WAITS, BOTH_WAIT, QUEUE_IS_FULL, RECORD_BEGUN, PEER_CLOSED,
    CLOSING, CLOSED, ALERT_WAITS, FAILED, FAILED_WITH_PLAINTEXT, VERIFIED, VERIFIED_NO_AREA,
    VERIFIED_LARGE,
)  # fmt: skip
ALIVE = tuple(state for state in EVERY if state is not FREE)
ONE_AREA = tuple(
    state.few()
    for state in (SERVED, FLIGHT_WAITS, FLIGHT_TAKEN, TICKETS_WAIT, RESTS, PLAINTEXT_WAITS, FAILED)
)
# What only reads is the same wherever the core is: these are the places where it may be.
SEEN = (FREE, FLIGHT_TAKEN, RESTS, NO_AREA, ALERT_WAITS, FAILED, VERIFIED, VERIFIED_LARGE)
