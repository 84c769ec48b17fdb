"""Who has what: a run on machines that differ would not be one run, so it is refused.

The engine's own text need not be compared: every shard runs from the archive that was sent, which
a worker checks by its digest. What cannot be sent is compared: Python, Dask, and the packages.
"""

from collections.abc import Mapping
from typing import Any

# What client, scheduler and workers have in common; a scheduler needs nothing else of ours.
DASK = ("python", "dask", "distributed", "cloudpickle", "msgpack", "tornado")
FUZZING = ("atheris", "cryptography")
MUTATION = ("cryptography", "hypothesis", "libcst", "mutmut", "pytest")

# Of many workers that differ in the same way, as many are named as a line holds.
NAMED = 3


def of_dask(said: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """What Dask tells of itself, by who has it: `here`, `the scheduler`, each worker's address."""
    who = {"here": said["client"], "the scheduler": said["scheduler"], **said["workers"]}
    return {
        name: {package: str(facts["packages"].get(package)) for package in DASK}
        for name, facts in who.items()
    }


def differences(mine: Mapping[str, str], theirs: Mapping[str, Mapping[str, str]]) -> str:
    """One line that says which of the others has what else than here; empty when none has."""
    found: dict[str, list[str]] = {}
    for who, versions in theirs.items():
        for package, version in mine.items():
            if versions.get(package) != version:
                found.setdefault(f"{package} {versions.get(package)} and not {version}", []).append(
                    who
                )
    return "; ".join(f"{_names(who)}: {what}" for what, who in found.items())


def _names(who: list[str]) -> str:
    more = f" and {len(who) - NAMED} more" if len(who) > NAMED else ""
    return ", ".join(sorted(who)[:NAMED]) + more
