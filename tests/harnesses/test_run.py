"""The runner: what makes two findings one, how they are saved, and that it finds what it must."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harnesses import outcomes, run
from harnesses.oracles import Broken
from harnesses.signature import signature
from mutants import plants, settings
from tests.tools import PATIENCE


def deeper(text: str) -> None:
    raise ValueError(text)


def caught(text: str) -> Exception:
    """A finding as an oracle reports it: raised from the exception that it met."""
    try:
        try:
            deeper(text)
        except ValueError as error:
            raise Broken("raised", text) from error
    except Broken as broken:
        return broken
    raise AssertionError


def test_a_finding_is_known_by_its_oracle_its_kind_and_where_the_cause_is() -> None:
    assert signature(caught("12 bytes of state 0f3c")) == {
        "oracle": "raised",
        "says": "N bytes of state N",
        "kind": "ValueError",
        "frames": ["harnesses/test_run.py:deeper"],
    }
    assert signature(caught("9 bytes")) == signature(caught("10 bytes"))
    assert signature(caught("9 bytes")) != signature(caught("9 lines"))


def test_an_exception_that_no_oracle_reported_has_a_signature_too() -> None:
    error = KeyError("x")
    assert signature(error) == {
        "oracle": None,
        "says": "",
        "kind": "KeyError",
        "frames": [],
    }


def test_a_finding_is_saved_once_for_its_signature(tmp_path: Path) -> None:
    folder = tmp_path / "findings"
    assert run.save(folder, "hello", b"first", caught("a"))
    assert not run.save(folder, "hello", b"second", caught("a"))
    assert run.save(folder, "server", b"third", caught("a"))
    reports = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    assert sorted(report["harness"] for report in reports) == ["hello", "server"]
    for report in reports:
        data = (folder / report["input"]).read_bytes()
        assert data == {"hello": b"first", "server": b"third"}[report["harness"]]
        assert report["signature"]["oracle"] == "raised"
        assert report["detail"].endswith("Broken: raised: a")
    assert len(list(folder.iterdir())) == 4


def test_a_campaign_goes_on_past_a_finding_and_a_single_run_does_not(tmp_path: Path) -> None:
    def broken(data: bytes) -> str:
        raise Broken("raised", "always")

    recording = run.target("hello", broken, tmp_path)
    recording(b"x")
    recording(b"y")
    assert len(list(tmp_path.glob("*.json"))) == 1
    with pytest.raises(Broken):
        run.target("hello", broken, None)(b"x")


def test_the_program_that_libfuzzer_starts_again_is_a_whole_command() -> None:
    argv = run.arguments("python -m harnesses.run hello", ["-merge=1", "-timeout=3", "a", "b"], 77)
    assert argv[0] == "python -m harnesses.run hello"
    assert argv[1:] == ["-rss_limit_mb=1024", "-max_len=77", "-merge=1", "-timeout=3", "a", "b"]


def test_a_committed_folder_is_read_and_never_written(capsys: pytest.CaptureFixture[str]) -> None:
    """libFuzzer writes into the first folder that it is given, and reads the others."""
    folder = str(outcomes.folder("hello"))
    with pytest.raises(SystemExit) as ended:
        run.arguments("x", ["-runs=0", folder], 77)
    assert ended.value.code == 2 and "is committed" in capsys.readouterr().err
    for given in (["build", folder], [f"{folder}/handmade-plain"], [f"-dict={folder}"]):
        assert run.arguments("x", given, 77)[-len(given) :] == given


def test_everything_of_the_engine_is_instrumented_but_the_block_moves() -> None:
    """Also what lies in a package of the engine: its edges would be missing without a word."""
    pytest.importorskip("atheris", reason="the fuzzer is an extra")
    root = settings.ROOT
    here = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in (root / "engine").rglob("*.py")
    }
    assert {"engine", "engine.receive", "engine.x509.der"} <= here
    done = subprocess.run(
        [sys.executable, "-B", "-c", "from harnesses import run; run.instrument('hello')"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    said = set(re.findall(r"^INFO: Instrumenting (\S+)$", done.stderr, re.MULTILINE))
    assert {name for name in said if name.startswith("engine")} == here - {*run.PLAIN, run.POOL}
    formats = {"harnesses.formats", "harnesses.formats.server"}
    assert set(run.instrumented()) == {*here, *formats}
    assert formats <= said and {*run.PLAIN, run.POOL} <= here


@pytest.mark.parametrize("arguments", [[], ["nothing"]])
def test_a_name_that_is_no_harness_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ")


def test_the_fuzzer_reports_a_planted_fault_and_goes_on(tmp_path: Path) -> None:
    """The whole way: instrumentation, oracle, signature, file, and runs after the finding."""
    pytest.importorskip("atheris", reason="the fuzzer is an extra")
    (plant,) = (plant for plant in plants.load_all() if plant.name == "refusal")
    tree = plants.apply(plant, tmp_path / "tree")
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for name in ("handmade-plain", "handmade-alpn-name-empty"):
        shutil.copy(outcomes.folder("hello") / name, seeds)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "harnesses.run", "hello", "-runs=500", str(seeds)],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "RESIDUE_FINDINGS": str(tmp_path / "findings")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (report,) = (tmp_path / "findings").glob("*.json")
    found = json.loads(report.read_text())
    assert found["signature"]["oracle"] == "refusal"
    assert (tmp_path / "findings" / found["input"]).read_bytes() == (
        seeds / "handmade-alpn-name-empty"
    ).read_bytes()
    assert "Done 500 runs" in done.stderr
