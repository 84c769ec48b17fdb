"""`residue doctor`: what is here, what is missing, and what that switches off."""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import resource
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from ci import arguments, extras
from ci.exits import Exit
from ci.process import ROOT
from mutants.settings import SUITE

OLDEST_PYTHON = (3, 11)
OLDEST_CRYPTOGRAPHY = 47
# A campaign's processes have a gigabyte each at most; below this two do not fit.
MEMORY_GB = 2.0
# The echo server's default of 256 connections, and what else a process has open.
DESCRIPTORS = 512


@dataclass(frozen=True)
class Fact:
    """One line: what was looked at, what it is, and what is switched off if it is not well."""

    what: str
    value: str
    ok: bool = True
    off: str = ""
    vital: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `residue doctor`."""
    arguments.json(parser, "the facts, a list,")


def examine() -> list[Fact]:
    """Everything, in the order it is shown."""
    return [*_interpreter(), *_packages(), *_commands(), *_limits(), *_checkout()]


def _interpreter() -> list[Fact]:
    new = sys.version_info >= OLDEST_PYTHON
    facts = [
        Fact("python", platform.python_version(), new, "" if new else "everything", vital=True),
        Fact("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
    ]
    if platform.system() != "Linux":
        facts[-1] = Fact(facts[-1].what, facts[-1].value, False, "servers, campaign", vital=True)
    return facts


def _packages() -> list[Fact]:
    facts = []
    version = _version("cryptography")
    new = version is not None and int(version.split(".")[0]) >= OLDEST_CRYPTOGRAPHY
    facts.append(
        Fact("cryptography", version or "missing", new, "" if new else SUITE.package, vital=True)
    )
    if new:
        from cryptography.hazmat.backends.openssl import backend

        facts.append(Fact("its OpenSSL", backend.openssl_version_text()))
    for package in extras.PACKAGES:
        version = _version(package.name)
        hint = "" if version else f"{package.off}: pip install -e '.[{package.extra}]'"
        facts.append(Fact(package.name, version or "missing", version is not None, hint))
    return facts


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commands() -> list[Fact]:
    facts = []
    for tool in extras.TOOLS:
        path = shutil.which(tool.name)
        if path is None:
            facts.append(Fact(tool.name, "missing", False, tool.off))
            continue
        try:
            said = subprocess.run(
                [path, *tool.asks], capture_output=True, text=True, timeout=10, check=False
            ).stdout.splitlines()
        except (OSError, subprocess.TimeoutExpired):
            said = []
        facts.append(Fact(tool.name, said[0][:45] if said else "says no version"))
    return facts


def _limits() -> list[Fact]:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        Fact("cores", str(cores), cores >= 2, "" if cores >= 2 else "two processes at full rate"),
        Fact(
            "memory",
            f"{memory:.1f} GiB",
            memory >= MEMORY_GB,
            "" if memory >= MEMORY_GB else "a campaign of two processes",
        ),
        Fact(
            "descriptors",
            f"{soft} (at most {hard})",
            soft >= DESCRIPTORS,
            "" if soft >= DESCRIPTORS else "the servers' default number of connections",
        ),
        Fact("AES instructions", *_aes()),
    ]


def _aes() -> tuple[str, bool, str]:
    # From the kernel and not from the engine: the doctor works where the engine does not.
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "unknown", False, "whether AES goes first is then a default"
    found = any(
        "aes" in line.split()
        for line in flags.splitlines()
        if line.startswith(("flags", "Features"))
    )
    return ("yes", True, "") if found else ("no", True, "")


def _checkout() -> list[Fact]:
    folders = (SUITE.package, SUITE.harnesses, SUITE.corpus)
    missing = sorted(name for name in folders if not (ROOT / name).is_dir())
    return [
        Fact(
            "checkout",
            "whole" if not missing else f"without {', '.join(missing)}",
            not missing,
            "" if not missing else "replay, campaign: run residue from an editable install",
        )
    ]


def run(args: argparse.Namespace) -> int:
    """Run `residue doctor`."""
    facts = examine()
    width = max(len(fact.what) for fact in facts)
    for fact in facts:
        off = "" if fact.ok else f"   switches off: {fact.off}"
        print(f"{'ok     ' if fact.ok else 'MISSING'}  {fact.what:<{width}}  {fact.value}{off}")
    args.json.write([asdict(fact) for fact in facts])
    unwell = [fact.what for fact in facts if fact.vital and not fact.ok]
    if unwell:
        print(f"residue: {SUITE.package} cannot run here: {', '.join(unwell)}", file=sys.stderr)
        return Exit.UNTRUSTED
    return Exit.CLEAN
