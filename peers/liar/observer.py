"""The reading half of the client: every byte the server sends is checked here.

The states, and what each takes (RFC 8446 §A.1, the client's side):

    start       nothing: the client speaks first
    hello       a ServerHello or a HelloRetryRequest, in the clear
    retry       nothing: our second ClientHello is due
    hello2      a ServerHello, in the clear
    encrypted   EncryptedExtensions
    certificate CertificateRequest, Certificate
    verify      CertificateVerify
    finished    Finished
    flight      nothing but 0.5-RTT data: our Finished is due
    established NewSessionTicket, KeyUpdate, application data
    closed      nothing: the server's close_notify was read
    failed      nothing: the server's fatal alert was read

A fault is raised as `ServerFault` at the record that shows it. What is a fault here is the RFC's;
``exact`` adds what this project's server promises besides (its one change_cipher_spec, no padding,
no data before the client's Finished), and is switched off to play against others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from cryptography import x509

from . import codes, messages
from .fault import ServerFault, check
from .hello import Hello
from .record import PLAIN_LIMIT, SEALED_LIMIT, Protection
from .schedule import SUITES, Schedule, Suite, digest
from .shares import Share
from .wire import message


class Alert(NamedTuple):
    """An alert of the server's; ``key`` names what it was sealed under, "" in the clear."""

    level: int
    description: int
    key: str

    def __str__(self) -> str:
        name = codes.ALERT_NAMES.get(self.description, str(self.description))
        return f"{name} ({self.key or 'clear'})"


@dataclass(frozen=True)
class Ticket:
    """What a client keeps of a NewSessionTicket, to come back with."""

    identity: bytes
    secret: bytes
    suite: int
    age_add: int
    lifetime: int
    nonce: bytes
    received_ms: int
    server_name: str | bytes | None = None
    alpn: bytes | None = None
    extensions: dict[int, bytes] = field(default_factory=dict)


class Observer:
    """What the client knows, and the checks on what it reads."""

    def __init__(self, *, exact: bool = True, check_signature: bool = True) -> None:
        self.exact = exact
        self.check_signature = check_signature
        self.roots: tuple[x509.Certificate, ...] = ()
        self.now_ms = 0
        self.state = "start"
        self.ended = False
        self.alerts: list[Alert] = []
        self.received = bytearray()
        self.tickets: list[Ticket] = []
        self.key_updates: list[int] = []
        self.records: list[tuple[int, str, int]] = []  # type, key name, plaintext length
        self.padding = 0
        self.ccs_read = 0
        self.hellos: list[Hello] = []
        self.sent_types: set[int] = set()
        self.transcript = bytearray()
        self.shares: dict[int, Share] = {}
        self.schedule: Schedule | None = None
        self.reading: Protection | None = None
        self.writing: Protection | None = None
        # What was agreed on.
        self.suite = 0
        self.group = 0
        self.alpn: bytes | None = None
        self.name_answered = False
        self.early_accepted = False
        self.retried = False
        self.retry_group = 0
        self.cookie: bytes | None = None
        self.resumed = False
        self.selected: int | None = None
        self.chain: tuple[bytes, ...] = ()
        self.request: messages.Request | None = None
        self._tickets_ahead: list[bytes] = []
        self._spki = b""
        self._incoming = bytearray()
        self._handshake = bytearray()
        self._ccs_due = False

    # Records.

    def read(self, data: bytes) -> None:
        """Take the server's bytes, in any pieces. Raises `ServerFault`."""
        self._incoming += data
        while len(self._incoming) >= 5:
            kind, size = self._incoming[0], int.from_bytes(self._incoming[3:5], "big")
            version = int.from_bytes(self._incoming[1:3], "big")
            rule = "RFC 8446 §5.1: a record has a known type and version 0x0303"
            # Whoever refuses a version may say so in another.
            other = kind == codes.ALERT and self.reading is None and version >> 8 == 3
            right = version == 0x0303 or (other and not self.exact)
            check(kind in codes.RECORD_NAMES and right, rule, f"{kind} {version:#06x}")
            limit = SEALED_LIMIT if kind == codes.APPLICATION_DATA else PLAIN_LIMIT
            check(size <= limit, "RFC 8446 §5.1, §5.2: a record keeps its bound", f"{size} bytes")
            if len(self._incoming) < 5 + size:
                return
            header = bytes(self._incoming[:5])
            body = bytes(self._incoming[5 : 5 + size])
            del self._incoming[: 5 + size]
            self._record(kind, header, body)

    def eof(self) -> None:
        """The transport ended."""
        self.ended = True
        check(not self._incoming, "RFC 8446 §5.1: no record is cut short by the end", self.state)

    def _record(self, kind: int, header: bytes, body: bytes) -> None:
        if self.state in ("closed", "failed"):
            raise ServerFault("RFC 8446 §6: nothing follows a closing alert", f"record {kind}")
        if self.exact and self._ccs_due != (kind == codes.CHANGE_CIPHER_SPEC):
            rule = "RFC 8446 D.4: one change_cipher_spec right behind the first hello"
            raise ServerFault(rule, f"record {kind} in state {self.state}")
        if kind == codes.CHANGE_CIPHER_SPEC:
            self._change_cipher_spec(body)
            return
        key = ""
        content = body
        if self.reading is not None:
            rule = "RFC 8446 §5.2: after the ServerHello every record is protected"
            check(kind == codes.APPLICATION_DATA, rule, f"record {kind}")
            key = self.reading.name
            kind, content, padding = self.reading.open(header, body)
            self.padding += padding
            check(not (padding and self.exact), "policy: records are not padded")
            rule = "RFC 8446 §5: a protected record holds an alert, a message or data"
            check(kind in (21, 22, 23), rule, f"inner type {kind}")
        self.records.append((kind, key, len(content)))
        if kind == codes.HANDSHAKE:
            self._fragment(content)
            return
        check(not self._handshake, "RFC 8446 §5.1: fragments of a message are not interleaved")
        if kind == codes.ALERT:
            self._alert(content, key)
            return
        check(key, "RFC 8446 §5.1: no application data in the clear")
        rule = "RFC 8446 §2: application data comes after the Finished"
        check(self.state in ("flight", "established"), rule, self.state)
        check(not (self.exact and self.state == "flight"), "policy: no data before our Finished")
        self.received += content

    def _change_cipher_spec(self, body: bytes) -> None:
        rule = "RFC 8446 §5: a change_cipher_spec is one byte 01, during the handshake"
        check(body == b"\x01", rule, body[:8].hex())
        check(self.state not in ("start", "flight", "established"), rule, self.state)
        check(not self._handshake, "RFC 8446 §5.1: fragments of a message are not interleaved")
        self.ccs_read += 1
        self._ccs_due = False

    def _alert(self, content: bytes, key: str) -> None:
        check(len(content) == 2, "RFC 8446 §6: an alert is two bytes", content.hex())
        level, description = content
        self.alerts.append(Alert(level, description, key))
        if description == codes.USER_CANCELED:
            return
        if description == codes.CLOSE_NOTIFY:
            rule = "RFC 8446 §6.1: close_notify is a warning, after the handshake"
            check(not self.exact or (level == 1 and self.state == "established"), rule, self.state)
            self.state = "closed"
            return
        check(level == 2, "RFC 8446 §6.2: an error alert is fatal", f"{description}")
        self.state = "failed"

    def _fragment(self, content: bytes) -> None:
        check(content, "RFC 8446 §5.1: no empty handshake fragment")
        self._handshake += content
        while len(self._handshake) >= 4:
            size = 4 + int.from_bytes(self._handshake[1:4], "big")
            if len(self._handshake) < size:
                return
            whole = bytes(self._handshake[:size])
            del self._handshake[:size]
            keys = self.reading
            self._message(whole[0], whole)
            rule = "RFC 8446 §5.1: a message in front of a key change ends its record"
            check(self.reading is keys or not self._handshake, rule, f"message {whole[0]}")

    # Messages.

    def _message(self, kind: int, whole: bytes) -> None:
        handler = self._TABLE.get((self.state, kind))
        if handler is None:
            name = codes.MESSAGE_NAMES.get(kind, str(kind))
            rule = "RFC 8446 §A.1: a message comes in its state"
            raise ServerFault(rule, f"{name} in state {self.state}")
        handler(self, whole)

    def _hash(self) -> bytes:
        assert self.schedule is not None
        return digest(self.schedule.hash, self.transcript)

    def _on_hello(self, whole: bytes) -> None:
        sent = self.hellos[-1]
        answer = messages.read_server_hello(whole[4:])
        rule = "RFC 8446 §4.1.3: the ServerHello answers what was offered"
        check(answer.session_id == sent.session_id, rule, "the session id is not echoed")
        check(answer.suite in sent.suites and answer.suite in SUITES, rule, "the suite")
        check(answer.random[24:] not in codes.DOWNGRADE_MARKS, rule, "a downgrade mark")
        if self.state == "hello":
            self._ccs_due = self.exact and bool(sent.session_id)
        suite = SUITES[answer.suite]
        if self.suite:
            rule = "RFC 8446 §4.1.4: the ServerHello keeps the suite of the HelloRetryRequest"
            check(self.suite == answer.suite, rule)
        self.suite = answer.suite
        if answer.retry:
            self._on_retry(answer, whole, sent, suite)
            return
        self._asked(answer.extensions, codes.SERVER)
        rule = "RFC 8446 §4.1.3: a ServerHello has a supported_versions of 0x0304 and a key_share"
        check(answer.extensions.get(codes.SUPPORTED_VERSIONS) == b"\x03\x04", rule)
        check(codes.KEY_SHARE in answer.extensions, rule)
        self.group, public = messages.read_share(answer.extensions[codes.KEY_SHARE])
        rule = "RFC 8446 §4.2.8: the server's share is of a group we sent one for"
        check(self.group in self.shares, rule, str(self.group))
        check(not self.retried or self.group == self.retry_group, rule, "not the retry's")
        psk = self._on_psk(answer.extensions.get(codes.PRE_SHARED_KEY), sent, suite)
        self.transcript += whole
        self.schedule = Schedule(suite, psk)
        self.schedule.handshake(self.shares[self.group].exchange(public), self._hash())
        secrets = self.schedule.secrets
        self.reading = Protection(suite, secrets["s hs traffic"], "handshake")
        self.writing = Protection(suite, secrets["c hs traffic"], "handshake")
        self.state = "encrypted"

    def _on_psk(self, body: bytes | None, sent: Hello, suite: Suite) -> bytes:
        if body is None:
            return b""
        index = int.from_bytes(body, "big")
        rule = "RFC 8446 §4.2.11: the selected identity is one of ours, under the suite's hash"
        check(len(body) == 2 and index < len(sent.offers), rule, body.hex())
        check(sent.offers[index].hash == suite.hash, rule, "another hash")
        self.selected = index
        self.resumed = True
        return sent.offers[index].secret

    def _on_retry(
        self, answer: messages.ServerHello, whole: bytes, sent: Hello, suite: Suite
    ) -> None:
        rule = "RFC 8446 §4.1.4: one HelloRetryRequest, for a group we support and sent no share of"
        check(self.state == "hello", rule, "a second one")
        # A cookie alone may come without having been offered (§4.2.2).
        self._asked([kind for kind in answer.extensions if kind != codes.COOKIE], codes.RETRY)
        check(answer.extensions.get(codes.SUPPORTED_VERSIONS) == b"\x03\x04", rule, "version")
        group = answer.extensions.get(codes.KEY_SHARE)
        self.cookie = answer.extensions.get(codes.COOKIE)
        check(group is not None or self.cookie is not None, rule, "nothing would change")
        if group is not None:
            self.retry_group = int.from_bytes(group, "big")
            known = messages.read_code_list(sent.get(codes.SUPPORTED_GROUPS), "supported_groups")
            check(len(group) == 2 and self.retry_group in known, rule, group.hex())
            check(self.retry_group not in self.shares, rule, "we sent a share of it")
        first = digest(suite.hash, self.transcript)
        self.transcript[:] = message(codes.MESSAGE_HASH, first) + whole  # §4.4.1
        self.retried = True
        self.state = "retry"

    def _asked(self, found: Iterable[int], where: str) -> None:
        for kind in found:
            known = codes.EXTENSIONS.get(kind)
            rule = "RFC 8446 §4.2: an extension answers one that was offered, where it belongs"
            allowed = known is not None and where in known.answered and kind in self.sent_types
            check(allowed, rule, f"{kind} in {where}")

    def _on_encrypted_extensions(self, whole: bytes) -> None:
        found = messages.read_block(whole[4:], "EncryptedExtensions")
        self._asked(found, codes.ENCRYPTED)
        if codes.SERVER_NAME in found:
            check(not found[codes.SERVER_NAME], "RFC 6066 §3: the server's server_name is empty")
            self.name_answered = True
        if codes.ALPN in found:
            chosen = messages.read_protocols(found[codes.ALPN])
            offered = messages.read_protocols(self.hellos[-1].get(codes.ALPN))
            rule = "RFC 7301 §3.1: one protocol, of those offered"
            check(len(chosen) == 1 and chosen[0] in offered, rule)
            self.alpn = chosen[0]
        if codes.EARLY_DATA in found:
            check(not self.exact, "policy: early data is never accepted")
            rule = "RFC 8446 §4.2.10: early data needs the first PSK, and no retry"
            check(self.selected == 0 and not self.retried, rule)
            self.early_accepted = True
        self.transcript += whole
        self.state = "finished" if self.resumed else "certificate"

    def _on_request(self, whole: bytes) -> None:
        rule = "RFC 8446 §4.3.2: at most one CertificateRequest, before the Certificate"
        check(self.request is None, rule)
        self.request = messages.read_request(whole[4:])
        self.transcript += whole

    def _on_certificate(self, whole: bytes) -> None:
        entries = messages.read_certificate(whole[4:])
        for _, extensions in entries:
            self._asked(extensions, codes.ENTRY)
        self.chain = tuple(der for der, _ in entries)
        self._spki = messages.leaf_key(self.chain[0])
        if self.roots:
            messages.check_chain(self.chain, self.roots)
        self.transcript += whole
        self.state = "verify"

    def _on_verify(self, whole: bytes) -> None:
        scheme, signature = messages.read_certificate_verify(whole[4:])
        offered = messages.read_code_list(
            self.hellos[-1].get(codes.SIGNATURE_ALGORITHMS), "signature_algorithms"
        )
        rule = "RFC 8446 §4.4.3: the scheme is one of signature_algorithms"
        check(scheme in offered, rule, f"{scheme:#06x}")
        if self.check_signature:
            messages.check_server(self._spki, scheme, self._hash(), signature)
        self.transcript += whole
        self.state = "finished"

    def _on_finished(self, whole: bytes) -> None:
        assert self.schedule is not None
        expected = messages.verify_data(self.schedule, "s hs traffic", self._hash())
        check(whole[4:] == expected, "RFC 8446 §4.4.4: the Finished covers the transcript")
        self.transcript += whole
        self.schedule.application(self._hash())
        suite = self.schedule.suite
        secret = self.schedule.secrets["s ap traffic"]
        self.reading = Protection(suite, secret, "application")
        self.state = "flight"

    def _on_ticket(self, whole: bytes) -> None:
        assert self.schedule is not None
        ticket = messages.read_ticket(whole[4:])
        rule = "RFC 8446 §4.6.1: tickets of one connection have different nonces"
        check(all(t.nonce != ticket.nonce for t in self.tickets), rule)
        if codes.EARLY_DATA in ticket.extensions:
            check(not self.exact, "policy: a ticket offers no early data")
        check(not (self.exact and ticket.extensions), "policy: a ticket has no extension")
        name = self.hellos[-1].get(codes.SERVER_NAME) if self._named() else None
        self.tickets.append(
            Ticket(
                ticket.identity, self.schedule.ticket_psk(ticket.nonce), self.suite,
                ticket.age_add, ticket.lifetime, ticket.nonce, self.now_ms,
                messages.read_name(name) if name else None, self.alpn, ticket.extensions,
            )
        )  # fmt: skip

    def _on_ticket_ahead(self, whole: bytes) -> None:
        """A ticket behind the server's Finished; its PSK follows from ours."""
        rule = (
            "RFC 8446 §4.6.1: a ticket before our Finished goes to a client that is asked nothing"
        )
        check(self.request is None, rule)
        check(not self.exact, "policy: no ticket before our Finished")
        self._tickets_ahead.append(whole)

    def read_tickets_ahead(self) -> None:
        """Our Finished is sent, and with it the resumption secret is known."""
        ahead, self._tickets_ahead = self._tickets_ahead, []
        for whole in ahead:
            self._on_ticket(whole)

    def _named(self) -> bool:
        return self.hellos[-1].has(codes.SERVER_NAME)

    def _on_key_update(self, whole: bytes) -> None:
        assert self.reading is not None
        rule = "RFC 8446 §4.6.3: a KeyUpdate is one byte, 0 or 1"
        check(whole[4:] in (b"\0", b"\x01"), rule, whole[4:12].hex())
        self.key_updates.append(whole[4])
        self.reading = self.reading.updated()

    _TABLE: ClassVar[dict[tuple[str, int], Callable[[Observer, bytes], None]]] = {
        ("hello", codes.SERVER_HELLO): _on_hello,
        ("hello2", codes.SERVER_HELLO): _on_hello,
        ("encrypted", codes.ENCRYPTED_EXTENSIONS): _on_encrypted_extensions,
        ("certificate", codes.CERTIFICATE_REQUEST): _on_request,
        ("certificate", codes.CERTIFICATE): _on_certificate,
        ("verify", codes.CERTIFICATE_VERIFY): _on_verify,
        ("finished", codes.FINISHED): _on_finished,
        ("flight", codes.NEW_SESSION_TICKET): _on_ticket_ahead,
        ("established", codes.NEW_SESSION_TICKET): _on_ticket,
        ("established", codes.KEY_UPDATE): _on_key_update,
    }
