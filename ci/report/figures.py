"""The figures of a report: one dictionary, of which the page, the JSON and the chat text are made.

A summary is read here alone, entry by entry, and what stands behind has the types of shape.py: what
a campaign or a night did not measure, or what is damaged, is None, shown as "not measured".
docs/reports.md describes the keys.
"""

from __future__ import annotations

from pathlib import Path

from ci.exits import Exit
from ci.fuzzing import floors
from ci.fuzzing.summary import CanaryRow
from ci.report import survivors
from ci.report.read import Raw, counts, mapping, number, rows, string, strings, whole
from ci.report.shape import (
    Banner,
    Cell,
    Corpus,
    Coverage,
    CurvePoint,
    Figures,
    File,
    Finding,
    Floor,
    Harness,
    Input,
    Night,
    Refusals,
    Step,
    Trust,
)
from ci.wording import many
from harnesses import HARNESSES

FORMAT = 1
NIGHTS = 30
# Of one rule's findings so many are told one by one; of more, so many in a line each.
APART, LISTED = 3, 200


def collect(data: Raw, folder: Path) -> Figures:
    """The figures of a campaign's summary or of a night; `folder` is where they were read."""
    night = data.get("kind") == "nightly"
    campaign = mapping(data.get("campaign")) if night else data
    found = _findings(data, campaign, night)
    trust, steps = _trust(data, campaign, night), _steps(data) if night else None
    return {
        "format": FORMAT,
        "kind": string(data.get("kind")) or "run",
        "started": string(data.get("started")) or None,
        "commit": string(data.get("commit")) or None,
        # A night that was taken up again counts the time that it was at work.
        "seconds": number(data.get("spent") if night else data.get("seconds")),
        "fuzzing_seconds": number(campaign.get("fuzzing_seconds")),
        "jobs": whole(campaign.get("jobs")),
        "steps": steps,
        "findings": found,
        "trust": trust,
        "harnesses": _harnesses(campaign),
        "left_out": _left_out(campaign),
        "coverage": _coverage(data, campaign),
        "curve": _curve(campaign),
        "history": _history(data),
        "refusals": _refusals(campaign),
        "survivors": survivors.figures(data.get("mutation"), folder),
        "corpus": _corpus(campaign),
        "verdict": _verdict(whole(data.get("exit")), found, trust, steps or []),
        "next": [],
    }


def _verdict(code: int | None, told: list[Finding], trust: Trust, steps: list[Step]) -> Banner:
    """The colour and the sentence of the banner."""
    why = trust["untrusted"]
    findings, found = [f for f in told if f["red"]], red(told)
    left = [s["name"] for s in steps if s["state"] in ("cut", "waiting")]
    if code is None:
        colour, says = "unfinished", "This run did not finish: what is here is what it left."
    elif code == Exit.INTERRUPTED:
        colour, says = "interrupted", "Interrupted: what was found until then is kept."
    elif findings or code == Exit.FOUND:
        where = sorted({f["harness"] or f["kind"] for f in findings})
        named = ", ".join(where[:4]) + (" and more" if len(where) > 4 else "")
        colour = "red"
        says = f"{many(found, 'finding')}: {named}." if where else "Something was found."
        says += " And the run is not to be trusted otherwise." if why else ""
    elif why or code == Exit.UNTRUSTED:
        colour, says = "untrusted", "Nothing was found, but this run is not to be trusted."
    elif code == Exit.CLEAN:
        colour, says = "green", "Nothing was found, and the run can be trusted."
    else:
        colour, says = "red", f"The run ended with exit code {code}."
    if findings and colour in ("unfinished", "interrupted"):
        says += f" {many(found, 'finding')} so far."
    reasons = [*why]
    if left:
        reasons.append("not done: " + ", ".join(left))
    if colour == "green":
        flown = trust["canaries"]
        if flown:
            reasons.append(f"{_share(flown)} planted faults were found before the fuzzing began")
        table = trust["floors"]
        if table and all(row["cleared"] for row in table):
            reasons.append("every floor was cleared")
    return {"colour": colour, "exit": code, "sentence": says, "why": reasons}


def _share(flown: list[CanaryRow]) -> str:
    return f"{sum(canary['found'] for canary in flown)} of {len(flown)}"


def _steps(data: Raw) -> list[Step]:
    return [
        {
            "name": string(step.get("name")) or "step",
            "does": string(step.get("does")),
            "state": string(step.get("state")) or "unknown",
            "exit": whole(step.get("exit")),
            "seconds": number(step.get("seconds")),
            "why": string(step.get("why")),
            "findings": whole(step.get("findings")),
        }
        for step in rows(data.get("steps"))
    ]


def _findings(data: Raw, campaign: Raw, night: bool) -> list[Finding]:
    """Buckets where there are any, else the campaign's findings; then what other steps found."""
    buckets = rows(data.get("buckets"))
    found = [_finding(row) for row in buckets or rows(campaign.get("findings"))]
    told = {one["reproduce"] for one in found}
    rules: dict[str, list[Raw]] = {}
    for row in rows(data.get("findings")) if night else ():
        rule = string(row.get("rule")) or "finding"
        # A bucket says the same of itself and more, and so does a campaign's finding.
        if not (rule == "bucket" and buckets) and string(row.get("detail")) not in told:
            rules.setdefault(rule, []).append(row)
    for rule, own in rules.items():
        found += _of_rule(rule, own)
    return sorted(found, key=lambda f: not f["red"])


def _of_rule(rule: str, own: list[Raw]) -> list[Finding]:
    """The findings of one rule, each by itself or, where they are many, as one with their number:
    the survivors of a night are hundreds, and have a part of the page to themselves."""
    if len(own) <= APART:
        return [_finding({**row, "kind": rule}) for row in own]
    messages = [string(row.get("message")) for row in own]
    more = [f"and {len(own) - LISTED:,} more"] if len(own) > LISTED else []
    one = _finding(
        {
            "kind": rule,
            "message": f"{len(own):,} of them, the first: {messages[0]}",
            "detail": "\n".join([*messages[:LISTED], *more]),
        }
    )
    return [{**one, "findings": len(own)}]


def _finding(row: Raw) -> Finding:
    state = string(row.get("state")) or None
    message = string(row.get("message"))
    if row.get("found") and row.get("expected"):
        message = message or f"expected {row['expected']}, found {row['found']}"
    return {
        "id": string(row.get("id")) or None,
        "findings": 1,
        "harness": string(row.get("harness")),
        "kind": string(row.get("kind")) or "finding",
        "oracle": string(row.get("oracle")),
        "message": message,
        "detail": string(row.get("detail")),
        "frames": strings(row.get("frames")),
        "traceback": strings(row.get("traceback")),
        "state": state,
        "red": state not in ("known", "fixed"),
        "reproduced": row.get("reproduced") is not False,
        "note": string(row.get("note")),
        "reason": string(row.get("reason")),
        "expires": string(row.get("expires")),
        "input": string(row.get("input")),
        "first_seen": string(row.get("first_seen")),
        "last_seen": string(row.get("last_seen")),
        "size": whole(row.get("size")),
        "count": whole(row.get("count")),
        "reproduce": string(row.get("reproduce")) or string(row.get("replay")),
    }


def red(findings: list[Finding]) -> int:
    """How many findings are in no bucket that is known."""
    return sum(found["findings"] for found in findings if found["red"])


def _trust(data: Raw, campaign: Raw, night: bool) -> Trust:
    untrusted = strings(data.get("untrusted"))
    if night:
        untrusted += [f"campaign: {why}" for why in strings(campaign.get("untrusted"))]
    canaries: list[CanaryRow] = [
        {
            "harness": string(row.get("harness")),
            "plant": string(row.get("plant")),
            "found": row.get("found") is True,
        }
        for row in rows(campaign.get("canaries"))
    ]
    return {
        "untrusted": list(dict.fromkeys(untrusted)),
        "notes": list(dict.fromkeys(strings(data.get("notes")) + strings(campaign.get("notes")))),
        "canaries": canaries,
        "oracles": counts(campaign.get("oracles")),
        "floors": _floors(campaign),
    }


def _floors(campaign: Raw) -> list[Floor]:
    """What must be reached at least, next to what was."""
    table: list[tuple[str, float | None, float]] = []
    for name, harness in mapping(campaign.get("harnesses")).items():
        row = mapping(harness)
        rate, edges = number(row.get("rate")), number(row.get("edges"))
        table.append((f"{name}: executions a second", rate, floors.EXECUTIONS_A_SECOND))
        table.append((f"{name}: edges", edges, floors.EDGES))
    coverage = mapping(campaign.get("coverage"))
    # The two over everything hold where every harness ran.
    if mapping(campaign.get("harnesses")).keys() >= set(HARNESSES):
        table.append(("lines reached, percent", number(coverage.get("line_percent")), floors.LINES))
        table.append(
            ("branches reached, percent", number(coverage.get("branch_percent")), floors.BRANCHES)
        )
    return [
        {"what": what, "floor": floor, "was": was, "cleared": was is not None and was >= floor}
        for what, was, floor in table
    ]


def _harnesses(campaign: Raw) -> list[Harness] | None:
    table: list[Harness] = []
    for name, harness in mapping(campaign.get("harnesses")).items():
        row = mapping(harness)
        coverage = mapping(row.get("coverage"))
        table.append(
            {
                "name": name,
                "committed": whole(row.get("committed")),
                "edges": whole(row.get("edges")),
                "executions": whole(row.get("executions")),
                "findings": whole(row.get("findings")),
                "found": whole(row.get("found")),
                "new": whole(row.get("new")),
                "rate": number(row.get("rate")),
                "seconds": number(row.get("seconds")),
                "shards": len(rows(row.get("shards"))),
                "line_percent": number(coverage.get("line_percent")),
                "branch_percent": number(coverage.get("branch_percent")),
                "new_folder": string(row.get("new_folder")),
                "kept_all": string(row.get("kept_all")),
            }
        )
    return table or None


def _left_out(campaign: Raw) -> list[str]:
    """The harnesses that were not run, where some were: what is missed may be theirs."""
    ran = mapping(campaign.get("harnesses"))
    return [name for name in HARNESSES if ran and name not in ran]


def _coverage(data: Raw, campaign: Raw) -> Coverage | None:
    total = mapping(campaign.get("coverage"))
    if not total:
        return None
    last = mapping(_before(data).get("coverage"))
    files: list[File] = []
    for name, entry in mapping(campaign.get("files")).items():
        row = mapping(entry)
        files.append(
            {
                "file": name,
                "lines": whole(row.get("lines")),
                "all_lines": whole(row.get("all_lines")),
                "branches": whole(row.get("branches")),
                "all_branches": whole(row.get("all_branches")),
                "missed_lines": string(row.get("missed_lines")),
                "missed_branches": string(row.get("missed_branches")),
                "sha256": string(row.get("sha256")) or None,
            }
        )
    lines, branches = number(total.get("line_percent")), number(total.get("branch_percent"))
    return {
        "line_percent": lines,
        "branch_percent": branches,
        "lines": whole(total.get("lines")),
        "all_lines": whole(total.get("all_lines")),
        "branches": whole(total.get("branches")),
        "all_branches": whole(total.get("all_branches")),
        "line_change": _change(lines, number(last.get("lines"))),
        "branch_change": _change(branches, number(last.get("branches"))),
        "files": files,
    }


def _change(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else round(now - before, 2)


def _before(data: Raw) -> Raw:
    """The history's row of the night before this one, whether this one's is there yet or not."""
    started = string(data.get("started"))
    others = [r for r in rows(data.get("history")) if string(r.get("started")) != started]
    return others[-1] if others else {}


def _curve(campaign: Raw) -> list[CurvePoint] | None:
    points: list[CurvePoint] = [
        {
            "harness": string(row.get("harness")) or "?",
            "t": t,
            "executions": number(row.get("executions")),
            "edges": number(row.get("edges")),
            "finds": number(row.get("finds")),
        }
        for row in rows(campaign.get("curve"))
        if (t := number(row.get("t"))) is not None
    ]
    return points or None


def _history(data: Raw) -> list[Night] | None:
    table: list[Night] = []
    for row in rows(data.get("history"))[-NIGHTS:]:
        coverage, slice_ = mapping(row.get("coverage")), mapping(row.get("slice"))
        table.append(
            {
                "night": string(row.get("night")) or string(row.get("started")) or "?",
                "exit": whole(row.get("exit")),
                "seconds": number(row.get("seconds")),
                "commit": string(row.get("commit")),
                "executions": counts(row.get("executions")),
                "edges": counts(row.get("edges")),
                "inputs": counts(row.get("inputs")),
                "line_percent": number(coverage.get("lines")),
                "branch_percent": number(coverage.get("branches")),
                "slice": string(slice_.get("name")),
                "score": number(slice_.get("score")),
                "findings": counts(row.get("findings")),
            }
        )
    return table or None


def _refusals(campaign: Raw) -> Refusals | None:
    given = mapping(campaign.get("refusals"))

    def cells(value: object) -> list[Cell]:
        return [
            {
                "state": string(row.get("state")),
                "message": string(row.get("message")),
                "refusal": string(row.get("refusal")),
                "witness": string(row.get("witness")),
                "inputs": whole(row.get("inputs")) or 0,
                "committed": whole(row.get("committed")) or 0,
            }
            for row in rows(value)
        ]

    table = cells(given.get("cells"))
    if not table:
        return None
    named = dict.fromkeys(cell["state"] for cell in table)
    return {
        "states": strings(given.get("states")) or list(named),
        "possible": len(table),
        "reached": sum(cell["inputs"] > 0 for cell in table),
        "committed": sum(cell["committed"] > 0 for cell in table),
        "cells": table,
        "unexpected": cells(given.get("unexpected")),
        "unreachable": {
            str(tag): string(why) for tag, why in mapping(given.get("unreachable")).items()
        },
    }


def _corpus(campaign: Raw) -> list[Corpus] | None:
    table: list[Corpus] = []
    for name, harness in mapping(campaign.get("harnesses")).items():
        given = mapping(mapping(harness).get("corpus"))
        if not given:
            continue
        table.append(
            {
                "harness": name,
                "inputs": whole(given.get("inputs")),
                "committed": whole(given.get("committed")),
                "bytes": whole(given.get("bytes")),
                "sizes": [
                    {"up_to": whole(row.get("up_to")), "inputs": whole(row.get("inputs")) or 0}
                    for row in rows(given.get("sizes"))
                ],
                "outcomes": counts(given.get("outcomes")),
                "largest": [_input(row) for row in rows(given.get("largest"))],
                "new": [_input(row) for row in rows(given.get("new"))],
            }
        )
    return table or None


def _input(row: Raw) -> Input:
    return {
        "name": string(row.get("name")),
        "bytes": whole(row.get("bytes")),
        "outcome": string(row.get("outcome")),
    }
