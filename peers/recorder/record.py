"""Records every conversation of the liar, and says what is not as recorded.

    python -m peers.recorder.record             what differs from the files
    python -m peers.recorder.record --update    writes those, and no other
    python -m peers.recorder.record handshake/two-host-names ...

A conversation that does not end as it must is a finding, and not recorded.
Exit codes: 0 all is as recorded (or now written), 1 something differs or ends
otherwise, 2 the command line cannot be used.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from peers.liar.client import Client
from peers.liar.conversation import Connection, Conversation, Setup, Stage, play
from peers.liar.ends import End
from peers.liar.suites import SUITES
from peers.memory import ENTROPY, EngineConnection, EngineServer
from peers.recorder.decode import Side
from peers.recorder.format import (
    ROOT,
    Block,
    Call,
    Eof,
    Exchange,
    Recording,
    Serve,
    Step,
    all_names,
    objects_of,
    path_of,
    render,
)
from peers.recorder.program import SLOTS, Program

#: Lines of a difference that are printed; the rest is in the files.
SHOWN = 30


class RecordedConnection(EngineConnection):
    """A slot of the recorder's program; every exchange becomes a step."""

    server: Recorder

    def exchange(self, data: bytes) -> bytes:
        """Send bytes, and write down what the engine says and does to them."""
        program = self.server.program
        said, dropped = program.exchange(self.slot, data)
        state = program.state(self.slot)
        # Asking once more and hearing nothing is not worth a step.
        if data or said:
            client = (Block(data),) if data else ()
            server = (Block(said),) if said else ()
            self.server.steps.append(Exchange(self.slot, client, server, state, dropped))
        self.ended = self.ended or state.startswith("failed")
        return said

    def close(self) -> None:
        """End the transport, and write it down."""
        self.server.program.eof(self.slot)
        self.server.steps.append(Eof(self.slot, self.server.program.state(self.slot)))
        self.ended = True


class Recorder(EngineServer):
    """The engine in memory, with a list of all that is done to it."""

    def prepare(self, setup: Setup, now_ms: int) -> None:
        """A new engine with these settings, whose calls are written down."""
        self.now_ms, self._next = now_ms, 0
        self.aes, self.room = setup.aes, setup.areas or SLOTS
        self.program = Program(self.room, setup.aes)
        self.engine = self.program.engine
        self.steps: list[Step] = []
        calls: list[tuple[Any, ...]] = []
        if setup.seeded:
            calls.append(("seed", ENTROPY))
        for one in setup.identities:
            calls.append(("add_identity", one.chain_pem, one.key_pem, one.names, now_ms))
        if setup.alpn:
            calls.append(("set_alpn", [p.encode() for p in setup.alpn]))
        if setup.tickets:
            calls.append(("set_tickets", setup.tickets, setup.lifetime))
        if setup.ticket_keys:
            calls.append(("set_ticket_keys", setup.ticket_keys, now_ms))
        if setup.roots:
            calls.append(("trust_clients", setup.roots))
        if setup.client_auth:
            calls.append(("client_auth_mode", setup.client_auth))
        for name, *arguments in calls:
            answer = self.call(name, *arguments)
            assert not answer, f"{name} is refused: {answer}"

    def connect(self) -> RecordedConnection:
        """A connection in the next slot, written down."""
        slot, self._next = self._next, self._next + 1
        self.program.serve(slot, self.now_ms)
        self.steps.append(Serve(slot, self.now_ms))
        return RecordedConnection(self, slot)

    def call(self, name: str, *arguments: object) -> str:
        """A call of the engine's, written down with its answer."""
        if name == "time":
            (self.now_ms,) = arguments  # type: ignore[assignment]
            return ""
        answer = self.program.call(name, arguments)
        self.steps.append(Call(name, arguments, answer))
        return answer

    def close(self) -> None:
        """Close the engine."""
        self.program.close()


@dataclass
class Made:
    """A conversation as it goes now, and what is wrong with its end."""

    recording: Recording
    wrong: list[str]


def _end(end: End) -> str:
    words = [end.outcome]
    if end.alert is not None:
        words.append(f"{end.alert} {'sealed' if end.sealed else 'in the clear'}")
    words += [w for w in (end.tag,) if w]
    if end.verdict:
        words.append(f"ticket={end.verdict}")
    return " ".join(words)


def record(conversation: Conversation) -> Made:
    """Play it, and tell everything that was said."""
    stages: list[Stage] = []

    def script(stage: Stage) -> Connection | None:
        stages.append(stage)
        return conversation.script(stage)

    server = Recorder()
    outcome = play(replace(conversation, script=script), server)
    header = {
        "conversation": f"{conversation.suite} {conversation.name}",
        "rule": conversation.rule,
        "section": conversation.where,
        "basis": conversation.basis,
        "end": _end(conversation.end),
        "honest": "yes" if conversation.honest else "no",
    }
    clients = {c.transport.slot: c.client for c in stages[0].connections}  # type: ignore[attr-defined]
    recording = Recording(header, server.room, server.aes, _told(server.steps, clients))
    server.close()
    return Made(recording, outcome.wrong)


def _told(steps: Iterable[Step], clients: dict[int, Client]) -> list[Step]:
    """The steps with notes."""
    sides: dict[tuple[int, str], Side] = {}
    for slot, client in clients.items():
        sides |= {(slot, side): Side(client, side) for side in ("client", "server")}
    told: list[Step] = []
    for step in steps:
        if isinstance(step, Exchange):
            sent = sides[step.slot, "client"].blocks(step.sent)
            said = sides[step.slot, "server"].blocks(step.said)
            step = replace(step, client=sent, server=said)
        told.append(step)
    return told


def chosen(names: Iterable[str]) -> list[Conversation]:
    """The conversations of these names (``suite/name``), or all of them."""
    wanted = set(names)
    found = [c for s in SUITES.values() for c in s.conversations]
    if wanted:
        found = [c for c in found if f"{c.suite}/{c.name}" in wanted]
        missing = wanted - {f"{c.suite}/{c.name}" for c in found}
        if missing:
            raise SystemExit(f"no such conversation: {', '.join(sorted(missing))}")
    return found


def differs(made: Made, root: Path = ROOT) -> list[str]:
    """The difference to the file, as lines of a unified diff; empty when there is none."""
    recording = made.recording
    path = path_of(recording.name, root)
    before = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    after = render(recording).splitlines()
    if before == after and all((root / name).is_file() for name in objects_of(recording)):
        return []
    return list(difflib.unified_diff(before, after, "recorded", "now", "", "", 1, "")) or ["PEM"]


def write(made: Made, root: Path = ROOT) -> None:
    """Each file is written aside and renamed, so that none is ever half there."""
    texts = {path_of(made.recording.name, root): render(made.recording).encode()}
    texts |= {root / name: data for name, data in objects_of(made.recording).items()}
    for path, data in texts.items():
        if path.is_file() and path.read_bytes() == data:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}")
        aside.write_bytes(data)
        aside.replace(path)


def strays(objects: set[str], root: Path = ROOT) -> list[Path]:
    """Recordings of no conversation, and PEM files that no recording of all refers to."""
    conversations = {f"{c.suite}/{c.name}" for c in chosen(())}
    old = [path_of(name, root) for name in all_names(root) if name not in conversations]
    pem = root / "pem"
    return old + [p for p in sorted(pem.glob("*.pem")) if f"pem/{p.name}" not in objects]


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """The command; an exit code."""
    parser = argparse.ArgumentParser(prog="python -m peers.recorder.record", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="SUITE/NAME")
    parser.add_argument("--update", action="store_true", help="write what differs")
    args = parser.parse_args(argv)
    counts: Counter[str] = Counter()
    objects: set[str] = set()
    wrong = different = 0
    for conversation in chosen(args.names):
        made = record(conversation)
        counts[conversation.suite] += 1
        objects |= set(objects_of(made.recording))
        if made.wrong:
            wrong += 1
            print(f"{made.recording.name}: ends otherwise: {'; '.join(made.wrong)}")
            continue
        lines = differs(made, root)
        if not lines:
            continue
        different += 1
        print(f"{made.recording.name}: {'written' if args.update else 'differs'}")
        if args.update:
            write(made, root)
        else:
            print("\n".join(f"    {line[:120]}" for line in lines[:SHOWN]))
    stray = [] if args.names or wrong else strays(objects, root)
    for path in stray:
        print(f"{path.relative_to(root)}: {'removed' if args.update else 'belongs to nothing'}")
        if args.update:
            path.unlink()
    told = ", ".join(f"{suite} {count}" for suite, count in counts.items())
    verb = "written" if args.update else "different"
    print(f"{sum(counts.values())} conversations ({told}); {different} {verb}, {wrong} wrong")
    return 1 if wrong or (not args.update and (different or stray)) else 0


if __name__ == "__main__":
    sys.exit(main())
