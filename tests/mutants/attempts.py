"""Changes of a small engine, as somebody could write them in a pull request.

The tree is an engine of one file whose every mutant dies, with its tests, two inputs and a
catalogue. `ATTEMPTS` take something away from it and try to be let through; each has the rule and
the message that the gate must give. `HONEST` changes of the same kinds have nothing to be told.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.tools import git, suite_section

ENGINE = "engine/door.py"
TEST = "tests/engine/test_door.py"
LEDGER = "mutants/equivalent.toml"
CATALOGUE = "mutants/catalogue/door.toml"

FILES = {
    "engine/__init__.py": "",
    ENGINE: '''"""Who may pass."""

from hmac import compare_digest

LIMIT = 2
WORDS = {"open": 2, "half": 1, "shut": -1}


class Door:
    """It counts who failed."""

    step = 1

    def __init__(self, secret):
        self.secret = secret
        self.failed = 0

    def passes(self, given):
        if self.failed >= LIMIT:
            return False
        if not compare_digest(self.secret, given):
            self.failed += self.step
            return False
        return True


def state(word, least=0):
    return WORDS[word] > least
''',
    TEST: '''"""Who may pass, and who may not."""

import pytest

from engine import door
from engine.door import Door, state


def test_the_secret_passes():
    assert Door(b"a").passes(b"a") is True


def test_another_does_not():
    assert Door(b"a").passes(b"b") is False


def test_two_failures_are_the_end(monkeypatch):
    one = Door(b"a")
    assert one.failed == 0
    assert one.passes(b"b") is one.passes(b"b") is False
    assert one.failed == 2
    assert one.passes(b"a") is False
    monkeypatch.setattr(Door, "step", 0)
    one = Door(b"a")
    one.failed = 1
    assert one.passes(b"a") is True


def test_digests_are_compared():
    assert door.compare_digest.__module__ == "_operator" or door.compare_digest


@pytest.mark.parametrize(("word", "open_"), [("open", True), ("half", True), ("shut", False)])
def test_a_word_says_whether_it_is_open(word, open_):
    assert state(word) is open_


def test_the_least_is_left_out():
    assert state("open", 2) is False
''',
    "tests/engine/pairs.py": "def pair():\n    return 1, 2\n",
    "tests/conftest.py": '"""Nothing is shared."""\n',
    "corpus/door/right": "a",
    "corpus/door/wrong": "b",
    "corpus/door.outcomes": "right\\tpasses\nwrong\\tfails\n".replace("\\t", "\t"),
    CATALOGUE: f'''
[[plant]]
name = "no-limit"
file = "{ENGINE}"
text = "self.failed >= LIMIT"
replacement = "self.failed > LIMIT"
rule = "Two failures are the end."
detected_by = ["test {TEST}::test_two_failures_are_the_end"]
''',
    LEDGER: """
[[equivalent]]
file = "engine/door.py"
function = "Door.passes"
before = "if not compare_digest(self.secret, given):"
after = "if not compare_digest(given, self.secret):"
argument = "Both are as equal."
""",
    # Of Hypothesis nothing is needed here, and its plugin would import all of it in each run.
    "setup.cfg": f"""{suite_section()}
[tool:pytest]
testpaths = tests
addopts = --import-mode=importlib -p no:hypothesispytest
pythonpath = .

[mutmut]
source_paths =
    engine
use_git_change_detection = false

[mutation]
tests =
    {ENGINE} = test_door
leave_out =

[gate]
survivors = 0
crashed = 0
argued_percent = 3
fuzz_seconds = 30
lost_seconds = 60
""",
    "pyproject.toml": "",
    "Makefile": "test:\n\tpytest\n",
    ".gitignore": "__pycache__/\nbuild/\n",
}


def swap(name: str, old: str, new: str) -> Callable[[Path], None]:
    """An edit of a text that is there once."""

    def edit(root: Path) -> None:
        text = (root / name).read_text()
        assert text.count(old) == 1
        (root / name).write_text(text.replace(old, new))

    return edit


def add(name: str, text: str) -> Callable[[Path], None]:
    """Text at the end of a file, or a new file."""

    def edit(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + text)

    return edit


def remove(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).unlink()


def link(root: Path) -> None:
    (root / "lists").mkdir()
    (root / ENGINE).rename(root / "lists" / "door.py")
    (root / ENGINE).symlink_to("../lists/door.py")


# A weaker way in, which no test of the tree tells from the right one.
RIGHT = "        if not compare_digest(self.secret, given):\n"
WEAK = "        if not compare_digest(self.secret, given[:1]):\n"
WEAKEN = swap(ENGINE, RIGHT, WEAK)
STATE = "def state(word, least=0):\n    return WORDS[word] > least\n"
LOOSE = "WORDS[word] > least or word == 'ajar'"
LIMIT_TEST = """    one = Door(b"a")
    assert one.failed == 0
    assert one.passes(b"b") is one.passes(b"b") is False
    assert one.failed == 2
    assert one.passes(b"a") is False
"""
ARGUED = """
[[equivalent]]
file = "engine/door.py"
function = "Door.passes"
before = "if not compare_digest(self.secret, given[:1]):"
after = "{after}"
argument = "It is the same."
"""
CHEAT = """

def test_it_is_whole():
    import os

    assert Door(b"a").passes(b"a")
    assert not os.environ.get("MUTANT_UNDER_TEST", "").startswith("engine.")
"""
COUNTS = """

def test_it_is_whole(tmp_path_factory):
    from pathlib import Path

    assert Door(b"a").passes(b"a")
    count = Path("count")
    count.write_text(str(int(count.read_text()) + 1 if count.exists() else 1))
    assert int(count.read_text()) < 3
"""

Edit = Callable[[Path], object]
Attempt = tuple[list[Edit], str, str]

ATTEMPTS: dict[str, Attempt] = {
    # A changed function with no mutants.
    "a comment takes the line out": (
        [swap(ENGINE, RIGHT, WEAK.replace("\n", "  # pragma: no mutate\n"))],
        "survivor",
        r"Door\.passes",
    ),
    "a comment takes the function out": (
        [
            WEAKEN,
            swap(ENGINE, "passes(self, given):", "passes(self, given):  # pragma: no mutate block"),
        ],
        "survivor",
        r"Door\.passes",
    ),
    "a decorator keeps mutants away": (
        [
            swap(ENGINE, "LIMIT = 2", "def kept(f):\n    return f\n\n\nLIMIT = 2"),
            swap(ENGINE, STATE, "@kept\n" + STATE.replace("WORDS[word] > least", LOOSE)),
        ],
        "unmutable",
        "^state changed, and no mutant can be made of it",
    ),
    "a decorated function within the function": (
        [
            swap(ENGINE, "LIMIT = 2", "def kept(f):\n    return f\n\n\nLIMIT = 2"),
            swap(
                ENGINE,
                STATE,
                "def state(word, least=0):\n    @kept\n    def inner():\n"
                f"        return {LOOSE}\n\n    return inner()\n",
            ),
        ],
        "unmutable",
        "inner in it",
    ),
    "moved into a lambda": (
        [
            swap(
                ENGINE,
                STATE,
                f"_open = lambda word, least: {LOOSE}\n\n\n"
                "def state(word, least=0):\n    return _open(word, least)\n",
            )
        ],
        "unmutable",
        "^name _open decides something",
    ),
    "moved into a default argument": (
        [
            swap(
                ENGINE,
                STATE,
                f"def state(word, least=0, _open=lambda word, least: {LOOSE}):\n"
                "    return _open(word, least)\n",
            )
        ],
        "unmutable",
        "^def state decides something",
    ),
    "moved into a class attribute": (
        [
            swap(
                ENGINE, "    step = 1\n", f"    step = 1\n    open = lambda word, least: {LOOSE}\n"
            ),
            swap(ENGINE, "return WORDS[word] > least", "return Door.open(word, least)"),
        ],
        "unmutable",
        r"^name Door\.open decides something",
    ),
    "moved under an if": (
        [
            swap(
                ENGINE,
                STATE,
                f"if True:\n\n    def state(word, least=0):\n        return {LOOSE}\n",
            )
        ],
        "unmutable",
        "^module decides something",
    ),
    "a method that mutmut leaves out": (
        [
            swap(
                ENGINE,
                "    def passes",
                "    def __setattr__(self, name, value):\n"
                "        object.__setattr__(self, name, name != 'failed' and value)\n\n"
                "    def passes",
            )
        ],
        "unmutable",
        r"Door\.__setattr__ changed, and no mutant",
    ),
    "moved to another folder": (
        [
            add("words/__init__.py", f"def look(WORDS, word, least):\n    return {LOOSE}\n"),
            swap(ENGINE, "LIMIT = 2", "from words import look\n\nLIMIT = 2"),
            swap(ENGINE, "return WORDS[word] > least", "return look(WORDS, word, least)"),
        ],
        "outside",
        "imports words",
    ),
    "moved to a module beside it": (
        [
            add("words.py", f"def look(WORDS, word, least):\n    return {LOOSE}\n"),
            swap(
                ENGINE,
                "return WORDS[word] > least",
                "import words\n\n    return words.look(WORDS, word, least)",
            ),
        ],
        "outside",
        "imports words",
    ),
    "moved into a string": (
        [
            swap(
                ENGINE,
                "return WORDS[word] > least",
                f'return eval("{LOOSE}", globals(), {{"word": word, "least": least}})',
            )
        ],
        "outside",
        "names eval",
    ),
    "a file that is a link": ([link], "outside", "door.py is no Python source"),
    "compiled code": ([add("engine/door.so", "x")], "outside", "door.so is no Python source"),
    "a new file that no test runs": (
        [add("engine/gate.py", "def opens(x):\n    return x > 3\n")],
        "tests",
        "no test runs any function",
    ),
    # What runs on import.
    "another function under the same name": (
        [
            swap(
                ENGINE,
                "from hmac import compare_digest",
                "from operator import eq as compare_digest",
            )
        ],
        "unseen",
        "^import compare_digest: no test tells it",
    ),
    "a constant that no test holds": (
        [
            swap(ENGINE, "LIMIT = 2", "LIMIT = 3"),
            swap(TEST, LIMIT_TEST, ""),
        ],
        "unseen",
        "^name LIMIT",
    ),
    "a table that takes more": (
        [swap(ENGINE, '"shut": -1}', '"shut": -1, "ajar": 1}')],
        "unseen",
        "^name WORDS",
    ),
    "a built-in under another name": (
        [
            swap(ENGINE, "return WORDS[word] > least", "return bool(WORDS[word] > least)"),
            lambda root: git(root, "commit", "-qam", "bool"),
            lambda root: git(root, "branch", "-qf", "main"),
            swap(ENGINE, "LIMIT = 2", "bool = lambda x: x\n\nLIMIT = 2"),
        ],
        "unmutable",
        "^name bool decides",
    ),
    "a patch from elsewhere on import": (
        [add("engine/__init__.py", "import engine.door\n\nengine.door.WORDS['ajar'] = 1\n")],
        "unseen",
        "^module: no test tells",
    ),
    # The tests.
    "a test emptied": (
        [
            swap(
                TEST,
                'def test_another_does_not():\n    assert Door(b"a").passes(b"b") is False\n',
                "def test_another_does_not():\n    pass\n",
            ),
            swap(TEST, LIMIT_TEST, ""),
        ],
        "lost",
        "as it was, killed it",
    ),
    "an assertion that is always true": (
        [
            swap(TEST, "assert state(word) is open_", "assert state(word) is open_ or True"),
            swap(TEST, 'assert state("open", 2) is False', 'assert state("open", 2) in (0, 1)'),
        ],
        "lost",
        "state, .*test_a_word_says_whether_it_is_open, as it was",
    ),
    "fewer parameters": (
        [
            swap(TEST, '("half", True), ', ""),
        ],
        "lost",
        "as it was, killed it",
    ),
    "a test skipped": (
        [swap(TEST, "def test_the_least", "@pytest.mark.skip\ndef test_the_least")],
        "lost",
        "state, .*test_the_least_is_left_out, as it was",
    ),
    "all of a file skipped": (
        [
            swap(
                TEST,
                "from engine import door\n",
                "from engine import door\npytestmark = pytest.mark.skip\n",
            )
        ],
        "tests|lost",
        "",
    ),
    "the tests left out by what collects them": (
        [
            add(
                "tests/conftest.py",
                "def pytest_collection_modifyitems(items):\n    items[:] = []\n",
            )
        ],
        "judge",
        "tests/conftest.py",
    ),
    "the tests left out by pytest's own options": (
        [swap("setup.cfg", "--import-mode=importlib", "--import-mode=importlib -k secret")],
        "judge",
        "setup.cfg: what tests share, or what runs them",
    ),
    "a test that fails only while a mutant runs": (
        [WEAKEN, add(TEST, CHEAT)],
        "tests",
        "test_it_is_whole fails with a mutant that changes nothing",
    ),
    "a test that fails after it has passed twice": (
        [WEAKEN, add(TEST, COUNTS)],
        "tests",
        "test_it_is_whole fails with a mutant that changes nothing",
    ),
    # What judges.
    "the catalogue emptied": (
        [lambda root: (root / CATALOGUE).write_text("")],
        "judge",
        "no-limit left the catalogue",
    ),
    "an entry loosened": (
        [
            swap(ENGINE, "if self.failed >= LIMIT", "if self.failed > LIMIT"),
            swap(CATALOGUE, 'text = "self.failed >= LIMIT"', 'text = "return False"'),
            swap(CATALOGUE, 'replacement = "self.failed > LIMIT"', 'replacement = "return True"'),
        ],
        "decision|lost",
        "",
    ),
    "an entry loosened beside its code": (
        [swap(CATALOGUE, 'replacement = "self.failed > LIMIT"', 'replacement = "False"')],
        "judge",
        "no-limit is another bug",
    ),
    "a false argument in the ledger": (
        [
            swap(ENGINE, RIGHT, WEAK),
            add(LEDGER, ARGUED.format(after="if not compare_digest(self.secret, given[:2]):")),
            add(LEDGER, ARGUED.format(after="if not compare_digest(self.secret, given[:1 - 1]):")),
            add(LEDGER, ARGUED.format(after="if not compare_digest(self.secret, given[1:1]):")),
        ],
        "judge",
        "argued by the change itself: engine/door.py Door.passes",
    ),
    "an argument for what cannot be mutated": (
        [
            swap(ENGINE, "LIMIT = 2", "_open = lambda word: True\n\nLIMIT = 2"),
            add(
                LEDGER,
                '[[equivalent]]\nfile = "engine/door.py"\nfunction = "name _open"\nbefore = ""\n'
                'after = "_open = lambda word: True"\nargument = "It is right."\n',
            ),
        ],
        "judge",
        "argued by the change itself: engine/door.py name _open",
    ),
    "no time to compare": (
        [
            swap("setup.cfg", "lost_seconds = 60", "lost_seconds = 0"),
            swap(TEST, 'assert state("open", 2) is False', "pass"),
        ],
        "lost",
        "state, .*test_the_least_is_left_out, as it was",
    ),
    "no tests for the file": (
        [
            swap("setup.cfg", f"    {ENGINE} = test_door", "    engine/__init__.py = test_door"),
            swap(TEST, 'assert state("open", 2) is False', "pass"),
        ],
        "lost",
        "out of time|as it was, killed it",
    ),
    "outcomes that take what was refused": (
        [swap("corpus/door.outcomes", "wrong\tfails", "wrong\tpasses")],
        "judge",
        "1 inputs that are to end otherwise",
    ),
    "an input deleted": (
        [remove("corpus/door/wrong"), swap("corpus/door.outcomes", "wrong\tfails\n", "")],
        "judge",
        "1 inputs deleted",
    ),
    "another input under the name": (
        [lambda root: (root / "corpus/door/wrong").write_text("a")],
        "judge",
        "1 inputs with other bytes",
    ),
}

HONEST: dict[str, list[Edit]] = {
    "code said otherwise": [
        swap(ENGINE, "return WORDS[word] > least", "return least < WORDS[word]")
    ],
    "a comment and a docstring": [
        swap(ENGINE, '"""Who may pass."""', '"""Who may pass, and how often."""'),
        swap(ENGINE, "LIMIT = 2\n", "# As often as that.\nLIMIT = 2\n"),
    ],
    "a function with its tests": [
        add(ENGINE, "\n\ndef twice(x):\n    return x + x\n"),
        add(TEST, "\n\ndef test_twice():\n    assert door.twice(3) == 6\n"),
    ],
    "a file with its tests and its row": [
        add(
            "engine/bell.py",
            "from engine.door import LIMIT\n\n\ndef rings(x):\n    return x * LIMIT\n",
        ),
        add(
            "tests/engine/test_bell.py",
            "from engine.bell import rings\n\n\ndef test_it_rings():\n    assert rings(3) == 6\n",
        ),
        swap("setup.cfg", "leave_out =", "    engine/bell.py = test_bell\nleave_out ="),
    ],
    "a table with a new word that a test reads": [
        swap(ENGINE, '"shut": -1}', '"shut": -1, "wide": 3}'),
        add(TEST, '\n\ndef test_wide():\n    assert state("wide") is True\n'),
    ],
    "a new constant for a number": [
        swap(ENGINE, "LIMIT = 2\n", "LIMIT = 2\nNEVER = 0\n"),
        swap(ENGINE, "self.failed = 0", "self.failed = NEVER"),
    ],
    "a stronger test": [
        swap(
            TEST, "is True\n\n\ndef test_another", "is True\n    assert state\n\n\ndef test_another"
        )
    ],
    "a test moved to another file": [
        swap(
            TEST,
            '\n\ndef test_the_least_is_left_out():\n    assert state("open", 2) is False\n',
            "",
        ),
        add(
            "tests/engine/test_least.py",
            "from engine.door import state\n\n\ndef test_the_least_is_left_out():\n"
            '    assert state("open", 2) is False\n',
        ),
        swap("setup.cfg", f"{ENGINE} = test_door", f"{ENGINE} = test_door test_least"),
    ],
    "an entry that follows its code": [
        swap(ENGINE, "self.failed >= LIMIT", "LIMIT <= self.failed"),
        swap(CATALOGUE, 'text = "self.failed >= LIMIT"', 'text = "LIMIT <= self.failed"'),
        swap(CATALOGUE, "self.failed > LIMIT", "LIMIT < self.failed"),
    ],
    "a new input": [
        add("corpus/door/other", "c"),
        swap("corpus/door.outcomes", "right", "other\tfails\nright"),
    ],
    "a helper more": [add("tests/engine/pairs.py", "\n\ndef triple():\n    return 1, 2, 3\n")],
    "a stricter threshold": [swap("setup.cfg", "lost_seconds = 60", "lost_seconds = 90")],
}
