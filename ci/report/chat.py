"""The report as a short text for a chat message: no link, no markup, at most a dozen lines."""

from __future__ import annotations

from ci.report import findings
from ci.report.markup import line
from ci.report.page import COLOURS
from ci.report.shape import Figures
from ci.wording import many

LINES = 12
WIDTH = 160
FINDINGS = 3


def chat(figures: Figures) -> str:
    """Verdict, findings with the commands that show them, coverage and its change, the score."""
    verdict = figures["verdict"]
    told = [f"residue {figures['kind']}: {COLOURS[verdict['colour']]}. {verdict['sentence']}"]
    told += [f"why: {why}" for why in verdict["why"][:1]]
    red = [found for found in figures["findings"] if found["red"]]
    for found in red[:FINDINGS]:
        what = findings.title(found)
        told.append(f"- {what}: {found['message'] or found['detail'] or 'no detail'}")
        if found["reproduce"]:
            told.append(f"  {found['reproduce']}")
    if len(red) > FINDINGS:
        left = sum(found["findings"] for found in red[FINDINGS:])
        told.append(f"- and {many(left, 'finding')} more")
    told.append("; ".join(_figures(figures)))
    # A link would have a slash twice; a command may be long, and is worth nothing when it is cut.
    return "".join(
        f"{line(row, WIDTH if not row.startswith('  ') else 400, keep=2)}\n".replace("://", ": //")
        for row in told[:LINES]
    )


def _figures(figures: Figures) -> list[str]:
    parts = []
    cover = figures["coverage"]
    if cover:
        for what, percent, change in (
            ("line", cover["line_percent"], cover["line_change"]),
            ("branch", cover["branch_percent"], cover["branch_change"]),
        ):
            if percent is not None:
                moved = "" if change is None else f" ({change:+.1f})"
                parts.append(f"{what} coverage {percent:.1f}%{moved}")
    cells = figures["refusals"]
    if cells:
        parts.append(f"{cells['reached']} of {cells['possible']} refusal cells")
    rows = figures["harnesses"] or []
    if rows:
        parts.append(many(sum(row["executions"] or 0 for row in rows), "execution"))
        parts.append(many(sum(row["new"] or 0 for row in rows), "new input"))
    mutants = figures["survivors"]
    if mutants and mutants["score"] is not None:
        parts.append(f"mutation score {mutants['score']:.1f}% of {mutants['slice'] or 'the slice'}")
    return parts or ["nothing was measured"]
