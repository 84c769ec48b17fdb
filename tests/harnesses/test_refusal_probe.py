"""Refusal coverage: the table of what is possible, and what sees what is reached."""

import json
import subprocess
import sys

from ci.process import ROOT
from engine.receive import _OUTER
from engine.refusals import (
    AT_ALERT,
    AT_CCS,
    AT_CERTIFICATE,
    AT_END,
    AT_FINISHED,
    AT_HEADER,
    AT_HELLO,
    AT_OTHER,
    AT_PROTECTED,
    AT_UPDATE,
    CERT,
    FIN,
    MESSAGES,
    START,
    STATES,
    Refusal,
)
from engine.server import Server
from harnesses import refusal_matrix
from harnesses.refusal_matrix import HANDSHAKE, STATE_NAMES
from tests.tools import PATIENCE

CELLS = list(refusal_matrix.cells())


def test_every_refusal_of_a_connection_is_possible_or_has_a_reason_why_not():
    told = {tag for _, _, tag in CELLS}
    assert told | set(refusal_matrix.unreachable()) == {r.tag for r in Refusal if not r.of_a_call}
    assert not told & set(refusal_matrix.unreachable())
    assert len(CELLS) == len(set(CELLS))
    assert {state for state, _, _ in CELLS} == set(STATES)
    assert {message for _, message, _ in CELLS} == set(MESSAGES)


def test_the_messages_of_each_state_are_those_of_the_engine():
    server = Server(hardware_aes=True, deterministic=True, check_signature=False)
    rules = {(STATE_NAMES[s], HANDSHAKE[kind]): rule for (s, kind), rule in server._rules.items()}
    rules[FIN, AT_FINISHED] = next(iter(server._finished.values()))
    for message in (*HANDSHAKE.values(), AT_OTHER):
        for state in STATES:
            tags = {tag for s, m, tag in CELLS if (s, m) == (state, message)}
            rule = rules.get((state, message))
            if rule is None:
                assert tags == {Refusal.UNEXPECTED_MESSAGE}
            else:
                # The two refusals that the engine's own table of rules names.
                assert rule.refusal in tags
                assert (Refusal.UNEXPECTED_MESSAGE in tags) == rule.ends_record


def test_the_records_of_each_state_are_those_of_the_engine():
    for state, name in STATE_NAMES.items():
        messages = {message for s, message, _ in CELLS if s == name}
        assert (AT_CCS in messages) == (20 in _OUTER[state])
        assert (AT_PROTECTED in messages) == (23 in _OUTER[state])


RUN = """
import importlib, json
from harnesses.refusal_probe import Watch
from harnesses import HARNESSES, outcomes
watch = Watch()
watch.install()
found, stopped = {}, []
# Of the two that are slow and hold few cells, the inputs that do, and some.
SOME = {"pool": "handmade-store-*", "differential": "handmade-retry-*"}
for name in HARNESSES:
    run = importlib.import_module(f"harnesses.{name}").run
    for file in outcomes.inputs(name):
        if not file.match(SOME.get(name, "*")):
            continue
        outcome, cells = watch.of(name, run, file.read_bytes())
        if outcome is None:
            stopped.append(file.name)
        found.setdefault(name, set()).update(cells)
found = {name: sorted(cells) for name, cells in found.items()}
print(json.dumps([found, stopped]))
"""


def test_committed_inputs_reach_all_that_is_possible_and_the_watch_disturbs_no_oracle():
    """No cell is empty: one that becomes possible needs an input
    (`harnesses/seeds/server_states.py`, `harnesses/seeds/keyed.py`)."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], check=True, timeout=PATIENCE, cwd=ROOT, capture_output=True
    )
    found, stopped = json.loads(done.stdout)
    assert stopped == []
    reached = {name: {tuple(cell) for cell in cells} for name, cells in found.items()}
    everything = set().union(*reached.values())
    assert sorted(everything - set(CELLS)) == []
    assert sorted(set(CELLS) - everything) == []
    # One of each way in which a refusal is seen: the parser's answer, a handler called alone, a
    # record's header, a message of the handshake, an alert, a record that does not open.
    assert (START, AT_HELLO, "tls-server-client-hello-format") in reached["hello"]
    assert any(cell[:2] == (CERT, AT_CERTIFICATE) for cell in reached["clientauth"])
    seen = {(message, tag) for cells in reached.values() for _, message, tag in cells}
    for message, tag in (
        (AT_HEADER, "tls-unexpected-message"),
        (AT_FINISHED, "tls-unexpected-message"),
        (AT_UPDATE, "tls-unexpected-message"),
        (AT_ALERT, "tls-alert"),
        (AT_PROTECTED, "tls-bad-record-mac"),
        (AT_END, "tls-peer-closed"),
    ):
        assert (message, tag) in seen, (message, tag)


def row(state, message, refusal, inputs, committed, witness):
    return {
        "state": state,
        "message": message,
        "refusal": refusal,
        "inputs": inputs,
        "committed": committed,
        "witness": witness,
    }


def test_coverage_adds_harnesses_up_and_keeps_the_empty_cells():
    alert = (START, AT_ALERT, "tls-alert")
    total = refusal_matrix.coverage(
        [
            [row(*alert, 2, 1, "server/a")],
            [row(*alert, 3, 0, "keyed/b"), row("X", "Y", "Z", 1, 1, "k")],
        ]
    )
    assert (total["possible"], total["reached"], total["committed"]) == (len(CELLS), 1, 1)
    (got,) = [r for r in total["cells"] if r["inputs"]]
    assert got == row(*alert, 5, 1, "server/a")
    assert [r["state"] for r in total["unexpected"]] == ["X"]
    assert len(total["cells"]) == len(CELLS)
