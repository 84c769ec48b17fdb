"""The Atheris runner: the only file here that knows a fuzzer.

    python -m harnesses.run NAME [libFuzzer arguments]

`harnesses/targets/NAME_fuzzer.py` are the same as files of their own, for who freezes each into a
program (docs/hosted.md).

With RESIDUE_FINDINGS=DIR in the environment a finding does not end the process: it is saved in DIR
once for each signature (`<digest>.json` and `<digest>.input`, each written aside and renamed, so
that a file there is whole) and the campaign goes on. Without it the exception reaches Atheris,
which saves the input and exits 77. With RESIDUE_LOOKED=FILE the oracles count there how often each
looked (`harnesses.tally`).

The engine is imported under instrumentation and nothing of it before: a module imported earlier is
never instrumented, and its edges would be missing without a word.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import pkgutil
import shlex
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from . import HARNESSES
from .outcomes import CORPUS
from .signature import signature

# Not counted. Block moves, and what a connection says of itself: a few branches each, which the
# oracles take dozens of times after every call, and always the same ones. The key schedule, the key
# exchange, the generator and what the server writes: straight lines that no input bends. Counting
# them costs a third of the rate, and the pool a sixth more.
PLAIN = (
    "engine.base",
    "engine.copies",
    "engine.drbg",
    "engine.key_exchange",
    "engine.identities",
    "engine.messages",
    "engine.queries",
    "engine.key_schedule",
)
POOL = "engine.pool"
# libFuzzer's own default for a hang is twenty minutes; no input here may take a thousandth of that.
DEFAULTS = {"-timeout": "10", "-rss_limit_mb": "1024"}
# The first inputs of a process are looked at by every oracle, so that one that takes a small sample
# is not left out of a short run.
FIRST = 8


def save(folder: Path, name: str, data: bytes, error: BaseException) -> bool:
    """Saves a finding unless its signature is known; True when it was new."""
    found = signature(error)
    key = json.dumps([name, found], sort_keys=True).encode()
    digest = hashlib.sha256(key).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{digest}.json"
    if report.exists():
        return False
    detail = "".join(traceback.format_exception_only(error)).strip()
    text = json.dumps(
        {
            "harness": name,
            "signature": found,
            "detail": detail,
            "input": f"{digest}.input",
            "sha256": hashlib.sha256(data).hexdigest(),
            "traceback": traceback.format_exception(error),
        },
        indent=1,
    )
    _write(folder / f"{digest}.input", data)
    _write(report, text.encode())
    return True


def target(
    name: str, run: Callable[[bytes], str], findings: Path | None
) -> Callable[[bytes], None]:
    """The function the fuzzer calls; only with a findings folder does it outlive a finding."""
    if findings is None:

        def bare(data: bytes) -> None:
            run(data)

        return bare

    def recording(data: bytes) -> None:
        try:
            run(data)
        except Exception as error:
            if save(findings, name, data, error):
                print(f"finding: {name}: {error!r}"[:500], file=sys.stderr, flush=True)

    return recording


def thorough_at_first(run: Callable[..., str]) -> Callable[[bytes], str]:
    """The harness's function, with no oracle left to a sample for the first inputs."""
    left = FIRST

    def looking(data: bytes) -> str:
        nonlocal left
        if not left or not data:
            return run(data)
        left -= 1
        return run(data, thorough=True)

    return looking


def arguments(program: str, given: list[str], max_len: int) -> list[str]:
    """libFuzzer's argv. Merging runs argv[0] again through a shell, so it is a whole command.

    SystemExit 2 for a first folder that is committed: libFuzzer writes what it finds there.
    """
    _leave_committed(given)
    wanted = {**DEFAULTS, "-max_len": str(max_len)}
    named = {argument.split("=", 1)[0] for argument in given}
    defaults = [f"{key}={value}" for key, value in wanted.items() if key not in named]
    return [program, *defaults, *given]


def _leave_committed(given: list[str]) -> None:
    first = next((Path(word) for word in given if not word.startswith("-")), None)
    if first is not None and first.is_dir() and CORPUS in first.resolve().parents:
        print(f"{first} is committed, and the first folder is written to", file=sys.stderr)
        raise SystemExit(2)


def program() -> str:
    """The command that starts this process again, for a fuzz target that is a file of its own."""
    if getattr(sys, "frozen", False):
        return shlex.quote(sys.executable)  # one file, made by pyinstaller: it is the interpreter
    return shlex.join([sys.executable, str(Path(sys.argv[0]).resolve())])


def instrumented() -> list[str]:
    """The modules whose edges guide the fuzzer: the engine, and what reads an input's steps.

    The oracles are left out: their branches are the same for every input that finds nothing, and
    counting them costs a quarter of the rate.
    """
    package = importlib.util.find_spec("engine")
    assert package is not None
    folders = package.submodule_search_locations
    return [
        "engine",
        *(module.name for module in pkgutil.walk_packages(folders, "engine.")),
        "harnesses.formats",
        "harnesses.formats.server",
    ]


def instrument(name: str) -> None:
    """Imports what guides the fuzzer of a harness, instrumented: before the harness itself."""
    import atheris

    # Leases and releases are what an input of harness pool decides, and of no other.
    plain = [*PLAIN] if name == "pool" else [*PLAIN, POOL]
    with atheris.instrument_imports(include=["engine", "harnesses"], exclude=plain):
        for module in instrumented():
            importlib.import_module(module)
        # Said once as a statement: a name in a string is nothing that pyinstaller collects.
        from .formats import server  # noqa: F401


def fuzz(name: str, run: Callable[..., str], argv: list[str]) -> None:
    """Fuzzes until libFuzzer ends the process."""
    import atheris

    counts = os.environ.get("RESIDUE_LOOKED")
    if counts:
        # Not above: it imports the engine.
        from .oracles import looked

        looked.into(Path(counts))
    folder = os.environ.get("RESIDUE_FINDINGS")
    wanted = target(name, thorough_at_first(run), Path(folder) if folder else None)
    atheris.Setup(argv, wanted)
    atheris.Fuzz()


def main(argv: list[str]) -> None:
    """Runs one harness under Atheris; SystemExit 2 for a name that is none."""
    if not argv or argv[0] not in HARNESSES:
        print(
            f"usage: python -m harnesses.run {'|'.join(HARNESSES)} [libFuzzer arguments]",
            file=sys.stderr,
        )
        raise SystemExit(2)
    name = argv[0]
    instrument(name)
    harness = importlib.import_module(f"harnesses.{name}")
    again = shlex.join([sys.executable, "-m", "harnesses.run", name])
    fuzz(name, harness.run, arguments(again, argv[1:], harness.MAX_LEN))


def _write(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_bytes(data)
    os.replace(aside, path)


if __name__ == "__main__":
    main(sys.argv[1:])
