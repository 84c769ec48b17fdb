"""Every conversation of the lying client, against the engine in memory."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.refusals import Refusal
from peers.liar import ends
from peers.liar.conversation import Conversation, play
from peers.liar.suites import SUITES
from peers.memory import EngineServer
from peers.recorder.refusals import ARGUED

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


VERDICTS = (
    "off", "no-psk-dhe-ke", "unknown", "tampered", "format", "auth", "expired", "age", "name",
    "identity", "suite", "alpn", "none", "resumed",
)  # fmt: skip


def test_every_tag_and_verdict_is_reached() -> None:
    tags = {c.end.tag for c in ALL}
    for c in ALL:
        tags.update(dict(c.end.facts).get("answers", ()))  # type: ignore[arg-type]
    assert {refusal.tag for refusal in Refusal} - tags == {argued.tag for argued in ARGUED}
    assert set(VERDICTS) - {c.end.verdict for c in ALL} == set()


@pytest.mark.parametrize("conversation", ALL[::25], ids=name_of)
def test_another_end_is_seen(conversation: Conversation) -> None:
    """A conversation that cannot fail would be worth nothing."""
    other = ends.refused("tls-server-suite", sealed=True)
    assert play(replace(conversation, end=other), EngineServer()).wrong


def test_another_tag_is_seen() -> None:
    found = next(c for c in ALL if c.end.tag == "tls-server-extension-repeat")
    other = replace(found, end=replace(found.end, tag="tls-server-retry-share"))
    assert "the engine says" in play(other, EngineServer()).wrong[0]


def test_the_liar_imports_nothing_of_the_engine() -> None:
    for path in Path("peers/liar").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            roots = {n.split(".")[0] for n in names}
            assert not roots & {"engine", "harnesses", "servers", "ci", "tests"}, path


def test_every_rule_is_a_sentence_with_its_section() -> None:
    for c in ALL:
        assert len(c.rule) > 10 and not c.rule.endswith("."), name_of(c)
        assert any(doc in c.where for doc in ("RFC", "SPEC", "seed")), name_of(c)
        assert c.basis in ("rfc", "policy")
