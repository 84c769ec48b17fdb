"""Which recording reaches which refusal and which verdict on a ticket: the page docs/refusals.md.

    python -m peers.recording_refusals              the counts, and what nothing reaches
    python -m peers.recording_refusals --update     writes the page as well

The tags and alerts are the engine's; when each is given is told here; where it is reached is read
from the recordings. Exit codes: 0 all is reached and the page is right, 1 otherwise.
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
from engine.refusals import Refusal
from peers.bounds import ARGUMENT, STATES, Bound
from peers.bounds import TABLE as BOUNDS
from peers.recording_format import ROOT, Call, Eof, Exchange, Recording, all_names, load

PAGE = ROOT.parent / "docs" / "refusals.md"
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

#: When each is given. What is not here is told by the engine's own sentence.
WHEN = {
    "tls-unexpected-message": "a message or record type that the state does not allow; a "
    "ClientHello, Finished or KeyUpdate that does not end its record; bytes left behind a message "
    "that changes keys; a change_cipher_spec in a wrong place or of another value; an empty "
    "handshake or alert record; a protected record of zeros alone; interleaved fragments",
    "tls-record-overflow": "a plaintext record over 2^14 bytes, a protected one over 2^14 + 256, "
    "an inner plaintext over 2^14 + 1",
    "tls-bad-record-mac": "a protected record that does not open, or of under 16 bytes",
    "tls-decode-error": "a message other than a ClientHello that does not parse, a Finished or "
    "KeyUpdate of the wrong length; an alert that is not two bytes",
    "tls-protocol-version": "a record header whose version's major byte is not 3",
    "tls-key-share": "a share of the right length that is no valid point, or an all-zero X25519 "
    "result",
    "tls-unsupported-extension": "an extension in a CertificateEntry that nobody asked for",
    "tls-bad-certificate-verify": "the client's signature is wrong",
    "tls-too-many-messages": "33 in a row of KeyUpdates, empty application records, skipped ones "
    "too, user_canceled and dropped change_cipher_spec together; the last sequence number",
    "tls-alert": "the peer's alert, all but close_notify and user_canceled; close_notify before "
    "the handshake is complete too",
    "tls-peer-closed": "the transport ended without close_notify",
    "tls-server-version": "no 0x0304 in supported_versions, no extensions at all, or "
    "legacy_version 0x0300",
    "tls-server-suite": "no cipher suite in common",
    "tls-server-group": "no group in common",
    "tls-server-sigalg": "the client does not take the server's signature scheme",
    "tls-server-alpn": "both have a list of protocols and nothing in common",
    "tls-server-client-hello-format": "a ClientHello that does not parse, an empty list or name "
    "where one is due included",
    "tls-server-client-hello-length": "a ClientHello of more than 16,384 bytes",
    "tls-server-extension-repeat": "an extension type twice",
    "tls-server-missing-extension": "supported_groups, key_share, signature_algorithms or "
    "psk_key_exchange_modes absent where it is required",
    "tls-server-illegal-parameter": "compression other than null; pre_shared_key not last; not "
    "as many binders as identities; two shares of one of our groups; a share outside "
    "supported_groups or of the wrong length; two host names; a certificate request context; a "
    "KeyUpdate value other than 0 and 1",
    "tls-server-retry-share": "a second ClientHello whose session id differs, that dropped the "
    "suite, whose key_share is not exactly one of the group asked for, or that offers early data",
    "tls-server-early-data-size": "more than 16,384 bytes of early data skipped",
    "tls-server-finished": "the client's Finished does not verify",
    "tls-server-sign-check": "the server's own signature did not verify, so it was not sent",
    "tls-server-binder": "a binder of another value or length on a ticket that every rule accepts",
    "tls-server-client-cert-required": "no certificate where one is required",
    "tls-server-client-sigalg": "a scheme that the request did not list, or that is not the key's",
    "tls-server-client-store-replaced": "the store changed between the chain and the Finished",
    "x509-unsupported-algorithm": "a P-521 or RSASSA-PSS-OID key, or a signature with SHA-1",
    "x509-key-usage": "key usage or extended key usage does not allow it",
    "x509-key-size": "RSA outside 2048 to 4096 bits",
    "tls-role": "a call of the other role",
    "tls-pool": "no area is free when a connection is to start",
    "tls-no-entropy": "the engine was not seeded",
}

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
    when = WHEN.get(refusal.tag) or refusal.sentence[0].lower() + refusal.sentence[1:-1]
    names = coverage.tags.get(refusal.tag)
    where = _where(names) if names else _argued(refusal.tag)
    if not wire:
        return f"| `{refusal.tag}` | {when} | {where} |"
    alert = "-" if refusal.alert is None else f"{ALERT_NAMES[refusal.alert]} {refusal.alert}"
    return f"| `{refusal.tag}` | {alert} | {when} | {where} |"


#: From this one on the refusals are those of configuration and start calls.
FIRST_OF_CALLS = Refusal.ROLE


def page(coverage: Coverage, recordings: int) -> str:
    """The whole of docs/refusals.md."""
    table = list(Refusal)
    calls = table.index(FIRST_OF_CALLS)
    lines = [
        "# Refusals",
        "",
        "Every way in which the engine says no. A tag is stable and public; the alert is the one "
        "that RFC 8446 section 6",
        "names, and `-` is none. The last column says where a tag is reached: in so many of the "
        f"{recordings} recorded",
        "conversations ([recordings.md](recordings.md)), of which a few are named, or by which "
        "test and why by no conversation.",
        "",
        "This page is made by `python -m peers.recording_refusals --update`; a test holds it to "
        "the recordings, and fails for",
        "a tag or a verdict that nothing reaches.",
        "",
        "## On a connection",
        "",
        "The connection fails, `failure` gives the tag, and the alert is sent.",
        "",
        "| tag | alert | when | reached in |",
        "| --- | --- | --- | --- |",
        *(_row(r, coverage, True) for r in table[:calls]),
        "",
        "## From a call of the program's",
        "",
        "The call raises `Refused` and changes nothing; nothing goes on the wire.",
        "",
        "| tag | when | reached in |",
        "| --- | --- | --- |",
        *(_row(r, coverage, False) for r in table[calls:]),
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


def main(argv: list[str] | None = None, path: Path = PAGE) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m peers.recording_refusals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--update", action="store_true", help="write the page")
    args = parser.parse_args(argv)
    recordings = [load(name) for name in all_names()]
    coverage = measure(recordings)
    print(table(coverage))
    made = page(coverage, len(recordings))
    missing = coverage.unreached()
    for one in missing:
        print(f"not reached: {one}")
    stale = not path.is_file() or path.read_text(encoding="utf-8") != made
    if stale and args.update:
        path.write_text(made, encoding="utf-8")
        print(f"{path.name}: written")
    elif stale:
        print(f"{path.name} is stale: python -m peers.recording_refusals --update")
    return 1 if missing or (stale and not args.update) else 0


if __name__ == "__main__":
    sys.exit(main())
