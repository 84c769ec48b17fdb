"""The table of refusals: what is in it, and what each entry must have."""

from __future__ import annotations

import pytest

from engine.codepoints import ALERT_INTERNAL_ERROR
from engine.refusals import BY_CODE, MESSAGES, STATES, Refusal, Refused
from peers.liar.ends import ALERTS


def test_every_tag_has_the_alert_that_the_rfc_names() -> None:
    """The lying client's table is a second reading of it."""
    found = {r.tag: r.alert for r in Refusal if not r.of_a_call}
    assert found == {**ALERTS, "tls-internal-error": ALERT_INTERNAL_ERROR}


def test_what_a_call_raises_is_never_on_the_wire() -> None:
    for refusal in Refusal:
        if refusal.of_a_call:
            assert refusal.alert is None and not refusal.where
            assert refusal.tag.startswith("tls-")


def test_a_peer_earns_a_refusal_at_messages_and_in_states_that_there_are() -> None:
    for refusal in Refusal:
        assert set(refusal.where) <= set(MESSAGES)
        for states in refusal.where.values():
            assert states and set(states) <= set(STATES)


def test_when_a_refusal_is_given_is_told_in_words() -> None:
    for refusal in Refusal:
        assert refusal.when and not refusal.when.startswith(("A ", "The ", "No "))
        assert not refusal.when.endswith(".") and "|" not in refusal.when
    assert Refusal.X509_EXPIRED.when == "a certificate of the path has expired"
    assert Refusal.POOL.when == "no area is free when a connection is to start"


def test_a_refusal_is_its_tag() -> None:
    for refusal in Refusal:
        assert refusal == refusal.tag == str(refusal) == f"{refusal}"
        assert Refusal(refusal.tag) is refusal


def test_a_code_is_small_positive_and_finds_its_refusal() -> None:
    assert BY_CODE[0] is None
    assert [r.code for r in Refusal] == list(range(1, len(Refusal) + 1))
    for refusal in Refusal:
        assert BY_CODE[refusal.code] is refusal
    assert len(BY_CODE) < 256


def test_every_sentence_is_one() -> None:
    sentences = [refusal.sentence for refusal in Refusal]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert sentence[0].isupper() and sentence.endswith(".")


def test_an_unknown_tag_is_no_refusal() -> None:
    with pytest.raises(ValueError):
        Refusal("tls-nothing")


def test_what_is_raised_says_the_tag_and_the_sentence() -> None:
    raised = Refused(Refusal.POOL)
    assert raised.refusal is Refusal.POOL
    assert str(raised) == "tls-pool: Every area is in use, so no connection can start."
