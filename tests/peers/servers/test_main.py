"""The command that runs a server which is not ours: how it is asked, and how it ends."""

import pytest

from peers.servers import __main__ as servers
from peers.servers.foreign import KINDS, MODES, Absent


def test_its_help_has_an_example_its_exit_codes_and_no_wide_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        servers.main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 79
    assert "example:\n  python -m peers.servers openssl identities -- residue play {} " in said
    assert all(f"\n  {code}  " in said for code in (0, 2, servers.NOT_HERE))
    assert all(name in said for name in (*KINDS, *MODES))


@pytest.mark.parametrize("words", [[], ["opnssl", "x"], ["openssl", "x", "--mode", "loud"]])
def test_a_wrong_command_line_is_exit_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        servers.main(words)
    assert ended.value.code == 2 and "error: " in capsys.readouterr().err


def test_a_server_that_is_not_here_is_exit_3_and_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(kind: str) -> str:
        raise Absent("not installed")

    monkeypatch.setattr(servers, "version", absent)
    assert servers.main(["openssl", "x"]) == servers.NOT_HERE
    assert capsys.readouterr().err == "openssl: not installed\n"
