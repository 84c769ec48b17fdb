"""What every test shares: the profiles of Hypothesis, and a word on the recordings at the end.

With CI in the environment (mutation runs set it too) examples are the same every time; a nightly
run asks for more of them with HYPOTHESIS_PROFILE=nightly.
"""

import os
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

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
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "laptop")
)

REPLAYED = re.compile(r"tests/peers/test_recordings\.py::(\w+)\[(\w+)/")
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
