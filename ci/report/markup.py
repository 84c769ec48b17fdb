"""HTML from Python values. Everything that is not `Html` is escaped here, and nowhere else.

Names, details and inputs come from whoever wrote the input that was found, so they are hostile:
markup is escaped, and characters that steer a terminal or the direction of text are shown as what
they are.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable

# No content: they close themselves, as those of HTML may and those of SVG must.
VOID = frozenset({"meta", "br", "hr", "line", "rect", "circle", "path", "polyline"})
# Categories of characters that are not shown: controls, formats (direction marks), surrogates,
# private use, and line and paragraph separators.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


class Html(str):
    """Text that is markup already."""


Child = object


def plain(value: object) -> str:
    """A value as text in which every character is seen; line ends and tabs stay."""
    given = str(value)
    if given.isascii() and given.isprintable():
        return given
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in UNSEEN
        else f"\\u{{{ord(character):x}}}"
        for character in given
    )


def line(value: object, most: int = 200, keep: int = 0) -> str:
    """A value as one line of at most so many characters; of its first blanks `keep` may stay."""
    given = plain(value)
    blanks = given[:keep]
    flat = (blanks if blanks.isspace() else "") + " ".join(given.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def text(value: object) -> Html:
    """Markup of a value: itself when it is markup, escaped when it is anything else."""
    return value if isinstance(value, Html) else Html(html.escape(plain(value)))


def join(children: Iterable[Child]) -> Html:
    """Markup of several values, one behind the other; None is nothing."""
    return Html("".join(text(child) for child in children if child is not None))


def el(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element. An attribute's `_` is `-`, a `_` at its end is dropped; None and False leave it
    out, and True has no value."""
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{text(str(value))}"')
    start = " ".join(parts)
    return Html(f"<{start}/>" if name in VOID else f"<{start}>{join(children)}</{name}>")


def folded(summary: Child, *children: Child, open_: bool = False, class_: str = "") -> Html:
    """What is shown when its summary is opened."""
    return el("details", el("summary", summary), *children, open=open_, class_=class_ or None)


def command(typed: str) -> Html:
    """A command to copy: a click selects it all."""
    return el("pre", el("code", typed), class_="command", tabindex="0")


def table(
    caption: str,
    head: Iterable[Child],
    rows: Iterable[Iterable[Child]],
    numbers: Iterable[int] = (),
    class_: str = "",
) -> Html:
    """A table whose first column names its rows; the columns of `numbers` stand to the right."""
    right = set(numbers)

    def side(column: int) -> str | None:
        return "n" if column in right else None

    def row(cells: Iterable[Child]) -> Html:
        first, *rest = cells
        return el(
            "tr",
            el("th", first, scope="row"),
            *(el("td", cell, class_=side(column)) for column, cell in enumerate(rest, 1)),
        )

    heads = [el("th", cell, scope="col", class_=side(at)) for at, cell in enumerate(head)]
    body = el(
        "table",
        el("caption", caption),
        el("thead", el("tr", *heads)),
        el("tbody", *map(row, rows)),
        class_=class_ or None,
    )
    # A table that is wider than a telephone scrolls by itself, and with the keyboard too.
    return el("div", body, class_="wide", tabindex="0", role="region", aria_label=caption)
