"""A TLS 1.3 client without a socket: bytes in, bytes out, and it can lie about all of them.

An honest connection, with any transport that turns our bytes into the server's::

    client = Client("a seed", roots=[root])
    client.read(transport(client.hello()))
    client.read(transport(client.finish()))
    client.read(transport(client.send(b"hello")))

The honest calls are made of the parts below them (`hello_message`, `certificate_message`,
`finished_message`, `handshake_bytes`, `protect`), and a script that wants to be wrong calls the
parts, or sets what they read: `transcript`, `schedule.secrets`, `writing`, the `Hello` itself.
Everything follows from the seed: two clients with one seed send the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cryptography import x509

from . import codes, hello, messages
from .hello import Hello, Offer
from .observer import Observer, Ticket
from .proofs import CLIENT_CONTEXT, PrivateKey, natural_scheme, sign, signed_content
from .record import PLAIN_LIMIT, Protection, record, records, seal_all
from .schedule import SUITES, digest, early_secret, expand_label
from .shares import Share, make_share
from .wire import Randomness, message, u8, u16, vec8, vec16, vec24

Edit = Callable[[Hello], object]


class Credential(NamedTuple):
    """A client's certificates (DER, leaf first), its key, and the scheme it signs with."""

    chain: tuple[bytes, ...]
    key: PrivateKey
    scheme: int | None = None


class Client(Observer):
    """See the module. ``exact`` holds the server to this project's promises besides the RFC's."""

    def __init__(
        self,
        seed: bytes | str | int = b"",
        *,
        server_name: str | bytes | None = "server.example",
        suites: Sequence[int] = (
            codes.AES_128_GCM_SHA256, codes.CHACHA20_POLY1305_SHA256, codes.AES_256_GCM_SHA384,
        ),
        groups: Sequence[int] = (codes.X25519, codes.SECP256R1, codes.SECP384R1),
        shares: Sequence[int] | None = None,
        schemes: Sequence[int] = codes.DEFAULT_SCHEMES,
        alpn: Sequence[bytes] = (),
        session_id: bytes | None = None,
        psk_modes: Sequence[int] | None = (1,),
        tickets: Sequence[Ticket] = (),
        age_skew_ms: int = 0,
        early_data: bool = False,
        now_ms: int = 0,
        roots: Sequence[x509.Certificate] = (),
        credential: Credential | None = None,
        exact: bool = True,
        check_signature: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(exact=exact, check_signature=check_signature)
        self.randomness = Randomness(seed)
        self.server_name = server_name
        self.suites = tuple(suites)
        self.groups = tuple(groups)
        self.share_groups = tuple(groups[:1] if shares is None else shares)
        self.schemes = tuple(schemes)
        self.protocols = tuple(alpn)
        self.psk_modes = None if psk_modes is None else tuple(psk_modes)
        self.resume = tuple(tickets)
        self.age_skew_ms = age_skew_ms
        self.early_data = early_data
        self.now_ms = now_ms
        self.roots = tuple(roots)
        self.credential = credential
        if session_id is None:
            session_id = self.randomness.draw("session id")
        self.session_id = session_id
        self.early: Protection | None = None
        self.ccs_sent = False

    # The hello.

    def share(self, group: int) -> Share:
        """Our share of a group; always the same one."""
        found = self.shares.get(group)
        if found is None:
            found = self.shares[group] = make_share(group, self.randomness.draw(f"share {group}"))
        return found

    def default_hello(self) -> Hello:
        """The honest hello of this client for its state, before any edit."""
        if self.state == "retry":
            return self._second()
        h = Hello(self.randomness.draw("random"), self.session_id, list(self.suites))
        add = h.extensions.append
        if self.server_name is not None:
            add((codes.SERVER_NAME, hello.server_name(self.server_name)))
        add((codes.SUPPORTED_VERSIONS, hello.supported_versions(0x0304)))
        add((codes.SUPPORTED_GROUPS, hello.code_list(self.groups)))
        add((codes.SIGNATURE_ALGORITHMS, hello.code_list(self.schemes)))
        shares = [(g, self.share(g).public) for g in self.share_groups]
        add((codes.KEY_SHARE, hello.key_shares(shares)))
        if self.protocols:
            add((codes.ALPN, hello.protocol_names(*self.protocols)))
        if self.psk_modes is not None:
            add((codes.PSK_KEY_EXCHANGE_MODES, hello.psk_modes(*self.psk_modes)))
        if self.early_data:
            add((codes.EARLY_DATA, b""))
        if self.resume:
            h.offers = [self.offer(t) for t in self.resume]
            add((codes.PRE_SHARED_KEY, b""))
        return h

    def offer(self, ticket: Ticket, skew_ms: int | None = None) -> Offer:
        """A ticket with its obfuscated age at our clock (§4.2.11.1); ``skew_ms`` is the lie."""
        age = self.now_ms - ticket.received_ms
        age += self.age_skew_ms if skew_ms is None else skew_ms
        hash_name = SUITES[ticket.suite].hash
        return Offer(ticket.identity, age + ticket.age_add, ticket.secret, hash_name)

    def _second(self) -> Hello:
        """§4.1.2: the first one, with the share asked for, the cookie, and no early data.

        PSKs of another hash than the suite's go (§4.1.4).
        """
        h = self.hellos[0].copy()
        if self.retry_group:
            own = self.share(self.retry_group)
            h.put(codes.KEY_SHARE, hello.key_shares([(own.group, own.public)]))
        if self.cookie is not None:
            h.put(codes.COOKIE, self.cookie)
        h.drop(codes.EARLY_DATA)
        h.offers = [o for o in h.offers if o.hash == SUITES[self.suite].hash]
        if not h.offers:
            h.drop(codes.PRE_SHARED_KEY)
        return h

    def hello_message(self, edit: Edit | None = None) -> bytes:
        """Build the hello of this state, add it to the transcript, and await the answer."""
        h = self.default_hello()
        if edit is not None:
            edit(h)
        whole = h.message(bytes(self.transcript))
        self.hellos.append(h)
        self.sent_types |= h.types()
        self.transcript += whole
        self.state = "hello2" if self.state == "retry" else "hello"
        if h.offers and h.has(codes.EARLY_DATA) and self.state == "hello":
            self._early(h.offers[0], whole)
        return whole

    def _early(self, first: Offer, whole: bytes) -> None:
        """client_early_traffic_secret (§7.1), from the first PSK offered."""
        ticket = next((t for t in self.resume if t.identity == first.identity), None)
        if ticket is None:
            return
        suite = SUITES[ticket.suite]
        early = expand_label(
            suite.hash,
            early_secret(suite.hash, first.secret),
            "c e traffic",
            digest(suite.hash, whole),
            suite.hash_size,
        )
        self.early = Protection(suite, early, "early")

    def hello(
        self,
        edit: Edit | None = None,
        *,
        cut: int | Sequence[int] = PLAIN_LIMIT,
        version: int | None = None,
        ccs: bool | None = None,
    ) -> bytes:
        """The hello in records. Before a second one the change_cipher_spec of §D.4."""
        second = self.state == "retry"
        lead = self._ccs(second and bool(self.session_id) if ccs is None else ccs)
        whole = self.hello_message(edit)
        if version is None:
            version = 0x0303 if second else 0x0301
        return lead + records(codes.HANDSHAKE, whole, cut, version)

    # The second flight.

    def _ccs(self, wanted: bool) -> bytes:
        if not wanted or self.ccs_sent:
            return b""
        self.ccs_sent = True
        return record(codes.CHANGE_CIPHER_SPEC, b"\x01")

    def add(self, whole: bytes) -> bytes:
        """Put a message of ours into the transcript, and give it back."""
        self.transcript += whole
        return whole

    def certificate_message(
        self,
        chain: Sequence[bytes] | None = None,
        *,
        context: bytes = b"",
        extensions: Sequence[bytes] = (),
        declared: int | None = None,
    ) -> bytes:
        """Our Certificate. ``extensions``: each entry's block, without its length, in order."""
        if chain is None:
            chain = self.credential.chain if self.credential else ()
        entries = b""
        for i, der in enumerate(chain):
            entries += vec24(der) + vec16(extensions[i] if i < len(extensions) else b"")
        return message(codes.CERTIFICATE, vec8(context) + vec24(entries), declared)

    def certificate_verify_message(
        self,
        key: PrivateKey | None = None,
        scheme: int | None = None,
        *,
        context: str = CLIENT_CONTEXT,
        transcript: bytes | None = None,
        signer: Callable[[bytes], bytes] | None = None,
        edit: Callable[[bytes], bytes] | None = None,
    ) -> bytes:
        """Our CertificateVerify, over ``transcript`` instead of the true one if given."""
        if key is None:
            assert self.credential is not None
            key = self.credential.key
        if scheme is None:
            scheme = self.credential.scheme if self.credential else None
        if scheme is None:
            scheme = natural_scheme(key)
        assert self.schedule is not None
        covered = digest(self.schedule.hash, self.transcript if transcript is None else transcript)
        content = signed_content(context, covered)
        signature = sign(key, scheme, content) if signer is None else signer(content)
        if edit is not None:
            signature = edit(signature)
        return message(codes.CERTIFICATE_VERIFY, u16(scheme) + vec16(signature))

    def finished_message(
        self,
        *,
        transcript: bytes | None = None,
        secret: str = "c hs traffic",
        edit: Callable[[bytes], bytes] | None = None,
    ) -> bytes:
        """Our Finished, over ``transcript`` and under another secret if given."""
        assert self.schedule is not None
        covered = digest(self.schedule.hash, self.transcript if transcript is None else transcript)
        data = messages.verify_data(self.schedule, secret, covered)
        return message(codes.FINISHED, data if edit is None else edit(data))

    def certificate_flight(self) -> list[bytes]:
        """The messages that answer a CertificateRequest: none when there was none."""
        if self.request is None:
            return []
        flight = [self.add(self.certificate_message())]
        if self.credential is not None:
            flight.append(self.add(self.certificate_verify_message()))
        return flight

    def finish(
        self,
        *,
        ccs: bool | None = None,
        cut: int | Sequence[int] = PLAIN_LIMIT,
        padding: int = 0,
        apart: bool = False,
    ) -> bytes:
        """Our whole second flight; ``apart`` puts every message in its own record."""
        lead = self._ccs(bool(self.session_id) if ccs is None else ccs)
        flight = [*self.certificate_flight(), self.add(self.finished_message())]
        if apart:
            lead += b"".join(self.handshake_bytes(m, cut, padding) for m in flight)
        else:
            lead += self.handshake_bytes(b"".join(flight), cut, padding)
        self.establish()
        return lead

    def establish(self) -> None:
        """Our Finished is sent: application keys for writing, and the resumption secret."""
        assert self.schedule is not None
        suite = self.schedule.suite
        self.writing = Protection(suite, self.schedule.secrets["c ap traffic"], "application")
        self.schedule.resumption(digest(self.schedule.hash, self.transcript))
        self.state = "established"
        self.read_tickets_ahead()

    # After it, and around it.

    def handshake_bytes(
        self, data: bytes, cut: int | Sequence[int] = PLAIN_LIMIT, padding: int = 0
    ) -> bytes:
        """Handshake bytes in records, under the key of the moment or in the clear without one."""
        if self.writing is None:
            return records(codes.HANDSHAKE, data, cut)
        return seal_all(self.writing, codes.HANDSHAKE, data, cut, padding)

    def protect(
        self, kind: int, content: bytes, padding: int = 0, key: Protection | None = None
    ) -> bytes:
        """One protected record of any inner type, under the key of the moment or another."""
        protection = self.writing if key is None else key
        assert protection is not None
        return protection.seal(kind, content, padding)

    def send(self, data: bytes, padding: int = 0, cut: int | Sequence[int] = PLAIN_LIMIT) -> bytes:
        """Application data; one record when there is none."""
        if not data:
            return self.protect(codes.APPLICATION_DATA, b"", padding)
        assert self.writing is not None
        return seal_all(self.writing, codes.APPLICATION_DATA, data, cut, padding)

    def early_bytes(self, data: bytes) -> bytes:
        """0-RTT data in one record, under the early key when the hello gave one."""
        assert self.early is not None
        return self.early.seal(codes.APPLICATION_DATA, data)

    def key_update(self, request: int = 0, body: bytes | None = None) -> bytes:
        """A KeyUpdate, and the next key for what follows."""
        out = self.handshake_bytes(message(codes.KEY_UPDATE, u8(request) if body is None else body))
        self.next_key()
        return out

    def next_key(self) -> None:
        """Take the next write key (RFC 8446 §7.2)."""
        assert self.writing is not None
        self.writing = self.writing.updated()

    def alert(
        self, description: int, level: int | None = None, sealed: bool | None = None
    ) -> bytes:
        """An alert, in the clear before there is a key, or as ``sealed`` says."""
        if level is None:
            level = 1 if description in (codes.CLOSE_NOTIFY, codes.USER_CANCELED) else 2
        content = bytes((level, description))
        if self.writing is None or sealed is False:
            return record(codes.ALERT, content)
        return self.protect(codes.ALERT, content)

    def close_notify(self) -> bytes:
        """The record of a close_notify."""
        return self.alert(codes.CLOSE_NOTIFY)
