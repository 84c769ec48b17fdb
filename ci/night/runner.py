"""A night from beginning to end, and one that was killed taken up where it was.

Every change of the night's state is on the disk before the next step begins, so a kill costs the
step at hand alone: what its files have is taken over, and it is begun again for the time that is
left. A step that fails, hangs, is killed or cannot start is a line of the night and ends nothing.
"""

import contextlib
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ci import extras
from ci.exits import Exit, Untrusted
from ci.night import child, corpus, history, judge, plan, state
from ci.night.context import Context
from ci.night.plan import STEPS, Step
from ci.night.state import CUT, DONE, FAILED, SKIPPED, WAITING, Line, Night
from ci.process import Stop, commit
from ci.progress import TERMINAL_EVERY, Progress, clock, stamp
from ci.wording import many
from harnesses import HARNESSES

INTERRUPTED = "interrupted"
# Signals after which nothing more is done; the night is then taken up by the next.
LEAVES_ALL = 2
# A kill between two of these costs so much of what is known of the time that was spent.
BEAT = 5.0
# Elsewhere than on a terminal a line is kept for ever, and a night is long.
PLAIN_EVERY = 30.0
# A night writes some hundred megabytes.
LITTLE_MB, TOO_LITTLE_MB = 1000, 100


@dataclass
class Asked:
    """What the command line asks for."""

    root: Path
    minutes: float
    jobs: int
    steps: Sequence[Step] = STEPS
    report: Callable[[Path], list[str]] = lambda folder: [
        sys.executable, "-m", "ci", "report", str(folder)
    ]  # fmt: skip


def now() -> str:
    """The local time with its zone, to the second."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def run_night(asked: Asked, stop: Stop, progress: Progress) -> Night:
    """The whole night; nothing is raised for what a step does."""
    with state.only_one(asked.root):
        _mend(asked, stop, progress)
        context = _take_up(asked, progress) or _begin(asked, progress)
        night = context.night
        _look_for_space(asked.root, night)
        for at, step in enumerate(asked.steps):
            if stop.count >= LEAVES_ALL:
                break
            if night.line(step.name).state == WAITING:
                _do(context, step, asked.steps[at:], stop, progress)
        if stop.count >= LEAVES_ALL:
            progress.say("stopped; the next nightly takes this night up")
            night.interrupted = True
            night.exit = None
            night.save()
            return night
        night.interrupted = night.interrupted or bool(stop)
        _finish(asked, night, stop, progress)
        return night


def _begin(asked: Asked, progress: Progress) -> Context:
    """A new night, with its folder."""
    name = stamp()
    for number in range(1000):
        folder = asked.root / "nights" / (name if not number else f"{name}-{number}")
        if not folder.exists():
            break
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise Untrusted(f"{folder} cannot be made: {error.strerror}") from None
    lines = [Line(step.name, step.does) for step in asked.steps]
    night = Night(folder, now(), asked.minutes, commit(), lines)
    return _ready(asked, night, progress)


def _ready(asked: Asked, night: Night, progress: Progress) -> Context:
    rows, wrong = history.read(asked.root / "history.jsonl")
    for text in wrong:
        progress.say(text)
    night.notes += [text for text in wrong if text not in night.notes]
    rows = [row for row in rows if row["night"] != night.name]
    night.save()
    return Context(asked.root, night, asked.jobs, rows)


def _unfinished(root: Path) -> list[Night]:
    folders = sorted((root / "nights").glob("*/night.json"))
    nights = [state.load(path.parent) for path in folders]
    return [night for night in nights if night is not None and night.finished is None]


def _take_up(asked: Asked, progress: Progress) -> Context | None:
    """The night that was killed, if it is of this checkout; any other is closed."""
    names = [step.name for step in asked.steps]
    here = commit()
    last: Night | None = None
    left: list[str] = []
    for night in _unfinished(asked.root):
        if night.commit == here and [line.name for line in night.steps] == names and last is None:
            last = night
        else:
            progress.say(f"the night {night.name} was cut short in another checkout: closing it")
            left += _close(asked, night, progress)
    if last is None:
        if not left:
            return None
        context = _begin(asked, progress)
        context.night.takes = left
        context.night.save()
        return context
    last.resumed += 1
    last.interrupted = False
    last.takes += left
    if _begin_again(last) or last.at:
        # What was left of the step at hand is taken over; it begins again in a new folder.
        _salvage(asked, last, progress)
        last.at = ""
    todo = max(0.0, last.minutes * 60 - last.spent)
    progress.say(
        f"taking up the night {last.name}, which did not end: {clock(todo)} of "
        f"{last.minutes:g} min are left"
    )
    return _ready(asked, last, progress)


def _begin_again(night: Night) -> bool:
    """Have what a signal cut or left out done after all; whether there was any."""
    again = [line for line in night.steps if line.why == INTERRUPTED]
    for line in again:
        line.state, line.why, line.findings = WAITING, "", 0
    if any(line.name == "triage" for line in again):
        night.findings = [one for one in night.findings if one["rule"] != "untriaged"]
    return bool(again)


def _salvage(asked: Asked, night: Night, progress: Progress) -> None:
    """Take over what a step that was killed had found: a campaign's inputs; its findings stay."""
    for folder in judge.tries(night.folder, "campaign"):
        count = corpus.salvage(folder, asked.root / "corpus", HARNESSES)
        if count:
            progress.say(f"kept {many(count, 'input')} of the campaign that was cut short")


def _close(asked: Asked, night: Night, progress: Progress) -> list[str]:
    """End a night that nobody can go on with; what triage is to see of it, and may have seen."""
    _salvage(asked, night, progress)
    for line in night.steps:
        if line.state == WAITING:
            line.state, line.why = SKIPPED, "the night was cut short"
    night.interrupted = True
    night.finished, night.exit = now(), int(night.verdict)
    night.save()
    with contextlib.suppress(OSError):  # the next night appends it
        history.append(asked.root / "history.jsonl", judge.row(night, night.spent))
    return [str(path) for path in judge.takes(night)]


def _look_for_space(root: Path, night: Night) -> None:
    free = shutil.disk_usage(root).free // 10**6
    if free < TOO_LITTLE_MB:
        night.doubt(f"only {free} MB are free where the night writes: something may be lost")
    elif free < LITTLE_MB:
        night.notes.append(f"only {free} MB are free where the night writes")


def _do(context: Context, step: Step, todo: Sequence[Step], stop: Stop, progress: Progress) -> None:
    """One step, whatever comes of it."""
    night, line = context.night, context.night.line(step.name)
    number = [one.name for one in night.steps].index(step.name) + 1
    head = f"{number}/{len(night.steps)} {step.name}"
    missing = [name for name in step.needs if not extras.here(name)]
    if stop and not step.always:
        line.state, line.why = SKIPPED, INTERRUPTED
    elif missing:
        line.state, line.why = SKIPPED, f"{', '.join(missing)} is not installed"
        night.doubt(f"{step.name}: {line.why}")
    if line.state == SKIPPED:
        progress.say(f"{head}: skipped: {line.why}")
        night.save()
        return
    context.hurried = bool(stop)
    seconds = plan.share(todo, night.minutes * 60 - night.spent)
    folder = _fresh(night.folder, step.name)
    line.folder = folder.name
    night.at = step.name
    night.save()
    progress.say(f"{head}: {step.does}" + (f", {clock(seconds)}" if step.part else ""))
    ended = _run(context, step, folder, seconds, stop, progress)
    line.exit, line.seconds = ended.code, round(ended.seconds, 1)
    _settle(context, step, line, folder, ended, bool(stop))
    night.at = ""
    night.save()
    told = f": {line.why}" if line.why else ""
    found = f", {line.findings} found" if line.findings else ""
    progress.say(f"{head}: {line.state} in {clock(line.seconds)}{found}{told}")


def _fresh(parent: Path, name: str) -> Path:
    """A folder's name for the step that no earlier try has."""
    number = 1
    while (parent / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return parent / (name if number == 1 else f"{name}-{number}")


def _run(
    context: Context,
    step: Step,
    folder: Path,
    seconds: float,
    stop: Stop,
    progress: Progress,
) -> child.Ended:
    night = context.night
    before = night.spent
    saved = told = 0.0

    def beat(elapsed: float) -> None:
        nonlocal saved, told
        night.spent = before + elapsed
        if elapsed - saved >= BEAT:
            saved = elapsed
            night.save()
        if elapsed - told >= (TERMINAL_EVERY if progress.terminal else PLAIN_EVERY):
            told = elapsed
            progress.show(f"{step.name} {clock(elapsed)} | {_last_line(log)}")

    log = night.folder / f"{step.name}.log"
    try:
        if not step.makes:
            folder.mkdir()
        argv = step.argv(context, folder, seconds)
        env = step.env(context, seconds) if step.env is not None else {}
    except OSError as error:
        return child.Ended(None, 0.0, why=f"it could not be prepared: {error.strerror}")
    ended = child.run(
        argv,
        log,
        seconds + step.fixed + step.grace,
        stop,
        tolerates=1 if step.always else 0,
        env=env,
        answer=folder / "answer.json" if step.answers else None,
        beat=beat,
    )
    night.spent = before + ended.seconds
    return ended


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 400))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1].strip()[:120] if lines else ""


def _settle(
    context: Context, step: Step, line: Line, folder: Path, ended: child.Ended, stopped: bool
) -> None:
    """What became of the step, in its line and in the night."""
    night = context.night
    line.state, line.why = DONE, ""
    if ended.cut:
        line.state = CUT
        line.why = INTERRUPTED if stopped else f"it was cut after {clock(ended.seconds)}"
    elif ended.code is None:
        line.state, line.why = FAILED, ended.why
    elif ended.code < 0:
        line.state, line.why = FAILED, f"it was killed by {signal.Signals(-ended.code).name}"
    try:
        if ended.code is not None:
            step.judge(context, line, folder, ended.code)
    except (judge.Doubt, OSError, ValueError, KeyError, TypeError) as error:
        if line.state == DONE:
            line.state, line.why = FAILED, _said(error)
    if line.state in (FAILED, CUT) and not stopped:
        night.doubt(f"{step.name}: {line.why}")
    if step.name == "triage" and line.state != DONE:
        judge.untriaged(context)


def _said(error: Exception) -> str:
    if isinstance(error, judge.Doubt):
        return str(error)
    if isinstance(error, OSError):
        return f"what it left cannot be kept: {error.strerror}"
    return f"what it left cannot be understood: {type(error).__name__}: {error}"


def _finish(asked: Asked, night: Night, stop: Stop, progress: Progress) -> None:
    """The verdict, the report, the history: what is done again if a kill comes in between."""
    night.finished, night.exit = night.finished or now(), int(night.verdict)
    rows, _ = history.read(asked.root / "history.jsonl")
    rows = [row for row in rows if row["night"] != night.name]
    night.history = [*rows, judge.row(night, night.spent)]
    night.save()
    log = night.folder / "report.log"
    ended = child.run(asked.report(night.folder), log, 300, stop, tolerates=1)
    if ended.code != Exit.CLEAN:
        why = ended.why or f"it ended with {ended.code}: {_last_line(log)}"
        night.doubt(f"report: {why}")
        progress.say(f"report: {why}")
        night.exit = int(night.verdict)
        night.history[-1]["exit"] = night.exit
        night.save()
    try:
        history.append(asked.root / "history.jsonl", night.history[-1])
    except OSError as error:
        # The row is in night.json, and the next night appends it.
        night.doubt(f"history.jsonl could not be written: {error.strerror}")
        night.exit = int(night.verdict)
        night.save()


def _mend(asked: Asked, stop: Stop, progress: Progress) -> None:
    """Nights that ended and whose row is not in the history were killed while they were closed."""
    rows, _ = history.read(asked.root / "history.jsonl")
    have = {row["night"] for row in rows}
    for path in sorted((asked.root / "nights").glob("*/night.json")):
        night = state.load(path.parent)
        if night is None or night.finished is None or night.name in have:
            continue
        progress.say(f"the night {night.name} ended and is not in the history: adding it")
        _finish(asked, night, stop, progress)
