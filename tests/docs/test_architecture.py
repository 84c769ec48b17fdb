"""docs/architecture.md is what the code is, and every file has a line that says something."""

import re

import pytest

from docs import architecture
from docs.architecture import (
    END,
    PAGE,
    PART,
    ROOT,
    Folder,
    arrows,
    folders_in,
    page,
    picture,
    rules,
    sentence,
    sources,
)

TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def test_the_page_is_what_the_code_is():
    assert page(TEXT) == TEXT, "stale: make docs"


def test_every_file_has_its_line_and_every_folder_its_heading():
    for path in sources():
        if path.name != "__init__.py":
            assert sentence(path), f"{path} has no docstring"
            assert len(sentence(path)) <= 110, f"{path}: the first sentence is long"
            assert f"\n| `{path.name}` | {sentence(path)} |\n" in TEXT
    for folder in folders_in():
        assert f"\n### {folder}/\n" in TEXT


def test_every_file_that_the_page_speaks_of_is_there():
    prose = TEXT.partition("## Every file")[0]
    for name in re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", prose):
        assert (ROOT / name).exists(), name


def test_the_picture_is_of_the_imports(tmp_path):
    for name, text in (
        ("a", ""),
        ("b", "from a import x"),
        ("b/inner", "from .. import y"),
        ("c", "import b\nimport a"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    assert arrows(["a", "b", "c"], tmp_path) == {("b", "a"), ("c", "b"), ("c", "a")}
    assert arrows(["a", "b", "b/inner"], tmp_path) == {("b", "a"), ("b/inner", "b")}
    drawn = picture(["a", "b", "c"], tmp_path)
    assert re.findall(r"n\d --> n\d", drawn) == ["n1 --> n0", "n2 --> n1"]


def test_no_arrow_leads_back():
    """The folders of the table stand over one another: no way leads from one to itself."""
    edges = arrows(list(rules()))
    while edges:
        bottom = {b for _, b in edges} - {a for a, _ in edges}
        assert bottom, f"a circle: {sorted(edges)}"
        edges = {(a, b) for a, b in edges if b not in bottom}


@pytest.mark.parametrize(
    ("docstring", "first"),
    [
        ("One thing.", "One thing"),
        ("One thing: and\nmore of it. Another.", "One thing: and more of it"),
        ("Reads RFC 8446, e.g. §4. And more.", "Reads RFC 8446, e.g. §4"),
        ("One thing\n\nAnother.", "One thing"),
    ],
)
def test_a_line_is_the_first_sentence(tmp_path, docstring, first):
    path = tmp_path / "x.py"
    path.write_text(f'"""{docstring}"""\n', encoding="utf-8")
    assert sentence(path) == first


def test_the_command_writes_the_page_once(tmp_path, capsys):
    for name, text in (("a", '"""The one."""\n'), ("b", '"""The other."""\nimport a\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
        (tmp_path / name / "part.py").write_text(text)
    parts = [f"{PART.format(name)}\n{END}\n" for name in ("the picture", "the files")]
    table = "| folder | may import | what is installed |\n| --- | --- | --- |\n"
    table += "| `a` | - | any |\n| `b` | `a` | - |\n\n"
    path = tmp_path / PAGE
    path.parent.mkdir()
    path.write_text(table + "".join(parts))
    assert rules(tmp_path)["b"] == Folder(frozenset({"a"}), frozenset())
    assert architecture.main([], tmp_path) == 1
    assert "is stale" in capsys.readouterr().out and path.read_text().endswith(parts[1])
    assert architecture.main(["--update"], tmp_path) == 0
    written = path.read_text()
    assert written.startswith(table) and "n1 --> n0" in written
    assert "### b/\n\nThe other.\n\n" in written and "| `part.py` | The other |" in written
    assert architecture.main([], tmp_path) == 0
    path.write_text(table)
    with pytest.raises(ValueError, match="has no part"):
        architecture.main([], tmp_path)
