"""Reports that a person looks at: a page, the same figures as JSON, and a few lines for a chat."""

from __future__ import annotations

import json
from pathlib import Path

from ci.report.actions import actions
from ci.report.chat import chat
from ci.report.figures import collect
from ci.report.page import page
from ci.report.read import Raw
from ci.report.shape import Figures


def write(folder: Path, data: Raw) -> Figures:
    """Write report.html, report.json and chat.txt into the folder; returns the figures.

    `data` is a campaign's summary or a night's record, whole or in part. Each file is written aside
    and renamed. OSError when the folder cannot be written to.
    """
    figures = collect(data, folder)
    figures["next"] = actions(figures, folder)
    for name, body in (
        ("report.json", json.dumps(figures, indent=1) + "\n"),
        ("chat.txt", chat(figures)),
        ("report.html", page(figures)),
    ):
        aside = folder / f".{name}"
        aside.write_text(body, encoding="utf-8", errors="backslashreplace")
        aside.replace(folder / name)
    return figures
