"""Refusal coverage: the table of what is possible, and what sees what is reached."""

import json
import subprocess
import sys

from ci import possible
from ci.process import ROOT
from engine.layout import WAIT_FINISHED
from engine.receive import _OUTER
from engine.refusals import Refusal
from engine.server import Server
from harnesses.connection import NEVER_ON_A_CONNECTION

CELLS = list(possible.cells())


def test_every_refusal_of_a_connection_is_possible_or_has_a_reason_why_not():
    told = {tag for _, _, tag in CELLS} | {refusal.tag for refusal in possible.UNREACHABLE}
    assert told == {r.tag for r in Refusal if r not in NEVER_ON_A_CONNECTION} | {
        Refusal.INTERNAL_ERROR.tag
    }
    assert len(CELLS) == len(set(CELLS))


def test_the_messages_of_each_state_are_those_of_the_engine():
    server = Server(hardware_aes=True, deterministic=True, check_signature=False)
    rules = {(s, possible.HANDSHAKE[kind]): rule for (s, kind), rule in server._rules.items()}
    rules[WAIT_FINISHED, possible.FINISHED] = next(iter(server._finished.values()))
    handled = {(possible.STATES[state], message) for state, message in rules}
    assert handled == {(s, m) for m, states in possible.HANDLED.items() for s in states}
    for (state, message), rule in rules.items():
        name = possible.STATES[state]
        # The two refusals that the table of rules itself names.
        assert (name, message, rule.refusal.tag) in CELLS
        behind = (name, message, Refusal.UNEXPECTED_MESSAGE.tag)
        assert (behind in CELLS) == rule.ends_record
    for message in possible.HANDLED:
        for name in possible.ALL:
            behind = (name, message, Refusal.UNEXPECTED_MESSAGE.tag)
            assert behind in CELLS or (name, message) in handled


def test_the_records_of_each_state_are_those_of_the_engine():
    for state, name in possible.STATES.items():
        messages = {message for s, message, _ in CELLS if s == name}
        assert (possible.CCS in messages) == (20 in _OUTER[state])
        assert (possible.PROTECTED in messages) == (23 in _OUTER[state])


RUN = """
import importlib, json
from ci.refused import Watch
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
        outcome, cells = watch.of(run, file.read_bytes())
        if outcome is None:
            stopped.append(file.name)
        if name == "hello":
            cells = cells | watch.parsed(outcome)
        found.setdefault(name, set()).update(cells)
found = {name: sorted(cells) for name, cells in found.items()}
print(json.dumps([found, stopped]))
"""


def test_committed_inputs_reach_all_that_is_possible_and_the_watch_disturbs_no_oracle():
    """No cell is empty: one that becomes possible needs an input
    (`harnesses/seeds/server_states.py`, `harnesses/seeds/keyed.py`)."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], check=True, timeout=100, cwd=ROOT, capture_output=True
    )
    found, stopped = json.loads(done.stdout)
    assert stopped == []
    reached = {name: {tuple(cell) for cell in cells} for name, cells in found.items()}
    everything = set().union(*reached.values())
    assert sorted(everything - set(CELLS)) == []
    assert sorted(set(CELLS) - everything) == []
    # One of each way in which a refusal is seen: the parser's answer, a handler called alone, a
    # record's header, a message of the handshake, an alert, a record that does not open.
    assert (possible.START, possible.HELLO, "tls-server-client-hello-format") in reached["hello"]
    assert any(cell[:2] == (possible.CERT, possible.CERTIFICATE) for cell in reached["clientauth"])
    seen = {(message, tag) for cells in reached.values() for _, message, tag in cells}
    for message, tag in (
        (possible.HEADER, "tls-unexpected-message"),
        (possible.FINISHED, "tls-unexpected-message"),
        (possible.UPDATE, "tls-unexpected-message"),
        (possible.ALERT, "tls-alert"),
        (possible.PROTECTED, "tls-bad-record-mac"),
        (possible.END, "tls-peer-closed"),
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
    alert = (possible.START, possible.ALERT, "tls-alert")
    total = possible.coverage(
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
