"""The page of a report in a browser: nothing is loaded, nothing overflows, light and dark.

Needs Chromium; without it these are skipped, and say so.
"""

import html
import json
import re
import zlib

import pytest

from ci import report
from ci.report.style import PALETTE
from tests.ci import browser, nights

pytestmark = pytest.mark.skipif(browser.CHROMIUM is None, reason="chromium is not installed")

WIDTHS = (400, 1280)
# Every fold is opened; then how wide the page is, and what its body and its ground look like.
MEASURE = """<!doctype html><body><p id="told">nothing</p>%s<script>
window.onload = () => {
  const told = {};
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    page.querySelectorAll("details").forEach(fold => { fold.open = true; });
    told[frame.width] = {
      width: page.documentElement.scrollWidth,
      folds: page.querySelectorAll("details").length,
      drawings: page.querySelectorAll("svg[role=img] polyline").length,
      ground: getComputedStyle(page.documentElement).backgroundColor,
      scripts: page.querySelectorAll("script, img, link, iframe").length,
    };
  }
  document.getElementById("told").textContent = JSON.stringify(told);
};
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A night of 1,000 inputs a harness and 10,000 mutants, in which some names are hostile."""
    folder = tmp_path_factory.mktemp("night")
    results = nights.results(10_000, every=4)
    results["results"][0]["diff"] = f"-{nights.HOSTILE}"
    (folder / "results.json").write_text(json.dumps(results))
    night = nights.night(inputs=1_000)
    night["buckets"][0] |= {"detail": nights.HOSTILE, "harness": f"{nights.HOSTILE}{'x' * 300}"}
    night["campaign"]["harnesses"][f"{nights.HOSTILE}{'y' * 300}"] = nights.harness("hello", 1_000)
    report.write(folder, night)
    frames = [f'<iframe src="report.html" width={width} height=900></iframe>' for width in WIDTHS]
    (folder / "measure.html").write_text(MEASURE % "".join(frames))
    return folder


def colour(name):
    return "rgb({}, {}, {})".format(*bytes.fromhex(name.removeprefix("#")))


@pytest.mark.parametrize("scheme", browser.SCHEMES)
def test_a_page_loads_nothing_and_fits_a_telephone_and_a_desk(folder, scheme):
    with browser.served(folder) as (address, asked):
        done = browser.browse(f"{address}/measure.html", scheme, "--dump-dom")
    told = re.search(r'<p id="told">(.*?)</p>', done.stdout)
    assert told is not None, done.stderr
    pages = json.loads(html.unescape(told[1]))
    for width in WIDTHS:
        page = pages[str(width)]
        assert page["width"] <= width, f"wider than {width} pixels"
        assert page["folds"] > 50 and page["drawings"] > 20 and page["scripts"] == 0
        assert page["ground"] == colour(PALETTE[scheme]["page"])
    # The browser asks for a site's icon by itself.
    assert set(asked) - {"/favicon.ico"} == {"/measure.html", "/report.html"}
    assert "Refused to" not in done.stderr and "violates" not in done.stderr


@pytest.mark.parametrize("scheme", browser.SCHEMES)
def test_a_screenshot_has_the_colours_of_its_scheme(folder, tmp_path, scheme):
    file = tmp_path / "page.png"
    browser.shoot((folder / "report.html").as_uri(), scheme, file, 1400, 900)
    data = file.read_bytes()
    assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (1400, 900)
    # The first point of the picture is what it is under every filter of PNG.
    start = data.index(b"IDAT") + 4
    size = int.from_bytes(data[start - 8 : start - 4])
    first = zlib.decompressobj().decompress(data[start : start + size], 8)[1:4]
    assert first == bytes.fromhex(PALETTE[scheme]["page"].removeprefix("#"))
