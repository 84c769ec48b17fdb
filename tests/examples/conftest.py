"""Fixtures of the examples' tests."""

from pathlib import Path

import pytest

from tests.servers.certificates import write_identity


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with chain.pem and key.pem, which no test changes."""
    directory = tmp_path_factory.mktemp("identity")
    write_identity(directory, "localhost")
    return directory
