"""Every format has a version, in its first byte."""

from __future__ import annotations

import importlib

import pytest

from harnesses import HARNESSES, WITHOUT_FORMAT

FORMATS = [name for name in HARNESSES if name not in WITHOUT_FORMAT]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", [b"", b"\1", b"\0" * 20, b"\2" + bytes(20)], ids=bytes.hex)
def test_an_input_of_no_known_version_says_nothing(name: str, data: bytes) -> None:
    assert importlib.import_module(f"harnesses.formats.{name}").decode(data) is None
