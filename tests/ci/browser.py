"""A headless Chromium for the pages of the reports, and the screenshots of docs/reports.md.

    python -m tests.ci.browser build/campaign/latest

makes the screenshots again: of a night that is made up, and the refusal coverage of a campaign.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from ci import report
from ci.process import ROOT
from tests.ci import nights

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
SCHEMES = {"dark": 0, "light": 1}
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    # Nothing but this machine has a name.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def browse(url: str, scheme: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the browser on a page and wait for its end; its profile is a new one."""
    assert CHROMIUM is not None
    with TemporaryDirectory() as profile:
        argv = [CHROMIUM, *QUIET, f"--user-data-dir={profile}"]
        argv += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", *arguments, url]
        with subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as child:
            try:
                out, err = child.communicate(timeout=90)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


def shoot(url: str, scheme: str, file: Path, width: int, height: int) -> None:
    """A screenshot of the top of a page. No window is narrower than 500 pixels."""
    done = browse(url, scheme, f"--window-size={width},{height}", f"--screenshot={file}")
    assert file.is_file(), done.stderr


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A web server over a folder: its address, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main(campaign: str) -> None:
    """The screenshots of docs/."""
    docs = ROOT / "docs"
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "results.json").write_text(json.dumps(nights.results(10_000, every=9)))
        report.write(folder, nights.night(inputs=1_100))
        page = (folder / "report.html").as_uri()
        for scheme in SCHEMES:
            shoot(page, scheme, docs / f"report-{scheme}.png", 1280, 1500)
        shoot(framed(folder, page, 400, 1400), "dark", docs / "report-narrow.png", 500, 1400)
        page = (Path(campaign).absolute() / "report.html").as_uri()
        part = framed(folder, f"{page}#refusals", 1280, 1500)
        shoot(part, "light", docs / "report-refusals.png", 1280, 1500)


def framed(folder: Path, page: str, width: int, height: int) -> str:
    """A page that shows another as wide as it is asked to, or one of its parts; its address."""
    style = f"border:0;width:{width}px;height:{height}px"
    frame = folder / "frame.html"
    frame.write_text(f'<body style="margin:0"><iframe src="{page}" style="{style}"></iframe>')
    return frame.as_uri()


if __name__ == "__main__":
    main(sys.argv[1])
