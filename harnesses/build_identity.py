"""Makes the certificates that the harnesses' server is set up with, the same bytes each time.

    python -m harnesses.build_identity

The keys follow from their labels and the signatures are deterministic, so the committed files can
be made again and compared: a test does. The corpus needs them to stay as they are, because a
recorded client's Finished covers the server's certificate. The keys are known to all and protect
nothing.
"""

from __future__ import annotations

from pathlib import Path

from peers.liar.identities import Identity, authority, make, pem

FOLDER = Path(__file__).resolve().parent / "identity"
HOSTS = ("server.example", "*.server.example")
SERVER_ROOT = authority("harness servers")
CLIENT_ROOT = authority("harness clients")
MIDDLE = authority("harness middle", issuer=CLIENT_ROOT, path_length=0)


def client(kind: str, label: str = "harness client") -> Identity:
    """A client that the harnesses' server believes, with a key of this kind."""
    return make([], kind, issuer=CLIENT_ROOT, usage="client", label=label)


def build() -> dict[str, bytes]:
    """The files by name: the server's chain and key, and the roots of its clients."""
    server = make(HOSTS, issuer=SERVER_ROOT)
    return {
        "chain.pem": server.chain_pem + pem(SERVER_ROOT),
        "key.pem": server.key_pem,
        "clients.pem": pem(CLIENT_ROOT),
    }


def main() -> None:
    """Writes the files into the tree."""
    FOLDER.mkdir(exist_ok=True)
    for name, data in build().items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
