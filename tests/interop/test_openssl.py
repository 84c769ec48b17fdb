"""The lying client against `openssl s_server`: what it does otherwise is in a table, and argued.

The engine's own ends are the ones of the conversations (tests/peers), so that this compares the
two servers. The table is of one version; with another there is nothing to compare with.
"""

import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import chain
from pathlib import Path

import pytest

from ci.commands import play_identities
from ci.commands.play import Target
from peers.liar.conversation import Conversation, Setup
from peers.liar.ends import End
from peers.liar.live import Played, play_one
from peers.liar.suites import CLIENTS, HANDSHAKE, SUITES, TICKETS
from peers.servers import expected, foreign, start
from peers.servers.expected import Row, Table
from tests.tools import PATIENCE

TABLE = expected.load()
SETUPS: dict[str, tuple[str, Setup]] = {
    "plain": ("handshake", HANDSHAKE.setup),
    "tickets": ("tickets", TICKETS.setup),
    "optional": ("clients", replace(CLIENTS.setup, client_auth=1)),
    "required": ("clients", replace(CLIENTS.setup, client_auth=2)),
}
#: Seconds of silence that are taken for waiting: at first, and where a difference is new.
QUIET, LONG_QUIET = 0.05, 0.5
SERVERS = 4
LEAST = {"plain": 400, "tickets": 70, "optional": 8, "required": 140}


def why_not() -> str:
    """The reason not to compare here, or nothing."""
    if shutil.which("openssl") is None:
        return "openssl is not installed"
    said = foreign.version("openssl")
    if re.match(rf"{TABLE.server} {re.escape(TABLE.version)}\.", said):
        return ""
    return f"the table is of {TABLE.server} {TABLE.version}, and here is {said}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identities")
    play_identities.write(folder)
    return folder


@cache
def compared(mode: str, folder: Path) -> tuple[Played, ...]:
    """Every conversation of a mode, played once; new differences again, and more slowly."""
    suite, setup = SETUPS[mode]
    if setup.client_auth:
        setup = replace(setup, roots=play_identities.client_roots())
    chosen = SUITES[suite].conversations
    # s_server serves one at a time, and most of the time is silence: there are several.
    shares = [chosen[first::SERVERS] for first in range(SERVERS)]
    with ThreadPoolExecutor(SERVERS) as pool:
        return tuple(chain.from_iterable(pool.map(partial(_play, mode, folder, setup), shares)))


def _play(mode: str, folder: Path, setup: Setup, chosen: list[Conversation]) -> list[Played]:
    until = time.monotonic() + PATIENCE
    with start("openssl", folder, mode) as server:
        slow = Target("127.0.0.1", server.port, setup, LONG_QUIET)
        played = [play_one(one, slow.host, slow.port, setup, QUIET) for one in chosen]
        return [
            slow.play(one.conversation, until) if TABLE.unexplained([one]) else one
            for one in played
        ]


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("mode", SETUPS)
def test_every_difference_from_openssl_is_in_the_table(mode: str, files: Path) -> None:
    played = compared(mode, files)
    assert sum(one.what != "not played" for one in played) >= LEAST[mode]
    news = [
        f"{one.conversation.name}: {one.what}, {one.detail}" for one in TABLE.unexplained(played)
    ]
    assert news == []


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_no_row_of_the_table_is_stale(files: Path) -> None:
    played = [one for mode in SETUPS for one in compared(mode, files)]
    assert TABLE.stale(played) == []


def some(name: str, what: str, end: End | None) -> Played:
    found = next(c for c in HANDSHAKE.conversations if c.name == name)
    return Played(found, what, end)


def test_a_table_tells_news_and_what_is_stale() -> None:
    row = Row("handshake", ("ccs-*", "deflate"), ("alert 47",), "an argument")
    table = Table("OpenSSL", "3.0", (row,))
    as_said = some("ccs-empty", "another alert", End("alert", 47, True))
    otherwise = some("ccs-empty", "another outcome", End("established"))
    right = some("ccs-empty", "right", End("alert", 10))
    lost = some("ccs-empty", "not reached", None)
    assert table.unexplained([as_said, right]) == []
    assert table.unexplained([otherwise, lost]) == [otherwise, lost]
    assert table.stale([as_said]) == ["handshake deflate: alert 47"]
    assert len(table.stale([otherwise, right])) == 2


def test_a_row_without_an_argument_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    row = '[[row]]\nsuite = "handshake"\nnames = ["deflate"]\ndoes = ["closed"]\nwhy = " "\n'
    path.write_text(f'server = "x"\nversion = "1"\n{row}')
    with pytest.raises(ValueError, match="no argument"):
        expected.load(path)


def test_every_glob_names_a_conversation() -> None:
    names = {(c.suite, c.name) for suite in SUITES.values() for c in suite.conversations}
    for row in TABLE.rows:
        for glob in row.names:
            assert any(suite == row.suite and fnmatchcase(name, glob) for suite, name in names), (
                glob
            )
