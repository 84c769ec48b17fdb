"""Which refusals inputs reach: in which state, at which message.

The engine is not touched: in the process that measures, the functions through which a refusal
passes are wrapped, from the outermost (a record) to the innermost (a handshake message), and the
innermost that returns it names the message. `fail` is where all meet, with the state as it was.

What cannot be seen: a refusal of a configuration or start call, which no connection ends with; a
call of a handler that does not go through here (harness hello calls the parser alone, so its own
answer is taken instead); and why within one message, where two rules share a tag.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

from engine import engine as calls
from engine import receive
from engine.client_authentication import ClientAuthentication
from engine.layout import FAILED, STATE
from engine.refusals import (
    AT_ALERT,
    AT_CCS,
    AT_CERTIFICATE,
    AT_EARLY,
    AT_END,
    AT_HEADER,
    AT_HELLO,
    AT_OTHER,
    AT_PROTECTED,
    AT_VERIFY,
    START,
    Refusal,
)
from engine.server import Server

from .refusal_matrix import HANDSHAKE, STATE_NAMES

Cell = tuple[str, str, str]
"""State, message, tag."""

# The functions that return a refusal or None, and the message that one names when nothing inside it
# did. `_on_record` is left with what is in no message: a change_cipher_spec.
WRAPPED = (
    ("_judge", AT_HEADER),
    ("_on_record", AT_CCS),
    ("_on_protected", AT_PROTECTED),
    ("on_opened", AT_PROTECTED),
    ("_skip", AT_EARLY),
    ("_on_alert", AT_ALERT),
    ("_on_handshake", ""),
)
TAGS = frozenset(refusal.tag for refusal in Refusal)
# Its own answer is its refusal: it asks the parser, with no connection around.
PARSER_ALONE = "hello"
HANDLERS = (("on_certificate", AT_CERTIFICATE), ("on_certificate_verify", AT_VERIFY))


class Watch:
    """Collects the cells that are reached while it is told of an input at a time."""

    def __init__(self) -> None:
        self.cells: set[Cell] = set()
        self._message = ""
        self._kind = -1

    def install(self) -> None:
        """Wrap the engine of this process, for good."""
        for name, message in WRAPPED:
            self._wrap((receive, calls), name, partial(self._returning, message))
        for name, message in HANDLERS:
            self._wrap((ClientAuthentication,), name, partial(self._handling, message))
        self._wrap((receive, calls), "fail", self._failing)
        self._wrap((Server,), "rule", self._ruling)
        self._wrap((calls.Engine,), "eof", self._ending)

    def _wrap(self, owners: tuple[Any, ...], name: str, wrapper: Callable[..., Any]) -> None:
        """Put one function around `name` wherever it is known by it."""
        function = getattr(owners[0], name)
        wrapped = functools.wraps(function)(wrapper(function))
        for owner in owners:
            if hasattr(owner, name):
                setattr(owner, name, wrapped)

    def of(
        self, harness: str, run: Callable[[bytes], str], data: bytes
    ) -> tuple[str | None, set[Cell]]:
        """The outcome of an input, None when it was stopped, and the cells that it reached."""
        self.cells = set()
        self._message = ""
        try:
            outcome = run(data)
        except Exception:
            # What an oracle stops is a finding, counted where findings are; here it is a path.
            return None, self.cells
        if harness == PARSER_ALONE and outcome in TAGS:
            self.cells.add((START, AT_HELLO, outcome))
        return outcome, self.cells

    def _note(self, state: int, message: str, refusal: Refusal) -> None:
        if state in STATE_NAMES:
            self.cells.add((STATE_NAMES[state], message, refusal.tag))

    def _returning(self, message: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            refusal = function(*arguments)
            if refusal is not None and not self._message:
                self._message = message or HANDSHAKE.get(self._kind, AT_OTHER)
            return refusal

        return wrapper

    def _handling(self, message: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(clients: Any, area: Any, data: Any) -> Any:
            state = area.words[STATE]
            refusal = function(clients, area, data)
            # Noted here too: harness clientauth calls the handlers with no record layer around.
            if refusal is not None:
                self._note(state, message, refusal)
            return refusal

        return wrapper

    def _failing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(area: Any, refusal: Refusal) -> None:
            if area.words[STATE] != FAILED:
                ended = refusal is Refusal.PEER_CLOSED
                # Without a message it is a protected record that the short way opened in vain.
                message = AT_END if ended else self._message or AT_PROTECTED
                self._note(area.words[STATE], message, refusal)
            self._message = ""
            function(area, refusal)

        return wrapper

    def _ruling(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(server: Any, area: Any, kind: int) -> Any:
            self._kind = kind
            return function(server, area, kind)

        return wrapper

    def _ending(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(engine: Any, slot: int) -> None:
            # A connection that rests has no area, and then no `fail` is called.
            state = engine._words_of(slot)[STATE]
            function(engine, slot)
            if engine._words_of(slot)[STATE] == FAILED:
                self._note(state, AT_END, Refusal.PEER_CLOSED)

        return wrapper
