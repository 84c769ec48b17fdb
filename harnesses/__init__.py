"""What the fuzzers run: one plain function over bytes a harness, usable with no fuzzer installed.

A harness called NAME is the module `harnesses.NAME` with `run(data) -> outcome` and `MAX_LEN`, the
folder `corpus/NAME/` and the file `corpus/NAME.outcomes`. A test checks that the three go together.
"""

HARNESSES: tuple[str, ...] = (
    "hello",
    "server",
    "keyed",
    "ticket",
    "clientauth",
    "pool",
    "differential",
)
