"""The commands on findings: what they list, how they end, and that they lose nothing."""

import json
import os
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci.command import main
from ci.commands import minimise, promote, triage
from ci.inputs import reference_tree
from harnesses import outcomes
from harnesses.signature import signature as told_by
from tests.ci import tiny
from triage import intake, known
from triage.limits import Limits
from triage.prober import Found, Verdict
from triage.signature import Signature, raised


class Prober:
    """`tiny` in this process, where nothing hangs and nothing dies."""

    limits = Limits()
    fixed = False

    def __init__(self, harness="tiny", root=None, limits=None):
        self.harness, self.root = harness, root

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def stop(self):
        pass

    def judge(self, data):
        try:
            return Verdict("waiting" if self.fixed else tiny.run(data), [])
        except Exception as error:
            made = raised("tiny", told_by(error), str(error))
            return Verdict(None, [Found(made, str(error), ["a", "b"])])

    def shows(self, data, wanted, thorough, seconds):
        return self.judge(data).of(wanted) is not None

    def first(self, inputs, wanted, thorough):
        return 1, self.shows(inputs[0], wanted, thorough, 1)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A harness, a store in its usual place, and a campaign's folder with one finding."""
    tiny.install(monkeypatch, tmp_path / "corpus", client=b"e1", plain=b"w")
    monkeypatch.setattr("triage.sightings.KNOWN_HARNESSES", ("tiny",))
    monkeypatch.setattr(triage, "STORE", tmp_path / "store")
    monkeypatch.setattr(triage, "NIGHTS", tmp_path / "nightly" / "buckets")
    monkeypatch.setattr(Prober, "fixed", False)
    for module in (intake, minimise, promote):
        monkeypatch.setattr(module, "Prober", Prober)
    monkeypatch.setattr(known, "PATH", tmp_path / "known.toml")
    (tmp_path / "known.toml").write_text("")
    left(tmp_path / "out", b"!residue")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def left(folder: Path, data: bytes, name: str = "crash-aa") -> None:
    artifacts = folder / "shards" / "tiny-0" / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    (artifacts / name).write_bytes(data)
    os.utime(artifacts / name, (86_400, 86_400))


def rows() -> list[dict[str, Any]]:
    main(["triage", "--json", "rows.json"])
    found: list[dict[str, Any]] = json.loads(Path("rows.json").read_text())
    return found


def test_an_empty_store_says_what_fills_it(here, capsys):
    assert main(["triage"]) == 0
    assert "no bucket: none in store; residue triage --from OUT" in capsys.readouterr().out
    assert not (here / "store").exists()


def test_a_bucket_that_cannot_be_read_is_told_and_hides_no_other(here, capsys):
    (here / "store").mkdir()
    (here / "store" / "0123456789ab.json").write_text("{torn")
    assert main(["triage"]) == 3
    assert "0123456789ab.json is no bucket" in capsys.readouterr().err
    assert main(["triage", "--from", "out", "--json", "rows.json"]) == 1
    assert len(json.loads((here / "rows.json").read_text())) == 1
    assert (here / "store" / "0123456789ab.json").read_text() == "{torn"


def test_a_finding_is_a_bucket_with_all_that_a_report_needs(here, capsys):
    assert main(["triage", "--from", "out", "--json", "rows.json"]) == 1
    out = capsys.readouterr().out
    assert "tiny residue: residue: 3 bytes left" in out and "1 bucket: 1 new" in out
    (row,) = json.loads((here / "rows.json").read_text())
    assert {key: row[key] for key in ("harness", "kind", "oracle", "state", "count", "size")} == {
        "harness": "tiny",
        "kind": "oracle",
        "oracle": "residue",
        "state": "new",
        "count": 1,
        "size": 8,
    }
    assert row["first_seen"] == row["last_seen"] == "1970-01-02T00:00:00Z"
    assert row["reproduce"] == f"residue replay tiny store/{row['id']}.input"
    assert Path(row["input"]).read_bytes() == b"!residue"
    assert row["traceback"] == ["a", "b"] and not row["minimised"]


def test_the_same_folder_twice_counts_once_and_a_smaller_input_is_kept(here):
    main(["triage", "--from", "out", "--from", "out"])
    left(here / "out", b"!")
    left(here / "out", b"!another", "crash-bb")
    main(["triage", "--from", "out"])
    (row,) = rows()
    assert (row["count"], row["size"]) == (3, 1)


def test_what_is_not_reproduced_is_kept_and_says_so(here, capsys):
    left(here / "out", b"fine", "timeout-bb")
    assert main(["triage", "--from", "out"]) == 1
    out = capsys.readouterr().out
    assert "not reproduced: in a fresh process it ended as waiting" in out
    assert "2 buckets: 2 new" in out
    # It never showed it, so it is not fixed by not showing it again; nor is it made smaller.
    main(["triage", "--replay", "--minimise", "5"])
    (row,) = (row for row in rows() if row["kind"] == "timeout")
    assert (row["state"], row["minimised"], row["size"]) == ("new", False, 4)


def test_a_slow_unit_that_was_only_the_load_is_none(here):
    left(here / "out", b"fine", "slow-unit-bb")
    main(["triage", "--from", "out"])
    assert len(rows()) == 1


def test_a_known_one_is_green_until_its_day_has_passed(here, capsys):
    main(["triage", "--from", "out"])
    (row,) = rows()
    (here / "known.toml").write_text(
        f'[[known]]\nbucket = "{row["id"]}"\nreason = "the next release"\nexpires = 2027-01-31\n'
    )
    assert main(["triage", "--today", "2027-01-31"]) == 0
    assert "until 2027-01-31: the next release" in capsys.readouterr().out
    assert main(["triage", "--today", "2027-02-01", "--json", "rows.json"]) == 1
    (row,) = json.loads((here / "rows.json").read_text())
    assert (row["state"], row["expires"]) == ("expired", "2027-01-31")


def test_a_known_one_that_is_gone_is_listed_as_stale(here, capsys):
    (here / "mine.toml").write_text(
        '[[known]]\nharness = "server"\nreason = "r"\nexpires = 2026-01-31\n'
    )
    assert main(["triage", "--known", "mine.toml", "--today", "2027-01-01"]) == 0
    assert "stale    in the known findings: harness=server" in capsys.readouterr().out


def test_what_a_replay_finds_gone_is_fixed_and_comes_back_when_it_is_seen_again(here, capsys):
    main(["triage", "--from", "out"])
    Prober.fixed = True
    assert main(["triage", "--replay", "--today", "2027-01-01"]) == 0
    out = capsys.readouterr().out
    assert "fixed " in out and "the input ends as waiting now" in out
    assert main(["triage", "--replay", "--today", "2027-01-02"]) == 0
    assert rows()[0]["fixed"] == "2027-01-01T00:00:00Z"
    Prober.fixed = False
    left(here / "more", b"!again and longer")
    assert main(["triage", "--from", "more"]) == 1
    assert "came back: it was fixed 2027-01-01" in capsys.readouterr().out


def test_minimising_makes_it_small_once(here):
    main(["triage", "--from", "out", "--minimise", "9"])
    (row,) = rows()
    assert row["minimised"] and row["size"] == 1
    runs = []
    Prober.shows, before = (lambda self, *rest: runs.append(rest) or True), Prober.shows
    try:
        main(["triage", "--minimise", "9"])
    finally:
        Prober.shows = before
    assert runs == []


def test_an_unreadable_finding_is_named_and_the_rest_is_taken(here, capsys):
    (here / "out" / "findings" / "tiny").mkdir(parents=True)
    (here / "out" / "findings" / "tiny" / "half.json").write_text("{")
    assert main(["triage", "--from", "out"]) == 1
    said = capsys.readouterr()
    assert "half.json is no finding" in said.err and "1 new" in said.out
    for file in (here / "out" / "shards").rglob("crash-*"):
        file.unlink()
    Prober.fixed = True
    main(["triage", "--replay"])
    assert main(["triage", "--from", "out"]) == 3


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["triage", "nothing"], "there is no nothing"),
        (["triage", "known.toml"], "known.toml is not a folder"),
        (["triage", "--from", "nothing"], "there is no nothing"),
        (["triage", "--from", "known.toml"], "not what residue replay --json prints"),
        (["triage", "--known", "nothing"], "nothing: No such file"),
        (["triage", "--against", "x"], "--against is for --minimise"),
        (["triage", "--json", "known.toml/x"], "cannot be written"),
        (["minimise", "nothing", "--harness", "tiny"], "neither a file nor a bucket"),
        (["minimise", "known.toml"], "say it with --harness"),
        (["minimise", "known.toml", "--harness", "nobody"], "there is no harness 'nobody'"),
        (["minimise", "known.toml", "--harness", "tiny", "--out", "no/x"], "there is no folder no"),
        (["minimise", "known.toml", "--harness", "tiny", "--out", "known.toml"], "input itself"),
        (["promote", "nothing"], "neither a file nor a bucket"),
        (["promote", "known.toml"], "say it with --harness"),
        (["promote", "known.toml", "--harness", "recordings"], "docs/recordings.md"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_2(here, capsys, argv, says):
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1 and err.startswith("residue: ")


def test_a_folder_that_no_run_left_does_not_keep_others_from_being_taken(here, capsys):
    assert main(["triage", "--from", "corpus"]) == 3
    assert "corpus has no folder findings, shards, new: no run left it" in capsys.readouterr().err
    assert main(["triage", "--from", "corpus", "--from", "out"]) == 1
    assert "1 new" in capsys.readouterr().out


def test_a_store_that_is_not_there_yet_is_made_for_work_and_not_for_a_look(here):
    assert main(["triage", "mine"]) == 2
    assert main(["triage", "mine", "--replay"]) == 0
    assert (here / "mine").is_dir()


def test_a_broken_file_of_known_ones_is_exit_2_before_anything_runs(here, capsys):
    (here / "known.toml").write_text("[[known]]\nbucket = 3\n")
    assert main(["triage", "--from", "out"]) == 2
    assert "entry 1 has no reason" in capsys.readouterr().err
    assert not (here / "store").exists()


def test_a_file_is_made_smaller_beside_itself(here, capsys):
    (here / "found").write_bytes(b"!and much more")
    assert main(["minimise", "found", "--harness", "tiny"]) == 0
    assert (here / "found").read_bytes() == b"!and much more"
    assert (here / "found.smaller").read_bytes() == b"!"
    assert "residue replay tiny found.smaller" in capsys.readouterr().out
    assert main(["minimise", "found.smaller", "--harness", "tiny"]) == 0
    assert "nothing could be left out" in capsys.readouterr().out


def test_an_input_that_shows_nothing_cannot_be_made_smaller(here, capsys):
    (here / "found").write_bytes(b"fine")
    assert main(["minimise", "found", "--harness", "tiny"]) == 3
    assert "it shows nothing: it ends as waiting" in capsys.readouterr().err


def test_an_input_that_shows_it_now_and_then_is_not_cut(here, capsys, monkeypatch):
    (here / "found").write_bytes(b"!now and then")
    turns = iter([True, False, True])
    monkeypatch.setattr(Prober, "shows", lambda self, *rest: next(turns))
    assert main(["minimise", "found", "--harness", "tiny"]) == 3
    assert "in 2 of 3 runs; nothing was changed" in capsys.readouterr().err
    assert not (here / "found.smaller").exists()


@pytest.mark.parametrize("where", ["file", "bucket"])
def test_an_interruption_keeps_the_smallest_so_far(here, monkeypatch, where):
    main(["triage", "--from", "out"])
    (row,) = rows()
    real = Prober.shows

    def shows(self, data, *rest):
        if len(data) < 5:
            raise KeyboardInterrupt
        return real(self, data, *rest)

    monkeypatch.setattr(Prober, "shows", shows)
    monkeypatch.setattr(Prober, "first", lambda self, inputs, *rest: (0, False))
    monkeypatch.setattr("triage.minimise.Minimiser._modes", lambda self: [True])
    # The first try is of nothing at all; here it shows nothing.
    monkeypatch.setattr(
        "triage.minimise.Minimiser._cut",
        lambda self: self._sweep(2, lambda data, at, size: data[:at] + data[at + size :], 0),
    )
    if where == "file":
        (here / "found").write_bytes(b"!residue")
        assert main(["minimise", "found", "--harness", "tiny"]) == 130
        kept = (here / "found.smaller").read_bytes()
    else:
        assert main(["triage", "--minimise", "9"]) == 130
        kept = (here / "store" / f"{row['id']}.input").read_bytes()
        assert not rows()[0]["minimised"]
    assert len(kept) == 6


def test_a_bucket_is_promoted_with_the_outcome_that_was_asked_for(here, capsys):
    main(["triage", "--from", "out"])
    (row,) = rows()
    capsys.readouterr()
    assert main(["promote", row["id"]]) == 2
    err = capsys.readouterr().err
    assert f"residue promote {row['id']} --outcome" in err and err.count("\n") == 1
    assert main(["promote", row["id"], "--harness", "other"]) == 2
    assert main(["promote", row["id"][:4], "--outcome", "tls-decode-error"]) == 0
    name = f"residue-{row['id']}"
    assert outcomes.read("tiny")[name].outcome == "tls-decode-error"
    assert main(["replay", "tiny"]) == 1
    assert main(["promote", row["id"], "--outcome", "waiting"]) == 2


@pytest.mark.parametrize("named", ["bucket", "file"])
def test_the_outcome_of_a_promoted_input_is_a_right_trees(here, capsys, monkeypatch, named):
    """What the input ends as there, where the bug is not: it need not be said by hand."""

    class Right(Prober):
        def ask(self, data):
            assert self.root == Path("right")
            return SimpleNamespace(outcome="established suite=S group=G retried=no")

    monkeypatch.setattr(reference_tree, "tree", lambda named: nullcontext(Path(named)))
    monkeypatch.setattr(promote, "Prober", Right)
    main(["triage", "--from", "out", "--json", "rows.json"])
    (row,) = json.loads(Path("rows.json").read_text())
    words = [row["id"]] if named == "bucket" else [row["input"], "--harness", "tiny", "--name", "x"]
    assert main(["promote", *words, "--against", "right", "--outcome", "waiting"]) == 2
    assert "give one" in capsys.readouterr().err
    assert main(["promote", *words, "--against", "right", "--json", "made.json"]) == 0
    made = json.loads(Path("made.json").read_text())
    assert made["outcome"] == "established suite=S group=G retried=no"
    name = made["file"].rpartition("/")[2]
    assert outcomes.read("tiny")[name].outcome == made["outcome"]
    assert "residue replay is red until that is so" in capsys.readouterr().out


def test_a_tree_that_has_the_bug_too_cannot_say_what_is_right(here, capsys, monkeypatch):
    class Wrong(Prober):
        def ask(self, data):
            return SimpleNamespace(outcome=None)

    monkeypatch.setattr(reference_tree, "tree", lambda named: nullcontext(Path(named)))
    monkeypatch.setattr(promote, "Prober", Wrong)
    main(["triage", "--from", "out", "--json", "rows.json"])
    (row,) = json.loads(Path("rows.json").read_text())
    capsys.readouterr()
    assert main(["promote", row["id"], "--against", "wrong"]) == 2
    assert "it has no outcome in wrong either" in capsys.readouterr().err
    assert "tiny" in outcomes.path("tiny").name and len(outcomes.read("tiny")) == 2


def test_a_bucket_of_the_nights_is_promoted_by_its_id_alone(here, capsys):
    main(["triage", "nightly/buckets", "--from", "out", "--json", "rows.json"])
    (row,) = json.loads((here / "rows.json").read_text())
    assert main(["promote", row["id"], "--dir", "store", "--outcome", "tls-decode-error"]) == 2
    assert "neither a file nor a bucket of store" in capsys.readouterr().err
    assert main(["promote", row["id"], "--outcome", "tls-decode-error"]) == 0
    assert main(["promote", "nothing"]) == 2
    assert "bucket of store or nightly/buckets" in capsys.readouterr().err


def test_what_is_gone_is_asked_for_too_and_what_was_only_slow_is_not(here, capsys):
    main(["triage", "--from", "out"])
    (row,) = rows()
    Prober.fixed = True
    capsys.readouterr()
    assert main(["promote", row["id"]]) == 2
    assert "it ends as waiting today" in capsys.readouterr().err
    store = triage.open_store(None)
    slow = Found(Signature("tiny", "slow"), "2.0 s of processor time", [], 2.0)
    Prober.judge, before = (lambda self, data: Verdict("waiting", [slow])), Prober.judge
    try:
        left(here / "more", b"long", "slow-unit-aa")
        main(["triage", "--from", "more"])
        (made,) = (row for row in rows() if row["kind"] == "slow")
        assert made["seconds"] == 2.0 and made["state"] == "new"
        assert main(["promote", made["id"]]) == 0
    finally:
        Prober.judge = before
    assert outcomes.read("tiny")[f"slow-{made['id']}"].outcome == "waiting"
    assert len(store.buckets) == 1


def test_the_day_is_today_when_none_is_given(here):
    (here / "known.toml").write_text(
        f'[[known]]\nkind = "oracle"\nreason = "r"\nexpires = {date.today().isoformat()}\n'
    )
    assert main(["triage", "--from", "out"]) == 0
