"""The scenarios of injection, a row each: which call, in which state, over how many areas.

A state says what was done with the connection before, a call what is done now; what makes sense of
the two is a row. Every public call of `Engine` has one, which a test checks against the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from peers.liar import codes
from peers.liar import hello as offers
from peers.liar.identities import make
from peers.liar.wire import message

from .. import fixtures
from . import states as at
from .scene import (
    ANSWER,
    FEW,
    LARGE_RECORD,
    NOW_MS,
    ROOM,
    SLOT,
    TEXT,
    Asker,
    Scene,
    calling,
    feeding,
    receiving,
    sending,
    taking,
)

# When every ticket key that the engine drew has had its time.
LATE_MS = NOW_MS + 1_000 * 3_600_000


class Nature(Enum):
    """What a call may leave when it breaks: the rule that it is judged by."""

    MOVES = "moves bytes: the connection is failed, or as it was"
    STARTS = "starts a connection: the slot is free or failed"
    SETS = "configures: all of it is done, or nothing"
    READS = "reads: everything is as it was"
    DROPS = "frees the slot: doing it again frees it"
    CLOSES = "closes the engine: doing it again wipes it"


@dataclass(frozen=True)
class Scenario:
    """One row: `begin` makes a scene of `state`, `ask` the call on it."""

    call: str
    method: str
    nature: Nature
    ask: Asker
    state: at.State

    @property
    def name(self) -> str:
        """What a person types."""
        few = "/few" if self.state.setting.areas == FEW else ""
        return f"{self.call}/{self.state.name}{few}"

    def begin(self) -> Scene:
        """A new scene in the scenario's state."""
        scene = Scene(self.state.setting, self.state.client())
        self.state.build(scene)
        return scene


# -- what is fed ----------------------------------------------------------------------------


def _hello(scene: Scene) -> bytes:
    return scene.peer.client.hello()


def _begun(scene: Scene) -> bytes:
    rest, scene.rest = scene.rest, b""
    return rest


def _in_half(make_data: Callable[[Scene], bytes]) -> Callable[[Scene], bytes]:
    def half(scene: Scene) -> bytes:
        data = make_data(scene)
        scene.rest = data[len(data) // 2 :]
        return data[: len(data) // 2]

    return half


def _finish(scene: Scene) -> bytes:
    return scene.peer.client.finish()


def _finish_apart(scene: Scene) -> bytes:
    return scene.peer.client.finish(apart=True)


def _finish_wrong(scene: Scene) -> bytes:
    return scene.peer.client.handshake_bytes(message(codes.FINISHED, bytes(32)))


def _verify_wrong(scene: Scene) -> bytes:
    client = scene.peer.client
    verify = client.certificate_verify_message(edit=lambda signature: signature[:-1] + b"\x00")
    return client.handshake_bytes(client.certificate_message() + verify)


def _record(scene: Scene) -> bytes:
    return scene.peer.client.send(TEXT)


def _long_record(scene: Scene) -> bytes:
    return scene.peer.client.send(LARGE_RECORD)


def _records(scene: Scene) -> bytes:
    return scene.peer.client.send(TEXT) + scene.peer.client.send(TEXT)


def _view_of_record(scene: Scene) -> memoryview:
    return memoryview(bytearray(_record(scene)))


def _padded_record(scene: Scene) -> bytes:
    return scene.peer.client.send(TEXT, padding=300)


def _empty_record(scene: Scene) -> bytes:
    return scene.peer.client.send(b"")


def _key_update(request: int) -> Callable[[Scene], bytes]:
    return lambda scene: scene.peer.client.key_update(request)


def _close_notify(scene: Scene) -> bytes:
    return scene.peer.client.close_notify()


def _alert(scene: Scene) -> bytes:
    return scene.peer.client.alert(codes.INTERNAL_ERROR)


def _garbage(scene: Scene) -> bytes:
    return b"GET / HTTP/1.1\r\n\r\n"


def _bad_binder(scene: Scene) -> bytes:
    def edit(hello: offers.Hello) -> None:
        hello.offers = [one._replace(secret=bytes(32)) for one in hello.offers]

    return scene.peer.client.hello(edit)


FED: tuple[tuple[str, Callable[[Scene], bytes | bytearray | memoryview], at.State], ...] = (
    ("hello", _hello, at.SERVED),
    ("hello", _hello, at.SERVED.few()),
    ("hello-begun", _in_half(_hello), at.SERVED),
    ("hello-ended", _begun, at.HELLO_BEGUN),
    ("hello", _hello, at.ASKING),
    ("hello", _hello, at.OTHERWISE),
    ("hello", _hello, at.NO_SHARE),
    ("hello", _hello, at.STRANGE),
    ("second-hello", _hello, at.RETRIED),
    ("hello-with-ticket", _hello, at.TICKETS_HAD),
    ("hello-wrong-binder", _bad_binder, at.TICKETS_HAD),
    ("garbage", _garbage, at.SERVED),
    ("finish", _finish, at.FLIGHT_TAKEN),
    ("finish", _finish, at.FLIGHT_TAKEN.few()),
    ("finish-begun", _in_half(_finish), at.FLIGHT_TAKEN),
    ("finish-ended", _begun, at.FINISHED_BEGUN),
    ("finish-wrong", _finish_wrong, at.FLIGHT_TAKEN),
    ("finish", _finish, at.RESUMED),
    ("alert", _alert, at.FLIGHT_TAKEN),
    ("flight", _finish, at.CERTIFICATE_DUE),
    ("flight-apart", _finish_apart, at.CERTIFICATE_DUE),
    ("flight", _finish, at.LARGE_DUE),
    ("flight", _finish, at.NO_CERTIFICATE),
    ("flight", _finish, at.STRANGER),
    ("flight", _finish, at.ANYBODY),
    ("flight-wrong-proof", _verify_wrong, at.CERTIFICATE_DUE),
    *(
        (name, data, state)
        for state in (at.RESTS, at.NO_AREA, at.ROBBED)
        for name, data in (
            ("record", _record),
            ("long-record", _long_record),
            ("record-begun", _in_half(_record)),
            ("bad-record", at.bad_record),
            ("close-notify", _close_notify),
        )
    ),
    ("records", _records, at.RESTS),
    ("view", _view_of_record, at.RESTS),
    ("view", _view_of_record, at.NO_AREA),
    ("padded-record", _padded_record, at.RESTS),
    ("empty-record", _empty_record, at.RESTS),
    ("key-update", _key_update(0), at.RESTS),
    ("key-update-asked", _key_update(1), at.RESTS),
    ("key-update-asked", _key_update(1), at.NO_AREA),
    ("alert", _alert, at.RESTS),
    ("garbage", _garbage, at.RESTS),
    ("record-ended", _begun, at.RECORD_BEGUN),
    ("record", _record, at.PLAINTEXT_WAITS),
    ("record", _record, at.MUCH_PLAINTEXT_WAITS),
    ("record", _record, at.OUTPUT_WAITS),
    ("record", _record, at.QUEUE_IS_FULL),
    ("record", _record, at.CLOSED),
    ("key-update-asked", _key_update(1), at.CLOSED),
    ("record", _record, at.VERIFIED),
    ("record", _record, at.VERIFIED_NO_AREA),
    ("record", _record, at.VERIFIED_LARGE),
    ("bad-record", at.bad_record, at.VERIFIED),
    ("bad-record", at.bad_record, at.VERIFIED_LARGE),
    ("garbage", _garbage, at.ALERT_WAITS),
    ("garbage", _garbage, at.FAILED),
    ("garbage", _garbage, at.PEER_CLOSED),
    ("garbage", _garbage, at.FREE),
)  # fmt: skip

# The calls that move bytes and need nothing of the peer: each makes sense in every state.
MOVED: tuple[tuple[str, str, Asker], ...] = (
    ("take", "take", taking(ROOM)),
    ("take-some", "take", taking(7)),
    ("recv", "recv", receiving(ROOM)),
    ("recv-some", "recv", receiving(7)),
    ("send", "send", sending(lambda: bytes(bytearray(ANSWER)))),
    ("send-much", "send", sending(lambda: LARGE_RECORD * 3)),
    ("send-view", "send", sending(lambda: memoryview(bytearray(ANSWER)))),
    ("finish", "finish", calling("finish", SLOT)),
    ("eof", "eof", calling("eof", SLOT)),
)

READ: tuple[str, ...] = (
    "event", "failure", "alert_received", "suite", "group", "retried", "resumed", "ticket_verdict",
    "server_name", "alpn", "holds_area", "peer_verified", "peer_certificate", "peer_subject",
    "peer_serial", "peer_fingerprint", "peer_not_after", "peer_san",
)  # fmt: skip
READ_OF_ENGINE: tuple[str, ...] = (
    "ticket_keys", "handshakes_in_progress", "areas", "areas_free", "areas_resting", "residue",
    "client_generation",
)  # fmt: skip


# -- what is configured ---------------------------------------------------------------------


OTHER = make(("other.example",), label="other")

CONFIGURED: tuple[tuple[str, str, tuple[object, ...], tuple[at.State, ...]], ...] = (
    ("seed", "seed", (bytes(32),), (at.FREE, at.RESTS)),
    (
        "add-identity",
        "add_identity",
        (OTHER.chain_pem, OTHER.key_pem, ["other.example"], NOW_MS),
        (at.FREE, at.FLIGHT_TAKEN),
    ),
    (
        "replace-identity",
        "replace_identity",
        (0, OTHER.chain_pem, OTHER.key_pem, NOW_MS),
        (at.FREE, at.FLIGHT_TAKEN),
    ),
    (
        "replace-names",
        "replace_identity",
        (0, fixtures.CHAIN, fixtures.KEY, NOW_MS, ["a.example", "*.b.example"]),
        (at.FREE,),
    ),
    ("set-alpn", "set_alpn", (["h3", b"h2"],), (at.FREE,)),
    ("set-tickets", "set_tickets", (3, 600), (at.NO_TICKETS, at.OWN_TICKETS, at.FREE)),
    ("set-tickets-off", "set_tickets", (0,), (at.OWN_TICKETS, at.FREE)),
    (
        "set-ticket-keys",
        "set_ticket_keys",
        (at.ticket_keys(3, 7), NOW_MS + 2),
        (at.NO_TICKETS, at.OWN_TICKETS, at.KEYS_SUPPLIED),
    ),
    (
        "set-one-ticket-key",
        "set_ticket_keys",
        (at.ticket_keys(4, 5), NOW_MS + 2),
        (at.KEYS_SUPPLIED,),
    ),
    (
        "rotate-ticket-key",
        "rotate_ticket_key",
        (NOW_MS + 1,),
        (at.NO_TICKETS, at.OWN_TICKETS, at.KEYS_SUPPLIED),
    ),
    ("set-time", "set_time", (NOW_MS + 1,), (at.OWN_TICKETS, at.FREE)),
    (
        "set-time-late",
        "set_time",
        (LATE_MS,),
        (at.OWN_TICKETS, at.KEYS_SUPPLIED, at.RESTS),
    ),
    (
        "trust-clients",
        "trust_clients",
        (fixtures.CLIENTS,),
        (at.FREE, at.CERTIFICATE_DUE, at.VERIFIED),
    ),
    ("client-auth-mode", "client_auth_mode", (1,), (at.FREE, at.SERVED)),
    (
        "set-resting",
        "set_resting",
        (0,),
        (at.FREE, at.RESTS, at.VERIFIED, at.PLAINTEXT_WAITS, at.NEIGHBOUR_BUSY),
    ),
    ("set-resting-one", "set_resting", (1,), (at.RESTS, at.NO_AREA)),
)


def _rows() -> Iterator[Scenario]:
    for state in (at.FREE, at.FREE.few(), at.NO_TICKETS, at.OWN_TICKETS, at.NEIGHBOUR_HAS_ALL):
        yield Scenario("serve", "serve", Nature.STARTS, calling("serve", SLOT, NOW_MS), state)
    late = calling("serve", SLOT, LATE_MS)
    yield Scenario("serve-late", "serve", Nature.STARTS, late, at.OWN_TICKETS)
    for name, data, state in FED:
        yield Scenario(f"feed-{name}", "feed", Nature.MOVES, feeding(data), state)
    for call, method, ask in MOVED:
        for state in (*at.ALIVE, *at.ONE_AREA):
            yield Scenario(call, method, Nature.MOVES, ask, state)
        yield Scenario(call, method, Nature.MOVES, ask, at.FREE)
    for state in (*at.ALIVE, *at.ONE_AREA):
        yield Scenario("drop", "drop", Nature.DROPS, calling("drop", SLOT), state)
    for state in at.EVERY:
        yield Scenario("close", "close", Nature.CLOSES, calling("close"), state)
    for call, method, arguments, states in CONFIGURED:
        for state in states:
            yield Scenario(call, method, Nature.SETS, calling(method, *arguments), state)
    for method in READ:
        for state in at.SEEN:
            call = method.replace("_", "-")
            yield Scenario(call, method, Nature.READS, calling(method, SLOT), state)
    for method in READ_OF_ENGINE:
        for state in (at.FREE, at.FLIGHT_TAKEN, at.NO_AREA, at.VERIFIED):
            call = method.replace("_", "-")
            yield Scenario(call, method, Nature.READS, calling(method), state)


SCENARIOS: dict[str, Scenario] = {row.name: row for row in _rows()}
