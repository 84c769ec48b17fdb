"""A whole run, with a fuzzer that is none: what it finds, what it keeps, what it concludes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote
from types import SimpleNamespace

import pytest

from ci import output
from ci.coverage import covered
from ci.fuzzing import campaign, summary
from ci.fuzzing.campaign import Options, as_data
from ci.fuzzing.progress import FuzzingProgress
from ci.process import ROOT, Job, Stop, commit
from tests.tools import PATIENCE, alive, wait_until

FAKE = ROOT / "tests" / "ci" / "fake_runner.py"


def go(tmp_path, behaviours, seconds=2.0, **changes):
    """Conduct a run and write its summary, as `residue campaign` does."""
    options = Options(
        "campaign",
        behaviours,
        seconds,
        len(behaviours),
        corpus=tmp_path / "corpus",
        command=lambda name: [sys.executable, str(FAKE), name],
        canaries=False,
        measures=False,
        **changes,
    )
    out = output.make(str(tmp_path / "out"), "campaign")
    with Stop() as stop:
        data = as_data(campaign.run_campaign(options, out, FuzzingProgress(), stop))
    return data, summary.write(out.root, data), out


def test_a_run_that_finds_nothing_leaves_its_new_inputs_minimised(tmp_path):
    data, text, out = go(tmp_path, ["good"])
    assert data["exit"] == 0 and text.startswith("campaign: nothing found")
    assert data["harnesses"]["good"]["new"] == len(list(out.new("good").iterdir())) > 5
    assert f"residue promote {out.new('good')}/FILE --harness good" in text
    assert json.loads((out.root / "summary.json").read_text()) == data
    # Whoever finds the folder a month later knows what was run, and so does the report.
    assert data["commit"] == commit()
    assert f"\ncommit {commit()}\n" in (out.root / "summary.txt").read_text()
    assert (out.root / "summary.txt").read_text() == text
    assert not out.scratch.exists()


def test_what_is_no_input_among_the_further_seeds_is_left_out_and_told(tmp_path):
    kept = tmp_path / "kept" / "good"
    kept.mkdir(parents=True)
    (kept / "fine").write_bytes(b"one more")
    (kept / "long").write_bytes(bytes(5_000_000))
    (kept / "folder").mkdir()
    (kept / "nowhere").symlink_to("no-such-file")
    (kept / "unread").symlink_to("/proc/self/mem")
    os.mkfifo(kept / "pipe")
    data, _, out = go(tmp_path, ["good"], seeds=tmp_path / "kept")
    assert [file.name for file in out.seeds("good").iterdir()] == ["fine"]
    left = {note.split("/")[1].split(" ")[0]: note for note in data["notes"] if "left out" in note}
    assert sorted(left) == ["folder", "long", "nowhere", "pipe", "unread"]
    assert left["long"] == "the seed good/long is left out: it has 5,000,000 bytes"


def test_further_seeds_are_given_to_the_shards_and_merged(tmp_path):
    (tmp_path / "kept" / "good").mkdir(parents=True)
    (tmp_path / "kept" / "good" / "seed").write_bytes(b"kept")
    data, _, out = go(tmp_path, ["good"], seeds=tmp_path / "kept", value_profile="good")
    good = data["harnesses"]["good"]
    assert good["seeds"] == 1 and good["new"] == good["found"] + 1
    assert b"kept" in {file.read_bytes() for file in out.merged("good").iterdir()}
    profiled = [shard["value_profile"] for shard in good["shards"]]
    assert sorted(profiled) == [False, True]


def test_the_curve_begins_and_ends_with_the_phase(tmp_path):
    data, _, _ = go(tmp_path, ["good"])
    points = data["curve"]
    assert [p["t"] for p in points] == sorted(p["t"] for p in points) and points[-1]["t"] >= 2.0
    assert points[-1]["executions"] == data["harnesses"]["good"]["executions"] > 0
    assert {point["harness"] for point in points} == {"good"}


def test_a_crash_is_found_once_and_the_run_goes_on(tmp_path):
    data, text, _ = go(tmp_path, ["crash", "good"], 3.0)
    assert data["exit"] == 1
    (finding,) = data["findings"]
    assert finding["frames"] == ["records.py:open_record"]
    # As a shell takes it: a folder's name may have a space.
    assert f"residue replay crash {quote(finding['input'])}" in text
    assert Path(finding["input"]).read_bytes() == b"bad"
    (shard,) = data["harnesses"]["crash"]["shards"]
    assert shard["starts"] > 1 and any("ended with a crash" in note for note in data["notes"])


@pytest.mark.parametrize("ended, code", [("done", 0), ("timeout", 1), ("crash", 1)])
def test_a_time_out_on_the_wall_is_a_finding_only_if_it_is_one_in_processor_time(
    tmp_path, monkeypatch, ended, code
):
    class Prober:
        def __init__(self, harness):
            assert harness == "stopped"

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            pass

        def ask(self, data):
            assert data == b"slow"
            return SimpleNamespace(ended=ended)

    monkeypatch.setattr("ci.fuzzing.findings.Prober", Prober)
    data, text, _ = go(tmp_path, ["stopped"], 1.0)
    assert data["exit"] == code and len(data["findings"]) == code
    assert data["harnesses"]["stopped"]["shards"][0]["ends"].count(70) == 1
    assert ("on a busy machine" in text) is (code == 0)


@pytest.mark.parametrize("behaviour, code", [("silent", 3), ("traceless", 77)])
def test_processes_that_end_without_a_word_condemn_the_run(tmp_path, behaviour, code):
    data, text, _ = go(tmp_path, [behaviour], 2.0)
    assert data["exit"] == 3
    assert f"ended by itself with {code}" in text and "not to be trusted" in text


def test_a_harness_that_cannot_start_condemns_the_run(tmp_path):
    data, _, _ = go(tmp_path, ["broken"], 30.0)
    assert data["exit"] == 3 and data["harnesses"]["broken"]["executions"] == 0


def test_a_merge_that_lost_coverage_keeps_every_input(tmp_path, monkeypatch):
    """The measuring processes are replaced: they say that the merge lost two lines."""
    more = {"engine/a.py": {"executed_lines": [1, 2, 3], "missing_lines": []}}
    less = {"engine/a.py": {"executed_lines": [1], "missing_lines": [2, 3]}}
    for files in (more, less):
        files["engine/a.py"].update(executed_branches=[], missing_branches=[])

    def job(harness, committed, merged, sources, result, log):
        reach = {"import": less, "committed": less, "merged": less, "all": more}
        body = json.dumps({"reach": reach, "restored": []})
        script = f"open({str(result)!r}, 'w').write({body!r})"
        return Job([sys.executable, "-c", script], log, 30)

    monkeypatch.setattr(covered, "job", job)
    options = Options(
        "campaign",
        ["emptied"],
        2.0,
        1,
        corpus=tmp_path,
        command=lambda name: [sys.executable, str(FAKE), name],
        canaries=False,
        whole=False,
    )
    out = output.make(str(tmp_path / "out"), "campaign")
    with Stop() as stop:
        data = as_data(campaign.run_campaign(options, out, FuzzingProgress(), stop))
    emptied = data["harnesses"]["emptied"]
    assert emptied["kept_all"] == "it lost 2 lines and branches"
    assert emptied["new"] == emptied["found"] > 5
    assert emptied["coverage"]["lines"] == 3


# A run in a process of its own, to be interrupted. It says where it is on standard error.
RUN = """
import sys
from pathlib import Path
from tests.ci.fuzzing import test_campaign
data, text, out = test_campaign.go(Path(sys.argv[1]), sys.argv[3:], float(sys.argv[2]))
print(text)
sys.exit(data["exit"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.0, 0.4, 1.5])
def test_an_interrupted_run_keeps_what_it_has_and_leaves_nothing_running(tmp_path, number, delay):
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), "60", "good", "parent"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as child:
        log = tmp_path / "out" / "shards" / "parent-2" / "log"
        wait_until(lambda: log.exists() and "INITED" in log.read_text())
        time.sleep(delay)
        child.send_signal(number)
        said = child.communicate(timeout=PATIENCE)[0]
    assert child.returncode == 130
    assert said.startswith("campaign: interrupted; what was found until then is kept")
    data = json.loads((tmp_path / "out" / "summary.json").read_text())
    for name in ("good", "parent"):
        kept = list((tmp_path / "out" / "shards").glob(f"{name}-*/corpus/*"))
        assert data["harnesses"][name]["new"] == len(kept)
    (grandchild,) = re.findall(r"child (\d+)", log.read_text())
    assert not alive(int(grandchild))


def test_two_signals_leave_out_the_merge_and_lose_nothing(tmp_path):
    behaviours = ["deaf"]

    class Twice(Stop):
        def _arrived(self, number, frame):
            self.count += 2

    options = Options(
        "campaign",
        behaviours,
        60.0,
        1,
        corpus=tmp_path,
        command=lambda name: [sys.executable, str(FAKE), name],
        canaries=False,
    )
    out = output.make(str(tmp_path / "out"), "campaign")

    class Pull(FuzzingProgress):
        def __call__(self, phase, now):
            if now - phase.began > 1.0:
                os.kill(os.getpid(), signal.SIGINT)

    with Twice() as stop:
        data = as_data(campaign.run_campaign(options, out, Pull(), stop))
    assert data["exit"] == 130
    assert data["harnesses"]["deaf"]["kept_all"] == "it was interrupted"
    assert data["harnesses"]["deaf"]["new"] == data["harnesses"]["deaf"]["found"]
