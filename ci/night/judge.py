"""What a step left behind, read: its findings, what was not watched, and its figures.

Each function is given the step's folder and the code that it ended with. It raises Doubt where that
means nothing: a step that says "found" and has nothing to show for it has not found anything.
"""

import json
from pathlib import Path
from typing import Any

from ci.exits import Exit
from ci.night import corpus
from ci.night.context import Context
from ci.night.history import Row
from ci.night.state import Line, Night
from ci.process import ROOT
from harnesses import HARNESSES
from mutants import ledger, verdicts
from mutants.settings import SUITE
from mutants.verdicts import Verdict

TAIL = 30


class Doubt(Exception):
    """What a step came to says nothing. The message is one line that says why."""


def replay(context: Context, line: Line, folder: Path, code: int) -> None:
    """The committed inputs. What is wrong with them goes to triage."""
    rows = _answer(folder / "answer.json", context, line, code)
    line.findings = sum(bool(row["wrong"]) for row in rows)
    _expect(code, context, line, Exit.CLEAN, Exit.FOUND)


def campaign(context: Context, line: Line, folder: Path, code: int) -> None:
    """The campaign: its summary, and the corpus that is kept."""
    night = context.night
    if not (folder / "summary.json").is_file():
        corpus.salvage(folder, context.corpus, HARNESSES)
        raise Doubt(f"it left no summary: {_ended(code, context, line)}")
    night.campaign = data = _answer(folder / "summary.json", context, line, code)
    line.findings = len(data["findings"])
    for why in data["untrusted"]:
        night.doubt(f"campaign: {why}")
    if data["harnesses"].keys() & set(HARNESSES):
        for harness, one in data["harnesses"].items():
            merged, kept = Path(one["merged_folder"]), context.corpus / harness
            if merged.is_dir():
                night.kept[harness] = corpus.keep(kept, merged, ROOT / SUITE.corpus / harness)
        corpus.tidy(folder)
    _expect(code, context, line, Exit.CLEAN, Exit.FOUND, Exit.UNTRUSTED, Exit.INTERRUPTED)


def patch(context: Context, line: Line, folder: Path, code: int) -> None:
    """The new inputs as one patch."""
    _expect(code, context, line, Exit.CLEAN)
    said = _answer(folder / "answer.json", context, line, code)
    context.night.notes += said["notes"]


def recordings(context: Context, line: Line, folder: Path, code: int) -> None:
    """Recorded conversations, mutated."""
    data = _answer(folder / "summary.json", context, line, code)
    line.findings = len(data["findings"])
    for why in data["untrusted"]:
        context.night.doubt(f"recordings: {why}")
    _expect(code, context, line, Exit.CLEAN, Exit.FOUND, Exit.UNTRUSTED, Exit.INTERRUPTED)


def inject(context: Context, line: Line, folder: Path, code: int) -> None:
    """Injection. What it broke goes to triage."""
    data = _answer(folder / "summary.json", context, line, code)
    line.findings = len(data["findings"])
    for why in data["untrusted"]:
        context.night.doubt(f"inject: {why}")
    whole = "every place" if data["whole"] else "not every place"
    context.night.injection = (
        f"{data['injections']:,} into {data['scenarios']} of {data['of_scenarios']} scenarios, "
        f"{whole}; {data['broken']:,} broke something"
    )
    _expect(code, context, line, Exit.CLEAN, Exit.FOUND, Exit.UNTRUSTED, Exit.INTERRUPTED)


def machine(context: Context, line: Line, folder: Path, code: int) -> None:
    """The state machines. pytest ends with 1 when a test fails, and with more when it does."""
    told = _log(context, line)
    for text in told:
        if text.startswith("the state machine: "):
            context.night.machine = text.removeprefix("the state machine: ")
    # A Python that is interrupted while it starts ends with 1 too, and names no test.
    failed = [text for text in told if text.startswith(("FAILED", "ERROR"))]
    if code == 1 and failed:
        line.findings = 1
        context.night.find("machine", failed[0], "\n".join(told[-TAIL:]))
    elif code:
        raise Doubt(_ended(code, context, line))
    elif not context.night.machine:
        raise Doubt("the state machine did not say what it did")


def mutate(context: Context, line: Line, folder: Path, code: int) -> None:
    """One slice's mutants: its score against its last one, and who survived."""
    night, name = context.night, context.slice.name
    path = folder / "results.json"
    if not path.is_file():
        raise Doubt(f"it left no results: {_ended(code, context, line)}")
    try:
        report = verdicts.read(path)
        settled = ledger.settle(ledger.load(), [r.mutant for r in report.results], report.results)
    except (verdicts.MergeError, ledger.LedgerError) as error:
        raise Doubt(f"{error}; see {line.name}.log") from None
    counts = report.counts()
    every = sum(counts.values()) - len(settled.argued)
    detected = counts[Verdict.KILLED] + counts[Verdict.TIMED_OUT]
    whole = code in (Exit.CLEAN, Exit.FOUND) and report.adds_up() and every > 0
    score = round(100.0 * detected / every, 2) if whole else None
    last = last_score(context.history, name)
    night.mutation = {
        "slice": name,
        "score": score,
        "last_score": last,
        "results": str(path),
        "counts": {str(verdict): count for verdict, count in counts.items()},
    }
    for result in settled.left if whole else ():
        mutant = result.mutant
        where = f"{mutant.file}:{mutant.line} {mutant.function} ({mutant.operator})"
        night.find("survivor", f"{result.verdict}: {where}", mutant.diff)
    line.findings = len(settled.left) if whole else 0
    if score is not None and last is not None and score < last:
        line.findings += 1
        night.find("score", f"{name}: {score}%, and {last}% the last time")
    if code == Exit.FOUND and not line.findings:
        line.findings = 1
        night.find(
            "mutate", f"{name}: residue mutate is red", "\n".join(_log(context, line)[-TAIL:])
        )
    _expect(code, context, line, Exit.CLEAN, Exit.FOUND)


def triage(context: Context, line: Line, folder: Path, code: int) -> None:
    """The buckets; one that is new, or whose time to be known is over, is a finding."""
    night = context.night
    if not (folder / "buckets.json").is_file():
        raise Doubt(_ended(code, context, line))
    night.buckets = _answer(folder / "buckets.json", context, line, code)
    for bucket in night.buckets:
        if bucket["state"] in ("new", "expired"):
            line.findings += 1
            what = f"{bucket['harness']}: {bucket['oracle'] or bucket['kind']}"
            message = f"{bucket['state']}: {what} in {' > '.join(bucket['frames']) or 'no frame'}"
            detail = f"{bucket['detail']}\n{bucket['reproduce']}".strip()
            night.find("bucket", f"{message} ({bucket['id']})", detail)
    if code == Exit.FOUND and not line.findings:
        raise Doubt("it ended with 1 and has no new bucket")
    if code == Exit.UNTRUSTED:
        # A file that cannot be read. All others were sorted in.
        night.doubt(f"triage: {_ended(code, context, line)}")
    else:
        _expect(code, context, line, Exit.CLEAN, Exit.FOUND)


def untriaged(context: Context) -> None:
    """Without triage every finding is one, known or not: none is lost for a tool that is."""
    night = context.night
    for path in takes(night):
        file = path / "summary.json" if path.is_dir() else path
        data = _read(file) if file.is_file() else None
        if data is None:
            continue
        for one in data["findings"] if isinstance(data, dict) else ():
            night.find("untriaged", f"{one['harness']}: {one['detail']}", one["replay"])
        for row in data if isinstance(data, list) else ():
            if row["wrong"]:
                what = f"{row['harness']}: {row['file']}: {row['wrong']}"
                night.find("untriaged", what, f"residue replay {row['harness']}")


def takes(night: Night) -> list[Path]:
    """What triage is to look at: all tries of the steps that find, and what older nights left."""
    found = [Path(path) for path in night.takes]
    for name in ("campaign", "recordings", "inject"):
        found += [path for path in tries(night.folder, name) if path.is_dir()]
    answers = (path / "answer.json" for path in tries(night.folder, "replay"))
    # A replay that was cut short left half a list, which is none.
    found += [path for path in answers if isinstance(_read(path), list)]
    return [path for path in found if path.exists()]


def tries(folder: Path, step: str) -> list[Path]:
    """The folders of a step: the first, and one for each time that it was begun again."""
    again = [path for path in folder.glob(f"{step}-*") if path.name[len(step) + 1 :].isdigit()]
    return [path for path in (folder / step, *sorted(again)) if path.is_dir()]


def last_score(history: list[Row], name: str) -> float | None:
    """The score that a slice had the last time it was judged whole."""
    slices = [row.get("slice") or {} for row in history]
    whole = [one for one in slices if one.get("score") is not None]
    scores = [one["score"] for one in whole if one.get("name") == name]
    return float(scores[-1]) if scores else None


def row(night: Night, seconds: float) -> Row:
    """The night as a row of the history."""
    data = night.campaign or {"harnesses": {}, "coverage": {}}
    harnesses: dict[str, dict[str, Any]] = data["harnesses"]
    coverage = data["coverage"]
    profiled = [
        name
        for name, one in harnesses.items()
        if any(shard.get("value_profile") for shard in one["shards"])
    ]
    states = [bucket["state"] for bucket in night.buckets]
    mutation = night.mutation
    return {
        "night": night.name,
        "started": night.started,
        "seconds": round(seconds, 1),
        "exit": int(night.verdict),
        "commit": night.commit,
        "executions": {name: one["executions"] for name, one in harnesses.items()},
        "edges": {name: one["edges"] for name, one in harnesses.items()},
        "inputs": {name: one["committed"] for name, one in harnesses.items()},
        "new": dict(night.kept),
        "gained": {name: one["gained"] for name, one in harnesses.items()},
        "fuzzed": {name: one["seconds"] for name, one in harnesses.items()},
        "profiled": profiled,
        "coverage": {
            "lines": coverage.get("line_percent"),
            "branches": coverage.get("branch_percent"),
        },
        "slice": {"name": mutation["slice"], "score": mutation["score"]} if mutation else None,
        "findings": {state: states.count(state) for state in ("new", "known", "expired", "fixed")},
    }


def _expect(code: int, context: Context, line: Line, *usual: Exit) -> None:
    if code not in usual:
        raise Doubt(_ended(code, context, line))


def _ended(code: int, context: Context, line: Line) -> str:
    """How a step ended, and its last words."""
    told = _log(context, line)
    last = next((text for text in reversed(told) if text.strip()), "")
    return f"it ended with {code}: {last}"[:300]


def _log(context: Context, line: Line) -> list[str]:
    try:
        text = (context.night.folder / f"{line.name}.log").read_text("utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _answer(path: Path, context: Context, line: Line, code: int) -> Any:
    """The JSON that a step left."""
    data = _read(path)
    if data is None:
        raise Doubt(f"it left no {path.name} that can be read: {_ended(code, context, line)}")
    return data
