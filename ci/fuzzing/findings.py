"""Findings: what the fuzzers saw go wrong, once for each signature.

Most are written by the runner itself, which then goes on fuzzing. What ends the process (a hang, a
memory limit, a crash of the interpreter) it cannot write: libFuzzer leaves the input, and the log
says where; those are given the same form here.
"""

import hashlib
import json
import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from ci.output import shown
from triage.prober import ProbeError, Prober

FRAMES = 3
# What libFuzzer calls an input that ended the process. A slow unit ended nothing.
ARTIFACTS = {"crash": "crash", "timeout": "timeout", "oom": "out-of-memory"}

WRITTEN = re.compile(r"Test unit written to (.+)")
# A traceback's frames have a comma, innermost last; a hang's (faulthandler) none, innermost first.
TRACEBACK_FRAME = re.compile(r'^  File "([^"]+)", line \d+, in (\S+)$', re.MULTILINE)
HANG_FRAME = re.compile(r'^  File "([^"]+)", line \d+ in (\S+)$', re.MULTILINE)
ERROR = re.compile(r"^==\d+== ERROR: libFuzzer: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """One finding, as the summary shows it."""

    harness: str
    kind: str
    oracle: str
    detail: str
    frames: list[str] = field(default_factory=list)
    input: str = ""
    replay: str = ""


class FindingRow(TypedDict):
    """The same as JSON has it."""

    harness: str
    kind: str
    oracle: str
    detail: str
    frames: list[str]
    input: str
    replay: str


def collect(folder: Path, harness: str, artifacts: list[tuple[Path, Path]]) -> list[Finding]:
    """All findings of a harness, those that (artifact folder, log) pairs tell of added first."""
    for where, log in artifacts:
        _adopt(folder, harness, where, log)
    return [_read(report, harness) for report in sorted(folder.glob("*.json"))]


def late(harness: str, artifacts: Path) -> list[str]:
    """Take away the time-outs that are the machine's and not the input's; their names.

    libFuzzer counts time on the wall. What ends in peace, within as much processor time, was kept
    waiting by other work.
    """
    taken = []
    for artifact in sorted(artifacts.glob("timeout-*")):
        with Prober(harness) as prober:
            try:
                ended = prober.ask(artifact.read_bytes()).ended
            except ProbeError:
                continue
        if ended == "done":
            artifact.rename(artifact.with_name(f"late-{artifact.name}"))
            taken.append(artifact.name)
    return taken


def _read(report: Path, harness: str) -> Finding:
    data = json.loads(report.read_text(encoding="utf-8"))
    signature = data["signature"]
    file = report.with_name(data["input"])
    return Finding(
        harness=harness,
        kind=str(signature["kind"]),
        oracle=str(signature["oracle"] or ""),
        detail=str(data["detail"]),
        frames=list(signature["frames"]),
        input=str(file),
        replay=f"residue replay {harness} {shlex.quote(shown(file))}",
    )


def _adopt(folder: Path, harness: str, artifacts: Path, log: Path) -> None:
    """Give each input that ended a process the form of a finding."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    told = _stories(text)
    for artifact in sorted(artifacts.iterdir()):
        kind = ARTIFACTS.get(artifact.name.split("-", 1)[0])
        if kind is None:
            continue
        story = told.get(artifact.name, "")
        signature = {"oracle": None, "kind": kind, "frames": _frames(story)}
        key = json.dumps([harness, signature], sort_keys=True).encode()
        digest = hashlib.sha256(key).hexdigest()[:16]
        report = folder / f"{digest}.json"
        if report.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artifact, folder / f"{digest}.input")
        error = ERROR.findall(story)
        data = {
            "harness": harness,
            "signature": signature,
            "detail": error[-1] if error else kind,
            "input": f"{digest}.input",
            "sha256": hashlib.sha256(artifact.read_bytes()).hexdigest(),
            "traceback": story.splitlines()[-40:],
        }
        aside = folder / f".{digest}.json"
        aside.write_text(json.dumps(data, indent=1), encoding="utf-8")
        aside.replace(report)


def _stories(text: str) -> dict[str, str]:
    """For each artifact's name, what the log says before it was written and after the last one."""
    stories: dict[str, str] = {}
    begin = 0
    for match in WRITTEN.finditer(text):
        stories[Path(match[1]).name] = text[begin : match.end()]
        begin = match.end()
    # The line that names the error may come after the artifact's.
    names = list(stories)
    if names:
        stories[names[-1]] += text[begin:]
    return stories


def _frames(story: str) -> list[str]:
    """The innermost frames of our own code, innermost last."""
    hang = [frame for frame in HANG_FRAME.findall(story) if _ours(frame[0])]
    frames = hang[::-1] or [f for f in TRACEBACK_FRAME.findall(story) if _ours(f[0])]
    return [f"{Path(file).name}:{function}" for file, function in frames][-FRAMES:]


def _ours(file: str) -> bool:
    return "site-packages" not in file and not file.startswith("<") and not file.endswith("/run.py")


def as_data(findings: list[Finding]) -> list[FindingRow]:
    """The findings as the JSON summary has them."""
    return [
        FindingRow(
            harness=one.harness,
            kind=one.kind,
            oracle=one.oracle,
            detail=one.detail,
            frames=one.frames,
            input=one.input,
            replay=one.replay,
        )
        for one in findings
    ]
