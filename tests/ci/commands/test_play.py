"""`residue play`: against servers that are honest, that are not, and that are none."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509

from ci.command import main
from ci.commands import play, play_identities
from ci.exits import Exit
from ci.process import ROOT
from peers.liar.suites import SUITES
from tests.ci import strange_servers as strange
from tests.ci.strange_servers import Tiny
from tests.servers.running import Server
from tests.tools import PATIENCE

QUICK = ["--silence", "0.1", "--seconds", "60"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identities")
    assert main(["play", "--make-identities", str(folder / "made")]) == Exit.CLEAN
    return folder / "made"


def played(capsys, server: str, *options: str) -> tuple[int, list[dict[str, object]]]:
    """The exit code, and what is said as JSON."""
    capsys.readouterr()
    code = main(["play", server, "--json", "-", *QUICK, *options])
    return code, json.loads(capsys.readouterr().out)


def words(data: list[dict[str, object]]) -> set[object]:
    return {one["what"] for one in data}


def test_an_honest_server_is_right_and_exit_0(capsys, files):
    with Tiny(strange.honest) as server:
        code, data = played(capsys, server.address, "--only", "h*", "--ca", str(files / "ca.pem"))
    assert (code, words(data)) == (Exit.CLEAN, {"right"})
    assert len(data) > 5 and not any(one["broken"] for one in data)


@pytest.mark.parametrize(
    "behaviour, what",
    [
        (strange.hangs, {"hung"}),
        (strange.resets, {"reset"}),
        (strange.closes, {"another outcome"}),
        (strange.alerts, {"another outcome"}),
        (strange.mumbles, {"fault"}),
        (strange.babbles, {"fault"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_a_strange_server_does_is_named_and_exit_1(behaviour, what, capsys):
    with Tiny(behaviour) as server:
        code, data = played(capsys, server.address, "--only", "hello-cut-*")
    assert (code, words(data)) == (Exit.FOUND, what)
    assert all(one["broken"] and one["detail"] for one in data)


def test_another_alert_for_the_same_refusal_breaks_no_rule(capsys):
    with Tiny(strange.alerts) as server:
        code, data = played(capsys, server.address, "--only", "two-host-names")
    assert (code, words(data)) == (Exit.CLEAN, {"another alert"})
    assert "saw alert 40" in str(data[0]["detail"])


@pytest.mark.parametrize("seed", range(4))
def test_damaged_answers_raise_nothing(seed, capsys):
    with Tiny(strange.stutters(seed)) as server:
        code, data = played(capsys, server.address, "--only", "h*", "--silence", "0.02")
    assert code in (Exit.CLEAN, Exit.FOUND)
    assert words(data) <= set(play.WAYS) - {"not reached"}


def test_a_script_that_the_answer_leads_astray_is_an_outcome(capsys, monkeypatch):
    def astray(conversation, server):
        raise AttributeError("the server's answer has no such thing")

    monkeypatch.setattr("peers.liar.live.play", astray)
    with Tiny(strange.hangs) as server:
        _, data = played(capsys, server.address, "--only", "hello-cut-at-1")
    assert words(data) == {"another outcome"} and "AttributeError" in str(data[0]["detail"])


def test_a_slow_server_is_given_more_time(capsys):
    def slow(plain):
        strange.honest(plain, lambda said: (time.sleep(0.2), said)[1])

    with Tiny(slow) as server:
        code, data = played(capsys, server.address, "--only", "hello-cut-at-1")
    assert (code, words(data)) == (Exit.CLEAN, {"right"})


def test_no_server_is_exit_3(capsys):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert main(["play", f"127.0.0.1:{port}"]) == Exit.UNTRUSTED
    assert "is not reached" in capsys.readouterr().err


def test_a_run_that_lost_its_server_is_not_trusted(capsys, monkeypatch):
    monkeypatch.setattr(play, "_reach", lambda target: None)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    code = main(["play", address, "--json", "-", *QUICK, "--only", "hello-cut-*"])
    out, err = capsys.readouterr()
    assert code == Exit.UNTRUSTED and "could not be reached for" in err
    assert words(json.loads(out)) == {"not reached"}
    assert not any(one["broken"] for one in json.loads(out))


def test_the_time_bounds_the_run(capsys):
    begun = time.monotonic()
    with Tiny(strange.hangs) as server:
        code, data = played(capsys, server.address, "--only", "h*", "--seconds", "0.001")
    assert time.monotonic() - begun < 20
    assert code in (Exit.UNTRUSTED, Exit.FOUND) and "not played" in words(data)
    assert play.TIME_IS_UP in {one["detail"] for one in data}


def test_nothing_that_can_be_played_is_exit_3(capsys):
    with Tiny(strange.hangs) as server:
        assert main(["play", server.address, "--only", "identity-taken", *QUICK]) == Exit.UNTRUSTED
    assert "no conversation could be played" in capsys.readouterr().err


def test_an_interruption_tells_what_was_played_and_is_130():
    with Tiny(strange.hangs) as server:
        command = [sys.executable, "-m", "ci", "play", server.address, "--jobs", "1"]
        with subprocess.Popen(
            [*command, "--silence", "0.05", "--json", "-"], cwd=ROOT, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            until = time.monotonic() + 30
            while server.count < 5 and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == Exit.INTERRUPTED and err.endswith(b"residue: interrupted\n")
    assert 0 < len(json.loads(out)) < len(SUITES["handshake"].conversations)


@pytest.mark.parametrize(
    "argv, says",
    [
        ([], "which server?"),
        (["127.0.0.1"], "is not HOST:PORT"),
        (["127.0.0.1:0"], "is not HOST:PORT"),
        (["127.0.0.1:65536"], "is not HOST:PORT"),
        (["127.0.0.1:٣"], "is not HOST:PORT"),
        (["192.0.2.1:443"], "--remote says that you may"),
        (["[2001:db8::1]:443"], "--remote says that you may"),
        (["127.0.0.1:1", "--jobs", "0"], "--jobs: '0' is not a whole number"),
        (["127.0.0.1:1", "--tickets", "-1"], "--tickets is 0 or more"),
        (["127.0.0.1:1", "--only", "nobody"], "no conversation of suite handshake is named"),
        (["127.0.0.1:1", "--ca", "no/such/file"], "is no file of PEM certificates"),
        (["127.0.0.1:1", "--ca", "setup.cfg"], "is no file of PEM certificates"),
        (["127.0.0.1:1", "--client-cert", "{ca}", "{ca}"], "is no file of an unencrypted PEM key"),
        (
            ["127.0.0.1:1", "--suite", "clients", "--client-cert", "{ca}", "{ca}"],
            "says of each client what it presents",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(argv, says, files, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    named = [word.format(ca=files / "ca.pem") for word in argv]
    assert main(["play", *named]) == Exit.USAGE
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1 and err.startswith("residue: ")


@pytest.mark.parametrize("name", ["--seconds", "--silence"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
def test_a_number_of_seconds_is_one(name, value, capsys):
    assert main(["play", "127.0.0.1:1", name, value]) == Exit.USAGE
    assert name in capsys.readouterr().err


def test_identities_fit_each_other_and_are_written_once(files, capsys):
    assert {path.name for path in files.iterdir()} >= {"chain.pem", "key.pem", "ca.pem"}
    mask = os.umask(0)
    os.umask(mask)
    for path in files.iterdir():
        secret = path.name.endswith("key.pem")
        assert path.stat().st_mode & 0o777 == (0o600 if secret else 0o644 & ~mask)
    root = x509.load_pem_x509_certificate((files / "ca.pem").read_bytes())
    x509.load_pem_x509_certificate((files / "chain.pem").read_bytes()).verify_directly_issued_by(
        root
    )
    clients = x509.load_pem_x509_certificate((files / "client-ca.pem").read_bytes())
    for kind in play_identities.CLIENT_KINDS:
        play._credential(str(files / f"client-{kind}.pem"), str(files / f"client-{kind}-key.pem"))
        leaf = x509.load_pem_x509_certificate((files / f"client-{kind}.pem").read_bytes())
        leaf.verify_directly_issued_by(clients)
    before = {path: path.read_bytes() for path in files.iterdir()}
    assert main(["play", "--make-identities", str(files)]) == Exit.USAGE
    assert "already" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_whoever_has_identities_is_told_how_a_server_is_started_with_them(tmp_path, capsys):
    """The commands that are printed, with a port that is free, as a shell would take them."""
    folder = tmp_path / "my identities"
    assert main(["play", "--make-identities", str(folder)]) == Exit.CLEAN
    serve, client = (
        shlex.split(line) for line in capsys.readouterr().out.splitlines() if "  residue" in line
    )
    assert serve[:5] == ["residue", "serve", "echo", "--port", "4433"] and serve[5] == "--dir"
    with Server(Path(serve[6]), *serve[7:]) as server:
        assert client[:3] == ["residue", "play", "127.0.0.1:4433"]
        assert main(["play", server.address, *client[3:], "--only", "hello-cut-*"]) == Exit.CLEAN


def test_a_folder_that_cannot_be_made_is_exit_2(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["play", "--make-identities", str(tmp_path / "file")]) == Exit.USAGE
    assert "cannot be made" in capsys.readouterr().err


def test_the_table_has_broken_rules_first_and_the_counts_last(capsys):
    with Tiny(strange.hangs) as server:
        assert main(["play", server.address, "--only", "h*", *QUICK]) == Exit.FOUND
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rules broken:" and "other differences:" in lines
    assert lines[-1].endswith("break a rule of the RFC") and " hung" in lines[-1]


ECHO = {
    "handshake": ((), (), "[a-d]*"),
    "tickets": (("--tickets", "2"), (), "[ab]*"),
    "optional": (("--client-ca", "client-ca.pem"), ("--client-auth", "optional"), "*"),
    "required": (
        ("--client-ca", "client-ca.pem", "--require-client-cert"),
        ("--client-auth", "required"),
        "k*",
    ),
    "certificate": (
        ("--client-ca", "client-ca.pem", "--require-client-cert"),
        ("--client-cert", "{files}/client-rsa2048.pem", "{files}/client-rsa2048-key.pem"),
        "hello-cut-*",
    ),
    "protocols": (("--alpn", "h2,echo"), ("--alpn", "h2,echo"), "*"),
}


@pytest.mark.parametrize("how", ECHO)
def test_the_echo_server_is_right_in_every_suite(how, files, capsys):
    options, ours, only = ECHO[how]
    suite = "clients" if how in ("optional", "required") else "handshake"
    suite = how if how == "tickets" else suite
    named = [word.format(files=files) for word in ours]
    with Server(files, *options) as server:
        # A busy machine is a slow server, and silence would be taken for an end.
        code, data = played(
            capsys, server.address, "--suite", suite, "--only", only, *named, "--silence", "0.2",
            "--ca", str(files / "ca.pem"),
        )  # fmt: skip
    assert [one for one in data if one["what"] not in ("right", "not played")] == []
    assert code == Exit.CLEAN
    assert sum(one["what"] == "right" for one in data) >= 4
