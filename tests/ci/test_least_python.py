"""The least Python is 3.11.0, and what systems have is often an early 3.11: nothing needs a later.

What is younger by a whole version mypy and ruff see, which are told 3.11; what came with one of the
3.11.x releases that mend security they do not. That is little, and all of it is listed here.
"""

import ast
import configparser

import pytest

from ci.commands import doctor
from ci.process import ROOT
from docs.architecture import sources

# Keywords of a function or a method, whatever it is called on, and the release that brought them.
KEYWORDS = {
    ("extractall", "filter"): "3.11.4",
    ("extract", "filter"): "3.11.4",
    ("unpack_archive", "filter"): "3.11.4",
    ("parseaddr", "strict"): "3.11.10",
    ("getaddresses", "strict"): "3.11.10",
}
# Names of modules and attributes of their objects.
NAMES = {
    "extraction_filter": "3.11.4",
    "data_filter": "3.11.4",
    "tar_filter": "3.11.4",
    "fully_trusted_filter": "3.11.4",
    "FilterError": "3.11.4",
    "OutsideDestinationError": "3.11.4",
    "verify_generated_headers": "3.11.10",
    "HeaderWriteError": "3.11.10",
    "SetReparseDeferralEnabled": "3.11.9",
    "flush_sax": "3.11.9",
}


def younger(text: str) -> list[str]:
    """What of a module came after 3.11.0, each with its line."""
    found = []
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            for keyword in node.keywords:
                if since := KEYWORDS.get((name, keyword.arg or "")):
                    found.append(f"line {line}: {name}({keyword.arg}=) is of {since}")
        name = getattr(node, "attr", getattr(node, "id", ""))
        if since := NAMES.get(name):
            found.append(f"line {line}: {name} is of {since}")
    return found


def test_no_module_needs_a_later_release_than_the_first():
    everything = [*sources(), *(ROOT / "tests").rglob("*.py")]
    found = {path: younger(path.read_text(encoding="utf-8")) for path in everything}
    assert not {str(path.relative_to(ROOT)): said for path, said in found.items() if said}


@pytest.mark.parametrize(
    "text",
    [
        "archive.extractall(folder, filter='data')",
        "import shutil\nshutil.unpack_archive(a, b, filter='data')",
        "import tarfile\ntarfile.data_filter(a, b)",
        "from email.utils import getaddresses\ngetaddresses([], strict=False)",
    ],
)
def test_a_later_call_is_seen(text):
    assert len(younger(text)) == 1
    compile(text, "", "exec")


def test_what_looks_like_one_is_none():
    assert not younger("archive.extractall(folder)\nfilter(None, [])\nreader.extract(strict=True)")


def test_everybody_promises_the_same_least_version():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    least = ".".join(map(str, doctor.OLDEST_PYTHON))
    assert config["options"]["python_requires"] == f">={least}"
    assert config["mypy"]["python_version"] == least
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'target-version = "py{least.replace(".", "")}"' in text
