"""The fuzz targets, and what a fuzzing service wants beside each: seeds, a dictionary and options.

    python -m harnesses.targets            writes the targets themselves, which are committed
    python -m harnesses.targets FOLDER     writes what belongs beside them

A target is `harnesses/targets/NAME_fuzzer.py`; the service looks for `NAME_fuzzer_seed_corpus.zip`,
`NAME_fuzzer.dict` and `NAME_fuzzer.options` in the folder where it finds the target. They are made
from what a campaign uses, and the same tree gives the same bytes.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path

from .. import HARNESSES, dictionary, outcomes, run

HERE = Path(__file__).resolve().parent
#: A target. pyinstaller collects what is imported by a statement, and nothing that is named in a
#: string, so each harness has a file of its own.
TARGET = '''\
"""Fuzz target {name} as a file of its own (docs/hosted.md)."""

import sys

from harnesses import run


def main() -> None:
    """The import stands here: after the instrumentation, and where pyinstaller sees it."""
    run.instrument("{name}")
    from harnesses import {name}

    argv = run.arguments(run.program(), sys.argv[1:], {name}.MAX_LEN)
    run.fuzz("{name}", {name}.run, argv)


if __name__ == "__main__":
    main()
'''
#: The oldest time that a zip can say. What is stored is the input, not when it was checked out.
TIME = (1980, 1, 1, 0, 0, 0)


def target(name: str) -> str:
    """The name of a harness's fuzz target."""
    return f"{name}_fuzzer"


def options(name: str) -> str:
    """libFuzzer's options: the harness's own longest input, and a campaign's limits on each."""
    harness = importlib.import_module(f"harnesses.{name}")
    values = {key.removeprefix("-"): value for key, value in run.DEFAULTS.items()}
    values["max_len"] = str(harness.MAX_LEN)
    values["dict"] = f"{target(name)}.dict"
    lines = [f"{key} = {value}\n" for key, value in sorted(values.items())]
    return "".join(["[libfuzzer]\n", *lines])


def seeds(name: str, path: Path) -> None:
    """Writes the committed inputs as a zip: sorted, without times, stored as they are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for file in outcomes.inputs(name):
            archive.writestr(zipfile.ZipInfo(file.name, TIME), file.read_bytes())


def write(folder: Path) -> None:
    """Writes the three files of every harness."""
    for name in HARNESSES:
        base = folder / target(name)
        seeds(name, base.with_name(f"{base.name}_seed_corpus.zip"))
        dictionary.write(base.with_suffix(".dict"))
        base.with_suffix(".options").write_text(options(name), encoding="ascii")


def write_targets(folder: Path = HERE) -> None:
    """Writes the target of every harness."""
    for name in HARNESSES:
        (folder / f"{target(name)}.py").write_text(TARGET.format(name=name), encoding="ascii")


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    else:
        write_targets()
