"""The command `residue`: a table of commands, and what is common to them all.

A command is a module with `add_arguments(parser)` and `run(args) -> int`. It is imported only when
it is the one asked for: `residue doctor` must work where half of the rest does not, and atheris is
never imported by this process.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ci import endings
from ci.exits import Exit, UsageError
from servers import signals


@dataclass(frozen=True)
class Command:
    """One line of `residue --help`."""

    module: str
    does: str
    example: str


COMMANDS = {
    "fuzz": Command(
        "ci.commands.fuzz", "fuzz one harness", "residue fuzz hello --seconds 30 --jobs 2"
    ),
    "campaign": Command(
        "ci.commands.campaign",
        "fuzz all harnesses, merge what they found, measure and sum up",
        "residue campaign --seconds 60 --jobs 2 --out build/tonight",
    ),
    "nightly": Command(
        "ci.commands.nightly",
        "the campaign and everything else that runs at night; goes on after a kill",
        "residue nightly --minutes 60",
    ),
    "inject": Command(
        "ci.commands.inject",
        "raise an exception at every place of every call, and see what it leaves",
        "residue inject 'feed-*' --kind memory --jobs 2",
    ),
    "replay": Command(
        "ci.commands.replay",
        "run committed inputs without a fuzzer and compare their outcomes",
        "residue replay hello corpus/hello/*",
    ),
    "triage": Command(
        "ci.commands.triage",
        "sort findings into buckets, one for each bug, and say which are new",
        "residue triage --take build/campaign/latest --minimise 60",
    ),
    "minimise": Command(
        "ci.commands.minimise",
        "make an input smaller that shows the same bug",
        "residue minimise build/campaign/latest/findings/server/1f2e3d.input --harness server",
    ),
    "promote": Command(
        "ci.commands.promote",
        "make an input a committed one, with its right outcome",
        "residue promote build/campaign/latest/new/hello/0a1b2c --harness hello",
    ),
    "play": Command(
        "ci.commands.play",
        "the lying client against any TLS server",
        "residue play 127.0.0.1:4433 --suite handshake --ca identities/ca.pem",
    ),
    "mutate": Command(
        "ci.commands.mutate",
        "mutate the engine, and list what no test notices",
        "residue mutate engine/pool.py --jobs 2",
    ),
    "gate": Command(
        "ci.commands.gate",
        "what a change touches: its mutants, its catalogue entries, the corpus, a short fuzz",
        "residue gate --since main",
    ),
    "report": Command(
        "ci.commands.report",
        "write the report of a campaign or a night again",
        "residue report build/campaign/latest",
    ),
    "doctor": Command(
        "ci.commands.doctor",
        "what is installed, what is missing, what that switches off",
        "residue doctor",
    ),
    "serve": Command(
        "servers.command",
        "run an example server",
        "residue serve echo --port 4433 --dir certificates --identity localhost",
    ),
    "bench handshake": Command(
        "bench.handshake", "CPU of a handshake, next to Python's ssl", "residue bench handshake"
    ),
    "bench records": Command(
        "bench.records", "records and bytes a second, next to ssl", "residue bench records"
    ),
    "bench memory": Command(
        "bench.memory", "resident memory a connection", "residue bench memory --count 10000"
    ),
    "bench secrets": Command(
        "bench.secrets", "copies of secrets that ended connections left", "residue bench secrets"
    ),
}

GROUPS = {"bench": "measure; residue bench --help lists what"}


def usage() -> str:
    """The text of `residue --help`, made from the table."""
    rows = [(name, command.does) for name, command in COMMANDS.items() if " " not in name]
    rows += list(GROUPS.items())
    width = max(len(name) for name, _ in rows)
    listed = "\n".join(f"  {name:<{width}}  {does}" for name, does in rows)
    return (
        "usage: residue COMMAND [...]\n\n"
        f"{listed}\n\n"
        "residue COMMAND --help says more, with an example.\n"
        "Exit codes: 0 nothing found, 1 something found, 2 usage, 3 a run not to be trusted,\n"
        "130 interrupted.\n\n"
        "example: residue campaign --seconds 60 --jobs 2\n"
    )


def group_usage(group: str) -> str:
    """The text of `residue GROUP --help`."""
    members = {n.split(" ", 1)[1]: c for n, c in COMMANDS.items() if n.startswith(group + " ")}
    width = max(len(name) for name in members)
    listed = "\n".join(f"  {name:<{width}}  {c.does}" for name, c in members.items())
    example = next(iter(members.values())).example
    return f"usage: residue {group} WHAT [...]\n\n{listed}\n\nexample: {example}\n"


def select(argv: Sequence[str]) -> tuple[str, list[str]] | str:
    """The command that the arguments name and what is left for it, or a help text to print."""
    if not argv:
        raise UsageError("no command; residue --help lists them")
    first, rest = argv[0], list(argv[1:])
    if first in ("-h", "--help", "help"):
        return usage()
    if first in GROUPS:
        if not rest:
            raise UsageError(f"{first} what? residue {first} --help lists them")
        if rest[0] in ("-h", "--help"):
            return group_usage(first)
        first, rest = f"{first} {rest[0]}", rest[1:]
    if first not in COMMANDS:
        raise UsageError(f"there is no command {first!r}; residue --help lists them")
    return first, rest


class Written(Protocol):
    """What argparse prints to."""

    def write(self, text: str, /) -> object:
        """Write it."""


class Parser(argparse.ArgumentParser):
    """A parser whose help is missed where it cannot be printed: argparse's own lets that go."""

    def print_help(self, file: Written | None = None) -> None:
        """Print it on standard output, whatever that raises."""
        (file or sys.stdout).write(self.format_help())


def parser_of(name: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int]]:
    """The parser of one command, and what runs it."""
    command = COMMANDS[name]
    module = importlib.import_module(command.module)
    parser = Parser(
        prog=f"residue {name}",
        description=command.does[0].upper() + command.does[1:] + ".",
        epilog=f"example: {command.example}",
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser, module.run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code; argparse's own endings are a SystemExit.

    Nothing else gets out: whatever breaks is one line and a code (`ci.endings`).
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["serve"]:
        signals.hold()
    return endings.guard(lambda: _run(words), words)


def _run(words: Sequence[str]) -> int:
    selected = select(words)
    if isinstance(selected, str):
        print(selected, end="")
        return Exit.CLEAN
    parser, run = parser_of(selected[0])
    return run(parser.parse_args(selected[1]))
