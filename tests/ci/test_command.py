"""The command line: what it lists, how it ends."""

import configparser
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from ci import command, extras
from ci.command import COMMANDS, main
from ci.commands import doctor
from ci.exits import Exit, Interrupted, Untrusted, UsageError
from ci.process import ROOT


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name.split(' ')[0]} " in out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_exists_and_its_help_has_an_example(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*name.split(" "), "--help"])
    assert ended.value.code == 0
    assert f"example: {COMMANDS[name].example}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "argv, says",
    [
        ([], "no command"),
        (["frobnicate"], "there is no command 'frobnicate'"),
        (["bench"], "bench what?"),
        (["bench", "nothing"], "there is no command 'bench nothing'"),
        (["fuzz", "nobody", "--seconds", "1"], "there is no harness 'nobody'"),
        (["campaign", "--harness", "nobody"], "there is no harness 'nobody'"),
        (["campaign", "--out", "corpus/hello"], "committed corpus"),
        (["campaign", "--weight", "nobody=2"], "there is no harness 'nobody'"),
        (["campaign", "--harness", "hello", "--value-profile", "pool"], "'pool' is none of"),
        (["campaign", "--seeds", "no/such"], "no/such is not a folder"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(argv, says, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(argv) == Exit.USAGE
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1 and err.startswith("residue: ")


@pytest.mark.parametrize(
    "argv",
    [
        ["fuzz"],
        ["fuzz", "hello", "--second", "3"],
        ["campaign", "--seconds", "0"],
        ["campaign", "--seconds", "many"],
        ["campaign", "--jobs", "-1"],
        ["campaign", "--weight", "hello"],
        ["campaign", "--weight", "hello=nan"],
        ["promote"],
        ["doctor", "--loud"],
    ],
)
def test_a_wrong_option_is_exit_2(argv, capsys):
    assert main(argv) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("residue: ") and said.err.count("\n") == 1


@pytest.mark.parametrize(
    "raised, code",
    [
        (UsageError("no"), 2),
        (Untrusted("no"), 3),
        (Interrupted("SIGTERM"), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_how_a_command_ends_is_its_exit_code(raised, code, monkeypatch, capsys):
    def run(args):
        raise raised

    monkeypatch.setattr(doctor, "run", run)
    assert main(["doctor"]) == code
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_exit_130(number, monkeypatch):
    monkeypatch.setattr(doctor, "run", lambda args: os.kill(os.getpid(), number) or 0)
    before = signal.getsignal(number)
    assert main(["doctor"]) == Exit.INTERRUPTED
    assert signal.getsignal(number) == before


def test_a_reader_that_goes_away_is_no_traceback():
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\nfrom ci.command import main\nsys.exit(main())",
            "--help",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as child:
        child.stdout.close()
        err = child.stderr.read()
    assert b"Traceback" not in err and child.returncode in (0, Exit.UNTRUSTED)


def test_the_module_and_the_command_are_the_same():
    said = subprocess.run(
        [sys.executable, "-m", "ci", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert said.stdout == command.usage()


def test_every_exit_code_has_its_line_in_the_docs():
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert listed == {int(code) for code in Exit}


def test_the_doctor_says_what_is_here(capsys):
    assert main(["doctor", "--json", "-"]) == 0
    facts = {fact["what"]: fact for fact in json.loads(capsys.readouterr().out)}
    assert facts["cryptography"]["ok"] and facts["checkout"]["value"] == "whole"
    assert all(fact["off"] for fact in facts.values() if not fact["ok"])


def test_the_doctor_says_what_a_missing_package_switches_off(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda package: None)
    assert main(["doctor"]) == Exit.UNTRUSTED
    said = capsys.readouterr()
    assert "switches off: residue fuzz, residue campaign: pip install -e '.[fuzz]'" in said.out
    assert "cryptography" in said.err


def test_the_doctor_names_git_and_every_package_of_every_extra(capsys):
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = {
        (re.split(r"[^\w-]", line)[0], extra)
        for extra, lines in config["options.extras_require"].items()
        for line in filter(None, lines.splitlines())
    }
    named = {(package.name, package.extra) for package in extras.PACKAGES}
    # Coverage is of two extras, and one of them brings it. The last is all the others.
    assert listed - {("coverage", "test"), ("residue-suite", "suite")} == named
    whole = re.fullmatch(r"\s*residue-suite\[(.*)\]", config["options.extras_require"]["suite"])
    assert whole is not None
    assert {*whole[1].split(","), "suite"} == set(config["options.extras_require"])
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for name in ("git", *(package.name for package in extras.PACKAGES)):
        assert re.search(rf"^(ok|MISSING) +{re.escape(name)} ", said, re.MULTILINE)


def test_what_is_imported_of_a_package_is_called_so():
    """What the tests' environment has, which is all of it; zizmor is a command and no module."""
    modules = {package.module for package in extras.PACKAGES} - {"zizmor"}
    assert not {module for module in modules if not extras.here(module)}


def test_a_tool_that_is_missing_is_told_with_what_it_switches_off(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["doctor"]) == 0
    assert re.search(r"MISSING +git +missing +switches off: residue gate", capsys.readouterr().out)
