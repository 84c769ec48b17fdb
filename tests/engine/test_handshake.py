"""Full handshakes: suites, groups, a retry, names, protocols; the same in any pieces."""

from __future__ import annotations

import contextlib
import itertools
import random
import ssl

import pytest

from engine import Engine, Refused
from engine.codepoints import SUITES_WITH_AES, SUITES_WITHOUT_AES
from peers.liar import Client
from peers.liar.identities import NOW_MS, make
from tests.engine.pairs import NAME, Pair, engine, identity

SUITES = (0x1301, 0x1302, 0x1303)
GROUPS = (29, 23, 24)


@pytest.mark.parametrize(("suite", "group"), list(itertools.product(SUITES, GROUPS)))
@pytest.mark.parametrize("retried", [False, True])
def test_every_suite_with_every_group_with_and_without_a_retry(
    suite: int, group: int, retried: bool
) -> None:
    made = engine()
    shares = () if retried else (group,)
    client = Client(b"matrix", now_ms=NOW_MS, suites=[suite], groups=[group], shares=shares)
    pair = Pair(made, client=client).establish()
    assert (made.suite(0), made.group(0)) == (suite, group)
    assert made.retried(0) is retried
    assert made.server_name(0) == NAME.encode()
    for size in (1, 100, 20_000):
        pair.feed(client.send(bytes(size)))
        assert len(pair.recv()) == size
        assert made.send(0, bytes(size)) == size
        client.read(pair.take())
    assert len(client.received) == 20_101
    pair.feed(client.key_update(1))
    assert made.finish(0)
    client.read(pair.take())
    pair.feed(client.close_notify())
    assert made.event(0) == "closed"
    assert client.state == "closed"


@pytest.mark.parametrize(("aes", "order"), [(True, SUITES_WITH_AES), (False, SUITES_WITHOUT_AES)])
def test_the_order_of_suites_is_the_servers(aes: bool, order: tuple[int, ...]) -> None:
    for first in range(3):
        offered = sorted(order[first:])
        made = engine(1, 1, hardware_aes=aes)
        Pair(made, client=Client(b"order", now_ms=NOW_MS, suites=offered)).establish()
        assert made.suite(0) == order[first]


def test_the_first_of_the_servers_groups_with_a_share_is_taken_before_a_better_without() -> None:
    made = engine()
    client = Client(b"groups", now_ms=NOW_MS, groups=[29, 24, 23], shares=[24, 23])
    Pair(made, client=client).establish()
    assert made.group(0) == 23
    assert not made.retried(0)


def test_a_retry_asks_for_the_first_group_in_common() -> None:
    made = engine()
    client = Client(b"groups", now_ms=NOW_MS, groups=[24, 23], shares=[])
    Pair(made, client=client).establish()
    assert made.group(0) == 23
    assert made.retried(0)


def test_without_a_session_id_no_change_cipher_spec_goes_out() -> None:
    made = engine()
    client = Client(b"compat", now_ms=NOW_MS, session_id=b"")
    pair = Pair(made, client=client)
    pair.feed(client.hello())
    said = pair.take()
    assert b"\x14\x03\x03\x00\x01\x01" not in said
    client.read(said)
    pair.answer(client.finish())
    assert made.event(0) == "established"


@pytest.mark.parametrize("asked", ["a.example", "x.b.example", "c.example", None])
def test_the_identity_is_chosen_by_name_and_an_unknown_one_gets_the_default(
    asked: str | None,
) -> None:
    made = engine()
    own = {"a.example": make(("a.example",)), "x.b.example": make(("*.b.example",))}
    for served, one in zip(("a.example", "*.b.example"), own.values(), strict=True):
        made.add_identity(one.chain_pem, one.key_pem, [served], NOW_MS)
    client = Client(b"sni", now_ms=NOW_MS, server_name=asked)
    Pair(made, client=client).establish()
    expected = own.get(asked or "", identity())
    assert client.chain[0] == expected.der
    assert made.server_name(0) == (None if asked is None else asked.encode())


def test_a_replaced_identity_serves_the_connections_that_come_after() -> None:
    made = engine()
    early = Pair(made, 0).greet()
    other = make((NAME, "second.example"))
    made.replace_identity(0, other.chain_pem, other.key_pem, NOW_MS)
    early.answer(early.client.finish())
    late = Pair(made, 1).establish()
    assert early.client.chain[0] == identity().der
    assert late.client.chain[0] == other.der


def test_a_refused_replacement_changes_nothing() -> None:
    made = engine()
    other = make(("other.example",))
    with pytest.raises(Refused) as refused:
        made.replace_identity(0, identity().chain_pem, other.key_pem, NOW_MS)
    assert refused.value.refusal == "tls-server-key-mismatch"
    pair = Pair(made).establish()
    assert pair.client.chain[0] == identity().der


def test_a_signature_that_does_not_check_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.identities.Identity.check", lambda *_: False)
    pair = Pair(engine())
    pair.feed(pair.client.hello())
    assert pair.engine.failure(0) == "tls-server-sign-check"
    assert pair.take() == b"\x15\x03\x03\x00\x02\x02\x50"


def test_the_check_of_the_signature_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.identities.Identity.check", lambda *_: False)
    Pair(engine(1, 1, check_signature=False)).establish()


def test_hedged_signatures_differ_and_deterministic_ones_do_not() -> None:
    def flight(signing: str) -> bytes:
        made = Engine.server(1, signing=signing)
        made.seed(bytes(32))
        own = identity()
        made.add_identity(own.chain_pem, own.key_pem, [NAME], NOW_MS)
        pair = Pair(made)
        pair.feed(pair.client.hello())
        return pair.take()

    assert flight("deterministic") == flight("deterministic")
    assert flight("hedged") != flight("hedged")


# -- the same bytes --------------------------------------------------------------------------


def script(client: Client, pair: Pair, step: int) -> tuple[bytes, bytes]:
    """A whole conversation in pieces of `step` bytes; what the server said and received."""
    said = b""
    got = b""

    def tell(data: bytes) -> None:
        nonlocal said, got
        pair.feed(data, step)
        answer = pair.take()
        said += answer
        got += pair.recv()
        client.read(answer)

    tell(client.hello())
    tell(client.hello())
    tell(client.finish())
    tell(client.send(b"one") + client.send(b"two", padding=300) + client.key_update(1))
    pair.engine.send(pair.slot, b"answer")
    tell(client.send(b"three" * 5000))
    tell(client.close_notify())
    return said, got


def retrying(seed: bytes = b"pieces") -> Client:
    return Client(seed, now_ms=NOW_MS, groups=(29, 23), shares=())


@pytest.mark.parametrize("step", [1, 2, 5, 6, 17, 1000])
def test_the_same_bytes_in_other_pieces_give_the_same(step: int) -> None:
    whole = script(client := retrying(), Pair(engine(), client=client), 1 << 20)
    pieces = script(client := retrying(), Pair(engine(), client=client), step)
    assert pieces == whole
    assert whole[1] == b"onetwo" + b"three" * 5000


@pytest.mark.parametrize("seed", range(5))
def test_a_failure_is_the_same_in_any_pieces(seed: int) -> None:
    draw = random.Random(seed)
    client = retrying()
    hello = bytearray(client.hello())
    hello[draw.randrange(len(hello))] ^= 1 << draw.randrange(8)
    ends = set()
    for step in (1, 3, 11, 1 << 20):
        pair = Pair(engine(), client=retrying())
        pair.feed(bytes(hello), step)
        made = pair.engine
        ends.add((made.event(0), made.failure(0), pair.take(), made.event(0)))
    assert len(ends) == 1


def test_other_slots_traffic_does_not_change_a_connections_bytes() -> None:
    alone = engine(3, 3)
    script(client := retrying(b"a"), Pair(alone, 0, client), 1 << 20)
    first = script(client := retrying(b"b"), Pair(alone, 1, client), 1 << 20)
    busy = engine(3, 3)
    one = Pair(busy, 0, retrying(b"a"))
    two = Pair(busy, 1, client := retrying(b"b"))
    one.feed(one.client.hello())
    other = Pair(busy, 2).establish()
    other.feed(other.client.send(b"noise"))
    assert script(client, two, 1 << 20) == first


def test_two_connections_never_share_a_random_or_a_share() -> None:
    made = engine(2, 2)
    hellos = []
    for slot in range(2):
        pair = Pair(made, slot)
        pair.feed(pair.client.hello())
        hellos.append(pair.take()[:120])
    assert hellos[0][11:43] != hellos[1][11:43]
    assert hellos[0][-30:] != hellos[1][-30:]


# -- a peer that is not ours -----------------------------------------------------------------


def test_pythons_ssl_connects_and_echoes() -> None:
    made = engine()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=NAME)
    made.serve(0, NOW_MS)
    room = bytearray(1 << 16)
    for _ in range(3):
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        made.feed(0, outgoing.read())
        incoming.write(room[: made.take(0, room)])
    assert made.event(0) == "established"
    client.write(b"hello")
    made.feed(0, outgoing.read())
    n = made.recv(0, room)
    made.send(0, room[:n])
    incoming.write(room[: made.take(0, room)])
    assert client.read() == b"hello"
