"""Refusal coverage: state by message by refusal, the empty cells shown."""

from __future__ import annotations

from ci.report.markup import Html, el, folded, join
from ci.report.shape import Cell, Refusals

BLIND = (
    "A cell is a refusal that a peer can cause: in a state of the connection (RFC 8446 "
    "§A.2), at a message or another part of the wire. The number is of the inputs that reach it. "
    "Not seen: refusals of configuration and start calls, which end no connection, and which of "
    "several rules under one tag it was."
)


def section(found: Refusals | None) -> Html:
    """The part of the page."""
    if found is None:
        return el("p", "Not measured.", class_="none")
    empty = [cell for cell in found["cells"] if not cell["inputs"]]
    fresh = [cell for cell in found["cells"] if cell["inputs"] and not cell["committed"]]
    parts = [
        el(
            "p",
            f"{found['reached']:,} of {found['possible']:,} cells are reached, "
            f"{found['committed']:,} of them by committed inputs. ",
            el("strong", f"{len(empty):,} are empty."),
        ),
        el("p", BLIND),
        _matrix(found),
    ]
    if empty:
        parts.append(folded(f"The {len(empty):,} empty cells as a list", _list(empty)))
    if fresh:
        head = f"{len(fresh):,} cells that only new inputs reach"
        parts.append(folded(head, _list(fresh, with_witness=True), open_=True))
    if found["unexpected"]:
        head = (
            "Reached, and not in the table of what is possible (harnesses/refusal_matrix.py), "
            "which is wrong"
        )
        parts.append(folded(head, _list(found["unexpected"], with_witness=True), open_=True))
    if found["unreachable"]:
        reasons = [
            el("li", el("code", tag), f": {why}") for tag, why in found["unreachable"].items()
        ]
        parts.append(folded("Refusals that no peer can cause", el("ul", *reasons)))
    return join(parts)


def _list(cells: list[Cell], with_witness: bool = False) -> Html:
    items = []
    for cell in cells:
        witness = el("span", " by ", el("code", cell["witness"])) if with_witness else None
        place = f"{cell['state']}, {cell['message']}: "
        items.append(el("li", place, el("code", cell["refusal"]), witness))
    return el("ul", *items)


def _matrix(found: Refusals) -> Html:
    states = found["states"]
    table = {(c["message"], c["refusal"], c["state"]): c for c in found["cells"]}
    heads = [el("th", "message and refusal", scope="col")]
    heads += [el("th", state, scope="col") for state in states]
    bodies = []
    for message in dict.fromkeys(cell["message"] for cell in found["cells"]):
        own = [cell for cell in found["cells"] if cell["message"] == message]
        reached = sum(cell["inputs"] > 0 for cell in own)
        group = el(
            "th", f"{message} ({reached}/{len(own)})", scope="rowgroup", colspan=len(states) + 1
        )
        lines = [el("tr", group)]
        for refusal in dict.fromkeys(cell["refusal"] for cell in own):
            cells = [_cell(table.get((message, refusal, state))) for state in states]
            lines.append(el("tr", el("th", el("code", refusal), scope="row"), *cells))
        bodies.append(el("tbody", *lines))
    caption = "Inputs that reach each refusal, by message and by state of the connection"
    legend = join(
        [
            el("span", " 12 ", class_="tag reached"),
            " inputs reach it; ",
            el("span", "empty", class_="tag empty"),
            " possible, and none does; ",
            "nothing: it cannot happen there",
        ]
    )
    body = el(
        "table", el("caption", caption), el("thead", el("tr", *heads)), *bodies, class_="matrix"
    )
    region = el("div", body, class_="wide", tabindex="0", role="region", aria_label=caption)
    return join([el("p", legend), region])


def _cell(cell: Cell | None) -> Html:
    if cell is None:
        return el("td", class_="no")
    if not cell["inputs"]:
        return el("td", "empty", class_="empty")
    return el("td", f"{cell['inputs']:,}", class_="reached", title=f"by {cell['witness']}")
