"""How a command ends: what the caller of `residue` may rely on (docs/exit-codes.md)."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code. Only the command table and the commands themselves choose one."""

    CLEAN = 0
    """Nothing was found."""
    FOUND = 1
    """Something was found: a crash, a wrong outcome, a rule that is broken."""
    USAGE = 2
    """The command line, or a file that it names, is not one that can be used."""
    UNTRUSTED = 3
    """The run itself is not to be trusted: nothing executed, no coverage, a canary missed."""
    INTERRUPTED = 130
    """Ctrl-C or SIGTERM; what was found until then is kept."""


class UsageError(Exception):
    """What the user asked for cannot be done. The message is one line that says why."""


class Untrusted(Exception):
    """A run whose verdict would mean nothing. The message is one line that says why."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived. A BaseException, so that no `except Exception` eats it."""
