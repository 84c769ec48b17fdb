"""Which recording reaches which refusal and which verdict on a ticket.

    python -m peers.recorder.refusals             what nothing reaches
    python -m peers.recorder.refusals --update    writes the pages as well

Tags, alerts and when each is given are the engine's table; where it is reached
is read from the recordings. The contract's own table (docs/contract.md, 1.2) is
made of the same rows. Exit codes: 0 all is reached and the pages are right,
1 otherwise, 2 the command line cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from engine import tickets
from engine.codepoints import ALERT_NAMES
from engine.refusals import STATES, Refusal
from peers.bounds import ARGUMENT, Bound
from peers.bounds import TABLE as BOUNDS
from peers.recorder.format import ROOT, Call, Eof, Exchange, Recording, all_names, load

DOCS = ROOT.parent / "docs"
PAGE = "refusals.md"
CONTRACT = "contract.md"
SUITES = ("handshake", "tickets", "clients")
#: So many recordings are named in a row of the table; the folders hold the others.
NAMED = 3


class Argued(NamedTuple):
    """A refusal that no conversation can reach: why, and the test that does, if there is one."""

    tag: str
    why: str
    test: str = ""


ARGUED = (
    Argued(
        "tls-server-sign-check",
        "it takes a signer that faults, which no peer can cause; a test plants one",
        "tests/engine/test_handshake.py::test_a_signature_that_does_not_check_is_never_sent",
    ),
    Argued(
        "tls-internal-error",
        "it is a defect of the engine itself; a test makes a handler raise",
        "tests/engine/test_calls.py::test_a_fault_of_ours_ends_the_connection_and_is_raised_with_empty_frames",
    ),
    Argued(
        "tls-role",
        "there is no client role yet, so no call belongs to another role",
    ),
)

#: The verdicts on a ticket, in the order in which the rules are judged, and what each means.
VERDICTS = {
    "none": "the ClientHello has no pre_shared_key",
    "off": "the server makes no tickets",
    "no-psk-dhe-ke": "the client does not list psk_dhe_ke",
    "unknown": "not our key, a key past its time, or a size that no ticket has",
    "tampered": "it does not open",
    "format": "it opens and is no ticket",
    "auth": "its connection was authenticated otherwise, or certificates are required now",
    "expired": "its time is over",
    "age": "the client's age of it and the server's differ by more than 30 s",
    "name": "it is for another server name",
    "identity": "the leaf that would be sent now is another",
    "suite": "the suite's hash is another",
    "alpn": "the protocol is another",
    "resumed": "every rule accepts it, and the binder holds",
}


@dataclass
class Coverage:
    """The recordings that reach each tag and each verdict, in the order of the suites."""

    tags: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    verdicts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, recording: Recording) -> None:
        """Count the refusals and verdicts of a recording."""
        tags, verdicts = set(), set()
        for step in recording.steps:
            if isinstance(step, Call):
                tags.add(step.answer)
            elif isinstance(step, Exchange | Eof):
                words = step.state.split(" ")
                if words[0] == "failed":
                    tags.add(words[1])
                said = [w[7:] for w in words if w.startswith("ticket=")]
                # Before the hello is answered there is no verdict yet.
                verdicts.update(said or (["none"] if "suite=" in step.state else []))
        for tag in tags - {""}:
            self.tags[tag].append(recording.name)
        for verdict in verdicts:
            self.verdicts[verdict].append(recording.name)

    def unreached(self) -> list[str]:
        """Tags and verdicts that no recording reaches and nobody argues for, and stale arguments.

        An argument is stale when a recording reaches its tag after all.
        """
        argued = {one.tag for one in ARGUED}
        missing = [r.tag for r in Refusal if r.tag not in self.tags and r.tag not in argued]
        missing += [f"ticket={v}" for v in tickets.VERDICT_NAMES if v not in self.verdicts]
        missing += [f"argued, but reached: {tag}" for tag in sorted(argued & set(self.tags))]
        return missing


def measure(recordings: Iterable[Recording]) -> Coverage:
    """The refusals and verdicts of all these recordings."""
    found = Coverage()
    for recording in sorted(recordings, key=lambda r: SUITES.index(r.name.split("/")[0])):
        found.add(recording)
    return found


# The page.


def _counts(names: list[str]) -> Counter[str]:
    return Counter(name.split("/")[0] for name in names)


def _some(names: list[str]) -> list[str]:
    """A few of them: the first of each suite, then the next."""
    firsts = [next((n for n in names if n.startswith(f"{s}/")), "") for s in SUITES]
    chosen = [n for n in firsts if n]
    chosen += [n for n in names if n not in chosen]
    return chosen[:NAMED]


def _where(names: list[str]) -> str:
    links = [f"[{name}](../recordings/{name}.txt)" for name in _some(names)]
    more = len(names) - len(links)
    return ", ".join(links) + (f" and {more} more" if more > 0 else "")


def _argued(tag: str) -> str:
    one = next(a for a in ARGUED if a.tag == tag)
    return f"{one.why} (`{one.test}`)" if one.test else one.why


def _row(refusal: Refusal, coverage: Coverage, wire: bool) -> str:
    names = coverage.tags.get(refusal.tag)
    where = _where(names) if names else _argued(refusal.tag)
    if not wire:
        return f"| `{refusal.tag}` | {refusal.when} | {where} |"
    return f"| `{refusal.tag}` | {_alert(refusal)} | {refusal.when} | {where} |"


def _alert(refusal: Refusal) -> str:
    if refusal.of_a_call:
        return "raised"
    return "-" if refusal.alert is None else f"{ALERT_NAMES[refusal.alert]} {refusal.alert}"


def contract(text: str) -> str:
    """docs/contract.md with its table of refusals made anew."""
    head = "| tag | alert | when |\n| --- | --- | --- |\n"
    before, found, rest = text.partition(head)
    rows = "".join(f"| `{r.tag}` | {_alert(r)} | {r.when} |\n" for r in Refusal)
    return f"{before}{found}{rows}\n{rest.partition(chr(10) * 2)[2]}"


def page(coverage: Coverage, recordings: int) -> str:
    """The whole of docs/refusals.md."""
    lines = [
        "# Refusals",
        "",
        "Every way in which the engine says no. A tag is stable and public; the alert is the one "
        "that RFC 8446 §6",
        "names, and `-` is none. The last column says where a tag is reached: in so many of the "
        f"{recordings} recorded",
        "conversations ([recordings.md](recordings.md)), of which a few are named, or by which "
        "test and why by no conversation.",
        "",
        "This page is made by `python -m peers.recorder.refusals --update`; a test holds it to "
        "the recordings, and fails for",
        "a tag or a verdict that nothing reaches.",
        "",
        "## On a connection",
        "",
        "The connection fails, `failure` gives the tag, and the alert is sent.",
        "",
        "| tag | alert | when | reached in |",
        "| --- | --- | --- | --- |",
        *(_row(r, coverage, True) for r in Refusal if not r.of_a_call),
        "",
        "## From a call of the program's",
        "",
        "The call raises `Refused` and changes nothing; nothing goes on the wire.",
        "",
        "| tag | when | reached in |",
        "| --- | --- | --- |",
        *(_row(r, coverage, False) for r in Refusal if r.of_a_call),
        "",
        "## Verdicts on a ticket",
        "",
        "Not refusals: the connection goes on as a full handshake, and `ticket_verdict` says why. "
        "In the order in which the",
        "rules are judged:",
        "",
        "| verdict | when | reached in |",
        "| --- | --- | --- |",
    ]
    for verdict, when in VERDICTS.items():
        lines.append(f"| `{verdict}` | {when} | {_where(coverage.verdicts.get(verdict, []))} |")
    lines += ["", *_progress()]
    return "\n".join(lines) + "\n"


def _progress() -> list[str]:
    """The page's part on input that brings a connection no further."""
    words = {bound: bound.name.lower() for bound in Bound}
    return [
        "## Input without progress",
        "",
        "A peer may send any record again and again. Something ends each kind of it in each state "
        "(`peers/bounds.py`; a test",
        "tries every cell, `tests/engine/test_without_progress.py`):",
        "",
        *(f"- *{word}*: {bound.value}." for bound, word in words.items()),
        "",
        f"| | {' | '.join(STATES)} |",
        f"| --- |{' --- |' * len(STATES)}",
        *(
            f"| {kind} | {' | '.join(words[bound] for bound in bounds)} |"
            for kind, bounds in BOUNDS.items()
        ),
        "",
        *ARGUMENT,
    ]


def pages(coverage: Coverage, recordings: int, docs: Path = DOCS) -> dict[str, str]:
    """Each page by its name, as it must be."""
    text = (docs / CONTRACT).read_text(encoding="utf-8")
    return {PAGE: page(coverage, recordings), CONTRACT: contract(text)}


def table(coverage: Coverage) -> str:
    """The counts by suite, as a person reads them in a terminal."""
    rows: list[tuple[str, ...]] = [("", *SUITES)]
    for title, reached in (
        *((r.tag, coverage.tags.get(r.tag, [])) for r in Refusal),
        *((f"ticket={v}", coverage.verdicts.get(v, [])) for v in VERDICTS),
    ):
        counts = _counts(reached)
        rows.append((title, *(str(counts[suite] or "-") for suite in SUITES)))
    width = max(len(row[0]) for row in rows)
    return "\n".join(
        f"{row[0]:<{width}}" + "".join(f"  {cell:>9}" for cell in row[1:]) for row in rows
    )


def main(argv: list[str] | None = None, docs: Path = DOCS) -> int:
    """The command; an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m peers.recorder.refusals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--update", action="store_true", help="write the pages")
    args = parser.parse_args(argv)
    recordings = [load(name) for name in all_names()]
    coverage = measure(recordings)
    print(table(coverage))
    missing = coverage.unreached()
    for one in missing:
        print(f"not reached: {one}")
    stale = False
    for name, made in pages(coverage, len(recordings), docs).items():
        path = docs / name
        if path.is_file() and path.read_text(encoding="utf-8") == made:
            continue
        if args.update:
            path.write_text(made, encoding="utf-8")
            print(f"{name}: written")
        else:
            stale = True
            print(f"{name} is stale: make docs")
    return 1 if missing or stale else 0


if __name__ == "__main__":
    sys.exit(main())
