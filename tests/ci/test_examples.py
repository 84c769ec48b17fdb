"""The example that each command's --help ends with is a command line that runs.

What needs minutes is run with its smallest numbers; what needs a night, a server or somebody's
findings is read here, and its whole runs are in the file that is named beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.command import COMMANDS, main, parser_of
from ci.process import ROOT
from tests.ci import nights
from tests.ci.examples import words

#: What runs here, and the numbers that are smaller than the example's.
RUN: dict[str, dict[str, str]] = {
    "inject": {"sample": "4"},
    "replay": {},
    "triage": {},
    "report": {},
    "doctor": {},
    "bench handshake": {"rounds": "2", "count": "2"},
    "bench records": {"rounds": "2", "count": "20"},
    "bench memory": {"count": "6"},
}
#: Where the others run.
ELSEWHERE = {
    "fuzz": "tests/ci/fuzzing/test_real.py",
    "campaign": "tests/ci/fuzzing/test_campaign.py",
    "nightly": "tests/ci/night/test_night.py",
    "minimise": "tests/ci/commands/test_triage.py",
    "promote": "tests/ci/commands/test_triage.py",
    "play": "tests/ci/commands/test_play.py",
    "mutate": "tests/ci/commands/test_mutate.py",
    "gate": "tests/ci/gate/test_attempts.py",
    "serve": "tests/servers/test_operator.py",
    "bench secrets": "tests/bench/test_benches.py",
}


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout as somebody has it who has run a campaign."""
    folder = tmp_path / "build" / "campaign" / "latest"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(nights.summary()), encoding="utf-8")
    for name in ("corpus", "recordings"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("campaign")
@pytest.mark.parametrize("name", RUN)
def test_an_example_runs_and_finds_nothing(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = {"inject": ["--out", str(tmp_path / "out")], "triage": [str(tmp_path / "store")]}
    code = main([*words(name, **RUN[name]), *kept.get(name, ())])
    assert code == 0, capfd.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_read_and_stands_in_the_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser, _ = parser_of(name)
    parser.parse_args(words(name)[len(name.split()) :])
    with pytest.raises(SystemExit, match="0"):
        main([*name.split(), "--help"])
    assert COMMANDS[name].example in " ".join(capsys.readouterr().out.split())


def test_every_example_runs_here_or_in_a_file_that_is_there() -> None:
    assert sorted([*RUN, *ELSEWHERE]) == sorted(COMMANDS)
    assert all((ROOT / file).is_file() for file in ELSEWHERE.values())
