"""How a conversation may end, on the wire and in this project's words.

On the wire, for any server:

    established, resumed   both sides finished; a resumption when the server took a PSK
    closed                 the server answered our close_notify with its own
    alert                  the server ended it with an alert
    dropped                the server ended it without a word
    flight, retry, waiting the server waits: for our Finished, our second hello, more bytes
    fault                  the server broke a rule that the client checks
    config                 no connection is looked at: a call of the server's program was answered

``tag`` and ``verdict`` are what the residue engine says besides; other servers are not asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: The alert of each refusal (SPEC §1.2), read a second time; None is no alert.
ALERTS: dict[str, int | None] = {
    "tls-unexpected-message": 10, "tls-record-overflow": 22, "tls-bad-record-mac": 20,
    "tls-decode-error": 50, "tls-protocol-version": 70, "tls-key-share": 47,
    "tls-unsupported-extension": 110, "tls-bad-certificate-verify": 51,
    "tls-too-many-messages": 10, "tls-alert": None, "tls-peer-closed": None,
    "tls-server-version": 70, "tls-server-suite": 40, "tls-server-group": 40,
    "tls-server-sigalg": 40, "tls-server-alpn": 120, "tls-server-client-hello-format": 50,
    "tls-server-client-hello-length": 50, "tls-server-extension-repeat": 47,
    "tls-server-missing-extension": 109, "tls-server-illegal-parameter": 47,
    "tls-server-retry-share": 47, "tls-server-early-data-size": 10, "tls-server-finished": 51,
    "tls-server-sign-check": 80, "tls-server-binder": 51, "tls-server-client-cert-required": 116,
    "tls-server-client-sigalg": 47, "tls-server-client-store-replaced": 46,
    "x509-unknown-issuer": 48, "x509-expired": 45, "x509-not-yet-valid": 45,
    "x509-unsupported-algorithm": 43, "x509-key-usage": 43, "x509-key-size": 43,
    "x509-critical-extension": 43, "x509-bad-signature": 42, "x509-not-ca": 42,
    "x509-name-constraint": 42, "x509-path-too-long": 42, "x509-chain-too-large": 42,
    "x509-decode": 42,
}  # fmt: skip

Facts = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class End:
    """``facts`` are attributes of the client (or of the stage) and the value each must have."""

    outcome: str
    alert: int | None = None
    sealed: bool = False
    tag: str = ""
    verdict: str = ""
    facts: Facts = ()

    def __str__(self) -> str:
        words = [self.outcome]
        if self.alert is not None:
            words.append(f"{self.alert}{' sealed' if self.sealed else ''}")
        words += [w for w in (self.tag, self.verdict) if w]
        return " ".join(words)

    def says(self, verdict: str) -> End:
        """The same end, with this verdict on the tickets offered."""
        return replace(self, verdict=verdict)


def _facts(facts: dict[str, object]) -> Facts:
    return tuple(sorted(facts.items()))


def established(verdict: str = "", **facts: object) -> End:
    """The handshake completes, and these facts hold of it."""
    return End("established", verdict=verdict, facts=_facts(facts))


def resumed(**facts: object) -> End:
    """The handshake completes by a ticket."""
    return End("resumed", verdict="resumed", facts=_facts(facts))


def refused(tag: str, sealed: bool = False, verdict: str = "", **facts: object) -> End:
    """The server ends it with the tag's alert, in the clear or sealed under its key."""
    alert = ALERTS[tag]
    if alert is None:
        return End("dropped", tag=tag, verdict=verdict, facts=_facts(facts))
    return End("alert", alert, sealed, tag, verdict, _facts(facts))


def waits(state: str, **facts: object) -> End:
    """``state``: flight, retry or waiting."""
    return End(state, facts=_facts(facts))


def closed(**facts: object) -> End:
    """The server closes with a close_notify."""
    return End("closed", facts=_facts(facts))


def answered(tag: str) -> End:
    """A call of the program's was refused with the tag ("" when it was taken)."""
    return End("config", tag=tag)
