"""Findings, red ones first: what, where, since when, and the command that shows it again."""

from __future__ import annotations

from ci.report.markup import Html, command, el, folded, join, line
from ci.report.shape import Finding
from ci.wording import many

# Shown one by one; of more than this a page is no place.
SHOWN = 60


def section(findings: list[Finding]) -> Html:
    """The part of the page."""
    if not findings:
        return el("p", "None.")
    parts = [_one(number, found) for number, found in enumerate(findings[:SHOWN], 1)]
    if len(findings) > SHOWN:
        parts.append(el("p", f"and {len(findings) - SHOWN:,} more, which report.json lists."))
    return join(parts)


def title(found: Finding) -> str:
    """A finding in a few words."""
    oracle = f" ({found['oracle']})" if found["oracle"] else ""
    where = f"{found['harness']}: " if found["harness"] else ""
    return line(f"{where}{found['kind']}{oracle}")


def _one(number: int, found: Finding) -> Html:
    state = found["state"]
    colour = "red" if found["red"] else "interrupted"
    detail = found["message"] or found["detail"]
    parts: list[Html] = [
        el(
            "h3",
            f"{number}. {title(found)} ",
            el("span", state, class_=f"tag {colour}") if state else None,
        ),
        el("p", line(detail, 400)) if detail else Html(""),
    ]
    facts = _facts(found)
    if facts:
        parts.append(el("p", facts, class_="none"))
    if found["frames"]:
        parts.append(el("p", "in ", el("code", " > ".join(found["frames"]))))
    if found["reproduce"]:
        parts.append(command(line(found["reproduce"], 500)))
    # At length only where the line above left something out.
    long = found["detail"] if found["message"] else ""
    if len(line(detail, 10**6)) > 400 or "\n" in detail.strip():
        long = long or detail
    if long:
        parts.append(folded("At length", el("pre", long[:20_000], tabindex="0")))
    if found["traceback"]:
        trace = "".join(f"{row.rstrip()}\n" for row in found["traceback"])
        parts.append(folded("Traceback", el("pre", trace[:20_000], tabindex="0")))
    return el("article", *parts)


def _facts(found: Finding) -> str:
    facts = []
    if found["count"]:
        facts.append(f"seen {many(found['count'], 'time')}")
    if found["first_seen"]:
        facts.append(f"first {line(found['first_seen'], 40)}")
    if found["last_seen"]:
        facts.append(f"last {line(found['last_seen'], 40)}")
    if found["size"] is not None:
        facts.append(many(found["size"], "byte"))
    if not found["reproduced"]:
        facts.append("it did not happen again")
    if found["note"]:
        facts.append(line(found["note"]))
    if found["reason"]:
        facts.append(f"known: {line(found['reason'])}")
    if found["expires"]:
        facts.append(f"expires {line(found['expires'], 40)}")
    return ", ".join(facts)
