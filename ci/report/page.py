"""The page: one HTML file that needs nothing else, no script and no network."""

from __future__ import annotations

from pathlib import Path

from ci.process import ROOT
from ci.progress import clock
from ci.report import corpus, coverage, curves, findings, refusals, survivors
from ci.report.figures import red
from ci.report.markup import Html, command, el, folded, join, table
from ci.report.shape import Action, Figures, Harness, Step
from ci.report.style import sheet
from ci.wording import many
from mutants.settings import SUITE

COLOURS = {
    "green": "green",
    "red": "red",
    "untrusted": "not to be trusted",
    "interrupted": "interrupted",
    "unfinished": "not finished",
}
# A page that holds hostile names loads nothing, whatever a mistake here might let through.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(figures: Figures, root: Path = ROOT) -> str:
    """The whole page as text; `root` is where the sources are shown from."""
    kind = figures["kind"]
    part = _part(figures["left_out"])
    sections = (
        ("next", "What to do next", _next(figures["next"])),
        ("findings", "Findings", findings.section(figures["findings"])),
        ("run", "What was run, and whether it can be trusted", _run(figures)),
        (
            "coverage",
            f"Coverage of {SUITE.package}",
            join([part, coverage.section(figures["coverage"], root)]),
        ),
        ("curves", "Curves", _curves(figures)),
        ("refusals", "Refusal coverage", join([part, refusals.section(figures["refusals"])])),
        ("survivors", "Survivors", survivors.section(figures["survivors"], kind)),
        ("corpus", "The corpus by harness", corpus.section(figures["corpus"])),
    )
    links = [el("li", el("a", title, href=f"#{name}")) for name, title, _ in sections]
    verdict = figures["verdict"]
    title = f"residue {kind}: {COLOURS[verdict['colour']]}"
    body = [
        el("a", "To the findings", href="#findings", class_="skip"),
        _banner(figures, title),
        _tiles(figures),
        el("nav", el("ul", *links), aria_label="Parts of this report"),
        el("main", *(_section(*entry) for entry in sections)),
        el(
            "footer",
            "The same figures are in report.json and, short, in chat.txt. "
            "This page needs no network.",
        ),
    ]
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        # Ours alone, and a style sheet is not escaped.
        el("style", Html(sheet())),
    ]
    return "<!doctype html>\n" + el("html", el("head", *head), el("body", *body), lang="en") + "\n"


def _part(left_out: list[str]) -> Html | None:
    """What to bear in mind of a run of a few harnesses."""
    if not left_out:
        return None
    return el("p", f"Not run, so what they alone reach is missing here: {', '.join(left_out)}.")


def _section(name: str, title: str, body: Html) -> Html:
    return el(
        "section",
        el("h2", title, id=f"{name}-title"),
        body,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _banner(figures: Figures, title: str) -> Html:
    verdict = figures["verdict"]
    facts = [figures["started"], _time(figures)]
    if figures["commit"]:
        facts.append(f"commit {figures['commit'][:12]}")
    return el(
        "header",
        el("p", title, class_="colour"),
        el("h1", verdict["sentence"]),
        el("ul", *(el("li", why) for why in verdict["why"][:8])) if verdict["why"] else None,
        el("p", f"and {len(verdict['why']) - 8} more reasons below")
        if verdict["why"][8:]
        else None,
        el("p", ", ".join(fact for fact in facts if fact)),
        class_=verdict["colour"],
    )


def _time(figures: Figures) -> str:
    told = []
    if figures["seconds"] is not None:
        told.append(f"{clock(figures['seconds'])} in all")
    if figures["fuzzing_seconds"] is not None:
        told.append(f"{clock(figures['fuzzing_seconds'])} of fuzzing")
    return ", ".join(told)


def _tiles(figures: Figures) -> Html:
    """The figures that one wants first, each with what it is of."""
    known = sum(not found["red"] for found in figures["findings"])
    rows = figures["harnesses"] or []
    cover, cells, mutants = figures["coverage"], figures["refusals"], figures["survivors"]
    tiles = [
        ("findings", f"{red(figures['findings']):,}", f"{known:,} known or fixed"),
        (
            "executions",
            f"{sum(row['executions'] or 0 for row in rows):,.0f}" if rows else None,
            many(len(rows), "harness", "harnesses"),
        ),
        (
            "new inputs",
            f"{sum(row['new'] or 0 for row in rows):,.0f}" if rows else None,
            "not committed",
        ),
        (
            "lines",
            _percent(cover and cover["line_percent"]),
            _moved(cover and cover["line_change"]),
        ),
        (
            "branches",
            _percent(cover and cover["branch_percent"]),
            _moved(cover and cover["branch_change"]),
        ),
        (
            "refusal cells",
            f"{cells['reached']:,}/{cells['possible']:,}" if cells else None,
            f"{cells['possible'] - cells['reached']:,} empty" if cells else "",
        ),
        (
            "mutation score",
            _percent(mutants and mutants["score"]),
            (mutants and mutants["slice"]) or "",
        ),
    ]
    return el(
        "dl",
        *(
            el(
                "div",
                el("dt", name),
                el("dd", value or "not measured", el("small", below if value else "")),
            )
            for name, value, below in tiles
        ),
        class_="tiles",
    )


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}%"


def _moved(change: float | None) -> str:
    return f"of {SUITE.package}/" if change is None else f"{change:+.1f} since the last night"


def _next(todo: list[Action]) -> Html:
    if not todo:
        return el("p", "Nothing.")
    items = [
        join(
            [
                el("dt", entry["do"]),
                el("dd", command(entry["command"])),
            ]
        )
        for entry in todo
    ]
    return el("dl", *items, class_="next")


def _run(figures: Figures) -> Html:
    trust = figures["trust"]
    parts = []
    if trust["untrusted"]:
        parts += [el("h3", "Not to be trusted because")]
        parts += [el("ul", *(el("li", why) for why in trust["untrusted"]))]
    if figures["steps"] is not None:
        parts.append(_steps(figures["steps"]))
    side = [_harnesses(figures["harnesses"])]
    if trust["canaries"]:
        body = [
            (row["harness"], row["plant"] or "none", _yes(row["found"], "found", "missed"))
            for row in trust["canaries"]
        ]
        side.append(table("Planted faults", ("harness", "planted fault", ""), body))
    parts.append(el("div", *side, class_="side"))
    if trust["floors"]:
        floors = [
            (
                row["what"],
                f"{row['floor']:,g}",
                "not measured" if row["was"] is None else f"{row['was']:,g}",
                _yes(row["cleared"], "cleared", "under"),
            )
            for row in trust["floors"]
        ]
        cleared = sum(row["cleared"] for row in trust["floors"])
        parts.append(
            folded(
                f"{cleared} of {len(floors)} floors cleared",
                table("Floors", ("what", "at least", "was", ""), floors, (1, 2)),
                open_=cleared < len(floors),
            )
        )
    if trust["oracles"]:
        counted = [(name, f"{count:,}") for name, count in sorted(trust["oracles"].items())]
        ran = sum(bool(count) for count in trust["oracles"].values())
        parts.append(
            folded(
                f"{ran} of {len(counted)} oracles looked",
                table("Oracles", ("oracle", "times"), counted, (1,)),
                open_=ran < len(counted),
            )
        )
    if trust["notes"]:
        parts += [el("h3", "Notes"), el("ul", *(el("li", note) for note in trust["notes"]))]
    return join(parts)


def _yes(good: bool, word: str, other: str) -> Html:
    return el("span", word if good else other, class_=f"tag {'green' if good else 'red'}")


def _steps(steps: list[Step]) -> Html:
    colours = {"done": "green", "failed": "red", "cut": "untrusted", "waiting": "untrusted"}
    body = [
        (
            step["name"],
            el("span", step["state"], class_=f"tag {colours.get(step['state'], 'interrupted')}"),
            "-" if step["exit"] is None else step["exit"],
            "-" if step["findings"] is None else f"{step['findings']:,}",
            "-" if step["seconds"] is None else clock(step["seconds"]),
            step["why"] or step["does"],
        )
        for step in steps
    ]
    head = ("step", "state", "exit", "findings", "time", "what, or why")
    return table("Steps of the night", head, body, (2, 3, 4), class_="steps")


def _harnesses(rows: list[Harness] | None) -> Html:
    if not rows:
        return el("p", "No harness was run.", class_="none")
    head = ("harness", "runs", "a second", "edges", "inputs", "new", "lines", "branches", "finds")

    def count(value: float | None) -> str:
        return "-" if value is None else f"{value:,.0f}"

    body = [
        (
            row["name"],
            count(row["executions"]),
            count(row["rate"]),
            count(row["edges"]),
            count(row["committed"]),
            count(row["new"]),
            _percent(row["line_percent"]) or "-",
            _percent(row["branch_percent"]) or "-",
            count(row["findings"]),
        )
        for row in rows
    ]
    return table("Harnesses", head, body, range(1, len(head)))


def _curves(figures: Figures) -> Html:
    return join([curves.run(figures["curve"]), curves.nights(figures["history"])])
