"""What a server does with the files that it reads: each is replaced or refused on its own."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from engine import Engine
from servers.files import ServerFiles, Unusable, leaf_names
from servers.log import Log
from tests.engine.test_hostile_certificates import HOSTILE, KEY, MADE
from tests.engine.test_identities import pem
from tests.engine.x509.chain_maker import NOW, authority
from tests.servers.inside import Kept


def write(folder: Path, certificate: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "chain.pem").write_bytes(pem("CERTIFICATE", certificate))
    (folder / "key.pem").write_bytes(KEY)


@pytest.fixture
def files(tmp_path: Path) -> ServerFiles:
    for name in ("one", "two"):
        write(tmp_path / name, MADE.der)
    (tmp_path / "keys").write_text("00" * 31 + "01\n")
    (tmp_path / "ca.pem").write_bytes(authority("root").pem)
    return ServerFiles(str(tmp_path), ["one", "two"], "keys", "ca.pem")


def test_a_reload_goes_on_behind_any_certificate(files: ServerFiles, tmp_path: Path) -> None:
    engine = Engine.server(1)
    engine.seed(bytes(32))
    files.load(engine, Log(Kept(), Kept()), NOW * 1000)
    refused = 0
    for what, hostile in HOSTILE.items():
        write(tmp_path / "one", hostile)
        lines = Kept()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            files.reload(engine, Log(lines, Kept()), NOW * 1000)
        first, *others = lines.getvalue().splitlines()
        assert first in ("reload one ok", "reload one refused tls-server-chain",
                         "reload one refused tls-server-key-type",
                         "reload one refused tls-server-key-mismatch",
                         "reload one refused tls-server-cert-expired"), what  # fmt: skip
        assert others == ["reload two ok", "reload tickets ok", "reload client-ca ok"], what
        refused += first != "reload one ok"
    assert refused > len(HOSTILE) // 4


def test_a_start_with_any_certificate_serves_or_says_in_a_line_why_not(
    files: ServerFiles, tmp_path: Path
) -> None:
    for hostile in HOSTILE.values():
        write(tmp_path / "one", hostile)
        engine = Engine.server(1)
        engine.seed(bytes(32))
        try:
            files.load(engine, Log(Kept(), Kept()), NOW * 1000)
        except Unusable as unusable:
            assert len(str(unusable).splitlines()) == 1
            assert KEY.decode().splitlines()[1] not in str(unusable)


def test_a_certificate_that_no_parser_takes_has_no_names() -> None:
    assert leaf_names(pem("CERTIFICATE", MADE.der)) == ["device.example"]
    for what in ("version 4 with extensions", "extension 2.5.29.17 of 3003a30100", "nothing"):
        assert leaf_names(pem("CERTIFICATE", HOSTILE[what])) == []
