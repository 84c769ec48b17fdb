"""The certificates and keys that a server under test needs for `residue play`."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ci.exits import UsageError
from peers.liar.identities import Identity, make, make_key, pem
from peers.liar.suites.base import ROOT, SERVERS

CLIENT_KINDS = ("p256", "p384", "ed25519", "rsa2048")


def client_roots() -> bytes:
    """The root that suite clients' good chains end in."""
    return pem(ROOT)


def _files() -> dict[str, tuple[bytes, int, str]]:
    """Each file: its bytes, its mode, what it is for."""
    first = SERVERS[0]
    files = {
        "chain.pem": (first.chain_pem, 0o644, "the server's certificates, leaf first"),
        "key.pem": (first.key_pem, 0o600, "the server's key"),
        "ca.pem": (pem(ROOT), 0o644, "the root of everything here; for --ca"),
        "client-ca.pem": (client_roots(), 0o644, "the root that the server trusts clients by"),
    }
    for kind in CLIENT_KINDS:
        client = _client(kind)
        files[f"client-{kind}.pem"] = (client.chain_pem, 0o644, f"a client's certificate, {kind}")
        files[f"client-{kind}-key.pem"] = (_key(client, kind), 0o600, "its key")
    return files


def _client(kind: str) -> Identity:
    return make((f"{kind}.client.example",), kind, usage="client")


def _key(client: Identity, kind: str) -> bytes:
    if client.key_pem:
        return client.key_pem
    key = make_key(kind, f"{kind}.client.example")
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write(folder: Path) -> list[str]:
    """Write them all, nothing over anything; a line for each."""
    files = _files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    there = sorted(name for name in files if (folder / name).exists())
    if there:
        raise UsageError(f"{folder} has {', '.join(there)} already")
    for name, (content, mode, _) in files.items():
        aside = folder / f".{name}.new"
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as out:
            out.write(content)
        aside.rename(folder / name)
    return [f"{folder / name}: {what}" for name, (_, _, what) in files.items()]
