"""Whether the processor has AES instructions, read from texts like /proc/cpuinfo."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import hardware


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    hardware.has_aes.cache_clear()
    yield
    hardware.has_aes.cache_clear()


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("processor\t: 0\nflags\t\t: fpu sse2 aes avx\n", True),
        ("processor\t: 0\nFeatures\t: fp asimd aes pmull\n", True),
        ("flags\t\t: fpu sse2 vaes\n", False),
        ("flags: aes\n\nflags: aes\n", True),
        ("flags: aes\n\nflags: fpu\n", False),
        ("flags\t\t: aes a:b\n", True),
        ("model name: aes\n", False),
        ("", False),
    ],
)
def test_every_processor_must_list_aes_among_its_features(text: str, has: bool) -> None:
    assert hardware.names_aes(text) is has


def test_the_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("flags : aes\n")
    monkeypatch.setattr(hardware, "CPU_FILE", str(file))
    assert hardware.has_aes() is True
    file.write_text("flags : none\n")
    assert hardware.has_aes() is True


@pytest.mark.parametrize(("machine", "has"), [("arm64", True), ("AMD64", True), ("riscv64", False)])
def test_without_the_file_the_machines_name_decides(
    machine: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "CPU_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert hardware.has_aes() is has
