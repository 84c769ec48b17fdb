"""The first ClientHello of each recorded handshake, through the parser and the choices alone.

So a conversation with a new fault in its hello is a test of the parser, too.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from engine import codepoints as c
from engine.hello import Choice, HelloFault, Policy, choose, parse, require_scheme
from engine.refusals import AT_HELLO, START, Refusal
from peers.recorder.format import Call, Exchange, Recording, all_names, load

HANDSHAKE, MESSAGE = 22, 1
# What other parts of the engine say of a hello: the record layer, the key exchange, the tickets.
OF_OTHERS = {Refusal.UNEXPECTED_MESSAGE, Refusal.KEY_SHARE, Refusal.SERVER_BINDER}
EARNED = {r.tag for r in Refusal if START in r.where.get(AT_HELLO, ()) and r not in OF_OTHERS}


class First(NamedTuple):
    """The first hello of a connection, the server's protocols, and what the engine answered."""

    body: bytes
    alpn: tuple[bytes, ...]
    aes: bool
    state: str


def hello_of(records: bytes) -> bytes | None:
    """The body of the ClientHello that records begin with; None when none is whole there."""
    message = b""
    while len(records) >= 5 and records[0] == HANDSHAKE:
        length = int.from_bytes(records[3:5])
        message += records[5 : 5 + length]
        records = records[5 + length :]
    whole = 4 + int.from_bytes(message[1:4])
    if message[:1] != bytes([MESSAGE]) or len(message) != whole:
        return None
    return message[4:]


def first(recording: Recording) -> First | None:
    """None where the parser is not asked, or not the first to say something."""
    alpn: tuple[bytes, ...] = ()
    for step in recording.steps:
        if isinstance(step, Call) and step.name == "set_alpn":
            (names,) = step.arguments
            assert isinstance(names, list)
            alpn = tuple(names)
        elif isinstance(step, Exchange):
            body = hello_of(step.sent)
            refused = step.state.startswith("failed")
            judged = not refused or step.state.split(" ")[1] in EARNED
            if body is None or not judged or not (refused or "suite=" in step.state):
                return None
            return First(body, alpn, recording.aes, step.state)
    return None


def recorded() -> dict[str, First]:
    found = {name: first(load(name)) for name in all_names() if name.startswith("handshake/")}
    return {name: one for name, one in found.items() if one is not None}


HELLOS = recorded()


@pytest.mark.parametrize("one", HELLOS.values(), ids=HELLOS)
def test_the_parser_and_the_choices_say_what_the_engine_said(one: First) -> None:
    suites = c.SUITES_WITH_AES if one.aes else c.SUITES_WITHOUT_AES
    try:
        hello = parse(one.body)
        choice = choose(hello, Policy(suites, c.GROUPS, one.alpn))
        if hello.identities is not None and choice.share is not None:
            require_scheme(hello)
    except HelloFault as fault:
        assert one.state.startswith(f"failed {fault.refusal.tag}")
        return
    assert isinstance(choice, Choice)
    assert not one.state.startswith("failed")
    assert f"suite={c.SUITE_NAMES[choice.suite]} " in f"{one.state} "
    assert f"group={c.GROUP_NAMES[choice.group]} " in f"{one.state} "


def test_every_refusal_of_a_first_hello_is_among_them() -> None:
    assert {one.state.split(" ")[1] for one in HELLOS.values()} >= EARNED
