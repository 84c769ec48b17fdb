"""The certificates and keys that a server under test needs for `residue play`."""

import os
import shlex
from pathlib import Path

from ci.exits import UsageError
from peers.liar.identities import Identity, make, pem
from peers.liar.suites.base import ROOT, SERVERS
from peers.liar.suites.client_steps import CA

CLIENT_KINDS = ("p256", "p384", "ed25519", "rsa2048")


def client_roots() -> bytes:
    """The root that suite clients' good chains end in."""
    return pem(CA)


def _files() -> dict[str, tuple[bytes, int, str]]:
    """Each file: its bytes, its mode, what it is for."""
    first = SERVERS[0]
    files = {
        "chain.pem": (first.chain_pem, 0o644, "the server's certificates, leaf first"),
        "key.pem": (first.key_pem, 0o600, "the server's key"),
        "ca.pem": (pem(ROOT), 0o644, "the root of the server's chain; for --ca"),
        "client-ca.pem": (client_roots(), 0o644, "the root that the server trusts clients by"),
    }
    for kind in CLIENT_KINDS:
        client = _client(kind)
        files[f"client-{kind}.pem"] = (client.chain_pem, 0o644, f"a client's certificate, {kind}")
        files[f"client-{kind}-key.pem"] = (client.key_pem, 0o600, "its key")
    return files


def _client(kind: str) -> Identity:
    return make((f"{kind}.client.example",), kind, issuer=CA, usage="client")


def usage(folder: Path) -> str:
    """How a server is started with what is in the folder, and how the client is sent to it."""
    shown = shlex.quote(str(folder))
    ca = shlex.quote(str(folder / "ca.pem"))
    return (
        "a server with them, and the client that lies to it:\n"
        f"  residue serve echo --port 4433 --dir {shown}\n"
        f"  residue play 127.0.0.1:4433 --ca {ca}\n"
        "for --suite tickets the server needs --tickets 2\n"
        "for --suite clients the server needs --client-ca client-ca.pem\n"
        "another server is given chain.pem and key.pem as its own, and client-ca.pem to trust"
    )


def write(folder: Path) -> dict[str, str]:
    """Write them all, nothing over anything; what each file of the folder is."""
    files = _files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    there = sorted(name for name in files if (folder / name).exists())
    if there:
        raise UsageError(f"{folder} has {', '.join(there)} already")
    try:
        for name, (content, mode, _) in files.items():
            # Made with its mode, so that a key is never readable, not for a moment.
            made = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with open(made, "wb") as out:
                out.write(content)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from None
    return {name: what for name, (_, _, what) in files.items()}
