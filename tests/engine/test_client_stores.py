"""The clock and the store that judge a client: given, moved and replaced at each moment."""

from __future__ import annotations

import pytest

from engine import Refused
from peers.liar.identities import NOW_MS
from tests.engine.mutual_pairs import (
    KEY,
    OPTIONAL,
    REQUIRED,
    client,
    device,
    device_of,
    flight,
    has_identity,
    mutual,
    no_identity,
    other_root,
    root,
    wrong,
)
from tests.engine.pairs import Pair, engine
from tests.engine.x509.chain_maker import NOW

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


def test_a_store_replaced_before_the_certificate_judges_it() -> None:
    pair, c = wrong()
    pair.engine.trust_clients(other_root().pem)
    pair.fails(c.finish(), "x509-unknown-issuer", 48, KEY)

    pair, c = wrong()
    pair.engine.trust_clients(other_root().pem + root().pem)
    pair.answer(c.finish())
    has_identity(pair.engine, device_of(c), generation=2)


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


def test_a_store_is_bytes() -> None:
    made = engine()
    assert made.trust_clients(bytearray(root().pem)) == 1  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        made.trust_clients(root().pem.decode())  # type: ignore[arg-type]
    assert made.client_generation() == 1
    made.close()
    for call in (made.client_generation, lambda: made.trust_clients(root().pem)):
        with pytest.raises(ValueError, match="closed"):
            call()


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
