"""The gate's parts: what a change touches, the catalogue's verdicts, and how it is told."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import engine
from ci.command import main
from ci.commands import gate
from ci.exits import Exit, Untrusted, UsageError
from ci.gate import deleted_tests, diff, report, stages
from ci.gate.diff import Change
from ci.gate.report import GateFinding, StageRow
from ci.mutation import catalogue
from ci.process import ROOT, Stop
from mutants.plants import Plant
from mutants.verdicts import Verdict
from tests.mutants.small_tree import ENGINE, SETTINGS, TESTS, make
from tests.tools import git, needs_git

TEST = "tests/engine/test_tiny.py"
PLANTS = """
[[plant]]
name = "one"
file = "engine/tiny.py"
text = "x + x"
replacement = "x"
rule = "twice"
detected_by = ["test tests/engine/test_tiny.py::test_double"]
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A checkout on a branch whose main has the small tree."""
    root = make(tmp_path / "repo")
    (root / "mutants").unlink()
    (root / "mutants" / "catalogue").mkdir(parents=True)
    (root / "mutants" / "catalogue" / "a.toml").write_text(PLANTS)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "start")
    git(root, "checkout", "-q", "-b", "topic")
    return root


def edit(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert text.count(old) == 1
    (root / name).write_text(text.replace(old, new))


# -- what a change touches --------------------------------------------------------------------


def test_nothing_changed_is_nothing(repo: Path) -> None:
    change = diff.since("main", repo)
    assert change == Change(git(repo, "rev-parse", "main").strip())


@pytest.mark.parametrize("how", ["unstaged", "staged", "committed"])
def test_a_changed_function_is_found_wherever_the_change_is(how: str, repo: Path) -> None:
    edit(repo, "engine/tiny.py", "x > 3", "x > 4")
    if how != "unstaged":
        git(repo, "add", "-A")
    if how == "committed":
        git(repo, "commit", "-q", "-m", "more")
    change = diff.since("main", repo)
    assert change.functions == {"engine/tiny.py": frozenset({"slack"})}
    (line,) = change.lines["engine/tiny.py"]
    assert (repo / "engine/tiny.py").read_text().splitlines()[line - 1].strip() == "return x > 4"
    assert change.tables == set() and change.sources == ["engine/tiny.py"]


def test_what_main_did_meanwhile_is_no_part_of_the_change(repo: Path) -> None:
    git(repo, "checkout", "-q", "main")
    edit(repo, "engine/tiny.py", "x > 3", "x > 4")
    git(repo, "commit", "-q", "-a", "-m", "main moves on")
    git(repo, "checkout", "-q", "topic")
    assert diff.since("main", repo).files == {}


def test_an_untracked_file_is_all_new(repo: Path) -> None:
    (repo / "engine" / "new.py").write_text("class A:\n    def f(self):\n        return 1\n")
    change = diff.since("main", repo)
    assert change.files == {"engine/new.py": "A"}
    assert change.functions == {"engine/new.py": frozenset({"A.f"})}


@pytest.mark.parametrize("to", ["loop", "nowhere", "."])
def test_a_link_that_leads_to_no_file_has_no_text(repo: Path, to: str) -> None:
    (repo / "loop").symlink_to(to)
    change = diff.since("main", repo)
    assert change.files == {"loop": "A"} and not change.functions


def test_a_deleted_statement_counts_although_it_has_no_line(repo: Path) -> None:
    edit(repo, "engine/tiny.py", "        n -= 1\n", "        break\n")
    edit(repo, "engine/tiny.py", "    if not ok:\n        os.abort()\n", "")
    change = diff.since("main", repo)
    assert change.functions["engine/tiny.py"] == {"count_down", "guarded"}
    at = (repo / "engine/tiny.py").read_text().splitlines().index("    return ok") + 1
    assert at in change.lines["engine/tiny.py"]


def test_comments_and_docstrings_are_no_change_of_a_function(repo: Path) -> None:
    edit(repo, "engine/tiny.py", "    return x + x", '    """Twice."""\n    # so\n    return x + x')
    change = diff.since("main", repo)
    assert change.functions == {"engine/tiny.py": frozenset()} and not change.tables
    assert change.sources


@pytest.mark.parametrize(
    ("old", "new", "fuzzed"),
    [
        ("    return x + x", "    # so\n    return x + x", False),
        ("def double(x):\n", 'def double(x):\n    """Twice."""\n', False),
        ("    return x + x", "    return 2 * x", True),
        ('{"seven": 7}', '{"seven": 8}', True),
        ("import os\n", "import os\nimport sys\n", True),
    ],
)
def test_only_a_change_of_code_is_fuzzed(
    old: str, new: str, fuzzed: bool, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(repo, "engine/tiny.py", old, new)
    change = diff.since("main", repo)
    assert change.sources == ["engine/tiny.py"]
    monkeypatch.setattr(gate, "judge", lambda gate: None)
    stages_run: list[str] = []
    monkeypatch.setattr(stages.Gate, "stage", lambda self, name, work: stages_run.append(name))
    with Stop() as stop:
        given = stages.Gate(
            change, SETTINGS, tmp_path, 1, stop, report.GateReport("main", ""), repo
        )
        gate.own(given)
    assert stages_run == (["corpus", "fuzz"] if fuzzed else ["corpus"])


def test_a_changed_table_is_told_apart(repo: Path) -> None:
    edit(repo, "engine/tiny.py", '{"seven": 7}', '{"seven": 8}')
    change = diff.since("main", repo)
    assert change.tables == {"engine/tiny.py"} and change.functions["engine/tiny.py"] == set()


def test_deleted_and_changed_tests_inputs_and_plants_are_listed(repo: Path) -> None:
    edit(repo, TEST, "def test_slack():\n    assert slack(5) is True\n", "def test_slack():\n")
    edit(repo, TEST, "\n\ndef test_table():\n" + '    assert TABLE["seven"] == 7\n', "")
    (repo / "corpus" / "tiny" / "long").unlink()
    (repo / "corpus" / "tiny" / "short").write_text("0")
    (repo / "mutants" / "catalogue" / "a.toml").write_text("")
    change = diff.since("main", repo)
    assert change.deleted_tests == [f"{TEST}::test_table"]
    assert change.changed_tests == {f"{TEST}::test_slack"}
    assert change.deleted_inputs == ["tiny/long"] and change.changed_inputs == {"tiny/short"}
    assert change.deleted_plants == ["one: twice"] and change.sources == []
    (repo / TEST).unlink()
    assert f"{TEST}::test_double" in diff.since("main", repo).deleted_tests


def test_no_merge_base_is_no_run_and_says_what_to_do(repo: Path, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "--orphan", "alone")
    git(repo, "commit", "-q", "-m", "alone")
    with pytest.raises(Untrusted, match=r"no merge base$"):
        diff.since("main", repo)
    with pytest.raises(UsageError, match=r"no such commit: 'nowhere'$"):
        diff.since("nowhere", repo)
    with pytest.raises(UsageError, match=r"no such commit: 'mian'; did you mean main\?$"):
        diff.since("mian", repo)
    with pytest.raises(UsageError):
        diff.since("--help", repo)
    (tmp_path / "none").mkdir()
    with pytest.raises(Untrusted, match="git rev-parse"):
        diff.since("main", tmp_path / "none")


def test_a_clone_without_all_of_its_history_says_how_to_have_the_rest(
    repo: Path, tmp_path: Path
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "another")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", str(shallow))
    with pytest.raises(UsageError, match=r"no such commit: 'v1'; .*git fetch --unshallow"):
        diff.since("v1", shallow)


@needs_git
def test_the_command_ends_with_these_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "--since", "no-such-branch"]) == Exit.USAGE
    assert "there is no such commit: 'no-such-branch'" in capsys.readouterr().err


# -- the catalogue ----------------------------------------------------------------------------


def plant(name: str, text: str, replacement: str, *detected_by: str) -> Plant:
    lines = detected_by or (f"test {TEST}::test_double",)
    return Plant(name, "engine/tiny.py", text, replacement, "a rule", lines)


def test_every_verdict_of_a_decision(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    entries = [
        plant("killed", "x + x", "x"),
        plant("survived", "x + x", "x * 2"),
        plant(
            "half",
            "x + x",
            "x",
            f"test {TEST}::test_double",
            f"test {TEST}::test_slack",
        ),
        plant("stale", "x + y", "x"),
        plant("gone", "x + x", "x", f"test {TEST}::test_deleted"),
        plant("no-file", "x + x", "x", "test tests/engine/test_none.py::test_x"),
        plant("crashed", "def double(x):", "def double(x:"),
        plant("aborts", "if not ok:", "if ok:", f"test {TEST}::test_guarded"),
    ]
    with Stop() as stop:
        decided = catalogue.evaluate(entries, tmp_path / "run", 2, stop, root)
    told = {row.plant.name: (row.verdict, row.why) for row in decided}
    assert {name: fate for name, (fate, _) in told.items()} == {
        "killed": Verdict.KILLED,
        "survived": Verdict.SURVIVED,
        "half": Verdict.SURVIVED,
        "stale": Verdict.NOT_RUN,
        "gone": Verdict.NOT_RUN,
        "no-file": Verdict.NOT_RUN,
        "crashed": Verdict.CRASHED,
        "aborts": Verdict.CRASHED,
    }
    assert "not seen by test" in told["half"][1] and "test_slack" in told["half"][1]
    assert "occurs 0 times" in told["stale"][1]
    assert "its witness is gone" in told["gone"][1]
    assert (root / "engine" / "tiny.py").read_text() == ENGINE


def test_a_witness_that_fails_with_no_fault_can_tell_nothing(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    (root / TEST).write_text(TESTS.replace("double(3) == 6", "double(3) == 7"))
    with Stop() as stop:
        (row,) = catalogue.evaluate([plant("one", "x + x", "x")], tmp_path / "run", 1, stop, root)
    assert row.verdict is Verdict.NOT_RUN and "fails with no fault" in row.why


@pytest.mark.parametrize(
    ("line", "tests", "inputs", "named"),
    [
        ("test a.py::test_x", {"a.py::test_x"}, set(), True),
        ("test a.py::test_x[1]", {"a.py::test_x"}, set(), True),
        ("test a.py", {"a.py::test_x"}, set(), True),
        ("test a.py::test_xy", {"a.py::test_x"}, set(), False),
        ("oracle server drop some", set(), {"server/some"}, True),
        ("oracle server drop some", {"server/some"}, {"hello/some"}, False),
    ],
)
def test_entries_are_concerned_by_the_tests_and_inputs_they_name(
    line: str, tests: set[str], inputs: set[str], named: bool
) -> None:
    assert stages._names(line, tests, inputs) is named


@pytest.mark.parametrize(
    ("old", "new", "text", "concerned"),
    [
        ("return x + x", "return 2 * x", "return 2 * x", True),
        ("return x + x", "return 2 * x", "return x > 3", False),
        ("return x + x", "return 2 * x", "return x + x", True),
        ("return x + x", "return 2 * x", 'TABLE = {"seven": 7}', False),
        ('{"seven": 7}', '{"seven": 8}', "return x > 3", True),
    ],
)
def test_an_entry_is_concerned_where_its_text_lies_in_what_changed(
    repo: Path, old: str, new: str, text: str, concerned: bool
) -> None:
    edit(repo, "engine/tiny.py", old, new)
    change = diff.since("main", repo)
    assert diff.concerns(change, "engine/tiny.py", text, repo) is concerned
    assert not diff.concerns(change, "engine/other.py", text, repo)


# -- deleted tests ----------------------------------------------------------------------------


def test_deleted_tests_come_back_under_another_name(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(repo, TEST, "\n\ndef test_table():\n" + '    assert TABLE["seven"] == 7\n', "")
    change = diff.since("main", repo)
    was = diff.before(change, TEST, repo)
    monkeypatch.setattr(diff, "before", lambda given, name, root: was)
    restored, nodes = deleted_tests.bring_back(change)
    aside = "tests/engine/test_tiny_before_this_change.py"
    assert restored == {aside: TESTS}
    assert nodes == {f"{aside}::test_table": f"{TEST}::test_table"}


# -- how it is told ---------------------------------------------------------------------------


def told() -> report.GateReport:
    given = report.GateReport("main", "0" * 40)
    given.stages.append(StageRow("mutants", "3 mutants | 2 killed", 1, 2.5))
    given.findings.append(
        GateFinding(
            "survivor", "survived: f, 100% of it", "engine/a,b.py", 7, "-x\n+y", on_change=True
        )
    )
    given.note("deleted tests", ["tests/a.py::test_x"])
    given.note("nothing", [])
    return given


def test_a_word_takes_what_asks_for_it_and_nothing_else() -> None:
    given = told()
    given.findings += [
        GateFinding("judge", "an argument", detail="it is so", asks=True),
        GateFinding("judge", "an input deleted", asks=True),
    ]
    said = report.text(given)
    assert (
        f"2 findings ask for the word of somebody who has read them: --accept {given.word}" in said
    )
    assert said.index("RED judge: an argument") < said.index("RED survivor")
    word, other = given.word, told()
    other.findings.append(GateFinding("judge", "an argument", detail="it is not so", asks=True))
    for wrong in ("", "000000000000", other.word):
        given.accept(wrong)
        assert len(given.findings) == 3
    given.accept(word)
    assert [finding.rule for finding in given.findings] == ["survivor"]
    assert (
        "accepted by who runs this",
        ["judge: an argument", "judge: an input deleted"],
    ) in given.notes


def test_what_judges_and_was_touched_is_said_before_anything_else() -> None:
    given = told()
    given.first.append("M setup.cfg")
    assert report.text(given).startswith("the change touches what judges it: M setup.cfg\n")
    page = report.markdown(given)
    assert page.index("- `M setup.cfg`") < page.index("| stage |")
    assert json.loads(json.dumps(given.as_data()))["first"] == ["M setup.cfg"]


def test_a_note_of_the_same_head_goes_on_with_it() -> None:
    given = told()
    given.note("deleted tests", ["tests/a.py::test_y"])
    given.note("deleted tests", [])
    assert dict(given.notes)["deleted tests"] == ["tests/a.py::test_x", "tests/a.py::test_y"]


def test_a_finding_is_an_annotation_on_its_line() -> None:
    (line,) = report.annotations(told())
    assert line == (
        "::error file=engine/a%2Cb.py,line=7,title=residue%3A survivor"
        "::survived: f, 100%25 of it%0A-x%0A+y"
    )


def test_the_text_has_the_diff_the_table_and_the_lists() -> None:
    said = report.text(told())
    assert "RED survivor: engine/a,b.py:7: survived: f, 100% of it (a changed line)" in said
    assert "    -x\n    +y" in said and "deleted tests\n  tests/a.py::test_x" in said
    assert "mutants  3 mutants | 2 killed  1    2.5 s" in said and "nothing" not in said


def test_the_summary_is_a_table_and_its_cells_are_escaped() -> None:
    page = report.markdown(told())
    assert page.startswith("## Gate since `main`: red\n")
    assert "| mutants | 3 mutants \\| 2 killed | 1 | 2.5 s |" in page
    assert "```diff\n-x\n+y\n```" in page


def test_the_files_are_json_sarif_and_markdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    report.write(told(), tmp_path)
    data = json.loads((tmp_path / "gate.json").read_text())
    assert data["findings"][0]["line"] == 7 and data["base"] == "0" * 40
    log = json.loads((tmp_path / "gate.sarif").read_text())
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert log["version"] == "2.1.0" and driver["name"] == "residue gate"
    assert driver["version"] == engine.__version__ and "informationUri" not in driver
    (result,) = run["results"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert result["ruleId"] == "survivor" and {"survivor", "lost", "corpus"} <= rules
    place = result["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == 7
    assert (tmp_path / "gate.md").read_text() == report.markdown(told())


def test_where_a_run_is_hosted_its_findings_say_at_which_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://host.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    (run,) = report.sarif(told())["runs"]
    assert run["tool"]["driver"]["informationUri"] == "https://host.example/owner/name"


@pytest.mark.parametrize(
    "given, word",
    [
        (report.GateReport("main", "0" * 40), "green: nothing found since main (000000000000)"),
        (report.GateReport("main", "0" * 40, untrusted=["no"]), "not to be trusted since main"),
        (report.GateReport("main", "0" * 40, findings=[report.GateFinding("lost", "a")]),
         "red: 1 finding since main"),
    ],
)  # fmt: skip
def test_the_last_line_says_what_it_comes_to(given: report.GateReport, word: str) -> None:
    assert report.text(given).splitlines()[-1].startswith(f"gate: {word}")


def test_a_hosted_run_gets_annotations_and_its_summary_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    gate._hosted(told())
    assert capsys.readouterr().out == ""
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    gate._hosted(told())
    assert capsys.readouterr().out.startswith("::error file=")
    assert page.read_text() == "before\n" + report.markdown(told())


def test_every_finding_of_the_gate_has_a_rule() -> None:
    for name in ("stages.py", "deleted_tests.py", "parts.py"):
        tree = ast.parse((ROOT / "ci" / "gate" / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                (".add_finding", ".add_question")
            ):
                rule = node.args[0]
                known = isinstance(rule, ast.Constant) and rule.value in report.RULES
                assert known or ast.unparse(rule) == "rule", ast.unparse(node)
