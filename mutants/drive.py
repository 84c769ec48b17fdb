"""The process that runs inside a staged copy: `python -m mutants.drive JOB`, from its root.

JOB is a JSON file; every answer is one line of the file that it names, written as it comes, so
that an interrupted run loses nothing that was found.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pytest
from _pytest.runner import runtestprotocol
from mutmut.configuration import config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

from mutants.loop import CLEAN, Judged, Limits, Loop, NotClean, Suite
from mutants.settings import SUITE
from mutants.verdicts import function_of


class Tests:
    """The tests that pytest collected, run by its own protocol."""

    def __init__(self, items: list[pytest.Item], last: list[str]) -> None:
        files = {node.split("::")[0] for node in last}
        self.items = {
            item.nodeid: item
            for item in items
            if item.nodeid.split("::")[0] not in files or item.nodeid.partition("[")[0] in last
        }
        self.last = frozenset(n for n in self.items if n.partition("[")[0] in last)
        self.names = list(self.items)
        # pytest's own account of a failure reads and parses the sources on the way, and those of
        # mutated files are long: a kill would take a second instead of a tenth.
        for item in items:
            item.repr_failure = _short  # type: ignore[method-assign]

    def run(self, name: str, following: str | None) -> str:
        """One test with its fixtures; the line of its failure, or nothing."""
        item = self.items[name]
        after = self.items[following] if following else None
        for report in runtestprotocol(item, nextitem=after, log=False):
            if report.failed:
                return (str(report.longrepr).strip().splitlines() or ["failed"])[-1]
        return ""


def _short(excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
    return excinfo.exconly(tryshort=True)


class Inputs:
    """The committed inputs: one fails when an oracle does, or its committed outcome is not met."""

    def __init__(self, harnesses: list[str]) -> None:
        from harnesses import outcomes

        self.inputs: dict[str, tuple[Callable[[bytes], str], bytes, str]] = {}
        for harness in harnesses:
            module = importlib.import_module(f"{SUITE.harnesses}.{harness}")
            run = partial(module.run, thorough=True)
            for file, expected in outcomes.read(harness).items():
                data = (outcomes.folder(harness) / file).read_bytes()
                self.inputs[f"{harness}/{file}"] = (run, data, expected.outcome)
        self.names = list(self.inputs)

    def run(self, name: str, following: str | None) -> str:
        """One input; what is wrong with its outcome, or nothing."""
        run, data, expected = self.inputs[name]
        try:
            outcome = run(data)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "" if outcome == expected else f"expected {expected}, found {outcome}"


def main(path: str) -> int:
    """Do the job that a file describes."""
    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    os.environ.pop("PYTHONPATH", None)
    with Path(job["out"]).open("a", encoding="utf-8") as out:
        say = partial(_say, out)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config()
        wrong = _import(job, say)
        if wrong:
            say(untrusted=wrong)
            return 1
        if job["corpus"] is not None:
            return _drive(Inputs(job["corpus"]), job, say)
        arguments = ["-q", "-p", "no:cacheprovider", "--capture=no", "--assert=plain"]
        arguments += job["tests"]
        arguments += [f"--deselect={name}" for name in job["leave_out"]]
        plugin = _Plugin(job, say)
        code = int(pytest.main(arguments, plugins=[plugin]))
        if plugin.code is None:
            say(untrusted=f"pytest collected nothing to run and ended with {code}")
            return 1
        return plugin.code


class _Plugin:
    """Takes the place of pytest's loop over the tests that it has collected."""

    def __init__(self, job: dict[str, Any], say: Callable[..., None]) -> None:
        self.job = job
        self.say = say
        self.code: int | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.say(untrusted=f"{session.testsfailed} test files cannot be collected")
            self.code = 1
        else:
            self.code = _drive(Tests(session.items, self.job["last"]), self.job, self.say)
        return True


def _drive(suite: Suite, job: dict[str, Any], say: Callable[..., None]) -> int:
    last: frozenset[str] = getattr(suite, "last", frozenset())
    loop = Loop(suite, job["jobs"], Limits(**job["limits"]), job["beyond"], last)
    names = job["mutants"]

    def tell(judged: Judged) -> None:
        say(
            name=judged.name,
            verdict=judged.verdict,
            killers=judged.killers,
            seconds=round(judged.seconds, 3),
        )

    try:
        functions = dict.fromkeys(map(function_of, job["mutants"]))
        loop.prepare(functions)
        function = loop.plant(functions)
        if last:
            names = [name for name in names if loop.concerns_last(name)]
        say(due=len(names))
        say(clean=len(suite.names), planted=function, cpu=round(sum(loop.clean.cpu.values()), 2))
    except NotClean as error:
        say(untrusted=str(error), kind=type(error).__name__)
        return 1
    if job["hunt"]:
        from mutants.hunt import hunt

        assert isinstance(suite, Inputs)
        folder = Path(job["proposals"])
        for name in job["mutants"]:
            say(name=name, found=hunt(loop, suite.inputs, name, job["hunt"], folder))
    else:
        loop.judge(names, tell)
        judged = set(map(function_of, names))
        try:
            loop.check_unchanged(n for n in job["unchanged"] if function_of(n) in judged)
        except NotClean as error:
            say(untrusted=str(error), kind=type(error).__name__)
            return 1
    say(done=len(names), kills=dict(loop.kills), checks=suite.names)
    return 0


def _import(job: dict[str, Any], say: Callable[..., None]) -> str:
    """Import what is mutated; say which functions ran by that, and whether it is the staged one."""
    here = Path.cwd().resolve()
    set_mutant_under_test("stats")
    for file in job["files"]:
        module = importlib.import_module(".".join(Path(file).with_suffix("").parts))
        if Path(str(module.__file__)).resolve() != here / file:
            return f"{file}: another copy was imported than the staged one"
        if not any(name.startswith("mutants_x") for name in vars(module)):
            return f"{file}: what was imported has no mutants in it"
    say(at_import=sorted(state()._stats))
    state()._stats.clear()
    set_mutant_under_test(CLEAN)
    return ""


def _say(out: TextIO, **fields: object) -> None:
    out.write(json.dumps(fields, ensure_ascii=False) + "\n")
    out.flush()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """What a driver has said so far; a line that is cut short is not there yet."""
    with suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            yield json.loads(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
