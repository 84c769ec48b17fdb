"""How each foreign server is started, and ended by its process id.

Every one is given the files of `residue play --make-identities`, a free port of the loopback
interface, and a mode: how it stands towards tickets and client certificates.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from peers.liar import Client

HERE = Path(__file__).parent
#: Without tickets where the server can be without; two tickets where it can be told how many; a
#: client is asked for a certificate; it must have one.
MODES = ("plain", "tickets", "optional", "required")
ADDRESS = "127.0.0.1"
#: Seconds that the first answer may take: a virtual machine warms up.
FIRST_WORD = 20.0
NICE = ("nice", "-n", "10")


class Absent(Exception):
    """The server is not installed, or cannot be kept to the loopback interface here."""


@dataclass(frozen=True)
class Place:
    """What a server is started with; ``work`` is a folder of its own."""

    folder: Path
    work: Path
    port: int
    mode: str

    def file(self, name: str) -> str:
        """The path of a file of the folder, which the server may be told."""
        return str((self.folder / name).resolve())

    @property
    def asks(self) -> bool:
        """Whether clients are asked for a certificate."""
        return self.mode in ("optional", "required")


@dataclass(frozen=True)
class Kind:
    """``program`` must be on the path; ``version`` prints one; ``anywhere`` says that it listens
    on every interface and cannot be told otherwise."""

    program: str
    version: tuple[str, ...]
    command: Callable[[Place], list[str]]
    anywhere: bool = False


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"{ADDRESS}:{self.port}"


def _openssl(place: Place) -> list[str]:
    tickets = "2" if place.mode == "tickets" else "0"
    command = ["openssl", "s_server", "-accept", f"{ADDRESS}:{place.port}", "-tls1_3", "-quiet"]
    command += ["-cert", place.file("chain.pem"), "-key", place.file("key.pem")]
    command += ["-num_tickets", tickets]
    if place.asks:
        # A depth of 4 lets in every chain that the suite calls good. Without -verify_return_error
        # s_server goes on whatever it thinks of a certificate.
        word = "-Verify" if place.mode == "required" else "-verify"
        command += [word, "4", "-verify_return_error", "-CAfile", place.file("client-ca.pem")]
    return command


def _gnutls(place: Place) -> list[str]:
    command = ["gnutls-serv", "--echo", "--quiet", f"--port={place.port}"]
    command += ["--priority=NORMAL:-VERS-ALL:+VERS-TLS1.3"]
    command += [f"--x509certfile={place.file('chain.pem')}"]
    command += [f"--x509keyfile={place.file('key.pem')}"]
    if place.mode != "tickets":
        command += ["--noticket", "--nodb"]
    if not place.asks:
        return [*command, "--disable-client-cert"]
    command += [f"--x509cafile={place.file('client-ca.pem')}", "--verify-client-cert"]
    return [*command, "--require-client-cert"] if place.mode == "required" else command


NGINX = """\
daemon off;
master_process off;
pid {work}/pid;
error_log {work}/error.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    server {{
        listen {address}:{port} ssl;
        ssl_protocols TLSv1.3;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        ssl_session_tickets {tickets};
        ssl_session_timeout 1h;
        {verify}
        return 200;
    }}
}}
"""


def _nginx(place: Place) -> list[str]:
    word = {"optional": "optional", "required": "on"}.get(place.mode, "")
    verify = (
        f"ssl_verify_client {word}; ssl_verify_depth 4;"
        f" ssl_client_certificate {place.file('client-ca.pem')};"
    )
    config = place.work / "nginx.conf"
    config.write_text(
        NGINX.format(
            work=place.work, address=ADDRESS, port=place.port, chain=place.file("chain.pem"),
            key=place.file("key.pem"), tickets="on" if place.mode == "tickets" else "off",
            verify=verify if word else "",
        )
    )  # fmt: skip
    return ["nginx", "-p", str(place.work), "-e", str(place.work / "error.log"), "-c", str(config)]


def _arguments(place: Place) -> list[str]:
    """What our own small servers are called with."""
    return [str(place.port), str(place.folder.resolve()), place.mode]


def _node(place: Place) -> list[str]:
    return ["node", str(HERE / "server.js"), *_arguments(place)]


def _java(place: Place) -> list[str]:
    return ["java", str(HERE / "Server.java"), *_arguments(place)]


def _go(place: Place) -> list[str]:
    built = place.work / "server"
    source = str(HERE / "server.go")
    subprocess.run([*NICE, "go", "build", "-o", str(built), source], check=True, cwd=place.work)
    return [str(built), *_arguments(place)]


def _rustls(place: Place) -> list[str]:
    return [sys.executable, str(HERE / "rtls_server.py"), *_arguments(place)]


KINDS = {
    "openssl": Kind("openssl", ("openssl", "version"), _openssl),
    "gnutls": Kind("gnutls-serv", ("gnutls-serv", "--version"), _gnutls, anywhere=True),
    "nginx": Kind("nginx", ("nginx", "-V"), _nginx),
    "node": Kind("node", ("node", "-p", "process.version+' '+process.versions.openssl"), _node),
    "java": Kind("java", ("java", "-version"), _java),
    "go": Kind("go", ("go", "version"), _go),
    "rustls": Kind(
        sys.executable,
        (sys.executable, "-c", "import importlib.metadata as m; print(m.version('rtls'))"),
        _rustls,
    ),
}


def version(name: str) -> str:
    """What the server says of its version, in its words. Raises `Absent`."""
    kind = KINDS[name]
    if shutil.which(kind.program) is None:
        raise Absent(f"{kind.program} is not installed")
    said = subprocess.run(kind.version, capture_output=True, text=True, timeout=60, check=False)
    if said.returncode:
        raise Absent(f"{name} does not tell its version: {said.stderr.strip()[-200:]}")
    return (said.stdout or said.stderr).strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    """A hello is answered: some programs listen long before they have loaded what answers."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((ADDRESS, port), timeout=FIRST_WORD) as plain,
    ):
        plain.sendall(Client("is anybody there").hello())
        return bool(plain.recv(1))
    return False


@contextlib.contextmanager
def start(name: str, folder: Path, mode: str = "plain", wait: float = 60) -> Iterator[Running]:
    """The server, from when it answers a hello until the block is left. Raises `Absent`."""
    kind = KINDS[name]
    if mode not in MODES:
        raise ValueError(f"a mode is one of {', '.join(MODES)}")
    version(name)
    if kind.anywhere and [card for _, card in socket.if_nameindex()] != ["lo"]:
        # A server under test is nobody else's to reach.
        raise Absent(f"{name} listens on every interface: run it where there is only lo (unshare)")
    with tempfile.TemporaryDirectory(prefix="residue-") as text:
        work = Path(text)
        place = Place(folder, work, _free_port(), mode)
        command = [*NICE, *kind.command(place)]
        log = work / "log"
        with log.open("wb") as out:
            # Standard input stays open: s_server ends with it.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, cwd=work
            )
        try:
            _await(process, place.port, wait, log)
            yield Running(place.port, process, log)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin:
                process.stdin.close()


def _await(process: subprocess.Popen[bytes], port: int, wait: float, log: Path) -> None:
    until = time.monotonic() + wait
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > until:
            said = log.read_text("utf-8", "replace").strip()[-500:]
            raise Absent(f"the server does not listen: {said or 'it says nothing'}")
        time.sleep(0.05)
