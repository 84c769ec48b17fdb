"""Each bench runs, with tiny counts: its table, its JSON, its exit code. No test asserts a time."""

import argparse
import functools
import json
from pathlib import Path
from types import ModuleType

import pytest

from bench import handshake, memory, peers, records, secrets, table, targets
from ci.command import main
from ci.exits import Exit
from peers.liar.identities import Identity, make
from tests.tools import PATIENCE

TINY = {
    "handshake": (handshake, ["--rounds", "2", "--count", "2"]),
    "records": (records, ["--rounds", "2", "--count", "20"]),
    "memory": (memory, ["--count", "6"]),
    "secrets": (secrets, ["--count", "1"]),
}
LOOK = secrets.look


def parse(module: ModuleType, options: list[str]) -> argparse.Namespace:
    """The arguments as the command would read them."""
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return parser.parse_args(options)


@pytest.fixture(autouse=True)
def one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a process is searched once for what both tests of the secrets' bench look at:
    it takes seconds, and what is told of it is what they ask about."""
    monkeypatch.setattr(secrets, "look", look_once)


@functools.cache
def _rows(kind: str, count: int) -> list[dict[str, table.Value]]:
    return LOOK(kind, count, make(("server.example",)))


def look_once(kind: str, count: int, identity: Identity) -> list[dict[str, table.Value]]:
    """The rows of a kind of connections, of this or of an earlier search."""
    return _rows(kind, count)


@pytest.mark.parametrize("name", TINY)
def test_a_bench_prints_its_table_and_writes_its_json(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both from the same rows."""
    module, options = TINY[name]
    target = tmp_path / "result.json"
    assert module.run(parse(module, [*options, "--json", str(target)])) == 0
    printed = capfd.readouterr().out
    document = json.loads(target.read_text())
    assert document["bench"] == name
    assert document["command"] in printed
    for column in module.COLUMNS:
        assert column.heading in printed.splitlines()[0]
        assert all(column.key in row for row in document["rows"])


@pytest.mark.parametrize("name", TINY)
def test_a_bench_writes_json_alone_on_standard_output(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """`--json -`."""
    _, options = TINY[name]
    assert main(["bench", name, *options, "--json", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["bench"] == name


@pytest.mark.parametrize("name", TINY)
def test_a_file_that_cannot_be_written_is_a_usage_error(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line, before anything runs."""
    _, options = TINY[name]
    target = tmp_path / "missing" / "result.json"
    assert main(["bench", name, *options, "--json", str(target)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_the_suite_asked_for_is_the_one_in_use(tmp_path: Path) -> None:
    """Both servers get the choice of one; left alone, each takes its own."""
    suite = "TLS_CHACHA20_POLY1305_SHA256"
    target = tmp_path / "result.json"
    options = [*TINY["records"][1], "--suite", suite, "--json", str(target)]
    assert records.run(parse(records, options)) == 0
    assert json.loads(target.read_text())["conditions"]["suites"] == suite


def test_every_ratio_is_to_ssl_in_the_same_run(tmp_path: Path) -> None:
    """The reference is a row of its own kind, and its ratio is one."""
    target = tmp_path / "result.json"
    assert handshake.run(parse(handshake, [*TINY["handshake"][1], "--json", str(target)])) == 0
    rows = json.loads(target.read_text())["rows"]
    kinds = {row["handshake"] for row in rows}
    references = {row["handshake"]: row["ratio"] for row in rows if row["server"] == "ssl"}
    assert references == dict.fromkeys(kinds, 1.0)


def test_memory_goes_through_every_phase_with_two_areas(tmp_path: Path) -> None:
    """With fewer areas than connections only as many hold half a record, and all are echoed."""
    target = tmp_path / "result.json"
    options = ["--count", "6", "--areas", "2", "--json", str(target)]
    assert memory.run(parse(memory, options)) == 0
    rows = json.loads(target.read_text())["rows"]
    assert [row["phase"] for row in rows] == [
        "connected",
        "handshake",
        "established",
        "echoed",
        "half a record",
        "all echoed",
    ]
    assert [row["connections"] for row in rows] == [2, 2, 6, 6, 6, 6]
    assert rows[4]["holding"] == 2


def test_memory_weighs_the_echo_server_too(tmp_path: Path) -> None:
    """Over real sockets, the same phases."""
    target = tmp_path / "result.json"
    options = ["--count", "4", "--areas", "2", "--server", "--json", str(target)]
    assert memory.run(parse(memory, options)) == 0
    document = json.loads(target.read_text())
    assert len(document["rows"]) == 6
    assert document["conditions"]["held"] == "by the echo server"


def test_one_kind_of_handshake_alone(tmp_path: Path) -> None:
    """`--kind` leaves the others out; a resumed one signs nothing, so nothing is checked."""
    target = tmp_path / "result.json"
    options = [*TINY["handshake"][1], "--kind", "resumed", "--json", str(target)]
    assert handshake.run(parse(handshake, options)) == 0
    rows = json.loads(target.read_text())["rows"]
    assert {row["handshake"] for row in rows} == {"resumed"}
    assert [row["server"] for row in rows] == ["ssl", "ssl, no tickets", "engine", "primitives"]


@pytest.mark.parametrize(
    "options",
    [
        ["--count", "2", "--areas", "3"],
        ["--count", "2", "--resting", "3"],
        ["--count", "2", "--server", "--resting", "1"],
        ["--count", "1000000", "--server"],
    ],
)
def test_memory_refuses_what_it_cannot_do(
    options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """One line and exit code 2."""
    assert memory.run(parse(memory, options)) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("module", [handshake, records, memory])
def test_a_count_of_nothing_is_refused(module: ModuleType) -> None:
    """By the parser, which exits 2."""
    with pytest.raises(SystemExit) as stopped:
        parse(module, ["--count", "0"])
    assert stopped.value.code == 2


def test_the_measured_process_says_that_a_failed_connection_is_a_run_not_to_be_trusted(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """By its own exit code too, which its parent need not be there to read."""
    with targets.EngineProcess(1, None, None) as measured:
        measured.connect(0)
        with pytest.raises(peers.Untrusted):
            measured.send(0, b"GET / HTTP/1.1\r\n\r\n")
        assert measured._process.wait(timeout=PATIENCE) == Exit.UNTRUSTED
    assert capfd.readouterr().err.startswith("residue bench: a connection failed: ")


def test_a_measured_process_that_ends_is_a_run_not_to_be_trusted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A connection that is served twice is refused by the engine: the process ends."""
    monkeypatch.setattr(memory.Crowd, "connect", _serve_the_same_slot_twice)
    assert memory.run(parse(memory, ["--count", "2"])) == 3
    assert "the process that holds the engine ended" in capfd.readouterr().err


def _serve_the_same_slot_twice(crowd: memory.Crowd, count: int) -> range:
    for _ in range(2):
        crowd.target.connect(0)
    return range(count)


def test_an_echo_of_other_bytes_is_a_run_not_to_be_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bench compares what came back; it does not only count it."""
    monkeypatch.setattr(peers.Client, "opened", lambda client, sealed: bytes(memory.RECORD))
    assert memory.run(parse(memory, ["--count", "2"])) == 3


def test_memory_of_verified_clients_is_measured(capfd: pytest.CaptureFixture[str]) -> None:
    """Every client shows a certificate, and the result says so."""
    assert main(["bench", "memory", "--count", "4", "--client-cert", "--json", "-"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["conditions"]["clients"] == "verified"
    assert [row["phase"] for row in document["rows"]][2] == "established"
