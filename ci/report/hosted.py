"""What a run shows where it is a job of GitHub Actions (docs/hosted.md)."""

import os
from pathlib import Path


def address() -> str:
    """Where the repository of the run is to be seen; nothing elsewhere."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else ""


def page(markdown: str) -> None:
    """Adds to the run's summary page; without one, nothing."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(markdown)


def told(title: str, text: str) -> None:
    """Adds a text for a terminal to the summary page as it is."""
    page(f"### {title}\n\n````\n{text.strip()}\n````\n\n")
