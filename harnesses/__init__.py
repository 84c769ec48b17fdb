"""What the fuzzers run: one plain function over bytes a harness, usable with no fuzzer installed.

A harness called NAME is

    harnesses/NAME.py                   `run(data) -> outcome` and `MAX_LEN`
    harnesses/formats/NAME.py           what the bytes say: `decode`, and `encode` for the seeds
    harnesses/models/NAME.py            what must come of it, read a second time, where it is
    harnesses/seeds/NAME.py             the handmade inputs: `cases`
    harnesses/targets/NAME_fuzzer.py    the fuzz target as a file of its own
    corpus/NAME/, corpus/NAME.outcomes  the committed inputs, and what each ends as

and a name in HARNESSES, from which every command takes it. A test checks that they go together.
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

#: Those whose input is what a client sends, byte for byte: it has no format of ours.
WITHOUT_FORMAT: tuple[str, ...] = ("hello", "differential")
