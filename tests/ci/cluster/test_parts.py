"""What a run makes of answers that are late, lost or wrong, with a cluster that only pretends."""

import functools
import json

import pytest

from ci.cluster import archive, client, fuzz, mutate
from ci.cluster.client import Answer, Lost, Sent
from ci.exits import Untrusted
from ci.fuzzing.allocation import shares
from ci.fuzzing.shard import Shard, Task
from ci.fuzzing.supervisor import Phase
from ci.process import ROOT, Stop
from mutants import survey
from mutants.verdicts import Report, Result, Verdict

FILE = "engine/hardware.py"
ONLY = frozenset({"names_aes"})
MUTATE = functools.cache(survey.mutate)


class Pretended:
    """A cluster of two threads; `answers` says what becomes of each shard, by its turn."""

    answers = staticmethod(lambda name, work, turn: None)
    lanes = ("tcp://a", "tcp://b")
    address = "tcp://s"
    deserted = broken = False
    bytes_out = bytes_back = 0

    def __init__(self, address, packages):
        self.told, self.notes, self.sent = {}, [], []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def archive(self, data):
        return archive.digest(data)

    def home(self, wanted, busy):
        return wanted

    def send(self, name, work, archives, given, seconds, home):
        self.sent.append(work)
        return Sent(name, home, self.answers(name, work, len(self.sent)))

    def take(self, sent):
        if isinstance(sent.future, Exception):
            raise sent.future
        return sent.future

    def stop(self):
        pass


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Replace the cluster of both kinds of run by one that answers as told."""

    def put(answers):
        kind = type("Told", (Pretended,), {"answers": staticmethod(answers)})
        monkeypatch.setattr(mutate, "Cluster", kind)
        monkeypatch.setattr(fuzz, "Cluster", kind)
        monkeypatch.setattr(mutate, "LEAST", 12)
        monkeypatch.setattr(survey, "mutate", MUTATE)
        monkeypatch.setattr(archive, "code", lambda *_: [])

    return put


def part(tmp_path, work, verdict=Verdict.KILLED, made=23):
    """The answer of one part of FILE's mutants."""
    step, of = work["shard"]
    _, mutants = survey.mutate(FILE, (ROOT / FILE).read_text(encoding="utf-8"), ONLY)
    chosen = mutants[step - 1 :: of]
    report = Report([Result(m, verdict) for m in chosen], {FILE: made}, len(chosen))
    path = tmp_path / "results.json"
    report.write(path)
    state = {"killers": {}, "idle": ["never", f"not by {step}"]}
    return Answer("tcp://a", state, archive.pack([("results.json", path)]))


def judge(folder, stop=None):
    given = (folder, Stop() if stop is None else stop, lambda *_: None)
    return mutate.evaluate("tcp://s", [FILE], ONLY, None, *given)


def test_the_parts_are_one_report_again(pretend, tmp_path):
    pretend(lambda name, work, turn: part(tmp_path, work))
    (judged,) = judge(tmp_path / "run")
    assert judged.report.adds_up() and judged.report.due == 23
    assert judged.idle == ["never"], "what one part killed with is not idle"
    assert FILE in judged.report.unmutable


def test_a_part_that_never_comes_back_condemns_the_run(pretend, tmp_path):
    pretend(lambda *_: Lost("engine-hardware.py-1-of-2: every worker that ran it was lost"))
    with pytest.raises(Untrusted, match="every worker that ran it was lost"):
        judge(tmp_path)


def test_what_a_part_does_not_trust_condemns_the_run(pretend, tmp_path):
    pretend(lambda *_: Answer("tcp://a", {"untrusted": f"{FILE}: a test fails"}, b""))
    with pytest.raises(Untrusted, match="a test fails"):
        judge(tmp_path)


def test_workers_that_count_other_mutants_condemn_the_run(pretend, tmp_path):
    pretend(lambda name, work, turn: part(tmp_path, work, made=20 + turn))
    with pytest.raises(Untrusted, match="do not agree"):
        judge(tmp_path / "run")
    pretend(lambda name, work, turn: part(tmp_path, work, made=22))
    with pytest.raises(Untrusted, match="23 mutants here and 22 there"):
        judge(tmp_path / "again")


def test_after_a_signal_what_did_not_come_back_was_not_run(pretend, tmp_path, monkeypatch):
    stop = Stop()
    monkeypatch.setattr(mutate, "SECONDS_TO_COME_HOME", 0.0)

    def answers(name, work, turn):
        stop.count = turn - 1
        return part(tmp_path, work) if turn == 1 else None

    pretend(answers)
    (judged,) = judge(tmp_path / "run", stop)
    counts = judged.report.counts()
    assert (counts[Verdict.KILLED], counts[Verdict.NOT_RUN]) == (12, 11)
    assert judged.report.adds_up()


def supervise(tmp_path, harnesses, jobs=1, seconds=4.3):
    """A phase whose shards are named after their harness; what it came to."""
    (tmp_path / "seeds").mkdir()

    def make(share, seconds, number):
        folder = tmp_path / f"{share.harness}-{number}"
        findings = tmp_path / "findings"
        task = Task(share.harness, folder.name, folder, [], findings, None, number, 60, ["x"])
        return Shard(task, seconds)

    phase = Phase(seconds, jobs, shares(harnesses))
    fuzz.supervise("tcp://s", phase, make, Stop(), lambda *_: None)
    return phase


def answer(tmp_path, seconds, inputs, **state):
    """What comes back of one turn."""
    files = []
    for path, data in inputs.items():
        file = tmp_path / path.replace("/", "-")
        file.write_bytes(data)
        files.append((path, file))
    said = {"executions": 10, "edges": 5, "starts": 1, "ends": [], "gave_up": False}
    said |= {"seeds_edges": 1, "cpu": seconds}
    return Answer("tcp://a", {**said, "seconds": seconds, **state}, archive.pack(files))


def test_a_turn_begins_with_what_came_back_of_those_before_it(pretend, tmp_path):
    works = []

    def answers(name, work, turn):
        works.append((name, work))
        inputs = {f"out/corpus/{turn}": b"%d" % turn, "out/log": b"line\n"}
        return answer(tmp_path, 4.0, inputs, edges=turn)

    pretend(answers)
    phase = supervise(tmp_path, ["hello"])
    assert [name for name, _ in works][:2] == ["hello-1", "hello-2"]
    assert [work["seeds"] for _, work in works][:2] == [False, True]
    assert [work["seed"] for _, work in works][:2] == [1, 2], "another seed each"
    for number, shard in enumerate(phase.shards, 1):
        assert (shard.executions, shard.edges, shard.cpu) == (10, number, 4.0) and shard.finished
        assert [file.name for file in shard.corpus.iterdir()] == [str(number)]
        assert shard.log.read_text() == "line\n" and shard.elapsed(0.0) == pytest.approx(4.0)
    assert phase.gained("hello") == len(phase.shards) - 1


def test_a_finding_is_kept_once_and_with_its_own_input(pretend, tmp_path):
    report = json.dumps({"input": "d.input"}).encode()

    def answers(name, work, turn):
        inputs = {"findings/d.json": report, "findings/d.input": b"%d" % turn}
        return answer(tmp_path, work["seconds"], inputs)

    pretend(answers)
    supervise(tmp_path, ["hello", "server"], jobs=2)
    kept = {file.name: file.read_bytes() for file in (tmp_path / "findings").iterdir()}
    assert kept == {"d.json": report, "d.input": b"1"}


def test_a_shard_that_is_lost_is_said_and_the_others_go_on(pretend, tmp_path):
    def answers(name, work, turn):
        if name == "hello-1":
            return Lost("hello-1: every worker that ran it was lost")
        return answer(tmp_path, work["seconds"], {})

    pretend(answers)
    phase = supervise(tmp_path, ["hello", "keyed"])
    assert phase.troubles == ["hello-1: every worker that ran it was lost"]
    lost, other, *_ = phase.shards
    assert lost.finished and lost.executions == 0 and other.executions == 10


def test_a_lane_whose_worker_is_gone_moves_to_the_one_with_the_fewest():
    cluster = client.Cluster("tcp://s", [])
    cluster.workers = {"a", "b"}
    cluster._looked = float("inf")
    assert cluster.home("a", ["a", "a"]) == "a"
    assert cluster.home("gone", ["a", "b", "a"]) == "b"
