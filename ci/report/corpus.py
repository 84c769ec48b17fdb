"""The corpus by harness: how many inputs, how large, what they come to, the largest and the new."""

from __future__ import annotations

from ci.report.markup import Html, el, folded, join, table
from ci.report.shape import Corpus, Input, Size
from ci.wording import many

# An outcome that is rarer than the first so many is counted with the rest.
OUTCOMES = 40


def section(found: list[Corpus] | None) -> Html:
    """The part of the page."""
    if found is None:
        return el("p", "Not measured.", class_="none")
    head = ("harness", "inputs", "committed", "new", "bytes", "bytes an input")
    body = []
    for row in found:
        inputs, committed, size = row["inputs"] or 0, row["committed"] or 0, row["bytes"] or 0
        mean = f"{size / inputs:,.0f}" if inputs else "-"
        new = inputs - committed
        body.append(
            (row["harness"], f"{inputs:,}", f"{committed:,}", f"{new:,}", f"{size:,}", mean)
        )
    return join(
        [
            table("Inputs after the merge", head, body, range(1, len(head))),
            el("div", *(_harness(row) for row in found), class_="folds"),
        ]
    )


def _harness(row: Corpus) -> Html:
    kinds = many(len(row["outcomes"]), "kind")
    head = f"{row['harness']}: {many(row['inputs'] or 0, 'input')}, {kinds} of outcome"
    sizes = [(_bound(row["sizes"], at), size["inputs"]) for at, size in enumerate(row["sizes"])]
    tables = (
        _bars("Sizes", "bytes", sizes),
        _bars("Outcomes", "outcome", _rarest_together(row["outcomes"])),
        _names("The largest", row["largest"]),
        _names("New, not committed yet (the first by name)", row["new"]),
    )
    return folded(head, el("div", *tables, class_="side"))


def _bound(sizes: list[Size], at: int) -> str:
    high = sizes[at]["up_to"]
    low = (sizes[at - 1]["up_to"] or 0) + 1 if at else 0
    return f"over {low - 1:,}" if high is None else f"{low:,} to {high:,}"


def _rarest_together(outcomes: dict[str, int]) -> list[tuple[str, int]]:
    ordered = sorted(outcomes.items(), key=lambda entry: (-entry[1], entry[0]))
    rest = sum(count for _, count in ordered[OUTCOMES:])
    return ordered[:OUTCOMES] + ([("others", rest)] if rest else [])


def _bars(caption: str, what: str, counted: list[tuple[str, int]]) -> Html | None:
    if not counted:
        return None
    most = max(count for _, count in counted) or 1
    body = [
        (
            name,
            f"{count:,}",
            _bar(100 * count / most) if count else "",
        )
        for name, count in counted
    ]
    return table(caption, (what, "inputs", ""), body, (1,), class_="bars")


def _bar(percent: float) -> Html:
    """A length; the number beside it says the same."""
    return el("span", class_="bar", style=f"width:{percent:.1f}%", aria_hidden="true")


def _names(caption: str, inputs: list[Input]) -> Html | None:
    if not inputs:
        return None
    body = [
        (
            el("code", entry["name"]),
            "-" if entry["bytes"] is None else f"{entry['bytes']:,}",
            entry["outcome"],
        )
        for entry in inputs
    ]
    return table(caption, ("input", "bytes", "outcome"), body, (1,))
