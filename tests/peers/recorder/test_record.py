"""The recorded conversations: replayed byte for byte, and in pieces, and none of them stale."""

from __future__ import annotations

import ast
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from peers.recorder import format as recorded
from peers.recorder import program, record
from peers.recorder.format import (
    Block,
    Exchange,
    FormatError,
    Recording,
    load,
    parse,
    path_of,
    render,
)
from peers.recorder.program import Pieces, replay, single

NAMES = recorded.all_names()
HONEST = [name for name in NAMES if "\nhonest: yes\n" in path_of(name).read_text("utf-8")]
FLOORS = {"handshake": 110, "tickets": 80, "clients": 81}
SAMPLE = "tickets/resumed-aes_128_gcm_sha256"


def random_pieces(seed: str) -> Pieces:
    chance = random.Random(seed)

    def pieces(data: bytes) -> Iterator[memoryview]:
        view, at = memoryview(data), 0
        while at < len(view):
            size = chance.choice((1, 2, 3, 4, 5, 6, 16, 100, 1000, 5000))
            yield view[at : at + size]
            at += size

    return pieces


@pytest.mark.parametrize("name", NAMES)
def test_it_is_replayed_byte_for_byte(name: str) -> None:
    assert replay(load(name)) == []


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_one_is_the_same_one_byte_at_a_time(name: str) -> None:
    assert replay(load(name), single) == []


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_in_random_pieces(name: str) -> None:
    assert replay(load(name), random_pieces(name)) == []


@pytest.mark.parametrize("conversation", record.chosen(()), ids=lambda c: f"{c.suite}-{c.name}")
def test_the_liar_would_be_recorded_the_same_today(conversation) -> None:
    made = record.record(conversation)
    assert made.wrong == []
    assert record.differs(made) == []


def test_every_conversation_is_recorded_and_nothing_else_is() -> None:
    made = {f"{c.suite}/{c.name}" for c in record.chosen(())}
    assert set(NAMES) == made
    objects = {o for name in NAMES for o in recorded.objects_of(load(name))}
    assert record.strays(objects) == []
    counts = Counter(name.split("/")[0] for name in NAMES)
    assert {suite: n for suite, n in FLOORS.items() if counts[suite] < n} == {}
    assert len(HONEST) > 200


def test_a_replay_needs_no_liar() -> None:
    for module in (recorded, program):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                first = (node.module or "").split(".")
                assert "liar" not in first
                assert first[0] in {"engine", "peers", *sys.stdlib_module_names}


# A replay can fail.


def changed(name: str, side: str, step: int = -1, at: int = -1) -> Recording:
    """The recording with a bit of one side's last bytes turned."""
    found = load(name)
    exchanges = [i for i, s in enumerate(found.steps) if isinstance(s, Exchange) and s.server]
    which = exchanges[step]
    exchange = found.steps[which]
    assert isinstance(exchange, Exchange)
    data = bytearray(exchange.sent if side == "client" else exchange.said)
    data[at] ^= 1
    other = (Block(bytes(data)),)
    found.steps[which] = (
        replace(exchange, client=other) if side == "client" else replace(exchange, server=other)
    )
    return found


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("name", HONEST[::20])
def test_a_bit_turned_is_seen(name: str, side: str) -> None:
    # Of the client's bytes the type of its first record: not every bit of a hello is read.
    wrong = replay(changed(name, side, step=0, at=0 if side == "client" else -1))
    assert wrong and "server's answer" in wrong[0]


def test_another_state_and_another_answer_are_seen() -> None:
    text = render(load(SAMPLE))
    assert replay(parse(text)) == []
    assert replay(parse(text.replace(" resumed ", " retried ")))
    assert replay(parse(text.replace("-> ok", "-> tls-role", 1)))


# The format.


@pytest.mark.parametrize("name", NAMES[::25])
def test_what_is_read_is_what_was_written(name: str) -> None:
    text = path_of(name).read_text(encoding="utf-8")
    bare = "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("  | "))
    assert parse(render(parse(text))) == parse(text)
    assert parse(bare) == parse(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rule: ", "role: "),
        ("engine areas", "engine rooms"),
        ("serve 0", "swerve 0"),
        ("client 0", "client x"),
        ("server 0", "server 1"),
        ("state 0", "state 5"),
        ("  1603", "  160g"),
    ],
)
def test_a_file_that_is_none_is_refused(old: str, new: str) -> None:
    text = render(load(SAMPLE))
    assert old in text
    with pytest.raises(FormatError):
        parse(text.replace(old, new, 1))


def test_bytes_without_a_side_are_refused() -> None:
    text = render(load(SAMPLE))
    with pytest.raises(FormatError):
        parse(text.replace("serve 0", "  00\nserve 0", 1))


def test_a_pem_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    made = record.record(record.chosen([SAMPLE])[0])
    record.write(made, tmp_path)
    assert replay(load(SAMPLE, tmp_path)) == []
    one = next((tmp_path / "pem").iterdir())
    one.write_bytes(one.read_bytes() + b"\n")
    with pytest.raises(FormatError):
        load(SAMPLE, tmp_path)


def test_a_flood_is_written_once() -> None:
    text = path_of("handshake/rubbish-after-close").read_text(encoding="utf-8")
    assert len(text) < 12_000 and " x 17" in text


# The command.


def test_update_writes_what_differs_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["handshake/two-host-names", "tickets/400-identities", SAMPLE]
    assert record.main([*names, "--update"], tmp_path) == 0
    files = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    for file in files:
        os.utime(file, (1, 1))
    assert record.main(names, tmp_path) == 0
    broken = path_of(names[0], tmp_path)
    broken.write_text(broken.read_text(encoding="utf-8").replace("fatal", "fetal"))
    capsys.readouterr()
    assert record.main(names, tmp_path) == 1
    said = capsys.readouterr().out
    assert "two-host-names: differs" in said and "-  |   fetal illegal_parameter" in said
    assert record.main([*names, "--update"], tmp_path) == 0
    assert [f for f in files if f.stat().st_mtime != 1] == [broken]
    assert record.main(names, tmp_path) == 0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit):
        record.main(["handshake/no-such"])
