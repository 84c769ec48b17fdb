"""Coverage of the engine by file, and of each file the lines that no input reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ci.process import ROOT
from ci.report.markup import Html, el, folded, join, table
from ci.report.shape import Coverage, File
from ci.wording import many

# Lines shown around one that is missed.
CONTEXT = 2
# A source longer than this is not read: no file of the tree is.
LONGEST = 1_000_000


def section(found: Coverage | None, root: Path = ROOT) -> Html:
    """The part of the page; the sources are read from `root` now."""
    if found is None:
        return el("p", "Not measured.", class_="none")
    head = ("file", "lines", "", "of", "branches", "of", "missed")
    body = []
    files = sorted(found["files"], key=_share)
    for row in files:
        missed = (row["all_lines"] or 0) - (row["lines"] or 0)
        percent = _percent(row["lines"], row["all_lines"])
        body.append(
            (
                el("code", row["file"]),
                percent,
                _meter(percent),
                _count(row["all_lines"]),
                _percent(row["branches"], row["all_branches"]),
                _count(row["all_branches"]),
                f"{missed:,}" if missed else "-",
            )
        )
    total = (
        f"{_points(found['line_percent'], found['line_change'])} of "
        f"{_count(found['all_lines'])} lines, "
        f"{_points(found['branch_percent'], found['branch_change'])} of "
        f"{_count(found['all_branches'])} branches, by all merged inputs together."
    )
    return join(
        [
            el("p", total),
            table("Coverage by file, the least covered first", head, body, (1, 3, 4, 5, 6)),
            el("h3", "Lines that no input reaches"),
            el(
                "div",
                *(_file(row, root) for row in files if row["missed_lines"]),
                class_="folds",
            ),
            _branches(found["files"]),
        ]
    )


def _points(percent: float | None, change: float | None) -> str:
    if percent is None:
        return "an unknown share"
    return f"{percent:.1f}%" + ("" if change is None else f" ({change:+.1f} since the last night)")


def _share(row: File) -> tuple[float, str]:
    return ((row["lines"] or 0) / (row["all_lines"] or 1), row["file"])


def _percent(part: int | None, whole: int | None) -> str:
    return "-" if part is None or not whole else f"{100 * part / whole:.1f}%"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _meter(percent: str) -> Html:
    """The share as a bar; the number beside it says the same."""
    width = percent if percent != "-" else "0%"
    return el("span", el("span", style=f"width:{width}"), class_="meter", aria_hidden="true")


def numbers(ranges: str) -> set[int]:
    """The lines of `3-5 9`; what is no range is left out."""
    found: set[int] = set()
    for piece in ranges.split():
        low, _, high = piece.partition("-")
        if low.isdecimal() and (high or low).isdecimal() and len(piece) < 16:
            found.update(range(int(low), min(int(high or low), int(low) + 10_000) + 1))
    return found


def _file(row: File, root: Path) -> Html:
    missed = numbers(row["missed_lines"])
    head = join([el("code", row["file"]), f" {many(len(missed), 'line')} missed"])
    source = _source(root, row["file"])
    if source is None:
        where = f"The file is not there to be shown. Lines {row['missed_lines']}"
        return folded(head, el("p", where))
    parts = []
    if row["sha256"] and hashlib.sha256(source).hexdigest() != row["sha256"]:
        parts.append(
            el("p", "The file has changed since it was measured: lines may be off.", class_="none")
        )
    text = source.decode("utf-8", "replace").splitlines()
    if max(missed, default=0) > len(text):
        parts.append(el("p", f"The file is shorter now. Lines {row['missed_lines']}"))
    code = join(_hunks(text, missed))
    return folded(head, *parts, el("pre", code, tabindex="0") if code else None)


def _source(root: Path, name: str) -> bytes | None:
    """A file of the tree; None for one that is gone, or that lies outside of it."""
    try:
        path = (root / name).resolve()
        if not path.is_relative_to(root.resolve()) or path.stat().st_size > LONGEST:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _hunks(text: list[str], missed: set[int]) -> Iterator[Html]:
    """The missed lines, marked, with a few around them; a gap is told."""
    shown = {near for at in missed for near in range(at - CONTEXT, at + CONTEXT + 1)}
    last = 0
    for at in sorted(near for near in shown if 1 <= near <= len(text)):
        if at != last + 1:
            yield join([f"{'':>5}   ... {_inside(text, at)}\n"])
        last = at
        body = f"{at:>5} {'!' if at in missed else ' '} {text[at - 1]}"
        yield join([el("mark", body) if at in missed else body, "\n"])


def _inside(text: list[str], at: int) -> str:
    """The function or class that a line stands in, by its indentation; of a blank line nothing."""
    depth = _depth(text[at - 1])
    for above in reversed(text[: at - 1]):
        bare = above.lstrip()
        if _depth(above) < depth and bare.startswith(("def ", "class ")):
            return "in " + bare.split("(")[0].split(":")[0]
    return ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def _branches(files: list[File]) -> Html:
    """The branches not taken, whose lines are all reached: what a list of lines does not show."""
    items = []
    for row in files:
        lines = numbers(row["missed_lines"])
        pairs = [pair.partition(">") for pair in row["missed_branches"].split()]
        hidden = [
            f"{start} to {'the end' if end.startswith('-') else end}"
            for start, _, end in pairs
            if start.isdecimal() and int(start) not in lines
            if not (end.isdecimal() and int(end) in lines)
        ]
        if hidden:
            items.append(el("li", el("code", row["file"]), ": ", ", ".join(hidden)))
    if not items:
        return Html("")
    return folded("Branches not taken between lines that are reached", el("ul", *items))
