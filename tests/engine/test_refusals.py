"""The table of refusals: what is in it, and what each entry must have."""

from __future__ import annotations

import pytest

from engine.codepoints import ALERT_NAMES
from engine.refusals import BY_CODE, Refusal, Refused

ON_THE_WIRE = {
    "unexpected_message": [
        "tls-unexpected-message",
        "tls-too-many-messages",
        "tls-server-early-data-size",
    ],
    "record_overflow": ["tls-record-overflow"],
    "bad_record_mac": ["tls-bad-record-mac"],
    "decode_error": [
        "tls-decode-error",
        "tls-server-client-hello-format",
        "tls-server-client-hello-length",
    ],
    "protocol_version": ["tls-protocol-version", "tls-server-version"],
    "illegal_parameter": [
        "tls-key-share",
        "tls-server-extension-repeat",
        "tls-server-illegal-parameter",
        "tls-server-retry-share",
        "tls-server-client-sigalg",
    ],
    "unsupported_extension": ["tls-unsupported-extension"],
    "decrypt_error": ["tls-bad-certificate-verify", "tls-server-finished", "tls-server-binder"],
    "handshake_failure": ["tls-server-suite", "tls-server-group", "tls-server-sigalg"],
    "no_application_protocol": ["tls-server-alpn"],
    "missing_extension": ["tls-server-missing-extension"],
    "internal_error": ["tls-server-sign-check", "tls-internal-error"],
    "certificate_required": ["tls-server-client-cert-required"],
    "certificate_unknown": ["tls-server-client-store-replaced"],
    "unknown_ca": ["x509-unknown-issuer"],
    "certificate_expired": ["x509-expired", "x509-not-yet-valid"],
    "unsupported_certificate": [
        "x509-unsupported-algorithm",
        "x509-key-usage",
        "x509-key-size",
        "x509-critical-extension",
    ],
    "bad_certificate": [
        "x509-bad-signature",
        "x509-not-ca",
        "x509-name-constraint",
        "x509-path-too-long",
        "x509-chain-too-large",
        "x509-decode",
    ],
}

SILENT = [
    "tls-alert",
    "tls-peer-closed",
    "tls-role",
    "tls-pool",
    "tls-no-entropy",
    "tls-server-chain",
    "tls-server-names",
    "tls-server-alpn-list",
    "tls-server-key-type",
    "tls-server-key-format",
    "tls-server-key-mismatch",
    "tls-server-cert-expired",
    "tls-server-identities-full",
    "tls-server-ticket-config",
    "tls-server-ticket-key",
    "tls-server-client-store",
]


def test_every_tag_has_the_alert_that_the_rfc_names() -> None:
    expected = {tag: name for name, tags in ON_THE_WIRE.items() for tag in tags}
    found = {r.tag: ALERT_NAMES[r.alert] for r in Refusal if r.alert is not None}
    assert found == expected


def test_what_nobody_is_told_has_no_alert() -> None:
    assert sorted(r.tag for r in Refusal if r.alert is None) == sorted(SILENT)


def test_a_refusal_is_its_tag() -> None:
    for refusal in Refusal:
        assert refusal == refusal.tag == str(refusal) == f"{refusal}"
        assert Refusal(refusal.tag) is refusal


def test_a_code_is_small_positive_and_finds_its_refusal() -> None:
    assert BY_CODE[0] is None
    assert [r.code for r in Refusal] == list(range(1, len(Refusal) + 1))
    for refusal in Refusal:
        assert BY_CODE[refusal.code] is refusal
    assert len(BY_CODE) < 256


def test_every_sentence_is_one() -> None:
    sentences = [refusal.sentence for refusal in Refusal]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert sentence[0].isupper() and sentence.endswith(".")


def test_an_unknown_tag_is_no_refusal() -> None:
    with pytest.raises(ValueError):
        Refusal("tls-nothing")


def test_what_is_raised_says_the_tag_and_the_sentence() -> None:
    raised = Refused(Refusal.POOL)
    assert raised.refusal is Refusal.POOL
    assert str(raised) == "tls-pool: Every area is in use, so no connection can start."
