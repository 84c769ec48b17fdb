"""A harness of one page and a corpus of its own, for tests of what handles harnesses."""

import sys
import time
import types

from harnesses import outcomes, provenance
from harnesses.oracles import Broken


def run(data: bytes, thorough: bool = False) -> str:
    """The outcome is named by the first byte."""
    if data[:1] == b"!":
        raise Broken("residue", "3 bytes left")
    if data[:1] == b"?":
        raise ValueError("not a byte of ours\nand a second line")
    if data[:1] == b"~":
        time.sleep(60)
    return {b"e": "established suite=S group=G retried=no"}.get(data[:1], "waiting")


def install(monkeypatch, folder, **inputs):
    """Make `tiny` the only harness, with these inputs committed as what they come to."""
    harness = types.ModuleType("harnesses.tiny")
    harness.__dict__["run"] = run
    monkeypatch.setitem(sys.modules, "harnesses.tiny", harness)
    for module in ("ci.commands.replay", "ci.inputs.execution"):
        monkeypatch.setattr(f"{module}.HARNESSES", ("tiny",))
    monkeypatch.setattr(outcomes, "CORPUS", folder)
    monkeypatch.setattr(provenance, "PATH", folder / "provenance.tsv")
    (folder / "tiny").mkdir(parents=True)
    for name, data in inputs.items():
        (folder / "tiny" / name).write_bytes(data)
    outcomes.write("tiny", {name: outcomes.Outcome(run(data)) for name, data in inputs.items()})
    return folder / "tiny"
