"""Every conversation of the lying client, against the engine in memory."""

from __future__ import annotations

from collections import Counter

import pytest

from peers.liar.conversation import Conversation, play
from peers.liar.suites import SUITES
from peers.memory import EngineServer

ALL = [c for suite in SUITES.values() for c in suite.conversations]
FLOORS = {"handshake": 110, "tickets": 80, "clients": 81}


def name_of(conversation: Conversation) -> str:
    return f"{conversation.suite}-{conversation.name}"


@pytest.mark.parametrize("conversation", ALL, ids=name_of)
def test_it_ends_as_it_must(conversation: Conversation) -> None:
    server = EngineServer()
    assert play(conversation, server).wrong == []
    server.close()


@pytest.mark.parametrize("conversation", ALL, ids=name_of)
def test_it_ends_the_same_one_byte_at_a_time(conversation: Conversation) -> None:
    assert play(conversation, EngineServer(step=1 if conversation.honest else 7)).wrong == []


@pytest.mark.parametrize("conversation", ALL[::10], ids=name_of)
def test_it_says_the_same_bytes_again(conversation: Conversation) -> None:
    assert play(conversation, EngineServer()).log == play(conversation, EngineServer()).log


def test_the_suites_reach_their_floors() -> None:
    counts = Counter(c.suite for c in ALL)
    assert {s: n for s, n in FLOORS.items() if counts[s] < n} == {}


def test_names_are_unique() -> None:
    assert [n for n, k in Counter(map(name_of, ALL)).items() if k > 1] == []


def test_no_two_have_the_same_rule_and_end() -> None:
    seen = Counter((c.suite, c.rule, str(c.end), c.end.facts) for c in ALL)
    assert [rule for rule, count in seen.items() if count > 1] == []


def test_every_rule_is_a_sentence_with_its_section() -> None:
    for c in ALL:
        assert len(c.rule) > 12 and not c.rule.endswith("."), name_of(c)
        assert any(doc in c.where for doc in ("RFC", "SPEC", "seed")), name_of(c)
        assert c.basis in ("rfc", "policy")
