"""Fixtures of the server tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.certificates import write_identity
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
