"""The committed corpora: every input has its outcome and its source, and ends as it must.

Replaying runs every oracle and leaves none to a sample, so this is the slow way to run a harness
and the one that a finding is judged by.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from harnesses import HARNESSES, outcomes, provenance
from harnesses.oracles import Broken
from harnesses.outcomes import Outcome
from harnesses.seeds.__main__ import PREFIX, cases


def run_of(name: str) -> Callable[[bytes], str]:
    module = importlib.import_module(f"harnesses.{name}")

    def run(data: bytes) -> str:
        # A finding is told as an outcome, so that one of them does not hide the others.
        try:
            return str(module.run(data, thorough=True))
        except Broken as broken:
            return f"broken: {broken}"

    return run


@pytest.mark.parametrize("name", HARNESSES)
def test_every_committed_input_ends_as_its_outcome_says(name: str) -> None:
    assert [str(line) for line in outcomes.compare(name, run_of(name))] == []


@pytest.mark.parametrize("name", HARNESSES)
def test_a_harness_has_a_run_a_bound_a_folder_and_outcomes(name: str) -> None:
    module = importlib.import_module(f"harnesses.{name}")
    assert callable(module.run)
    assert module.MAX_LEN > 0
    assert outcomes.folder(name).is_dir()
    assert outcomes.path(name).is_file()


def test_every_folder_and_outcomes_file_belongs_to_a_harness() -> None:
    found = {entry.stem for entry in outcomes.CORPUS.iterdir() if entry != provenance.PATH}
    assert found == set(HARNESSES)


@pytest.mark.parametrize("name", HARNESSES)
def test_no_committed_input_is_longer_than_a_fuzzer_would_keep(name: str) -> None:
    bound = importlib.import_module(f"harnesses.{name}").MAX_LEN
    assert [entry.name for entry in outcomes.inputs(name) if entry.stat().st_size > bound] == []


def test_every_input_has_its_provenance_and_every_line_its_input() -> None:
    files = {f"{name}/{entry.name}" for name in HARNESSES for entry in outcomes.inputs(name)}
    assert set(provenance.read()) == files


@pytest.mark.parametrize("name", HARNESSES)
def test_the_handmade_inputs_are_what_their_builder_makes(name: str) -> None:
    made = cases().get(name, {})
    committed = {
        entry.name: entry.read_bytes()
        for entry in outcomes.inputs(name)
        if entry.name.startswith(PREFIX)
    }
    assert committed == {file: case.data for file, case in made.items()}
    table = outcomes.read(name)
    assert {file: table[file] for file in made} == {
        file: Outcome(case.outcome, case.reason) for file, case in made.items()
    }


def test_each_of_the_clients_that_were_recorded_is_answered() -> None:
    for name in ("hello", "server"):
        real = {
            file: line.outcome
            for file, line in outcomes.read(name).items()
            if provenance.read()[f"{name}/{file}"].startswith("recorded ")
        }
        assert len(real) == 19
        answered = "waiting suite=TLS_AES_128_GCM_SHA256 group=X25519 retried=no"
        # A second connection's ticket is another server's, which the engine says, not its parser.
        assert set(real.values()) <= {answered, f"{answered} verdict=unknown"}


# The outcomes files themselves.


def test_an_input_without_an_outcome_and_an_outcome_without_an_input_are_told(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "CORPUS", tmp_path)
    outcomes.folder("toy").mkdir()
    for name in ("alike", "new", "other"):
        (outcomes.folder("toy") / name).write_bytes(name.encode())
    gone = {"alike": Outcome("alike"), "gone": Outcome("x"), "other": Outcome("y", "surprising")}
    outcomes.write("toy", gone)
    assert [str(line) for line in outcomes.compare("toy", bytes.decode)] == [
        "new: has no outcome (found: new)",
        "other: expected y, found other",
        "gone: has an outcome and is no input",
    ]


def test_outcomes_are_read_as_they_were_written() -> None:
    table = {"b": Outcome("waiting"), "a": Outcome("tls-alert", "the client refuses")}
    text = outcomes.render(table)
    assert text == "a\ttls-alert\tthe client refuses\nb\twaiting\n"
    assert outcomes.parse(text) == table


@pytest.mark.parametrize("text", ["a", "a\t\n", "a\tb\tc\td", "b\tx\na\tx\n", "a\tx\na\tx\n"])
def test_a_line_that_is_no_outcome_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        outcomes.parse(text)


@pytest.mark.parametrize("text", ["a\tx", "h/a", "h/a\t ", "h/b\tx\nh/a\tx\n"])
def test_a_line_that_is_no_provenance_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        provenance.parse(text)
