"""The parts of a file that run on its import: which changed, and the file with each put back."""

from __future__ import annotations

import pytest

from ci.gate import code, diff
from ci.gate.diff import Change

Row = tuple[str, str | None, bool]


def parts(old: str, new: str) -> dict[str, Row]:
    """For each changed part what putting it back adds or takes away, and whether it decides."""
    was, now = code.read("a.py", old), code.read("a.py", new)
    found: dict[str, Row] = {}
    for changed in code.changed_parts(was, now, new):
        lines = new.splitlines()
        back = changed.reverted
        told = None
        if back is not None:
            added = [line.strip() for line in back.splitlines() if line not in lines]
            gone = [f"-{line.strip()}" for line in lines if line not in back.splitlines()]
            told = " ".join([*added, *gone])
        found[changed.part.name] = (changed.now, told, changed.decides)
    return {name: row for name, row in found.items() if row[1] is not None or row[2]}


@pytest.mark.parametrize(
    ("old", "new", "name", "told", "decides"),
    [
        ("A = 1\n", "A = 2\n", "name A", "A = 1", False),
        ("A: int = 1\n", "A: int = 2\n", "name A", "A: int = 1", False),
        ("A, B = 1, 2\n", "A, B = 1, 3\n", "name B", "A, B = 1, 2", False),
        ("A = 1\n", "A = 1\nB = 2\n", "name B", "B = None", False),
        (
            "from hmac import compare_digest\n",
            "from operator import eq as compare_digest\n",
            "import compare_digest",
            "from hmac import compare_digest",
            False,
        ),
        ("import a\n", "import b as a\n", "import a", "import a", False),
        ("from a import *\n", "from b import *\n", "module", "from a import *", False),
        ("x = len(A)\n", "from m import len\nx = len(A)\n", "import len", "del len", False),
        ("f()\n", "pass\n", "module", "f()", False),
        ("pass\n", "f()\n", "module", "pass -f()", False),
        ("A = f\n", "A = lambda: 1\n", "name A", "A = f", True),
        ("A = 1\n", "A = 1 if B else 2\n", "name A", "A = 1", True),
        ("class C:\n    a = 1\n", "class C:\n    a = 2\n", "name C.a", "a = 1", False),
        ("class C:\n    a = 1\n", "class C:\n    pass\n", "name C.a", "a = 1", False),
        ("class C(A):\n    pass\n", "class C(B):\n    pass\n", "class C", None, True),
        (
            "def f(x=a()):\n    return x\n",
            "def f(x=b()):\n    return x\n",
            "def f",
            "def f(x=a()): -def f(x=b()):",
            False,
        ),
        (
            "@a\ndef f(x):\n    return x\n",
            "@b\ndef f(x):\n    return x\n",
            "def f",
            "@a -@b",
            False,
        ),
    ],
)
def test_a_changed_part_is_put_back_alone(
    old: str, new: str, name: str, told: str | None, decides: bool
) -> None:
    _, back, takes = parts(old, new)[name]
    assert (back, takes) == (told, decides)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A = 1\n", "# so\nA = 1\n"),
        ('"""A."""\nA = 1\n', '"""B."""\nA = 1\n'),
        ("A = 1\n", "A: int = 1\n"),
        ("def f(x):\n    return x\n", "def f(x):\n    return x + 1\n"),
        ("def f(x):\n    return x\n", "def f(x: int) -> int:\n    return x\n"),
        ("A = 1\n", "from __future__ import annotations\n\nA = 1\n"),
        ("A = 1\n", "import os\n\nA = 1\n"),
        ("A = 1\n", 'A = 1\n__all__ = ["A"]\n'),
        ("A = 1\n", "if TYPE_CHECKING:\n    import b\nA = 1\n"),
        ('A = 1\nT = TypeVar("T")\n', "A = 1\n"),
        ("class C:\n    a = 1\n", 'class C:\n    """A class."""\n\n    a = 1\n'),
        ("A = 1\n", "A = 1\n\n\nclass C(B):\n    pass\n"),
    ],
)
def test_what_says_nothing_to_the_code_is_no_part(old: str, new: str) -> None:
    assert parts(old, new) == {}


TESTS = "from a import b\n\nA = 1\n\n\ndef help():\n    return b\n\n\ndef test_x():\n    assert A\n"


@pytest.mark.parametrize(
    ("new", "altered"),
    [
        (TESTS + "\n\ndef test_y():\n    assert b\n", False),
        (TESTS + "\n\ndef more():\n    return b\n", False),
        ("import os\n" + TESTS, False),
        (TESTS + "\n\nB = 2\n", False),
        (TESTS + "\n\n@pytest.fixture(autouse=True)\ndef fixed():\n    return b\n", True),
        (TESTS + "\n\npytestmark = pytest.mark.skip\n", True),
        (TESTS + "\n\ndef setup_module():\n    pytest.skip()\n", True),
        (TESTS + "\n\ndef b():\n    return 1\n", True),
        (TESTS + "\n\npytest.skip(allow_module_level=True)\n", True),
        (TESTS.replace("A = 1", "A = 2"), True),
        (TESTS.replace("from a", "from c"), True),
        (TESTS.replace("return b", "return 1"), True),
        (TESTS.replace("assert A", "assert A or True"), True),
    ],
)
def test_a_test_is_altered_where_it_or_what_it_shares_is(new: str, altered: bool) -> None:
    change = Change("")
    diff._tests(change, "tests/test_a.py", TESTS, new)
    assert change.altered_tests == (["tests/test_a.py::test_x"] if altered else [])
