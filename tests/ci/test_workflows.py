"""The hosted jobs: that every command in them exists, and that the parts of a job fit together.

A workflow is seen to be wrong only when it runs, and a nightly one in the night. So its commands go
through the parsers of the commands themselves; `make lint` has a linter for the rest.
"""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ci.command import parser_of, select
from ci.exits import UsageError
from ci.process import ROOT

yaml = pytest.importorskip("yaml")

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What a job may use, each with the inputs that are used of it. Another version is another line.
ACTIONS = {
    "actions/checkout@v4": {"fetch-depth", "persist-credentials", "ref", "path"},
    "actions/setup-python@v5": {"python-version", "cache", "cache-dependency-path"},
    "actions/cache/restore@v4": {"path", "key", "restore-keys"},
    "actions/cache/save@v4": {"path", "key"},
    "actions/upload-artifact@v4": {"name", "path", "if-no-files-found", "retention-days"},
    "actions/download-artifact@v4": {"pattern", "merge-multiple"},
    "github/codeql-action/upload-sarif@v3": {"sarif_file", "category"},
}
JOB = {"name", "needs", "if", "runs-on", "timeout-minutes", "permissions", "strategy", "steps"}
STEP = {"name", "if", "env", "run", "uses", "with"}
# What an expression may stand for; a job's matrix has its own values.
SAMPLES = {"github.base_ref": "main", "inputs.minutes || 90": "90", "vars.GATE_ACCEPT": ""}
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


@dataclass(frozen=True)
class Job:
    """A job of a workflow, for one value of its matrix."""

    file: str
    name: str
    matrix: dict[str, str]
    data: dict[str, Any]

    def fill(self, text: str) -> str:
        """The text with a value for every expression; KeyError for one that nobody gave any."""
        values = {**SAMPLES, **{f"matrix.{key}": value for key, value in self.matrix.items()}}
        return EXPRESSION.sub(lambda match: values[match[1]], text)

    def commands(self) -> list[list[str]]:
        """The words of every command, in order, as the shell would give them."""
        return [
            [self._expand(word, step.get("env", {})) for word in shlex.split(line)]
            for step in self.data["steps"]
            for line in self.fill(step.get("run", "")).splitlines()
        ]

    def _expand(self, word: str, env: dict[str, str]) -> str:
        return re.sub(r"\$(\w+)", lambda match: self.fill(str(env[match[1]])), word)

    def using(self, action: str) -> list[dict[str, Any]]:
        """What each step that uses an action gives it."""
        return [s["with"] for s in self.data["steps"] if s.get("uses", "").startswith(action)]


def load(file: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")))


def jobs() -> Iterator[Job]:
    for file in FILES:
        for name, data in load(file)["jobs"].items():
            matrix = data.get("strategy", {}).get("matrix", {})
            for values in itertools.product(*matrix.values()):
                chosen = dict(zip(matrix, map(str, values), strict=True))
                yield Job(file.name, name, chosen, data)


JOBS = list(jobs())
each_job = pytest.mark.parametrize(
    "job", JOBS, ids=lambda j: "-".join([j.file.split(".")[0], j.name, *j.matrix.values()])
)


def wrong(words: list[str]) -> str:
    """What is wrong with a command of a job; nothing where it exists as it is written."""
    if words[0] == "make":
        # Without what the make that runs these tests was given.
        env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        done = subprocess.run(
            ["make", "-n", *words[1:]],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr if done.returncode else ""
    if not re.fullmatch(r"\.venv[\w.-]*/bin/residue", words[0]):
        return f"{words[0]} is no command of this project"
    try:
        chosen = select(words[1:])
        if not isinstance(chosen, str):
            parser_of(chosen[0])[0].parse_args(chosen[1])
    except UsageError as error:
        return str(error)
    except SystemExit:
        return f"the parser of {words[1]} refuses it"
    return ""


def test_there_are_jobs() -> None:
    assert {job.file for job in JOBS} == {"pull-request.yml", "nightly.yml"}


@each_job
def test_every_command_of_a_job_exists(job: Job) -> None:
    commands = job.commands()
    assert commands
    for words in commands:
        assert not wrong(words), shlex.join(words)


@pytest.mark.parametrize(
    "line",
    [
        "make everything",
        "pip install residue",
        ".venv/bin/python -m ci gate --since main",
        ".venv/bin/residue judge --since main",
        ".venv/bin/residue gate",
        ".venv/bin/residue gate --since main --fast",
        ".venv/bin/residue mutate engine --shard 5/4",
        ".venv/bin/residue bench speed",
    ],
)
def test_a_command_that_does_not_exist_is_seen(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert wrong(shlex.split(line))


@each_job
def test_a_job_makes_the_environment_that_it_runs_in(job: Job) -> None:
    first, *others = job.commands()
    assert first[:2] == ["make", "environment"]
    python = [word.removeprefix("PYTHON=") for word in first[2:]]
    folder = f".venv-{python[0]}" if python else ".venv"
    for words in others:
        if words[0] == "make":
            assert words[2:] == first[2:]
        else:
            assert words[0] == f"{folder}/bin/residue"
    (version,) = (given["python-version"] for given in job.using("actions/setup-python"))
    assert f"python{job.fill(version)}" == (python[0] if python else "python3.11")


@each_job
def test_a_job_has_an_end_and_nothing_that_nobody_reads(job: Job) -> None:
    assert set(job.data) <= JOB
    assert job.data["runs-on"] == "ubuntu-24.04" and job.data["timeout-minutes"] <= 180
    others = {other.name for other in JOBS if other.file == job.file}
    assert {job.data["needs"]} <= others if "needs" in job.data else True
    for step in job.data["steps"]:
        assert set(step) <= STEP and ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert set(step.get("with", {})) <= ACTIONS[step["uses"]]
        assert "${{" not in step.get("run", "") or "matrix." in step["run"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_workflow_may_read_and_nothing_more_unless_a_job_says_so(file: Path) -> None:
    data = load(file)
    assert data["permissions"] == {"contents": "read"}
    assert set(data) == {"name", True, "permissions", "concurrency", "jobs"}  # YAML's `on` is True


def test_what_one_night_keeps_is_what_the_next_one_brings_back() -> None:
    (night,) = (job for job in JOBS if job.using("actions/cache/save"))
    (saved,), (restored,) = night.using("actions/cache/save"), night.using("actions/cache/restore")
    assert saved["path"] == restored["path"] and saved["key"] == restored["key"]
    assert saved["key"].startswith(restored["restore-keys"])


def test_the_shards_are_all_there_and_their_results_meet() -> None:
    shards = [job for job in JOBS if any("--shard" in words for words in job.commands())]
    (score,) = (job for job in JOBS if any("--merge" in words for words in job.commands()))
    (pattern,) = (given["pattern"] for given in score.using("actions/download-artifact"))
    (merged,) = (words[-1] for words in score.commands() if "--merge" in words)
    for number, job in enumerate(shards, 1):
        (words,) = (words for words in job.commands() if "--shard" in words)
        assert words[words.index("--shard") + 1] == f"{number}/{len(shards)}"
        (given,) = job.using("actions/upload-artifact")
        written = words[words.index("--json") + 1]
        assert job.fill(given["path"]) == written
        assert fnmatch.fnmatch(written, merged) and fnmatch.fnmatch(
            job.fill(given["name"]), pattern
        )


def test_a_report_that_is_kept_is_where_the_gate_writes_it() -> None:
    (gate,) = (job for job in JOBS if job.using("github/codeql-action"))
    (words,) = (words for words in gate.commands() if "gate" in words)
    folder = words[words.index("--out") + 1]
    (sarif,) = gate.using("github/codeql-action")
    assert sarif["sarif_file"] == f"{folder}/gate.sarif"
    (given,) = gate.using("actions/upload-artifact")
    assert all(path.startswith(f"{folder}/") for path in given["path"].split())
