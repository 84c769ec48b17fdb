"""An engine with fewer areas than slots, and a plain model of it, moved together a call at a time.

`apply` makes one call on the engine, tells the model, and compares. What is compared after every
call, whatever the call:

- `residue()` is 0, and areas held, resting and free add up;
- what the engine says of every connection is what the model says: who is free, in a handshake,
  established, verified, closed, failed and why;
- what is received is what was sent, once and in order, both ways;
- a call that gave back-pressure had a reason and took nothing.

Hypothesis' state machine and the fuzzer drive the same `apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from engine import END, FAILED, WOULD_BLOCK, Engine, Refused
from peers.liar import Client, Credential
from peers.liar.identities import NOW_MS, Identity, authority, make, pem
from peers.liar.observer import Ticket

from ..connection import ended_as
from ..formats.pool import Operation, Order
from ..oracles import Broken
from ..whitebox import check_zero, resting, wiped
from .pool_connection import PoolConnection

NAME = "server.example"
SIZES = (0, 1, 5, 16, 64, 300, 2_000, 16_384, 16_385, 40_000)
_CYCLE = bytes(range(256)) * 158


def content_of(argument: int) -> bytes:
    """Data of a size that the argument chooses; no two bytes in a row are alike."""
    return _CYCLE[argument : argument + SIZES[argument % len(SIZES)]]


@lru_cache(maxsize=1)
def _servers() -> tuple[Identity, Identity]:
    return make((NAME,)), make((NAME,), label="renewed")


@lru_cache(maxsize=1)
def _stores() -> tuple[tuple[bytes, bool], ...]:
    """Stores of roots, and whether each trusts the clients."""
    own, other = authority(), authority("another root")
    return (pem(own), True), (pem(own, other), True), (pem(other), False)


@lru_cache(maxsize=2)
def _credential(large: bool) -> Credential:
    """A client whose leaf fits its slot's room, or does not."""
    names = tuple(f"device-{n}.of-a-long-name.example" for n in range(80 if large else 1))
    return make(names, usage="client").credential


class Model:
    """The engine, the model, and `apply`."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.now_ms = NOW_MS
        self.stale_tickets: list[Ticket] = []
        self.trusted = True
        self.born = 0
        self.resting = min(order.resting, order.areas)
        self.lines: list[PoolConnection | None] = []
        self.last = 0
        self._operations: dict[str, Callable[[int, int], None]] = {
            name.removeprefix("_do_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("_do_")
        }
        self._begin()

    def _begin(self) -> None:
        order = self.order
        # The order of the suites is fixed, so that an outcome is the same on every machine.
        engine = self.engine = Engine.server(
            order.slots, order.areas, signing="deterministic", hardware_aes=True
        )
        engine.seed(bytes(range(32)))
        identity = _servers()[0]
        engine.add_identity(identity.chain_pem, identity.key_pem, [NAME], NOW_MS)
        if order.tickets:
            engine.set_tickets(2, 3_600)
        if order.certificates:
            engine.trust_clients(_stores()[0][0])
            engine.client_auth_mode(1)
        self.trusted = True
        engine.set_resting(self.resting)
        self.lines = [None] * order.slots

    # -- one call -----------------------------------------------------------------------------

    def apply(self, operation: Operation) -> None:
        """One operation on both, then every comparison."""
        self.last = operation.slot
        engine, before = self.engine, resting(self.engine)
        spare = engine.areas_free() - len(before)
        line = self.lines[operation.slot]
        had_area = line is not None and (
            operation.slot in before or engine.holds_area(operation.slot)
        )
        self._operations[operation.name](operation.slot, operation.argument)
        self.check()
        if self.engine is engine:
            started = line is None and self.lines[operation.slot] is not None
            self._check_rests(operation, before, spare, started)
            if had_area and operation.name != "set_resting":
                self._check_own_rest(operation.slot)

    def _do_serve(self, slot: int, argument: int) -> None:
        if self.lines[slot] is not None:
            return
        possible = self.engine.areas_free() > 0
        try:
            self.engine.serve(slot, self.now_ms)
        except Refused as refused:
            if refused.refusal != "tls-pool" or possible:
                raise Broken("model", f"serve is refused {refused.refusal}") from None
            return
        if not possible:
            raise Broken("model", "serve started with no area to be had")
        self.lines[slot] = PoolConnection(self._client(argument))

    def _client(self, argument: int) -> Client:
        """A client of the kind the argument names, with randomness of its own."""
        self.born += 1
        kind = argument % 6
        return Client(
            b"pool %d" % self.born,
            now_ms=self.now_ms,
            suites=[0x1301, 0x1303] if kind else [0x1303],
            groups=(29, 23),
            shares=() if kind == 1 else (29,),
            credential=_credential(kind == 3) if kind in (2, 3) else None,
            tickets=self.stale_tickets[-1:] if kind == 4 else (),
            session_id=b"" if kind == 5 else None,
            check_signature=False,
        )

    def _do_speak(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None:
            line.speak()
            self.stale_tickets += line.tickets()
            del self.stale_tickets[:-4]

    def _do_feed(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None:
            self._feed(slot, line, len(line.wire) * argument // 255 if argument else len(line.wire))

    def _do_half(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None and line.bounds:
            self._feed(slot, line, (line.bounds[0] - line.taken + 1) // 2)

    def _feed(self, slot: int, line: PoolConnection, length: int) -> None:
        data = bytes(line.wire[:length])
        had_area = self.engine.holds_area(slot) or self.engine.areas_free() > 0
        ended = line.state in ("failed", "closed")
        taken = self.engine.feed(slot, data)
        if taken < 0 or taken > len(data):
            raise Broken("model", f"feed took {taken} of {len(data)} bytes")
        line.advance(taken, self._generation(), self.trusted)
        if taken == len(data):
            return
        if ended or line.state in ("failed", "closed"):
            raise Broken("model", "an ended connection does not take everything")
        waiting = self.engine.event(slot) == "want_write" or line.owed or line.unknown
        if had_area and not waiting:
            raise Broken("model", "feed stopped with an area, and nothing to take or to receive")
        if not had_area and taken:
            raise Broken("model", "feed took bytes with no area to be had")

    def _do_take(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None:
            out = bytearray(argument or 1 << 16)
            count = self.engine.take(slot, out)
            line.inbox += out[:count]

    def _do_data(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None and line.client.state == "established":
            content = content_of(argument)
            for start in range(0, len(content), 16_384):
                piece = content[start : start + 16_384]
                line.say(line.client.send(piece), ("data", piece))

    def _do_send(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is None:
            return
        content = content_of(argument)
        had_area = self.engine.holds_area(slot) or self.engine.areas_free() > 0
        writing = self.engine.event(slot) == "want_write"
        taken = self.engine.send(slot, content)
        possible = line.state in ("established", "closed") and not line.closing and had_area
        if taken and not possible and not line.unknown:
            raise Broken("model", "send took bytes that cannot be sent")
        if possible and content and not taken and not writing and not line.unknown:
            raise Broken("model", "send took nothing, and nothing is in its way")
        line.sent += content[:taken]
        if taken:
            line.run = 0

    def _do_recv(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is None:
            return
        room = bytearray(argument or 1 << 16)
        count = self.engine.recv(slot, room)
        if line.unknown:
            line.owed.clear()
            return
        if count > 0:
            if not line.owed.startswith(room[:count]):
                raise Broken("delivered", "the program receives what the client did not send")
            if count != min(len(line.owed), len(room)):
                raise Broken("delivered", "recv gives less than there is")
            del line.owed[:count]
            return
        if line.owed:
            raise Broken("delivered", f"recv answers {count} with {len(line.owed)} bytes owed")
        expected = {"failed": FAILED, "closed": END}.get(line.state, WOULD_BLOCK)
        if count != expected and not line.unknown:
            raise Broken("model", f"recv answers {count}, not {expected}")

    def _do_finish(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is None:
            return
        had_area = self.engine.holds_area(slot) or self.engine.areas_free() > 0
        said = self.engine.finish(slot)
        possible = line.state in ("established", "closed") and (had_area or line.closing)
        if said is not possible and not line.unknown:
            raise Broken("model", f"finish answers {said}")
        line.closing = line.closing or said

    def _do_eof(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None:
            self.engine.eof(slot)
            if line.state not in ("failed", "closed"):
                line.fail("tls-peer-closed")

    def _do_drop(self, slot: int, argument: int) -> None:
        if self.lines[slot] is not None:
            self.engine.drop(slot)
            self.lines[slot] = None

    def _do_close_notify(self, slot: int, argument: int) -> None:
        line = self._talking(slot)
        if line is not None:
            line.say(line.client.close_notify(), ("closed", b""))

    def _do_key_update(self, slot: int, argument: int) -> None:
        line = self._talking(slot)
        if line is not None:
            line.say(line.client.key_update(argument & 1), ("none", b""))

    def _do_empty(self, slot: int, argument: int) -> None:
        line = self._talking(slot)
        if line is not None:
            for _ in range(argument % 40):
                line.say(line.client.send(b"", argument), ("none", b""))

    def _talking(self, slot: int) -> PoolConnection | None:
        line = self.lines[slot]
        return line if line is not None and line.client.state == "established" else None

    def _do_corrupt(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None:
            line.corrupt(argument)

    def _do_garbage(self, slot: int, argument: int) -> None:
        line = self.lines[slot]
        if line is not None:
            line.lose(line.said)
            line.say(bytes([20 + argument % 5, 3, 3, 0, 64]) + bytes([argument]) * 64)

    def _do_replace_store(self, slot: int, argument: int) -> None:
        if self.order.certificates:
            store, self.trusted = _stores()[argument % 3]
            self.engine.trust_clients(store)

    def _do_replace_identity(self, slot: int, argument: int) -> None:
        identity = _servers()[argument & 1]
        self.engine.replace_identity(0, identity.chain_pem, identity.key_pem, NOW_MS)

    def _do_rotate(self, slot: int, argument: int) -> None:
        if self.order.tickets:
            self.engine.rotate_ticket_key(self.now_ms)

    def _do_clock(self, slot: int, argument: int) -> None:
        self.now_ms += 10_000 * argument
        self.engine.set_time(self.now_ms)

    def _do_set_resting(self, slot: int, argument: int) -> None:
        self.resting = argument % (self.order.areas + 1)
        self.engine.set_resting(self.resting)

    def _do_look(self, slot: int, argument: int) -> None:
        """A call that only reads changes nothing and takes no area."""
        before = self._areas()
        first = self._readings()
        if self._readings() != first or self._areas() != before:
            raise Broken("model", "a call that only reads changed something")

    def _do_close(self, slot: int, argument: int) -> None:
        self.close()
        self._begin()

    def close(self) -> None:
        """Close the engine: its memory is zero, and it answers nothing more."""
        with wiped(self.engine):
            self.engine.close()
        try:
            self.engine.residue()
        except ValueError:
            return
        raise Broken("model", "a closed engine answers")

    # -- comparisons --------------------------------------------------------------------------

    def _generation(self) -> int:
        return self.engine.client_generation()

    def _areas(self) -> tuple[object, ...]:
        engine = self.engine
        held = [engine.holds_area(s) for s, line in enumerate(self.lines) if line is not None]
        return engine.areas_free(), engine.areas_resting(), held

    def _readings(self) -> list[object]:
        engine = self.engine
        return [
            [
                engine.event(slot), engine.failure(slot), engine.alert_received(slot),
                engine.resumed(slot), engine.suite(slot), engine.group(slot),
                engine.retried(slot), engine.server_name(slot), engine.alpn(slot),
                engine.ticket_verdict(slot), engine.peer_verified(slot),
                engine.peer_certificate(slot), engine.peer_subject(slot),
                engine.peer_serial(slot), engine.peer_fingerprint(slot),
                engine.peer_not_after(slot), engine.peer_san(slot),
            ]
            for slot, line in enumerate(self.lines)
            if line is not None
        ]  # fmt: skip

    def check(self) -> None:
        """What must hold after every call."""
        engine = self.engine
        left = engine.residue()
        if left:
            raise Broken("residue", f"{left} after a call")
        for slot in resting(engine):
            line = self.lines[slot]
            if line is None or not (line.unknown or line.state == "established"):
                raise Broken("areas", "one that has ended rests")
        held = 0
        handshakes = 0
        guessing = False
        for slot, line in enumerate(self.lines):
            if line is None:
                if engine.event(slot) != "free":
                    raise Broken("model", "a free slot has a connection")
                continue
            held += engine.holds_area(slot)
            handshakes += line.state == "handshake"
            guessing = guessing or line.unknown
            self._check_line(slot, line)
        if held + engine.areas_free() != engine.areas():
            raise Broken("areas", f"{held} held and {engine.areas_free()} free")
        if engine.areas_resting() > self.resting:
            raise Broken("areas", f"{engine.areas_resting()} rest where {self.resting} may")
        if handshakes != engine.handshakes_in_progress() and not guessing:
            raise Broken("model", f"{engine.handshakes_in_progress()} handshakes in progress")

    def _check_rests(
        self, operation: Operation, before: list[int], spare: int, started: bool
    ) -> None:
        """Whose rest ended: the longest resting one's, and only where it had to.

        `before` rested, the longest first; `spare` areas were nobody's; a connection `started`.
        """
        after = resting(self.engine)
        if operation.name == "set_resting":
            if after != before[max(0, len(before) - self.resting) :]:
                raise Broken("areas", "not those over the number, or not the longest, gave up")
            return
        others = [slot for slot in before if slot != operation.slot]
        left = [slot for slot in after if slot != operation.slot]
        gone = len(others) - len(left)
        if left != others[gone:]:
            raise Broken("areas", "the area of one that did not rest longest was taken")
        if started:
            if before and not gone:
                raise Broken("areas", "a handshake takes a free area where one rests")
        elif gone and spare and len(after) < self.resting:
            raise Broken("areas", "a rest ended and there was a free area")

    def _check_own_rest(self, slot: int) -> None:
        """Who had an area and was called last has it still, or rests: others rest longer."""
        line = self.lines[slot]
        if line is None or line.unknown or line.closing or line.state != "established":
            return
        if self.resting and not self.engine.holds_area(slot) and slot not in resting(self.engine):
            raise Broken("areas", "who was called last gave its area up")

    def _check_line(self, slot: int, line: PoolConnection) -> None:
        engine = self.engine
        event = engine.event(slot)
        if line.unknown:
            if event == "failed" and line.state != "failed":
                line.fail("")
            return
        expected = {
            "handshake": ("want_read", "want_write"),
            "established": ("established", "want_write"),
            "closed": ("closed", "want_write"),
            "failed": ("failed",),
        }[line.state]
        if event not in expected:
            raise Broken("model", f"the engine says {event}, the model {line.state}")
        failure = engine.failure(slot)
        if failure != line.tag:
            raise Broken("model", f"the failure is {failure}, not {line.tag}")
        if event in ("established", "closed") and line.idle() and engine.holds_area(slot):
            raise Broken("areas", "an idle connection keeps its area")
        if event == "want_write" and not engine.holds_area(slot):
            raise Broken("model", "something to take and no area that holds it")
        verified = engine.peer_verified(slot)
        if bool(verified) is not line.verified():
            raise Broken("model", f"peer_verified is {verified}")
        if engine.peer_certificate(slot) != (line.leaf if line.verified() else None):
            raise Broken("model", "peer_certificate is not what was verified")

    # -- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """Let every connection say what it still has to say, compare, and drop it."""
        for _ in range(60):
            quiet = True
            for slot, line in enumerate(self.lines):
                if line is None or line.unknown:
                    continue
                before = (line.taken, len(line.inbox), len(line.owed), len(line.client.received))
                for name in ("recv", "take", "speak", "feed"):
                    self.apply(Operation(name, slot, 0))
                after = (line.taken, len(line.inbox), len(line.owed), len(line.client.received))
                quiet = quiet and before == after
            if quiet:
                break
        for slot, line in enumerate(self.lines):
            if line is not None:
                whole = line.state in ("established", "closed") and not line.unknown
                if whole and line.client.received != line.sent and not self._starved(slot):
                    raise Broken("delivered", "something that was sent did not arrive")
                self.apply(Operation("drop", slot, 0))
        if self.engine.areas_free() != self.engine.areas():
            raise Broken("areas", "an area is held by nobody")
        check_zero(self.engine)

    def _starved(self, slot: int) -> bool:
        """The connection could not go on because others kept every area."""
        return not self.engine.holds_area(slot) and not self.engine.areas_free()

    def outcome(self) -> str:
        """What became of the slot of the last operation; a slot that is free waits."""
        line = self.lines[self.last] if self.last < len(self.lines) else None
        if line is None:
            return "waiting"
        failure = self.engine.failure(self.last)
        if failure is not None:
            return failure.tag
        word = "waiting" if line.state == "handshake" else line.state
        return ended_as(self.engine, self.last, word)
