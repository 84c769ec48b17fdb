"""The command `residue`: a table of commands, and what is common to them all.

A command is a module with `add_arguments(parser)` and `run(args) -> int`. It is imported only when
it is the one asked for: `residue doctor` must work where half of the rest does not, and atheris is
never imported by this process.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from ci import endings, results, wording
from ci.exits import Exit, UsageError
from harnesses import HARNESSES
from mutants.settings import SUITE
from servers import signals

WIDTH = 79
"""No line of a help text is longer."""

ENDS: Mapping[int, str] = {
    Exit.CLEAN: "nothing was found",
    Exit.USAGE: "the command line, or a file that it names, cannot be used",
    Exit.UNTRUSTED: "the run itself is not to be trusted, or it broke",
    Exit.INTERRUPTED: "Ctrl-C or SIGTERM; what was found until then is kept",
}
"""What an exit code says of every command that does not say it otherwise."""


@dataclass(frozen=True)
class Command:
    """One line of `residue --help`."""

    module: str
    does: str
    example: str
    ends: Mapping[int, str] = field(default_factory=dict)
    """What its exit codes say where that is not `ENDS`; nothing for one that it never has."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Options that it had, and what they are called now."""


# One harness for the examples.
ONE = HARNESSES[0]
COMMANDS = {
    "fuzz": Command(
        "ci.commands.fuzz",
        "fuzz one harness",
        f"residue fuzz {ONE} --seconds 5",
        {Exit.FOUND: "a finding: an oracle that spoke, a crash, a hang"},
    ),
    "campaign": Command(
        "ci.commands.campaign",
        "fuzz all harnesses, merge what they found, measure and sum up",
        "residue campaign --seconds 60 --jobs 2",
        {Exit.FOUND: "a finding: an oracle that spoke, a crash, a hang"},
    ),
    "nightly": Command(
        "ci.commands.nightly",
        "the campaign and everything else that runs at night",
        "residue nightly --minutes 60",
        {
            Exit.FOUND: "anything red in any step",
            Exit.INTERRUPTED: "Ctrl-C or SIGTERM; the next nightly goes on where it was",
        },
    ),
    "inject": Command(
        "ci.commands.inject",
        "raise an exception at every place of every call",
        "residue inject feed-hello/served --kind memory",
        {Exit.FOUND: "an exception left something"},
    ),
    "replay": Command(
        "ci.commands.replay",
        "run inputs without a fuzzer and compare their outcomes",
        f"residue replay {ONE} {SUITE.corpus}/{ONE}/{SUITE.small_input}",
        {
            Exit.CLEAN: "every outcome is the right one",
            Exit.FOUND: "an outcome is wrong or missing, or an oracle spoke",
        },
    ),
    "triage": Command(
        "ci.commands.triage",
        "sort findings into buckets, one for each bug",
        "residue triage --from build/campaign/latest",
        {
            Exit.CLEAN: "no bucket is new, or known and past its day",
            Exit.FOUND: "a bucket is new, or known and past its day",
        },
        {"--take": "--from"},
    ),
    "minimise": Command(
        "ci.commands.minimise",
        "make an input smaller that shows the same bug",
        f"residue minimise FINDING.input --harness {ONE}",
        {
            Exit.CLEAN: "the smaller input is written, or nothing could be left out",
            Exit.UNTRUSTED: "it shows nothing, or not each time; or the run broke",
        },
    ),
    "promote": Command(
        "ci.commands.promote",
        "make an input a committed one, with its right outcome",
        f"residue promote build/campaign/latest/new/{ONE}/FILE --harness {ONE}",
        {Exit.CLEAN: "it is committed now, or was already"},
    ),
    "play": Command(
        "ci.commands.play",
        "the lying client against any TLS server",
        "residue play 127.0.0.1:4433 --ca identities/ca.pem",
        {
            Exit.CLEAN: "the server broke no rule",
            Exit.FOUND: "the server broke a rule of the RFC",
            Exit.UNTRUSTED: "the server was not reached or was lost, or the time was up",
        },
        {"--quiet": "--silence"},
    ),
    "mutate": Command(
        "ci.commands.mutate",
        "mutate the code, and list what no test notices",
        f"residue mutate {SUITE.small_file}",
        {
            Exit.CLEAN: "every mutant is killed, or argued in the ledger",
            Exit.FOUND: "a mutant or an entry of the catalogue survives",
        },
        {"--by": "--kill-with"},
    ),
    "gate": Command(
        "ci.commands.gate",
        "what a change touches: its mutants, the catalogue, the corpus",
        "residue gate --since main",
        {
            Exit.FOUND: "anything is red",
            Exit.UNTRUSTED: "there is no merge base, or a stage is not to be trusted",
        },
    ),
    "report": Command(
        "ci.commands.report",
        "write the report of a campaign or a night again",
        "residue report build/campaign/latest",
        {Exit.CLEAN: "it is written, whatever the verdict that it reports"},
    ),
    "doctor": Command(
        "ci.commands.doctor",
        "what is installed, what is missing, what that switches off",
        "residue doctor",
        {
            Exit.CLEAN: f"{SUITE.package} can run here",
            Exit.UNTRUSTED: f"{SUITE.package} cannot run here",
        },
    ),
    "serve": Command(
        "servers.command",
        "run an example server",
        "residue serve echo --port 4433 --dir certificates --identity localhost",
        {
            Exit.CLEAN: "SIGINT or SIGTERM: it has let its connections end",
            Exit.INTERRUPTED: "",
        },
    ),
    "bench handshake": Command(
        "bench.handshake",
        "CPU of a handshake, next to Python's ssl",
        "residue bench handshake --rounds 5",
        {Exit.CLEAN: "it was measured"},
    ),
    "bench records": Command(
        "bench.records",
        "records and bytes a second, next to ssl",
        "residue bench records --rounds 5",
        {Exit.CLEAN: "it was measured"},
    ),
    "bench memory": Command(
        "bench.memory",
        "resident memory a connection",
        "residue bench memory --count 100",
        {Exit.CLEAN: "it was measured"},
    ),
    "bench secrets": Command(
        "bench.secrets",
        "copies of secrets that ended connections left",
        "residue bench secrets --count 1",
        {
            Exit.CLEAN: "memory has no copy",
            Exit.FOUND: "a copy is left in memory",
        },
    ),
}

GROUPS = {"bench": "measure; residue bench --help lists what"}
HELP = ("-h", "--help")
VERSION = ("-V", "--version")


def usage() -> str:
    """The text of `residue --help`, made from the table."""
    rows = [(name, command.does) for name, command in COMMANDS.items() if " " not in name]
    rows += list(GROUPS.items())
    return (
        f"usage: residue COMMAND [...]\n\n{_listed(rows)}\n\n"
        "residue help COMMAND, or residue COMMAND --help, says more, with an example.\n"
        "residue --version says which this is.\n\n"
        "exit codes: 0 nothing found, 1 something found, 2 usage,\n"
        "            3 a run that is not to be trusted, 130 interrupted\n\n"
        "example: residue campaign --seconds 60 --jobs 2\n"
    )


def group_usage(group: str) -> str:
    """The text of `residue GROUP --help`."""
    members = {n.split(" ", 1)[1]: c for n, c in COMMANDS.items() if n.startswith(group + " ")}
    rows = [(name, command.does) for name, command in members.items()]
    example = next(iter(members.values())).example
    return f"usage: residue {group} WHAT [...]\n\n{_listed(rows)}\n\nexample: {example}\n"


def _listed(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {does}" for name, does in rows)


def exit_codes(command: Command) -> str:
    """The lines of a help text that say how the command ends."""
    told = {**ENDS, **command.ends}
    return "\n".join(f"  {code:<3}  {told[code]}" for code in sorted(told) if told[code])


def version() -> str:
    """`residue VERSION`, and what it runs on: what a report of a fault begins with."""
    return f"residue {SUITE.version()} (Python {sys.version.split()[0]})\n"


def select(argv: Sequence[str]) -> tuple[str, list[str]] | str:
    """The command that the arguments name and what is left for it, or a text to print."""
    if not argv:
        raise UsageError("no command; residue --help lists them")
    first, rest = argv[0], list(argv[1:])
    if first == "help" and rest:
        return select([*rest, HELP[1]])
    if first in (*HELP, "help"):
        return usage()
    if first in VERSION:
        return version()
    if first in GROUPS:
        if not rest:
            raise UsageError(f"{first} what? residue {first} --help lists them")
        if rest[0] in HELP:
            return group_usage(first)
        first, rest = f"{first} {rest[0]}", rest[1:]
    if first not in COMMANDS:
        near = wording.meant(first, [*COMMANDS, *GROUPS])
        raise UsageError(f"there is no command {first!r}{near or '; residue --help lists them'}")
    return first, rest


class Written(Protocol):
    """What argparse prints to."""

    def write(self, text: str, /) -> object:
        """Write it."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of a fixed width, whatever the terminal's."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=WIDTH)


class Parser(argparse.ArgumentParser):
    """A parser whose faults are a UsageError of one line, with the name that was meant.

    Its help is missed where it cannot be printed: argparse's own lets that go.
    """

    def __init__(self, name: str, command: Command) -> None:
        super().__init__(
            f"residue {name}",
            description=command.does[0].upper() + command.does[1:] + ".",
            epilog=f"exit codes:\n{exit_codes(command)}\n\nexample:\n  {command.example}",
            formatter_class=Formatter,
            allow_abbrev=False,
        )
        self.renamed = command.renamed

    def print_help(self, file: Written | None = None) -> None:
        """Print it on standard output, whatever that raises."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """A UsageError, where argparse prints the usage and ends the process."""
        raise UsageError(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments. What is wrong is a UsageError; --help is argparse's SystemExit."""
        # Before argparse looks: it would first say which others are missing.
        for word in words:
            option = word.partition("=")[0]
            if word == "--":
                break
            if option.startswith("--") and option not in self._option_string_actions:
                self._no_option(option)
        return self.parse_args(words)

    def _no_option(self, option: str) -> NoReturn:
        if option in self.renamed:
            raise UsageError(f"{option} is called {self.renamed[option]} now")
        options = [name for name in self._option_string_actions if name.startswith("--")]
        near = wording.meant(option, options) or f"; see {self.prog} --help"
        raise UsageError(f"there is no option {option}{near}")

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, wording.unknown("", value, action.choices))


def parser_of(name: str) -> tuple[Parser, Callable[[argparse.Namespace], int]]:
    """The parser of one command, and what runs it."""
    command = COMMANDS[name]
    module = importlib.import_module(command.module)
    parser = Parser(name, command)
    module.add_arguments(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of what breaks"
    )
    return parser, module.run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code; --help's ending is a SystemExit.

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
    name, rest = selected
    parser, run = parser_of(name)
    args = parser.parse(rest)
    result: results.Json = getattr(args, "json", results.NONE)
    with result.alone(), wording.folded():
        return run(args)
