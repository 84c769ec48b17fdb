"""What is not needed by the engine and may be missing: packages by extra, and commands.

One table, for `residue doctor`, for the line that a command ends with when it misses one, and for
the look that it takes before it begins.
"""

import importlib.util
import shutil
from dataclasses import dataclass

from ci.exits import Untrusted


@dataclass(frozen=True)
class Package:
    """A package of an extra: what it is called where, and what does not work without it."""

    name: str
    extra: str
    off: str
    imported: str = ""
    """The module, where it is not called as the package is."""

    @property
    def module(self) -> str:
        """What is imported of it."""
        return self.imported or self.name


@dataclass(frozen=True)
class Tool:
    """A command of the system: how it says its version, and what does not work without it."""

    name: str
    asks: tuple[str, ...]
    off: str


MUTATES = "residue mutate, residue gate"
PACKAGES = (
    Package("atheris", "fuzz", "residue fuzz, residue campaign"),
    Package("coverage", "fuzz", "coverage in a campaign, and with it the campaign's verdict"),
    Package("mutmut", "mutation", MUTATES),
    Package("distributed", "cluster", "--scheduler, which runs shards on a cluster"),
    Package("pytest", "test", f"make test, {MUTATES}"),
    Package("pytest-timeout", "test", "make test", "pytest_timeout"),
    Package("pytest-xdist", "test", "make test over two processes", "xdist"),
    Package("hypothesis", "test", f"make test, {MUTATES}"),
    Package("mypy", "test", "make types"),
    Package("ruff", "test", "make lint"),
    Package("setuptools", "test", "the installation by make"),
    Package("hatchling", "test", "the tests of the package that is built"),
    Package("pyOpenSSL", "test", "tests against OpenSSL in this process", "OpenSSL"),
    Package("PyYAML", "test", "the tests of the hosted jobs' commands", "yaml"),
    Package("zizmor", "test", "make lint, for the hosted jobs"),
)
TOOLS = (
    Tool("git", ("--version",), "residue gate, --against REVISION, a night's patch of new inputs"),
    Tool("openssl", ("version",), "tests with openssl s_client"),
    Tool("curl", ("--version",), "tests with curl"),
    Tool("gnutls-cli", ("--version",), "tests with gnutls-cli"),
)
# What comes with a package and is imported by itself.
WITH = {"libcst": "mutmut", "yaml": "PyYAML", "dask": "distributed", "_pytest": "pytest"}


def need(*names: str) -> None:
    """Untrusted when a package or a tool of the tables is not here: nothing has begun yet."""
    for name in names:
        if not here(name):
            raise Untrusted(missing(name))


def here(name: str) -> bool:
    """Whether a tool of the table, or a module, can be used."""
    if any(tool.name == name for tool in TOOLS):
        return shutil.which(name) is not None
    return importlib.util.find_spec(name) is not None


def missing(name: str) -> str:
    """What to say of a tool, or of a module that cannot be imported."""
    if any(tool.name == name for tool in TOOLS):
        return f"{name} is not installed"
    top = name.partition(".")[0]
    for package in PACKAGES:
        if WITH.get(top, top) in (package.name, package.module):
            return f"{package.name} is not installed: pip install -e '.[{package.extra}]'"
    return f"{top} is not installed: pip install -e '.[suite]'"
