"""What every test shares: the profiles of Hypothesis, and what is told at the end.

With CI in the environment (mutation runs set it too) examples are the same every time; a nightly
run asks for more of them with HYPOTHESIS_PROFILE=nightly.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

# What a test runs is no news for the summary page of the job that runs the tests.
os.environ.pop("GITHUB_STEP_SUMMARY", None)

settings.register_profile("laptop", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile(
    "nightly",
    deadline=None,
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow],
)
# Every verdict repeats. A mutant is killed by the first example that fails, not by the smallest.
settings.register_profile(
    "mutation",
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "laptop")
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A server keeps its signals waiting to its process's end; here the next test needs them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


REPLAYED = re.compile(r"tests/peers/recorder/test_record\.py::(\w+)\[(\w+)/")
WAYS = {
    "test_it_is_replayed_byte_for_byte": "byte for byte",
    "test_an_honest_one_is_the_same_one_byte_at_a_time": "one byte at a time",
    "test_it_is_the_same_in_random_pieces": "in random pieces",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many recorded conversations were replayed, by suite; nothing when none was."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in WAYS}
    for report in terminalreporter.stats.get("passed", []):
        found = REPLAYED.match(report.nodeid)
        if found and found[1] in counts:
            counts[found[1]][found[2]] += 1
    for name, suites in counts.items():
        if suites:
            told = ", ".join(f"{suite} {count}" for suite, count in sorted(suites.items()))
            terminalreporter.write_line(f"replayed {WAYS[name]}: {told}")
    machines = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in report.user_properties
        if name == "pool machine"
    ]
    if machines:
        terminalreporter.write_line(f"the state machine: {covered(machines)}")


def covered(machines: list[dict[str, Any]]) -> str:
    """What the pool's state machines did together: each shape of the pool has its own states."""
    steps = sum(one["steps"] for one in machines)
    seconds = sum(one["seconds"] for one in machines)
    states = sum(one["states"] for one in machines)
    moves = len({move for one in machines for move in one["moves"]})
    live = sum(one["handshakes"] for one in machines)
    return (
        f"{steps:,} steps, {steps / max(seconds, 0.001):,.0f} a second; {states:,} states of the "
        f"pool, {moves:,} moves of a connection; {live:,} handshakes by Python's ssl"
    )
