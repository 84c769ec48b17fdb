"""What every command has in common: its help, its wrong options, its JSON, its version.

In this process, command after command: a habit that one of them has not is seen by its name.
"""

import io
import json
import os
import re
import shlex
from collections.abc import Iterator

import pytest

import engine
from ci import arguments, command, results
from ci.command import COMMANDS, ENDS, GROUPS, WIDTH, main, parser_of
from ci.exits import Exit
from ci.process import ROOT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# A command that has no result but its own end.
WITHOUT_JSON = {"serve"}
# What has no work to do at once, or shows none.
WITHOUT_JOBS = {
    "replay", "triage", "minimise", "promote", "report", "doctor", "serve",
    "bench handshake", "bench records", "bench memory", "bench secrets",
}  # fmt: skip


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*name.split(" "), "--help"])
    assert ended.value.code == Exit.CLEAN
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_text_has_an_example_its_exit_codes_and_no_wide_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = help_of(name, capsys)
    assert f"\nexample:\n  {COMMANDS[name].example}\n" in said
    assert shlex.split(COMMANDS[name].example)[: 1 + name.count(" ") + 1] == [
        "residue",
        *name.split(" "),
    ]
    for code, line in {**ENDS, **COMMANDS[name].ends}.items():
        assert (f"\n  {code:<3}  {line}\n" in said) == bool(line)
    assert max(map(len, said.splitlines())) <= WIDTH


@pytest.mark.parametrize("words", [["--help"], *([group, "--help"] for group in GROUPS)])
def test_the_lists_of_commands_have_no_wide_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == Exit.CLEAN
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= WIDTH and "\nexample: residue " in said


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_is_nearly_one_is_exit_2_and_one_line_with_its_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split(" "), "--verbsoe"]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "residue: there is no option --verbsoe; did you mean --verbose?\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_is_like_none_is_exit_2_and_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--xyzzy", "--xyzzy=3"):
        assert main([*name.split(" "), option]) == Exit.USAGE
        said = capsys.readouterr()
        assert said.out == "" and said.err == (
            f"residue: there is no option --xyzzy; see residue {name} --help\n"
        )


RENAMED = [(name, old) for name, known in COMMANDS.items() for old in known.renamed]


@pytest.mark.parametrize("name, old", RENAMED)
def test_an_option_that_was_renamed_says_what_it_is_called_now(
    name: str, old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = COMMANDS[name].renamed[old]
    assert main([*name.split(" "), old, "3"]) == Exit.USAGE
    assert capsys.readouterr().err == f"residue: {old} is called {new} now\n"
    said = help_of(name, capsys)
    assert re.search(rf"^  {new}\b", said, re.MULTILINE) and f"{old} " not in said


def test_what_was_renamed_is_known() -> None:
    assert {old for _, old in RENAMED} == {"--take", "--by", "--quiet"}


@pytest.mark.parametrize(
    "words, says",
    [
        (["campain"], "there is no command 'campain'; did you mean campaign?"),
        (["benhc"], "there is no command 'benhc'; did you mean bench?"),
        (["bench", "record"], "there is no command 'bench record'; did you mean bench records?"),
        (["help", "replya"], "there is no command 'replya'; did you mean replay?"),
        (["fuzz", "helo"], "there is no harness 'helo'; did you mean hello?"),
        (["campaign", "--harness", "pol"], "there is no harness 'pol'; did you mean pool?"),
        (["replay", "sever"], "there is no harness 'sever'; did you mean server?"),
        (["replay", "xyzzy"], "there is no harness 'xyzzy'; choose from hello, server"),
        (["campaign", "--weight", "helo=2"], "there is no harness 'helo'; did you mean hello?"),
        (["inject", "--kind", "memry"], "--kind: there is no 'memry'; did you mean memory?"),
        (["inject", "feed-helo/served"], "did you mean feed-hello/served?"),
        (["play", "--suite", "ticket"], "--suite: there is no 'ticket'; did you mean tickets?"),
        (["serve", "ecko"], "there is no 'ecko'; did you mean echo?"),
        (["mutate", "engine/pol.py"], "there is no file engine/pol.py; did you mean engine/pool"),
        (["mutate", "engine/x509/dr.py"], "did you mean engine/x509/der.py?"),
        (["mutate", "engine/nosuch.py"], "there is no file engine/nosuch.py\n"),
        (["mutate", "engine/pool.py", "--function", "Pool.leese"], "did you mean Pool.lease?"),
        (["mutate", "ci/output.py"], "ci/output.py: only files of engine/ are mutated"),
    ],
)
def test_a_name_that_is_nearly_one_is_told_which(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == "" and says in said.err and said.err.count("\n") == 1


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_JSON])
def test_json_on_standard_output_is_alone_there(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a command prints besides: that is seen to for all of them at once."""
    module = __import__(COMMANDS[name].module, fromlist=["run"])

    def run(args: object) -> int:
        print("for a person")
        assert isinstance(args.json, results.Json)  # type: ignore[attr-defined]
        args.json.write({"a": [1, 2]})  # type: ignore[attr-defined]
        print("and more")
        return 0

    monkeypatch.setattr(module, "run", run)
    arguments = {"fuzz": ["hello"], "minimise": ["x"], "promote": ["x"], "report": ["x"]}
    words = [*name.split(" "), *arguments.get(name, []), "--json", "-"]
    words += ["--since", "HEAD"] if name == "gate" else []
    assert main(words) == Exit.CLEAN
    assert json.loads(capsys.readouterr().out) == {"a": [1, 2]}


def test_without_json_a_person_reads_and_with_a_file_both(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "facts.json"  # type: ignore[operator]
    assert main(["doctor", "--json", str(file)]) == main(["doctor"]) == Exit.CLEAN
    said = capsys.readouterr().out
    assert said.count("checkout") == 2 and "[" not in said.split()[0]
    assert {fact["what"] for fact in json.loads(file.read_text())} >= {"python", "checkout"}


REAL = (
    "doctor",
    "replay hello corpus/hello/handmade-alpn corpus/hello/handmade-cut",
    "inject feed-hello/served --kind memory --sample 3 --seed 1 --jobs 1",
    "inject --list",
)


@pytest.mark.parametrize("line", REAL)
def test_the_json_of_a_command_is_all_that_it_prints(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = line.split()
    if words[0] == "inject" and "--list" not in words:
        words += ["--out", str(tmp_path / "out")]  # type: ignore[operator]
    assert main([*words, "--json", "-"]) == Exit.CLEAN
    assert json.loads(capsys.readouterr().out)


def options_of(name: str) -> Iterator[tuple[list[str], object]]:
    parser, _ = parser_of(name)
    for action in parser._actions:
        yield list(action.option_strings), action


@pytest.mark.parametrize("name", COMMANDS)
def test_what_commands_share_is_called_the_same_in_each(name: str) -> None:
    had = {one for strings, _ in options_of(name) for one in strings}
    assert {"-v", "--verbose"} <= had
    assert ({"-j", "--jobs"} <= had) != (name in WITHOUT_JOBS)
    assert ("--json" in had) != (name in WITHOUT_JSON)
    assert ("-j" in had) == ("--jobs" in had) and ("-q" in had) == ("--quiet" in had)


def test_the_version_is_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == main(["-V"]) == Exit.CLEAN
    first, second = capsys.readouterr().out.splitlines()
    assert first == second and first.startswith(f"residue {engine.__version__} (Python 3.")


@pytest.mark.parametrize("name", ["replay", "bench records"])
def test_help_with_a_command_is_the_commands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["help", *name.split(" ")])
    assert capsys.readouterr().out == help_of(name, capsys)


NARROW = ("doctor", "inject --list", "replay hello corpus/hello/curl-7.88.1-openssl-3.0.19-0")


@pytest.mark.parametrize("line", NARROW)
def test_a_terminal_gets_no_line_that_it_must_break(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(line.split()) == Exit.CLEAN
    assert main(["fuzz", "hello", "--seconds", "no number at all"]) == Exit.USAGE
    said = terminal.getvalue().expandtabs()
    assert "residue: --seconds: 'no number" in said and "at all" in said
    assert max(map(len, said.splitlines())) < 80


def test_a_traceback_is_for_who_asks_and_never_for_what_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ci.commands import doctor

    monkeypatch.setattr(doctor, "examine", lambda: [1 // 0])
    assert main(["doctor"]) == Exit.UNTRUSTED
    assert "Traceback" not in capsys.readouterr().err
    assert main(["doctor", "-v"]) == Exit.UNTRUSTED
    assert capsys.readouterr().err.startswith("Traceback")
    assert main(["replay", "helo", "-v"]) == Exit.USAGE
    assert "Traceback" not in capsys.readouterr().err


def test_a_help_text_that_is_wide_or_has_no_example_would_be_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = command.Command("ci.commands.doctor", "does " * 30, "residue doctor")
    monkeypatch.setitem(COMMANDS, "doctor", wide)
    with pytest.raises(AssertionError):
        test_a_help_text_has_an_example_its_exit_codes_and_no_wide_line(
            "doctor", capsys, monkeypatch
        )


def test_every_shared_option_is_one_of_a_command() -> None:
    """What nobody has any more is taken away."""
    import inspect

    from ci import arguments as shared

    used = " ".join(
        inspect.getsource(__import__(known.module, fromlist=["run"])) for known in COMMANDS.values()
    )
    for name, function in vars(shared).items():
        if inspect.isfunction(function) and function.__module__ == arguments.__name__:
            assert re.search(rf"\barguments\.{name}\b", used), name
