"""Fixtures of the server tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine import Engine
from servers.settings import Settings
from tests.servers.certificates import write_identity
from tests.servers.inside import Inside
from tests.servers.running import Server


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one identity, which no test changes."""
    directory = tmp_path_factory.mktemp("identity")
    write_identity(directory, "localhost", "*.echo.test")
    return directory


@pytest.fixture(scope="module")
def server(identity: Path) -> Iterator[Server]:
    """A server with default limits that the tests of a module share."""
    with Server(identity, "--alpn", "echo,other") as running:
        yield running


@pytest.fixture
def start(identity: Path) -> Iterator[Callable[..., Inside]]:
    """Makes servers with some settings, and closes them."""
    made = []

    def begin(
        engine: Engine | None = None,
        tickets: tuple[int, int] = (0, 1),
        clients: bytes = b"",
        **settings: int,
    ) -> Inside:
        settings.setdefault("areas", settings.get("connections", 256))
        made.append(Inside(identity, Settings(**settings), engine, tickets, clients))
        return made[-1]

    yield begin
    for inside in made:
        # What was served leaves nothing behind: no area out, no byte in one.
        inside.loop._end_all(inside.clock.now)
        assert inside.engine.residue() == 0
        assert inside.engine.areas_free() == inside.engine.areas()
        inside.loop.front.close()
