"""The fixed identity can be made again, and the dictionary is what it says."""

from __future__ import annotations

from pathlib import Path

from engine import codepoints as c
from harnesses import build_identity, dictionary, fixtures


def test_the_committed_identity_is_what_its_builder_makes() -> None:
    assert build_identity.build() == {
        "chain.pem": fixtures.CHAIN,
        "key.pem": fixtures.KEY,
        "clients.pem": fixtures.CLIENTS,
    }


def test_the_dictionary_has_every_suite_group_extension_and_alert(tmp_path: Path) -> None:
    tokens = set(dictionary.entries().values())
    for code in (*c.SUITE_NAMES, *c.GROUP_NAMES, *c.EXTENSION_NAMES, *c.SCHEME_NAMES):
        assert code.to_bytes(2) in tokens
    assert {bytes([c.ALERT_LEVEL_FATAL, alert]) for alert in c.ALERT_NAMES} <= tokens
    dictionary.write(tmp_path / "words.dict")
    lines = (tmp_path / "words.dict").read_text().splitlines()
    assert len(lines) == len(set(lines)) == len(tokens)
    assert 'TLS_AES_128_GCM_SHA256="\\x13\\x01"' in lines
