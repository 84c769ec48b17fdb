"""Client certificates in the handshake: the lying client presents them, rightly and wrongly.

Residue is asked after every call (`Pair`).
"""

from __future__ import annotations

import hashlib
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from engine import Engine, Refused
from engine.layout import ROOM_LEN
from peers.liar import Client, Credential, codes
from peers.liar.identities import NOW_MS
from peers.liar.proofs import CLIENT_CONTEXT, signed_content
from peers.liar.schedule import digest
from peers.liar.wire import message, vec8, vec24
from tests.engine import constraint_cases  # noqa: F401  (adds its cases)
from tests.engine.chain_cases import CASES, OK
from tests.engine.chain_maker import NOW, Made, authority, key, leaf
from tests.engine.pairs import Pair, engine

OPTIONAL, REQUIRED = 1, 2
# The server's alerts go under its application key once its Finished is sent.
KEY = "application"
KINDS = ("P-256", "P-384", "Ed25519", "RSA-2048")


def root() -> Made:
    return authority("client root", own=key("client root", "Ed25519"))


def mutual(mode: int = REQUIRED, *roots: Made, slots: int = 5, areas: int | None = 2) -> Engine:
    made = engine(slots, areas)
    assert made.trust_clients(b"".join(one.pem for one in roots or (root(),))) >= 1
    made.client_auth_mode(mode)
    return made


def credential(*chain: Made) -> Credential:
    assert chain[0].key is not None
    return Credential(tuple(one.der for one in chain), chain[0].key)


def client(*chain: Made, **options: object) -> Client:
    """A client that presents this chain; none without one."""
    own = credential(*chain) if chain else None
    return Client(b"mutual", now_ms=NOW_MS, credential=own, **options)  # type: ignore[arg-type]


def device(**changes: object) -> Made:
    return leaf(root(), **changes)  # type: ignore[arg-type]


def big_leaf() -> Made:
    """A leaf that is larger than a room."""
    names = [x509.DNSName(f"device-{i}.example.with.a.long.name") for i in range(80)]
    made = device(san=names)
    assert len(made.der) > ROOM_LEN
    return made


def no_identity(made: Engine, slot: int = 0) -> None:
    assert made.peer_verified(slot) == 0
    for call in (
        made.peer_certificate,
        made.peer_subject,
        made.peer_serial,
        made.peer_fingerprint,
        made.peer_not_after,
        made.peer_san,
    ):
        assert call(slot) is None


def has_identity(made: Engine, own: Made, slot: int = 0, generation: int = 1) -> None:
    assert made.peer_verified(slot) == generation
    assert made.peer_certificate(slot) == own.der
    assert made.peer_fingerprint(slot) == hashlib.sha256(own.der).digest()
    assert made.peer_subject(slot) == own.subject.public_bytes()
    assert made.peer_not_after(slot) == own.cert.not_valid_after_utc.timestamp()
    serial = made.peer_serial(slot)
    assert serial is not None and int.from_bytes(serial, "big") == own.cert.serial_number
    try:
        names = own.cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = ()
    san = made.peer_san(slot)
    assert san is not None and len(san) == len(list(names))


# Honest clients.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [OPTIONAL, REQUIRED])
def test_a_client_of_each_kind_is_verified_and_its_identity_told(kind: str, mode: int) -> None:
    own = device(own=key("leaf", kind))
    pair = Pair(mutual(mode), client=client(own)).greet()
    no_identity(pair.engine)
    pair.answer(pair.client.finish())
    has_identity(pair.engine, own)
    assert pair.answer(pair.client.send(b"data")) == b""
    assert pair.recv() == b"data"
    has_identity(pair.engine, own)


@pytest.mark.parametrize(
    "scheme", [codes.RSA_PSS_RSAE_SHA256, codes.RSA_PSS_RSAE_SHA384, codes.RSA_PSS_RSAE_SHA512]
)
def test_an_rsa_client_may_use_each_digest(scheme: int) -> None:
    own = device(own=key("leaf", "RSA-2048"))
    pair = Pair(mutual(), client=client(own)).greet()
    c = pair.client
    flight = c.add(c.certificate_message()) + c.add(c.certificate_verify_message(scheme=scheme))
    pair.answer(c.handshake_bytes(flight + c.add(c.finished_message())))
    has_identity(pair.engine, own)


def test_the_identity_is_the_leafs_own_bytes() -> None:
    own = device(
        san=[
            x509.DNSName("a.example"),
            x509.RFC822Name("a@b.example"),
            x509.UniformResourceIdentifier("urn:x"),
        ],
        serial=0xFF01,
    )
    pair = Pair(mutual(), client=client(own)).establish()
    assert pair.engine.peer_san(0) == [(2, b"a.example"), (1, b"a@b.example"), (6, b"urn:x")]
    assert pair.engine.peer_serial(0) == b"\x00\xff\x01"


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("cut", [16_384, 1, 7])
def test_the_flight_may_come_in_any_pieces(apart: bool, cut: int) -> None:
    own = device()
    pair = Pair(mutual(), client=client(own)).greet()
    pair.feed(pair.client.finish(apart=apart, cut=cut), 5 if cut == 7 else None)
    has_identity(pair.engine, own)


def test_a_chain_of_three_intermediates_and_its_root_is_verified() -> None:
    made = [root()]
    for i in range(3):
        made.append(authority(f"middle {i}", made[-1]))
    own = leaf(made[-1])
    pair = Pair(mutual(), client=client(own, *made[::-1])).establish()
    has_identity(pair.engine, own)


def test_a_client_is_verified_after_a_retry_and_with_each_suite() -> None:
    own = device()
    for suite in (codes.AES_256_GCM_SHA384, codes.CHACHA20_POLY1305_SHA256):
        c = client(own, suites=[suite], shares=[])
        pair = Pair(mutual(), client=c).establish()
        assert pair.engine.retried(0)
        has_identity(pair.engine, own)


def test_a_client_without_a_certificate_is_let_in_when_it_is_optional() -> None:
    pair = Pair(mutual(OPTIONAL), client=client()).establish()
    no_identity(pair.engine)
    assert pair.client.request is not None


def test_a_client_without_a_certificate_is_refused_when_one_is_required() -> None:
    pair = Pair(mutual(REQUIRED), client=client()).greet()
    pair.fails(pair.client.finish(), "tls-server-client-cert-required", 116, KEY)
    no_identity(pair.engine)


def test_nothing_is_asked_of_clients_when_the_mode_is_off() -> None:
    made = mutual(0)
    pair = Pair(made, client=client()).establish()
    assert pair.client.request is None
    no_identity(made)


def test_the_mode_is_that_of_the_serve() -> None:
    made = mutual(REQUIRED)
    asked = Pair(made, 0, client())
    made.client_auth_mode(0)
    unasked = Pair(made, 1, client()).greet()
    asked.greet()
    assert asked.client.request is not None
    assert unasked.client.request is None


# The request.


def test_the_request_lists_what_the_contract_says() -> None:
    pair = Pair(mutual(), client=client()).greet()
    request = pair.client.request
    assert request is not None
    assert request.context == b""
    kinds = [0x0403, 0x0503, 0x0807, 0x0804, 0x0805, 0x0806]
    assert list(request.schemes) == kinds
    assert list(request.schemes_cert) == [*kinds, 0x0401, 0x0501, 0x0601]
    assert list(request.authorities) == [root().subject.public_bytes()]


# Wrong clients: the chain.

ON_THE_WIRE = {
    "x509-unknown-issuer": 48,
    "x509-expired": 45,
    "x509-not-yet-valid": 45,
    "x509-unsupported-algorithm": 43,
    "x509-key-usage": 43,
    "x509-key-size": 43,
    "x509-critical-extension": 43,
    "x509-bad-signature": 42,
    "x509-not-ca": 42,
    "x509-name-constraint": 42,
    "x509-path-too-long": 42,
    "x509-decode": 42,
}


@pytest.mark.parametrize("mode", [OPTIONAL, REQUIRED])
def test_every_wrong_chain_ends_the_connection_with_its_tag_and_alert(mode: int) -> None:
    reached = set()
    for expected, make in CASES.values():
        case = make()
        if expected == OK or not all(case.chain):
            continue
        made = mutual(mode, *case.roots)
        pair = Pair(made, client=client()).greet()
        data = pair.client.handshake_bytes(pair.client.certificate_message(case.chain))
        pair.fails(data, expected, ON_THE_WIRE[expected], KEY)
        no_identity(made)
        reached.add(expected)
    assert reached == ON_THE_WIRE.keys()


def test_too_many_certificates_are_too_large() -> None:
    own = device()
    pair = Pair(mutual(), client=client()).greet()
    data = pair.client.handshake_bytes(pair.client.certificate_message([own.der] * 6))
    pair.fails(data, "x509-chain-too-large", 42, KEY)


def test_a_certificate_message_is_judged_by_its_header() -> None:
    pair = Pair(mutual(), client=client()).greet()
    data = pair.client.handshake_bytes(b"\x0b" + (16_385).to_bytes(3, "big"))
    pair.fails(data, "x509-chain-too-large", 42, KEY)


def test_a_chain_that_takes_nine_checks_is_too_large() -> None:
    roots = [authority("many", own=key(f"many {i}"), key_id=None) for i in range(9)]
    own = leaf(roots[-1], issuer_key_id=None)
    pair = Pair(mutual(REQUIRED, *roots), client=client(own)).greet()
    pair.fails(pair.client.finish(), "x509-chain-too-large", 42, KEY)


# Wrong clients: the messages.


def flight(pair: Pair, *parts: bytes) -> bytes:
    return pair.client.handshake_bytes(b"".join(parts))


def wrong(*chain: Made, mode: int = REQUIRED) -> tuple[Pair, Client]:
    pair = Pair(mutual(mode), client=client(*chain or (device(),))).greet()
    return pair, pair.client


def test_a_request_context_is_an_illegal_parameter() -> None:
    pair, c = wrong()
    data = flight(pair, c.certificate_message(context=b"x"))
    pair.fails(data, "tls-server-illegal-parameter", 47, KEY)


def test_an_extension_of_an_entry_was_not_asked_for() -> None:
    pair, c = wrong()
    data = flight(pair, c.certificate_message(extensions=[b"\x00\x05\x00\x00"]))
    pair.fails(data, "tls-unsupported-extension", 110, KEY)


@pytest.mark.parametrize(
    "body", [b"", b"\x00", b"\x00\x00\x00", b"\x00\x00\x00\x01", vec8(b"") + vec24(b"\0\0\0\0\0")]
)
def test_a_certificate_message_that_does_not_parse(body: bytes) -> None:
    pair, _ = wrong()
    pair.fails(flight(pair, message(codes.CERTIFICATE, body)), "tls-decode-error", 50, KEY)


@pytest.mark.parametrize("body", [b"", b"\x04\x03\x00", b"\x04\x03\x00\x01", b"\x04\x03\x00\x00x"])
def test_a_certificate_verify_that_does_not_parse(body: bytes) -> None:
    pair, c = wrong()
    data = flight(pair, c.add(c.certificate_message()), message(codes.CERTIFICATE_VERIFY, body))
    pair.fails(data, "tls-decode-error", 50, KEY)


def verify_fails(tag: str, alert: int, own: Made | None = None, **lie: object) -> None:
    pair, c = wrong(own or device())
    data = flight(
        pair,
        c.add(c.certificate_message()),
        c.certificate_verify_message(**lie),  # type: ignore[arg-type]
    )
    pair.fails(data, tag, alert, KEY)
    no_identity(pair.engine)


BAD = "tls-bad-certificate-verify"


def test_a_flipped_bit_of_the_signature() -> None:
    verify_fails(BAD, 51, edit=lambda s: s[:-1] + bytes([s[-1] ^ 1]))


def test_an_empty_signature() -> None:
    verify_fails(BAD, 51, edit=lambda s: b"")


def test_the_servers_context_string() -> None:
    verify_fails(BAD, 51, context="TLS 1.3, server CertificateVerify")


def test_another_transcript() -> None:
    verify_fails(BAD, 51, transcript=b"another")


def test_another_key_than_the_leafs() -> None:
    verify_fails(BAD, 51, key=key("somebody else's"))


FITTING = {"P-256": 0x0403, "P-384": 0x0503, "Ed25519": 0x0807, "RSA-2048": 0x0804}


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [(kind, FITTING[other]) for kind in KINDS for other in KINDS if kind != other],
)
def test_a_scheme_that_does_not_fit_the_key(kind: str, scheme: int) -> None:
    own = device(own=key("leaf", kind))
    signer = next(key("leaf", k) for k in KINDS if FITTING[k] == scheme)
    verify_fails(BAD, 51, own, key=signer, scheme=scheme)


@pytest.mark.parametrize("scheme", [0x0401, 0x0203, 0x0201, 0x0603, 0x0809])
def test_a_scheme_that_the_request_did_not_list(scheme: int) -> None:
    pair, c = wrong()
    body = scheme.to_bytes(2, "big") + b"\x00\x01x"
    data = flight(pair, c.add(c.certificate_message()), message(codes.CERTIFICATE_VERIFY, body))
    pair.fails(data, "tls-server-client-sigalg", 47, KEY)


def test_rsa_with_a_salt_that_is_not_as_long_as_the_digest() -> None:
    own = device(own=key("leaf", "RSA-2048"))
    pair, c = wrong(own)
    first = c.add(c.certificate_message())
    # A signature of another salt length is one of the right scheme that does not verify.
    assert c.schedule is not None
    content = signed_content(CLIENT_CONTEXT, digest(c.schedule.hash, c.transcript))
    signer = key("leaf", "RSA-2048")
    signature = signer.sign(  # type: ignore[union-attr, call-arg]
        content, padding.PSS(padding.MGF1(hashes.SHA256()), 20), hashes.SHA256()
    )
    body = b"\x08\x04" + len(signature).to_bytes(2, "big") + signature
    pair.fails(flight(pair, first, message(codes.CERTIFICATE_VERIFY, body)), BAD, 51, KEY)


# Wrong clients: the order.

UNEXPECTED = "tls-unexpected-message"


def test_a_finished_where_a_certificate_is_due() -> None:
    for mode in (OPTIONAL, REQUIRED):
        pair, c = wrong(mode=mode)
        pair.fails(flight(pair, c.finished_message()), UNEXPECTED, 10, KEY)


def test_a_certificate_verify_where_a_certificate_is_due() -> None:
    pair, c = wrong()
    pair.fails(flight(pair, c.certificate_verify_message()), UNEXPECTED, 10, KEY)


def test_a_finished_where_a_certificate_verify_is_due() -> None:
    pair, c = wrong()
    data = flight(pair, c.add(c.certificate_message()), c.finished_message())
    pair.fails(data, UNEXPECTED, 10, KEY)
    no_identity(pair.engine)


def test_a_second_certificate() -> None:
    pair, c = wrong()
    one = c.certificate_message()
    pair.fails(flight(pair, one, one), UNEXPECTED, 10, KEY)


def test_a_certificate_verify_after_an_empty_certificate() -> None:
    pair, c = wrong(mode=OPTIONAL)
    data = flight(pair, c.add(c.certificate_message(())), c.certificate_verify_message())
    pair.fails(data, UNEXPECTED, 10, KEY)


def test_a_second_certificate_verify() -> None:
    pair, c = wrong()
    data = flight(
        pair,
        c.add(c.certificate_message()),
        c.add(c.certificate_verify_message()),
        c.certificate_verify_message(),
    )
    pair.fails(data, UNEXPECTED, 10, KEY)


def test_a_certificate_that_nobody_asked_for() -> None:
    pair = Pair(mutual(0), client=client(device())).greet()
    pair.fails(flight(pair, pair.client.certificate_message()), UNEXPECTED, 10, KEY)


@pytest.mark.parametrize("kind", [codes.CERTIFICATE, codes.CERTIFICATE_VERIFY, codes.FINISHED])
def test_authentication_after_the_handshake(kind: int) -> None:
    own = device()
    pair = Pair(mutual(), client=client(own)).establish()
    has_identity(pair.engine, own)
    pair.fails(flight(pair, message(kind, bytes(32))), UNEXPECTED, 10, KEY)
    no_identity(pair.engine)


def test_a_finished_over_a_transcript_without_the_certificate() -> None:
    pair, c = wrong()
    before = bytes(c.transcript)
    parts = [c.add(c.certificate_message()), c.add(c.certificate_verify_message())]
    data = flight(pair, *parts, c.finished_message(transcript=before))
    pair.fails(data, "tls-server-finished", 51, KEY)
    no_identity(pair.engine)


def test_the_flight_of_another_connection() -> None:
    made = mutual()
    first = Pair(made, 0, client(device())).greet()
    c = first.client
    old = c.certificate_message() + c.certificate_verify_message(
        transcript=bytes(c.transcript) + c.certificate_message()
    )
    second = Pair(made, 1, Client(b"other", now_ms=NOW_MS, credential=c.credential)).greet()
    second.fails(flight(second, old), BAD, 51, KEY)


# The clock.


def test_a_leaf_is_judged_at_the_time_of_its_serve() -> None:
    own = device(after=NOW)
    pair = Pair(mutual(), client=client(own)).establish()
    has_identity(pair.engine, own)
    # Another slot's later serve is not this one's.
    made = mutual()
    waiting = Pair(made, 0, client(own))
    made.serve(1, NOW_MS + 3_600_000)
    waiting.establish()
    has_identity(made, own)


@pytest.mark.parametrize(("later_ms", "tag"), [(999, None), (1000, "x509-expired")])
def test_a_later_set_time_counts_to_the_second(later_ms: int, tag: str | None) -> None:
    own = device(after=NOW)
    made = mutual()
    pair = Pair(made, client=client(own))
    made.set_time(NOW_MS + later_ms)
    made.set_time(NOW_MS)
    pair.greet()
    if tag is None:
        pair.answer(pair.client.finish())
        has_identity(made, own)
    else:
        pair.fails(pair.client.finish(), tag, 45, KEY)


# The store, replaced at each moment.


def other_root() -> Made:
    return authority("other root")


def test_a_store_replaced_before_the_certificate_judges_it() -> None:
    pair, c = wrong()
    pair.engine.trust_clients(other_root().pem)
    pair.fails(c.finish(), "x509-unknown-issuer", 48, KEY)

    pair, c = wrong()
    pair.engine.trust_clients(other_root().pem + root().pem)
    pair.answer(c.finish())
    has_identity(pair.engine, device_of(c), generation=2)


def device_of(c: Client) -> Made:
    assert c.credential is not None
    return Made(x509.load_der_x509_certificate(c.credential.chain[0]), None)


@pytest.mark.parametrize("which", [root, other_root])
@pytest.mark.parametrize("after_verify", [False, True])
def test_a_store_replaced_behind_a_verified_chain_refuses_the_finished(
    which: object, after_verify: bool
) -> None:
    pair, c = wrong()
    parts = [c.add(c.certificate_message()), c.add(c.certificate_verify_message())]
    done = c.add(c.finished_message())
    first, second = (parts, []) if after_verify else (parts[:1], parts[1:])
    pair.feed(flight(pair, *first))
    pair.engine.trust_clients(which().pem)  # type: ignore[operator]
    pair.fails(flight(pair, *second, done), "tls-server-client-store-replaced", 46, KEY)
    no_identity(pair.engine)


def test_a_replacement_that_was_refused_changes_nothing() -> None:
    pair, c = wrong()
    parts = [c.add(c.certificate_message()), c.add(c.certificate_verify_message())]
    pair.feed(flight(pair, *parts))
    with pytest.raises(Refused):
        pair.engine.trust_clients(b"")
    assert pair.engine.client_generation() == 1
    pair.feed(flight(pair, c.add(c.finished_message())))
    has_identity(pair.engine, device_of(c))


def test_a_replacement_after_the_handshake_leaves_an_older_generation() -> None:
    own = device()
    pair = Pair(mutual(), client=client(own)).establish()
    pair.engine.trust_clients(other_root().pem)
    has_identity(pair.engine, own, generation=1)
    assert pair.engine.client_generation() == 2


def test_a_replacement_does_not_touch_a_client_without_a_certificate() -> None:
    pair = Pair(mutual(OPTIONAL), client=client()).greet()
    c = pair.client
    pair.feed(flight(pair, c.add(c.certificate_message(()))))
    pair.engine.trust_clients(other_root().pem)
    pair.feed(flight(pair, c.add(c.finished_message())))
    assert pair.engine.event(0) == "established"


def test_the_generation_stops_at_its_last() -> None:
    made = mutual()
    made._server.clients.generation = 2**32 - 2
    made.trust_clients(root().pem)
    made.trust_clients(root().pem)
    assert made.client_generation() == 2**32 - 1
    pair = Pair(made, client=client(device())).establish()
    assert made.peer_verified(pair.slot) == 2**32 - 1


# Configuration.


def test_a_mode_needs_a_store() -> None:
    made = engine()
    for mode in (OPTIONAL, REQUIRED):
        with pytest.raises(Refused) as refused:
            made.client_auth_mode(mode)
        assert refused.value.refusal == "tls-server-client-store"
    made.client_auth_mode(0)
    for mode in (-1, 3):
        with pytest.raises(ValueError):
            made.client_auth_mode(mode)
    assert made.client_generation() == 0
    made.trust_clients(root().pem)
    made.client_auth_mode(OPTIONAL)


# Rooms.


@pytest.mark.parametrize("resting", [0, 1])
def test_a_small_leaf_moves_to_its_room_and_the_area_goes_back(resting: int) -> None:
    made = mutual(slots=4, areas=1)
    made.set_resting(resting)
    owns = [device(serial=100 + i) for i in range(4)]
    pairs = [Pair(made, i, client(own)).establish() for i, own in enumerate(owns)]
    for i, own in enumerate(owns):
        assert not made.holds_area(i)
        has_identity(made, own, i)
    for pair, own in zip(pairs, owns, strict=True):
        # The area comes back for half a record, and the identity is still the room's.
        record = pair.client.send(b"half")
        pair.feed(record[:9])
        assert made.holds_area(pair.slot)
        has_identity(made, own, pair.slot)
        pair.feed(record[9:])
        assert pair.recv() == b"half"
        has_identity(made, own, pair.slot)


def test_a_large_leaf_keeps_its_area_for_the_connections_life() -> None:
    made = mutual(slots=3, areas=1)
    own = big_leaf()
    pair = Pair(made, 0, client(own)).establish()
    assert made.holds_area(0) and made.areas_free() == 0
    with pytest.raises(Refused):
        made.serve(1, NOW_MS)
    for text in (b"one", b"two"):
        pair.feed(pair.client.send(text))
        assert pair.recv() == text
        has_identity(made, own)
    made.drop(0)
    assert made.residue() == 0 and made.areas_free() == 1
    Pair(made, 1, client(device())).establish()
    assert not made.holds_area(1)


def test_a_leaf_of_just_a_room_is_kept_and_one_byte_more_is_not() -> None:
    def of_size(size: int) -> Made:
        pad = 1200
        while True:
            extra = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4.5"), bytes(pad))
            made = device(extra=[(extra, False)])
            if len(made.der) == size:
                return made
            pad += size - len(made.der)

    for size, kept in ((ROOM_LEN, True), (ROOM_LEN + 1, False)):
        made = mutual(slots=2, areas=2)
        made.set_resting(0)
        own = of_size(size)
        Pair(made, 0, client(own)).establish()
        assert made.holds_area(0) is not kept
        has_identity(made, own)


@pytest.mark.parametrize("large", [False, True])
def test_a_failure_forgets_the_identity_before_its_alert_is_taken(large: bool) -> None:
    made = mutual(slots=2, areas=1)
    pair = Pair(made, 0, client(big_leaf() if large else device())).establish()
    pair.feed(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert made.failure(0) == "tls-bad-record-mac"
    no_identity(made)
    pair.take()
    no_identity(made)
    assert not made.holds_area(0)
    assert made.residue() == 0


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("resting", [0, 1])
def test_the_transports_end_forgets_the_identity(large: bool, resting: int) -> None:
    made = mutual(slots=2, areas=1)
    made.set_resting(resting)
    Pair(made, 0, client(big_leaf() if large else device())).establish()
    made.eof(0)
    assert made.failure(0) == "tls-peer-closed"
    no_identity(made)
    assert made.residue() == 0


def test_the_transports_end_forgets_the_identity_with_no_area_free() -> None:
    made = mutual(slots=2, areas=1)
    Pair(made, 0, client(device())).establish()
    made.serve(1, NOW_MS)
    made.eof(0)
    no_identity(made)
    assert made.residue() == 0


def test_a_closed_connection_keeps_its_identity_until_it_is_dropped() -> None:
    made = mutual(slots=2, areas=1)
    own = device()
    pair = Pair(made, 0, client(own)).establish()
    pair.feed(pair.client.close_notify())
    assert made.event(0) == "closed"
    has_identity(made, own)
    made.eof(0)
    has_identity(made, own)
    made.drop(0)
    assert made.residue() == 0


def test_a_slots_next_connection_has_nothing_of_the_last() -> None:
    made = mutual(OPTIONAL, slots=2, areas=1)
    long = device(san=[x509.DNSName(f"a-long-name-{i}.example") for i in range(20)])
    Pair(made, 0, client(long)).establish()
    made.drop(0)
    assert made.residue() == 0
    pair = Pair(made, 0, client()).establish()
    no_identity(made)
    made.drop(pair.slot)
    short = device()
    Pair(made, 0, client(short)).establish()
    has_identity(made, short)


def place(made: Engine, slot: int, offset: int) -> int:
    """Where a byte of a slot's room lies in the map."""
    pieces = made._pool.rooms._pieces(slot, ROOM_LEN)
    return next(start + offset - at for at, start, end in pieces if offset - at < end - start)


def test_residue_counts_what_is_left_in_a_room() -> None:
    made = mutual(slots=3, areas=1)
    own = device()
    Pair(made, 1, client(own)).establish()
    rooms = made._pool._rooms
    for slot, offsets in ((1, (len(own.der), 1023, 1024, ROOM_LEN - 1)), (0, (0, 700)), (2, (0,))):
        for offset in offsets:
            at = place(made, slot, offset)
            assert rooms[at] == 0
            rooms[at] = 1
            assert made.residue() == 1
            rooms[at] = 0
    assert made.residue() == 0


def test_rooms_do_not_overlap() -> None:
    made = mutual(slots=3, areas=1)
    every = [place(made, slot, offset) for slot in range(3) for offset in range(ROOM_LEN)]
    assert sorted(every) == list(range(3 * ROOM_LEN))


@pytest.mark.parametrize("length", [1, 255, 256, 257, 1000, ROOM_LEN])
def test_a_room_gives_back_what_it_keeps_and_nothing_when_cleared(length: int) -> None:
    made = mutual(slots=3, areas=1)
    rooms = made._pool.rooms
    leaf_bytes = bytes(1 + i % 255 for i in range(length))
    for slot in range(3):
        rooms.keep(slot, memoryview(leaf_bytes))
    for slot in range(3):
        assert rooms.leaf(slot, length) == leaf_bytes
        assert rooms.nonzero_past(slot, length) == 0
        assert rooms.nonzero_past(slot, 0) == length
        rooms.clear(slot, length)
        assert rooms.nonzero_past(slot, 0) == 0
    assert made.residue() == 0


def test_closing_wipes_the_rooms() -> None:
    made = mutual(slots=2, areas=1)
    Pair(made, 0, client(device())).establish()
    view = made._pool._rooms[:]
    assert bytes(view).strip(b"\0")
    made.close()
    assert not bytes(view).strip(b"\0")


def test_a_handshake_that_fails_at_each_message_leaves_nothing() -> None:
    def certificate(c: Client) -> bytes:
        return c.add(c.certificate_message())

    def verify(c: Client) -> bytes:
        return c.add(c.certificate_verify_message())

    for steps in ((), (certificate,), (certificate, verify)):
        pair, c = wrong()
        data = b"".join(step(c) for step in steps)
        if data:
            pair.feed(flight(pair, data))
        pair.fails(flight(pair, message(codes.NEW_SESSION_TICKET, b"")), UNEXPECTED, 10, KEY)
        pair.engine.drop(0)
        assert pair.engine.residue() == 0


# Python's ssl.


def pem_of(made: Made) -> bytes:
    assert made.key is not None
    private = made.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.pem + private


@pytest.mark.parametrize("kind", KINDS)
def test_pythons_ssl_presents_each_kind(kind: str, tmp_path) -> None:
    own = device(own=key("leaf", kind))
    path = tmp_path / "client.pem"
    path.write_bytes(pem_of(own))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(path)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = context.wrap_bio(incoming, outgoing, server_hostname="server.example")
    made = mutual()
    made.serve(0, NOW_MS)
    out = bytearray(1 << 16)
    for _ in range(3):
        try:
            peer.do_handshake()
            break
        except ssl.SSLWantReadError:
            data = outgoing.read()
            assert made.feed(0, data) == len(data)
            incoming.write(out[: made.take(0, out)])
    data = outgoing.read()
    assert made.feed(0, data) == len(data)
    has_identity(made, own)
    assert made.residue() == 0
