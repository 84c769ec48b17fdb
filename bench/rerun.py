"""A bench in a fresh process under an OpenSSL configuration of its own.

Left alone, `ssl` picks TLS_AES_256_GCM_SHA384 and the engine TLS_AES_128_GCM_SHA256, and the two do
not cost the same. Python's `ssl` has no call that limits the suites of TLS 1.3; OpenSSL reads them
from a file that it opens once a process, so a bench that compares like with like starts again.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from bench import table
from ci import endings, wording
from ci.results import Json

SUITES = ("any", "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
ROOT = Path(__file__).resolve().parent.parent

_CONFIGURATION = """\
openssl_conf = start
[start]
ssl_conf = modules
[modules]
system_default = everyone
[everyone]
Ciphersuites = {suite}
"""


def add_suite(parser: argparse.ArgumentParser) -> None:
    """The option of a bench that compares with `ssl`."""
    parser.add_argument(
        "--suite",
        choices=SUITES,
        default=SUITES[0],
        metavar="SUITE",
        help="the one suite the client offers, or any, which leaves each server its own choice "
        f"(default any): {', '.join(SUITES)}",
    )


def is_restricted() -> bool:
    """Whether this process is one that `start` made."""
    return table.COMMAND in os.environ


def environment() -> dict[str, str]:
    """The environment of a child that imports this checkout, from whatever folder we run in."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def start(name: str, args: argparse.Namespace) -> int:
    """Run the bench again under the configuration; answers its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        variables = environment() | {table.COMMAND: table.command()}
        if args.suite != "any":
            path = Path(folder, "openssl.cnf")
            path.write_text(_CONFIGURATION.format(suite=args.suite), encoding="ascii")
            variables["OPENSSL_CONF"] = str(path)
        kept = {**vars(args), "json": args.json.target}
        child = [sys.executable, "-m", "bench.rerun", name, json.dumps(kept)]
        sys.stdout.flush()
        # With every descriptor: the file for the results may be one (`--json >(...)`).
        return subprocess.call(child, env=variables, close_fds=False)


def main() -> int:
    """The child's side of `start`."""
    name, kept = sys.argv[1:]
    module = importlib.import_module(f"bench.{name}")
    return endings.guard(lambda: _again(module, argparse.Namespace(**json.loads(kept))))


def _again(module: ModuleType, args: argparse.Namespace) -> int:
    args.json = Json(args.json)
    with args.json.alone(), wording.folded():
        return int(module.run(args))


if __name__ == "__main__":
    sys.exit(main())
