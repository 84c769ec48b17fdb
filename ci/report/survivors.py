"""Mutants that nothing killed, by file and function, as diffs; and the score of what was judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ci.process import ROOT
from ci.report import read
from ci.report.markup import Html, el, folded, join, line, table
from ci.report.read import Raw, counts, mapping, number, rows, string, whole
from ci.report.shape import Mutant, Survivors
from ci.wording import many
from mutants import ledger
from mutants.verdicts import Verdict

# Diffs in full, and mutants named in a line each; of what is beyond these the page has the counts.
FULL = 200
NAMED = 1000
# A diff is a few lines; one of a generated monster is cut.
DIFF_LINES = 40
LEFT = (Verdict.SURVIVED, Verdict.NOT_RUN, Verdict.CRASHED)
ORDER = {verdict: place for place, verdict in enumerate((Verdict.CRASHED, *LEFT[:2]))}


def figures(mutation: object, folder: Path) -> Survivors | None:
    """The figures of a run of `residue mutate`; None when there was none.

    Of what is left `shown` has the first with their diffs, some more without, and `by_function`
    the number of all. What the ledger argues is counted and listed apart.
    """
    given = mapping(mutation)
    if not given:
        return None
    results = string(given.get("results"))
    report = _read(results, folder) if results else None
    judged = rows(report.get("results")) if report is not None else []
    arguments = _arguments()
    all_left = [_mutant(row, arguments) for row in judged if row.get("verdict") in LEFT]
    all_left.sort(key=lambda m: (ORDER[m["verdict"]], m["file"], m["line"], m["name"]))
    argued = [mutant for mutant in all_left if mutant["argued"]]
    left = [mutant for mutant in all_left if not mutant["argued"]]
    by_file: dict[str, Counter[str]] = {}
    for row in judged:
        counter = by_file.setdefault(string(row.get("file")) or "?", Counter())
        counter[string(row.get("verdict"))] += 1
    for mutant in argued:
        by_file[mutant["file"]]["argued"] += 1
    by_function: dict[str, Counter[str]] = {}
    for mutant in left:
        by_function.setdefault(mutant["file"], Counter())[mutant["function"]] += 1
    return {
        "slice": string(given.get("slice")) or None,
        "score": _score(given, judged, len(argued)),
        "last_score": number(given.get("last_score")),
        "counts": counts(given.get("counts")) or counts((report or {}).get("counts")),
        "results": results or None,
        "read": report is not None,
        "files": {file: dict(found) for file, found in sorted(by_file.items())},
        "left": len(left),
        "by_function": {file: dict(found) for file, found in by_function.items()},
        "shown": left[:FULL] + [{**m, "diff": ""} for m in left[FULL : FULL + NAMED]],
        "argued": len(argued),
        "argued_shown": [{**mutant, "diff": ""} for mutant in argued[:FULL]],
    }


def _score(given: Raw, judged: list[Raw], argued: int) -> float | None:
    """The score that was given, else what was detected of all but the argued."""
    score = number(given.get("score"))
    if score is not None or len(judged) <= argued:
        return score
    detected = sum(row.get("verdict") in (Verdict.KILLED, Verdict.TIMED_OUT) for row in judged)
    return round(100.0 * detected / (len(judged) - argued), 2)


def _read(results: str, folder: Path) -> Raw | None:
    for base in (folder, ROOT):
        if (found := read.file(base / results)) is not None:
            return found
    return None


def _arguments() -> dict[tuple[str, str, str, str], str]:
    try:
        return {entry.key: entry.argument for entry in ledger.load()}
    except (ledger.LedgerError, OSError):
        return {}


def _mutant(row: Raw, argued: dict[tuple[str, str, str, str], str]) -> Mutant:
    file, function, before, after, name, operator, diff = (
        string(row.get(key))
        for key in ("file", "function", "before", "after", "name", "operator", "diff")
    )
    return {
        "name": name,
        "file": file or "?",
        "function": function or "?",
        "line": whole(row.get("line")) or 0,
        "operator": operator,
        "verdict": Verdict(string(row.get("verdict"))),
        "diff": diff,
        "argued": argued.get((file, function, before, after), ""),
    }


def section(found: Survivors | None, kind: str) -> Html:
    """The part of the page."""
    if found is None:
        why = "Mutants are no part of a campaign; residue nightly judges a slice of them."
        return el("p", why if kind != "nightly" else "Not measured.", class_="none")
    parts = [_summary(found)]
    if not found["read"]:
        what = f"The results, {found['results']}, could not be read: no diffs."
        parts.append(el("p", what if found["results"] else "No results were named: no diffs."))
        return join(parts)
    parts.append(_files(found["files"]))
    parts.append(_grouped(found))
    if found["argued"]:
        head = f"{found['argued']:,} more are argued equivalent in mutants/equivalent.toml"
        lines = [
            el("li", el("code", f"{m['file']}:{m['line']}"), f" {m['function']}: ", m["argued"])
            for m in found["argued_shown"]
        ]
        if found["argued"] > len(lines):
            lines.append(el("li", f"and {found['argued'] - len(lines):,} more"))
        parts.append(folded(head, el("ul", *lines)))
    return join(parts)


def _summary(found: Survivors) -> Html:
    counted = ", ".join(f"{count:,} {verdict}" for verdict, count in found["counts"].items())
    score = "not measured" if found["score"] is None else f"{found['score']:.1f}%"
    before = found["last_score"]
    last = "" if before is None else f", {before:.1f}% the last time it was judged"
    name = f" of {found['slice']}" if found["slice"] else ""
    return el("p", "Score", name, ": ", el("strong", score), last, ". ", counted or "No counts.")


def _files(files: dict[str, dict[str, int]]) -> Html:
    head = ("file", "mutants", *Verdict, "argued", "detected")
    body = []
    for file, found in files.items():
        made = sum(count for verdict, count in found.items() if verdict != "argued")
        detected = found.get(Verdict.KILLED, 0) + found.get(Verdict.TIMED_OUT, 0)
        argued = found.get("argued", 0)
        share = f"{100 * detected / (made - argued):.1f}%" if made > argued else "-"
        cells = [f"{found.get(verdict, 0):,}" for verdict in Verdict]
        body.append((el("code", file), f"{made:,}", *cells, f"{argued:,}", share))
    return table("Mutants by file and verdict", head, body, range(1, len(head)))


def _grouped(found: Survivors) -> Html:
    """By file, then function; as many diffs as a page can bear, then lines, then a number."""
    left, shown = found["left"], found["shown"]
    if not left:
        return el("p", "Nothing is left that is not argued.")
    groups: dict[str, dict[str, list[Html]]] = {}
    for at, mutant in enumerate(shown):
        functions = groups.setdefault(mutant["file"], {})
        functions.setdefault(mutant["function"], []).append(_one(mutant, at < FULL))
    what = f"{many(left, 'mutant')} {'is' if left == 1 else 'are'} left that nobody argued"
    if left > FULL:
        what += (
            f"; {FULL} are shown as diffs and {len(shown) - FULL:,} in a line each. All of them, "
            f"with their diffs, are in {line(found['results'])}"
        )
    if left > len(shown):
        what += f", {left - len(shown):,} of them only there"
    files = []
    for file, counted in found["by_function"].items():
        parts = [
            _function(name, count, groups.get(file, {}).get(name, []))
            for name, count in counted.items()
        ]
        head = join([el("code", file), f" {sum(counted.values()):,} left"])
        files.append(folded(head, el("div", *parts, class_="folds")))
    return join([el("p", f"{what}."), el("div", *files, class_="folds")])


def _function(name: str, count: int, mutants: list[Html]) -> Html:
    head = join([el("code", name), f" {count:,}"])
    return folded(head, *mutants) if mutants else el("p", head, class_="brief")


def _one(mutant: Mutant, full: bool) -> Html:
    head = f"line {mutant['line']}: {mutant['operator']} ({mutant['verdict']})"
    if not full:
        return el("p", line(head), class_="brief")
    lines = mutant["diff"].splitlines()
    marked = [
        el("ins" if row[:1] == "+" else "del" if row[:1] == "-" else "span", row)
        for row in lines[:DIFF_LINES]
        if not row.startswith(("+++", "---", "@@"))
    ]
    if len(lines) > DIFF_LINES:
        marked.append(el("span", f"... and {len(lines) - DIFF_LINES} lines more"))
    code = join([piece for row in marked for piece in (row, Html("\n"))])
    return el("div", el("p", line(head)), el("pre", code, tabindex="0"), class_="mutant")
