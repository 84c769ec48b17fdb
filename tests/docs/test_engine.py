"""docs/engine.md says of every call what it takes, answers and raises, and nothing else."""

import inspect
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine as package
from engine import Engine, Event, Refused
from peers.liar.identities import NOW_MS, make
from tests.engine.pairs import ENTROPY, NAME, Pair, engine, identity

PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()
OWN = identity()
PEM = OWN.chain_pem, OWN.key_pem


def entries(page: str) -> dict[str, tuple[str, str]]:
    """Each call of the page: its signature, and what is said of it."""
    parts = re.split(r"^(#+ .*)\n", page, flags=re.MULTILINE)
    found = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        if call := re.fullmatch(r"#### `Engine\.(\w+)(\(.*)`", heading):
            found[call[1]] = call[2], text
    return found


def raised(text: str) -> list[str]:
    """What the list under a call says that it raises, in that order."""
    items = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    names = [re.match(r"((?:`[^`]+`,?\s+)*`[^`]+`)(?::|, a )", item) for item in items]
    return [name for found in names if found for name in re.findall(r"`([^`]+)`", found[1])]


def signature(name: str) -> str:
    """A call's own, with names as the page writes them."""
    found = inspect.signature(getattr(Engine, name), eval_str=True)
    kept = [parameter for parameter in found.parameters.values() if parameter.name != "self"]
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", str(found.replace(parameters=kept)))


CALLS = entries(PAGE)
PUBLIC = sorted(name for name in dir(Engine) if not name.startswith("_"))
PARAMETERS = {name: list(inspect.signature(getattr(Engine, name)).parameters) for name in PUBLIC}
WITH_SLOT = [name for name in PUBLIC if "slot" in PARAMETERS[name]]


def test_every_public_name_is_on_the_page_and_no_other() -> None:
    assert sorted(CALLS) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_call_has_the_signature_that_the_page_has(name: str) -> None:
    assert CALLS[name][0] == signature(name)


def test_the_page_has_what_the_package_exports() -> None:
    exports = PAGE.partition("It exports\n")[2].partition("## ")[0]
    assert sorted(re.findall(r"`(\w+)`", exports.partition("\n## ")[0])) == sorted(
        {*package.__all__, "client_auth_mode", "suite", "group", "recv"}
    )


def test_a_call_that_is_not_there_would_be_seen() -> None:
    page = (
        "## Calls\n\n#### `Engine.fly(slot: int) -> None`\n\nAway.\n\n- `ValueError`: no wings.\n"
    )
    ((name, (arguments, text)),) = entries(page).items()
    assert (name, arguments, raised(text)) == ("fly", "(slot: int) -> None", ["ValueError"])


# What is written with each call, in the order of the page.


def full() -> Engine:
    made = engine()
    for _ in range(15):
        made.add_identity(*PEM, [], NOW_MS)
    return made


OTHERS = {
    "tls-server-chain": (PEM[0] + PEM[1], PEM[1]),
    "tls-server-key-type": (make([NAME], "p384").chain_pem, PEM[1]),
    "tls-server-key-format": (PEM[0], PEM[1] * 2),
    "tls-server-key-mismatch": (PEM[0], make([NAME], label="another").key_pem),
}
"""A chain and a key that are refused, by the tag."""


def adding(tag: str, place: Callable[..., object]) -> Callable[[], object]:
    """Give a call that places an identity one that is refused so."""

    def act() -> object:
        pem = OTHERS.get(tag, PEM)
        names = ["a..b"] if tag == "tls-server-names" else [NAME]
        return place(*pem, names, 1 << 60 if tag == "tls-server-cert-expired" else NOW_MS)

    return act


def add(*pem_names_now: Any) -> object:
    return engine().add_identity(*pem_names_now)


def replace(chain: bytes, key: bytes, names: list[str], now_ms: int) -> object:
    return engine().replace_identity(0, chain, key, now_ms, names)


def unseeded() -> Engine:
    made = Engine.server(1)
    made.add_identity(*PEM, [NAME], NOW_MS)
    return made


def busy() -> Engine:
    made = engine(2, 1)
    made.serve(0, NOW_MS)
    return made


PLACED = [
    "tls-server-chain",
    "tls-server-names",
    "tls-server-key-type",
    "tls-server-key-format",
    "tls-server-key-mismatch",
    "tls-server-cert-expired",
]
LATE = 1 << 62
Action = Callable[[], object]
RAISES: dict[str, list[tuple[str, Action]]] = {
    "server": [
        ("ValueError", lambda: Engine.server(4, 5)),
        ("ValueError", lambda: Engine.server(4, signing="random")),
        ("OSError", lambda: Engine.server(10**12)),
        ("OverflowError", lambda: Engine.server(10**18)),
    ],
    "seed": [("ValueError", lambda: engine().seed(bytes(31)))],
    "add_identity": [
        (
            "Refused(tls-server-identities-full)",
            lambda: full().add_identity(*PEM, [NAME], NOW_MS),
        ),
        *((f"Refused({tag})", adding(tag, add)) for tag in PLACED),
        ("TypeError", lambda: engine().add_identity(*PEM, NAME, NOW_MS)),
    ],
    "replace_identity": [
        ("IndexError", lambda: engine().replace_identity(1, *PEM, NOW_MS)),
        *((f"Refused({tag})", adding(tag, replace)) for tag in PLACED),
        ("TypeError", lambda: engine().replace_identity(0, *PEM, NOW_MS, NAME)),
    ],
    "set_alpn": [
        ("Refused(tls-server-alpn-list)", lambda: engine().set_alpn(["h2", "h2"])),
        ("TypeError", lambda: engine().set_alpn("h2")),
        ("UnicodeEncodeError", lambda: engine().set_alpn(["\ud800"])),
    ],
    "set_tickets": [("Refused(tls-server-ticket-config)", lambda: engine().set_tickets(9))],
    "set_ticket_keys": [
        ("Refused(tls-server-ticket-key)", lambda: engine().set_ticket_keys([], NOW_MS)),
        ("ValueError", lambda: engine().set_ticket_keys([bytes(32)], LATE)),
        ("TypeError", lambda: engine().set_ticket_keys(bytes(32), NOW_MS)),  # type: ignore[arg-type]
    ],
    "rotate_ticket_key": [
        ("Refused(tls-no-entropy)", lambda: Engine.server(1).rotate_ticket_key(NOW_MS)),
        ("ValueError", lambda: engine().rotate_ticket_key(LATE)),
    ],
    "set_time": [("ValueError", lambda: engine().set_time(LATE))],
    "trust_clients": [
        ("Refused(tls-server-client-store)", lambda: engine().trust_clients(b"")),
    ],
    "client_auth_mode": [
        ("ValueError", lambda: engine().client_auth_mode(3)),
        ("Refused(tls-server-client-store)", lambda: engine().client_auth_mode(1)),
    ],
    "set_resting": [("ValueError", lambda: engine().set_resting(3))],
    "serve": [
        ("ValueError", lambda: busy().serve(0, NOW_MS)),
        ("ValueError", lambda: engine().serve(0, LATE)),
        ("Refused(tls-no-entropy)", lambda: unseeded().serve(0, NOW_MS)),
        ("Refused(tls-server-chain)", lambda: bare().serve(0, NOW_MS)),
        ("Refused(tls-pool)", lambda: busy().serve(1, NOW_MS)),
    ],
    "take": [
        ("ValueError", lambda: busy().take(0, bytearray())),
        ("TypeError", lambda: busy().take(0, memoryview(b"read-only"))),
    ],
    "recv": [
        ("ValueError", lambda: busy().recv(0, bytearray())),
        ("TypeError", lambda: busy().recv(0, memoryview(b"read-only"))),
    ],
}


def bare() -> Engine:
    made = Engine.server(1)
    made.seed(ENTROPY)
    return made


CASES = [
    (name, place, what, act)
    for name, cases in RAISES.items()
    for place, (what, act) in enumerate(cases)
]


def test_the_page_has_what_is_raised_here_and_nothing_else() -> None:
    said = {name: raised(text) for name, (_, text) in CALLS.items()}
    assert {name: what for name, what in said.items() if what} == {
        name: [what for what, _ in cases] for name, cases in RAISES.items()
    }


@pytest.mark.parametrize(
    ("what", "act"),
    [(what, act) for _, _, what, act in CASES],
    ids=[f"{name}-{place}-{what}" for name, place, what, _ in CASES],
)
def test_what_the_page_says_is_raised(what: str, act: Action) -> None:
    kind, _, tag = what.rstrip(")").partition("(")
    with pytest.raises(Exception) as caught:
        act()
    assert type(caught.value).__name__ == kind
    if isinstance(caught.value, Refused):
        assert caught.value.refusal.tag == tag


ARGUMENTS: dict[str, object] = {
    "slot": 0,
    "data": b"x",
    "out": bytearray(9),
    "now_ms": NOW_MS,
    "chain_pem": PEM[0],
    "key_pem": PEM[1],
    "names": [NAME],
    "identity": 0,
    "protocols": ["h2"],
    "count": 1,
    "lifetime_s": 1,
    "keys": [bytes(32)],
    "pem": b"",
    "mode": 0,
    "entropy": ENTROPY,
}


def with_all(made: Engine, name: str, **others: object) -> object:
    """A call with arguments that are right, but for those given."""
    wanted = inspect.signature(getattr(made, name)).parameters
    return getattr(made, name)(**{key: {**ARGUMENTS, **others}[key] for key in wanted})


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "server"])
def test_every_call_of_a_closed_engine_is_a_value_error(name: str) -> None:
    made = engine()
    made.close()
    with pytest.raises(ValueError, match="the engine is closed"):
        with_all(made, name)


@pytest.mark.parametrize("name", WITH_SLOT)
def test_a_slot_that_is_not_there_is_an_index_error(name: str) -> None:
    for slot in (-1, 5):
        with pytest.raises(IndexError):
            with_all(engine(), name, slot=slot)


@pytest.mark.parametrize("name", WITH_SLOT)
def test_a_free_slot_is_a_value_error_but_for_two_calls(name: str) -> None:
    made = engine()
    if name in ("serve", "event"):
        with_all(made, name)
    else:
        with pytest.raises(ValueError, match="free"):
            with_all(made, name)


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name in PUBLIC for argument in PARAMETERS[name] if argument in ARGUMENTS],
)
def test_an_argument_of_another_type_is_a_type_error(name: str, argument: str) -> None:
    made = busy()
    if name == "serve" and argument == "now_ms":
        made.drop(0)
    with pytest.raises(TypeError):
        with_all(made, name, **{argument: object()})


# States and events.


def test_an_honest_connection_has_the_events_of_the_page() -> None:
    table = re.search(r"\| call \| the next event \|\n\| --- \| --- \|\n((?:\|.*\n)+)", PAGE)
    assert table
    rows = [tuple(re.findall(r"`(\w+)`", line)) for line in table[1].splitlines()]
    made, out = engine(), bytearray(1 << 16)
    pair = Pair(made)
    client = pair.client

    def take() -> None:
        client.read(bytes(out[: made.take(0, out)]))

    steps: list[tuple[str, Callable[[], object]]] = [
        ("serve", lambda: None),
        ("feed", lambda: made.feed(0, client.hello())),
        ("take", take),
        ("feed", lambda: made.feed(0, client.finish())),
        ("send", lambda: made.send(0, b"hello")),
        ("take", take),
        ("feed", lambda: made.feed(0, client.close_notify())),
        ("finish", lambda: made.finish(0)),
        ("take", take),
        ("drop", lambda: made.drop(0)),
    ]
    seen = []
    for name, step in steps:
        step()
        seen.append((name, str(made.event(0))))
    assert seen == rows


def test_the_events_are_those_of_the_page() -> None:
    table = re.search(r"\| event \| when .*\n\| -.*\n((?:\|.*\n)+)", PAGE)
    assert table
    assert re.findall(r"^\| `(\w+)`", table[1], re.MULTILINE) == [str(event) for event in Event]


def test_an_empty_queue_takes_as_much_as_the_page_says() -> None:
    pair = Pair(engine()).establish()
    taken = pair.engine.send(0, bytes(100_000))
    assert f"{taken:,} bytes of plaintext" in PAGE
    assert pair.engine.send(0, b"more") == 0


# An identity.

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


@needs_openssl
def test_the_commands_of_the_page_make_an_identity_and_its_lines_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    reading = re.search(r"```python\n(from pathlib.*?)```", PAGE, re.DOTALL)
    assert commands and reading
    subprocess.run(["sh", "-ec", commands[1]], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    made = Engine.server(1)
    made.seed(ENTROPY)
    exec(reading[1], {"tls": made})
    pair = Pair(made)
    pair.feed(pair.client.hello())
    assert made.event(0) == "want_write"
