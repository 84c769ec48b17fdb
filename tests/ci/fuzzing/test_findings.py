"""Findings: one a signature, whoever saw it."""

import json
import shlex

from ci.fuzzing.findings import collect

HANG = """INFO: seed corpus
  File "/x/engine/records.py", line 4 in spin
  File "/x/engine/engine.py", line 6 in feed
  File "/x/harnesses/server.py", line 14 in run
  File "/x/harnesses/run.py", line 87 in recording
  File "<frozen runpy>", line 88 in _run_code
ALARM: working on the last Unit for 4 seconds
artifact_prefix='my arts/'; Test unit written to my arts/{name}
==8705== ERROR: libFuzzer: timeout after 4 seconds
"""


def shard(tmp_path, log, **files):
    folder = tmp_path / "artifacts"
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name.replace("_", "-")).write_bytes(data)
    (tmp_path / "log").write_text(log)
    return [(folder, tmp_path / "log")]


def test_a_hang_becomes_a_finding_with_its_innermost_frames_last(tmp_path):
    pairs = shard(tmp_path, HANG.format(name="timeout-aa"), timeout_aa=b"T")
    (finding,) = collect(tmp_path / "findings", "server", pairs)
    assert finding.kind == "timeout"
    assert finding.frames == ["server.py:run", "engine.py:feed", "records.py:spin"]
    assert finding.detail == "timeout after 4 seconds"
    assert (tmp_path / "findings" / finding.input.rsplit("/", 1)[1]).read_bytes() == b"T"
    assert finding.replay == f"residue replay server {shlex.quote(finding.input)}"


def test_the_same_hang_twice_is_one_finding_and_another_is_another(tmp_path):
    log = HANG.format(name="timeout-aa") + HANG.format(name="timeout-bb")
    other = HANG.format(name="timeout-cc").replace("in spin", "in turn")
    pairs = shard(tmp_path, log + other, timeout_aa=b"1", timeout_bb=b"2", timeout_cc=b"3")
    found = collect(tmp_path / "findings", "server", pairs)
    assert sorted(f.frames[-1] for f in found) == ["records.py:spin", "records.py:turn"]
    assert len(collect(tmp_path / "findings", "server", pairs)) == 2, "gathering twice adds none"


def test_a_slow_input_is_no_finding(tmp_path):
    pairs = shard(tmp_path, "", slow_unit_aa=b"1")
    assert collect(tmp_path / "findings", "server", pairs) == []


def test_memory_and_crashes_without_a_stack_are_findings_too(tmp_path):
    pairs = shard(tmp_path, "", oom_aa=b"1", crash_bb=b"2")
    assert {f.kind for f in collect(tmp_path / "findings", "hello", pairs)} == {
        "out-of-memory",
        "crash",
    }


def test_what_the_runner_saved_is_read(tmp_path):
    from harnesses.run import save

    try:
        raise ValueError("no such suite")
    except ValueError as error:
        assert save(tmp_path, "hello", b"data", error)
        assert not save(tmp_path, "hello", b"other", error)
    (finding,) = collect(tmp_path, "hello", [])
    assert finding.kind == "ValueError" and "no such suite" in finding.detail
    report = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert finding.input.endswith(report["input"])
