"""A conversation of the lying client with the harness's server, kept as an input that repeats it.

The client plays against an engine set up as the harness sets it up: with the seed, the clock and
the draws fixed, the server's bytes and so the client's are the same each time they are played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from peers.liar import Client
from peers.liar.hello import Hello

from . import fixtures
from .formats.server import CLIENT_MODES, STEPS, Call, code_of, encode, feeding
from .play import MAIN_SLOT, SLOTS

Part = bytes | Call


class Talk:
    """A client, the engine it talks to, and all that it sent."""

    def __init__(self, aes: bool = True, settings: int = 0, **options: Any) -> None:
        self.engine = fixtures.server(SLOTS, 1, hardware_aes=aes)
        self.engine.client_auth_mode(CLIENT_MODES[settings >> 5])
        self.engine.serve(MAIN_SLOT, fixtures.NOW_MS)
        self.settings = settings
        self.client = Client("harness", now_ms=fixtures.NOW_MS, **options)
        self.parts: list[Part] = []

    def say(self, *parts: Part) -> Talk:
        """Sends bytes and reads what comes back, or notes another call for the input."""
        for part in parts:
            self.parts.append(part)
            if isinstance(part, bytes):
                self.client.read(self.exchange(part))
        return self

    def exchange(self, data: bytes) -> bytes:
        """Gives the server bytes, and gets all that it says."""
        out, answer = bytearray(65_536), b""
        while data:
            taken = self.engine.feed(MAIN_SLOT, data)
            data = data[taken:]
            while count := self.engine.take(MAIN_SLOT, out):
                answer += out[:count]
            while self.engine.recv(MAIN_SLOT, out) > 0:
                pass
        return answer

    def shake(self, edit: Callable[[Hello], object] | None = None) -> Talk:
        """Hello, and a second one when it is asked for: the server's flight is read."""
        self.say(self.client.hello(edit))
        if self.client.state == "retry":
            self.say(self.client.hello())
        return self

    def establish(self) -> Talk:
        """An honest handshake to its end."""
        self.shake()
        return self.say(self.client.finish())

    def input(self, settings: int = 0) -> bytes:
        """The harness's input that sends the same bytes, with the same calls between them."""
        return compose(self.parts, self.settings | settings)


def compose(parts: Iterable[Part], settings: int = 0) -> bytes:
    """An input from pieces of a stream and the calls between them.

    Each piece is fed by itself, unless that makes too many steps: then neighbours are fed as one.
    """
    listed = list(parts)
    stream = b"".join(part for part in listed if isinstance(part, bytes))
    steps = _steps(listed)
    if len(steps) > STEPS:
        joined: list[Part] = []
        for part in listed:
            if joined and isinstance(part, bytes) and isinstance(joined[-1], bytes):
                joined[-1] += part
            else:
                joined.append(part)
        steps = _steps(joined)
    return encode(stream, steps, settings)


def _steps(parts: list[Part]) -> bytes:
    return b"".join(
        feeding(len(part)) if isinstance(part, bytes) else bytes([code_of(part)]) for part in parts
    )
