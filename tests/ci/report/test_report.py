"""The report: what it says, what it does not know, and that nothing gets out of it."""

import copy
import html.parser
import io
import json
import math
import re
import shlex
from typing import Any

import pytest

from ci import report
from ci.command import main
from ci.commands import campaign
from ci.fuzzing.progress import FuzzingProgress
from ci.process import ROOT
from ci.report import coverage, curves, survivors
from ci.report.actions import actions
from ci.report.chat import chat
from ci.report.figures import collect
from ci.report.markup import VOID, Html, el, line, plain, text
from ci.report.page import page
from ci.report.style import DASHES, LINES, PAIRS, PALETTE, SERIES
from tests.ci import nights


class Checker(html.parser.HTMLParser):
    """The elements of a page, every one closed, and what its attributes say."""

    def __init__(self, page):
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str | None] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text += data

    def of(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def written(folder, data):
    """The page, the figures and the chat text of some data."""
    report.write(folder, data)
    page, figures, chat = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("report.html", "report.json", "chat.txt")
    )
    return Checker(page), json.loads(figures), chat, page


def test_a_campaign_that_found_nothing_is_green_and_says_why(tmp_path):
    page, figures, chat, _ = written(tmp_path, nights.summary())
    assert figures["verdict"]["colour"] == "green"
    assert "7 of 7 planted faults were found before the fuzzing began" in page.text
    assert chat.startswith("residue campaign: green. Nothing was found, and the run can be trusted")
    assert "residue promote build/campaign/latest/new/hello/FILE --harness hello" in page.text
    assert "108 of 162 refusal cells" in chat and "line coverage 93.2%" in chat
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.json", "chat.txt"}


def test_a_night_names_its_findings_and_what_changed(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(nights.results(110)))
    page, figures, chat, _ = written(tmp_path, nights.night())
    assert figures["verdict"]["colour"] == "red"
    # Two new buckets and the survivors; the known one is there and is not red.
    assert [found["red"] for found in figures["findings"]] == [True, True, True, False]
    assert figures["verdict"]["why"] == ["not done: mutation"]
    # 93.2 against 93.4 of the night before, although this night's row is in the history already.
    assert figures["coverage"]["line_change"] == -0.2
    assert "line coverage 93.2% (-0.2)" in chat and "mutation score 96.4% of 3/7" in chat
    assert f"  {nights.bucket()['reproduce']}\n" in chat
    assert len(chat.splitlines()) <= 12 and "//" not in chat
    assert "out of time" in page.text and "95.9% the last time" in page.text


def test_every_figure_has_a_line_of_its_own_in_the_documentation(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(nights.results(30)))
    _, figures, _, _ = written(tmp_path, nights.night())
    told = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8").partition("## report.json")[2]
    named = set(re.findall(r"`(\w+)`", told))
    assert set(figures) <= named
    for part in ("verdict", "trust", "refusals", "survivors"):
        assert set(figures[part]) - {"read", "files", "argued_shown"} <= named, part
    for part in ("findings", "steps", "curve", "corpus"):
        assert set(figures[part][0]) <= named, part


def test_the_many_findings_of_a_rule_are_one_with_their_number(tmp_path):
    data = nights.night()
    data["findings"] = [
        {"rule": "survivor", "message": f"survived: place {n}", "detail": "- a\n+ b"}
        for n in range(500)
    ]
    # What a bucket says of itself is not said twice.
    data["findings"].append({"rule": "bucket", "message": "new: server", "detail": "x"})
    page, figures, chat, _ = written(tmp_path, data)
    assert figures["verdict"]["sentence"] == "502 findings: keyed, server, survivor."
    assert len(figures["findings"]) == 4
    assert "500 of them, the first: survived: place 0" in chat
    assert "survived: place 199\nand 300 more" in page.text
    # Without triage the campaign's own findings stand, once.
    data["buckets"], data["campaign"]["findings"] = [], [nights.finding()]
    data["findings"] = [
        {"rule": "untriaged", "message": "server: x", "detail": nights.finding()["replay"]},
        {"rule": "untriaged", "message": "recordings: y", "detail": "residue fuzz recordings"},
    ]
    _, figures, _, _ = written(tmp_path, data)
    assert [found["kind"] for found in figures["findings"]] == ["Broken", "untriaged"]


def test_how_often_each_oracle_looked_is_shown_and_that_one_did_not(tmp_path):
    page, figures, _, _ = written(tmp_path, nights.summary())
    assert figures["trust"]["oracles"] == {"residue": 21_000, "memory": 12, "neighbour": 0}
    assert "2 of 3 oracles looked" in page.text and "21,000" in page.text


def test_a_floor_that_was_not_cleared_is_shown_and_not_praised(tmp_path):
    data = nights.summary()
    page, figures, _, _ = written(tmp_path, data)
    assert "every floor was cleared" in page.text and len(figures["trust"]["floors"]) == 16
    data["harnesses"]["pool"]["edges"] = 7
    page, figures, _, _ = written(tmp_path, data)
    assert "every floor was cleared" not in page.text and "15 of 16 floors cleared" in page.text
    # Those over the whole engine are asked of all harnesses together.
    data["harnesses"] = {"pool": data["harnesses"]["pool"]}
    page, figures, _, _ = written(tmp_path, data)
    assert len(figures["trust"]["floors"]) == 2
    missing = "reach is missing here: hello, server, keyed, ticket, clientauth, differential."
    assert page.text.count(missing) == 2


def test_a_night_points_at_its_patch_and_its_buckets(tmp_path):
    folder = tmp_path / "nights" / "20261130-010000"
    folder.mkdir(parents=True)
    (tmp_path / "buckets").mkdir()
    (folder / "new-inputs.patch").write_text("diff")
    _, figures, _, _ = written(folder, nights.night())
    commands = [entry["command"] for entry in figures["next"]]
    assert f"git apply {shlex.quote(f'{folder}/new-inputs.patch')}" in commands
    assert f"residue triage {shlex.quote(f'{tmp_path}/buckets')}" in commands


@pytest.mark.parametrize(
    "changes, colour, says",
    [
        (
            {"exit": 3, "untrusted": ["hello: nothing was executed"]},
            "untrusted",
            "nothing was exec",
        ),
        ({"exit": 0, "untrusted": ["stale"]}, "untrusted", "not to be trusted"),
        ({"exit": 1, "findings": [nights.finding()]}, "red", "1 finding: server"),
        ({"exit": 1, "findings": [nights.finding()], "untrusted": ["x"]}, "red", "otherwise"),
        ({"exit": 130, "findings": [nights.finding()]}, "interrupted", "1 finding so far"),
        ({"exit": None}, "unfinished", "did not finish"),
        ({"exit": 7}, "red", "exit code 7"),
    ],
)
def test_the_banner_says_in_a_sentence_what_it_came_to(tmp_path, changes, colour, says):
    page, figures, _, _ = written(tmp_path, {**nights.summary(), **changes})
    assert figures["verdict"]["colour"] == colour
    assert page.of("header")[0]["class"] == colour
    assert says in page.text


def places(value, at=()):
    """Every place of a JSON value: the way to it from the root."""
    yield at
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        # One entry stands for its like.
        inside = list(enumerate(value))[:1]
    for key, entry in inside:
        yield from places(entry, (*at, key))


def changed(data, at, value=...):
    """A copy in which a place is something else, or is gone."""
    data = copy.deepcopy(data)
    parent = data
    for key in at[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[at[-1]]
    else:
        parent[at[-1]] = value
    return data


def small(data):
    """The same with few points and cells: what is tested below is every key and not every entry."""
    inner = data.get("campaign", data)
    inner["curve"] = inner["curve"][:2]
    inner["refusals"]["cells"] = inner["refusals"]["cells"][:3]
    inner["harnesses"] = dict(list(inner["harnesses"].items())[:1])
    if "history" in data:
        data["history"] = data["history"][-2:]
    return data


OTHERS: tuple[object, ...] = (None, "<b>", -1, [[]], {"a": []}, True, 1e300)


@pytest.mark.parametrize("make", [nights.summary, nights.night])
def test_whatever_is_missing_or_is_something_else_the_report_is_written(
    tmp_path, monkeypatch, make
):
    monkeypatch.setattr(survivors, "_arguments", dict)
    (tmp_path / "results.json").write_text(json.dumps(nights.results(12)))
    data = small(make())
    # What lies below a night's campaign is a summary, and its turn is the other one.
    ways = [at for at in places(data) if at and not (at[0] == "campaign" and len(at) > 1)]
    assert len(ways) > 80
    for number, at in enumerate(ways):
        for value in (..., OTHERS[number % len(OTHERS)]):
            figures = collect(changed(data, at, value), tmp_path)
            figures["next"] = actions(figures, tmp_path)
            body = page(figures, tmp_path)
            assert body.endswith("</html>\n") and "<b>" not in body
            assert chat(figures).startswith("residue ")


def test_nothing_at_all_is_not_measured(tmp_path):
    page, figures, chat, _ = written(tmp_path, {})
    assert figures["verdict"]["colour"] == "unfinished"
    assert page.text.count("Not measured.") == 3 and "not sampled" in page.text
    assert "nothing was measured" in chat


def test_what_hostile_inputs_say_is_shown_and_does_nothing(tmp_path):
    data = nights.night()
    data["findings"].append(
        {"rule": nights.HOSTILE, "message": nights.HOSTILE, "detail": nights.HOSTILE}
    )
    data["buckets"][0] |= {"detail": nights.HOSTILE, "harness": nights.HOSTILE}
    data["buckets"][1] |= {"traceback": [nights.HOSTILE], "frames": [nights.HOSTILE]}
    inner = data["campaign"]
    inner["harnesses"][nights.HOSTILE] = nights.harness(nights.HOSTILE)
    inner["harnesses"]["hello"]["corpus"]["new"][0]["name"] = nights.HOSTILE
    inner["files"][f"../../{nights.HOSTILE}"] = inner["files"].pop("engine/gone.py")
    inner["refusals"]["cells"][1]["witness"] = nights.HOSTILE
    inner["curve"][0]["harness"] = nights.HOSTILE
    results = nights.results(12)
    results["results"][0] |= {"diff": f"-{nights.HOSTILE}", "function": nights.HOSTILE}
    (tmp_path / "results.json").write_text(json.dumps(results))
    page, _, chat, raw = written(tmp_path, data)
    names = {name for name, _ in page.elements}
    assert not names & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
    assert not re.search(
        r"https?://|\bsrc=|@import|url\(", re.sub(r"&lt;script src=x&gt;", "", raw)
    )
    for _, attrs in page.elements:
        assert not {key for key in attrs if key.startswith("on")}
        assert attrs.get("href", "#").startswith("#")
    for body in (raw, chat):
        assert "\x1b" not in body and "\u202e" not in body
    assert page.text.count("<script src=x>alert('1')</script>\"&\\u{202e}\\u{1b}[31m") >= 9
    assert len(chat.splitlines()) <= 12


def test_only_markup_is_not_escaped():
    assert text("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
    assert el("p", Html("<b>x</b>"), "<i>", None, class_='a"b', hidden=True, id=None) == (
        '<p class="a&quot;b" hidden><b>x</b>&lt;i&gt;</p>'
    )
    assert plain("a\x00\ud800\n") == "a\\u{0}\\u{d800}\n"
    assert line("a\n b\t" + "c" * 300, 20) == "a b " + "c" * 15 + "…"


def test_tables_have_captions_and_headings_and_parts_have_names(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(nights.results(30)))
    page, _, _, raw = written(tmp_path, nights.night())
    assert raw.startswith("<!doctype html>") and page.of("html")[0]["lang"] == "en"
    tables = len(page.of("table"))
    assert tables == len(page.of("caption")) > 10
    assert all(attrs.get("scope") in ("row", "col", "rowgroup") for attrs in page.of("th"))
    assert len(page.ids) == len(set(page.ids))
    links = {attrs["href"][1:] for attrs in page.of("a")}
    assert links <= set(page.ids) and len(page.of("section")) == 8
    assert all(attrs["aria-labelledby"] in page.ids for attrs in page.of("section"))
    drawings = [attrs for attrs in page.of("svg") if attrs.get("role") == "img"]
    assert len(drawings) == len(page.of("desc")) == 8
    # What scrolls by itself is reached with the keyboard.
    regions = [attrs for attrs in page.of("div") if attrs.get("class") == "wide"]
    assert len(regions) == tables and all(attrs["tabindex"] == "0" for attrs in regions)


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * c for part, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", PALETTE)
def test_contrasts_are_those_of_wcag_aa(scheme):
    palette = PALETTE[scheme]
    assert math.isclose(contrast("#000000", "#ffffff"), 21.0)
    low = {pair: contrast(*(palette[name] for name in pair)) for pair in PAIRS}
    assert {pair for pair, ratio in low.items() if ratio < 4.5} == set()
    lines = {pair: contrast(*(palette[name] for name in pair)) for pair in LINES}
    assert {pair for pair, ratio in lines.items() if ratio < 3.0} == set()
    assert PALETTE["light"].keys() == PALETTE["dark"].keys()
    assert len(set(DASHES)) == SERIES == len({palette[f"s{n}"] for n in range(SERIES)})


def test_an_axis_has_few_round_ticks_inside_itself():
    for low, high in ((0, 1), (0, 7), (90.7, 93.4), (0, 1_234_567), (0.2, 0.21)):
        ticks = curves.Axis(low, high).ticks()
        assert 3 <= len(ticks) <= 9
        assert all(low - 1e-6 <= tick <= high + 1e-6 for tick in ticks)
    assert curves.axis([50, 90_000], logarithmic=True).ticks() == [10, 100, 1000, 10_000, 100_000]
    assert curves.axis([]).ticks() and curves.axis([5.0, 5.0], zero=False).ticks()
    assert curves.short(1_500_000) == "1.5M" and curves.short(0.25) == "0.25"


def test_a_curve_says_its_units_and_where_it_begins_and_ends():
    points = [(0.0, 2.0), (10.0, 50.0)]
    body = curves.chart("Edges", [curves.Series("hello", 1, points)], "time (seconds)", "edges")
    assert "<desc>edges over time (seconds). hello: from 2 to 50.</desc>" in body
    assert "time (seconds)</text>" in body and "stroke-dasharray" in body
    assert "Nothing was measured" in curves.chart("Edges", [], "time", "edges")


def test_the_lines_that_are_missed_are_marked_and_stand_in_their_function(tmp_path):
    body = "    x = 1\n    y = 2\n    z = 3\n    return '<'\n"
    source = f"import a\n\n\ndef first():\n{body}\n\nlast = 1\n"
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "a.py").write_text(source)
    row = {
        "lines": 1,
        "all_lines": 1,
        "missed_lines": "8 11-12",
        "missed_branches": "5>6 7>8 6>-4",
        "sha256": "0" * 64,
    }

    def shown(files):
        total = {"lines": 1, "all_lines": 1, "line_percent": 100.0}
        found = collect({"coverage": total, "files": files}, tmp_path)
        return coverage.section(found["coverage"], tmp_path)

    body = shown({"engine/a.py": row})
    assert "<mark>    8 !     return &#x27;&lt;&#x27;</mark>" in body
    assert "    7       z = 3" in body and "x = 1" not in body
    assert "... in def first" in body
    # What stands behind it is in no function.
    assert body.count("...") == 1
    assert "changed since" in body and "shorter now" in body
    # A branch into a missed line is the line's to tell; the others are not.
    assert "5 to 6, 6 to the end" in body
    assert "not there" in shown({"../engine/a.py": {**row, "missed_lines": "3"}})
    assert coverage.numbers("3-5 9 x 7-y 1-99999999999999999999") == {3, 4, 5, 9}


def test_ten_thousand_mutants_are_counted_and_two_hundred_shown(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(nights.results(10_000, every=4)))
    page, figures, _, raw = written(tmp_path, nights.night(inputs=1_000))
    found = figures["survivors"]
    assert found["left"] == 2_500 and len(found["shown"]) == 1_200
    assert sum(sum(names.values()) for names in found["by_function"].values()) == 2_500
    assert len([a for a in page.of("div") if a.get("class") == "mutant"]) == survivors.FULL
    assert (
        "2,500 mutants are left that nobody argued; 200 are shown as diffs and 1,000" in page.text
    )
    assert "1,300 of them only there" in page.text and "results.json" in page.text
    assert len(raw) < 1_500_000 and (tmp_path / "report.json").stat().st_size < 1_500_000


def test_what_the_ledger_argues_is_told_apart(tmp_path, monkeypatch):
    results = nights.results(10, every=2)
    first = results["results"][0]
    key = tuple(first[name] for name in ("file", "function", "before", "after"))
    monkeypatch.setattr(survivors, "_arguments", lambda: {key: "it is only slower"})
    (tmp_path / "results.json").write_text(json.dumps(results))
    found = survivors.figures({"results": "results.json"}, tmp_path)
    assert found is not None
    assert (found["left"], found["argued"], found["files"]["engine/records.py"]["argued"]) == (
        4,
        1,
        1,
    )
    # Five killed of the nine that nobody argued.
    assert found is not None and found["score"] == 55.56
    assert "it is only slower" in survivors.section(found, "nightly")


def test_results_that_cannot_be_read_are_said_to_be(tmp_path):
    found = survivors.figures({"results": "results.json", "score": 90.0}, tmp_path)
    assert "results.json, could not be read" in survivors.section(found, "nightly")
    assert "no part of a campaign" in survivors.section(None, "campaign")


def test_the_command_writes_it_again(tmp_path, capsys):
    (tmp_path / "summary.json").write_text(json.dumps(nights.summary()))
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("residue campaign: green") and said.endswith("/report.html\n")
    (tmp_path / "night.json").write_text(json.dumps(nights.night()))
    (tmp_path / "elsewhere.json").write_text(json.dumps(nights.results(22)))
    assert main(["report", str(tmp_path), "--mutants", str(tmp_path / "elsewhere.json")]) == 0
    assert capsys.readouterr().out.startswith("residue nightly: red")
    assert json.loads((tmp_path / "report.json").read_text())["survivors"]["left"] == 2


@pytest.mark.parametrize("text", ["", "[]", "{", '{"kind": 1'])
def test_a_folder_that_has_no_record_is_a_usage_error(tmp_path, capsys, text):
    if text:
        (tmp_path / "night.json").write_text(text)
    assert main(["report", str(tmp_path)]) == 2
    assert "neither a night.json nor a summary.json" in capsys.readouterr().err


def test_a_campaign_whose_report_cannot_be_written_stands(tmp_path, capsys):
    out = io.StringIO()
    said = FuzzingProgress(out, {})
    campaign._report(tmp_path / "gone", nights.summary(), said)
    # Said by itself: with --quiet too.
    told = capsys.readouterr().err
    assert told.startswith("the report could not be written: FileNotFoundError")
    assert out.getvalue() == ""
    campaign._report(tmp_path, nights.summary(), said)
    assert out.getvalue().endswith("report.html\n")


def test_every_command_of_a_report_is_one(tmp_path):
    from ci.command import COMMANDS

    (tmp_path / "results.json").write_text(json.dumps(nights.results(30)))
    data = {**nights.night(), "untrusted": ["x"], "exit": 130}
    report.write(tmp_path, data)
    todo = json.loads((tmp_path / "report.json").read_text())["next"]
    assert all(entry["command"].startswith("residue ") for entry in todo)
    commands = [entry["command"].split(" ")[1] for entry in todo]
    assert {"replay", "triage", "doctor", "promote", "mutate", "nightly"} <= set(commands)
    assert set(commands) <= set(COMMANDS) | {"triage", "nightly"}
