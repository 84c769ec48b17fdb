"""Curves as inline SVG: over the run, and over the last nights.

A chart has axes with units, a title and a description for those who do not see it, and the figures
are in a table beside it or in the JSON. A series is told by its colour, its dash and its marker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from ci.report.markup import Html, el, folded, join, table
from ci.report.shape import CurvePoint, Night
from ci.report.style import DASHES, SERIES
from ci.wording import many

WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 40
MARKERS = 6
"""How many markers a line has at most: enough to tell it, few enough to see it."""

PERCENT = "percent"

Point = tuple[float, float]


class Series(NamedTuple):
    """A line: its name, its place in the palette, its points by x."""

    name: str
    style: int
    points: list[Point]


class Axis(NamedTuple):
    """A scale from its least value to its greatest, over so many pixels."""

    low: float
    high: float
    logarithmic: bool = False
    least: float = 0.0
    """Ticks are no closer than this: what is counted has no halves."""

    def part(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.logarithmic:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, self.low)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values inside, four to seven."""
        if self.logarithmic:
            powers = range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)
            step = max(1, math.ceil(len(powers) / 7))
            return [10.0**power for power in powers[::step]]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        while (self.high - self.low) / step > 7:
            step *= 2 if round(step / 10 ** math.floor(math.log10(step))) != 2 else 2.5
        first = math.ceil(self.low / step - 1e-9)
        step = max(step, self.least)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def axis(values: Iterable[float], zero: bool = True, logarithmic: bool = False) -> Axis:
    """The scale of these values; of a single one, and of none, it still has a length."""
    given = [value for value in values if not logarithmic or value > 0]
    if logarithmic:
        low = 10.0 ** math.floor(math.log10(min(given, default=1.0)))
        high = 10.0 ** math.ceil(math.log10(max(given, default=10.0)))
        return Axis(low, high if high > low else low * 10, True)
    low, high = min(given, default=0.0), max(given, default=1.0)
    if zero:
        return Axis(min(low, 0.0), high if high > 0 else 1.0)
    margin = (high - low) * 0.1 or max(abs(high) * 0.01, 0.5)
    return Axis(low - margin, high + margin)


def short(value: float) -> str:
    """A number as an axis has room for it."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.4g}"


def chart(
    title: str,
    series: Sequence[Series],
    across: str,
    up: str,
    zero: bool = True,
    logarithmic: bool = False,
    names: Sequence[str] = (),
) -> Html:
    """A figure. `across` and `up` name the axes with their units; `names` are the labels of whole
    numbers across, where those are no quantity (nights)."""
    series = [line for line in series if line.points]
    if not series:
        return el(
            "figure", el("figcaption", title), el("p", "Nothing was measured.", class_="none")
        )
    xs = axis((x for line in series for x, _ in line.points), zero=not names)
    if names:
        xs = Axis(-0.5, len(names) - 0.5)
    ys = axis((y for line in series for _, y in line.points), zero, logarithmic)
    ys = ys._replace(least=0.0 if up == PERCENT else 1.0)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(point: Point) -> Point:
        return LEFT + wide * xs.part(point[0]), TOP + high * (1 - ys.part(point[1]))

    parts = [el("title", title), el("desc", _told(series, across, up))]
    for tick in ys.ticks():
        _, y = place((xs.low, tick))
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid"))
        parts.append(_label(LEFT - 5, y + 4, short(tick), "end"))
    for at, label in _across(xs, names):
        x, _ = place((at, ys.low))
        parts.append(_label(x, HEIGHT - BOTTOM + 15, label, "middle"))
    parts.append(_line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"))
    parts.append(_line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "axis"))
    parts.append(_label(LEFT + wide / 2, HEIGHT - 6, across, "middle"))
    turned = f"rotate(-90 12 {TOP + high / 2:g})"
    parts.append(_label(12, TOP + high / 2, up, "middle", transform=turned))
    for line in series:
        parts += _drawn(line, [place(point) for point in line.points])
    drawing = el("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title)
    return el("figure", el("figcaption", title), drawing)


def _across(xs: Axis, names: Sequence[str]) -> list[tuple[float, str]]:
    if not names:
        return [(tick, short(tick)) for tick in xs.ticks()]
    step = max(1, math.ceil(len(names) / 5))
    return [(float(at), names[at]) for at in range(0, len(names), step)]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return el("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def _label(x: float, y: float, label: str, anchor: str, **more: str) -> Html:
    return el("text", label, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def _drawn(line: Series, points: list[Point]) -> list[Html]:
    style = line.style % SERIES
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = DASHES[style] or None
    parts = [el("polyline", points=path, class_=f"series s{style}", stroke_dasharray=dash)]
    step = max(1, math.ceil(len(points) / MARKERS))
    marked = [*points[-1::-step]]
    return parts + [marker(style, x, y) for x, y in marked]


def marker(style: int, x: float, y: float) -> Html:
    """One of eight shapes."""
    r = 3.5
    shapes = (
        ((-r, -r), (r, -r), (r, r), (-r, r)),
        ((0, -r - 1), (r + 1, r), (-r - 1, r)),
        ((0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)),
        ((-r - 1, -r), (r + 1, -r), (0, r + 1)),
        ((-r - 1, -1), (r + 1, -1), (r + 1, 1), (-r - 1, 1)),
        ((-1, -r - 1), (1, -r - 1), (1, r + 1), (-1, r + 1)),
        ((-r, -r), (0, -1), (r, -r), (1, 0), (r, r), (0, 1), (-r, r), (-1, 0)),
    )
    if style == 0:
        return el("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="3.5", class_="m0")
    corners = " L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in shapes[style - 1])
    return el("path", d=f"M{corners}Z", class_=f"m{style}")


def _told(series: Sequence[Series], across: str, up: str) -> str:
    """The description: where each line begins and ends."""
    told = [
        f"{line.name}: from {short(line.points[0][1])} to {short(line.points[-1][1])}"
        for line in series
    ]
    return f"{up} over {across}. " + "; ".join(told) + "."


def legend(names: Sequence[str]) -> Html:
    """Which line is which."""
    items = []
    for style, name in enumerate(names):
        style %= SERIES
        dash = DASHES[style] or None
        sample = el(
            "svg",
            el("polyline", points="0,6 34,6", class_=f"series s{style}", stroke_dasharray=dash),
            marker(style, 17, 6),
            viewBox="0 0 34 12",
            aria_hidden="true",
        )
        items.append(el("li", sample, name))
    return el("ul", *items, class_="legend")


def run(points: list[CurvePoint] | None) -> Html:
    """The curves of one fuzzing phase."""
    if not points:
        return el("p", "Over this run: not sampled.", class_="none")
    names = list(dict.fromkeys(point["harness"] for point in points))
    minutes = max(point["t"] for point in points) > 300
    unit = ("minutes", 60.0) if minutes else ("seconds", 1.0)

    def lines(key: Literal["executions", "edges", "finds"], least: float = 0.0) -> list[Series]:
        return [
            Series(
                name,
                at,
                [
                    (point["t"] / unit[1], value)
                    for point in points
                    if point["harness"] == name
                    if (value := point[key]) is not None and value >= least
                ],
            )
            for at, name in enumerate(names)
        ]

    across = f"time ({unit[0]})"
    charts = [
        chart("Executions", lines("executions", 1), across, "executions", logarithmic=True),
        chart("Edges", lines("edges", 1), across, "edges"),
        chart("Findings", lines("finds"), across, "findings"),
    ]
    return join([el("h3", "Over this run"), legend(names), el("div", *charts, class_="charts")])


def nights(history: list[Night] | None) -> Html:
    """The curves over the last nights."""
    if not history:
        return el("p", "Over the last nights: there is no history yet.", class_="none")
    labels = [row["night"][:16] for row in history]
    harnesses = list(dict.fromkeys(name for row in history for name in row["executions"]))

    def line(name: str, style: int, values: Iterable[float | None]) -> Series:
        points = [(float(x), value) for x, value in enumerate(values) if value is not None]
        return Series(name, style, points)

    def each(key: Literal["executions", "edges"]) -> list[Series]:
        return [
            line(name, at, (row[key].get(name) for row in history))
            for at, name in enumerate(harnesses)
        ]

    def drawn(title: str, up: str, series: list[Series], **how: bool) -> Html:
        return chart(title, series, "night", up, names=_brief(labels), **how)

    coverage = [
        line("lines", 0, (row["line_percent"] for row in history)),
        line("branches", 1, (row["branch_percent"] for row in history)),
    ]
    states = list(dict.fromkeys(name for row in history for name in row["findings"]))
    found = [
        line(name, at, (row["findings"].get(name) for row in history))
        for at, name in enumerate(states)
    ]
    score = [line("score", 0, (row["score"] for row in history))]
    own = [
        join([drawn("Coverage", PERCENT, coverage, zero=False), legend(["lines", "branches"])]),
        join([drawn("Findings", "findings", found), legend(states)]),
        drawn("Score of the night's slice", PERCENT, score, zero=False),
    ]
    shared = [
        drawn("Executions by harness", "executions", each("executions"), logarithmic=True),
        drawn("Edges by harness", "edges", each("edges")),
    ]
    return join(
        [
            el("h3", f"Over the last {many(len(history), 'night')}"),
            el("div", *(el("div", chart_) for chart_ in own), class_="charts"),
            legend(harnesses),
            el("div", *shared, class_="charts"),
            folded("The same as a table", _nights_table(history)),
        ]
    )


def _brief(labels: list[str]) -> list[str]:
    """What tells the nights apart: the month and the day of names that begin with a date."""
    if all(len(label) >= 8 and label[:8].isdigit() for label in labels):
        return [f"{label[4:6]}-{label[6:8]}" for label in labels]
    if all(label[4:5] == label[7:8] == "-" for label in labels):
        return [label[5:10] for label in labels]
    return labels


def _nights_table(history: list[Night]) -> Html:
    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    head = (
        "night",
        "exit",
        "runs",
        "inputs",
        "lines %",
        "branches %",
        "slice",
        "score",
        "findings",
    )
    body = [
        (
            row["night"],
            shown(row["exit"], "d"),
            f"{sum(row['executions'].values()):,}",
            f"{sum(row['inputs'].values()):,}",
            shown(row["line_percent"], ".1f"),
            shown(row["branch_percent"], ".1f"),
            row["slice"] or "-",
            shown(row["score"], ".1f"),
            ", ".join(f"{count} {state}" for state, count in row["findings"].items()) or "-",
        )
        for row in reversed(history)
    ]
    return table("The last nights, newest first", head, body, (1, 2, 3, 4, 5, 7))
