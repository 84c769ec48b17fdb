"""An echo server on rustls, by way of the package rtls: rtls_server.py PORT FOLDER MODE"""

from __future__ import annotations

import importlib
import socket
import sys
import threading
from pathlib import Path
from typing import Any


def echo(context: Any, plain: socket.socket) -> None:
    """One connection: say back what comes, until it ends."""
    with plain:
        try:
            with context.wrap_socket(plain, server_side=True) as tls:
                while data := tls.recv(65536):
                    tls.sendall(data)
        except OSError as error:
            print(error, flush=True)


def main() -> None:
    """PORT FOLDER MODE: serve until killed."""
    ssl: Any = importlib.import_module("rtls")
    port, folder, mode = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(str(folder / "chain.pem"), str(folder / "key.pem"))
    if mode in ("optional", "required"):
        context.load_verify_locations(str(folder / "client-ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED if mode == "required" else ssl.CERT_OPTIONAL
    with socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=echo, args=(context, plain), daemon=True).start()


if __name__ == "__main__":
    main()
