"""The residue engine in memory, as the server of the lying client's conversations."""

from __future__ import annotations

from engine import FAILED, Engine, Refused
from peers.liar.conversation import Setup, Verified
from peers.liar.identities import NOW_MS
from peers.liar.transport import Transport

ENTROPY = bytes(range(32))


class EngineConnection:
    """One slot, driven as a server would: feed, echo, take."""

    def __init__(self, server: EngineServer, slot: int) -> None:
        self.server = server
        self.slot = slot
        self.ended = False
        self._room = bytearray(1 << 16)

    def exchange(self, data: bytes) -> bytes:
        """Feed bytes, take and echo; what the engine says."""
        engine, slot = self.server.engine, self.slot
        out = b""
        view = memoryview(data)
        step = self.server.step or len(data) or 1
        while True:
            taken = engine.feed(slot, view[:step]) if view else 0
            view = view[taken:]
            said = self._turn()
            out += said
            if not view or (taken == 0 and not said):
                break
        self._check()
        if engine.event(slot) == "failed":
            self.ended = True
        return out

    def _turn(self) -> bytes:
        """Echo what can be read, close when the peer did, and take everything."""
        engine, slot, room = self.server.engine, self.slot, self._room
        out = self._take()
        while (n := engine.recv(slot, room)) > 0:
            back = bytes(room[:n])
            while back:
                sent = engine.send(slot, back)
                said = self._take()
                out += said
                back = back[sent:]
                if not sent and not said:
                    break  # failed or finished in between: nobody is left to echo to
        if n == 0 and n != FAILED:
            engine.finish(slot)
            out += self._take()
        return out

    def _take(self) -> bytes:
        out = b""
        while n := self.server.engine.take(self.slot, self._room):
            out += bytes(self._room[:n])
        return out

    def _check(self) -> None:
        left = self.server.engine.residue()
        if left:
            raise AssertionError(f"residue {left}")

    def close(self) -> None:
        """The transport ends."""
        self.server.engine.eof(self.slot)
        self.ended = True


class EngineServer:
    """``step`` feeds the engine that many bytes at a time, 0 all at once."""

    own = True

    def __init__(self, step: int = 0, slots: int = 8, areas: int | None = None) -> None:
        self.step = step
        self.slots = slots
        self.areas = areas
        self.now_ms = NOW_MS
        self._next = 0

    def prepare(self, setup: Setup, now_ms: int) -> None:
        """A new engine with these settings, at this time in Unix milliseconds."""
        self.now_ms = now_ms
        self._next = 0
        engine = self.engine = Engine.server(
            self.slots, setup.areas or self.areas, signing="deterministic", hardware_aes=setup.aes
        )
        if setup.seeded:
            engine.seed(ENTROPY)
        for identity in setup.identities:
            engine.add_identity(identity.chain_pem, identity.key_pem, identity.names, now_ms)
        if setup.alpn:
            engine.set_alpn([p.encode() for p in setup.alpn])
        if setup.tickets:
            engine.set_tickets(setup.tickets, setup.lifetime)
        if setup.ticket_keys:
            engine.set_ticket_keys(setup.ticket_keys, now_ms)
        if setup.roots:
            engine.trust_clients(setup.roots)
        if setup.client_auth:
            engine.client_auth_mode(setup.client_auth)

    def connect(self) -> EngineConnection:
        """A connection in the next slot; raises what `Engine.serve` raises."""
        slot = self._next
        self._next += 1
        self.engine.serve(slot, self.now_ms)
        return EngineConnection(self, slot)

    def call(self, name: str, *arguments: object) -> str:
        """A call of the engine's, or `time` to set the clock; the tag when it is refused, or
        nothing."""
        if name == "time":
            (self.now_ms,) = arguments  # type: ignore[assignment]
            return ""
        try:
            getattr(self.engine, name)(*arguments)
        except Refused as refused:
            return str(refused.refusal.value)
        return ""

    def said(self, transport: Transport) -> tuple[str, str]:
        """The tag of the failure and the verdict on tickets; nothing for none."""
        assert isinstance(transport, EngineConnection)
        failure = self.engine.failure(transport.slot)
        verdict = self.engine.ticket_verdict(transport.slot)
        return ("" if failure is None else str(failure.value)), str(verdict)

    def verified(self, transport: Transport) -> Verified | None:
        """Who the engine says the client is; None while it says nothing."""
        assert isinstance(transport, EngineConnection)
        engine, slot = self.engine, transport.slot
        if not engine.peer_verified(slot):
            for call in ("certificate", "subject", "serial", "fingerprint", "not_after", "san"):
                answer = getattr(engine, f"peer_{call}")(slot)
                assert not answer, f"peer_{call} answers for a client that is not verified"
            return None
        return Verified(
            bytes(engine.peer_certificate(slot) or b""), bytes(engine.peer_subject(slot) or b""),
            bytes(engine.peer_serial(slot) or b""), bytes(engine.peer_fingerprint(slot) or b""),
            int(engine.peer_not_after(slot) or 0),
            tuple((tag, bytes(value)) for tag, value in engine.peer_san(slot) or ()),
        )  # fmt: skip

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()
